"""A recording that is replayed with its own replies gives its own steps; every change of a step is a difference."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from typing import Any

import pytest
import sabir
from hypothesis import given, settings
from hypothesis import strategies as st
from sabir_cli.replay.differences import Difference, find_differences
from sabir_cli.replay.recording import AnswerStep, RecordedQuestion
from sabir_cli.replay.running import ReplayedQuestion, recorded_answers, replay_question
from sabir_session import SQLiteStore
from sabir_testing import ScriptedAdapter
from sabir_testing.scripted import always, call, calls, reply

from tests.cli.replay.recordings import City, questions_of, record

NUMBERS = count()


@sabir.option
def counter(step: int) -> int:
    "Returns another number at each call."
    if step > 2:
        raise ValueError("too far")
    return step * 1000 + next(NUMBERS)


SCRIPTED = (calls(weather={"city": "Rome"}), "Yes, it rains.", "You are welcome.")


@pytest.fixture
def store() -> Iterator[SQLiteStore]:
    with SQLiteStore(":memory:") as opened:
        yield opened


@pytest.fixture
def question(store: SQLiteStore) -> RecordedQuestion:
    """A question with a call, its result, and a text."""
    record(store, "rome", "Rain in Rome?", "Thanks!", script=SCRIPTED)
    return questions_of(store, "rome")[0]


def own_differences(question: RecordedQuestion) -> tuple[list[Difference], str]:
    replayed = replay_question(question, recorded_answers(question))
    differences = find_differences(question.steps, replayed.steps, is_stopped=bool(replayed.stopped))
    return differences, replayed.stopped


steps = st.lists(st.integers(0, 3), min_size=1, max_size=3).map(
    lambda steps: calls(counter=[{"step": n} for n in steps])
)
answers = st.tuples(st.lists(steps, max_size=2), st.text("abc ", min_size=1, max_size=5))


@settings(max_examples=25, deadline=None)
@given(st.lists(answers, min_size=1, max_size=3))
def test_a_recording_replays_without_a_difference(drawn: list[tuple[list[Any], str]]) -> None:
    """Also if equal calls had different results, and if an option failed."""
    script = tuple(each for called, text in drawn for each in (*called, text))
    with SQLiteStore(":memory:") as store:
        record(store, "any", *(f"question {at}" for at in range(len(drawn))), script=script, options=[counter])
        questions = questions_of(store, "any")

    assert len(questions) == len(drawn)
    assert sum(len(question.steps) for question in questions) == len(script)
    for question in questions:
        assert own_differences(question) == ([], "")


@pytest.mark.parametrize("mode", ["native", "call"])
def test_a_typed_answer_replays_without_a_difference(store: SQLiteStore, mode: str) -> None:
    """Also if the first answer was refused and corrected."""
    wrong, right = ({"nam": "Rome"}, {"name": "Rome"})
    script = (
        (call("final_answer", wrong), call("final_answer", right))
        if mode == "call"
        else ('{"nam": 1}', City(name="Rome"))
    )
    record(store, "typed", "Which city?", script=script, output=City, output_mode=mode)

    assert [own_differences(question) for question in questions_of(store, "typed")] == [
        ([], "") for _ in questions_of(store, "typed")
    ]


def test_the_context_of_a_question_has_the_current_instructions_only(store: SQLiteStore) -> None:
    record(store, "two", "One?", script=("1",))
    record(store, "two", "Two?", script=("2",), instructions="Be long.")

    contexts = [[message.text for message in question.context] for question in questions_of(store, "two")]
    assert contexts == [["Be brief.", "One?"], ["Be long.", "One?", "1", "Two?"]]


def test_changed_steps_are_exactly_the_differences(question: RecordedQuestion) -> None:
    """One argument, one result, one finish reason, one text, and tokens."""
    first, last = question.steps
    (called,), (result,) = first.calls, first.results
    assert called.call and result.result
    moved = called.model_copy(update={"payload": called.call.model_copy(update={"arguments": {"city": "Oslo"}})})
    colder = result.model_copy(
        update={"payload": result.result.model_copy(update={"result": {"sky": "rain", "celsius": 1}})}
    )
    texts = (sabir.assistant("No."),)
    usage = sabir.Usage(input_tokens=last.usage.input_tokens, output_tokens=900)

    assert find_differences(
        question.steps,
        [
            replace(first, messages=(moved,), results=(colder,)),
            replace(last, messages=texts, finish_reason="length", usage=usage),
        ],
    ) == [
        Difference(1, "argument", "Rome", "Oslo", "weather city"),
        Difference(1, "result", 4, 1, "weather celsius"),
        Difference(2, "text", "Yes, it rains.", "No."),
        Difference(2, "finish reason", "stop", "length"),
        Difference(2, "output tokens", last.usage.output_tokens, 900),
    ]


@pytest.mark.parametrize(
    ("before", "after", "percent", "differs"),
    [(100, 150, 50, False), (100, 151, 50, True), (10, 60, 50, False), (10, 61, 50, True), (1000, 1100, 5, True)],
)
def test_tokens_differ_by_a_percentage_and_a_number(before: int, after: int, percent: float, differs: bool) -> None:
    one, other = (AnswerStep(usage=sabir.Usage(output_tokens=tokens)) for tokens in (before, after))

    assert bool(find_differences([one], [other], percent=percent)) is differs


def test_equal_calls_in_another_order_are_no_difference() -> None:
    def step(*cities: str) -> AnswerStep:
        payloads = [
            sabir.OptionCallPayload(invocation_id=f"{at}", option_name="weather", arguments={"city": city})
            for at, city in enumerate(cities)
        ]
        return AnswerStep(tuple(sabir.Message(policy="llm", payload=payload) for payload in payloads))

    assert find_differences([step("Rome", "Oslo")], [step("Oslo", "Rome")]) == []
    assert find_differences([step("Rome", "Oslo")], [step("Oslo")]) == [
        Difference(1, "call", "weather(city='Rome')", None)
    ]


def test_true_is_not_the_number_1(question: RecordedQuestion) -> None:
    first = question.steps[0]
    (called,) = first.calls
    assert called.call

    def with_arguments(**arguments: object) -> AnswerStep:
        payload = called.call.model_copy(update={"arguments": arguments})  # type: ignore[union-attr]
        return replace(first, messages=(called.model_copy(update={"payload": payload}),), results=())

    assert find_differences([with_arguments(a=1)], [with_arguments(a=1.0)]) == []
    assert find_differences([with_arguments(a=1)], [with_arguments(a=True)]) == [
        Difference(1, "argument", 1, True, "weather a")
    ]


def test_recorded_results_answer_equal_calls_and_an_unknown_call_stops(question: RecordedQuestion) -> None:
    llm = ScriptedAdapter(calls(weather={"city": "Rome"}), calls(weather={"city": "Oslo"}))

    replayed = replay_question(question, llm.complete_sync)

    assert [result.result for result in llm.last.results] == [{"sky": "rain", "celsius": 4}]
    assert replayed.stopped == "there is no recorded result for weather(city='Oslo')"
    assert find_differences(question.steps, replayed.steps, is_stopped=True) == [
        Difference(2, "text", "Yes, it rains.", ""),
        Difference(2, "call", None, "weather(city='Oslo')"),
        Difference(2, "finish reason", "stop", "option_calls"),
    ]


def test_an_argument_with_its_default_value_means_the_same_as_without_it(store: SQLiteStore) -> None:
    """The result is used, and the argument is a difference all the same."""

    @sabir.option
    def forecast(city: str, days: int = 1) -> str:
        "Weather of the next days."
        return f"rain in {city}"

    record(store, "rome", "Rain?", script=(calls(forecast={"city": "Rome"}), "Yes."), options=[forecast])
    (question,) = questions_of(store, "rome")

    def replayed(days: int) -> ReplayedQuestion:
        llm = ScriptedAdapter(calls(forecast={"city": "Rome", "days": days}), always("Yes."))
        return replay_question(question, llm.complete_sync, sabir.Option.all_of([forecast]))

    assert find_differences(question.steps, replayed(1).steps) == [Difference(1, "argument", None, 1, "forecast days")]
    assert replayed(2).stopped == "there is no recorded result for forecast(city='Rome', days=2)"


def test_an_answer_without_an_end_is_stopped(store: SQLiteStore) -> None:
    record(store, "rome", "Rain?", script=(calls(weather={"city": "Rome"}), "Yes."))
    (question,) = questions_of(store, "rome")
    paused = ScriptedAdapter(always(reply("Wait.", finish_reason="paused")))

    assert replay_question(question, paused.complete_sync).stopped == "the answer has 50 replies and is not finished"


def test_an_unfinished_answer_stops_where_its_result_is_missing(question: RecordedQuestion) -> None:
    first, last = question.steps
    unfinished = replace(question, steps=(replace(first, results=()), last))

    assert own_differences(unfinished) == ([], "there is no recorded result for weather(city='Rome')")
