"""Cohere's errors: what each status and each text is for a caller. https://docs.cohere.com/reference/errors

    {"id"?, "message"} ──decode_error──▶ CallError        the words decide, else the status

The vendor has no codes. Errors of the HTTP client need no table of this wire: `authoring.failures` knows them.
"""

from collections.abc import Mapping

from sabir.authoring import (
    DecodeScope,
    Failure,
    JSONValue,
    compile_words,
    kind_of_status,
    kind_of_words,
    refusal,
    reported,
)
from sabir.errors import CallError, ConnectionFailed, ContentFiltered, ContextTooLong, InvalidRequest, QuotaExceeded

_STATUSES: Mapping[int, type[CallError]] = {498: ContentFiltered, 499: ConnectionFailed}
"""Statuses of this vendor alone: a text holds a token that is not allowed; the request was cancelled."""
_WORDS = compile_words(
    (r"max tokens must be", InvalidRequest),
    (r"too many tokens", ContextTooLong),
    (r"limited to [\d,]+ api calls / month", QuotaExceeded),
)


def _kind(found: Failure, status: int | None) -> type[CallError]:
    status = status or 500
    by_words = kind_of_words(found.message, _WORDS) if status in (400, 422, 429) else None
    return by_words or _STATUSES.get(status) or kind_of_status(status)


def decode_error(status: int, headers: Mapping[str, str], body: bytes, provider: str) -> CallError:
    """The error that a response of status ≥ 400 stands for; header names are lower case."""
    return refusal(status, headers, body, provider=provider, kind_of=_kind, request_ids=("x-debug-trace-id",))


def report(error: JSONValue, scope: DecodeScope) -> CallError:
    """The error that came with status 200, or in a stream."""
    return reported(error, provider=scope.target.provider, kind_of=_kind, request_id=scope.request_id)
