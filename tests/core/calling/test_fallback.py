"""A fallback: whom it asks, for which errors it goes on, and what it tells of those that did not answer."""

import asyncio
import json
import logging
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

import pytest
import sabir
from sabir import discovery as registry
from sabir.calling.calls import Adapter, Messages
from sabir.calling.fallback import FALLBACK_ON, FallbackAdapter, fallback, try_members
from sabir.contract.dialect import Rendering
from sabir.contract.provider import Access, TokenCount
from sabir.contract.turns import Tables
from sabir.errors import (
    AllFailed,
    AuthenticationFailed,
    CallError,
    ConnectionFailed,
    ContextTooLong,
    CredentialsMissing,
    InvalidRequest,
    Overloaded,
    QuotaExceeded,
    RateLimited,
    RenderingRefused,
    ResponseInvalid,
    SabirError,
    ServerFailed,
    SettingsInvalid,
    StreamBroken,
    WrongWord,
)
from sabir.vocabulary.reply import FailedMember, Reply
from sabir.vocabulary.settings import RetryPolicy, Settings

from tests.core.support import (
    WORDS,
    Answer,
    Behaviour,
    Loop,
    Loopback,
    Reader,
    Silent,
    Tiny,
    TinyConnection,
    TinyDialect,
    failing,
    raises_line,
    streamed,
    whole,
)

ONCE = Settings(retries=0)
IMAGE = "data:image/png;base64,iVBORw0KGgo="
EVENTS = ["reply-start", "text-start", "text-delta", "text-delta", "text-end", "reply-end"]


class Blind(TinyDialect):
    name = "blind.talk"
    tables = Tables(media={})


class Served(Tiny):
    """The tiny provider under a name of its own, at a server that answers from a list and then by its last answer."""

    def __init__(self, name: str, dialect: TinyDialect) -> None:
        super().__init__()
        self.name = name
        self.answers: list[Answer] = []
        self.behave: Behaviour = self._answer
        self.server = Loopback(lambda path, body: self.behave(path, body))
        self.spoken = dialect
        self.closed = 0

    def dialect(self, short_name: str) -> TinyDialect:
        return self.spoken

    def endpoint(self, access: Access) -> str:
        return access.base_url or self.server.url

    def connect(self, access: Access) -> TinyConnection:
        return Watched(self, self.endpoint(access))

    @property
    def asked(self) -> int:
        return len(self.server.received)

    def _answer(self, path: str, body: Any) -> Answer:
        if self.answers:
            return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return streamed(*WORDS) if path == "/stream" else whole(f"{self.name}: {body['turns'][-1]['text']}", tokens=1)


class Watched(TinyConnection):
    def close(self) -> None:
        self._provider.closed += 1  # type: ignore[attr-defined]
        super().close()

    async def aclose(self) -> None:
        self.close()
        await super().aclose()


@pytest.fixture
def one() -> Iterator[Served]:
    """The provider that is asked first; it takes no picture."""
    yield from serve("one", Blind(counts=True))


@pytest.fixture
def two() -> Iterator[Served]:
    """The provider that is asked next; it takes pictures."""
    yield from serve("two", TinyDialect(counts=True))


def serve(name: str, dialect: TinyDialect) -> Iterator[Served]:
    provider = Served(name, dialect)
    registry.register(name, provider)
    with provider.server:
        yield provider
    registry.unregister(name)


class Caller(Loop):
    """Calls by either kind of method by the same words, so that each test holds for both."""

    def __init__(self, is_async: bool) -> None:
        super().__init__(is_async)
        self._made: list[Any] = []

    def fallback(self, *members: str | Adapter, **given: Any) -> FallbackAdapter:
        named = any(isinstance(member, str) for member in members)
        self._made.append(fallback(*members, **({"settings": ONCE} if named else {}), **given))
        return self._made[-1]

    def adapter(self, name: str, **given: Any) -> sabir.ModelAdapter:
        self._made.append(sabir.adapter(name, **{"settings": ONCE, **given}))
        return self._made[-1]

    def complete(self, llm: Adapter, messages: Messages = "hi", **how: Any) -> Reply:
        if self.is_async:
            return self.run(lambda: llm.complete(messages, **how))
        return llm.complete_sync(messages, **how)

    def send(self, llm: Adapter, rendering: Rendering) -> Reply:
        return self.run(lambda: llm.send(rendering)) if self.is_async else llm.send_sync(rendering)

    def count(self, llm: Any, messages: Messages = "hi", **how: Any) -> TokenCount:
        if self.is_async:
            return self.run(lambda: llm.count_tokens(messages, **how))
        return llm.count_tokens_sync(messages, **how)

    def stream(self, llm: Adapter, messages: Messages | Rendering = "hi", **how: Any) -> "Reader":
        return Reader(self, llm.stream(messages, **how) if self.is_async else llm.stream_sync(messages, **how))

    def close(self) -> None:
        for llm in self._made:
            self.run(llm.aclose)
        super().close()


