"""Statuses, waiting times, error bodies of many shapes, and what HTTP clients raise."""

import decimal
import json
import ssl
from typing import Any

import pytest
from sabir import errors
from sabir.authoring import ErrorRule
from sabir.authoring.failures import ErrorTable, failure_of, kind_of_status, retry_after
from sabir.contract.scope import DecodeScope
from sabir.errors import CallError, ConnectionFailed, InvalidRequest, Overloaded, RateLimited, ServerFailed
from sabir.vocabulary.settings import Target

TABLE = ErrorTable()
HEADED = ErrorTable(rules=(ErrorRule.by_codes({"busy": Overloaded}),), code_header="x-acme-error")


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"retry-after-ms": "soon", "retry-after": "2"}, 2.0),
        ({"retry-after": "-3"}, 0.0),
        ({"retry-after": "1e400"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "Mon, 02 Jan 2023 00:00:30 GMT", "date": "Mon, 02 Jan 2023 00:00:00 GMT"}, 30.0),
        ({"retry-after": "Mon, 02 Jan 2023 00:00:30 GMT"}, 0.0),
        ({"retry-after": "later"}, None),
        ({}, None),
    ],
)
def test_how_long_to_wait_is_a_number_of_seconds(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers) == seconds


@pytest.mark.parametrize(
    ("status", "kind"),
    [(429, RateLimited), (529, Overloaded), (500, ServerFailed), (599, ServerFailed), (418, InvalidRequest)],
)
def test_a_status_says_what_it_says_by_itself(status: int, kind: type[CallError]) -> None:
    """What the table does not list is the server's fault from 500 on, else the request's."""
    assert kind_of_status(status) is kind


@pytest.mark.parametrize(
    ("body", "message", "status"),
    [
        ({"error": {"message": "no", "code": 429}}, "no", 429),
        ({"error": "no"}, "no", None),
        ([{"error": {"message": "no", "code": 503, "status": "UNAVAILABLE"}}], "no", 503),
        ({"detail": [{"msg": "no"}]}, "no", None),
        ({"message": "no", "code": "bad"}, "no", None),
    ],
)
def test_error_bodies_have_many_shapes(body: Any, message: str, status: int | None) -> None:
    found = failure_of(body)

    assert (found.message, found.status) == (message, status)


def test_a_page_of_html_is_not_shown() -> None:
    said = [str(TABLE.decode(500, {}, body, "acme")) for body in (b" <!doctype html>", b"upstream gone")]
    assert said == ["acme answered 500: a page of HTML", "acme answered 500: upstream gone"]


def test_what_may_show_a_secret_is_not_told() -> None:
    """A header that cannot be sent may hold the key; of other errors the words are told."""
    secret = UnicodeEncodeError("ascii", "Bearer sk-ü", 10, 11, "no ASCII")
    silent, told = TABLE.translate(secret, "acme"), TABLE.translate(ssl.SSLError("old certificate"), "acme")

    assert isinstance(silent, InvalidRequest)
    assert "ü" not in str(silent)
    assert "no ASCII" not in str(silent)
    assert isinstance(told, ConnectionFailed)
    assert "old certificate" in str(told)
    assert TABLE.translate(KeyError("x"), "acme") is None


RULES = (
    ErrorRule.by_words((r"too many", errors.ContextTooLong), at=(400, None)),
    ErrorRule.by_codes({"Slow_Down": errors.RateLimited, "*_spent": errors.QuotaExceeded}),
    ErrorRule.by_status({401: errors.AuthenticationFailed}),
    ErrorRule.by_words((r"model", errors.ModelNotFound)),
    ErrorRule(lambda found, status: errors.Unavailable if found.body.get("again") else None),
    ErrorRule.by_codes({"vague": errors.InvalidRequest}, at=(None,)),
)


@pytest.mark.parametrize(
    ("status", "error", "kind"),
    [
        (400, {"message": "Too many", "code": "slow_down"}, errors.ContextTooLong),
        (429, {"message": "Too many", "code": "SLOW_DOWN"}, RateLimited),
        (400, {"type": "slow_down"}, RateLimited),
        (400, {"code": "a_b_spent", "type": "slow_down"}, errors.QuotaExceeded),
        (401, {"message": "no model"}, errors.AuthenticationFailed),
        (400, {"message": "no model"}, errors.ModelNotFound),
        (400, {"again": True}, errors.Unavailable),
        (500, {"code": "vague"}, ServerFailed),
        (None, {"code": "vague"}, InvalidRequest),
        (None, {"code": "unknown"}, ServerFailed),
        (None, {"code": 429}, RateLimited),
    ],
)
def test_the_first_rule_that_knows_a_failure_counts(status: int | None, error: Any, kind: type[CallError]) -> None:
    table = ErrorTable(rules=RULES, wait=lambda found: 7.0 if "again" in found.body else None)
    if status is None:
        made = table.report(error, DecodeScope(target=Target(provider="acme", dialect="acme.x"), request_id="r-1"))
    else:
        made = table.decode(status, {"retry-after": "2"}, json.dumps({"error": error}).encode(), "acme")

    assert (type(made), made.provider) == (kind, "acme")
    assert made.request_id == ("r-1" if status is None else None)
    assert made.retry_after == (None if status is None else 7.0 if "again" in error else 2.0)


def test_errors_of_an_sdk_are_told_by_their_names() -> None:
    table = ErrorTable(
        modules=("decimal",), raised=(("DivisionByZero", None, ""), ("DecimalException", RateLimited, "waits"))
    )
    found = table.translate(decimal.InvalidOperation("soon"), "acme")

    assert (type(found), str(found)) == (RateLimited, "acme waits (InvalidOperation: soon)")
    assert table.translate(decimal.DivisionByZero("x"), "acme") is None


@pytest.mark.parametrize(
    ("headers", "kind", "code"),
    [
        ({"x-acme-error": "busy"}, Overloaded, "busy"),
        ({"x-acme-error": ""}, InvalidRequest, "bad"),
        ({}, InvalidRequest, "bad"),
    ],
)
def test_a_code_in_a_header_decides_the_class_and_is_kept(
    headers: dict[str, str], kind: type[CallError], code: str
) -> None:
    """The header comes before the code in the body."""
    error = HEADED.decode(400, headers, b'{"code": "bad", "message": "no"}', "acme")

    assert (type(error), error.code) == (kind, code)
