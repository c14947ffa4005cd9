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

from sabir_testing.kit.decoded_recordings import RecordedStream, longest_stream
from sabir_testing.kit.failures import ConformanceFailure, expect
from sabir_testing.kit.suite import AdapterUnderTest
from sabir_testing.loopback import ReceivedRequest, Server, Step, head

PATIENCE = 5.0
"""The longest wait of a server or a test case, in seconds. Only a broken adapter takes so long."""
STALL = 0.2
"""The timeout of a request that the server does not answer, in seconds."""
KEY = "key-of-the-kit"
HELLO = "Grüße."
OK = b'{"ok": true}'
PROXIES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")

Result = TypeVar("Result")


class CompleteResponse(NamedTuple):
    """A response with its complete body."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Caller:
    """Uses a connection by its sync methods, as core does. The subclass `AsyncCaller` uses the async methods."""

    opens, closes = "open_sync()", "close()"

    def open(self, connection: Connection, request: WireRequest) -> WireResponse:
        """Send a request and return the response, whose body is not read yet."""
        return connection.open_sync(request)

    def call(self, adapter: sabir.ModelAdapter) -> None:
        """Send a message with an adapter and wait for the reply."""
        adapter.complete_sync(HELLO)

    def stream(self, adapter: sabir.ModelAdapter) -> None:
        """Send a message with an adapter and read the streamed reply to its end."""
        with adapter.stream_sync(HELLO) as stream:
            stream.reply()

    def close(self, connection: Connection | sabir.ModelAdapter) -> None:
        """Close the connection or adapter."""
        connection.close()

    def __enter__(self) -> Self:
        """Return the caller itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Do nothing: a sync caller has no resources."""

    def begin(self, connection: Connection, request: WireRequest) -> WireResponse:
        """Like `open`, but raise ConformanceFailure if it raises."""
        with exceptions_as_failures(f"Connection.{self.opens} with a valid request raises"):
            return self.open(connection, request)

    def ask(self, connection: Connection, request: WireRequest) -> CompleteResponse:
        """Send a request and read the complete response. Raises ConformanceFailure if the connection raises."""
        response = self.begin(connection, request)
        with exceptions_as_failures("chunks() or close() of a valid response raises"):
            body = b"".join(response.chunks())
            response.close()
        return CompleteResponse(response.status, response.headers, body)


class AsyncCaller(Caller):
    """Uses a connection by its async methods, in one event loop for all calls."""

    opens, closes = "open()", "aclose()"

    def __init__(self) -> None:
        self._runner = asyncio.Runner()

    def __exit__(self, *_: object) -> None:
        """Close the event loop."""
        self._runner.close()

    def run(self, coroutine: Coroutine[Any, Any, Result]) -> Result:
        """Run a coroutine in the event loop and return its result."""
        return self._runner.run(coroutine)

    def open(self, connection: Connection, request: WireRequest) -> WireResponse:
        """Send a request and return the response, whose body is not read yet."""
        return _AwaitedResponse(self.run(_run_function(connection.open, request)), self)

    def call(self, adapter: sabir.ModelAdapter) -> None:
        """Send a message with an adapter and wait for the reply."""
        self.run(adapter.complete(HELLO))

    def stream(self, adapter: sabir.ModelAdapter) -> None:
        """Send a message with an adapter and read the streamed reply to its end."""

        async def read() -> None:
            async with adapter.stream(HELLO) as stream:
                await stream.reply()

        self.run(read())

    def close(self, connection: Connection | sabir.ModelAdapter) -> None:
        """Close the sync and the async client of the connection or adapter."""
        self.run(connection.aclose())


class _AwaitedResponse:
    """An async response that is read synchronously, chunk by chunk."""

    def __init__(self, answer: AsyncWireResponse, caller: AsyncCaller) -> None:
        self._answer, self._caller = answer, caller
        self.status, self.headers = answer.status, answer.headers

    def chunks(self) -> Iterator[bytes]:
        """Return an iterator over the bytes of the body as they arrive."""
        chunks = aiter(self._answer.chunks())
        while (chunk := self._caller.run(_run_function(anext, chunks, None))) is not None:
            yield chunk

    def close(self) -> None:
        """Close the response."""
        self._caller.run(self._answer.aclose())


SYNC_AND_ASYNC = pytest.mark.parametrize("caller", [Caller, AsyncCaller], ids=["waiting", "async"], indirect=True)
"""Runs a test case with the argument `caller` twice: with the sync and with the async methods."""


async def _run_function(function: Callable[..., Any], *arguments: object) -> Any:
    return await function(*arguments)


class HTTPWire:
    """Opens connections of the adapter under test and sends requests. The fixture `wire` of the cases, which also
    removes environment variables.
    """

    def __init__(self, subject: AdapterUnderTest) -> None:
        self.subject = subject
        self.name, self.variables = subject.provider.name, subject.key_variables
        self.request = self.request_for(HELLO)
        """The request for a short user message."""
        self.recorded = longest_stream(subject)
        self.stream = self.recorded or _sample_stream(subject)
        """The stream that the test servers send: the longest recorded one, or two sample events."""

    def request_for(self, text: str) -> WireRequest:
        """Return the request for a user's text. White space at the end of the body shows whether an SDK encodes the
        body again.
        """
        rendering = self.subject.must_render([sabir.user(text)])
        body = rendering.body_bytes + b" \n"
        return WireRequest(path=rendering.path, body=body, headers=rendering.headers, timeout=2 * PATIENCE)

    def with_headers(self, **headers: str) -> WireRequest:
        """Return the request with further headers; `_` is replaced by `-`."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return replace(self.request, headers={**self.request.headers, **named})

    @contextmanager
    def connected(self, caller: Caller, base_url: str | None, **access: Any) -> Iterator[Connection]:
        """Return a context manager with a connection to this endpoint. `access` are further fields of Access; the
        default key is KEY.
        """
        with exceptions_as_failures(f"Provider.connect of {self.name!r} raises"):
            connection = self.subject.connect(**{"api_key": KEY, "base_url": base_url, **access})
        with closing(caller, connection):
            yield connection

    def exchange(
        self, caller: Caller, script: Sequence[Step] = (head(), OK), request: WireRequest | None = None, **access: Any
    ) -> tuple[CompleteResponse, Server]:
        """Send a request to a server with this script. Return the response and the server, which recorded the request.

        The default request is the short user message.
        """
        with Server(script) as server, self.connected(caller, server.url, **access) as connection:
            return caller.ask(connection, request or self.request), server

    def sent_headers(self, caller: Caller, request: WireRequest | None = None, **access: Any) -> Mapping[str, str]:
        """Send a request and return the headers that the server received."""
        return first_request(self.exchange(caller, request=request, **access)[1]).headers

    @contextmanager
    def adapter(self, caller: Caller, base_url: str) -> Iterator[sabir.ModelAdapter]:
        """Return a context manager with an adapter of the same dialect and model at `base_url`, without retries."""
        subject = self.subject
        access = Access(api_key=subject.complete_key(KEY), base_url=base_url)
        once = Settings(retries=RetryPolicy(attempts=1), timeout=2 * PATIENCE)
        arguments = (subject.provider, subject.dialect, subject.target.model, access)
        adapter = sabir.ModelAdapter(*arguments, settings=once)
        with closing(caller, adapter):
            yield adapter


