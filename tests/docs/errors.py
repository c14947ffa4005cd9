"""The reference of the errors: the tree, what each means and whether trying again may help, and the error map.

a vendor's refusal ──decode_error──▶ one class, whichever vendor it was
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

import sabir
import sabir.errors
from sabir.errors import CallError, SabirError

from tests.docs.sources import describe_class


def error_tree() -> str:
    """The tree, drawn from the classes."""
    return "```text\n" + "\n".join(_branch(SabirError, "")) + "\n```"


def error_table() -> str:
    """One row an error, in the tree's order."""
    return "\n".join(["| error | when | retryable |", "|---|---|---|", *map(_row, walk(SabirError))])


def children(error: type[SabirError]) -> list[type[SabirError]]:
    """The public errors right below one, in the order of their definition."""
    return [each for each in error.__subclasses__() if getattr(sabir.errors, each.__name__, None) is each]


def walk(error: type[SabirError]) -> Iterator[type[SabirError]]:
    """An error and all below it."""
    yield error
    for child in children(error):
        yield from walk(child)


def _branch(error: type[SabirError], indent: str) -> Iterator[str]:
    mark = "  (retryable)" if issubclass(error, CallError) and error.retryable else ""
    yield f"{error.__name__}{mark}"
    below = children(error)
    for index, child in enumerate(below):
        is_last = index + 1 == len(below)
        first, *rest = _branch(child, indent)
        yield ("└── " if is_last else "├── ") + first
        yield from (("    " if is_last else "│   ") + line for line in rest)


def _row(error: type[SabirError]) -> str:
    return f"| `{error.__name__}` | {describe_class(error).summary} | {_retryable(error)} |"


def _retryable(error: type[SabirError]) -> str:
    if not issubclass(error, CallError):
        return ""
    return "yes" if error.retryable else "no"


def _openai(message: str, code: str | None = None, kind: str = "invalid_request_error") -> dict[str, Any]:
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


def _anthropic(message: str, kind: str = "invalid_request_error") -> dict[str, Any]:
    return {"type": "error", "error": {"type": kind, "message": message}}


def _google(message: str, status: str = "INVALID_ARGUMENT", **detail: Any) -> dict[str, Any]:
    details = [{"@type": f"type.googleapis.com/google.rpc.{name}", **each} for name, each in detail.items()]
    return {"error": {"code": 400, "message": message, "status": status, "details": details}}


REFUSALS: Mapping[str, Mapping[str, tuple[int, dict[str, Any]]]] = {
    "a wrong key": {
        "openai.responses": (401, _openai("Incorrect API key provided.", "invalid_api_key")),
        "anthropic.messages": (401, _anthropic("invalid x-api-key", "authentication_error")),
        "google.generate_content": (400, _google("API key not valid.", ErrorInfo={"reason": "API_KEY_INVALID"})),
    },
    "an unknown model": {
        "openai.responses": (404, _openai("The model does not exist.", "model_not_found")),
        "anthropic.messages": (404, _anthropic("model: claude-0", "not_found_error")),
        "google.generate_content": (404, _google("models/gemini-0 is not found", "NOT_FOUND")),
    },
    "too long for the model": {
        "openai.responses": (400, _openai("Your input exceeds the context window.", "context_length_exceeded")),
        "anthropic.messages": (400, _anthropic("prompt is too long: 250000 tokens > 200000 maximum")),
        "google.generate_content": (
            400,
            _google("The input token count exceeds the maximum number of tokens allowed."),
        ),
    },
    "no credit left": {
        "openai.responses": (
            429,
            _openai("You exceeded your current quota.", "insufficient_quota", "insufficient_quota"),
        ),
        "anthropic.messages": (400, _anthropic("Your credit balance is too low to access the API.")),
        "google.generate_content": (
            429,
            _google(
                "Quota exceeded.",
                "RESOURCE_EXHAUSTED",
                QuotaFailure={"violations": [{"quotaId": "GenerateRequestsPerDayPerProject"}]},
            ),
        ),
    },
    "too many requests": {
        "openai.responses": (429, _openai("Rate limit reached.", "rate_limit_exceeded", "requests")),
        "anthropic.messages": (429, _anthropic("Rate limited.", "rate_limit_error")),
        "google.generate_content": (
            429,
            _google("Resource exhausted.", "RESOURCE_EXHAUSTED", RetryInfo={"retryDelay": "7s"}),
        ),
    },
    "overloaded": {
        "openai.responses": (503, _openai("The engine is currently overloaded.", None, "server_error")),
        "anthropic.messages": (529, _anthropic("Overloaded", "overloaded_error")),
        "google.generate_content": (503, _google("The model is overloaded.", "UNAVAILABLE")),
    },
}
"""What happened → how each vendor says it: status and body, as its documentation has them."""
STATUSES = (400, 401, 402, 403, 404, 408, 409, 413, 422, 429, 500, 502, 503, 504, 529)


def error_map() -> str:
    """One row for what happened, one column a dialect; then statuses without a body that says more."""
    names = list(next(iter(REFUSALS.values())))
    head = [f"| what happened | {' | '.join(f'`{name}`' for name in names)} |", "|---|" + "---|" * len(names)]
    rows = [
        f"| {label} | {' | '.join(f'{said[name][0]}: `{_kind(name, *said[name])}`' for name in names)} |"
        for label, said in REFUSALS.items()
    ]
    bare = [
        f"| {status} alone | {' | '.join(f'`{_kind(name, status, {})}`' for name in names)} |" for status in STATUSES
    ]
    return "\n".join([*head, *rows, *bare])


def _kind(dialect: str, status: int, body: dict[str, Any]) -> str:
    made = sabir.dialect(dialect).dialect
    return type(made.decode_error(status, {}, json.dumps(body).encode(), dialect.partition(".")[0])).__name__
