"""One call: errors by status, law 10 for any bytes, and a response that is closed on every way out."""

import asyncio
import json
import re
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sabir.base.failures import Loss
from sabir.calling.clock import Clock
from sabir.calling.drive import SyncWire, Wire, drive, run_blocking
from sabir.calling.exchange import Emit, Exchange, Script, call_script, count_script, folded_script, stream_script
from sabir.contract.provider import TokenCount, WireRequest
from sabir.contract.scope import DecodeScope
from sabir.errors import (
    AuthenticationFailed,
    CallError,
    CallTimedOut,
    ConnectionFailed,
    CredentialsMissing,
    InvalidRequest,
    QuotaExceeded,
    RateLimited,
    ResponseInvalid,
    SabirError,
    ServerFailed,
    StreamBroken,
)
from sabir.reading.incoming import StreamState
from sabir.vocabulary.reply import Reply
from sabir.vocabulary.settings import Bounds, RetryPolicy

from tests.core.support import (
    REQUEST,
    SCOPE,
    WORDS,
    Answer,
    Run,
    Scripted,
    ScriptedResponse,
    TinyDialect,
    broken,
    failing,
    raises_line,
    run_sync,
    run_through,
    streamed,
    whole,
)

ONCE = RetryPolicy(attempts=1)
DIALECT = TinyDialect()
REQUEST_IDS = ("x-request-id", "request-id")


def exchange(dialect: TinyDialect = DIALECT, retries: RetryPolicy = ONCE, losses: tuple[Loss, ...] = ()) -> Exchange:
    return Exchange(REQUEST, dialect, SCOPE, retries, losses, request_ids=REQUEST_IDS)


def test_the_renderings_losses_come_first_in_the_reply() -> None:
    lost, left_out = Loss(kind="dropped", reason="rendering"), Loss(kind="downgraded", reason="decoding")

    class Lossy(TinyDialect):
        def decode(self, body: bytes, scope: DecodeScope) -> Reply:
            return super().decode(body, scope).model_copy(update={"losses": (left_out,)})

    for dialect, expected in ((DIALECT, (lost,)), (Lossy(), (lost, left_out))):
        assert run_sync(call_script(exchange(dialect, losses=(lost,))), Scripted(whole("x"))).losses == expected


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (400, b'{"error": "because"}', InvalidRequest),
        (401, b'{"error": "because"}', AuthenticationFailed),
        (500, b'{"error": "because"}', ServerFailed),
        (503, b'{"error": "because"}', ServerFailed),
        (502, b"<html>Bad gateway</html>", ServerFailed),
        (404, b"", ResponseInvalid),
        (400, b"\xff", ResponseInvalid),
    ],
)
def test_a_status_from_400_on_is_an_error(run: Run, status: int, body: bytes, kind: type[CallError]) -> None:
    """Of the class that its dialect says; a body that the dialect cannot read is shown in one line."""
    connection = Scripted(Answer([body], status, {"x-request-id": "r1"}))
    is_read = b"because" in body

    with raises_line(kind, match="because" if is_read else f"tiny:m answered {status} with ") as caught:
        run(call_script(exchange()), connection)

    error: Any = caught.value
    assert (type(error), error.status, error.provider, error.request_id) == (kind, status, "tiny", "r1")
    assert (error.__cause__ is None) is is_read
    assert connection.open_responses == 0


@pytest.mark.parametrize(
    ("location", "named"),
    [
        ("https://me:secret@other.example:8/v1?key=secret", "other.example:8"),
        ("//other.example/v1", "other.example"),
        ("/v2/secret", "another path"),
        ("https://[secret", "an invalid URL"),
        ("", "another path"),
    ],
)
@pytest.mark.parametrize("status", [300, 301, 302, 303, 304, 307, 308])
@pytest.mark.parametrize("script", [call_script, count_script])
def test_a_redirect_is_an_error_that_names_the_host(
    run: Run, script: Callable[[Exchange], Script[Any]], status: int, location: str, named: str
) -> None:
    connection = Scripted(Answer([b"moved"], status, {"location": location}))

    with pytest.raises(ResponseInvalid, match=f"answered {status}, a redirect to {named}, .*set base_url") as caught:
        run(script(exchange(retries=RetryPolicy())), connection)

    assert (caught.value.status, caught.value.provider, caught.value.retryable) == (status, "tiny", False)
    assert "secret" not in str(caught.value)
    assert (len(connection.requests), connection.open_responses) == (1, 0)


