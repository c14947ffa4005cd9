"""Answers with contents that no recording has: everything is in the reply, reported as a loss, or refused.

a list of parts + an object of an unknown type ──▶ an opaque part, state, details, or a loss
a list of parts + a copy of one part           ──▶ both texts
a stream whose block or piece has an unknown type ──▶ its text is in the reply, in its place
"completed" ──▶ "failed"                       ──▶ not the finish reason "stop"
usage: input + output                          ──▶ the total that the vendor reports
an object "url_citation" with a URL            ──▶ a citation with this URL
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from sabir import Reply
from sabir.errors import SabirError

from sabir_testing.kit.changed_answers import DELETED, ChangeableAnswer, Changes, Place, changeable_answers
from sabir_testing.kit.decoded_recordings import DecodedStream
from sabir_testing.kit.failures import expect
from sabir_testing.kit.inserted_objects import (
    SECOND,
    STRANGE,
    UNKNOWN_TYPE,
    is_typed,
    nested_types,
    second_element,
    text_elements,
    text_fragments,
    typed_lists,
    unknown_object,
    unknown_piece,
    with_unknown_type,
)
from sabir_testing.kit.service import AnswerCases, Service
from sabir_testing.kit.suite import since_api
from sabir_testing.reading import Fragment, compact_json, member_at, objects, paths_in, strings

FAILURES = ("failed", "error", "cancelled", "incomplete", "length", "max_tokens", "content_filter", "safety")
"""Words with which APIs say that an answer is not complete."""
COMPLETE = ("stop", "option_calls", "native_calls")
_TOTAL = re.compile(r"(?i)total(_?tokens?|_?token_?count)?")
_SOURCE_FIELDS = ("url", "uri")


@since_api(2)
class LosslessReplyCases(AnswerCases):
    """The test cases of the family `replies` about contents that adapters forget."""

    family: ClassVar[str] = "replies"

    def test_an_object_of_an_unknown_type_is_kept(self, service: Service) -> None:
        """If a list of parts in an answer contains an object of a type that the dialect does not know, the object is in
        the reply, as an opaque part, in a state or in the details, or in a loss, or the answer is refused (law 2). A
        refusal is a decision: the dialect raises an error of sabir, not another exception.
        """
        for answer in changeable_answers(service):
            for place in _lists_of_parts(answer):
                elements = member_at(answer.documents[place.document], place.path)
                inserted = unknown_object(typed=all(map(is_typed, elements)))
                _check_decided(answer, {place: [*elements, inserted]})
                _check_kept(answer, {place: [*elements, inserted]}, STRANGE, f"an object of the type {UNKNOWN_TYPE!r}")

    def test_every_element_of_a_list_is_read(self, service: Service) -> None:
        """If a list of texts in an answer contains one more text, both are in the reply."""
        for answer in changeable_answers(service):
            for text_element in text_elements(answer):
                place = text_element.elements
                elements = member_at(answer.documents[place.document], place.path)
                second = second_element(text_element, len(elements))
                first_text = member_at(text_element.element, text_element.text)
                for text, insertion in {SECOND: "a second text", first_text: "the text before a second one"}.items():
                    _check_kept(answer, {place: [*elements, second]}, text, insertion)

    def test_a_text_in_place_of_a_list_is_no_content(self, service: Service) -> None:
        """If a complete answer has a text or an object where the API has the list with its contents, the answer is
        refused, or the text is in the reply. A reader that loops over the text reads its letters, and an empty reply is
        taken for an answer.
        """
        for answer in changeable_answers(service):
            for place in _lists_of_contents(answer) if len(answer.documents) == 1 else ():
                for content in (STRANGE, {"kit_note": STRANGE}):
                    what = f"{content!r} in place of the list {place.name!r} of {answer.label}"
                    changes = {place: content}
                    _check_contains(answer.decode(changes), STRANGE, what, "it", answer.changed(changes))

    def test_a_failed_answer_is_not_complete(self, service: Service) -> None:
        """If the vendor's finish reason is a word such as "failed" or "incomplete", the answer is refused, or
        `finish_reason` is not "stop". A program would take the answer for a complete one. This is tested for answers
        without calls.
        """
        for answer in changeable_answers(service):
            raw = answer.reply.raw_finish_reason
            places = [] if answer.reply.option_calls else answer.places_of(raw)
            for word in FAILURES if places and raw else ():
                spelled = word.upper() if raw and raw.isupper() else word
                changes = dict.fromkeys(places, spelled)
                reply = answer.decode(changes).reply
                reason = reply.finish_reason if reply else "error"
                what = (
                    f"the finish reason {spelled!r} in {answer.label} becomes {reason!r}; expected 'error', 'length',"
                )
                what = f"{what} 'content_filter' or 'other', or an error"
                expect(reason not in COMPLETE, what, details=answer.details(changes))

    def test_input_and_output_tokens_are_the_total(self, service: Service) -> None:
        """If an answer reports a total number of tokens, it is the sum of `usage.input_tokens` and
        `usage.output_tokens`. Some vendors count thoughts or the results of their own tools separately, and the total
        includes them.
        """
        for answer in changeable_answers(service):
            usage = answer.reply.usage
            for total in _totals(usage.details):
                if usage.input_tokens is None or usage.output_tokens is None:
                    continue
                counted = f"input_tokens {usage.input_tokens} and output_tokens {usage.output_tokens}"
                what = f"{answer.label} reports {total} tokens, but the usage has {counted}; add the tokens that the"
                what = f"{what} vendor counts separately, such as thoughts"
                is_total = usage.input_tokens + usage.output_tokens == total
                expect(is_total, what, details={"the usage object": usage.details})

    def test_a_source_becomes_a_citation(self, service: Service) -> None:
        """If an answer has objects whose type says "citation" and that have a URL, the reply's texts have a citation
        with this URL, or a loss reports it. In `state`, programs would not look for it.
        """
        for answer in changeable_answers(service):
            reply = answer.reply
            cited = {each.url for message in reply.messages for part in message.parts for each in _citations(part)}
            reported = " ".join(map(str, reply.losses))
            for url in _cited_urls(answer.documents):
                what = f"{answer.label} has a citation of {url}, but no text of the reply has a citation with this URL"
                expect(url in cited or url in reported, f"{what}; read it into TextPart.citations")


@since_api(2)
class LosslessStreamCases(AnswerCases):
    """The test cases of the family `streams` about contents that adapters forget."""

    family: ClassVar[str] = "streams"

    def test_the_pieces_of_an_unknown_type_are_kept(self, service: Service) -> None:
        """If a block or a piece of a stream has a type that the dialect does not know, its text is in the reply, for
        example in an opaque part, or in a loss, or the stream is refused (law 2).
        """
        for answer in _streamed(service):
            for group in text_fragments(answer):
                for type_name in nested_types(answer):
                    documents = with_unknown_type(answer, type_name, group)
                    decoded = answer.decode_documents(documents)
                    what = f"the type {UNKNOWN_TYPE!r} instead of {type_name!r} in {answer.label}"
                    _check_contains(decoded, STRANGE, what, "its text", documents)

    def test_a_block_ends_before_another_one(self, service: Service) -> None:
        """If an object of an unknown type is between two pieces of a text, and becomes a part of its own, the text
        before it and the text after it are parts before and after it.
        """
        for answer in _streamed(service):
            for group in text_fragments(answer):
                if len(group) > 1 and (inserted := unknown_piece(answer, group[1])) is not None:
                    _check_order(answer, group, inserted)


def _streamed(service: Service) -> list[ChangeableAnswer]:
    """Return the recorded streams. Raises ConformanceFailure if all of them are decoded to replies without contents."""
    streams = [answer for answer in changeable_answers(service) if len(answer.documents) > 1]
    replies = (answer.decode_documents(answer.documents).reply for answer in streams)
    is_decoded = not streams or any(reply is not None and any(_contents(reply)) for reply in replies)
    expect(is_decoded, "every recorded stream is decoded to a reply without contents; return the events of its blocks")
    return streams


def _lists_of_parts(answer: ChangeableAnswer) -> list[Place]:
    """Return the lists with a text of the reply and, in a complete answer, all lists of typed objects."""
    places = [each.elements for each in text_elements(answer)]
    if len(answer.documents) == 1:
        places += [Place(0, path) for path in typed_lists(answer.documents[0])]
    return list(dict.fromkeys(places))


def _lists_of_contents(answer: ChangeableAnswer) -> Iterator[Place]:
    """Yield the lists of a complete answer that contain its text or the name of an option that it calls."""
    contents = {answer.reply.text, *(each.call.option_name for each in answer.reply.option_calls)} - {""}
    for path in paths_in(answer.documents[0]):
        elements = member_at(answer.documents[0], path)
        if path and isinstance(elements, list) and contents & set(strings(elements)):
            yield Place(0, path)


def _check_decided(answer: ChangeableAnswer, changes: Changes) -> None:
    """Raise ConformanceFailure if a changed answer is refused only because the dialect's code fails."""
    error = answer.decode(changes).error
    cause = error.__cause__ if error is not None else None
    is_decided = cause is None or isinstance(cause, SabirError)
    what = (
        f"decode raises {type(cause).__name__} ({cause}) for an object of the type {UNKNOWN_TYPE!r} in {answer.label}"
    )
    expect(is_decided, f"{what}; keep the object, or raise ResponseInvalid", details=answer.details(changes))


