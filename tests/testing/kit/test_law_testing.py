"""Laws inside plain functions: what is tried, what is told of a failure, and when the search for a smaller one ends."""

from collections.abc import Callable
from typing import Any

import pytest
import sabir
from hypothesis import strategies as st
from sabir.vocabulary.messages import Message
from sabir_testing.histories.random_histories import histories_of, speakers_for
from sabir_testing.kit import law_testing
from sabir_testing.kit.failures import ConformanceFailure
from sabir_testing.kit.law_testing import for_all, history_in, impurities
from sabir_testing.kit.suite import AdapterUnderTest, Suite


class Echo(Suite):
    """Any suite will do."""

    adapter = sabir.adapter("echo:small")


@pytest.fixture
def subject() -> AdapterUnderTest:
    return AdapterUnderTest(Echo())


def failure(subject: AdapterUnderTest, strategy: Any, check: Callable[[Any], None]) -> ConformanceFailure:
    with pytest.raises(ConformanceFailure) as caught:
        for_all(subject, strategy, check)
    return caught.value


def test_as_many_examples_are_tried_as_the_suite_says(subject: AdapterUnderTest) -> None:
    seen: list[float] = []

    for_all(subject, st.floats(), seen.append)

    assert len(seen) >= subject.suite.examples == 100


def test_the_smallest_history_is_told(subject: AdapterUnderTest, capsys: pytest.CaptureFixture[str]) -> None:
    def check(history: list[Message]) -> None:
        if len({message.policy for message in history}) > 1:
            raise ConformanceFailure("two speak", history=history)

    told = failure(subject, histories_of(speakers_for(subject.target)), check)

    assert len(told.history) == 2
    assert (*capsys.readouterr(), getattr(told, "__notes__", None)) == ("", "", None)


def test_an_exception_of_the_dialect_names_its_function_and_the_history(
    subject: AdapterUnderTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who reads it finds the line of code, and what it was given; the original is kept."""

    def encode_turn(turn: Any, *_: object) -> list[Any]:
        return [{}["x"] for entry in turn.entries if entry.wire_id]

    monkeypatch.setitem(vars(subject.dialect), "encode_turn", encode_turn)
    told = failure(
        subject, histories_of(speakers_for(subject.target)), lambda history: (subject.render(history), None)[1]
    )

    assert told.what == "encode_turn of echo.plain raises KeyError: 'x'"
    assert {"option_call", "option_result"} <= {message.kind for message in told.history}
    assert "test_law_testing.py" in told.details["raised at"]
    assert isinstance(told.__cause__, KeyError)


def test_the_search_for_a_smaller_example_ends(subject: AdapterUnderTest, monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes no more tries than it may, and still tells what was found."""
    monkeypatch.setattr(law_testing, "MOST_TRIES", 10)
    tries = 0

    def check(history: list[Message]) -> None:
        nonlocal tries
        if tries or len(history) > 2:
            tries += 1
            raise ConformanceFailure("long", history=history)

    assert failure(subject, histories_of(speakers_for(subject.target)), check).what == "long"
    assert 1 < tries <= 11


def test_a_failure_that_does_not_repeat_is_told_all_the_same(subject: AdapterUnderTest) -> None:
    """It was seen once; a dialect that remembers is broken, too."""
    seen: list[int] = []

    def check(number: int) -> None:
        seen.append(number)
        if len(seen) == 3:
            raise ConformanceFailure("the third example fails")

    assert failure(subject, st.integers(), check).what == "the third example fails"


def test_in_ci_the_examples_are_the_same_at_every_run(
    subject: AdapterUnderTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What fails there can be repeated."""
    monkeypatch.setenv("CI", "true")
    first: list[int] = []
    second: list[int] = []

    for_all(subject, st.integers(), first.append)
    for_all(subject, st.integers(), second.append)

    assert first == second


def test_the_history_of_an_example_is_found_wherever_it_stands() -> None:
    """An example may be a history, or hold one beside others."""
    history = [sabir.user("Hi.")]

    assert history_in(history) == history_in((1, (history, "x"))) == history
    assert history_in([]) == history_in(7) == ()


def ask_time() -> float:
    from time import time

    return time()


def ask_chance() -> str:
    from uuid import uuid4

    return uuid4().hex


def ask_the_network() -> None:
    import socket

    socket.socket().close()


def ask_the_disk() -> str:
    from pathlib import Path

    return Path(__file__).read_text("utf-8")


@pytest.mark.parametrize(
    ("ask", "name"),
    [(ask_time, "time.time"), (ask_chance, "urandom"), (ask_the_network, "socket.socket"), (ask_the_disk, "open")],
)
def test_what_rendering_may_not_ask_for_is_seen(ask: Callable[[], Any], name: str) -> None:
    with impurities() as seen:
        ask()

    assert name in seen[0]
    assert f"called by {ask.__name__} (test_law_testing.py:" in seen[0]