def test_a_status_counts_even_where_its_body_breaks_off(run: Run) -> None:
    """A refused key stays refused: it does not become a broken connection, which would be tried again."""
    connection = Scripted(broken(Answer([b'{"err'], 401), ConnectionResetError("reset")))

    with pytest.raises(ResponseInvalid) as caught:
        run(call_script(exchange()), connection)

    assert (caught.value.status, caught.value.retryable, connection.open_responses) == (401, False, 0)


@pytest.mark.parametrize(
    ("body", "shown"),
    [
        (b"<html><body>Hello</body></html>", "'<html><body>Hello</body></html>'"),
        (b"", "an empty body"),
        (b" \n ", "an empty body"),
        (b'{"text": "ha', """'{"text": "ha'"""),
        (b"\xff\xfe\x00", "ufffd"),
        (b"[]", "'[]'"),
        (b"null", "'null'"),
        (b'{"text": 7, "finish": "stop"}', "text"),
        (b'{"text": "x", "finish": "whatever"}', "whatever"),
        (b"[" * 100_000, "RecursionError"),
        (b'{"text": "x", "finish": "stop", "calls": [{"id": "1", "name": "", "arguments": "{}"}]}', "without its name"),
    ],
)  # fmt: skip
def test_a_body_that_is_no_response_is_an_invalid_response(run: Run, body: bytes, shown: str) -> None:
    connection = Scripted(Answer([body], headers={"request-id": "r7"}))

    with raises_line(ResponseInvalid, match=re.escape(shown)) as caught:
        run(call_script(exchange()), connection)

    error: Any = caught.value
    assert (error.provider, error.request_id, error.retryable) == ("tiny", "r7", False)
    assert connection.open_responses == 0


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b'{"text": "caf\xe9!", "finish": "stop"}', "caf\ufffd!"),
        (b'{"text": "\\ud83d!", "finish": "stop"}', "\ufffd!"),
        (b'{"text": "\\uDE00\\ud83d", "finish": "stop"}', "\ufffd\ufffd"),
    ],
)
def test_broken_unicode_is_replaced_and_told(run: Run, body: bytes, text: str) -> None:
    streamed_body = b'data: {"open": "r"}\n\ndata: ' + body.replace(b', "finish": "stop"', b"") + b"\n\n"

    reply = run(call_script(exchange()), Scripted(Answer([body])))
    state = StreamState(DIALECT, SCOPE)
    with pytest.raises(StreamBroken) as caught:
        run_sync(stream_script(exchange(), state), Scripted(Answer([streamed_body])))

    for told in (reply, caught.value.partial):
        assert (text, ["rewritten: reply: tiny answered with invalid Unicode, which was replaced by U+FFFD"]) == (
            told.text, [str(loss) for loss in told.losses if loss.kind == "rewritten"],
        )  # fmt: skip


@pytest.mark.parametrize(
    ("raised", "kind"), [(ConnectionResetError("reset"), ConnectionFailed), (TimeoutError("slow"), CallTimedOut)]
)
@pytest.mark.parametrize("where", ["open", "read"])
def test_what_the_wire_raises_is_translated(run: Run, raised: Exception, kind: type[CallError], where: str) -> None:
    connection = Scripted(raised if where == "open" else broken(whole("x"), raised))

    with pytest.raises(kind) as caught:
        run(call_script(exchange()), connection)

    assert (raised, "tiny") == (caught.value.__cause__, caught.value.provider)
    assert connection.open_responses == 0


