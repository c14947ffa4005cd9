"""WrappedAdapter delegates whatever an adapter has, and a subclass changes only what it overrides."""

import asyncio
import copy
import inspect
import pickle
from typing import Any, Unpack

import pytest
import sabir
from sabir import Adapter, ModelAdapter, SettingsInvalid
from sabir.authoring import CallArguments, Messages, WrappedAdapter
from sabir_media import FetchingAdapter
from sabir_session import Budget, with_budget
from sabir_testing.scripted import ScriptedAdapter

MEMBERS = sorted(name for name in vars(Adapter) if not name.startswith("_"))
"""The public members of the protocol: a new one fails below until WrappedAdapter defines it."""
COUNTS = ["count_tokens", "count_tokens_sync"]


def recording(name: str) -> Any:
    """A member of an adapter that returns its name and the arguments of a call, async where an adapter is."""

    def call(inner: object, *given: object, **how: object) -> object:
        return name, given, how

    async def call_later(inner: object, *given: object, **how: object) -> object:
        return call(inner, *given, **how)

    member = inspect.getattr_static(ModelAdapter, name)
    if isinstance(member, property):
        return name
    return call_later if inspect.iscoroutinefunction(member) else call


Recorder = type("Recorder", (), {name: recording(name) for name in [*MEMBERS, *COUNTS]})


def result_of(method: Any, *given: object, **how: object) -> object:
    result = method(*given, **how)
    return asyncio.run(result) if inspect.iscoroutine(result) else result


def test_the_protocol_has_the_members_that_are_compared() -> None:
    """An empty list would pass every test below."""
    assert {"target", "render", "send", "complete_sync", "stream", "aclose"} <= set(MEMBERS)


@pytest.mark.parametrize("name", [*MEMBERS, *COUNTS])
def test_a_member_of_the_protocol_is_defined_and_delegated(name: str) -> None:
    inner: Any = Recorder()
    wrapped = WrappedAdapter(inner)
    assert name in vars(WrappedAdapter)
    if isinstance(vars(WrappedAdapter)[name], property):
        assert getattr(wrapped, name) == getattr(inner, name)
        return
    takes = [each for each in inspect.signature(getattr(Adapter, name, getattr(ModelAdapter, name))).parameters][1:]
    given = ("given",) if takes else ()
    how = {"strict": True} if "strict" in takes else {}

    assert result_of(getattr(wrapped, name), *given, **how) in ((name, given, how), None)
    assert inspect.signature(getattr(WrappedAdapter, name)) == inspect.signature(getattr(ModelAdapter, name))


@pytest.mark.parametrize("close", ["close", "aclose"])
def test_closing_a_wrapper_closes_the_adapter(close: str) -> None:
    closed: list[str] = []

    class Closing(ScriptedAdapter):
        def close(self) -> None:
            closed.append("close")

        async def aclose(self) -> None:
            closed.append("aclose")

    result_of(getattr(WrappedAdapter(Closing()), close))
    assert closed == [close]


PUBLIC = sorted(name for name in dir(ModelAdapter) if not name.startswith("_"))


@pytest.mark.parametrize("wrapped", [WrappedAdapter, lambda llm: with_budget(llm, Budget(turns=1))])
def test_every_public_attribute_of_a_model_adapter_can_be_read_from_its_wrapper(wrapped: Any) -> None:
    inner = sabir.adapter("echo:m", settings=sabir.Settings(seed=1), speaks_as="poet")
    llm = wrapped(wrapped(inner))

    for name in PUBLIC:
        if not callable(getattr(inner, name)):
            assert getattr(llm, name) == getattr(inner, name), name
    assert llm.new_renderer() is not None
    with pytest.raises(AttributeError, match="nothing_of_the_kind"):
        llm.nothing_of_the_kind  # noqa: B018


class Shouting(WrappedAdapter):
    def complete_sync(self, messages: Messages, **how: Unpack[CallArguments]) -> sabir.Reply:
        """Ask in capitals."""
        return super().complete_sync(str(messages).upper(), **how)


def test_a_subclass_changes_only_what_it_overrides() -> None:
    llm = Shouting(ScriptedAdapter("a", "b", "c"))
    llm.complete_sync("hello")
    llm.stream_sync("hello").reply()
    asyncio.run(llm.complete("hello"))

    assert [sent.user_text for sent in llm.sent] == ["HELLO", "hello", "hello"]  # type: ignore[attr-defined]
    assert repr(llm).startswith("Shouting(<ScriptedAdapter")


def test_a_wrapper_is_copied_and_pickled_like_any_object() -> None:
    inner: Any = sabir.RetryPolicy()
    wrapped = WrappedAdapter(inner)
    assert copy.copy(wrapped).inner is inner
    assert pickle.loads(pickle.dumps(wrapped)).inner == inner


def test_a_wrapped_fallback_sends_renderings_of_each_of_its_members() -> None:
    second = ScriptedAdapter("from the second", model="echo:second")
    inner = sabir.fallback(ScriptedAdapter("no", model="echo:first"), second)
    outer = sabir.fallback(WrappedAdapter(inner), ScriptedAdapter("no", model="echo:third"))

    assert outer.targets[:2] == inner.targets and len(outer.targets) == 3
    assert outer.send_sync(second.render("hi")).text == "from the second"


class Uncounted:
    """An adapter as far as it is asked here, without `count_tokens`."""

    target = "echo:plain"


def test_a_wrapper_reports_that_its_adapter_counts_no_tokens() -> None:
    with pytest.raises(SettingsInvalid, match="echo:plain cannot count tokens"):
        WrappedAdapter(Uncounted()).count_tokens_sync("hi")  # type: ignore[arg-type]


def test_the_wrappers_of_the_library_inherit_from_it() -> None:
    llm = sabir.adapter("echo:m")
    assert issubclass(FetchingAdapter, WrappedAdapter)
    assert isinstance(with_budget(llm, Budget(turns=1)), WrappedAdapter)
