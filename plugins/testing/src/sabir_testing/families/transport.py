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
from sabir_testing.families.wire import (
    EITHER_WAY,
    KEY,
    OK,
    PATIENCE,
    STALL,
    Caller,
    InALoop,
    Wire,
    arrived,
    as_library_error,
    closing,
    described,
    ended,
    raised_by,
    unbroken,
)
from sabir_testing.kit.broken import expect
from sabir_testing.loopback import Server, Step, chunk, head, unreachable, whole

REFUSAL = b'{"error": {"message": "no"}}'


HALF = b'{"half":'
FAILURES: Mapping[str, tuple[Sequence[Step] | None, type[CallError], str]] = {
    "refused": (None, ConnectionFailed, "to an endpoint where nobody listens"),
    "broken_off": (
        [head(content_length="100"), HALF],
        ConnectionFailed,
        "whose connection breaks off in mid-body",
    ),
    "cut": ([head(), HALF], ResponseInvalid, "whose answer ends in the middle of its body"),
    "no_gzip": (
        [head(content_encoding="gzip"), b"no gzip"],
        ResponseInvalid,
        "whose answer cannot be decompressed",
    ),
    "html": (
        [head(kind="text/html"), b"<html>busy</html>"],
        ResponseInvalid,
        "that is answered with a page of HTML and status 200",
    ),
    "empty": ([head()], ResponseInvalid, "that is answered with an empty body and status 200"),
}
"""Failure → the endpoint's script (without one, nothing listens), the error that a call must raise, and the call."""


