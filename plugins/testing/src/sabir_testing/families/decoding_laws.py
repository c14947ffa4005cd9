"""The laws of reading: how answers, streams, failures and stored requests of any content are decoded.

invalid_answers    cut JSON, texts, numbers, bytes        invalid_streams    the same, in every framing
mutate             a body with some values changed        odd_headers        headers without useful values
"""

import json
import warnings
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from hypothesis import strategies as st
from sabir import DecodedHistory, Message, PureDialect, dumps, loads
from sabir.authoring import JSONValue, ServerEvent
from sabir.errors import CallError, HistoryInvalid, SabirError
from sabir.reading.incoming import mend

from sabir_testing.histories.directed_answers import (
    INVALID_ANSWERS,
    ODD_HEADERS,
    changed_bodies,
    paths_in,
    replace_at,
)
from sabir_testing.histories.directed_histories import valid_directed
from sabir_testing.histories.random_histories import Strategy, json_values, texts, valid_histories
from sabir_testing.histories.samples import JSON_KINDS, message_by
from sabir_testing.kit.capabilities import FULL, REFUSED
from sabir_testing.kit.cut_replies import cut_replies
from sabir_testing.kit.decoded_recordings import RecordedStream, own_bodies
from sabir_testing.kit.failures import ConformanceFailure, describe_message, expect
from sabir_testing.kit.law_testing import for_all, law
from sabir_testing.kit.suite import AdapterUnderTest, Suite, since_api

INVENTED = ("sol", "luna", "stella")
"""Names of fields that no API has."""
STATUSES = (400, 401, 403, 404, 408, 409, 413, 418, 422, 429, 500, 502, 503, 504, 529, 599)

json_objects: Strategy[dict[str, JSONValue]] = st.dictionaries(st.sampled_from(INVENTED), json_values, max_size=3)
invalid_answers: Strategy[bytes] = st.one_of(
    json_objects.filter(bool).map(lambda value: json.dumps(value).encode()[:-1]),
    st.binary(min_size=1, max_size=20),
    texts.filter(str.strip).map(str.encode),
    (st.booleans() | st.integers() | texts).map(lambda value: json.dumps(value).encode()),
)
odd_headers: Strategy[dict[str, str]] = st.dictionaries(
    st.sampled_from(["content-type", "retry-after", "x-request-id", "date"]), texts, max_size=3
)

SOME_VALUES: tuple[JSONValue, ...] = (None, 7, "x", {"a": [1.5]})
INVENTED_FAILURE: JSONValue = {"error": {"message": "Slow down.", "code": "slow", "details": [{"a": 1}]}}
Chunks = tuple[str | None, list[bytes]]
"""A content type with a framing, and chunks of bytes; or None, and the data of events that need no framing."""
Failure = tuple[int, dict[str, str], JSONValue]
"""Status, headers, and the body as a JSON value."""


def invalid_streams(subject: AdapterUnderTest) -> Strategy[Chunks]:
    """Return a strategy for bytes that no service with this API sends, in each framing and without framing."""
    kinds = [None, "text/event-stream", *subject.dialect.framings]
    return st.tuples(st.sampled_from(kinds), st.lists(invalid_answers, min_size=1, max_size=4))


def directed_streams(subject: AdapterUnderTest) -> Iterator[Chunks]:
    """Yield each of INVALID_ANSWERS as the chunks of a stream, in each framing and without framing."""
    for kind in (None, "text/event-stream", *subject.dialect.framings):
        yield from ((kind, [answer]) for answer in INVALID_ANSWERS)


def failures(subject: AdapterUnderTest) -> Strategy[Failure]:
    """Return a strategy for failures: bodies of the recorded ones and an invented one, with some of their values
    changed, and with any status of STATUSES.
    """
    bodies = [mutate(each, from_depth=2) for each in (*own_bodies(subject, refused=True), INVENTED_FAILURE)]
    return st.tuples(st.sampled_from(STATUSES), odd_headers, st.one_of(bodies))