@pytest.fixture(params=[False, True], ids=["sync", "async"])
def caller(request: pytest.FixtureRequest) -> Iterator[Caller]:
    caller = Caller(request.param)
    yield caller
    caller.close()


def test_it_is_an_adapter(one: Served, two: Served) -> None:
    second = sabir.adapter("two:n", api_key="sk-secret", base_url="https://user:sk-secret@host/v1")
    llm: Adapter = fallback("one:m", second)

    assert [name for name in vars(Adapter) if not name.startswith("_") and not hasattr(llm, name)] == []
    assert isinstance(llm, FallbackAdapter)
    assert (str(llm.target), [str(target) for target in llm.targets]) == ("one:m", ["one:m", "two:n"])
    assert (repr(llm), llm.members[1], llm.speaks_as) == ("FallbackAdapter('one:m', 'two:n')", second, "llm")


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (failing(429), RateLimited),
        (failing(500), ServerFailed),
        (Answer(then="drop"), ConnectionFailed),
        (Answer([b"<html>we are down</html>"]), ResponseInvalid),
        (None, ConnectionFailed),  # nobody listens there
    ],
)
def test_a_provider_that_is_down_is_passed_over(
    one: Served, two: Served, caller: Caller, answer: Answer | None, kind: type[CallError]
) -> None:
    one.answers = [answer] if answer else []
    first = caller.adapter("one:m", **({} if answer else {"base_url": "http://127.0.0.1:9"}))

    reply = caller.complete(caller.fallback(first, "two:m"))

    assert (reply.text, reply.origin.provider, reply.attempts, one.asked) == ("two: hi", "two", 1, int(bool(answer)))
    assert [(str(each.target), each.error, bool(each.message)) for each in reply.failed_members] == [
        ("one:m", kind.__name__, True)
    ]


def test_the_errors_that_move_on_are_those_that_another_provider_may_not_have() -> None:
    """All that are retryable, used up credit, no answer at all, and a refused rendering; nothing else of the tree."""

    def below(kind: type[SabirError]) -> set[type[SabirError]]:
        found = {each for each in kind.__subclasses__() if each.__module__ == "sabir.errors"}
        return found.union(*map(below, found))

    retryable = {kind for kind in below(CallError) if kind.retryable}

    assert retryable | {QuotaExceeded, ResponseInvalid, RenderingRefused, AllFailed} == FALLBACK_ON
    assert {RateLimited, Overloaded, ConnectionFailed} <= retryable


@pytest.mark.parametrize(
    ("answer", "kind"),
    [(failing(400, "no such field"), InvalidRequest), (failing(401, "unknown key"), AuthenticationFailed)],
)
def test_what_is_wrong_with_the_program_is_raised(
    one: Served, two: Served, caller: Caller, answer: Answer, kind: type[CallError]
) -> None:
    one.answers = [answer]

    with pytest.raises(kind) as caught:
        caller.complete(caller.fallback("one:m", "two:m"))

    assert (type(caught.value), two.asked, getattr(caught.value, "__notes__", [])) == (kind, 0, [])


def test_a_missing_key_of_a_later_member_is_raised(one: Served, two: Served, caller: Caller) -> None:
    one.answers, two._key = [failing(429, "too many")], None

    with pytest.raises(CredentialsMissing, match="TINY_KEY") as caught:
        caller.complete(caller.fallback("one:m", "two:m"))

    assert caught.value.__notes__ == ["members of the fallback that failed before: one:m: RateLimited: too many"]


