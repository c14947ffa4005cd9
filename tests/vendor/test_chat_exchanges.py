"""Every Chat Completions exchange that the vendors' own services returned decodes with nothing lost.

The walkers here read the bodies themselves; they share no code with the decoder.
"""

import json
from typing import Any

import pytest
import sabir
from sabir.errors import AuthenticationFailed, CallError, ContentFiltered, InvalidRequest, ModelNotFound, RateLimited
from sabir.hooks.builders import OptionResultBuilder
from sabir.rendering.renderer import Renderer
from sabir.vocabulary.messages import Message
from sabir.vocabulary.reply import Reply
from sabir.vocabulary.target import Target
from sabir_openai.chat_dialect import CHAT

from tests.vendor.support import Exchange, exchanges, fold, missing, scope_for, usage_figures

ALL = [*exchanges("openai.chat"), *exchanges("openai.chat_at_azure")]
ERRORS = [each for each in ALL if each.status >= 400 or (each.response or {}).get("error")]
WHOLE = [each for each in ALL if each.response and each not in ERRORS]
STREAMED = [each for each in ALL if each.events and each not in ERRORS]

SAID_OTHERWISE = {
    "object": "always chat.completion",
    "choices[].message.role": "always assistant",
    "choices[].index": "the order of reply and alternatives",
    "choices[].message.tool_calls[].type": "function, or the state of a custom call",
}
"""Path of a body → what in the reply says it in other words."""
NEUTRAL = {"stop": "stop", "length": "length", "content_filter": "content_filter"}
NEUTRAL |= {"tool_calls": "option_calls", "function_call": "option_calls"}
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


def ids(exchange: Exchange) -> str:
    return exchange.id


def choices(body: dict[str, Any]) -> list[dict[str, Any]]:
    return sorted(body["choices"], key=lambda choice: choice["index"])


def said(messages: tuple[Message, ...]) -> dict[str, Any]:
    """What some messages say: text, refusal and calls in their order."""
    parts = [part for message in messages for part in message.parts]
    return {
        "text": "".join(part.text for part in parts if part.kind == "text"),
        "refusal": "".join(part.text for part in parts if part.kind == "refusal"),
        "calls": [
            (call.option_name, call.arguments["input"] if call.raw_arguments is None else call.raw_arguments)
            for message in messages
            if (call := message.call)
        ],
    }


def meant(message: dict[str, Any]) -> dict[str, Any]:
    """What a message of the wire says, in the same terms."""
    calls = []
    for call in message.get("tool_calls") or ():
        function = call.get("function") or call["custom"]
        calls.append((function["name"], function["arguments"] if "arguments" in function else function["input"]))
    if legacy := message.get("function_call"):
        calls.append((legacy["name"], legacy["arguments"]))
    return {"text": message.get("content") or "", "refusal": message.get("refusal") or "", "calls": calls}


def check(reply: Reply, found: list[dict[str, Any]], usage: Any) -> None:
    """Everything of the choices and the usage is in the reply."""
    answers = [(reply.messages, reply.raw_finish_reason, reply.finish_reason)]
    answers += [(other.messages, other.raw_finish_reason, other.finish_reason) for other in reply.alternatives]
    assert [said(messages) for messages, _, _ in answers] == [meant(choice.get("message") or {}) for choice in found]
    assert [raw for _, raw, _ in answers] == [choice["finish_reason"] for choice in found]
    for (messages, raw, neutral), choice in zip(answers, found, strict=True):
        message = choice.get("message") or {}
        expected = NEUTRAL[raw or ""]
        if expected == "stop" and message.get("refusal"):
            expected = "content_filter"
        elif expected == "stop" and (message.get("tool_calls") or message.get("function_call")):
            expected = "option_calls"
        assert neutral == expected
        wire_ids = [call["id"] for call in message.get("tool_calls") or ()]
        assert [call.call.invocation_id for call in messages if call.call][: len(wire_ids)] == wire_ids
    assert usage_figures(reply.usage.details) == usage_figures(usage)
    if usage:
        assert (reply.usage.input_tokens, reply.usage.output_tokens) == (
            usage["prompt_tokens"],
            usage["completion_tokens"],
        )
        assert reply.usage.total_tokens == usage["total_tokens"]
        assert reply.usage.cache_read_tokens == (usage.get("prompt_tokens_details") or {}).get("cached_tokens")
        assert reply.usage.reasoning_tokens == (usage.get("completion_tokens_details") or {}).get("reasoning_tokens")


def test_every_exchange_is_looked_at() -> None:
    """None is in no group, and each group has some."""
    assert len(ALL) == len(ERRORS) + len(WHOLE) + len(STREAMED)
    assert min(len(ERRORS), len(WHOLE), len(STREAMED)) > 10


