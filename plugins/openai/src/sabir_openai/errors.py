"""The error table of OpenAI and of the endpoints that speak its dialects: what each failure is for a caller.

    status, headers, body ──decode_error──▶ CallError        the code decides, else the words, else the status
    an `error` object in a body or stream ──report──▶ CallError
    what the SDK or its HTTP client raised ──translate──▶ CallError, without importing either

Codes: https://developers.openai.com/api/docs/guides/error-codes, and those of Azure, llama.cpp and others beside it.
"""

import re
from collections.abc import Mapping
from typing import Any

from sabir.authoring import (
    Failure,
    JSONValue,
    compile_words,
    is_a,
    kind_of_status,
    kind_of_words,
    refusal,
    reported,
    translate_raised,
    unwrapped,
)
from sabir.errors import (
    AuthenticationFailed,
    CallError,
    ContentFiltered,
    ContextTooLong,
    InvalidRequest,
    ModelNotFound,
    Overloaded,
    PermissionDenied,
    QuotaExceeded,
    RateLimited,
    ServerFailed,
)

_CODES: Mapping[str, type[CallError]] = {
    "context_length_exceeded": ContextTooLong,
    "exceed_context_size_error": ContextTooLong,
    "context_window_exceeded": ContextTooLong,
    "insufficient_quota": QuotaExceeded,
    "billing_hard_limit_reached": QuotaExceeded,
    "billing_not_active": QuotaExceeded,
    "content_filter": ContentFiltered,
    "content_policy_violation": ContentFiltered,
    "image_content_policy_violation": ContentFiltered,
    "invalid_prompt": ContentFiltered,
    "bio_policy": ContentFiltered,
    "misalignment_policy_violation": ContentFiltered,
    "responsibleaipolicyviolation": ContentFiltered,
    "invalid_api_key": AuthenticationFailed,
    "authentication_error": AuthenticationFailed,
    "permission_error": PermissionDenied,
    "model_not_found": ModelNotFound,
    "deploymentnotfound": ModelNotFound,
    "rate_limit_exceeded": RateLimited,
    "rate_limit_error": RateLimited,
    "ratelimitreached": RateLimited,
    "overloaded_error": Overloaded,
    "server_error": ServerFailed,
    "vector_store_timeout": ServerFailed,
}
_WORDS = compile_words(
    (r"context (length|window|size)|prompt is too long|maximum (input|prompt) length", ContextTooLong),
    (r"insufficient (balance|credit|quota|funds)|exceeded your current quota|out of credits", QuotaExceeded),
    (r"content management policy|input was flagged|flagged as potentially", ContentFiltered),
    (r"model\b.{0,80}\b(not found|does not exist|is not available)", ModelNotFound),
)
_INPUT_CODES = re.compile(r"image|data_residency_mismatch")
"""Codes of a failed response, which has no status, that blame what was sent."""
_SDK = ("openai",)
_REQUEST_IDS = ("x-request-id", "apim-request-id", "request-id")


def decode_error(status: int, headers: Mapping[str, str], body: bytes, provider: str) -> CallError:
    """The error that a response of status ≥ 400 stands for; header names are lower case."""
    return refusal(status, headers, body, provider=provider, kind_of=_kind, request_ids=_REQUEST_IDS)


def report(error: JSONValue, *, provider: str, request_id: str | None = None) -> CallError:
    """The error that an `error` object stands for, where it came with status 200 or in a stream."""
    return reported(error, provider=provider, kind_of=_kind, request_id=request_id)


def _kind(found: Failure, status: int | None) -> type[CallError]:
    if status == 503 and "overloaded" in found.message.lower():
        return Overloaded  # its type says no more than that the server failed
    for word in (found.code.lower(), found.kind.lower()):
        if word in _CODES:
            return _CODES[word]
        if word.endswith("_spend_limit_exceeded"):
            return QuotaExceeded
    if status not in (401, 413) and (kind := kind_of_words(found.message, _WORDS)):
        return kind
    if status is None:
        is_ours = found.kind == "invalid_request_error" or _INPUT_CODES.search(found.code)
        return InvalidRequest if is_ours else ServerFailed
    return kind_of_status(status)


def translate(error: BaseException, provider: str) -> CallError | None:
    """The library error for what the SDK or its HTTP client raised; None for what is not the wire's."""
    if is_a(error, "APIStatusError", _SDK):
        response: Any = error.response  # type: ignore[attr-defined]
        return decode_error(response.status_code, dict(response.headers), response.content, provider)
    error = unwrapped(error, *_SDK)
    return translate_raised(error, provider, _SDK)
