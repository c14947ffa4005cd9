"""Errors: how the dialect converts statuses, headers and error bodies to errors, and how it refuses invalid bodies."""

import re
from collections.abc import Iterator, Mapping
from typing import ClassVar, TypeAlias

import pytest
from sabir import CallError, errors
from sabir.authoring import FrozenDict, JSONValue

from sabir_testing.kit.asking import WHOLE
from sabir_testing.kit.failures import ConformanceFailure, expect
from sabir_testing.kit.service import OWN_ID, AnswerCases, Service
from sabir_testing.kit.suite import AdapterUnderTest
from sabir_testing.reading import as_json, texts

Headers: TypeAlias = Mapping[str, str]
NO_HEADERS: Headers = FrozenDict()
PAGE = b"<!DOCTYPE html><html><head><title>Proxy</title></head><body><h1>Proxy</h1></body></html>"
"""The page of a proxy or gateway in front of a service, which says nothing about the cause."""
STATUSES: Mapping[int, tuple[type[CallError], ...]] = {
    400: (errors.InvalidRequest,),
    401: (errors.AuthenticationFailed,),
    403: (errors.PermissionDenied, errors.AuthenticationFailed),
    404: (errors.ModelNotFound,),
    408: (errors.CallTimedOut,),
    413: (errors.RequestTooLarge, errors.InvalidRequest),
    422: (errors.InvalidRequest,),
    429: (errors.RateLimited,),
    500: (errors.ServerFailed,),
    502: (errors.ServerFailed, errors.Unavailable),
    503: (errors.Unavailable, errors.Overloaded, errors.ServerFailed),
    504: (errors.ServerFailed, errors.Unavailable, errors.CallTimedOut),
    529: (errors.Overloaded, errors.Unavailable, errors.ServerFailed),
}
"""Status → the error classes that are accepted for a body without information."""
SENTENCE = "kit: nobody can answer now"
"""The text of an error event."""
RETRYABLE = (408, 429, 500, 502, 503, 504, 529)
"""Statuses after which the same request may succeed."""
ERROR_BODIES: Mapping[str, bytes] = {
    "empty": b"",
    "words": b"Service is down for maintenance",
    "not_unicode": b"\xff\xfe{\x00",
    "null": b"null",
    "number": b"503",
    "list": b"[]",
    "object": b"{}",
    "null_error": b'{"error": null}',
    "text_error": b'{"error": "no"}',
    "other_types": b'{"error": {"message": {"is": 1}, "code": [1], "type": 5, "status": {}}, "type": ["x"]}',
}
"""Possible bodies of an error response, documented or not."""
MESSAGE_FIELD = re.compile(r"(message|msg|error|errors|detail|details|description|title)$", re.IGNORECASE)
"""Names of fields that contain the message of an error, which may be one word, such as "overloaded"."""
INVALID_BODIES: Mapping[str, bytes] = {
    "empty": b"",
    "page": PAGE,
    "words": b"OK",
    "not_unicode": b"\xff\xfe{\x00",
    "null": b"null",
    "number": b"200",
    "list": b"[]",
    "object": b"{}",
}
"""Bodies with status 200 that are not an answer of any service."""


