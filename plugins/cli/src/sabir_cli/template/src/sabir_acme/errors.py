"""What Acme's failures are for a caller: its code decides, else the HTTP status.

    {"error": {"code": "too_long", "message": "…"}}        the body of a status ≥ 400, or an event of a stream

Change: CODES, by the page on which the vendor lists its error codes, and the header that holds a request's id.
"""

from collections.abc import Mapping

from sabir import CallError, RateLimited
from sabir.authoring import DecodeScope, Failure, JSONValue, kind_of_status, refusal, reported
from sabir.errors import ContentFiltered, ContextTooLong, Overloaded, QuotaExceeded

CODES: Mapping[str, type[CallError]] = {
    "too_long": ContextTooLong,
    "forbidden_topic": ContentFiltered,
    "no_credit": QuotaExceeded,
    "slow_down": RateLimited,
    "overloaded": Overloaded,
}
REQUEST_ID = "x-request-id"


def decode_error(status: int, headers: Mapping[str, str], body: bytes, provider: str) -> CallError:
    """The error that a response of status ≥ 400 stands for; header names are lower case."""
    return refusal(status, headers, body, provider=provider, kind_of=_kind, request_ids=(REQUEST_ID,))


def report(error: JSONValue, scope: DecodeScope) -> CallError:
    """The error that an `error` object stands for where there is no status: in a stream, or in a body of status 200."""
    return reported(error, provider=scope.target.provider, kind_of=_kind, request_id=scope.request_id)


def _kind(found: Failure, status: int | None) -> type[CallError]:
    return CODES.get(found.code) or kind_of_status(status or 500)
