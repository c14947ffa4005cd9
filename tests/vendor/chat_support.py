"""A walker over Chat Completions that knows nothing of the decoder: choice by choice."""

import json
from collections.abc import Iterator
from functools import partial
from typing import Any

from sabir.errors import AuthenticationFailed, CallError, ContentFiltered, InvalidRequest, ModelNotFound, RateLimited
from sabir.vocabulary.reply import Reply
from sabir_openai.chat_dialect import CHAT

from tests.vendor.gateway_support import added_up
from tests.vendor.openai_history_support import restored
from tests.vendor.support import Exchange, Wire, sent_back, unequal

SAID_OTHERWISE = {
    "obfuscation": "padding of a stream",
    "object": "always chat.completion",
    "choices[].message.role": "always assistant",
    "choices[].index": "the order of reply and alternatives",
    "choices[].message.tool_calls[].type": "function, or the state of a custom call",
    "choices[].message.tool_calls[].index": "the order of the calls",
}
"""Path of a body → what in the reply says it in other words."""
KINDS: dict[tuple[int, str | None], type[CallError]] = {
    (400, "unsupported_parameter"): InvalidRequest,
    (400, "invalid_function_parameters"): InvalidRequest,
    (401, "invalid_api_key"): AuthenticationFailed,
    (404, "model_not_found"): ModelNotFound,
    (404, None): ModelNotFound,
    (429, "RateLimitReached"): RateLimited,
    (400, "content_filter"): ContentFiltered,
}
"""Status (the body's own where it came under 200) and code → class."""


def choices(body: dict[str, Any]) -> list[dict[str, Any]]:
    return sorted(body["choices"], key=lambda choice: choice["index"])


def meant(message: dict[str, Any]) -> dict[str, Any]:
    """What a message of the wire says, in the same terms."""
    calls = []
    for call in message.get("tool_calls") or ():
        function = call.get("function") or call["custom"]
        calls.append((function["name"], function["arguments"] if "arguments" in function else function["input"]))
    if legacy := message.get("function_call"):
        calls.append((legacy["name"], legacy["arguments"]))
    return {"text": message.get("content") or "", "refusal": message.get("refusal") or "", "calls": calls}


def returned(body: dict[str, Any], reply: Reply) -> Iterator[str]:
    """Where the assistant's message of the next request is not the one that was received."""
    first = choices(body)[0].get("message") or {} if body["choices"] else {}
    rendering = sent_back(CHAT, reply)
    sent = [item for item in json.loads(rendering.body_bytes)["messages"] if item["role"] == "assistant"]
    yield from unequal(("messages", min(1, len(reply.messages)), len(sent)))
    for message in sent:
        content = message.get("content")
        refusals = [part["refusal"] for part in content or () if isinstance(part, dict)]
        text = "" if refusals else content or ""
        received = [call["id"] for call in first.get("tool_calls") or ()]
        yield from unequal(
            ("message", meant(first), {**meant({**message, "content": text}), "refusal": "".join(refusals)}),
            ("ids of calls", received, [call["id"] for call in message.get("tool_calls", ())][: len(received)]),
        )
    yield from unequal(("losses", [], [loss for loss in rendering.losses if not loss.path.endswith(".citations")]))


def refusal(exchange: Exchange) -> type[CallError]:
    """By the status, which is the body's own where it came under 200, and the code."""
    error = exchange.response["error"]
    return KINDS[error.get("status") or exchange.status, error["code"]]


WIRE = Wire(
    dialect=CHAT,
    counts=(339, 148, 17, 504),
    added_up=added_up,
    returned=returned,
    refusal=refusal,
    restored=partial(restored, "messages"),
    beside=SAID_OTHERWISE,
    is_decoded_when_added_up=False,
)