class ErrorCases(AnswerCases):
    """The test cases of the family `errors`."""

    family: ClassVar[str] = "errors"

    @pytest.mark.parametrize("status", STATUSES)
    def test_a_status_says_what_failed(self, subject: AdapterUnderTest, status: int) -> None:
        """If the body is a proxy's page without information, the status decides the error class. A class that
        `sabir.authoring.failures.STATUSES` names for the status passes; for some statuses others pass too.
        """
        error = _decode_error(subject, status)
        names = " or ".join(kind.__name__ for kind in STATUSES[status])
        # the library's own class: a plugin may derive from it
        error_class = next(kind for kind in type(error).__mro__ if kind.__module__ == CallError.__module__)
        what = f"decode_error returns {error_class.__name__} for status {status} with an HTML page as the body"
        expect(error_class in STATUSES[status], f"{what}; expected {names}", details={"the error": str(error)})

    def test_a_refusal_keeps_its_status(self, subject: AdapterUnderTest) -> None:
        """`error.status` is the HTTP status of the response."""
        for status in STATUSES:
            error_status = _decode_error(subject, status).status
            what = f"the error that decode_error returns for status {status} has status={error_status!r}"
            expect(error_status == status, f"{what}; expected {status}")

    def test_a_refusal_says_whether_to_send_again(self, subject: AdapterUnderTest) -> None:
        """`error.retryable` is True for temporary failures (408, 429, 500, 502, 503, 504 and 529) and False for the
        other statuses that are tested. Core never retries an error whose `retryable` is False.
        """
        for status in STATUSES:
            retryable, expected = _decode_error(subject, status).retryable, status in RETRYABLE
            what = f"the error that decode_error returns for status {status} has retryable={retryable}"
            expect(retryable == expected, f"{what}; expected {expected}")

    def test_a_wait_in_seconds_is_kept(self, subject: AdapterUnderTest) -> None:
        """The header `retry-after: 7` gives `error.retry_after == 7.0`, and core waits that long before a retry, unless
        that is over `RetryPolicy.longest_retry_after`.
        """
        for status in (429, 503):
            seconds = _decode_error(subject, status, {"retry-after": "7"}).retry_after
            what = f"for status {status} with the header 'retry-after: 7', decode_error returns an error with"
            expect(seconds == 7.0, f"{what} retry_after={seconds!r}; expected 7.0")

    def test_a_wait_until_a_date_is_kept(self, subject: AdapterUnderTest) -> None:
        """If `retry-after` is an HTTP date (RFC 9110, 10.2.3), `error.retry_after` is the number of seconds from the
        response's `date` to it.
        """
        headers = {"date": "Wed, 11 Mar 2026 10:00:00 GMT", "retry-after": "Wed, 11 Mar 2026 10:00:30 GMT"}
        seconds = _decode_error(subject, 429, headers).retry_after
        what = "for a retry-after date that is 30 seconds after the header `date`, the error that decode_error returns"
        expect(seconds == 30.0, f"{what} has retry_after={seconds!r}; expected 30.0", details={"the headers": headers})

    def test_a_refusal_names_its_provider(self, subject: AdapterUnderTest) -> None:
        """`error.provider` and the message name the provider passed to `decode_error`, because one dialect serves many
        gateways.
        """
        error = _decode_error(subject, 429, provider="gateway_of_the_kit")
        name = "gateway_of_the_kit"
        what = f"decode_error was called with provider={name!r}, but returns an error"
        expect(error.provider == name, f"{what} with provider={error.provider!r}; pass the argument on")
        expect(name in str(error), f"{what} whose message does not contain that name: {error}")

    @pytest.mark.parametrize("body", ERROR_BODIES)
    def test_a_refusal_of_any_body_is_an_error(self, subject: AdapterUnderTest, body: str) -> None:
        """`decode_error` returns an error for any body, and raises nothing itself. Proxies and gateways send their own
        pages (law 10).
        """
        _decode_error(subject, 502, body=ERROR_BODIES[body])

    @pytest.mark.parametrize("body", INVALID_BODIES)
    def test_what_is_no_answer_is_no_reply(self, subject: AdapterUnderTest, body: str) -> None:
        """A body with status 200 that does not follow the API format raises an error. An empty reply would look like a
        model without an answer (law 10).
        """
        _check_no_reply(subject, INVALID_BODIES[body], repr(INVALID_BODIES[body]))

    def test_half_an_answer_is_no_reply(self, service: Service) -> None:
        """The first half of the recorded answer to the question `text` raises an error instead of giving a partial
        reply (law 10).
        """
        body = service.answer("text", WHOLE).exchanges[-1].response_body
        _check_no_reply(service.subject, body[: len(body) // 2], "the first half of the recorded response to 'text'")

    def test_an_error_says_what_the_vendor_said(self, service: Service) -> None:
        """If the body of a recorded failure contains texts of several words, the error's message contains one of them,
        or its first 60 characters. This is the vendor's message, which often names the field, the limit or the model.
        """
        for name, status, body in _recorded_failures(service):
            error = _decode_error(service.subject, status, body=body)
            sentences = [leaf.strip(" .")[:60] for leaf in texts(as_json(body)) if " " in leaf.strip()]
            words = " ".join(str(error).split())
            is_quoted = not sentences or any(" ".join(sentence.split()) in words for sentence in sentences)
            what = f"decode_error of the recorded failure {name!r} returns an error without the service's message"
            what = f"{what}: {error}"
            expect(is_quoted, what, details={"the response": body})

    def test_an_error_keeps_the_vendors_code(self, service: Service) -> None:
        """`error.code` is the vendor's code for the failure, if the body has one. An id of the request is not a code,
        and neither is a message of one word.
        """
        for name, status, body in _recorded_failures(service):
            error = _decode_error(service.subject, status, body=body)
            fields = [
                (field, leaf) for field, leaf in _named_texts(_without_ids(as_json(body))) if " " not in leaf.strip()
            ]
            codes = [leaf for field, leaf in fields if not MESSAGE_FIELD.search(field)]
            is_kept = error.code in codes if codes else error.code in (None, *(leaf for _, leaf in fields))
            what = f"decode_error of the recorded failure {name!r} returns an error with code={error.code!r}; expected"
            expect(is_kept, f"{what} the vendor's code from the body", details={"the response": body})

    def test_an_error_that_comes_as_an_answer_is_read(self, service: Service) -> None:
        """If a body with status 200 reports an error, `decode` raises a CallError for it that is not just
        ResponseInvalid. This is tested with recorded failures whose body is JSON or, if there are none, with the
        suite's `error_event`.
        """
        failures = [(name, body) for name, _, body in _recorded_failures(service)]
        if not failures and (event := service.suite.error_event(SENTENCE)) is not None:
            failures = [("error_event", event.data.encode())] if isinstance(as_json(event.data), Mapping) else []
        for name, body in failures:
            details = {"the body": body}
            try:
                reply: object = service.subject.dialect.decode(body, service.subject.scope())
            except Exception as raised:
                kind = type(raised).__name__
                what = f"decode raises {kind} ({raised}) for the error body of {name!r} with status 200"
                is_read = isinstance(raised, CallError) and type(raised) is not errors.ResponseInvalid
                expect(is_read, f"{what}; expected the error that the body reports", details=details)
                continue
            what = f"decode returns {reply!r} for the error body of {name!r} with status 200; raise the error that the"
            raise ConformanceFailure(f"{what} body reports", details=details)


def _named_texts(document: JSONValue, name: str = "") -> Iterator[tuple[str, str]]:
    """Yield every text and number of a body, as a text, with the name of its field."""
    if isinstance(document, str | int) and not isinstance(document, bool):
        yield name, str(document)
    elif isinstance(document, Mapping):
        for field, each in document.items():
            yield from _named_texts(each, field)
    elif isinstance(document, list | tuple):
        for each in document:
            yield from _named_texts(each, name)


def _without_ids(value: JSONValue) -> JSONValue:
    """Return a body without the ids of requests and errors."""
    if isinstance(value, Mapping):
        return {name: _without_ids(each) for name, each in value.items() if not OWN_ID.search(name)}
    return [_without_ids(each) for each in value] if isinstance(value, list | tuple) else value


def _decode_error(
    subject: AdapterUnderTest, status: int, headers: Headers = NO_HEADERS, *, body: bytes = PAGE, provider: str = ""
) -> CallError:
    """Return the error for a response. Raises ConformanceFailure if `decode_error` raises or returns no error."""
    call = f"for a response with status {status} and the body {body!r}"
    try:
        error: object = subject.dialect.decode_error(status, headers, body, provider or subject.target.provider)
    except Exception as raised:
        what = f"decode_error raises {type(raised).__name__} ({raised}) {call}; expected a returned CallError"
        raise ConformanceFailure(what) from None
    if not isinstance(error, CallError):
        raise ConformanceFailure(f"decode_error returns {error!r} {call}; expected a CallError")
    return error


def _check_no_reply(subject: AdapterUnderTest, body: bytes, name: str) -> None:
    """Raise ConformanceFailure if `decode` returns a reply for this body. `name` describes the body."""
    try:
        reply = subject.dialect.decode(body, subject.scope())
    except Exception:  # core converts any exception to ResponseInvalid
        return
    what = f"decode returns a reply for {name} with status 200; raise ResponseInvalid"
    raise ConformanceFailure(what, details={"the reply's text": repr(reply.text)})


def _recorded_failures(service: Service) -> list[tuple[str, int, bytes]]:
    """Return the recorded failures whose body is JSON."""
    failures = [(name, exchange.status, exchange.response_body) for name, exchange in service.failures()]
    return [(name, status, body) for name, status, body in failures if not isinstance(as_json(body), str)]
