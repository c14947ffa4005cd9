"""Retries happen in one layer, by one policy: what may be repeated is, nothing else, and every attempt is counted."""

from collections.abc import Iterator
from itertools import cycle, repeat
from typing import Any

import pytest
from sabir.calling.drive import SyncWire, drive, run_blocking
from sabir.calling.exchange import (
    AttemptFailed,
    Close,
    Emit,
    Exchange,
    Head,
    Next,
    Open,
    Pause,
    Script,
    call_script,
    folded_script,
    stream_script,
)
from sabir.errors import (
    AuthenticationFailed,
    CallError,
    ConnectionFailed,
    CredentialsMissing,
    RateLimited,
    ResponseInvalid,
    ServerFailed,
    StreamBroken,
)
from sabir.reading.incoming import StreamState
from sabir.vocabulary.reply import BlockDelta, ReplyEnd, ReplyStart
from sabir.vocabulary.settings import RetryPolicy

from tests.core.support import (
    REQUEST,
    SCOPE,
    WORDS,
    Answer,
    Run,
    Scripted,
    TinyDialect,
    broken,
    failing,
    streamed,
    whole,
)

THRICE = RetryPolicy(attempts=3, first_delay=0)
DIALECT = TinyDialect()


def call(retries: RetryPolicy = THRICE) -> Script[Any]:
    return call_script(Exchange(REQUEST, DIALECT, SCOPE, retries))


def stream(state: StreamState | None = None, retries: RetryPolicy = THRICE) -> Script[Any]:
    return stream_script(Exchange(REQUEST, DIALECT, SCOPE, retries), state or StreamState(DIALECT, SCOPE))


def folded() -> Script[Any]:
    return folded_script(Exchange(REQUEST, DIALECT, SCOPE, THRICE))


def test_a_retryable_failure_is_tried_again(run: Run) -> None:
    seen: list[Open | Head | AttemptFailed] = []
    connection = Scripted(failing(503), broken(whole("x"), ConnectionResetError("reset")), whole("done"))

    reply = run(call(), connection, seen)

    assert (reply.text, reply.attempts, connection.open_responses) == ("done", 3, 0)
    assert connection.requests == [REQUEST] * 3
    assert [1, 503, ServerFailed, 2, 200, ConnectionFailed, 3, 200] == [
        each.attempt if isinstance(each, Open) else each.status if isinstance(each, Head) else type(each.error)
        for each in seen
    ]


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (failing(401), AuthenticationFailed),
        (failing(400), CallError),
        (Answer([b"<html>"]), ResponseInvalid),
        (CredentialsMissing("no key"), CredentialsMissing),
        (Answer([b""]), ResponseInvalid),
        (KeyError("a fault of a plugin"), KeyError),
    ],
)
def test_what_cannot_succeed_later_is_never_tried_again(run: Run, answer: Answer, kind: type[Exception]) -> None:
    connection = Scripted(answer, whole("never"))

    with pytest.raises(kind):
        run(call(), connection, [])

    assert len(connection.requests) == 1


def test_a_script_waits_between_attempts_as_the_policy_says() -> None:
    """The delay doubles; the driver picks a time between half of it and all of it, so that callers spread."""
    script = call(RetryPolicy(attempts=4, first_delay=1, longest_delay=3))
    pauses = []
    answers: dict[type, Iterator[Any]] = {Open: repeat(Head(503, {})), Next: cycle([b'{"error": "busy"}', None])}
    action: Any = next(script)
    with pytest.raises(ServerFailed):
        while True:
            if isinstance(action, Pause):
                pauses.append(action)
            action = script.send(next(answers[type(action)]) if type(action) in answers else None)

    assert [Pause(0.5, 1.0), Pause(1.0, 2.0), Pause(1.5, 3.0)] == pauses


def test_the_response_is_closed_before_its_error_is_read_and_before_the_pause() -> None:
    script = call()
    actions: list[Any] = [next(script)]
    for answer in (Head(503, {}), b'{"error": "busy"}', None, None, None, None, None):
        actions.append(script.send(answer))

    assert [Open, Next, Next, Close, AttemptFailed, Close, Pause, Open] == [type(action) for action in actions]


