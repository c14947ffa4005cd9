"""Words of the vendor's documentation, which the author lists in the suite: each means what the author says.

finish_reasons   word ──in place of a recorded finish reason──▶ decode ──▶ reply.finish_reason
usage_fields     number ──into the recorded usage object──▶ decode ──▶ reply.usage
error_codes      code ──in place of a recorded failure's code──▶ decode_error ──▶ the class of the error
                 a code that nobody knows ─────────────────────▶ the class that the status has without a code
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, ClassVar

from sabir import CallError
from sabir.authoring import JSONValue, ServerEvent

from sabir_testing.cassettes import RecordedExchange
from sabir_testing.families.changed_replies import MORE, UNHEARD_OF, usage_places
from sabir_testing.families.errors import SENTENCE
from sabir_testing.families.streams import error_events
from sabir_testing.kit.changed_answers import ChangeableAnswer, Changes, Place, changeable_answers
from sabir_testing.kit.decoded_recordings import RecordedStream, longest_stream
from sabir_testing.kit.failures import expect
from sabir_testing.kit.service import AnswerCases, Service
from sabir_testing.kit.suite import AdapterUnderTest, since_api
from sabir_testing.reading import JSONPath, as_json, member_at, paths_in, replace_at, strings, walk

UNINFORMATIVE = 418
"""A status that no service uses, so that only the code decides."""


@since_api(2)
class DocumentedReplyCases(AnswerCases):
    """The test cases of the family `replies` about documented finish reasons and numbers of tokens."""

    family: ClassVar[str] = "replies"

    def test_a_documented_finish_reason_is_read(self, service: Service) -> None:
        """Each reason of the suite's `finish_reasons` gives the neutral reason that the suite names. This is tested
        with recorded answers without calls, in which the finish reason is replaced.
        """
        for answer in changeable_answers(service):
            places = answer.places_of(answer.reply.raw_finish_reason)
            if not places or answer.reply.option_calls:
                continue
            for reason, expected in service.suite.finish_reasons.items():
                changes = dict.fromkeys(places, reason)
                actual = answer.reply_to(changes, f"the finish reason {reason!r}").finish_reason
                what = f"the finish reason {reason!r} in {answer.label} becomes {actual!r}, but the suite's"
                is_right = actual == expected
                expect(is_right, f"{what} finish_reasons say {expected!r}", details=answer.details(changes))

    def test_a_documented_number_of_tokens_is_counted(self, service: Service) -> None:
        """A number in each field of the suite's `usage_fields` is counted in the field of `reply.usage` that the suite
        names: if the vendor's number is larger by 100,000, so is the count. Missing fields are added to the recorded
        usage object. Numbers that no recording has, such as cached tokens, are often forgotten.
        """
        for answer in changeable_answers(service):
            for field, count in service.suite.usage_fields.items():
                tried = [_with_more_tokens(answer, place, field) for place in _usage_objects(answer)]
                before = getattr(answer.reply.usage, count) or 0
                replies = [answer.decode(changes).reply for changes in tried]
                counts = [getattr(reply.usage, count) for reply in replies if reply is not None]
                what = f"{MORE} more tokens in the field {field!r} of the usage of {answer.label} give usage.{count}="
                what = f"{what}{' or '.join(map(str, counts))}, and without them {before}; the suite's usage_fields say"
                details = answer.details(tried[0]) if tried else {}
                expect(not tried or before + MORE in counts, f"{what} that {count!r} counts them", details=details)


@since_api(2)
class DocumentedErrorCases(AnswerCases):
    """The test cases of the family `errors` about documented codes."""

    family: ClassVar[str] = "errors"

    def test_a_documented_code_is_read(self, service: Service) -> None:
        """Each code of the suite's `error_codes` gives the class of error that the suite names. This is tested with
        recorded failures, in whose body or header the code is replaced, and with a status that says nothing.
        """
        for name, exchange, code in _coded_failures(service):
            for other, expected in service.suite.error_codes.items():
                changed = replace(_with_code(exchange, code, other), status=UNINFORMATIVE)
                error = _error_of(service.subject, changed)
                what = (
                    f"the code {other!r} in the recorded failure {name!r} gives {type(error).__name__}, but the suite's"
                )
                details = {"the headers": changed.headers, "the body": changed.response_body}
                is_right = type(error) is expected and error.code == other
                expect(is_right, f"{what} error_codes say {expected.__name__}", details=details)

    def test_an_error_event_has_its_message_and_code(self, service: Service) -> None:
        """The error of an error event in a stream contains the event's text. With each code of the suite's
        `error_codes` in place of the event's code, the class is the one that the suite names. The suite's `error_event`
        defines how such an event looks.
        """
        stream, codes = longest_stream(service.subject), service.suite.error_codes
        if stream is None:
            return
        for document, path in _coded_events(service, stream):
            for code, expected in codes.items():
                body = json.dumps(replace_at(document, path, code))
                events = [ServerEvent(body)] if service.suite.error_event("") else error_events(self, stream, body)
                errors = [stream.decode_events((*stream.events[:1], event)).error for event in events]
                what = f"an error event with the code {code!r} and the text {SENTENCE!r} gives {errors!r}"
                is_right = any(
                    type(each) is expected and each.code == code and SENTENCE in str(each) for each in errors
                )
                expect(is_right, f"{what}; expected {expected.__name__}, with both", details={"the event": body})

    def test_an_unknown_code_leaves_the_class_to_the_status(self, service: Service) -> None:
        """A code that the dialect does not know is in `error.code`, and the class is the one of the same failure
        without a code, with a status 401, 429 or 500.
        """
        for name, exchange, code in _coded_failures(service):
            for status in (401, 429, 500):
                changed, uncoded = (_with_code(exchange, code, other) for other in (UNHEARD_OF, ""))
                error = _error_of(service.subject, replace(changed, status=status))
                plain = _error_of(service.subject, replace(uncoded, status=status))
                what = (
                    f"the unknown code {UNHEARD_OF!r} in the recorded failure {name!r} with the status {status} gives"
                )
                expect(error.code == UNHEARD_OF, f"{what} the code {error.code!r}; keep the vendor's code")
                what = f"{what} {type(error).__name__}, but no code gives {type(plain).__name__}"
                expect(type(error) is type(plain), f"{what}; let the status decide")


def _usage_objects(answer: ChangeableAnswer) -> list[Place]:
    """Return the places of the usage object in an answer, or of its pieces: what `usage.details` contains, and the
    objects with numbers of tokens.
    """
    details = answer.reply.usage.details
    every = (Place(number, path) for number, each in enumerate(answer.documents) for path in paths_in(each) if path)
    own = [place for place in every if details and member_at(answer.documents[place.document], place.path) == details]
    numbers = [place for places in usage_places(answer).values() for place in places]
    holders = (Place(each.document, each.path[:-1]) for each in numbers if len(each.path) > 1)
    return list(dict.fromkeys((*own, *holders)))


def _with_more_tokens(answer: ChangeableAnswer, place: Place, field: str) -> Changes:
    """Return the change that adds MORE to the number in a field of an object, whose path is separated by dots."""

    def enlarge(fields: Any, names: list[str]) -> dict[str, Any]:
        known: Mapping[str, Any] = fields if isinstance(fields, Mapping) else {}
        first, *rest = names
        return {**known, first: enlarge(known.get(first), rest) if rest else (known.get(first) or 0) + MORE}

    return {place: enlarge(member_at(answer.documents[place.document], place.path), field.split("."))}


def _coded_events(service: Service, stream: RecordedStream) -> Iterator[tuple[JSONValue, JSONPath]]:
    """Yield an error event with SENTENCE as its text, and the path of its code; nothing without a code or a text."""
    if (event := service.suite.error_event(SENTENCE)) is not None:
        document, codes = as_json(event.data), set(service.suite.error_codes)
    else:
        failures = ((as_json(each.response_body), code) for _, each, code in _coded_failures(service))
        document, code = next(((body, code) for body, code in failures if not isinstance(body, str)), (None, ""))
        codes = {code}
        sentences = [leaf.path for leaf in walk(document) if " " in str(leaf.value) and not leaf.is_name]
        for path in sentences:
            document = replace_at(document, path, SENTENCE)
    places = [leaf.path for leaf in walk(document) if not leaf.is_name and leaf.value in codes]
    if places and SENTENCE in strings(document):
        yield document, places[0]


def _coded_failures(service: Service) -> Iterator[tuple[str, RecordedExchange, str]]:
    """Yield the recorded failures with a code in their body or in a header, each with its name and code."""
    for name, exchange in service.failures():
        code = _error_of(service.subject, exchange).code
        if code and _with_code(exchange, code, UNHEARD_OF) != exchange:
            yield name, exchange, code


def _with_code(exchange: RecordedExchange, code: str, other: str) -> RecordedExchange:
    """Return a failure with another code, in the body and in the headers."""
    document: Any = as_json(exchange.response_body)
    body = exchange.response_body
    if isinstance(document, dict | list):
        for leaf in walk(document):
            if leaf.value == code and not leaf.is_name:
                document = replace_at(document, leaf.path, other)
        body = json.dumps(document).encode()
    headers = {name: other if text == code else text for name, text in exchange.headers.items()}
    is_same = document == as_json(exchange.response_body) and headers == dict(exchange.headers)
    return exchange if is_same else replace(exchange, headers=headers, response_body=body)


def _error_of(subject: AdapterUnderTest, exchange: RecordedExchange) -> CallError:
    return subject.dialect.decode_error(
        exchange.status, exchange.headers, exchange.response_body, subject.target.provider
    )
