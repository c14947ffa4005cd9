"""Transport: requests, responses and closing of a connection, with the vendor's real SDK."""

import asyncio
import gzip
import json
import threading
import traceback
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from urllib.parse import unquote

import pytest
from sabir.authoring import Connection
from sabir.errors import CallError, CallTimedOut, ConnectionFailed, InvalidRequest, ResponseInvalid, StreamBroken

from sabir_testing.families.access import AccessCases
from sabir_testing.families.transport_fixtures import (
    KEY,
    OK,
    PATIENCE,
    STALL,
    SYNC_AND_ASYNC,
    AsyncCaller,
    Caller,
    HTTPWire,
    as_library_error,
    closing,
    describe_exception,
    exception_of,
    exceptions_as_failures,
    first_request,
    outcome_of,
)
from sabir_testing.kit.failures import expect
from sabir_testing.kit.suite import since_api
from sabir_testing.loopback import Server, Step, chunk, head, unreachable, whole

REFUSAL = b'{"error": {"message": "no"}}'


HALF_A_BODY = b'{"half":'
FAILURES: Mapping[str, tuple[Sequence[Step] | None, type[CallError], str]] = {
    "refused": (None, ConnectionFailed, "to a port without a server"),
    "broken_off": (
        [head(content_length="100"), HALF_A_BODY],
        ConnectionFailed,
        "whose connection breaks before the announced end of the response body",
    ),
    "cut": ([head(), HALF_A_BODY], ResponseInvalid, "whose response body is incomplete JSON"),
    "no_gzip": (
        [head(content_encoding="gzip"), b"no gzip"],
        ResponseInvalid,
        "whose response body cannot be decompressed",
    ),
    "html": (
        [head(kind="text/html"), b"<html>busy</html>"],
        ResponseInvalid,
        "whose response is an HTML page with status 200",
    ),
    "empty": ([head()], ResponseInvalid, "whose response has status 200 and an empty body"),
}
"""Failure → the server's script (None: no server), the error that a call must raise, and the call in words."""


