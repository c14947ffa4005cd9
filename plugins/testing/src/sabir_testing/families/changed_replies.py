"""Answers in which one value is changed: each change must be visible where it belongs, and nowhere else.

finish reason      "kit_unheard_of" ──▶ finish_reason "other", raw_finish_reason as sent
a number of usage  + 100,000        ──▶ the count that the field names, and not the one of the other side
usage left out                      ──▶ None, not 0
a text             white space      ──▶ the same white space
a call in a list   twice            ──▶ two calls
"""

import re
from collections.abc import Mapping
from typing import Any, ClassVar, Literal, TypeAlias

import pytest
from sabir.authoring import OptionCall

from sabir_testing.kit.changed_answers import (
    DELETED,
    ChangeableAnswer,
    Changes,
    Place,
    changeable_answers,
    renumbered,
)
from sabir_testing.kit.failures import expect
from sabir_testing.kit.service import AnswerCases, Service
from sabir_testing.kit.suite import since_api
from sabir_testing.reading import fragments_of, member_at, objects, paths_in, walk

UNHEARD_OF = "kit_unheard_of"
SideOfUsage: TypeAlias = Literal["input_tokens", "output_tokens"]
SIDES: tuple[SideOfUsage, SideOfUsage] = ("input_tokens", "output_tokens")
_INPUT = re.compile(r"(?i)input|prompt|^in$|^in_|_in$")
_OUTPUT = re.compile(r"(?i)output|completion|candidate|generated|eval|^out$|^out_|_out$")
PARTS_OF_USAGE: Mapping[str, re.Pattern[str]] = {
    "cache_read_tokens": re.compile(r"(?i)^(?!.*(?:creat|writ|miss)).*cache"),
    "reasoning_tokens": re.compile(r"(?i)reason|think|thought"),
}
"""The number of some of the tokens of a side → the names of fields with this number."""
MORE = 100_000
"""The number that is added to a number of tokens. No recorded number is so large."""


@since_api(2)
class ChangedReplyCases(AnswerCases):
    """The test cases of the family `replies` about answers with changed values."""

    family: ClassVar[str] = "replies"

    def test_an_unknown_finish_reason_is_other(self, service: Service) -> None:
        """A finish reason that the dialect does not know becomes "other", and `raw_finish_reason` is the vendor's word.
        A program would take "stop" for a complete answer. This is tested for answers without calls.
        """
        for answer in changeable_answers(service):
            places = answer.places_of(answer.reply.raw_finish_reason)
            if not places or answer.reply.option_calls:
                continue
            changes = dict.fromkeys(places, UNHEARD_OF)
            reply = answer.reply_to(changes, f"the unknown finish reason {UNHEARD_OF!r}")
            what = f"the unknown finish reason {UNHEARD_OF!r} in {answer.label} becomes {reply.finish_reason!r}"
            expect(reply.finish_reason == "other", f"{what}; expected 'other'", details=answer.details(changes))
            what = f"raw_finish_reason is {reply.raw_finish_reason!r} for {UNHEARD_OF!r} in {answer.label}"
            is_kept = reply.raw_finish_reason == UNHEARD_OF
            expect(is_kept, f"{what}; expected the vendor's word", details=answer.details(changes))

    def test_input_and_output_tokens_are_not_mixed_up(self, service: Service) -> None:
        """A larger number in a field whose name says "input", "in" or "prompt" changes `usage.input_tokens`, and not
        `usage.output_tokens`; for "output", "out", "completion" and similar names it is the reverse.
        """
        for answer in changeable_answers(service):
            for side, places in usage_places(answer).items():
                _check_side_of_usage(answer, side, places)

    @pytest.mark.parametrize("count", PARTS_OF_USAGE)
    def test_cached_and_reasoning_tokens_are_counted(self, service: Service, count: str) -> None:
        """If a field with a number has a name that says "cache" or "reasoning", "thinking" or "thought", a larger
        number changes `usage.cache_read_tokens` or `usage.reasoning_tokens`.
        """
        for answer in changeable_answers(service):
            numbers = {place: number for place, number in answer.leaves() if type(number) is int}
            places = [place for place in numbers if PARTS_OF_USAGE[count].search(place.name)]
            if not places:
                continue
            changes = {place: numbers[place] + MORE for place in places}
            before = getattr(answer.reply.usage, count)
            after = getattr(answer.reply_to(changes, "larger numbers of tokens").usage, count)
            names = ", ".join(sorted({repr(place.name) for place in places}))
            what = f"usage.{count} is {after} before and after a larger number in the fields {names} of {answer.label}"
            expect(after != before, f"{what}; read the number from there", details=answer.details(changes))

    def test_missing_usage_is_unknown(self, service: Service) -> None:
        """If a response has no numbers of tokens, the numbers in `usage` are None. The number 0 would cost nothing."""
        for answer in changeable_answers(service):
            places = [place for each in usage_places(answer).values() for place in each]
            if not places:
                continue
            changes = dict.fromkeys(places, DELETED)
            usage = answer.reply_to(changes, "a response without numbers of tokens").usage
            for name in SIDES:
                count = getattr(usage, name)
                what = f"usage.{name} is {count} although {answer.label} has no numbers of tokens; expected None"
                expect(count is None, what, details=answer.details(changes))

    def test_white_space_in_an_answer_is_kept(self, service: Service) -> None:
        """White space at the beginning and the end of a text, and a piece of a stream that is only white space, are in
        the reply. Code and Markdown depend on it.
        """
        for answer in changeable_answers(service):
            changes, text = _spread_text(answer)
            if not changes:
                continue
            reply = answer.reply_to(changes, "a text with white space")
            what = f"the text of {answer.label} is {text!r}, but reply.text is {reply.text!r}"
            expect(reply.text == text, f"{what}; keep the white space", details=answer.details(changes))

    def test_every_call_of_a_list_is_read(self, service: Service) -> None:
        """If a list in the response contains one more call, the reply has one more call."""
        for answer in changeable_answers(service):
            for call in answer.reply.option_calls[-1:]:
                if changes := _with_second_call(answer, call):
                    reply = answer.reply_to(changes, "a second call in a list")
                    expected, calls = len(answer.reply.option_calls) + 1, len(reply.option_calls)
                    what = (
                        f"the list of calls in {answer.label} has {expected} entries, but the reply has {calls} calls"
                    )
                    expect(calls == expected, f"{what}; read all entries", details=answer.details(changes))