def directed_failures(subject: AdapterUnderTest) -> Iterator[Failure]:
    """Yield failures with each status, with odd headers, and with one changed value in a body."""
    yield from ((status, {}, INVENTED_FAILURE) for status in STATUSES)
    yield from ((429, dict(headers), INVENTED_FAILURE) for headers in ODD_HEADERS)
    for body in (INVENTED_FAILURE, *own_bodies(subject, refused=True)[:1]):
        yield from ((400, {}, changed) for changed in changed_bodies(body, from_depth=2))


@st.composite
def mutate(draw: Any, value: JSONValue, *, from_depth: int = 0) -> JSONValue:
    """Return the value after up to three replacements of values that are at least `from_depth` levels deep. At depth 0,
    the whole value may be replaced.
    """
    for _ in range(draw(st.integers(0, 3))):
        paths = [path for path in paths_in(value) if len(path) >= from_depth]
        if paths:
            value = replace_at(value, draw(st.sampled_from(paths)), draw(json_values))
    return value


def pure_dialect(subject: AdapterUnderTest) -> PureDialect:
    """Return the author's dialect as `sabir.dialect` wraps it."""
    return PureDialect(subject.dialect, subject.target, subject.provider)


def acceptable_histories(subject: AdapterUnderTest) -> Strategy[list[Message]]:
    """Return a strategy for conversations that every API should accept unchanged."""
    return valid_histories(subject.target, subject.adapter.speaks_as)


def directed_valid(subject: AdapterUnderTest) -> list[list[Message]]:
    """Return conversations that every API should accept unchanged, which are tried before the random ones."""
    return valid_directed(subject.target, subject.adapter.speaks_as)


def read_back(subject: AdapterUnderTest, request: Any) -> DecodedHistory | None:
    """Return what `decode_history` reads from a request; None if it refuses the request."""
    try:
        return pure_dialect(subject).decode_history(request)
    except HistoryInvalid:
        return None


def reads_requests(subject: AdapterUnderTest) -> bool:
    """Return whether the dialect can read stored requests."""
    return read_back(subject, subject.must_render([message_by("user", "Hi.")]).body_bytes) is not None


