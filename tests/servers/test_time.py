"""No call takes longer than its settings say, however slowly a server answers, whatever is called and how."""

import asyncio
import gc
import itertools
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias
from weakref import WeakKeyDictionary

import anthropic
import httpx2
import openai
import pytest
import sabir
from google import genai
from sabir_google.provider import http_options
from sabir_local.server import LocalServer

from tests.servers.slow import BODIES, HEADS, REFUSAL, SSE, STREAMS, BlackHole, Pieces, Slow, drops

TIMEOUT = 0.4
ALLOWED = 5.0
"""Seconds by which a call may end later than its settings say: a loaded machine may schedule a thread late."""
ENDS = sabir.Settings(timeout=TIMEOUT, retries=0)

Make: TypeAlias = Callable[[str, bool], sabir.ModelAdapter]
"""An endpoint's URL, and whether the calls are sync → the adapter under test."""


class Elsewhere(LocalServer):
    """A local model's server that is another one."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self._url = url

    @property
    def address(self) -> str:
        return self._url


def own(model: str, url: str, is_sync: bool) -> sabir.ModelAdapter:
    return sabir.adapter(model, api_key="k", base_url=url, settings=ENDS)


def local(url: str, is_sync: bool) -> sabir.ModelAdapter:
    return sabir.adapter("local:smollm2", client=Elsewhere(url), settings=ENDS)


def users_openai(url: str, is_sync: bool) -> sabir.ModelAdapter:
    kind = openai.OpenAI if is_sync else openai.AsyncOpenAI
    return sabir.adapter("openai.chat:m", client=kind(api_key="k", base_url=url), settings=ENDS)


def users_anthropic(url: str, is_sync: bool) -> sabir.ModelAdapter:
    kind = anthropic.Anthropic if is_sync else anthropic.AsyncAnthropic
    return sabir.adapter("anthropic:m", client=kind(api_key="k", base_url=url), settings=ENDS)


def users_google(url: str, is_sync: bool) -> sabir.ModelAdapter:
    options = http_options(base_url=url)
    client = genai.Client(api_key="k", vertexai=False, http_options=options)
    _OF_USERS[client] = [options.httpx_client, options.httpx_async_client]
    return sabir.adapter("google:m", client=client, base_url=url, settings=ENDS)


_OF_USERS: WeakKeyDictionary[object, list[Any]] = WeakKeyDictionary()
"""A client of Google's SDK → the HTTP clients to close."""


async def close(llm: sabir.ModelAdapter) -> None:
    await llm.aclose()
    client = llm.access.client
    for each in _OF_USERS.get(client, [client]) if client else ():
        if not isinstance(each, LocalServer):
            closing = each.aclose() if hasattr(each, "aclose") else each.close()
            if closing is not None:
                await closing


ADAPTERS: dict[str, Make] = {
    "openai.chat": partial(own, "openai.chat:m"),
    "openai.responses": partial(own, "openai.responses:m"),
    "anthropic": partial(own, "anthropic:m"),
    "google": partial(own, "google:m"),
    "local": local,
    "client= of openai": users_openai,
    "client= of anthropic": users_anthropic,
    "client= of google": users_google,
}
COUNTS = ("anthropic", "google", "client= of anthropic", "client= of google", "openai.responses")
"""The adapters whose provider counts tokens."""


@dataclass(frozen=True)
class Ended:
    """How a call ended: the error, and after how many seconds."""

    name: str
    error: BaseException
    seconds: float


class Callers:
    """Every adapter with a sync and an async client, warmed up: loading SDKs and TLS takes longer than the timeouts."""

    def __init__(self, url: str, makes: Mapping[str, Make]) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()
        self._pool = ThreadPoolExecutor(2 * len(makes))
        self._adapters = {
            (name, is_sync): make(url, is_sync) for name, make in makes.items() for is_sync in (True, False)
        }

    def close(self) -> None:
        for llm in self._adapters.values():
            asyncio.run_coroutine_threadsafe(close(llm), self._loop).result()
        self._pool.shutdown()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def run(self, how: str, names: Iterable[str] | None = None, **call: Any) -> list[Ended]:
        """Run a call, "complete", "stream" or "count_tokens", by each adapter at once; return how each failed."""
        names = {name for name, _ in self._adapters} if names is None else names
        calls = [key for key in self._adapters if key[0] in names]
        return list(self._pool.map(lambda key: self._run(key, how, call), calls))

    def _run(self, key: tuple[str, bool], how: str, call: Mapping[str, Any]) -> Ended:
        name, is_sync = key
        call = {"messages": "hi", **call}
        llm = self._adapters[key]

        async def awaited() -> None:
            if how == "stream":
                _ = [event async for event in llm.stream(**call)]
            else:
                await getattr(llm, how)(**call)

        began = time.monotonic()
        with pytest.raises(sabir.CallError) as caught:
            if not is_sync:
                asyncio.run_coroutine_threadsafe(awaited(), self._loop).result()
            elif how == "stream":
                list(llm.stream_sync(**call))
            else:
                getattr(llm, f"{how}_sync")(**call)
        return Ended(f"{name}, {'sync' if is_sync else 'async'}", caught.value, time.monotonic() - began)