@pytest.mark.parametrize(("retry_after", "pauses"), [("7", [Pause(7, 7)]), ("0", [Pause(0, 0)]), ("121", [])])
def test_a_providers_retry_after_is_obeyed(retry_after: str, pauses: list[Pause]) -> None:
    script = call(RetryPolicy(attempts=2, longest_retry_after=120))
    assert Open(REQUEST, 1) == next(script)
    script.send(Head(429, {"retry-after": retry_after}))
    script.send(b'{"error": "slow down"}')
    assert Close() == script.send(None)
    failed = script.send(None)
    assert isinstance(failed, AttemptFailed) and isinstance(failed.error, RateLimited)
    assert Close() == script.send(None)

    if pauses:
        assert pauses == [script.send(None)]
    else:
        with pytest.raises(RateLimited):
            script.send(None)


def test_a_stream_is_tried_again_before_its_first_event(run: Run) -> None:
    state = StreamState(DIALECT, SCOPE)
    seen: list[Open | Head | AttemptFailed] = []
    connection = Scripted(
        failing(503),
        broken(streamed({"open": "r0"}), ConnectionResetError("reset")),
        streamed({"open": "r1"}, {"error": 429}),
        streamed(*WORDS),
    )

    reply = run(stream(state, RetryPolicy(attempts=4, first_delay=0)), connection, seen)

    assert (
        reply.text, reply.attempts, reply.origin.response_id, connection.open_responses,
    ) == ("Take one.", 4, "r1", 0)  # fmt: skip
    assert [ServerFailed, ConnectionFailed, RateLimited] == [
        type(each.error) for each in seen if isinstance(each, AttemptFailed)
    ]


def test_a_repeated_stream_shows_its_reader_one_start_only() -> None:
    """The start waits for the first block, so that nobody sees that of an attempt that failed."""
    connection = Scripted(streamed({"open": "r0"}, {"error": 500}), streamed(*WORDS))
    script, wire, events = stream(), SyncWire(connection), []
    while isinstance(step := run_blocking(drive(script, wire)), Emit):
        events.append(step.event)

    assert [event.origin.response_id for event in events if isinstance(event, ReplyStart)] == ["r1"]
    assert ReplyStart is type(events[0]) and ReplyEnd is type(events[-1])
    assert [event.text for event in events if isinstance(event, BlockDelta)] == ["Take ", "one."]


BROKEN = {
    "reset": broken(streamed(*WORDS[:2]), ConnectionResetError("reset")),
    "reported": streamed(*WORDS[:2], {"error": 429}),
    "no end": streamed(*WORDS[:2]),
}


@pytest.mark.parametrize("answer", BROKEN.values(), ids=BROKEN)
def test_a_stream_is_tried_again_after_its_first_event_only_where_nobody_reads_it(run: Run, answer: Answer) -> None:
    """What was shown cannot be taken back: the error carries it."""
    shown, unread = (Scripted(answer, streamed(*WORDS)) for _ in range(2))

    with pytest.raises(StreamBroken) as caught:
        run(stream(), shown)

    assert (caught.value.partial.text, caught.value.retryable) == ("Take ", False)
    assert (len(shown.requests), shown.open_responses) == (1, 0)
    if answer is not BROKEN["no end"]:
        reply = run(folded(), unread)
        assert (reply.text, reply.attempts, len(unread.requests), unread.open_responses) == ("Take one.", 2, 2, 0)


@pytest.mark.parametrize("size", [1, 1000])
@pytest.mark.parametrize("before", [b"", b" \n", b"\xef\xbb\xbf"], ids=["bare", "blank", "marked"])
def test_an_endpoint_that_knows_no_streams_may_answer_at_once(run: Run, before: bytes, size: int) -> None:
    body = before + b"".join(whole("done").chunks)
    chunks = [body[start : start + size] for start in range(0, len(body), size)]
    connection = Scripted(failing(503), Answer(chunks))

    reply = run(folded(), connection, [])

    assert (reply.text, reply.attempts, connection.open_responses) == ("done", 2, 0)
