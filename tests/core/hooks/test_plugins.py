"""Hooks act where they were given, one by one; a veto stops, a failing observer does not."""

import logging
import sys
import threading
import types
from collections.abc import Iterator
from typing import Any

import pytest
from sabir import discovery as points
from sabir.discovery import Registry
from sabir.errors import BuilderError, NotJSON, PluginConflict, PluginError, RateLimited
from sabir.hooks.builders import MessageBuilder, OptionResultBuilder
from sabir.hooks.plugins import Hooks, as_hooks, installed_hooks
from sabir.hooks.specs import hookimpl
from sabir.vocabulary.constructors import user
from sabir.vocabulary.messages import Message, PartsPayload, RoleHint
from sabir.vocabulary.parts import MediaPart, TextPart
from sabir.vocabulary.reply import Reply

from tests.core.distributions import Install, finish_loading
from tests.core.support import raises_line


class Veto(NotJSON):
    """A plugin's own error, of a kind that builders give another name where it is their own."""


class Marker:
    def __init__(self, name: str) -> None:
        self.name = name

    @hookimpl
    def sabir_message_built(self, message: Message) -> Message | None:
        if message.kind != "parts":
            return None
        return message.model_copy(update={"payload": PartsPayload(parts=(*message.parts, TextPart(text=self.name)))})


class Hints:
    @hookimpl
    def sabir_default_role_hint(self, policy: str, kind: str) -> RoleHint | None:
        return "system" if policy == "rules" and kind == "parts" else None


class MediaNames:
    @hookimpl
    def sabir_media_id(self, part: MediaPart, index: int) -> str | None:
        return None if part.modality == "video" else f"{part.modality}-{index}"


def built(hooks: Any, policy: str = "user") -> Message:
    builder = MessageBuilder(policy, hooks=hooks)
    builder.add_text("x")
    return builder.to_message()


@pytest.fixture(autouse=True)
def anew() -> Iterator[None]:
    """What is installed is loaded anew by each test, and by whoever comes after it."""
    installed_hooks.cache_clear()
    yield
    installed_hooks.cache_clear()


def test_hooks_give_hints_and_names_where_the_builder_was_given_none() -> None:
    """CD-09, PJ-41: what was given stays, and what no hook names is named by the builder."""
    assert built([Hints()], "rules").role_hint_for_llm == "system"
    assert built([Hints()], "user").role_hint_for_llm is built([], "rules").role_hint_for_llm is None
    builder = MessageBuilder("rules", role_hint="user", hooks=[Hints(), MediaNames()])
    for add, media_id in [(builder.add_image, None), (builder.add_image, "mine"), (builder.add_video, None)]:
        add(None, "https://example.org", id=media_id)
    message = builder.to_message()

    assert message.role_hint_for_llm == builder.add_option_call("f").role_hint_for_llm == "user"
    assert [part.id for part in message.parts if isinstance(part, MediaPart)] == ["image-1", "mine", "media-3"]


def test_plugins_are_called_in_the_order_of_registration_which_marks_adjust() -> None:
    last, first = _marker("3", trylast=True), _marker("0", tryfirst=True)
    hooks = Hooks([_marker("1"), last, Hints(), _marker("2"), first])
    assert built(hooks).text == "x0123"
    hooks.register(_marker("late"))
    assert built(hooks).text == "x012late3"
    assert built([]).text == "x"  # who was given none has none
    hooks.unregister(first)
    hooks.unregister(last)
    assert built(hooks).text == "x12late"
    with pytest.raises(PluginError, match="hook plugin a_module is not registered"):
        hooks.unregister(last)
    hooks.register(first)
    assert built(hooks).text == "x012late"
    with pytest.raises(PluginConflict, match="hook plugin a_module#3 is registered already; register it once"):
        hooks.register(first)


def test_a_veto_reaches_the_caller_and_nothing_is_built() -> None:
    class NoCalls:
        @hookimpl
        def sabir_message_built(self, message: Message) -> None:
            if message.kind != "parts":
                raise Veto(f"no {message.kind}")

    builder = MessageBuilder(hooks=[NoCalls()])
    with pytest.raises(Veto, match="no option_call"):
        builder.add_option_call("f")
    builder.add_text("x")
    assert [message.kind for message in builder.to_messages()] == ["parts"]
    call = MessageBuilder().add_option_call("f")
    with pytest.raises(Veto, match="no option_result"):
        OptionResultBuilder.response_to(call, hooks=[NoCalls()]).success(1)


