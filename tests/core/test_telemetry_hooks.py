"""What telemetry hooks are told of a call: one number, every attempt, and exactly one end, however it ends."""

import asyncio
import gc
from collections.abc import Iterator
from threading import Barrier, Thread
from typing import Any

import pytest
import sabir
from sabir.contract.protocols import Access, Connection
from sabir.discovery import registry
from sabir.errors import AuthenticationFailed, CallError, ServerFailed, StreamBroken
from sabir.hooks.plugins import Hooks
from sabir.hooks.specs import hookimpl
from sabir.vocabulary.reply import Reply
from sabir.vocabulary.settings import RetryPolicy, Settings

from tests.core.support import WORDS, Answer, Scripted, Tiny, failing, streamed, whole

AT_ONCE = Settings(retries=RetryPolicy(first_delay=0))


class Told:
    """A hook plugin that writes down what it is told, by the call's number."""

    def __init__(self) -> None:
        self.calls: dict[int, list[Any]] = {}

    def only(self) -> list[Any]:
        """What was told of the one call that there was."""
        (told,) = self.calls.values()
        return told

    @hookimpl
    def sabir_call_started(self, attempt: int, call: int) -> None:
        self.calls.setdefault(call, []).append(("started", attempt))

    @hookimpl
    def sabir_call_failed(self, error: CallError, attempt: int, call: int) -> None:
        self.calls[call].append((type(error), attempt))

    @hookimpl
    def sabir_call_ended(self, reply: Reply, call: int) -> None:
        self.calls[call].append(reply.text)

    @hookimpl
    def sabir_call_given_up(self, error: BaseException | None, call: int) -> None:
        self.calls[call].append(error)


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> Told:
    """The installed hooks, for one test."""
    plugin = Told()
    hooks = Hooks([plugin])
    monkeypatch.setattr("sabir.calling.adapter.installed_hooks", lambda: hooks)
    return plugin


class OnScript(Tiny):
    """The tiny provider, on a connection that a test made."""

    def __init__(self, connection: Any) -> None:
        super().__init__()
        self.connection = connection

    def connect(self, access: Access) -> Connection:  # type: ignore[override]
        connection: Connection = self.connection
        return connection


@pytest.fixture
def adapter() -> Iterator[Any]:
    """Makes an adapter that meets the answers given."""

    def make(*answers: Answer | Exception, connection: Any = None) -> sabir.ModelAdapter:
        registry.register("tiny", OnScript(connection or Scripted(*answers)))
        return sabir.adapter("tiny:m", settings=AT_ONCE)

    yield make
    registry.unregister("tiny")


def test_a_repeated_call_keeps_its_number_and_has_one_end(told: Told, adapter: Any) -> None:
    """An attempt that another follows is no end."""
    adapter(failing(503), whole("done")).complete_sync("a")

    assert told.only() == [("started", 1), (ServerFailed, 1), ("started", 2), "done"]


def test_a_call_that_failed_is_given_up_with_the_error_of_its_last_attempt(told: Told, adapter: Any) -> None:
    """After the attempt's own hook; it is the error that the caller gets."""
    with pytest.raises(AuthenticationFailed) as caught:
        adapter(failing(503), failing(401)).complete_sync("a")

    assert told.only() == [("started", 1), (ServerFailed, 1), ("started", 2), (AuthenticationFailed, 2), caught.value]


def test_a_call_is_given_up_with_an_error_that_is_nobodys(told: Told, adapter: Any) -> None:
    """What no provider translates is no failed attempt, but it ends the call."""
    with pytest.raises(ZeroDivisionError) as caught:
        adapter(ZeroDivisionError("bug")).complete_sync("a")

    assert told.only() == [("started", 1), caught.value]


def test_a_broken_stream_is_given_up_with_what_had_come(told: Told, adapter: Any) -> None:
    """The error carries the partial reply."""
    with pytest.raises(StreamBroken) as caught:
        adapter(streamed(*WORDS[:2])).stream_sync("a").reply()

    assert told.only() == [("started", 1), (StreamBroken, 1), caught.value]


def test_a_stream_read_to_its_end_is_ended_and_not_given_up(told: Told, adapter: Any) -> None:
    """Leaving its block afterwards tells nothing more."""
    with adapter(streamed(*WORDS)).stream_sync("a") as stream:
        stream.reply()

    assert told.only() == [("started", 1), "Take one."]


@pytest.mark.parametrize("leave", ["close", "with", "raise", "forget"])
def test_a_stream_left_early_is_given_up_without_an_error(told: Told, adapter: Any, leave: str) -> None:
    """Closed, left by its block or by an exception, or dropped unclosed."""
    stream = adapter(streamed(*WORDS)).stream_sync("a")
    next(stream)
    if leave == "close":
        stream.close()
        stream.close()
    elif leave == "with":
        with stream:
            pass
    elif leave == "raise":
        with pytest.raises(KeyError), stream:
            raise KeyError
    del stream
    gc.collect()

    assert told.only() == [("started", 1), None]


async def test_an_asynchronous_stream_left_early_is_given_up_without_an_error(told: Told, adapter: Any) -> None:
    """By `break` within its text."""
    async with adapter(streamed(*WORDS)).stream("a") as stream:
        async for _ in stream.text:
            break

    assert told.only() == [("started", 1), None]


async def test_a_cancelled_call_is_given_up_without_an_error(told: Told, adapter: Any) -> None:
    """Nothing went wrong: its caller went."""
    waiting = asyncio.Event()

    class Silent(Scripted):
        async def open(self, request: Any) -> Any:
            waiting.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(adapter(connection=Silent()).complete("a"))
    await waiting.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert told.only() == [("started", 1), None]


def test_a_stream_that_nobody_read_tells_nothing(told: Told, adapter: Any) -> None:
    """The request never went out."""
    with adapter(streamed(*WORDS)).stream_sync("a"):
        pass

    assert told.calls == {}


def test_one_rendering_sent_by_two_threads_at_once_is_two_calls(told: Told, adapter: Any) -> None:
    """Each hook names its own, although the rendering is the same object."""
    both_are_out = Barrier(2, timeout=20)

    class Meeting(Scripted):
        def open_sync(self, request: Any) -> Any:
            both_are_out.wait()
            return super().open_sync(request)

    llm = adapter(connection=Meeting(whole("x"), whole("x")))
    rendering = llm.render("a")
    threads = [Thread(target=llm.send_sync, args=(rendering,)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert list(told.calls.values()) == [[("started", 1), "x"]] * 2