class DecodingLaws(Suite):
    """The test cases of the family `laws` about decoding."""

    family = "laws"

    @law(lambda subject: invalid_answers, first=lambda subject: INVALID_ANSWERS)
    def test_what_is_no_answer_is_refused(self, subject: AdapterUnderTest, body: bytes) -> None:
        """`decode` raises an error for a body that is not an answer, such as incomplete JSON, text or a number (law
        10).
        """
        try:
            reply = pure_dialect(subject).decode(body)
        except SabirError:
            return
        what = f"decode accepts a body that the API never sends (finish reason {reply.finish_reason!r}); raise an error"
        details = {"the body": body or "(empty)", "the reply": reply.text or "(no text)"}
        raise ConformanceFailure(f"{what}, such as ResponseInvalid", details=details)

    @law(invalid_streams, first=directed_streams)
    def test_what_is_no_stream_ends_no_reply(self, subject: AdapterUnderTest, stream: Chunks) -> None:
        """A stream is complete only after the API's end marker. Other events, and bytes that the framing cannot read,
        never complete a reply (law 10).
        """
        content_type, chunks = stream
        recording = RecordedStream(subject.dialect, replace(subject.scope(), content_type=content_type or ""))
        if content_type is None:
            decoded = recording.decode_events([ServerEvent(each.decode("utf-8", "replace")) for each in chunks])
        else:
            is_text = content_type.startswith("text/event-stream")
            decoded = recording.decode_chunks([b"data: %s\n\n" % each if is_text else each for each in chunks])
        if (reply := decoded.reply) is not None:
            what = f"the decoder returns ReplyEnd (finish reason {reply.finish_reason!r}) without the API's end marker"
            what = f"{what}; return ReplyEnd only for the end marker"
            details = {"the stream": b"\n".join(chunks), "the reply": reply.text or "(no text)"}
            raise ConformanceFailure(what, details=details)

    @since_api(2)
    def test_a_call_that_was_cut_off_never_runs(self, subject: AdapterUnderTest) -> None:
        """If a reply ends at the length limit before the arguments of its last call arrive, the call is marked as
        invalid (`invalid_arguments`) instead of running with default arguments (law 12). `ReplyBuilder` and `Fold` do
        this; a dialect that builds replies itself must do the same.
        """
        for body, reply in cut_replies(subject):
            call = reply.option_calls[-1]
            what = f"a call of {call.call.option_name!r} without arguments would run, although its reply was cut off at"
            what = f"{what} the length limit"
            remedy = "build replies with ReplyBuilder, and pass is_finished=True only if the API says so"
            expect(call.call.invalid_arguments, f"{what}; {remedy}", history=[call], details={"the response": body})

    @law(failures, first=directed_failures)
    def test_every_failure_is_an_error(self, subject: AdapterUnderTest, failure: Failure) -> None:
        """`decode_error` gives a CallError, whatever the fields of the body and the headers contain. Its `status` is
        the response's, or None.
        """
        status, headers, document = failure
        body, _ = mend(json.dumps(document).encode())
        details = {"the headers": headers, "the body": body}
        try:
            error: object = subject.dialect.decode_error(status, headers, body, subject.target.provider)
        except CallError as raised:
            error = raised
        except Exception as raised:
            what = f"decode_error raises {type(raised).__name__} ({raised}) for status {status}; expected a CallError"
            raise ConformanceFailure(what, details=details) from raised
        is_error = isinstance(error, CallError)
        what = f"decode_error returns {error!r} for status {status}; expected a CallError"
        expect(is_error, what, details=details)
        error_status = getattr(error, "status", None)
        what = f"decode_error returns an error with status={error_status} for status {status}; expected {status}"
        expect(error_status in (None, status), what, details=details)

    def test_a_stored_request_reads_back(self, subject: AdapterUnderTest) -> None:
        """What `decode_history` reads from a request that was rendered without losses renders to the same request again
        (law 3).
        """
        if not reads_requests(subject):
            what = "decode_history raises HistoryInvalid for a request of its own dialect"
            subject.grade("stored_requests", REFUSED, what=what)
            return
        check = partial(_check_read_back, subject)
        for_all(subject, acceptable_histories(subject), check, directed_valid(subject))
        subject.grade("stored_requests", FULL)

    def test_what_nobody_knows_in_a_stored_request_is_kept(self, subject: AdapterUnderTest) -> None:
        """A field that `decode_history` does not know is added to the settings or the losses, or the request is refused
        (law 2).
        """
        if reads_requests(subject):
            values: tuple[JSONValue, ...] = (1, "x", {"a": 1}, [True])
            example = st.tuples(acceptable_histories(subject), st.sampled_from(INVENTED), st.sampled_from(values))
            first = ((directed_valid(subject)[0], name, content) for name in INVENTED for content in values)
            for_all(subject, example, lambda drawn: _check_unknown_field(subject, *drawn), first)

    def test_what_is_no_request_is_refused(self, subject: AdapterUnderTest) -> None:
        """`decode_history` raises HistoryInvalid for a JSON object without messages."""

        def check(value: dict[str, JSONValue]) -> None:
            if (decoded := read_back(subject, value)) is not None:
                what = f"decode_history returns {len(decoded.messages)} messages for a JSON object without the field"
                what = f"{what} {subject.dialect.messages_field!r}; raise HistoryInvalid"
                raise ConformanceFailure(what, details={"the object": value})

        if reads_requests(subject):
            for_all(subject, json_objects, check, [{}, *({INVENTED[0]: content} for content in JSON_KINDS.values())])

    def test_what_was_decoded_loads_again(self, subject: AdapterUnderTest) -> None:
        """Messages decoded from a complete answer or from a stored request are equal after saving and loading. This is
        also tried with changed values in the answers and requests.
        """
        own = own_bodies(subject)
        answers = [mutate(each) for each in own]
        first = [("decode", changed) for body in own[:3] for changed in changed_bodies(body, values=SOME_VALUES)]
        bodies = acceptable_histories(subject).map(lambda history: json.loads(subject.must_render(history).body_bytes))
        inputs = {"decode": st.one_of(answers)} if answers else {}
        if reads_requests(subject):
            inputs["decode_history"] = bodies.flatmap(mutate)
            request = json.loads(subject.must_render(directed_valid(subject)[-1]).body_bytes)
            first += [("decode_history", changed) for changed in changed_bodies(request, values=SOME_VALUES)]
        if strategies := [st.tuples(st.just(method), values) for method, values in inputs.items()]:
            for_all(subject, st.one_of(strategies), lambda example: _check_saving(subject, *example), first)


