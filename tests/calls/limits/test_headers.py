"""A limit learns from response headers how much a provider still accepts."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
import sabir
from hypothesis import given
from hypothesis import strategies as st
from sabir.authoring import Access, InProcessConnection, InProcessResponse, WireRequest
from sabir_calls import Limit, limited
from sabir_calls.limits.headers import Allowance, read_allowances
from sabir_calls.limits.window import Remainder, Window
from sabir_echo.plugin import Echo, serve

from tests.calls.limits.test_limited import PERIOD, WAYS, call

NOW = datetime(2026, 11, 27, 12, 0, tzinfo=UTC)
OPENAI = "x-ratelimit-{1}-{0}"
ANTHROPIC = "anthropic-ratelimit-{0}-{1}"


@pytest.mark.parametrize(
    ("pattern", "reset", "seconds"),
    [
        (OPENAI, "6m0s", 360.0),
        (OPENAI, "1h2m3.5s", 3723.5),
        (OPENAI, "120ms", 0.12),
        (OPENAI, "59", 59.0),
        (ANTHROPIC, "2026-11-27T12:00:30Z", 30.0),
        (OPENAI, "1795780830", 30.0),
        (OPENAI, "1795780830000", 30.0),
    ],
)
def test_allowances_are_read_in_every_form(pattern: str, reset: str, seconds: float) -> None:
    names = {pattern.format(kind, "remaining"): "7" for kind in ("requests", "tokens")}
    resets = {pattern.format(kind, "reset"): reset for kind in ("requests", "tokens")}

    requests, tokens = read_allowances({**names, **resets}, NOW)

    assert requests == tokens
    assert requests is not None
    assert (requests.left, requests.seconds) == (7, pytest.approx(seconds))


@pytest.mark.parametrize("reset", ["", "soon", "0s", "2026-11-27T11:00:00Z", "2026-11-27T12:00:30", "99h", "-1", "1e3"])
@pytest.mark.parametrize("left", ["7", "many", "", "-1"])
def test_headers_of_another_form_are_ignored(left: str, reset: str) -> None:
    headers = {"x-ratelimit-remaining-requests": left, "x-ratelimit-reset-requests": reset}
    assert read_allowances(headers, NOW) == (None, None)


def test_the_smallest_number_of_tokens_counts() -> None:
    headers = {
        "anthropic-ratelimit-tokens-remaining": "900", "anthropic-ratelimit-tokens-reset": "60",
        "anthropic-ratelimit-input-tokens-remaining": "40", "anthropic-ratelimit-input-tokens-reset": "30",
    }  # fmt: skip
    assert read_allowances(headers, NOW) == (None, Allowance(40, 30.0))


@given(st.integers(0, 5), st.integers(1, 50), st.lists(st.tuples(st.floats(0, 20), st.integers(0, 30)), max_size=20))
def test_no_more_is_sent_than_the_provider_reported_as_left(
    left: int, tokens: int, steps: list[tuple[float, int]]
) -> None:
    window, now, sent = Window(60.0, None, None), 0.0, list[int]()
    window.restrict(Remainder(left, 30.0), Remainder(tokens, 40.0))
    for step, wanted in steps:
        now += step
        now += window.delay(now, wanted)
        if now < 30.0:
            assert len(sent) < left
        if now < 40.0:
            assert sum(sent) + wanted <= tokens
        window.add(now, wanted)
        sent.append(wanted)


class Metered(Echo):
    """Echo under another name, whose first response reports that nothing is left for a time."""

    name = "metered"

    def __init__(self) -> None:
        self.headers = {"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": f"{PERIOD}s"}

    def connect(self, access: Access) -> InProcessConnection:
        return InProcessConnection(self.serve)

    def serve(self, request: WireRequest) -> InProcessResponse:
        headers, self.headers = self.headers, {}
        return InProcessResponse(200, serve(request).chunks, headers)


@pytest.fixture
def metered() -> Iterator[None]:
    sabir.register("metered", Metered())
    yield
    sabir.unregister("metered")


@pytest.mark.usefixtures("metered")
@pytest.mark.parametrize("way", WAYS)
def test_requests_wait_until_the_reset_that_a_response_reported(way: str) -> None:
    llm = limited(sabir.adapter("metered:m"), Limit(at_once=8))
    assert call(llm, way).text == "Hello!"
    began = time.monotonic()
    assert call(llm, way).text == "Hello!"
    assert time.monotonic() - began > PERIOD / 2
    assert llm.limit.status().waited > PERIOD / 2