def test_a_member_tries_again_before_it_is_passed_over(one: Served, two: Served, caller: Caller) -> None:
    """Its own RetryPolicy comes first; `attempts` counts the requests to whoever answered."""
    retries = Settings(retries=RetryPolicy(attempts=2, first_delay=0))
    one.answers = [failing(500)]
    two.answers = [failing(429), whole("at last")]
    first, second = (caller.adapter(name, settings=retries) for name in ("one:m", "two:m"))

    reply = caller.complete(caller.fallback(first, second))

    assert (one.asked, two.asked, reply.attempts, len(reply.failed_members), reply.text) == (2, 2, 2, 1, "at last")


def test_each_is_told_with_what_its_request_lost(one: Served, two: Served, caller: Caller) -> None:
    one.answers = [failing(500, "busy")]
    message = sabir.user("What is this?", sabir.image(IMAGE))

    reply = caller.complete(caller.fallback("one:m", "two:m"), message)

    (failed,) = reply.failed_members
    assert (failed.target, failed.error, failed.message) == (sabir.adapter("one:m").target, "ServerFailed", "busy")
    assert [(loss.kind, loss.message_id) for loss in failed.losses] == [("downgraded", message.id)]
    assert reply.losses == ()
    dumped = json.loads(reply.model_dump_json())
    assert Reply.model_validate(dumped) == reply
    del dumped["failed_members"]  # as before there was such a field
    assert Reply.model_validate(dumped).failed_members == ()
    way = try_members([sabir.adapter("echo:a"), sabir.adapter("echo:b")], (RateLimited,), str)
    next(way)
    (odd,) = way.throw(RateLimited("half \ud83d")).failed
    assert (odd.message, FailedMember.model_validate_json(odd.model_dump_json())) == ("half ?", odd)


def test_where_nobody_answers_one_line_names_all(one: Served, two: Served, caller: Caller) -> None:
    one.answers, two.answers = [failing(429, "slow down " * 60, retry_after="200")], [failing(500, "down " * 60)]

    with pytest.raises(AllFailed) as caught:
        caller.complete(caller.fallback("one:m", "two:m"))

    error = caught.value
    line = str(error)
    assert "one:m: RateLimited: slow down" in line
    assert "; two:m: ServerFailed: down" in line
    assert (len(line) <= 500, len(line.splitlines())) == (True, 1)
    assert [each.error for each in error.failed_members] == ["RateLimited", "ServerFailed"]
    assert ([type(each) for each in error.errors], error.__cause__) == ([RateLimited, ServerFailed], error.errors[1])


@pytest.mark.parametrize(
    ("errors", "retryable", "retry_after"),
    [
        ([RateLimited("a", retry_after=9), Overloaded("b", retry_after=3), QuotaExceeded("c")], True, 3),
        ([RateLimited("a", retry_after=9), ServerFailed("b")], True, None),
        ([QuotaExceeded("a", retry_after=2), QuotaExceeded("b")], False, None),
    ],
)
def test_it_may_be_tried_again_where_a_member_may(
    errors: list[CallError], retryable: bool, retry_after: float | None
) -> None:
    error = AllFailed("no member answered", failed_members=[], errors=errors)

    assert (error.retryable, error.retry_after) == (retryable, retry_after)


def test_a_member_that_would_lose_is_passed_over(one: Served, two: Served, caller: Caller) -> None:
    llm, message = caller.fallback("one:m", "two:m", strict=True), sabir.user(sabir.image(IMAGE))
    replies = caller.complete(llm, message), caller.stream(llm, message).reply()

    assert (one.asked, two.asked, str(llm.render(message).target)) == (0, 2, "two:m")
    for each in replies:
        assert [(member.error, member.losses[0].kind) for member in each.failed_members] == [
            ("RenderingRefused", "downgraded")
        ]

    two.answers = [failing(500, "busy")]
    both = r"two:m: ServerFailed: busy; one:m: RenderingRefused: one:m cannot accept"
    with pytest.raises(AllFailed, match=both) as error:
        caller.complete(caller.fallback("two:m", "one:m"), message, strict={"downgraded"})
    assert [len(each.losses) for each in error.value.failed_members] == [0, 1]

    nobody = caller.fallback("one:m", "one:n", strict=True)
    for ask in (caller.complete, caller.stream, caller.count, lambda llm, message: llm.render(message)):
        with pytest.raises(
            RenderingRefused, match=r"no model of the fallback accepts this request: one:m: .*; one:n: "
        ) as caught:
            ask(nobody, message)
        assert [loss.kind for loss in caught.value.losses] == ["downgraded", "downgraded"]
    assert one.asked == 0