def _sample_stream(subject: AdapterUnderTest) -> RecordedStream:
    """Return a stream of two events, which the dialect does not know."""
    scope, plain = replace(subject.scope(), content_type="text/event-stream"), replace(subject.dialect, framings={})
    return RecordedStream(plain, scope, "a sample", b"data: 1\n\ndata: 2\n\n")


@contextmanager
def closing(caller: Caller, what: Connection | sabir.ModelAdapter) -> Iterator[None]:
    """Return a context manager that closes a connection or adapter. An exception of the block takes precedence."""
    try:
        yield
    except BaseException:
        with suppress(Exception):
            caller.close(what)
        raise
    with exceptions_as_failures(f"{type(what).__name__}.{caller.closes} raises"):
        caller.close(what)


def first_request(server: Server) -> ReceivedRequest:
    """Return the first request that a server received. Raises ConformanceFailure if there is none."""
    expect(server.requests, f"no request arrived at the endpoint {server.url}, which was passed as base_url=")
    return server.requests[0]


def provider_variables(subject: AdapterUnderTest) -> list[str]:
    """Return the names of set environment variables that may influence the provider.

    These are the provider's key variables, the suite's `variables`, proxy variables, and all variables that begin with
    the name of the provider or its SDK, or with the first word of a key variable.
    """
    provider = subject.provider
    words = [provider.name, subject.suite.sdk.partition(".")[0]]
    words += [each.partition("_")[0] for each in subject.key_variables]
    prefixes = tuple(re.sub("[^A-Z0-9]+", "_", word.upper()) + "_" for word in words if word)
    named = {*subject.key_variables, *subject.suite.variables}
    return [name for name in os.environ if name in named or name.startswith(prefixes) or name.lower() in PROXIES]


@contextmanager
def exceptions_as_failures(what: str) -> Iterator[None]:
    """Return a context manager that converts each Exception to a ConformanceFailure. `what` is the beginning of the
    message, such as "close() raises".
    """
    try:
        yield
    except ConformanceFailure:
        raise
    except Exception as error:
        trace = "".join(traceback.format_exception(error))
        raise ConformanceFailure(f"{what} {describe_exception(error)}", details={"the traceback": trace}) from None


def describe_exception(error: BaseException) -> str:
    """Return an exception in one line: its class and its message."""
    message = " ".join(str(error).split())
    return f"{type(error).__name__}: {message}" if message else type(error).__name__


def outcome_of(error: BaseException | None, otherwise: str = "raised nothing") -> str:
    """Return "raised …" with the exception, or the text `otherwise` if there is none."""
    return f"raised {describe_exception(error)}" if error else otherwise


def exception_of(action: Callable[[], object]) -> Exception | None:
    """Return the exception that an action raises; None if it raises none."""
    try:
        action()
    except Exception as error:
        return error
    return None


def as_library_error(connection: Connection, error: Exception) -> SabirError | None:
    """Return sabir's error for a connection's exception; None if the connection's `translate` returns None."""
    return error if isinstance(error, SabirError) else connection.translate(error)