def test_a_whole_body_is_taken_however_late_it_ends() -> None:
    clock = Clock(60)

    def late() -> Any:
        yield from whole("hi").chunks
        clock.until = 0.0

    async def run() -> Reply:
        clock.begin()
        return await run_through(call_script(exchange()), Wire(Scripted(Answer(late())), clock=clock))

    waiting = run_blocking(run_through(call_script(exchange()), SyncWire(Scripted(Answer(late())), clock=clock)))

    assert (waiting.text, asyncio.run(run()).text) == ("hi", "hi")


@pytest.mark.parametrize("error", [CredentialsMissing("no key; set TINY_KEY", provider="tiny"), KeyError("plugin")])
def test_what_is_not_the_wires_is_raised_as_it_is(run: Run, error: Exception) -> None:
    for connection in (Scripted(error), Scripted(broken(whole("x"), error))):
        with pytest.raises(type(error)) as caught:
            run(call_script(exchange()), connection)
        assert (caught.value, connection.open_responses) == (error, 0)


def test_a_failure_to_close_does_not_lose_the_reply(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: object) -> None:
        raise OSError("already gone")

    monkeypatch.setattr("tests.core.support.ScriptedResponse.close", fail)

    assert run(call_script(exchange()), Scripted(whole("x"))).text == "x"


def test_the_scope_of_the_decoding_knows_the_request_id(run: Run) -> None:
    seen: list[str | None] = []

    class Curious(TinyDialect):
        def decode(self, body: bytes, scope: DecodeScope) -> Reply:
            seen.append(scope.request_id)
            return super().decode(body, scope)

    for headers in ({"request-id": "b", "x-request-id": "a"}, {"request-id": "b"}, {"x-other-id": "c"}):
        run(call_script(exchange(Curious())), Scripted(Answer(whole("x").chunks, headers=headers)))

    assert seen == ["a", "b", None]


def test_tokens_are_counted_by_the_same_rules(run: Run) -> None:
    assert TokenCount(input_tokens=12, estimated=False) == run(
        count_script(exchange()), Scripted(Answer([b'{"tokens": 12}']))
    )
    for body in (b"<html>", b"", b"{}"):
        with pytest.raises(ResponseInvalid):
            run(count_script(exchange()), Scripted(Answer([body])))


def outcome(script: Script[Reply], connection: Scripted) -> Reply | SabirError:
    try:
        return run_sync(script, connection)
    except SabirError as error:
        return error


fragments = st.sampled_from(
    [b"data: ", b"\n\n", b"{", b"}", b'{"open": "r"}', b'{"text": "a"}', b'{"finish": "stop"}', b'{"error": 429}',
     b'{"finish": "stop", "text": ""}', b'{"call": {"id": "", "name": "a", "arguments": "["}}', b"null", b"\xff", b'"']
)  # fmt: skip


@given(st.lists(fragments | st.binary(max_size=5), max_size=12), st.sampled_from([200, 204, 301, 400, 429, 503]))
def test_any_bytes_end_in_a_reply_or_in_an_error_of_the_library(chunks: list[bytes], status: int) -> None:
    """Law 10, for whole answers and for streams, whatever the status; nothing stays open."""
    for make in (call_script, lambda given: stream_script(given, StreamState(DIALECT, SCOPE))):
        connection = Scripted(Answer(chunks, status))

        assert isinstance(outcome(make(exchange()), connection), Reply | CallError)
        assert connection.open_responses == 0


class Slow(Scripted):
    seconds = 0.05

    def open_sync(self, request: WireRequest) -> ScriptedResponse:
        time.sleep(self.seconds)
        return super().open_sync(request)


def test_a_pause_that_would_end_too_late_is_not_begun() -> None:
    policy = RetryPolicy(attempts=9, first_delay=60, longest_delay=60)
    with pytest.raises(ServerFailed):
        run_blocking(drive(call_script(exchange(retries=policy)), SyncWire(Scripted(failing(503)), clock=Clock(30))))


