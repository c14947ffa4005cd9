"""Helpers of the transport cases: an environment without variables, a request to send, and sync and async callers."""

import asyncio
import os
import re
import traceback
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any, NamedTuple, Self, TypeVar

import pytest
import sabir
from sabir import RetryPolicy, Settings
from sabir.authoring import Access, AsyncWireResponse, Connection, WireRequest, WireResponse
from sabir.errors import SabirError

from sabir_testing.kit.broken import ConformanceFailure, expect
from sabir_testing.kit.played import Stream, longest_stream
from sabir_testing.kit.suite import AdapterUnderTest
from sabir_testing.loopback import Asked, Server, Step, head

PATIENCE = 5.0
"""Seconds after which a server, or a case, stops waiting: only a broken adapter reaches them."""
STALL = 0.2
"""Seconds after which a call without an answer must be given up."""
KEY = "key-of-the-kit"
HELLO = "Grüße."
OK = b'{"ok": true}'
PROXIES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")

Result = TypeVar("Result")


class Heard(NamedTuple):
    """An answer, read to its end."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Caller:
    """One of the two ways in which core uses a connection: here by the sync client, in `InALoop` by the async one."""

    opens, closes = "open_sync()", "close()"

    def open(self, connection: Connection, request: WireRequest) -> WireResponse:
        """Send a request; its answer, not read."""
        return connection.open_sync(request)

    def call(self, adapter: sabir.ModelAdapter) -> None:
        """Make a whole call."""
        adapter.complete_sync(HELLO)

    def stream(self, adapter: sabir.ModelAdapter) -> None:
        """Make a whole call whose answer is streamed, and take all of it."""
        with adapter.stream_sync(HELLO) as stream:
            stream.reply()

    def close(self, connection: Connection | sabir.ModelAdapter) -> None:
        """Close what a connection made for this way."""
        connection.close()

    def __enter__(self) -> Self:
        """Return the caller itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """End what the caller itself holds: nothing."""

    def begin(self, connection: Connection, request: WireRequest) -> WireResponse:
        """Like `open`, but raise ConformanceFailure if it raises."""
        with unbroken(f"{self.opens}, of a request that the server answers, raised"):
            return self.open(connection, request)

    def ask(self, connection: Connection, request: WireRequest) -> Heard:
        """Send a request, and read its answer to the end; raises ConformanceFailure if that raises."""
        answer = self.begin(connection, request)
        with unbroken("reading an answer to its end, and closing it, raised"):
            body = b"".join(answer.chunks())
            answer.close()
        return Heard(answer.status, answer.headers, body)


class InALoop(Caller):
    """By the async client, in an event loop that goes on from one step to the next."""

    opens, closes = "open()", "aclose()"

    def __init__(self) -> None:
        self._runner = asyncio.Runner()

    def __exit__(self, *_: object) -> None:
        """End the loop."""
        self._runner.close()

    def run(self, awaited: Coroutine[Any, Any, Result]) -> Result:
        """Wait for something in this loop."""
        return self._runner.run(awaited)

    def open(self, connection: Connection, request: WireRequest) -> WireResponse:
        """Send a request; its answer, not read."""
        return _Awaited(self.run(_as_coroutine(connection.open, request)), self)

    def call(self, adapter: sabir.ModelAdapter) -> None:
        """Make a whole call."""
        self.run(adapter.complete(HELLO))

    def stream(self, adapter: sabir.ModelAdapter) -> None:
        """Make a whole call whose answer is streamed, and take all of it."""

        async def read() -> None:
            async with adapter.stream(HELLO) as stream:
                await stream.reply()

        self.run(read())

    def close(self, connection: Connection | sabir.ModelAdapter) -> None:
        """Close both clients, the async one in its own loop."""
        self.run(connection.aclose())


class _Awaited:
    """An async response that is read synchronously, chunk by chunk."""

    def __init__(self, answer: AsyncWireResponse, caller: InALoop) -> None:
        self._answer, self._caller = answer, caller
        self.status, self.headers = answer.status, answer.headers

    def chunks(self) -> Iterator[bytes]:
        """Return an iterator over the bytes of the body as they arrive."""
        chunks = aiter(self._answer.chunks())
        while (chunk := self._caller.run(_as_coroutine(anext, chunks, None))) is not None:
            yield chunk

    def close(self) -> None:
        """Close it."""
        self._caller.run(self._answer.aclose())


EITHER_WAY = pytest.mark.parametrize("caller", [Caller, InALoop], ids=["waiting", "async"], indirect=True)
"""A case that takes a `caller` is one for each way."""


async def _as_coroutine(function: Callable[..., Any], *arguments: object) -> Any:
    return await function(*arguments)