class TransportCases(AccessCases):
    """The cases of a connection."""

    family = "transport"

    @EITHER_WAY
    def test_the_rendered_bytes_reach_the_path_below_the_endpoint(self, wire: Wire, caller: Caller) -> None:
        """The rendered bytes are sent unchanged, by POST, to the endpoint with the rendering's path. An SDK must not
        parse and encode the body again.
        """
        with Server([head(), OK]) as server, wire.connected(caller, f"{server.url}/below") as connection:
            caller.ask(connection, wire.request)
        asked, path = arrived(server), f"/below{wire.request.path}"
        is_right = (asked.method, unquote(asked.path)) == ("POST", unquote(path))
        what = f"{caller.opens} sent {asked.method} {asked.path}, not POST {path}, to the endpoint {server.url}/below"
        expect(is_right, what)
        shown = {"given": repr(wire.request.body), "sent": repr(asked.body)}
        expect(asked.body == wire.request.body, f"{caller.opens} sent other bytes than it was given", shown=shown)

    @EITHER_WAY
    def test_the_body_is_said_to_be_json(self, wire: Wire, caller: Caller) -> None:
        """The header content-type of a request says that the body is JSON."""
        kind = wire.sent(caller).get("content-type", "")
        what = f"{caller.opens} sent the content-type {kind!r}, not 'application/json'"
        expect(kind.partition(";")[0] == "application/json", what)

    @EITHER_WAY
    def test_the_key_goes_in_a_header(self, wire: Wire, caller: Caller) -> None:
        """The key is sent in a header and not in the URL, because logs contain URLs."""
        is_sent = any(KEY in value for value in wire.sent(caller).values())
        expect(is_sent, f"the key given by api_key= is in no header of what {caller.opens} sent")

    @EITHER_WAY
    def test_further_headers_go_with_the_request(self, wire: Wire, caller: Caller) -> None:
        """The headers of the request, including `extra_headers`, are sent unchanged."""
        sent = wire.sent(caller, wire.with_headers(X_Kit="a value, 7")).get("x-kit")
        expect(sent == "a value, 7", f"{caller.opens} was given the header X-Kit: a value, 7, and sent {sent!r}")

    @EITHER_WAY
    def test_an_answers_header_names_are_in_lower_case(self, wire: Wire, caller: Caller) -> None:
        """The header names of a response are in lower case."""
        heard, _ = wire.exchange(caller, [head(X_Kit_Id="id-7"), OK])
        what, shown = "the answer's header 'X-Kit-Id: id-7' is not under the name 'x-kit-id'", sorted(heard.headers)
        expect(heard.headers.get("x-kit-id") == "id-7", what, shown={"names of the headers": shown})

    @EITHER_WAY
    def test_an_answers_head_comes_before_its_body(self, wire: Wire, caller: Caller) -> None:
        """`open` returns when the headers have arrived, not after the body."""
        release = threading.Event()
        script: list[Step] = [head(kind=wire.stream.scope.content_type), release]
        with Server(script, patience=PATIENCE) as server, wire.connected(caller, server.url) as connection:
            caller.begin(connection, wire.request).close()
            release.set()
        expect(not server.gave_up.is_set(), f"{caller.opens} did not return at the headers, but waited for the body")

    @EITHER_WAY
    def test_chunks_come_as_they_are_sent(self, wire: Wire, caller: Caller) -> None:
        """The first event of a stream is returned before the server sends the second one."""
        release, (event, *others) = threading.Event(), [frame.data for frame in wire.stream.frames]
        script: list[Step] = [head(kind=wire.stream.scope.content_type), event, release, b"".join(others)]
        with Server(script, patience=PATIENCE) as server, wire.connected(caller, server.url) as connection:
            answer = caller.begin(connection, wire.request)
            chunks = iter(answer.chunks())
            with unbroken("chunks() gave nothing of the first event while the second was held back; it raised"):
                first = next(chunks, b"")
            release.set()
            rest = b"".join(chunks)
            answer.close()
        expect(not server.gave_up.is_set(), "chunks() kept the first event of a stream back until the second had come")
        what, sent, given = "chunks() gave other bytes of a stream than were sent", wire.stream.body, first + rest
        expect(given == sent, what, shown={"sent": repr(sent), "given": repr(given)})

    @EITHER_WAY
    def test_closing_an_answer_early_hangs_up(self, wire: Wire, caller: Caller) -> None:
        """Closing a response before its end closes the network connection, so that the service stops."""
        script: list[Step] = [head(kind=wire.stream.scope.content_type), wire.stream.frames[0].data, threading.Event()]
        with Server(script) as server, wire.connected(caller, server.url) as connection:
            caller.begin(connection, wire.request).close()
            hung_up = server.closed.wait(PATIENCE)
        expect(hung_up, f"{caller.closes} of an answer that was not read to its end leaves the connection open")

    @EITHER_WAY
    def test_closing_an_answer_twice_is_harmless(self, wire: Wire, caller: Caller) -> None:
        """Closing a response a second time does nothing."""
        with Server([head(), OK]) as server, wire.connected(caller, server.url) as connection:
            answer = caller.begin(connection, wire.request)
            answer.close()
            error = raised_by(answer.close)
        expect(error is None, f"the second {caller.closes} of an answer {ended(error)}")

    @pytest.mark.parametrize("where", ["before_the_head", "in_the_body"])
    def test_cancelling_a_call_hangs_up(self, wire: Wire, where: str) -> None:
        """A cancelled asyncio task raises CancelledError and closes the network connection, before and after the
        response began.
        """
        release = threading.Event()
        script: list[Step] = [release] if where == "before_the_head" else [head(), HALF, release]
        with InALoop() as caller, Server(script) as server, wire.connected(caller, server.url) as connection:
            found = caller.run(_cancelled(connection, wire, server, is_begun=where == "in_the_body"))
            hung_up = server.closed.wait(PATIENCE)
        words = f"a task that was cancelled {where.replace('_', ' ')} of its answer"
        expect(found == "CancelledError", f"{words} ended with {found}, not with CancelledError")
        expect(hung_up, f"{words} leaves its connection open")

    @EITHER_WAY
    @pytest.mark.parametrize("status", [409, 429, 500, 503])
    def test_a_refusal_is_an_answer_and_sent_once(self, wire: Wire, caller: Caller, status: int) -> None:
        """A response with a status of 400 or more is returned, not raised, and the request is sent once. Retries are
        core's; those of the SDK must be off.
        """
        heard, server = wire.exchange(caller, [head(status, retry_after="0"), REFUSAL])
        what = f"an answer with status {status} came as status {heard.status} with the body {heard.body!r}"
        expect((heard.status, heard.body) == (status, REFUSAL), what, shown={"its body": REFUSAL})
        times = len(server.asked)
        expect(times == 1, f"after an answer with status {status} the request was sent {times} times")

    @EITHER_WAY
    @pytest.mark.parametrize("status", [302, 307])
    def test_a_redirect_is_not_followed(self, wire: Wire, caller: Caller, status: int) -> None:
        """A redirect is returned as the response. The conversation and the headers are not sent to its target."""
        with Server([head(), OK]) as there, Server([head(status, location=f"{there.url}/v1")]) as here:
            with wire.connected(caller, here.url) as connection:
                answer = caller.begin(connection, wire.request)
                answer.close()
            expect(not there.asked, f"{caller.opens} followed a redirect of status {status} to another host")
        expect(answer.status == status, f"the answer to a redirect of status {status} has the status {answer.status}")

    @EITHER_WAY
    def test_a_compressed_body_is_decompressed(self, wire: Wire, caller: Caller) -> None:
        """The chunks of a compressed response are decompressed."""
        body = wire.exchange(caller, [head(content_encoding="gzip"), gzip.compress(OK)])[0].body
        expect(body == OK, f"chunks() gave {body!r} of a body that was sent as gzip", shown={"the body": OK})

    @EITHER_WAY
    @pytest.mark.parametrize("how", FAILURES)
    def test_a_failed_call_ends_in_the_librarys_error(self, wire: Wire, caller: Caller, how: str) -> None:
        """Every network failure raises one of sabir's errors, which says whether a retry may help. `translate` converts
        the exceptions of the SDK and its HTTP client (law 10).
        """
        script, kind, words = FAILURES[how]
        with _failing(script) as url, wire.adapter(caller, url) as adapter:
            error = raised_by(lambda: caller.call(adapter))
        expect(isinstance(error, kind), f"a call {words} {ended(error, 'gave a reply')}, where {kind.__name__} was due")

    @EITHER_WAY
    def test_an_answer_that_does_not_come_times_out(self, wire: Wire, caller: Caller) -> None:
        """A request's `timeout` limits the wait for the response, and `translate` returns CallTimedOut. The connection
        is tested alone, without core's own time limit.
        """
        request = replace(wire.request, timeout=STALL)
        with Server([threading.Event()], patience=PATIENCE) as server, wire.connected(caller, server.url) as connection:
            raised = raised_by(lambda: caller.open(connection, request))
            error = as_library_error(connection, raised) if raised else None
        what = f"{caller.opens} of a request without an answer for {STALL:g} s {ended(raised, 'gave an answer')}"
        remedy = "where translate() has to make CallTimedOut of what was raised"
        expect(isinstance(error, CallTimedOut), f"{what}, {remedy}")

    @EITHER_WAY
    def test_a_stream_that_breaks_off_is_a_broken_stream(self, wire: Wire, caller: Caller) -> None:
        """If the network connection breaks during a stream, StreamBroken is raised with the reply so far."""
        if (recorded := wire.recorded) is None:
            pytest.skip("the suite has no streamed recording")
        opening = head(kind=recorded.scope.content_type, transfer_encoding="chunked")
        *half, (cut, _) = recorded.frames[: len(recorded.frames) // 2 + 1]
        sent = chunk(b"".join(frame.data for frame in half) + cut[: len(cut) // 2])
        with Server([opening, sent]) as server, wire.adapter(caller, server.url) as adapter:
            error = raised_by(lambda: caller.stream(adapter))
        what = f"the stream of {recorded.name}, broken off in the middle, {ended(error, 'ended like a whole one')}"
        expect(isinstance(error, StreamBroken), f"{what}, where StreamBroken was due")

    @EITHER_WAY
    @pytest.mark.parametrize("value", ["hidden\r\nX-More: 1", "hidden schön"], ids=["line_break", "foreign_letter"])
    def test_a_header_that_is_no_http_is_refused_unseen(self, wire: Wire, caller: Caller, value: str) -> None:
        """A header that HTTP does not allow raises InvalidRequest, which does not show the value. Clients that can send
        non-ASCII letters may send them.
        """
        request = wire.with_headers(X_Kit=value)
        with Server([head(), OK]) as server, wire.connected(caller, server.url) as connection:
            error = raised_by(lambda: caller.open(connection, request).close())
            made = as_library_error(connection, error) if error else None
        if error is None:
            expect("\n" not in value, f"{caller.opens} sent a header whose value holds a line break")
            return
        what = f"the header X-Kit: {value!r} ended in {described(made or error)}, where InvalidRequest was due"
        expect(type(made) is InvalidRequest, what)
        expect("hidden" not in str(made), f"the error shows the header's value: {made}")
        expect(not server.asked, "the request was sent, and its header refused after that")

    @EITHER_WAY
    def test_no_failure_shows_the_key(self, wire: Wire, caller: Caller) -> None:
        """No error of a call contains the key."""
        with unreachable() as url, wire.adapter(caller, url) as adapter:
            error = raised_by(lambda: caller.call(adapter))
        told = "".join(traceback.format_exception(error)) if error else ""
        expect(KEY not in told, "the error of a failed call, or what caused it, shows the key")

    def test_one_connection_serves_many_threads(self, wire: Wire) -> None:
        """Several threads can share a connection, and each request is sent unchanged."""
        requests, caller = [wire.asking(f"Question {number}.") for number in range(8)], Caller()
        with Server([head(), OK]) as server, wire.connected(caller, server.url) as connection:
            with ThreadPoolExecutor(len(requests)) as threads:
                asking = [threads.submit(caller.ask, connection, request) for request in requests]
            for each in asking:
                each.result()
        arrived = [json.loads(each.body) for each in server.asked]
        lost = [number for number, each in enumerate(requests) if json.loads(each.body) not in arrived]
        expect(not lost, f"eight threads each sent a question by one connection; those of {lost} did not arrive")

    def test_one_connection_serves_several_event_loops(self, wire: Wire) -> None:
        """A connection can be used in several event loops, one after another."""
        with (
            InALoop() as first,
            InALoop() as second,
            Server([whole(OK)], keeps_alive=True) as server,
            wire.connected(first, server.url) as connection,
            closing(second, connection),
        ):
            for caller in (first, second, first, second):
                caller.ask(connection, wire.request)
        expect(len(server.asked) == 4, f"four calls in two event loops sent {len(server.asked)} requests")


@contextmanager
def _failing(script: Sequence[Step] | None) -> Iterator[str]:
    """Return the URL of a server that follows this script; without a script, a URL without a server."""
    if script is None:
        with unreachable() as url:
            yield url
    else:
        with Server(script, patience=PATIENCE) as server:
            yield server.url


async def _cancelled(connection: Connection, wire: Wire, server: Server, *, is_begun: bool) -> str:
    """Send in a task, and cancel it when the request is there, or its answer began; what the task ended with."""
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
    return described(error) if (error := task.exception()) else "no error"