def test_a_hook_that_breaks_a_message_is_named() -> None:
    for changed, words in (
        ("text", "returned str from sabir_message_built; return a Message or None"),
        (MessageBuilder().add_option_call("f"), "changed a message's kind or invocation id"),
    ):
        breaks = _misfit("sabir_message_built", hookimpl(lambda self, message, changed=changed: changed))
        with pytest.raises(BuilderError, match=f"hook plugin Misfit {words}"):
            built([breaks])
    blind = _module(sabir_message_built=hookimpl(lambda: user("y")))
    with pytest.raises(BuilderError, match="hook plugin a_module returned a message, but does not receive one"):
        built([blind])


def _module(**members: Any) -> types.ModuleType:
    module = types.ModuleType("a_module")
    vars(module).update(members)
    return module


def _misfit(name: str, function: Any) -> Any:
    return type("Misfit", (), {name: function})()


def _hears(self: Any, message: Message) -> None: ...


def _hears_unmarked(self: Any, message: Message) -> None: ...


def _mishears(self: Any, massage: Message) -> None: ...


async def _hears_later(self: Any, message: Message) -> None: ...


def _hears_never(self: Any, message: Message) -> Any:
    yield


@hookimpl(wrapper=True)
def _wraps(self: Any, message: Message) -> Any:
    return (yield)


def _unreadable(self: Any) -> Any:
    raise SystemExit("not now")


@pytest.mark.parametrize(
    ("plugin", "words"),
    [
        (_misfit("sabir_mesage_built", hookimpl(_hears)), "not a hook; did you mean sabir_message_built?"),
        (_misfit("whatever", hookimpl(_hears)), "implements whatever, which is not a hook; hooks are sabir_"),
        (_misfit("sabir_message_built", _hears_unmarked), "defines sabir_message_built without the decorator"),
        (_misfit("sabir_message_built", hookimpl(_mishears)), "does not match the hook: .*massage"),
        (_misfit("sabir_message_built", hookimpl(_hears_later)), "sabir_message_built is a coroutine function"),
        (_misfit("sabir_message_built", hookimpl(_hears_never)), "sabir_message_built is a generator function"),
        (_misfit("about", property(_unreadable)), "Misfit cannot be read: SystemExit: not now; update or remove it"),
        (_misfit("sabir_message_built", _wraps), "sabir_message_built is a wrapper; hooks are plain"),
        (Hints, "Hints is a class; pass an instance of it"),
        (object(), "object implements no hook; hooks are sabir_"),
        ("installed", "str implements no hook"),
    ],
    ids=range(11),
)
def test_a_plugin_that_cannot_be_heard_is_refused_by_name(plugin: Any, words: str) -> None:
    """UP-24, check_pending: before any hook runs, in one line, and without a trace of it."""
    hooks = Hooks()
    with raises_line(PluginError, match=words):
        hooks.register(plugin)
    hooks.register(Marker("1"))
    assert built(hooks).text == "x1"


def _marker(name: str, **order: bool) -> Any:
    @hookimpl(**order)
    def sabir_message_built(message: Message) -> Message | None:
        return Marker(name).sabir_message_built(message)

    return _module(sabir_message_built=sabir_message_built)


class Observer:
    def __init__(self) -> None:
        self.seen: list[Any] = []

    @hookimpl
    def sabir_call_started(self, attempt: int) -> None:
        self.seen.append(("started", attempt))

    @hookimpl
    def sabir_call_ended(self, reply: Reply) -> None:
        self.seen.append(("ended", reply))

    @hookimpl
    def sabir_call_failed(self, error: Exception, attempt: int) -> None:
        self.seen.append(("failed", str(error), attempt))


class Mute(BaseException):
    def __str__(self) -> str:
        raise OSError


class Fails:
    @hookimpl
    def sabir_call_started(self) -> None:
        raise ValueError("the disk\nis full")

    @hookimpl
    def sabir_call_failed(self) -> None:
        raise Mute

    @hookimpl
    def sabir_call_ended(self) -> None:
        raise SystemExit(3)