@pytest.fixture(scope="module")
def server() -> Iterator[Slow]:
    with Slow(REFUSAL) as running:
        yield running


@contextmanager
def running(url: str, makes: Mapping[str, Make]) -> Iterator[Callers]:
    callers = Callers(url, makes)
    try:
        yield callers
    finally:
        callers.close()


@pytest.fixture(scope="module")
def callers(server: Slow) -> Iterator[Callers]:
    with running(server.url, ADAPTERS) as callers:
        callers.run("complete", settings=UNHURRIED)
        yield callers


UNHURRIED = sabir.Settings(timeout=60)


def check_late(ended: Ended, setting: str, limit: float = TIMEOUT) -> None:
    """Check that a call ended because of that setting, not before `limit` seconds, and at most ALLOWED after them."""
    error = ended.error.__cause__ if isinstance(ended.error, sabir.StreamBroken) else ended.error
    assert isinstance(error, sabir.errors.CallTimedOut), f"{ended.name} ended with {error!r}"
    assert f"Settings.{setting}" in str(error)
    assert limit - 0.05 < ended.seconds < limit + ALLOWED, f"{ended.name} ended after {ended.seconds:.2f} s"


IDLE = sabir.Settings(timeout=30, idle=TIMEOUT)
LATE = [
    *((f"{how}, {name}", how, pieces, ENDS) for how in ("complete", "stream", "count_tokens")
      for name, pieces in HEADS.items()),
    *((f"{how}, {name}", how, pieces, ENDS) for how in ("complete", "count_tokens") for name, pieces in BODIES.items()),
    *((f"events, {name}", "stream", pieces, IDLE) for name, pieces in STREAMS.items()),
]  # fmt: skip
"""What is called, what comes, and the settings: a stream that has begun ends with `idle`."""


@pytest.mark.parametrize(("how", "pieces", "settings"), [row[1:] for row in LATE], ids=[row[0] for row in LATE])
def test_an_answer_that_does_not_end_ends_on_time(
    how: str, pieces: Pieces, settings: sabir.Settings, server: Slow, callers: Callers
) -> None:
    server.pieces = pieces
    for ended in callers.run(how, COUNTS if how == "count_tokens" else None, settings=settings):
        check_late(ended, "idle" if settings is IDLE else "timeout")


def test_a_kept_connection_ends_with_the_timeout(server: Slow, callers: Callers) -> None:
    """Before the head comes, no client tells which of its connections is in use. Late connections are not kept."""
    names = [name for name in ADAPTERS if name != "local"]  # its requests ask for connections of their own
    server.pieces = REFUSAL
    callers.run("complete", names, settings=UNHURRIED)
    accepted, left = server.connections, server.left

    server.pieces = HEADS["early hints"]
    for ended in callers.run("complete", names):
        check_late(ended, "timeout")
    assert server.connections == accepted
    server.pieces = REFUSAL
    callers.run("complete", names, settings=UNHURRIED)
    assert server.connections == accepted + 2 * len(names)
    assert server.left == left + 2 * len(names)


EVENTS = {
    "openai.chat": '{"id":"r","created":1,"model":"m","choices":[{"index":0,"delta":{"content":"a"}}]}',
    "openai.responses": '{"type":"response.created","response":{"id":"r","model":"m","output":[]}}',
    "anthropic": '{"type":"message_start","message":{"id":"r","model":"m","content":[],"usage":{}}}',
    "google": '{"candidates":[{"content":{"parts":[{"text":"a"}]},"index":0}],"modelVersion":"m"}',
}
"""Adapter → a first event of its dialect."""
ERROR = b'HTTP/1.1 503 No\r\ncontent-type: application/json\r\ncontent-length: 100000\r\n\r\n{"error": {"message": "'


@pytest.mark.parametrize(
    ("how", "pieces", "setting"),
    [("complete", drops(ERROR, b"x"), ""), ("complete", BODIES["body"], "timeout"),
     ("stream", STREAMS["comments"], "idle")],
    ids=["error", "body", "stream"],
)  # fmt: skip
def test_what_is_late_is_not_sent_again(how: str, pieces: Pieces, setting: str, server: Slow, callers: Callers) -> None:
    """An error whose body does not end is that of its status; `idle` is as long as `timeout`."""
    sent = itertools.count()

    def counted() -> Iterable[bytes]:
        next(sent)
        return pieces()

    server.pieces = counted
    ends = callers.run(how, EVENTS, settings=sabir.Settings(timeout=TIMEOUT, retries=2))
    for ended in ends:
        if setting:
            check_late(ended, setting)
        else:
            assert isinstance(ended.error, sabir.errors.Unavailable) and "503" in str(ended.error), ended
            assert ended.seconds < TIMEOUT + ALLOWED
    assert next(sent) == len(ends)


