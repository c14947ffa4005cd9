"""Lantern's failures → sabir's error classes.

    400, x-lantern-error: too_long, "the talk has 9 words too many"     the code is a header, the body is plain text
    {"is": "fail", "code": "too_long", "text": "…"}                     a failure within a stream

An unknown code gets the class of the HTTP status.
"""

from sabir import RateLimited
from sabir.authoring import ErrorRule, ErrorTable, Fields
from sabir.errors import (
    AuthenticationFailed,
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


ERRORS = ErrorTable(rules=(ErrorRule.by_codes(CODES),), code_header=HEADER)


def failure(fields: Fields) -> Fields:
    """Return the error object that `ERRORS.report` reads, for an event `fail`."""
    return {"code": fields.get("code"), "message": fields.get("text")}
