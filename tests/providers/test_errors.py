"""The error tables: what each failure of a vendor, of a cloud or of a compatible endpoint is for a caller."""

import json
from typing import Any

import anthropic
import google.auth.exceptions
import httpx2
import openai
import pytest
import sabir
from sabir.errors import (
    AuthenticationFailed,
    CallError,
    CallTimedOut,
    ConnectionFailed,
    ContentFiltered,
    ContextTooLong,
    InvalidRequest,
    ModelNotFound,
    Overloaded,
    PermissionDenied,
    QuotaExceeded,
    RateLimited,
    RequestTooLarge,
    ServerFailed,
    Unavailable,
)
from sabir_testing.loopback import Server, whole

from tests.providers.wires import connection_of, refused

CLAUDE, GEMINI, CHAT = "anthropic.messages", "google.generate_content", "openai.chat"


def claude(kind: str, message: str = "no") -> dict[str, Any]:
    return {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_1"}


def gemini(code: int, status: str, message: str = "m", *details: dict[str, Any]) -> dict[str, Any]:
    return {"error": {"code": code, "message": message, "status": status, "details": list(details)}}


def detail(name: str, **fields: Any) -> dict[str, Any]:
    return {"@type": f"type.googleapis.com/google.rpc.{name}", **fields}


def gpt(message: str = "m", code: Any = None, kind: str | None = None) -> dict[str, Any]:
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


MINUTE = detail("QuotaFailure", violations=[{"quotaId": "RequestsPerMinutePerProject"}])
DAY = detail("QuotaFailure", violations=[{"quotaId": "RequestsPerDayPerProject-FreeTier"}])
WORDS: list[tuple[str, int, Any, type[CallError]]] = [
    (CLAUDE, 400, claude("invalid_request_error", "messages: at least one is required"), InvalidRequest),
    (CLAUDE, 400, claude("invalid_request_error", "prompt is too long: 21 tokens"), ContextTooLong),
    (CLAUDE, 400, claude("invalid_request_error", "length and `max_tokens` exceed context limit"), ContextTooLong),
    (CLAUDE, 400, claude("invalid_request_error", "Your credit balance is too low to access the API"), QuotaExceeded),
    (CLAUDE, 400, claude("invalid_request_error", "You have reached your specified API usage limits"), QuotaExceeded),
    (CLAUDE, 400, claude("invalid_request_error", "Output blocked by content filtering policy"), ContentFiltered),
    (CLAUDE, 401, claude("authentication_error", "invalid x-api-key"), AuthenticationFailed),
    (CLAUDE, 402, claude("billing_error"), QuotaExceeded),
    (CLAUDE, 403, claude("permission_error"), PermissionDenied),
    (CLAUDE, 404, claude("not_found_error", "model: claude-9"), ModelNotFound),
    (CLAUDE, 408, claude("request_timeout"), CallTimedOut),
    (CLAUDE, 413, claude("request_too_large", "Request exceeds the maximum size"), RequestTooLarge),
    (CLAUDE, 429, claude("rate_limit_error", "would exceed your organization's rate limit of 10 tokens"), RateLimited),
    (CLAUDE, 500, claude("api_error", "Internal server error"), ServerFailed),
    (CLAUDE, 503, claude("of 2030"), Unavailable),
    (CLAUDE, 503, claude("of 2030", "Overloaded"), Overloaded),
    (CLAUDE, 504, claude("timeout_error"), CallTimedOut),
    (CLAUDE, 529, claude("overloaded_error", "Overloaded"), Overloaded),
    # Clouds and proxies, without the vendor's envelope
    (CLAUDE, 400, {"message": "Input is too long for requested model."}, ContextTooLong),
    (CLAUDE, 400, {"message": "The provided model identifier is invalid."}, InvalidRequest),
    (CLAUDE, 403, {"message": "The security token included in the request is invalid."}, PermissionDenied),
    (CLAUDE, 429, {"message": "Too many tokens, please wait before trying again."}, RateLimited),
    (CLAUDE, 503, {"message": "Service unavailable"}, Unavailable),
    (GEMINI, 400, gemini(400, "INVALID_ARGUMENT"), InvalidRequest),
    (GEMINI, 400, gemini(400, "FAILED_PRECONDITION"), InvalidRequest),
    (GEMINI, 401, gemini(401, "UNAUTHENTICATED"), AuthenticationFailed),
    (GEMINI, 403, gemini(403, "PERMISSION_DENIED"), PermissionDenied),
    (GEMINI, 404, gemini(404, "NOT_FOUND"), ModelNotFound),
    (GEMINI, 429, gemini(429, "RESOURCE_EXHAUSTED"), RateLimited),
    (GEMINI, 499, gemini(499, "CANCELLED"), Unavailable),
    (GEMINI, 500, gemini(500, "INTERNAL"), ServerFailed),
    (GEMINI, 503, gemini(503, "UNAVAILABLE"), Unavailable),
    (GEMINI, 504, gemini(504, "DEADLINE_EXCEEDED"), CallTimedOut),
    (GEMINI, 400, gemini(400, "INVALID_ARGUMENT", "The input token count (9) exceeds the maximum number"),
     ContextTooLong),
    (GEMINI, 400, gemini(400, "INVALID_ARGUMENT", "API key not valid. Pass a valid API key."), AuthenticationFailed),
    (GEMINI, 400, gemini(400, "INVALID_ARGUMENT", "API key expired. Please renew the API key."), AuthenticationFailed),
    (GEMINI, 400, gemini(400, "INVALID_ARGUMENT", "no", detail("ErrorInfo", reason="API_KEY_INVALID")),
     AuthenticationFailed),
    (GEMINI, 400, gemini(400, "INVALID_ARGUMENT", "Request payload size exceeds the limit: 20971520 bytes."),
     RequestTooLarge),
    (GEMINI, 503, gemini(503, "UNAVAILABLE", "The model is overloaded."), Overloaded),
    (GEMINI, 503, gemini(503, "UNAVAILABLE", "This model is currently experiencing high demand."), Overloaded),
    (GEMINI, 429, gemini(429, "RESOURCE_EXHAUSTED", "m", MINUTE), RateLimited),
    (GEMINI, 429, gemini(429, "RESOURCE_EXHAUSTED", "m", MINUTE, DAY), QuotaExceeded),
    (GEMINI, 429, gemini(429, "RESOURCE_EXHAUSTED", "Your project exceeded its monthly spending cap."), QuotaExceeded),
    (GEMINI, 429, gemini(429, "RESOURCE_EXHAUSTED", "credits are depleted."), QuotaExceeded),
    (GEMINI, 429, [gemini(429, "RESOURCE_EXHAUSTED")], RateLimited),  # as a stream that never began answers
    (CHAT, 400, gpt(code="context_length_exceeded"), ContextTooLong),
    (CHAT, 429, gpt(code="insufficient_quota", kind="insufficient_quota"), QuotaExceeded),
    (CHAT, 429, gpt(code="billing_hard_limit_reached"), QuotaExceeded),
    (CHAT, 429, gpt(code="project_spend_limit_exceeded"), QuotaExceeded),
    (CHAT, 429, gpt(code="rate_limit_exceeded"), RateLimited),
    (CHAT, 400, gpt(code="content_filter"), ContentFiltered),
    (CHAT, 400, gpt(code="content_policy_violation"), ContentFiltered),
    (CHAT, 404, gpt(code="model_not_found", kind="invalid_request_error"), ModelNotFound),
    (CHAT, 404, gpt("This is not a chat model", kind="invalid_request_error"), ModelNotFound),
    (CHAT, 401, gpt(code="invalid_api_key", kind="invalid_request_error"), AuthenticationFailed),
    (CHAT, 400, gpt(code="unsupported_parameter", kind="invalid_request_error"), InvalidRequest),
    (CHAT, 503, gpt("The engine is currently overloaded"), Overloaded),
    (CHAT, 503, gpt("The engine is currently overloaded", kind="server_error"), Overloaded),
    # Azure
    (CHAT, 404, {"error": {"code": "DeploymentNotFound", "message": "m"}}, ModelNotFound),
    (CHAT, 400, {"error": {"code": "ResponsibleAIPolicyViolation", "message": "m"}}, ContentFiltered),
    (CHAT, 429, {"error": {"code": "RateLimitReached", "message": "m", "details": "d"}}, RateLimited),
    # llama.cpp, and servers without codes
    (CHAT, 400, {"error": {"code": 400, "type": "exceed_context_size_error", "message": "m"}}, ContextTooLong),
    (CHAT, 400, {"object": "error", "message": "maximum context length is 10", "code": 400}, ContextTooLong),
    (CHAT, 400, gpt("Input flagged as potentially violating"), ContentFiltered),
    (CHAT, 402, gpt("Insufficient Balance", "invalid_request_error"), QuotaExceeded),
    (CHAT, 500, gpt("litellm.ContextWindowExceededError: prompt is too long", "500"), ContextTooLong),
    (CHAT, 422, {"detail": [{"loc": ["body"], "msg": "field required"}]}, InvalidRequest),
    (CHAT, 404, {"detail": "Not Found"}, ModelNotFound),
    (CHAT, 400, [{"error": {"code": 400, "message": "a list of one", "status": "INVALID_ARGUMENT"}}], InvalidRequest),
    (CHAT, 403, {"error": {"code": 403, "message": "Your input was flagged"}}, ContentFiltered),
    (CHAT, 400, {"error": "a bare text"}, InvalidRequest),
]  # fmt: skip


@pytest.mark.parametrize(("name", "status", "body", "kind"), WORDS)
def test_codes_and_words_decide_before_the_status(name: str, status: int, body: Any, kind: type[CallError]) -> None:
    """Wire-rules §6: quota is no rate limit, a full context no mere bad request; every shape of body is read."""
    error = refused(name, status, body)

    assert type(error) is kind
    assert (error.status, error.provider) == (status, name.partition(".")[0])
    assert str(error).startswith(f"{error.provider} answered {status}: ")


STATUSES: list[tuple[int, type[CallError], bool]] = [
    (400, InvalidRequest, False), (401, AuthenticationFailed, False), (402, QuotaExceeded, False),
    (403, PermissionDenied, False), (404, ModelNotFound, False), (408, CallTimedOut, True),
    (409, InvalidRequest, False), (413, RequestTooLarge, False), (422, InvalidRequest, False), (429, RateLimited, True),
    (500, ServerFailed, True), (502, ServerFailed, True), (503, Unavailable, True), (504, ServerFailed, True),
    (520, ServerFailed, True), (529, Overloaded, True),
]  # fmt: skip
SILENT = (b"", b"<html><h1>busy</h1></html>", b"plain words", b"[]", b"null", b'{"error":"x"}', b"\xff")


@pytest.mark.parametrize(("status", "kind", "retryable"), STATUSES)
@pytest.mark.parametrize("name", [CLAUDE, GEMINI, CHAT])
def test_a_status_alone_decides_where_nothing_else_is_said(
    name: str, status: int, kind: type[CallError], retryable: bool
) -> None:
    for body in SILENT:
        error = refused(name, status, body)
        assert (type(error), error.retryable, error.status) == (kind, retryable, status)
        assert "\n" not in str(error) and "<html>" not in str(error)


def test_an_error_says_whose_it_is_what_was_said_and_how_to_mend_it() -> None:
    error = refused(CHAT, 401, gpt("Incorrect API key.", "invalid_api_key"))

    assert str(error) == "openai answered 401: Incorrect API key; check the key"
    assert error.code == "invalid_api_key"
    assert refused(CLAUDE, 429, claude("rate_limit_error")).code == "rate_limit_error"
    assert refused(GEMINI, 429, gemini(429, "RESOURCE_EXHAUSTED")).code == "RESOURCE_EXHAUSTED"
    assert len(str(refused(CHAT, 500, b"x" * 10_000))) < 600


@pytest.mark.parametrize(
    ("model", "header"),
    [
        ("openai:m", "x-request-id"), ("openai:m", "apim-request-id"), ("groq:m", "x-correlation-id"),
        ("anthropic:m", "request-id"), ("anthropic:m", "x-amzn-requestid"), ("google:m", "x-request-id"),
    ],
)  # fmt: skip
def test_a_failed_call_knows_the_vendors_id_of_the_request(model: str, header: str) -> None:
    with Server([whole(b"{}", 400, **{header: "req_7"})]) as server, pytest.raises(InvalidRequest) as caught:
        sabir.adapter(model, api_key="k", base_url=server.url).complete_sync("Hi")

    assert caught.value.request_id == "req_7"


@pytest.mark.parametrize(
    ("delay", "seconds"), [("7s", 7.0), ("34.4s", 34.4), ("soon", 2.0), ("9" * 400 + "s", 2.0), (7, 2.0), (None, 2.0)]
)
def test_a_body_says_how_long_to_wait(delay: Any, seconds: float) -> None:
    body = gemini(429, "RESOURCE_EXHAUSTED", "m", detail("RetryInfo", retryDelay=delay))

    assert refused(GEMINI, 429, body, {"retry-after": "2"}).retry_after == seconds
    assert refused(CLAUDE, 529, claude("overloaded_error"), {"retry-after-ms": "1500"}).retry_after == 1.5
    assert refused(CHAT, 429, b"", {"retry-after": "7"}).retry_after == 7.0


RESPONSES = "openai.responses"
REPORTED: list[tuple[str, Any, type[CallError], int | None]] = [
    (CLAUDE, {"type": "overloaded_error", "message": "Overloaded"}, Overloaded, None),
    (CLAUDE, {"type": "api_error", "message": "Internal"}, ServerFailed, None),
    (CLAUDE, {"type": "throttlingException", "message": "slow down"}, RateLimited, None),
    (CLAUDE, {"type": "modelStreamErrorException", "message": "x"}, ServerFailed, None),
    (CLAUDE, {"message": "who knows"}, ServerFailed, None),
    (CLAUDE, "just words", ServerFailed, None),
    (CLAUDE, {"type": "invalid_request_error", "message": "prompt is too long"}, ContextTooLong, None),
    (CLAUDE, {"type": "authentication_error", "message": "invalid"}, AuthenticationFailed, None),
    (GEMINI, {"code": 503, "message": "later", "status": "UNAVAILABLE"}, Unavailable, 503),
    (GEMINI, {"code": 429, "message": "slow", "status": "RESOURCE_EXHAUSTED"}, RateLimited, 429),
    (GEMINI, {"code": 404, "message": "x", "status": "NOT_FOUND"}, ModelNotFound, 404),
    (GEMINI, "broken", ServerFailed, None),
    (CHAT, {"code": "rate_limit_exceeded", "message": "m"}, RateLimited, None),
    (CHAT, {"code": 502, "message": "m"}, ServerFailed, 502),
    (CHAT, {"code": "content_filter", "status": 400, "message": "m"}, ContentFiltered, 400),
    (CHAT, {"type": "invalid_request_error", "message": "m"}, InvalidRequest, None),
    (CHAT, {"code": "invalid_prompt", "message": "m"}, ContentFiltered, None),
    (CHAT, {"code": "image_file_not_found", "message": "m", "type": "invalid_request_error"}, InvalidRequest, None),
    (CHAT, {"message": "something"}, ServerFailed, None),
    (CHAT, "words", ServerFailed, None),
    *((RESPONSES, {"code": code, "message": "m"}, kind, None) for code, kind in {
        "rate_limit_exceeded": RateLimited, "server_error": ServerFailed, "insufficient_quota": QuotaExceeded,
        "invalid_prompt": ContentFiltered, "invalid_image_url": InvalidRequest, "image_too_large": InvalidRequest,
        "failed_to_download_image": InvalidRequest, "data_residency_mismatch": InvalidRequest,
        "image_content_policy_violation": ContentFiltered, "never heard of": ServerFailed,
    }.items()),
]  # fmt: skip


@pytest.mark.parametrize(("name", "error", "kind", "status"), REPORTED)
def test_an_error_under_status_200_is_the_error_that_it_reports(
    name: str, error: Any, kind: type[CallError], status: int | None
) -> None:
    bodies = [{"type": "error", "error": error}, {"status": "failed", "error": error, "output": []}, {"error": error}]
    for body in {CLAUDE: bodies[:1], RESPONSES: bodies[1:], CHAT: bodies[2:], GEMINI: [bodies[2], [bodies[2]]]}[name]:
        with pytest.raises(CallError) as raised:
            sabir.dialect(name).decode(json.dumps(body))
        assert (type(raised.value), raised.value.status) == (kind, status)
        assert raised.value.retryable is kind.retryable


REQUEST = httpx2.Request("POST", "https://e.org")
REFUSED = anthropic.APIConnectionError(request=REQUEST)
REFUSED.__cause__ = httpx2.ConnectError("refused")


def answered(status: int, body: Any, **headers: str) -> httpx2.Response:
    return httpx2.Response(status, json=body, headers=headers, request=REQUEST)


RAISED: list[tuple[str, Exception, type[CallError] | None]] = [
    *((name, httpx2.ReadTimeout("late"), CallTimedOut) for name in (CLAUDE, GEMINI, CHAT)),
    *((name, httpx2.ConnectError("no"), ConnectionFailed) for name in (CLAUDE, GEMINI, CHAT)),
    *((name, httpx2.RemoteProtocolError("cut"), ConnectionFailed) for name in (CLAUDE, GEMINI, CHAT)),
    *((name, KeyError("mine"), None) for name in (CLAUDE, GEMINI, CHAT)),
    (CLAUDE, REFUSED, ConnectionFailed),
    (CLAUDE, anthropic.APITimeoutError(REQUEST), CallTimedOut),
    (CLAUDE, anthropic.AnthropicError("Token counting is not supported"), InvalidRequest),
    (CLAUDE, anthropic.APIStatusError("x", response=answered(529, claude("overloaded_error")), body=None), Overloaded),
    (GEMINI, google.auth.exceptions.DefaultCredentialsError("none found"), AuthenticationFailed),
    (GEMINI, google.auth.exceptions.TransportError("no route"), ConnectionFailed),
    (CHAT, openai.APITimeoutError(request=REQUEST), CallTimedOut),
    (CHAT, openai.APIConnectionError(request=REQUEST), ConnectionFailed),
    (CHAT, openai.RateLimitError("slow", response=answered(429, gpt("slow"), retry_after="2"), body=None), RateLimited),
]  # fmt: skip


@pytest.mark.parametrize(("name", "raised", "kind"), RAISED)
def test_what_the_sdk_and_its_client_raise_is_translated(
    name: str, raised: Exception, kind: type[CallError] | None
) -> None:
    found = connection_of(name).translate(raised)

    assert (type(found) if found else None) is kind
    if "none found" in str(raised) or "not supported" in str(raised):
        assert str(raised) in str(found)
    if isinstance(raised, openai.RateLimitError):
        assert isinstance(found, CallError) and found.provider == "openai"


def test_a_broken_connection_says_what_to_check() -> None:
    assert str(connection_of(CHAT).translate(httpx2.ReadError("broke"))) == (
        "openai cannot be reached, or closed the connection early; check the network and base_url (ReadError: broke)"
    )