@pytest.mark.parametrize("exchange", WHOLE, ids=ids)
def test_a_response_decodes_with_nothing_lost(exchange: Exchange) -> None:
    """Every block, call, argument text, citation, figure and finish reason; every further scalar of the body."""
    reply = CHAT.decode(exchange.body, scope_for(exchange, "openai.chat"))

    check(reply, choices(exchange.response), exchange.response.get("usage"))
    assert missing(exchange.response, reply, SAID_OTHERWISE) == []
    assert reply.origin.reported_model in (None, exchange.response["model"])
    assert reply.origin.response_id == exchange.response["id"]
    assert Reply.model_validate_json(reply.model_dump_json()) == reply


@pytest.mark.parametrize("exchange", [each for each in WHOLE if "citations" in each.features], ids=ids)
def test_citations_point_at_their_place_in_the_text(exchange: Exchange) -> None:
    """Offsets are characters: what they enclose names the site that is cited."""
    reply = CHAT.decode(exchange.body, scope_for(exchange, "openai.chat"))
    text = next(part for message in reply.messages for part in message.parts if part.kind == "text")
    annotations = exchange.response["choices"][0]["message"]["annotations"]

    assert [citation.source for citation in text.citations] == annotations
    assert all(str(citation.url) in text.text[citation.start : citation.end] for citation in text.citations)


def accumulated(exchange: Exchange) -> list[dict[str, Any]]:
    """The choices that a stream's chunks add up to."""
    found: dict[int, dict[str, Any]] = {}
    for event in exchange.events or ():
        for choice in event["choices"] if isinstance(event, dict) else ():
            whole = found.setdefault(choice["index"], {"index": choice["index"], "finish_reason": None, "message": {}})
            whole["finish_reason"] = choice.get("finish_reason") or whole["finish_reason"]
            message = whole["message"]
            for name in ("content", "refusal"):
                message[name] = message.get(name, "") + (choice["delta"].get(name) or "")
            for delta in choice["delta"].get("tool_calls") or ():
                calls = message.setdefault("tool_calls", [])
                if delta["index"] == len(calls):
                    calls.append({"id": delta["id"], "function": {"name": delta["function"]["name"], "arguments": ""}})
                calls[delta["index"]]["function"]["arguments"] += delta["function"].get("arguments") or ""
    return [found[index] for index in sorted(found)]


@pytest.mark.parametrize("exchange", STREAMED, ids=ids)
def test_a_stream_folds_to_a_complete_reply(exchange: Exchange) -> None:
    """What the chunks add up to, the usage of the last, the fields beside the choices."""
    scope = scope_for(exchange, "openai.chat")
    reply = fold(CHAT, exchange.stream, scope)
    events = [event for event in exchange.events or () if isinstance(event, dict)]
    usage = next((event["usage"] for event in reversed(events) if event.get("usage")), None)
    beside = {name: value for event in events for name, value in event.items() if value is not None}
    padding = {"choices": 0, "object": 0, "obfuscation": 0, "usage": 0}

    check(reply, accumulated(exchange), usage)
    assert missing({name: value for name, value in beside.items() if name not in padding}, reply) == []


@pytest.mark.parametrize("exchange", ERRORS, ids=ids)
def test_an_error_body_maps_to_its_class(exchange: Exchange) -> None:
    """With its message, code and status."""
    error = exchange.response["error"]
    status = error.get("status") or exchange.status
    if exchange.status < 400:
        with pytest.raises(CallError) as raised:
            CHAT.decode(exchange.body, scope_for(exchange, "openai.chat"))
        found = raised.value
    else:
        found = CHAT.decode_error(exchange.status, exchange.response_headers or {}, exchange.body, "openai")

    assert type(found) is KINDS[status, error["code"]]
    assert (found.status, found.code) == (status, error["code"] or error.get("type"))
    assert error["message"].rstrip(".")[:300] in str(found)


@pytest.mark.parametrize("exchange", [*WHOLE, *STREAMED], ids=ids)
def test_a_reply_goes_back_as_it_came(exchange: Exchange) -> None:
    """Law 3, round trip: the assistant's message of the next request is the one that was received."""
    scope = scope_for(exchange, "openai.chat")
    is_whole = exchange.response is not None
    reply = CHAT.decode(exchange.body, scope) if is_whole else fold(CHAT, exchange.stream, scope)
    first = (choices(exchange.response) if is_whole else accumulated(exchange))[0].get("message") or {}
    results = [OptionResultBuilder.response_to(call).success("done") for call in reply.option_calls]
    target = Target(provider="openai", dialect="openai.chat", model=reply.origin.model)
    rendering = Renderer(CHAT, target).render([sabir.user("a"), *reply.messages, *results])
    sent = [item for item in json.loads(rendering.body_bytes)["messages"] if item["role"] == "assistant"]

    assert len(sent) == min(1, len(reply.messages))
    for message in sent:
        content = message.get("content")
        refusals = [part["refusal"] for part in content or () if isinstance(part, dict)]
        text = "" if refusals else content or ""
        assert {**meant({**message, "content": text}), "refusal": "".join(refusals)} == meant(first)
        received = [call["id"] for call in first.get("tool_calls") or ()]
        assert [call["id"] for call in message.get("tool_calls", ())][: len(received)] == received
    assert [loss for loss in rendering.losses if not loss.path.endswith(".citations")] == []