def _check_kept(answer: ChangeableAnswer, changes: Changes, text: str, insertion: str) -> None:
    """Raise ConformanceFailure if the reply to a changed answer does not contain a text."""
    (place,) = changes
    what = f"{insertion} in the list {place.name!r} of {answer.label}"
    _check_contains(answer.decode(changes), text, what, "it", answer.changed(changes))


def _check_contains(decoded: DecodedStream, text: str, what: str, subject: str, documents: Sequence[Any]) -> None:
    is_kept = decoded.reply is None or json.dumps(text, ensure_ascii=False)[1:-1] in decoded.reply.model_dump_json()
    details = {"the changed response": "\n".join(compact_json(each) for each in documents if each is not DELETED)}
    remedy = "return an opaque part, keep it in state or details, add a loss, or raise an error"
    expect(is_kept, f"{what} is ignored: {subject} is not in the reply; {remedy}", details=details)


def _check_order(answer: ChangeableAnswer, group: list[Fragment], inserted: Any) -> None:
    """Raise ConformanceFailure if an inserted part is not between the pieces of a text."""
    documents = list(answer.documents)
    position = group[1].document
    decoded = answer.decode_documents(
        [*documents[:position], (inserted, documents[position]), *documents[position + 1 :]]
    )
    parts = _contents(decoded.reply)
    own = next((number for number, part in enumerate(parts) if STRANGE in part), None)
    if own is None or group[0].text in parts[own]:
        return
    before = "".join(parts[:own])
    is_apart = group[0].text in before and group[1].text not in before.partition(group[0].text)[2]
    what = (
        f"an object of the type {UNKNOWN_TYPE!r} between two pieces of the text of {answer.label} becomes a part, but"
    )
    what = f"{what} it is not between them; end the open block before the part starts, and begin another one after it"
    expect(is_apart, what, details={"the inserted event": inserted, "the parts of the reply": parts})


def _contents(reply: Reply | None) -> list[str]:
    """Return the text of each part of a reply, and the JSON of parts without text."""
    parts = [part for message in reply.messages for part in message.parts] if reply else []
    return [getattr(part, "text", None) or part.model_dump_json() for part in parts]


def _totals(usage: Any) -> Iterator[int]:
    """Yield the numbers of a usage object whose field says that it is the total."""
    for name, count in usage.items() if isinstance(usage, Mapping) else ():
        if _TOTAL.fullmatch(name) and type(count) is int:
            yield count


def _citations(part: Any) -> Any:
    return getattr(part, "citations", ())


def _cited_urls(documents: Sequence[Any]) -> Iterator[str]:
    """Yield the URLs of the objects whose type says that they are citations."""
    for each in objects(list(documents)):
        if "citation" in str(each.get("type")):
            inner = [each, *(member for member in each.values() if isinstance(member, Mapping))]
            yield from (str(one[name]) for one in inner for name in _SOURCE_FIELDS if one.get(name))