def test_a_streams_repetition_may_read_as_long_as_a_silence() -> None:
    """What is left of the timeout bounds it only until its response begins."""
    request, connection = replace(REQUEST, timeout=30, streaming=True), Scripted(failing(503), streamed(*WORDS))
    twice = RetryPolicy(attempts=2, first_delay=0)
    script = stream_script(replace(exchange(retries=twice), request=request), StreamState(DIALECT, SCOPE))
    run_blocking(run_through(script, SyncWire(connection, clock=Clock(timeout=5, idle=30, is_stream=True))))

    assert [each.timeout for each in connection.requests] == [30, 30]


def test_repetitions_end_with_the_time_of_the_call() -> None:
    policy = RetryPolicy(attempts=1000, first_delay=0, longest_delay=0)
    connection = Slow(*[failing(503)] * 1000)
    with pytest.raises(CallError):
        run_blocking(drive(call_script(exchange(retries=policy)), SyncWire(connection, clock=Clock(timeout=0.3))))

    assert 1 <= len(connection.responses) < 20


def test_a_readers_own_time_is_no_silence() -> None:
    """The clock of a stream runs while its reader waits, not while it works."""
    wire = SyncWire(Scripted(streamed(*WORDS)), clock=Clock(0.2, 0.2, is_stream=True))
    script = stream_script(exchange(), StreamState(DIALECT, SCOPE))
    for _ in range(2):
        assert isinstance(run_blocking(drive(script, wire)), Emit)
        time.sleep(0.25)

    assert run_blocking(run_through(script, wire)).text == "Take one."


def test_a_stream_is_bounded_as_a_body() -> None:
    bounded = replace(exchange(), scope=replace(SCOPE, bounds=Bounds(body_bytes=100)))
    endless = streamed(*[{"open": "r"}, *[{"text": "a"}] * 100])
    with pytest.raises(ResponseInvalid, match="body_bytes"):
        run_sync(stream_script(bounded, StreamState(DIALECT, SCOPE)), Scripted(endless))
    with pytest.raises(ResponseInvalid, match="body_bytes"):
        run_blocking(drive(folded_script(bounded), SyncWire(Scripted(Answer([b" " * 10] * 1000)))))


class Reporting(TinyDialect):
    """A dialect whose bodies of status 200 may report an error."""

    def decode(self, body: bytes, scope: DecodeScope) -> Reply:
        code = json.loads(body).get("error", {}).get("code")
        if code is not None:
            raise {"rate": RateLimited, "quota": QuotaExceeded}[code](f"the body says {code}", code=code)
        return super().decode(body, scope)


def reported(attempts: int = 1) -> Script[Reply]:
    retries = RetryPolicy(attempts=attempts, first_delay=0)
    return stream_script(exchange(Reporting(), retries), StreamState(Reporting(), SCOPE))


def test_an_error_in_place_of_a_stream_is_the_error_that_its_body_reports(run: Run) -> None:
    """Vendors answer 200 with a JSON body; nothing was handed out yet, so that it may be tried again."""
    body, busy = b'{\n "error": {"code": "quota"}\n}', Answer([b'{"error": {"code": "rate"}}'])
    with pytest.raises(QuotaExceeded, match="the body says quota") as raised:
        run(reported(), Scripted(Answer([body[:9], body[9:]])))
    reply = run(reported(attempts=2), Scripted(busy, streamed(*WORDS)))

    assert (raised.value.provider, raised.value.code) == ("tiny", "quota")
    assert (reply.text, reply.attempts) == ("Take one.", 2)


@pytest.mark.parametrize("body", [whole("Hi.").chunks[0], b"[1]", b"<html>", b"", b'{"error": {"code": "rate"}'])
def test_any_other_answer_in_place_of_a_stream_is_shown(run: Run, body: bytes) -> None:
    with pytest.raises(StreamBroken, match="answered without an event stream:"):
        run(reported(), Scripted(Answer([body])))
