"""The error table of Google's APIs. The first rule of ERRORS that matches decides.

Google sends the time to wait and the kind of a limit in the error's details, not in headers.
https://ai.google.dev/gemini-api/docs/troubleshooting and https://docs.cloud.google.com/apis/design/errors
"""

import re
from collections.abc import Iterator

from sabir import errors
from sabir.authoring import ErrorRule, ErrorTable, Failure, Fields, list_or_empty, object_or_empty, text_or_empty

_EXACT = {
    errors.CallTimedOut: "DEADLINE_EXCEEDED",
    errors.ServerFailed: "INTERNAL",
    errors.ModelNotFound: "NOT_FOUND",
    errors.PermissionDenied: "PERMISSION_DENIED",
    errors.RateLimited: "RESOURCE_EXHAUSTED",
    errors.AuthenticationFailed: "UNAUTHENTICATED",
}
"""Error class → Google's name of the status that means this class, unless the details or a text about credits say more.
"""
_VAGUE = {
    errors.Unavailable: "ABORTED CANCELLED UNAVAILABLE",
    errors.InvalidRequest: "FAILED_PRECONDITION INVALID_ARGUMENT OUT_OF_RANGE",
}
"""Error class → Google's names of statuses that mean this class unless the error's text says more."""
_WORDS = ErrorRule.by_words(
    (r"input token count|number of tokens allowed|maximum number of tokens", errors.ContextTooLong),
    (r"context (length|window|size)", errors.ContextTooLong),  # from servers with this API for other models
    (r"api[ _]key (not valid|expired|not found)", errors.AuthenticationFailed),
    (r"payload size exceeds", errors.RequestTooLarge),
    (r"overloaded|experiencing high demand", errors.Overloaded),
    at=(400, 409, 422, 499, 503),
)
_KEY_REASONS = frozenset({"API_KEY_INVALID", "ACCESS_TOKEN_EXPIRED", "CREDENTIALS_MISSING"})
"""Reasons, in the details of an error, that mean an invalid key or token."""
_DELAY = re.compile(r"(\d{1,9}(?:\.\d+)?)s")


def _kind_by_details(failure: Failure, status: int | None) -> type[errors.CallError] | None:
    """Return the error class for an invalid key or an exceeded daily limit, by the error's details; None for others."""
    if any(text_or_empty(detail.get("reason")) in _KEY_REASONS for detail in _details(failure, "ErrorInfo")):
        return errors.AuthenticationFailed
    limits = (
        limit for detail in _details(failure, "QuotaFailure") for limit in list_or_empty(detail.get("violations"))
    )
    is_daily = any("PerDay" in text_or_empty(object_or_empty(limit).get("quotaId")) for limit in limits)
    return errors.QuotaExceeded if is_daily else None


def _details(failure: Failure, name: str) -> Iterator[Fields]:
    for detail in map(object_or_empty, list_or_empty(failure.body.get("details"))):
        if text_or_empty(detail.get("@type")).endswith(f".{name}"):
            yield detail


def _retry_delay(failure: Failure) -> float | None:
    """Return the seconds to wait before a retry, from the detail RetryInfo; None without it."""
    delays = (_DELAY.fullmatch(text_or_empty(detail.get("retryDelay"))) for detail in _details(failure, "RetryInfo"))
    return next((float(delay[1]) for delay in delays if delay), None)


SETTINGS = {
    "temperature": "temperature",
    "topP": "top_p",
    "top_p": "top_p",
    "seed": "seed",
    "stopSequences": "stop",
    "stop_sequences": "stop",
    "thinking": "reasoning_effort",
    "thinkingLevel": "reasoning_effort",
    "thinking_level": "reasoning_effort",
    "thinkingBudget": "reasoning_effort",
    "thinking_budget": "reasoning_effort",
    "functionCallingConfig": "option_choice",
    "function_calling_config": "option_choice",
    "responseJsonSchema": "response_format",
    "response_json_schema": "response_format",
}
"""Request parameter, as errors name it → the neutral setting that is sent in it."""
ERRORS = ErrorTable(
    rules=(
        ErrorRule(_kind_by_details),
        ErrorRule.by_words((r"spending cap|credits are depleted", errors.QuotaExceeded)),
        ErrorRule.by_codes({code: kind for kind, codes in _EXACT.items() for code in codes.split()}),
        _WORDS,
        ErrorRule.by_codes({code: kind for kind, codes in _VAGUE.items() for code in codes.split()}),
    ),
    modules=("google.auth.exceptions",),
    raised=(
        (
            "TransportError",
            errors.ConnectionFailed,
            "got no token, because Google cannot be reached; check the network",
        ),
        ("GoogleAuthError", errors.AuthenticationFailed, "got no token from Google; check the client's credentials"),
    ),
    settings=SETTINGS,
    wait=_retry_delay,
)