@pytest.mark.parametrize("name", EVENTS)
def test_half_events_do_not_prolong_idle(name: str, server: Slow, callers: Callers) -> None:
    """After the first event, the error is the cause of a StreamBroken."""
    event = f"data: {EVENTS[name]}\n\n".encode()
    for after in (b"", b": ping\n\n", b"data: "):
        server.pieces = drops(SSE + event, after)
        for ended in callers.run("stream", [name], settings=IDLE):
            check_late(ended, "idle")


@pytest.mark.parametrize("name", EVENTS)
def test_total_ends_a_stream_whose_events_do_not_end(name: str, server: Slow, callers: Callers) -> None:
    event = f"data: {EVENTS[name]}\n\n".encode()
    repeated = b'event: ping\ndata: {"type":"ping"}\n\n' if name == "anthropic" else event
    server.pieces = drops(SSE + event, repeated)
    for ended in callers.run("stream", [name], settings=sabir.Settings(timeout=30, idle=30, total=TIMEOUT)):
        check_late(ended, "total")


@pytest.mark.parametrize("how", ["complete", "stream", "count_tokens"])
def test_total_ends_every_call(how: str, server: Slow, callers: Callers) -> None:
    """A complete call ends at the earlier of `timeout` and `total`."""
    for pieces in (HEADS["early hints"], (STREAMS if how == "stream" else BODIES).popitem()[1]):
        server.pieces = pieces
        for ended in callers.run(how, COUNTS, settings=sabir.Settings(timeout=30, total=TIMEOUT)):
            check_late(ended, "total")


def test_a_pause_beyond_the_timeout_is_not_begun(server: Slow, callers: Callers) -> None:
    """A provider that asks for a longer pause gets its own error raised at once."""
    server.pieces = lambda: [b"HTTP/1.1 429 No\r\nretry-after: 20\r\ncontent-length: 2\r\n\r\n{}"]
    for how in ("complete", "stream"):
        for ended in callers.run(how, settings=sabir.Settings(timeout=TIMEOUT, retries=2)):
            assert isinstance(ended.error, sabir.errors.RateLimited)
            assert ended.seconds < TIMEOUT + ALLOWED


def test_attempts_and_pauses_count(server: Slow, callers: Callers) -> None:
    attempts = itertools.count()
    refusal = b"HTTP/1.1 503 No\r\ncontent-length: 2\r\n\r\n{}"
    server.pieces = lambda: [refusal] if next(attempts) < 2 else HEADS["early hints"]()
    retries = sabir.RetryPolicy(attempts=9, first_delay=0.05, longest_delay=0.05)
    for name in ("openai.chat", "google"):
        for ended in callers.run("complete", [name], settings=sabir.Settings(timeout=TIMEOUT, retries=retries)):
            check_late(ended, "timeout")


SOME = {name: ADAPTERS[name] for name in ("openai.chat", "google", "client= of anthropic")}


def test_a_request_that_nobody_reads_ends_with_the_timeout(server: Slow, callers: Callers) -> None:
    """It is larger than all buffers."""
    server.pieces, server.reads = HEADS["silence"], False
    for name in SOME:
        for ended in callers.run("complete", [name], messages="x" * 10_000_000):
            check_late(ended, "timeout")
    server.reads = True


@pytest.mark.parametrize("how", ["complete", "stream"])
def test_a_handshake_without_an_answer_ends_with_the_timeout(how: str) -> None:
    with warnings.catch_warnings():
        # An async handshake that is cancelled leaves its socket to the garbage collector, in httpcore2 2.16.
        warnings.simplefilter("ignore", ResourceWarning)
        with Slow(HEADS["silence"], scheme="https") as peer, running(peer.url, SOME) as callers:
            callers.run(how)
            for ended in callers.run(how):
                check_late(ended, "timeout")
            del ended, callers  # the traceback of the error refers to the socket
        gc.collect()


def test_a_connection_that_nobody_accepts_ends_with_the_timeout() -> None:
    with BlackHole() as hole, running(hole.url, SOME) as callers:
        callers.run("complete")
        for ended in callers.run("complete"):
            check_late(ended, "timeout")


def test_the_wait_for_a_free_connection_ends_with_the_timeout(server: Slow) -> None:
    server.pieces = drops(SSE + f"data: {EVENTS['openai.chat']}\n\n".encode(), b": ping\n\n")
    settings = sabir.Settings(timeout=TIMEOUT, idle=30, retries=0)
    with httpx2.Client(limits=httpx2.Limits(max_connections=1), timeout=60) as http:
        client = openai.OpenAI(api_key="k", base_url=server.url, http_client=http)
        llm = sabir.adapter("openai.chat:m", client=client, settings=settings)
        with llm.stream_sync("hi") as first:
            next(first)
            began = time.monotonic()
            with pytest.raises(sabir.errors.CallTimedOut), llm.stream_sync("hi") as second:
                next(second)
            assert time.monotonic() - began < TIMEOUT + ALLOWED