class TransportCases(AccessCases):
    """The test cases of the family `transport`."""

    family = "transport"

    @SYNC_AND_ASYNC
    def test_the_rendered_bytes_reach_the_path_below_the_endpoint(self, wire: HTTPWire, caller: Caller) -> None:
        """The rendered bytes are sent unchanged, by POST, to the endpoint with the rendering's path. An SDK must not
        parse and encode the body again.
        """
        with Server([head(), OK]) as server, wire.connected(caller, f"{server.url}/below") as connection:
            caller.ask(connection, wire.request)
        request, path = first_request(server), f"/below{wire.request.path}"
        is_right = (request.method, unquote(request.path)) == ("POST", unquote(path))
        what = f"with the endpoint {server.url}/below, {caller.opens} sends {request.method} {request.path}"
        expect(is_right, f"{what}; expected POST {path}")
        details = {"WireRequest.body": repr(wire.request.body), "the bytes that arrived": repr(request.body)}
        what = f"{caller.opens} changes the request body; send the bytes of WireRequest.body"
        expect(request.body == wire.request.body, what, details=details)

    @SYNC_AND_ASYNC
    def test_the_body_is_said_to_be_json(self, wire: HTTPWire, caller: Caller) -> None:
        """The header content-type of a request says that the body is JSON."""
        kind = wire.sent_headers(caller).get("content-type", "")
        what = f"{caller.opens} sends the header content-type: {kind!r}; expected 'application/json'"
        expect(kind.partition(";")[0] == "application/json", what)

    @SYNC_AND_ASYNC
    def test_the_key_goes_in_a_header(self, wire: HTTPWire, caller: Caller) -> None:
        """The key is sent in a header. It should not also be in the URL, because logs contain URLs."""
        is_sent = any(KEY in value for value in wire.sent_headers(caller).values())
        expect(is_sent, f"{caller.opens} sends no header with the key from api_key=; send the key in a header")

    @SYNC_AND_ASYNC
    def test_further_headers_go_with_the_request(self, wire: HTTPWire, caller: Caller) -> None:
        """The headers of the request, including `extra_headers`, are sent unchanged."""
        header = wire.sent_headers(caller, wire.with_headers(X_Kit="a value, 7")).get("x-kit")
        what = f"{caller.opens} sends the header X-Kit of WireRequest.headers with the value {header!r}"
        expect(header == "a value, 7", f"{what}; expected 'a value, 7'")

    @SYNC_AND_ASYNC
    def test_an_answers_header_names_are_in_lower_case(self, wire: HTTPWire, caller: Caller) -> None:
        """The header names of a response are in lower case."""
        response, _ = wire.exchange(caller, [head(X_Kit_Id="id-7"), OK])
        what = f"the response of {caller.opens} has no header 'x-kit-id' with the value 'id-7'; the server sent"
        what = f"{what} 'X-Kit-Id: id-7'; convert the names of the headers to lower case"
        details = {"names of the headers": sorted(response.headers)}
        expect(response.headers.get("x-kit-id") == "id-7", what, details=details)

    @SYNC_AND_ASYNC
    def test_an_answers_head_comes_before_its_body(self, wire: HTTPWire, caller: Caller) -> None:
        """`open` returns when the headers have arrived, not after the body."""
        release = threading.Event()
        script: list[Step] = [head(kind=wire.stream.scope.content_type), release]
        with Server(script, patience=PATIENCE) as server, wire.connected(caller, server.url) as connection:
            caller.begin(connection, wire.request).close()
            release.set()
        what = f"{caller.opens} waits for the response body; return when the headers have arrived"
        expect(not server.gave_up.is_set(), what)

    @SYNC_AND_ASYNC
    def test_chunks_come_as_they_are_sent(self, wire: HTTPWire, caller: Caller) -> None:
        """The first event of a stream is returned before the server sends the second one."""
        release, (event, *others) = threading.Event(), [frame.data for frame in wire.stream.frames]
        script: list[Step] = [head(kind=wire.stream.scope.content_type), event, release, b"".join(others)]
        with Server(script, patience=PATIENCE) as server, wire.connected(caller, server.url) as connection:
            answer = caller.begin(connection, wire.request)
            chunks = iter(answer.chunks())
            with exceptions_as_failures("chunks() of a stream whose server has sent only the first event raises"):
                first = next(chunks, b"")
            release.set()
            received = first + b"".join(chunks)
            answer.close()
        what = "chunks() returns the first event of a stream only after the server has sent the second; return bytes at"
        expect(not server.gave_up.is_set(), f"{what} once")
        what = "chunks() returns other bytes of a stream than the server sent"
        expect(received == wire.stream.body, what, details={"sent": repr(wire.stream.body), "returned": repr(received)})

    @SYNC_AND_ASYNC
    def test_closing_an_answer_early_hangs_up(self, wire: HTTPWire, caller: Caller) -> None:
        """Closing a response before its end closes the network connection, so that the service stops."""
        script: list[Step] = [head(kind=wire.stream.scope.content_type), wire.stream.frames[0].data, threading.Event()]
        with Server(script) as server, wire.connected(caller, server.url) as connection:
            caller.begin(connection, wire.request).close()
            hung_up = server.closed.wait(PATIENCE)
        what = f"{caller.closes} of a response that was not read to its end does not close the network connection"
        expect(hung_up, what)

    @SYNC_AND_ASYNC
    def test_closing_an_answer_twice_is_harmless(self, wire: HTTPWire, caller: Caller) -> None:
        """Closing a response a second time does nothing."""
        with Server([head(), OK]) as server, wire.connected(caller, server.url) as connection:
            answer = caller.begin(connection, wire.request)
            answer.close()
            error = exception_of(answer.close)
        what = f"the second {caller.closes} of the same response {outcome_of(error)}; expected no exception"
        expect(error is None, what)

    @pytest.mark.parametrize("where", ["before_the_head", "in_the_body"])
    def test_cancelling_a_call_hangs_up(self, wire: HTTPWire, where: str) -> None:
        """A cancelled asyncio task raises CancelledError and closes the network connection, before and after the
        response began.
        """
        release = threading.Event()
        script: list[Step] = [release] if where == "before_the_head" else [head(), HALF_A_BODY, release]
        with AsyncCaller() as caller, Server(script) as server, wire.connected(caller, server.url) as connection:
            result = caller.run(_cancel_request(connection, wire, server, is_begun=where == "in_the_body"))
            hung_up = server.closed.wait(PATIENCE)
        moment = "before the headers arrived" if where == "before_the_head" else "while the body arrived"
        task = f"a task that called open() and was cancelled {moment}"
        expect(result == "CancelledError", f"{task} ended with {result}; expected CancelledError")
        expect(hung_up, f"{task} does not close the network connection; close the response in `finally`")

    @since_api(2)
    @pytest.mark.parametrize("where", ["before_the_head", "in_the_body"])
    def test_a_waiting_call_lets_other_tasks_run(self, wire: HTTPWire, where: str) -> None:
        """While `open()` waits for the response, or `chunks()` for the body, other tasks of the event loop run."""
        release = threading.Event()
        script: list[Step] = [release, head(), OK] if where == "before_the_head" else [head(), release, OK]
        server = Server(script, patience=PATIENCE / 5)  # a blocked event loop sets the event too late
        raising = exceptions_as_failures("open() or chunks() of a valid response raises")
        with AsyncCaller() as caller, server, wire.connected(caller, server.url) as connection, raising:
            caller.run(_tick_meanwhile(connection, wire, release))
        moment = "open() waits for the headers" if where == "before_the_head" else "chunks() waits for the body"
        remedy = "use an async client, or run the call in a thread"
        expect(not server.gave_up.is_set(), f"while {moment}, no other task of the event loop runs; {remedy}")

    @SYNC_AND_ASYNC
    @pytest.mark.parametrize("status", [409, 429, 500, 503])
    def test_a_refusal_is_an_answer_and_sent_once(self, wire: HTTPWire, caller: Caller, status: int) -> None:
        """A response with a status of 400 or more is returned, not raised, and the request is sent once. Retries are
        core's; those of the SDK must be off.
        """
        response, server = wire.exchange(caller, [head(status, retry_after="0"), REFUSAL])
        what = f"for a response with status {status}, {caller.opens} returns status {response.status} and the body"
        what = f"{what} {response.body!r}; expected the status and the body that the server sent"
        details = {"the body that the server sent": REFUSAL}
        expect((response.status, response.body) == (status, REFUSAL), what, details=details)
        times = len(server.requests)
        what = f"{caller.opens} sends the request {times} times if the response has status {status}; expected once"
        expect(times == 1, f"{what}; turn the SDK's retries off")

    @SYNC_AND_ASYNC
    @pytest.mark.parametrize("status", [302, 307])
    def test_a_redirect_is_not_followed(self, wire: HTTPWire, caller: Caller, status: int) -> None:
        """A redirect is returned as the response. The conversation and the headers are not sent to its target."""
        with Server([head(), OK]) as target, Server([head(status, location=f"{target.url}/v1")]) as redirecting:
            with wire.connected(caller, redirecting.url) as connection:
                answer = caller.begin(connection, wire.request)
                answer.close()
            what = f"{caller.opens} follows a redirect (status {status}) to another host; turn off redirects"
            expect(not target.requests, what)
        what = f"{caller.opens} returns status {answer.status} for a redirect; expected {status}"
        expect(answer.status == status, what)

    @SYNC_AND_ASYNC
    def test_a_compressed_body_is_decompressed(self, wire: HTTPWire, caller: Caller) -> None:
        """The chunks of a compressed response are decompressed."""
        body = wire.exchange(caller, [head(content_encoding="gzip"), gzip.compress(OK)])[0].body
        what = f"chunks() returns {body!r} for a response with content-encoding: gzip; expected the decompressed body"
        expect(body == OK, what, details={"the decompressed body": OK})

    @SYNC_AND_ASYNC
    @pytest.mark.parametrize("how", FAILURES)
    def test_a_failed_call_ends_in_the_librarys_error(self, wire: HTTPWire, caller: Caller, how: str) -> None:
        """A call that fails in the network raises ConnectionFailed, and a call whose response is not an answer raises
        ResponseInvalid. `translate` converts the exceptions of the SDK and its HTTP client (law 10).
        """
        script, kind, words = FAILURES[how]
        with _serve_script(script) as url, wire.adapter(caller, url) as adapter:
            error = exception_of(lambda: caller.call(adapter))
        what = f"a call {words} {outcome_of(error, 'returned a reply')}; expected {kind.__name__}"
        expect(isinstance(error, kind), f"{what}, from Connection.translate or from core")

    @SYNC_AND_ASYNC
    def test_an_answer_that_does_not_come_times_out(self, wire: HTTPWire, caller: Caller) -> None:
        """A request's `timeout` limits the wait for the response, and `translate` returns CallTimedOut. The connection
        is tested alone, without core's own time limit.
        """
        request = replace(wire.request, timeout=STALL)
        with Server([threading.Event()], patience=PATIENCE) as server, wire.connected(caller, server.url) as connection:
            raised = exception_of(lambda: caller.open(connection, request))
            error = as_library_error(connection, raised) if raised else None
        result = outcome_of(raised, "returned a response")
        what = f"{caller.opens} with timeout={STALL:g} and a server that sends nothing {result}"
        remedy = "expected an exception for which Connection.translate returns CallTimedOut"
        expect(isinstance(error, CallTimedOut), f"{what}; {remedy}")

    @since_api(2)
    @SYNC_AND_ASYNC
    def test_a_request_without_a_timeout_waits(self, wire: HTTPWire, caller: Caller) -> None:
        """If a request has no `timeout`, the client's own limit is long enough for a service that answers later."""
        request, pause = replace(wire.request, timeout=None), threading.Event()
        with Server([pause, head(), OK], patience=STALL) as server, wire.connected(caller, server.url) as connection:
            error = exception_of(lambda: caller.ask(connection, request))
        what = f"{caller.opens} without a timeout, and a server that answers after {STALL:g} s, {outcome_of(error)}"
        expect(error is None, f"{what}; give the client a longer limit of its own")

    @SYNC_AND_ASYNC
    def test_a_stream_that_breaks_off_is_a_broken_stream(self, wire: HTTPWire, caller: Caller) -> None:
        """If the network connection breaks during a stream, StreamBroken is raised. This needs a streamed recording."""
        if (recorded := wire.recorded) is None:
            pytest.skip("the suite has no streamed recording")
        opening = head(kind=recorded.scope.content_type, transfer_encoding="chunked")
        *half, (cut, _) = recorded.frames[: len(recorded.frames) // 2 + 1]
        sent = chunk(b"".join(frame.data for frame in half) + cut[: len(cut) // 2])
        with Server([opening, sent]) as server, wire.adapter(caller, server.url) as adapter:
            error = exception_of(lambda: caller.stream(adapter))
        result = outcome_of(error, "returned a complete reply")
        what = f"a stream of {recorded.name!r} whose network connection breaks in the middle {result}"
        expect(isinstance(error, StreamBroken), f"{what}; expected StreamBroken")

    @SYNC_AND_ASYNC
    @pytest.mark.parametrize("value", ["hidden\r\nX-More: 1", "hidden schön"], ids=["line_break", "foreign_letter"])
    def test_a_header_that_is_no_http_is_refused_unseen(self, wire: HTTPWire, caller: Caller, value: str) -> None:
        """A header that HTTP does not allow raises InvalidRequest, which does not show the value. Clients that can send
        non-ASCII letters may send them.
        """
        request = wire.with_headers(X_Kit=value)
        with Server([head(), OK]) as server, wire.connected(caller, server.url) as connection:
            error = exception_of(lambda: caller.open(connection, request).close())
            translated = as_library_error(connection, error) if error else None
        if error is None:
            expect("\n" not in value, f"{caller.opens} sends a header with a line break; raise InvalidRequest instead")
            return
        what = f"{caller.opens} with the header X-Kit: {value!r} raises {describe_exception(translated or error)}"
        expect(type(translated) is InvalidRequest, f"{what}; expected InvalidRequest")
        what = f"the InvalidRequest for an invalid header shows the header's value: {translated}"
        expect("hidden" not in str(translated), f"{what}; name the header only")
        expect(not server.requests, f"{caller.opens} raises an error for an invalid header after the request was sent")

    @SYNC_AND_ASYNC
    def test_no_failure_shows_the_key(self, wire: HTTPWire, caller: Caller) -> None:
        """The error of a call that cannot connect, with the exceptions in its chain, does not contain the key."""
        with unreachable() as url, wire.adapter(caller, url) as adapter:
            error = exception_of(lambda: caller.call(adapter))
        trace = "".join(traceback.format_exception(error)) if error else ""
        what = "the error of a call to a port without a server, or an exception in its chain, shows the API key"
        expect(KEY not in trace, what)

    def test_one_connection_serves_many_threads(self, wire: HTTPWire) -> None:
        """Several threads can share a connection, and the request of each thread arrives."""
        requests, caller = [wire.request_for(f"Question {number}.") for number in range(8)], Caller()
        with Server([head(), OK]) as server, wire.connected(caller, server.url) as connection:
            with ThreadPoolExecutor(len(requests)) as threads:
                futures = [threads.submit(caller.ask, connection, request) for request in requests]
            for each in futures:
                each.result()
        arrived = [json.loads(each.body) for each in server.requests]
        lost = [number for number, each in enumerate(requests) if json.loads(each.body) not in arrived]
        what = f"eight threads each sent one request with the same connection, but the requests {lost} did not arrive"
        expect(not lost, f"{what}; share no mutable state between calls")

    def test_one_connection_serves_several_event_loops(self, wire: HTTPWire) -> None:
        """A connection can be used in several event loops, one after another."""
        with (
            AsyncCaller() as first,
            AsyncCaller() as second,
            Server([whole(OK)], keeps_alive=True) as server,
            wire.connected(first, server.url) as connection,
            closing(second, connection),
        ):
            for caller in (first, second, first, second):
                caller.ask(connection, wire.request)
        what = f"four calls of open() in two event loops sent {len(server.requests)} requests; expected 4"
        expect(len(server.requests) == 4, what)


@contextmanager
def _serve_script(script: Sequence[Step] | None) -> Iterator[str]:
    """Return a context manager with the URL of a server that follows this script; without a script, a URL without a
    server.
    """
    if script is None:
        with unreachable() as url:
            yield url
    else:
        with Server(script, patience=PATIENCE) as server:
            yield server.url


async def _tick_meanwhile(connection: Connection, wire: HTTPWire, release: threading.Event) -> None:
    """Send a request and read the response, while another task sleeps a few times and then lets the server go on.

    If the event loop is blocked, the server gives up before that.
    """

    async def read() -> None:
        response = await connection.open(wire.request)
        async for _ in response.chunks():
            pass
        await response.aclose()

    reading = asyncio.ensure_future(read())
    for _ in range(3):
        await asyncio.sleep(STALL / 10)
    release.set()
    await reading


async def _cancel_request(connection: Connection, wire: HTTPWire, server: Server, *, is_begun: bool) -> str:
    """Send a request in a task, cancel the task, and describe how it ended.

    The task is cancelled when the server has received the request; with `is_begun`, when the first chunk has arrived.
    After PATIENCE seconds it is cancelled anyway.
    """
    began = asyncio.Event()

    async def read() -> None:
        answer = await connection.open(wire.request)
        try:
            async for _ in answer.chunks():
                began.set()
        finally:
            await answer.aclose()

    task = asyncio.create_task(read())
    moment = asyncio.ensure_future(began.wait() if is_begun else asyncio.to_thread(server.arrived.wait, PATIENCE))
    await asyncio.wait({task, moment}, timeout=PATIENCE, return_when=asyncio.FIRST_COMPLETED)
    moment.cancel()
    task.cancel()
    await asyncio.wait({task})
    if task.cancelled():
        return "CancelledError"
    return describe_exception(error) if (error := task.exception()) else "no error"
