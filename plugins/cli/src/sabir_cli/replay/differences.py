"""The differences between two sequences of steps: pure functions, whatever produced the steps.

    recorded steps ──┐
                     ├──find_differences──▶ Difference: reply 2, call weather, argument city: "Rome", "Oslo"
    replayed steps ──┘

Replies are compared by their number. Calls of one reply are first paired with equal calls, whatever their order, and
then with calls of the same option. Ids, origins and reasoning are not compared, because they differ in every run.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import sabir
from sabir.authoring import JSONValue

from sabir_cli.conversation import describe_call
from sabir_cli.replay.recording import AnswerStep, RecordedQuestion

Aspect: TypeAlias = Literal[
    "question", "reply", "error", "text", "refusal", "media", "call", "argument", "result", "finish reason",
    "input tokens", "output tokens",
]  # fmt: skip
"""What differs. A "reply" or a "call" differs if only one side has it. A "question" differs only between recordings."""
PERCENT = 50
"""The difference of tokens, in percent of the recorded number, above which tokens are a difference."""
LEAST_TOKENS = 50
"""The difference of tokens, as a number, up to which tokens are not a difference. Short replies vary by half easily."""
_MISSING = object()


@dataclass(frozen=True)
class Difference:
    """One difference in the reply with the number `reply`, from 1; 0 for the question.

    `place` is the name of the option, with the path of an argument or of a value in a result; "" otherwise. `recorded`
    and `replayed` are JSON values; None if this side has nothing there.
    """

    reply: int
    aspect: Aspect
    recorded: JSONValue
    replayed: JSONValue
    place: str = ""


def find_differences(
    recorded: Sequence[AnswerStep],
    replayed: Sequence[AnswerStep],
    *,
    percent: float = PERCENT,
    is_stopped: bool = False,
) -> list[Difference]:
    """Return the differences between the steps of one question, in the order of the replies.

    Tokens differ if the difference is more than `percent` of the recorded number, and more than LEAST_TOKENS. With
    `is_stopped`, the replayed steps end early for a known reason, so missing replies and results are not differences.
    """
    differences: list[Difference] = []
    for number in range(1, max(len(recorded), len(replayed)) + 1):
        one, other = (steps[number - 1] if number <= len(steps) else None for steps in (recorded, replayed))
        if one is None or other is None:
            if not (other is None and is_stopped):
                differences.append(Difference(number, "reply", one and summary(one), other and summary(other)))
            continue
        is_last_of_stopped = is_stopped and number == len(replayed)
        differences += _step_differences(number, one, other, percent, with_results=not is_last_of_stopped)
    return differences


def find_question_difference(recorded: RecordedQuestion, replayed: RecordedQuestion) -> list[Difference]:
    """Return the difference between the texts of two questions; [] if they are equal or if one is missing."""
    one, other = recorded.message, replayed.message
    if one is None or other is None or one.text == other.text:
        return []
    return [Difference(0, "question", one.text, other.text)]


def summary(step: AnswerStep) -> str:
    """Return the text and the calls of a step, to show a reply that only one side has."""
    calls = [describe_call(call) for call in step.calls]
    return step.error or " ".join(filter(None, [_text(step), *calls])) or "(no text)"


def _step_differences(
    number: int, recorded: AnswerStep, replayed: AnswerStep, percent: float, *, with_results: bool
) -> Iterator[Difference]:
    if recorded.error or replayed.error:
        if recorded.error != replayed.error:
            yield Difference(number, "error", recorded.error or None, replayed.error or None)
        return
    for aspect, read in _CONTENTS:
        one, other = read(recorded), read(replayed)
        if one != other:
            yield Difference(number, aspect, one, other)
    yield from _call_differences(number, recorded, replayed, with_results=with_results)
    if recorded.finish_reason != replayed.finish_reason:
        yield Difference(number, "finish reason", recorded.finish_reason, replayed.finish_reason)
    for aspect, field in _TOKENS.items():
        before, after = getattr(recorded.usage, field), getattr(replayed.usage, field)
        if before is not None and after is not None and _is_far(before, after, percent):
            yield Difference(number, aspect, before, after)


def _text(step: AnswerStep) -> str:
    return "".join(message.text for message in step.messages if message.kind == "parts")


def _refusal(step: AnswerStep) -> str | None:
    texts = [part.text for message in step.messages for part in message.parts if isinstance(part, sabir.RefusalPart)]
    return "".join(texts) or None


def _media(step: AnswerStep) -> JSONValue:
    parts = [part for message in step.messages for part in message.parts]
    return [part.modality for part in parts if isinstance(part, sabir.MediaPart)]


_CONTENTS: Sequence[tuple[Aspect, Callable[[AnswerStep], JSONValue]]] = (
    ("text", _text), ("refusal", _refusal), ("media", _media),
)  # fmt: skip
"""Aspects of a reply, each with the function that reads it."""
_TOKENS: Mapping[Aspect, str] = {"input tokens": "input_tokens", "output tokens": "output_tokens"}


def _is_far(before: int, after: int, percent: float) -> bool:
    return abs(after - before) > max(LEAST_TOKENS, before * percent / 100)


def call_key(message: sabir.Message, defaults: Mapping[str, Any] | None = None) -> tuple[str, Any]:
    """Return the option and the arguments of a call. Two calls are equal if their keys are.

    Arguments that are equal to `defaults` are left out, because a call without them means the same.
    """
    call = message.call
    assert call is not None
    arguments = _plain_arguments(message)
    if isinstance(arguments, dict) and defaults:
        is_default = {name for name in defaults if _strict(arguments.get(name)) == _strict(defaults[name])}
        arguments = {name: argument for name, argument in arguments.items() if name not in is_default}
    return call.option_name, _strict(arguments)


def _call_differences(
    number: int, recorded: AnswerStep, replayed: AnswerStep, *, with_results: bool
) -> Iterator[Difference]:
    for one, other in _pair_calls(recorded.calls, replayed.calls):
        if one is None or other is None:
            yield Difference(number, "call", one and describe_call(one), other and describe_call(other))
            continue
        assert one.call is not None
        name = one.call.option_name
        if call_key(one) != call_key(other):
            sides = _plain_arguments(one), _plain_arguments(other)
            yield from (
                Difference(number, "argument", before, after, f"{name} {path}".rstrip())
                for path, before, after in _value_differences(*sides)
            )
        results = _result_of(recorded, one), _result_of(replayed, other)
        if with_results or None not in results:
            yield from (
                Difference(number, "result", before, after, f"{name} {path}".rstrip())
                for path, before, after in _value_differences(*results)
            )


def _pair_calls(
    recorded: Sequence[sabir.Message], replayed: Sequence[sabir.Message]
) -> list[tuple[sabir.Message | None, sabir.Message | None]]:
    """Pair equal calls, then calls of the same option. Calls without a partner come last, paired with None."""
    ones: list[sabir.Message | None] = [*recorded]
    others = [*replayed]
    partners: dict[int, sabir.Message] = {}
    for is_pair in (_is_equal, _is_same_option):
        for at, one in enumerate(ones):
            partner = next((each for each in others if one and at not in partners and is_pair(one, each)), None)
            if partner is not None:
                partners[at] = partner
                others = [each for each in others if each is not partner]
    return [*((one, partners.get(at)) for at, one in enumerate(ones)), *((None, other) for other in others)]


def _is_equal(one: sabir.Message, other: sabir.Message) -> bool:
    return call_key(one) == call_key(other)


def _is_same_option(one: sabir.Message, other: sabir.Message) -> bool:
    return call_key(one)[0] == call_key(other)[0]


def _plain_arguments(message: sabir.Message) -> JSONValue:
    call = message.call
    assert call is not None
    return call.unreadable_arguments or sabir.authoring.decode_json(call.arguments_json)


def _result_of(step: AnswerStep, call: sabir.Message) -> JSONValue:
    """Return the result of a call as JSON: its value, its texts and media, or its error. None without a result."""
    invocation_id = call.call.invocation_id if call.call else ""
    payload = next(
        (each.result for each in step.results if each.result and each.result.invocation_id == invocation_id), None
    )
    if payload is None:
        return None
    if payload.is_error:
        return f"{payload.error_type}: {payload.error_message}"
    if payload.parts:
        return [getattr(part, "text", None) or getattr(part, "url", None) or part.kind for part in payload.parts]
    return payload.plain_result()


def _value_differences(recorded: Any, replayed: Any, path: str = "") -> Iterator[tuple[str, JSONValue, JSONValue]]:
    """Yield the path and both values of each difference between two JSON values. 1 equals 1.0, but not true."""
    if isinstance(recorded, dict) and isinstance(replayed, dict):
        for name in [*recorded, *(name for name in replayed if name not in recorded)]:
            sides = recorded.get(name, _MISSING), replayed.get(name, _MISSING)
            yield from _value_differences(*sides, f"{path}.{name}" if path else name)
    elif isinstance(recorded, list) and isinstance(replayed, list) and len(recorded) == len(replayed):
        for at, (one, other) in enumerate(zip(recorded, replayed, strict=True)):
            yield from _value_differences(one, other, f"{path}[{at}]")
    elif _strict(recorded) != _strict(replayed):
        yield path, None if recorded is _MISSING else recorded, None if replayed is _MISSING else replayed


def _strict(node: Any) -> Any:  # any JSON
    """Return a JSON value in which booleans are not equal to numbers, for a comparison with ==."""
    if isinstance(node, dict):
        return {name: _strict(part) for name, part in node.items()}
    if isinstance(node, list):
        return [_strict(part) for part in node]
    return (node,) if isinstance(node, bool) else node