def test_what_moves_on_can_be_said(one: Served, two: Served, caller: Caller) -> None:
    one.answers = [failing(400)]
    llm = caller.fallback("one:m", "two:m", fallback_on={InvalidRequest})
    assert caller.complete(llm).text == "two: hi"

    one.answers = [failing(429)]
    with pytest.raises(RateLimited):
        caller.complete(llm)
    with pytest.raises(RenderingRefused, match="one:m cannot accept"):
        caller.complete(llm, sabir.user(sabir.image(IMAGE)), strict=True)
    with pytest.raises(RenderingRefused, match="one:m cannot accept"):
        llm.render(sabir.user(sabir.image(IMAGE)), strict=True)


def test_an_order_tries_the_member_with_the_smallest_key_first(one: Served, two: Served, caller: Caller) -> None:
    """`one` cannot send the image; with equal keys, members keep their order."""
    llm = caller.fallback("one:m", "two:m", order=sabir.fewest_losses)
    picture = sabir.user("What is this?", sabir.image(IMAGE))

    assert caller.complete(llm, picture).origin.provider == "two"
    assert caller.complete(llm).origin.provider == "one"
    assert caller.stream(llm, picture).reply().origin.provider == "two"
    assert caller.count(llm, picture).input_tokens == llm.members[1].count_tokens_sync(picture).input_tokens  # type: ignore[attr-defined]
    assert (llm.render(picture).target.provider, one.asked, two.asked) == ("two", 1, 4)


def test_an_order_leaves_refusing_members_for_last(one: Served, two: Served, caller: Caller) -> None:
    two.answers = [failing(500, "down")]
    llm = caller.fallback("one:m", "two:m", strict=True, order=lambda rendering: rendering.target.provider)

    with pytest.raises(AllFailed) as caught:
        caller.complete(llm, sabir.user(sabir.image(IMAGE)))

    assert [(each.target.provider, each.error) for each in caught.value.failed_members] == [
        ("two", "ServerFailed"),
        ("one", "RenderingRefused"),
    ]


def test_extra_fields_stay_with_the_first_member_in_any_order(one: Served, two: Served, caller: Caller) -> None:
    llm = caller.fallback("one:m", "two:m", order=lambda rendering: -ord(rendering.target.provider[0]))

    reply = caller.complete(llm, settings=Settings(retries=0, extra_body={"beam": 1}))

    assert (reply.origin.provider, [loss.path for loss in reply.losses]) == ("two", ["extra_body.beam"])


@pytest.mark.parametrize(("moves_on", "is_next"), [((InvalidRequest,), True), (tuple(FALLBACK_ON), False)])
def test_a_subclass_moves_on_like_its_base(moves_on: Any, is_next: bool) -> None:
    """ContextTooLong is an InvalidRequest, and moves on only where one of the two is named."""
    members = [sabir.adapter("echo:a"), sabir.adapter("echo:b")]
    way = try_members(members, moves_on, str)
    next(way)

    if is_next:
        assert way.throw(ContextTooLong("too long")).failed[0].error == "ContextTooLong"
    else:
        with pytest.raises(ContextTooLong):
            way.throw(ContextTooLong("too long"))


@pytest.mark.parametrize(
    "answer",
    [
        failing(429),
        streamed({"open": "r"}, {"error": 429}),
        streamed({"open": "r"}),
        Answer(streamed({"open": "r"}).chunks, then="drop"),
        Answer([b"<html>"]),
    ],
    ids=["status", "reported", "no end", "dropped", "html"],
)
def test_a_stream_moves_on_before_its_first_event(one: Served, two: Served, caller: Caller, answer: Answer) -> None:
    one.answers = [answer]
    llm = caller.fallback("one:m", "two:m")

    stream = caller.stream(llm)

    assert [event.type for event in stream] == EVENTS
    reply = stream.reply()
    assert (reply.text, reply.origin.provider, len(reply.failed_members)) == ("Take one.", "two", 1)
    assert reply == stream.stream.partial
    assert caller.stream(llm).texts() == ["Take ", "one."]


