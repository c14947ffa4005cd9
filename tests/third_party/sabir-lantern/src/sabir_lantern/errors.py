"""Lantern's failures → sabir's error classes.

    400, x-lantern-error: too_long, "the talk has 9 words too many"     the code is a header, the body is plain text
    {"is": "fail", "code": "too_long", "text": "…"}                     a failure within a stream

An unknown code gets the class of the HTTP status.
"""

import json
from collections.abc import Mapping

from sabir import RateLimited
from sabir.authoring import ErrorRule, ErrorTable, Fields
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
ERRORS = ErrorTable(rules=(ErrorRule.by_codes(CODES),))


def decode_error(status: int, headers: Mapping[str, str], body: bytes, provider: str) -> CallError:
    """Return the CallError for a response with a status of 400 or more.

    The rules of an ErrorTable do not see headers, so the code and the text are put into the JSON that the table reads.
    A body without the header, such as a proxy's page, is passed on unchanged.
    """
    if code := headers.get(HEADER):
        error = {"code": code, "message": body.decode("utf-8", "replace")}
        body = json.dumps({"error": error}).encode()
    return ERRORS.decode(status, headers, body, provider)


def failure(fields: Fields) -> Fields:
    """Return the error object that `ERRORS.report` reads, for an event `fail`."""
    return {"code": fields.get("code"), "message": fields.get("text")}
