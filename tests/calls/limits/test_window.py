"""Law: in no period of the window's length are more requests admitted than allowed, nor more tokens than estimated."""

from hypothesis import given
from hypothesis import strategies as st
from sabir_calls.limits.admission import Admission, Ticket
from sabir_calls.limits.window import Window

SECONDS = 60.0
TOKENS = st.integers(0, 40)
STEPS = st.integers(0, 90).map(float)


def most_in_a_period(events: list[tuple[float, int]]) -> tuple[int, int]:
    """Return the most requests and the most tokens in any period, which begins at some request."""
    periods = [[each for each in events if start <= each[0] < start + SECONDS] for start, _ in events]
    return max(map(len, periods), default=0), max((sum(t for _, t in each) for each in periods), default=0)


@given(st.lists(st.tuples(STEPS, TOKENS), max_size=40), st.integers(1, 5), st.integers(40, 100))
def test_a_window_admits_no_more_than_its_limits(steps: list[tuple[float, int]], requests: int, tokens: int) -> None:
    window, now, events = Window(SECONDS, requests, tokens), 0.0, list[tuple[float, int]]()
    for step, wanted in steps:
        now += step
        now += window.delay(now, wanted)
        assert window.delay(now, wanted) < 1e-6
        window.add(now, wanted)
        events.append((now, wanted))
    most_requests, most_tokens = most_in_a_period(events)
    assert most_requests <= requests
    assert most_tokens <= tokens


@given(st.lists(st.tuples(STEPS, TOKENS), max_size=20), st.integers(1, 5))
def test_a_window_delays_a_request_no_longer_than_needed(steps: list[tuple[float, int]], requests: int) -> None:
    window, now, times = Window(SECONDS, requests, None), 0.0, list[float]()
    for step, wanted in steps:
        now += step
        delay = window.delay(now, wanted)
        if delay > 0:  # a moment earlier, the oldest of the last requests still counts
            assert abs(times[-requests] + SECONDS - (now + delay)) < 1e-6
        now += delay
        window.add(now, wanted)
        times.append(now)


def test_the_tokens_of_a_reply_replace_the_estimate() -> None:
    window = Window(SECONDS, None, 100)
    entry = window.add(0.0, 90)
    assert window.delay(1.0, 50) == 59.0
    window.correct(entry, 40)
    assert window.delay(1.0, 50) == 0.0
    assert window.delay(1.0, 61) == 59.0
    window.delay(60.0, 0)
    window.correct(entry, 10_000)
    assert window.delay(60.0, 100) == 0.0


@given(st.lists(st.tuples(st.integers(0, 60), st.sampled_from(["join", "finish", "leave"])), max_size=60))
def test_tickets_are_admitted_in_the_order_of_joining(actions: list[tuple[int, str]]) -> None:
    admission, now = Admission(Window(SECONDS, 3, 60), at_once=2), 0.0
    waiting, running, admitted, left = list[Ticket](), list[Ticket](), list[Ticket](), list[Ticket]()
    joined: list[Ticket] = []

    def serve() -> None:
        while waiting and admission.admit(waiting[0], now) == 0.0:
            admitted.append(waiting[0])
            running.append(waiting.pop(0))
        assert len(running) <= 2

    for tokens, action in actions:
        now += 7
        if action == "join":
            ticket = Ticket(tokens)
            admission.join(ticket)
            joined.append(ticket)
            waiting.append(ticket)
        elif action == "finish" and running:
            admission.finish(running.pop(0), None)
        elif action == "leave" and waiting:
            left.append(waiting.pop())
            admission.leave(left[-1])
        serve()
    for _ in range(len(waiting) + 1):
        now += SECONDS
        while running:
            admission.finish(running.pop(0), None)
        serve()
    assert admitted == [ticket for ticket in joined if ticket not in left]
    assert (admission.running, admission.waiting) == (len(running), 0)