@pytest.mark.parametrize(
    "answer",
    [streamed(*WORDS[:2]), streamed(*WORDS[:2], {"error": 429}), Answer(streamed(*WORDS[:2]).chunks, then="drop")],
    ids=["no end", "reported", "dropped"],
)
def test_a_stream_that_breaks_after_its_first_event_is_broken(
    one: Served, two: Served, caller: Caller, answer: Answer
) -> None:
    one.answers, two.answers = [failing(500)], [answer]
    stream = caller.stream(caller.fallback("one:m", "two:m", "one:n"))

    with pytest.raises(StreamBroken) as caught:
        stream.reply()

    partial = caught.value.partial
    assert (partial.text, [each.error for each in partial.failed_members]) == ("Take ", ["ServerFailed"])
    assert (one.asked, two.asked) == (1, 1)
    with pytest.raises(StreamBroken) as again:
        next(stream)
    assert again.value is caught.value


def test_a_stream_that_nobody_begins_says_so(one: Served, two: Served, caller: Caller) -> None:
    one.answers, two.answers = [failing(500)], [failing(429)]
    stream = caller.stream(caller.fallback("one:m", "two:m"))
    for _ in range(2):
        with pytest.raises(AllFailed, match=r"one:m: ServerFailed: no; two:m: RateLimited: no"):
            next(stream)
    assert (one.asked, two.asked) == (1, 1)

    two.answers = [failing(401)]
    with pytest.raises(AuthenticationFailed):
        caller.stream(caller.fallback("one:m", "two:m")).reply()


def test_nothing_is_sent_before_an_event_is_asked_for(one: Served, two: Served, caller: Caller) -> None:
    stream = caller.stream(caller.fallback("one:m", "two:m"))
    assert stream.stream.partial.messages == ()
    stream.close()

    assert (one.asked, two.asked) == (0, 0)
    with pytest.raises(StreamBroken, match="closed before its end"):
        next(stream)


def test_leaving_a_stream_closes_the_connection_of_the_member(one: Served, two: Served, caller: Caller) -> None:
    one.answers = [failing(500)]
    two.answers = [streamed(*WORDS[:3], then="wait")]
    stream = caller.stream(caller.fallback("one:m", "two:m"))
    for _ in range(3):
        next(stream)

    stream.close()

    assert two.server.was_left()
    with pytest.raises(StreamBroken, match="closed before its end") as caught:
        stream.reply()
    assert (caught.value.partial.text, len(caught.value.partial.failed_members)) == ("Take ", 1)