class Wire:
    """A transport case's fixture: how to reach the subject, without the machine's environment variables."""

    def __init__(self, subject: AdapterUnderTest) -> None:
        self.subject = subject
        self.name, self.variables = subject.provider.name, subject.key_variables
        self.request = self.asking(HELLO)
        """The rendering of a user's greeting."""
        self.recorded = longest_stream(subject)
        scope, plain = replace(subject.scope(), content_type="text/event-stream"), replace(subject.dialect, framings={})
        self.stream = self.recorded or Stream(plain, scope, "a sample", b"data: 1\n\ndata: 2\n\n")
        """The stream that a server sends here."""

    def asking(self, text: str) -> WireRequest:
        """Return the rendering of a user's text, with added bytes that keep the JSON equal but that no
        encoder writes.
        """
        rendering = self.subject.rendered([sabir.user(text)])
        body = rendering.body_bytes + b" \n"
        return WireRequest(path=rendering.path, body=body, headers=rendering.headers, timeout=2 * PATIENCE)

    def with_headers(self, **further: str) -> WireRequest:
        """Return the request with further headers; `_` is replaced by `-`."""
        named = {name.replace("_", "-"): value for name, value in further.items()}
        return replace(self.request, headers={**self.request.headers, **named})

    @contextmanager
    def connected(self, caller: Caller, base_url: str | None, **access: Any) -> Iterator[Connection]:
        """Return a connection to this endpoint, with a key unless another is given. It is closed at the end."""
        with unbroken(f"connect() of {self.name} raised"):
            connection = self.subject.connect(**{"api_key": KEY, "base_url": base_url, **access})
        with closing(caller, connection):
            yield connection

    def exchange(
        self, caller: Caller, script: Sequence[Step] = (head(), OK), request: WireRequest | None = None, **access: Any
    ) -> tuple[Heard, Server]:
        """Send the greeting, or another request, to a server that plays a script: what is heard, and the server."""
        with Server(script) as server, self.connected(caller, server.url, **access) as connection:
            return caller.ask(connection, request or self.request), server

    def sent(self, caller: Caller, request: WireRequest | None = None, **access: Any) -> Mapping[str, str]:
        """Return the headers with which a request arrives."""
        return arrived(self.exchange(caller, request=request, **access)[1]).headers

    @contextmanager
    def adapter(self, caller: Caller, base_url: str) -> Iterator[sabir.ModelAdapter]:
        """Return an adapter of the same dialect and model at this endpoint, without retries. It is closed
        at the end.
        """
        subject, access = self.subject, Access(api_key=KEY, base_url=base_url)
        once = Settings(retries=RetryPolicy(attempts=1), timeout=2 * PATIENCE)
        how = (subject.provider, subject.dialect, subject.target.model, access)
        adapter = sabir.ModelAdapter(*how, settings=once)
        with closing(caller, adapter):
            yield adapter


@contextmanager
def closing(caller: Caller, what: Connection | sabir.ModelAdapter) -> Iterator[None]:
    """Return a context manager that closes at the end. An earlier failure takes precedence."""
    try:
        yield
    except BaseException:
        with suppress(Exception):
            caller.close(what)
        raise
    with unbroken(f"{caller.closes} raised"):
        caller.close(what)


def arrived(server: Server) -> Asked:
    """Return the first request that a server received. Raises ConformanceFailure if there is none."""
    expect(server.asked, f"nothing arrived at {server.url}, the endpoint given by base_url=")
    return server.asked[0]


def bare_names(subject: AdapterUnderTest) -> list[str]:
    """Variables of the machine that may decide what a provider does: its keys, all of its name, proxies."""
    provider = subject.provider
    words = [provider.name, subject.suite.sdk.partition(".")[0]]
    words += [each.partition("_")[0] for each in subject.key_variables]
    starts = tuple(re.sub("[^A-Z0-9]+", "_", word.upper()) + "_" for word in words if word)
    named = {*subject.key_variables, *subject.suite.variables}
    return [name for name in os.environ if name in named or name.startswith(starts) or name.lower() in PROXIES]


@contextmanager
def unbroken(what: str) -> Iterator[None]:
    """Turn any exception within into ConformanceFailure; `what` says who raised it, and when."""
    try:
        yield
    except ConformanceFailure:
        raise
    except Exception as error:
        trace = "".join(traceback.format_exception(error))
        raise ConformanceFailure(f"{what} {described(error)}", shown={"where it was raised": trace}) from None


def described(error: BaseException) -> str:
    """Return an exception in one line: its class and its message."""
    said = " ".join(str(error).split())
    return f"{type(error).__name__}: {said}" if said else type(error).__name__


def ended(error: BaseException | None, otherwise: str = "raised nothing") -> str:
    """Return a result or an exception in words."""
    return f"raised {described(error)}" if error else otherwise


def raised_by(action: Callable[[], object]) -> Exception | None:
    """Return the exception that an action raises; None if it raises none."""
    try:
        action()
    except Exception as error:
        return error
    return None


def as_library_error(connection: Connection, error: Exception) -> SabirError | None:
    """Return sabir's error for a connection's exception, as core creates it."""
    return error if isinstance(error, SabirError) else connection.translate(error)
