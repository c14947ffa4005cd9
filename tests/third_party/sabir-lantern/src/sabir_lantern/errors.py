"""Lantern's failures → sabir's error classes.

    400, x-lantern-error: too_long, "the talk has 9 words too many"     the code is a header, the body is plain text
    {"is": "fail", "code": "too_long", "text": "…"}                     a failure within a stream

An unknown code gets the class of the HTTP status.
"""

from collections.abc import Mapping

from sabir import RateLimited
from sabir.authoring import ErrorRule, ErrorTable, Failure, Fields
from sabir.errors import (
    AuthenticationFailed,
    CallError,
    ContentFiltered,
    ContextTooLong,
    InvalidRequest,
    ModelNotFound,
    Overloaded,
    QuotaExceeded,
)

HEADER = "x-lantern-error"
CODES = {
    "bad_signature": AuthenticationFailed,
    "unknown_key": AuthenticationFailed,
    "no_such_model": ModelNotFound,
    "bad_request": InvalidRequest,
    "too_long": ContextTooLong,
    "not_allowed": ContentFiltered,
    "no_oil": QuotaExceeded,
    "slow_down": RateLimited,
    "crowded": Overloaded,
}


def _by_header(reported: Failure, status: int | None) -> type[CallError] | None:
    return CODES.get(reported.headers.get(HEADER, ""))


ERRORS = ErrorTable(rules=(ErrorRule(_by_header), ErrorRule.by_codes(CODES)))


def decode_error(status: int, headers: Mapping[str, str], body: bytes, provider: str) -> CallError:
    """Return the CallError for a response with a status of 400 or more. Its `code` is the code in the header, because
    the body has none.
    """
    error = ERRORS.decode(status, headers, body, provider)
    error.code = headers.get(HEADER) or error.code
    return error


def failure(fields: Fields) -> Fields:
    """Return the error object that `ERRORS.report` reads, for an event `fail`."""
    return {"code": fields.get("code"), "message": fields.get("text")}