async def test_cancelling_leaves_the_member_and_asks_no_other(
    one: Served, two: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    connection = Silent(b": ")
    monkeypatch.setattr(one, "connect", lambda access: connection)
    async with fallback("one:m", "two:m", settings=ONCE) as llm:
        for job in (lambda: llm.complete("hi"), lambda: llm.stream("hi").reply()):
            task = asyncio.create_task(job())
            await connection.waiting.wait()
            connection.waiting.clear()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    assert (len(connection.responses), connection.open_responses, two.asked) == (2, 0, 0)


def test_a_rendering_is_sent_by_the_member_that_it_was_made_for(one: Served, two: Served, caller: Caller) -> None:
    llm = caller.fallback("one:m", "two:m")
    rendering = sabir.adapter("two:m", settings=ONCE).render("hi")

    assert caller.send(llm, rendering).text == "two: hi"
    assert caller.stream(llm, rendering).reply().text == "Take one."
    assert caller.send(llm, llm.render("hi")).text == "one: hi"
    assert one.asked == 1

    two.answers = [failing(429)]
    for ask in (lambda: caller.send(llm, rendering), lambda: caller.stream(llm, rendering).reply()):
        with pytest.raises(RateLimited):
            ask()
    assert one.asked == 1


def test_a_rendering_for_no_member_is_refused(one: Served, two: Served, caller: Caller) -> None:
    reason = r"the rendering is for two:x \(two.talk\), the members are one:m \(blind.talk\), two:m"
    vars(two.spoken)["name"] = "two.talk"
    llm = caller.fallback("one:m", "two:m")
    rendering = sabir.adapter("two:x").render("hi")
    for ask in (lambda: caller.send(llm, rendering), lambda: caller.stream(llm, rendering)):
        with pytest.raises(SettingsInvalid, match=reason):
            ask()
    with pytest.raises(SettingsInvalid, match="not accept settings together with a rendering"):
        caller.stream(llm, llm.render("hi"), settings=ONCE)


def test_tokens_are_those_of_the_rendering(one: Served, two: Served, caller: Caller) -> None:
    one.answers, two.answers = [failing(500)], [Answer([b'{"tokens": 7}'])]

    with pytest.raises(ServerFailed):
        caller.count(caller.fallback("one:m", "two:m"))
    assert caller.count(caller.fallback("two:m", "one:m")).input_tokens == 7


class Wrapped:
    """Somebody's own adapter: it offers what the Protocol names, and cannot count tokens."""

    def __init__(self, inner: Adapter) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        if name not in vars(Adapter):
            raise AttributeError(name)
        return getattr(self._inner, name)


def test_a_member_is_any_adapter(one: Served, two: Served, caller: Caller) -> None:
    one.answers = [failing(429)]
    llm = caller.fallback(cast(Adapter, Wrapped(caller.adapter("one:m"))), "two:m")

    assert caller.complete(llm).text == "two: hi"
    assert caller.stream(llm).reply().text == "Take one."
    with pytest.raises(SettingsInvalid, match="the adapter of one:m cannot count tokens"):
        caller.count(llm)


def test_a_fallback_may_be_a_member(one: Served, two: Served, caller: Caller) -> None:
    one.answers = [failing(429)]
    inner = caller.fallback("one:a", "one:b")
    llm = caller.fallback(inner, "two:m")
    for reply in (caller.complete(llm), caller.stream(llm).reply()):
        assert [str(each.target) for each in reply.failed_members] == ["one:a", "one:b"]

    outer = caller.fallback("one:x", caller.fallback("one:y", "two:m"))
    for reply in (caller.complete(outer), caller.stream(outer).reply()):
        assert ([str(each.target) for each in reply.failed_members], reply.origin.provider) == (
            ["one:x", "one:y"],
            "two",
        )
    assert [str(target) for target in outer.targets] == ["one:x", "one:y", "two:m"]
    assert caller.send(outer, sabir.adapter("two:m").render("hi")).text == "two: hi"

    two.answers = [failing(500)]
    with pytest.raises(AllFailed) as caught:
        caller.complete(outer)
    assert [str(each.target) for each in caught.value.failed_members] == ["one:x", "one:y", "two:m"]


def test_all_members_are_given_the_same(one: Served, two: Served, caller: Caller) -> None:
    one.answers = [failing(429)]
    chat: Any = iter([sabir.user("one"), sabir.user("two")])
    options = iter([sabir.option(weather)])

    caller.complete(caller.fallback("one:m", "two:m"), chat, options=options, settings=Settings(seed=1))

    bodies = [json.loads(provider.server.received[0].body) for provider in (one, two)]
    assert [(body["options"], body["settings"]) for body in bodies] == [(["weather"], {"seed": 1})] * 2
    assert bodies[0]["turns"] == bodies[1]["turns"] != []


def weather(city: str) -> str:
    """Current weather in a city."""
    return city


def test_what_holds_for_all_is_said_once(one: Served, two: Served) -> None:
    given = sabir.adapter("two:n", speaks_as="painter")
    llm = fallback("one:m", given, speaks_as="painter", settings=Settings(seed=1))

    assert llm.speaks_as == "painter"
    assert [member.render("hi").body["settings"] for member in llm.members] == [{"seed": 1}, {}]
    with pytest.raises(SettingsInvalid, match="the members have different speaks_as: critic, painter"):
        fallback(given, sabir.adapter("one:m", speaks_as="critic"))
    with pytest.raises(SettingsInvalid, match="settings, strict: all members are adapters"):
        fallback(given, given, settings=ONCE, strict=True)


@pytest.mark.parametrize(
    ("members", "given", "kind", "reason"),
    [
        ([], {}, SettingsInvalid, "two members or more, not 0"),
        (["echo:m"], {}, SettingsInvalid, "two members or more, not 1"),
        ([["echo:m", "echo:n"]], {}, SettingsInvalid, "member 1 of the fallback is of type list"),
        (["echo:m", sabir.ModelAdapter], {}, SettingsInvalid, "member 2 of the fallback is of type type"),
        (["echo:m", "echo"], {}, SettingsInvalid, "write provider:model"),
        (
            ["echo:m", "echo:n"],
            {"api_key": "k"},
            WrongWord,
            r"`api_key`, .* with sabir.adapter\('provider:model', api_key=",
        ),
        (["echo:m", "echo:n"], {"temperature": 1}, WrongWord, r"Settings\(temperature=…\)"),
        (["echo:m", "echo:n"], {"fallback_for": ()}, WrongWord, "did you mean `fallback_on`"),
        (["echo:m", "echo:n"], {"fallback_on": RateLimited}, SettingsInvalid, "pass sabir's error classes"),
        (["echo:m", "echo:n"], {"fallback_on": [OSError]}, SettingsInvalid, "pass sabir's error classes"),
        (["echo:m", "echo:n"], {"strict": {"lost"}}, SettingsInvalid, "strict= contains lost"),
    ],
)
def test_a_wrong_argument_says_what_is_right(
    members: list[Any], given: dict[str, Any], kind: type[Exception], reason: str
) -> None:
    with raises_line(kind, match=reason):
        fallback(*members, **given)


def test_another_librarys_arguments_are_refused(one: Served, two: Served, caller: Caller) -> None:
    llm = caller.fallback("one:m", "two:m")
    for ask in (caller.complete, caller.stream, caller.count):
        with pytest.raises(WrongWord, match=r"\(\) has no argument `tools`"):
            ask(llm, tools=[])
    with pytest.raises(WrongWord, match=r"role dictionary"):
        caller.complete(llm, [{"role": "user", "content": "hi"}])  # type: ignore[list-item]


@pytest.mark.parametrize("is_async", [False, True])
async def test_closing_closes_what_it_made(
    one: Served, two: Served, is_async: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every member named by a string, though one fails to; an adapter that was given is for its owner to close."""
    given = sabir.adapter("two:m", settings=ONCE)
    one.answers = [failing(429)]
    llm = fallback("one:m", "one:n", "one:o", given, settings=ONCE)
    assert (await llm.complete("hi") if is_async else llm.complete_sync("hi")).text == "two: hi"
    stuck = llm.members[1]
    close, aclose = stuck.close, stuck.aclose

    def refuse() -> None:
        close()
        raise OSError("stuck")

    async def refuse_here() -> None:
        await aclose()
        raise OSError("stuck")

    monkeypatch.setattr(stuck, "close", refuse)
    monkeypatch.setattr(stuck, "aclose", refuse_here)
    with pytest.raises(OSError, match="stuck"):
        if is_async:
            async with llm:
                pass
        else:
            with llm:
                pass

    assert (one.closed, two.closed) == (3, 0)
    await given.aclose()
    assert two.closed == 1


def test_moving_on_is_logged_once(one: Served, two: Served, caller: Caller, caplog: pytest.LogCaptureFixture) -> None:
    one.answers, two.answers = [failing(429, "too many")], [failing(500)]
    with caplog.at_level(logging.INFO, "sabir"), pytest.raises(AllFailed):
        caller.complete(caller.fallback("one:m", "two:m"))

    lines = [record.getMessage() for record in caplog.records if "the fallback tries" in record.getMessage()]
    assert lines == ["one:m failed: RateLimited: too many; the fallback tries two:m"]


def test_threads_and_tasks_share_a_fallback(one: Served, two: Served) -> None:
    def behave(path: str, body: Any) -> Answer:
        text = body["turns"][-1]["text"]
        return failing(429) if text.endswith("odd") else whole(text)

    one.behave = behave
    said = [f"{n} {'odd' if n % 2 else 'even'}" for n in range(64)]
    expected = [(f"two: {text}" if "odd" in text else text, int("odd" in text)) for text in said]

    with fallback("one:m", "two:m", settings=ONCE) as llm, ThreadPoolExecutor(16) as pool:
        threads = list(pool.map(llm.complete_sync, said))

    async def together() -> list[Reply]:
        async with fallback("one:m", "two:m", settings=ONCE) as llm:
            return await asyncio.gather(*map(llm.complete, said))

    for replies in (threads, asyncio.run(together())):
        assert [(reply.text, len(reply.failed_members)) for reply in replies] == expected
