"""What telemetry hooks are told of a call: one number, every attempt, and exactly one end, however it ends."""

import asyncio
import gc
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
import sabir
from sabir import discovery as registry
from sabir.contract.provider import Access, Connection
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
        self.heads: list[tuple[int, str | None, int, int]] = []

    def only(self) -> list[Any]:
        (told,) = self.calls.values()
        return told

    @hookimpl
    def sabir_call_started(self, attempt: int, call: int) -> None:
        self.calls.setdefault(call, []).append(("started", attempt))

    @hookimpl
    def sabir_call_answered(self, status: int, headers: Mapping[str, str], attempt: int, call: int) -> None:
        self.heads.append((status, headers.get("retry-after"), attempt, call))

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
    hooks = Hooks([plugin := Told()])
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


ENDS: list[tuple[tuple[Answer | Exception, ...], list[Any], type[Exception] | None]] = [
    ((failing(503), whole("done")), [("started", 1), (ServerFailed, 1), ("started", 2), "done"], None),
    ((failing(503), failing(401)), [("started", 1), (ServerFailed, 1), ("started", 2), (AuthenticationFailed, 2)],
     AuthenticationFailed),
    ((ZeroDivisionError("bug"),), [("started", 1)], ZeroDivisionError),  # no provider translates it: no failed attempt
    ((streamed(*WORDS[:2]),), [("started", 1), (StreamBroken, 1)], StreamBroken),
    ((streamed(*WORDS),), [("started", 1), "Take one."], None),
]  # fmt: skip


@pytest.mark.parametrize(("answers", "expected", "raised"), ENDS)
def test_a_call_keeps_its_number_and_has_one_end(
    told: Told, adapter: Any, answers: Any, expected: list[Any], raised: type[Exception] | None
) -> None:
    llm = adapter(*answers)
    is_stream = not isinstance(answers[0], Exception) and answers[0].chunks[0].startswith(b"data")

    def ask() -> Any:
        if not is_stream:
            return llm.complete_sync("a")
        with llm.stream_sync("a") as stream:
            return stream.reply()

    if raised is None:
        ask()
        assert told.only() == expected
        return
    with pytest.raises(raised) as caught:
        ask()
    assert told.only() == [*expected, caught.value]


@pytest.mark.parametrize("leave", ["close", "with", "raise", "forget"])
def test_a_stream_left_early_is_given_up_without_an_error(told: Told, adapter: Any, leave: str) -> None:
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


async def test_an_asynchronous_call_left_early_is_given_up_without_an_error(told: Told, adapter: Any) -> None:
    waiting = asyncio.Event()

    class Silent(Scripted):
        async def open(self, request: Any) -> Any:
            waiting.set()
            await asyncio.Event().wait()

    llm = adapter(streamed(*WORDS))
    async with llm.stream("a"):
        pass
    assert told.calls == {}
    async with llm.stream("a") as stream:
        async for _ in stream.text:
            break
    registry.unregister("tiny")
    task = asyncio.create_task(adapter(connection=Silent()).complete("a"))
    await waiting.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert list(told.calls.values()) == [[("started", 1), None]] * 2


def test_the_headers_of_every_response_are_reported(adapter: Any, told: Told) -> None:
    adapter(failing(503, retry_after="0"), whole("Take one.")).complete_sync("Umbrella?")

    (call,) = told.calls
    assert told.heads == [(503, "0", 1, call), (200, None, 2, call)]