@pytest.mark.parametrize(
    ("hook", "given", "words"),
    [
        ("sabir_default_role_hint", 1 / 3, "returned 0.3333333333333333 from sabir_default_role_hint; return one of "),
        ("sabir_default_role_hint", Mute(), "failed in sabir_default_role_hint: Mute; update or remove it"),
        ("sabir_media_id", 5, "returned int from sabir_media_id; return a string or None"),
        ("sabir_media_id", KeyError("no"), "failed in sabir_media_id: KeyError: 'no'; update or remove it"),
        ("sabir_message_built", SystemExit(3), "failed in sabir_message_built: SystemExit: 3"),
    ],
)
def test_a_builder_hook_that_fails_is_reported_by_the_plugins_name(hook: str, given: Any, words: str) -> None:
    stopped = KeyboardInterrupt("stopped")
    for said, kind, match in (
        (given, PluginError, f"^hook plugin Misfit {words}"),
        (stopped, type(stopped), "stopped"),
    ):

        def function(self: Any, said: Any = said) -> Any:
            if isinstance(said, BaseException):
                raise said
            return said

        builder = MessageBuilder(hooks=[Hints(), _misfit(hook, hookimpl(function))])
        with pytest.raises(kind, match=match):
            builder.add_image(None, "https://example.org")
            builder.to_message()


def test_a_failing_observer_is_logged_and_disturbs_nobody(caplog: pytest.LogCaptureFixture) -> None:
    """UP-24, UP-27: the others are told, in order, and the call goes on."""
    before, after = Observer(), Observer()
    hooks = Hooks([before, Fails(), after])
    rendering, reply = object(), object()
    with caplog.at_level(logging.WARNING, "sabir"):
        hooks.call_started(rendering, 1, 1)  # type: ignore[arg-type]
        hooks.call_failed(rendering, RateLimited("slow down"), 1, 1)  # type: ignore[arg-type]
        hooks.call_ended(rendering, reply, 1)  # type: ignore[arg-type]

    assert before.seen == after.seen == [("started", 1), ("failed", "slow down", 1), ("ended", reply)]
    assert caplog.messages == [
        "hook plugin Fails failed in sabir_call_started and was skipped: ValueError: the disk is full",
        "hook plugin Fails failed in sabir_call_failed and was skipped: Mute",
        "hook plugin Fails failed in sabir_call_ended and was skipped: SystemExit: 3",
    ]


PLUGIN = """
from sabir.hooks.specs import hookimpl

class Shouts:
    @hookimpl
    def sabir_default_role_hint(self, policy):
        return "system"

shouts = Shouts()
"""


def test_installed_hooks_are_loaded_at_their_first_use(install: Install, caplog: pytest.LogCaptureFixture) -> None:
    """By builders that ask for them; discovery imports none; a broken one is logged and stops no other (CD-13)."""
    install("shouting", {"sabir.hooks": {"shouts": "shouting_hooks:shouts"}}, shouting_hooks=PLUGIN)
    install("broken", {"sabir.hooks": {"broken": "broken_hooks:nothing"}}, broken_hooks="raise OSError('no disk')")
    Registry().providers()
    assert "shouting_hooks" not in sys.modules
    with caplog.at_level(logging.WARNING, "sabir"):
        assert built("installed").role_hint_for_llm == "system"

    assert installed_hooks() is installed_hooks()
    assert built(()).role_hint_for_llm is None
    assert len(caplog.messages) == 1
    assert "hook plugin broken was skipped: 'broken' of broken 1.0 (broken_hooks:nothing)" in caplog.messages[0]
    with pytest.raises(PluginError, match="hooks='all' is unknown"):
        as_hooks("all")  # type: ignore[arg-type]


def test_hooks_that_do_not_finish_loading_are_passed_over(
    install: Install, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    go_on = threading.Event()
    monkeypatch.setattr(sys, "hooks_go_on", go_on, raising=False)
    monkeypatch.setattr(points, "LONGEST_LOAD", 1.0)
    install(
        "hanging", {"sabir.hooks": {"hangs": "hanging_hooks:hangs"}}, hanging_hooks="import sys; sys.hooks_go_on.wait()"
    )
    install("shouting", {"sabir.hooks": {"shouts": "shouting_hooks:shouts"}}, shouting_hooks=PLUGIN)
    hooks = installed_hooks()
    finish_loading(go_on)

    assert hooks.role_hint("user", "parts") == "system"
    assert caplog.messages == [
        "hook plugin hangs was skipped: 'hangs' of hanging 1.0 (hanging_hooks:hangs) did not finish "
        "loading within 1 s; "
        "update or remove it"
    ]