def usage_places(answer: ChangeableAnswer) -> Mapping[SideOfUsage, list[Place]]:
    """Return the numbers of tokens in an answer, by the side that their field names; {} if a side has none."""
    places: dict[SideOfUsage, list[Place]] = {"input_tokens": [], "output_tokens": []}
    for place, count in answer.leaves():
        if type(count) is int and (side := side_of_usage(place.name)):
            places[side].append(place)
    return places if all(places.values()) else {}


def side_of_usage(name: str) -> SideOfUsage | None:
    """Return the side whose tokens a number with this name counts; None if the name says neither."""
    if _INPUT.search(name):
        return "input_tokens"
    return "output_tokens" if _OUTPUT.search(name) else None


def _check_side_of_usage(answer: ChangeableAnswer, side: SideOfUsage, places: list[Place]) -> None:
    other = SIDES[1 - SIDES.index(side)]
    before, is_counted = answer.reply.usage, False
    numbers = dict(answer.leaves())
    for place in places:
        changes = {place: numbers[place] + MORE}
        usage = answer.reply_to(changes, f"a larger number in the field {place.name!r}").usage
        is_counted = is_counted or getattr(usage, side) != getattr(before, side)
        what = f"a larger number in the field {place.name!r} of {answer.label} changes usage.{other}"
        is_same = getattr(usage, other) == getattr(before, other)
        expect(is_same, f"{what}; it belongs to usage.{side}", details=answer.details(changes))
    names = ", ".join(sorted({repr(place.name) for place in places}))
    what = f"no number in the fields {names} of {answer.label} changes usage.{side}; read it from there"
    expect(is_counted, what, details=answer.details(dict.fromkeys(places, MORE)))


def _spread_text(answer: ChangeableAnswer) -> tuple[Changes, str]:
    """Return changes that put white space around and into the text of an answer, and the text then; no changes if the
    text cannot be located in the answer.

    A stream's pieces are changed one by one, and repetitions of the complete text at its end, too.
    """
    text = answer.reply.text
    group = fragments_of(answer.documents, text) if text.strip() else []
    if not group:
        return {}, ""
    pieces = [fragment.text for fragment in group]
    pieces[0] = f"\n  {pieces[0]}"
    pieces[-1] = f"{pieces[-1]} \n\n"  # possibly the same piece
    if len(pieces) > 2:
        pieces[1] = " \n "
    changes: dict[Place, Any] = {
        Place(fragment.document, fragment.path): piece for fragment, piece in zip(group, pieces, strict=True)
    }
    spread = "".join(pieces)
    repeated = [place for place in answer.places_of(text) if place not in changes]
    return {**dict.fromkeys(repeated, spread), **changes}, spread


def _with_second_call(answer: ChangeableAnswer, call: OptionCall) -> Changes:
    """Return the change that repeats a call in the innermost list that contains it, with other ids and another index;
    {} if the answer has no such list.
    """
    for number, document in enumerate(answer.documents):
        if not _contains_call(document, call):
            continue
        for path in sorted(paths_in(document), key=len, reverse=True):
            elements = member_at(document, path)
            calls = [each for each in elements if _contains_call(each, call)] if isinstance(elements, list) else []
            if calls and path:
                second = renumbered(calls[-1], len(elements))
                return {Place(number, path): [*elements, second]}
        return {}  # the stream sends its calls one by one
    return {}


def _contains_call(document: Any, call: OptionCall) -> bool:
    """Return whether a JSON value contains a call: the option's name, and the id or the arguments."""
    payload = call.call
    own_texts = {leaf.value for leaf in walk(document) if not leaf.is_name}
    has_rest = {payload.invocation_id, payload.raw_arguments} & (own_texts - {None})
    return payload.option_name in own_texts and bool(has_rest or payload.arguments in objects(document))