def _check_saving(subject: AdapterUnderTest, method: str, value: JSONValue) -> None:
    """Raise ConformanceFailure unless messages that `decode` or `decode_history` returns can be saved and loaded."""
    try:
        decoded = getattr(pure_dialect(subject), method)(json.dumps(value)).messages
    except SabirError:
        return
    details = {f"the input of {method}": value}
    try:
        with warnings.catch_warnings():  # pydantic's warnings are reported below as faults
            warnings.simplefilter("ignore")
            loaded = loads(dumps(decoded))
    except Exception as error:
        what = f"saving and loading the messages that {method} returns raises {type(error).__name__}: {error}"
        raise ConformanceFailure(what, details=details) from error
    differing = next((at for at, (one, other) in enumerate(zip(decoded, loaded, strict=True), 1) if one != other), 0)
    what = f"message {differing} that {method} returns is not equal to itself after saving and loading"
    expect(not differing, what, history=decoded, details=details)


def _check_read_back(subject: AdapterUnderTest, history: list[Message]) -> None:
    """Raise ConformanceFailure unless `decode_history` converts the request of a history to a history that renders to
    the same request.
    """
    rendering = subject.must_render(history)
    if rendering.losses:
        return  # content that rendering changes cannot be read back unchanged
    try:
        decoded = pure_dialect(subject).decode_history(rendering.body_bytes)
    except HistoryInvalid as error:
        what = f"decode_history raises HistoryInvalid for a request of its own dialect: {error}"
        raise ConformanceFailure(what, history=history, rendering=rendering) from error
    again = subject.render(decoded.messages, decoded.options, decoded.settings)
    expect(
        again is not None and json.loads(again.body_bytes) == json.loads(rendering.body_bytes),
        "the messages, options and settings that decode_history returns for a request render to another request",
        history=history,
        rendering=rendering,
        losses=decoded.losses,
        details={
            "what decode_history returned": "\n".join(map(describe_message, decoded.messages)),
            "the other request": again.body_bytes if again else "nothing",
        },
    )


def _check_unknown_field(subject: AdapterUnderTest, history: list[Message], name: str, value: JSONValue) -> None:
    """Raise ConformanceFailure if `decode_history` ignores an unknown field of a request."""
    body = {**json.loads(subject.must_render(history).body_bytes), name: value}
    if (decoded := read_back(subject, body)) is None:
        return
    loss_paths = [loss.path for loss in decoded.losses]
    fields = decoded.settings.extra_body_json, decoded.settings.extra_body_for_json, decoded.settings.vendor_json
    what = f"decode_history ignores the unknown field {name!r} of a request; add the field to settings.extra_body"
    details = {"the request": body, "what decode_history returned": [*map(describe_message, decoded.messages)]}
    expect(any(name in text for text in (*loss_paths, *fields)), what, losses=decoded.losses, details=details)
