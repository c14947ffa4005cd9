"""A walker over Responses bodies that knows nothing of the decoder: item by item, content part by content part.

body.output ──walk──▶ must be met, in order, by the parts and calls of the reply; nothing may be left on either side
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

from sabir.errors import AuthenticationFailed, CallError, ContextTooLong, InvalidRequest, ModelNotFound, QuotaExceeded
from sabir.vocabulary.messages import Message, PartsPayload
from sabir.vocabulary.parts import OpaquePart
from sabir.vocabulary.reply import Reply
from sabir_openai.responses_dialect import RESPONSES

from tests.vendor.openai_history_support import restored
from tests.vendor.support import Exchange, Wire, said, sent_back, unequal

CODES: dict[str, type[CallError]] = {
    "context_length_exceeded": ContextTooLong,
    "decimal_below_min_value": InvalidRequest,
    "insufficient_quota": QuotaExceeded,
    "invalid_api_key": AuthenticationFailed,
    "invalid_json_schema": InvalidRequest,
    "model_not_found": ModelNotFound,
    "unsupported_file": InvalidRequest,
    "unsupported_value": InvalidRequest,
}
REQUEST_ECHOES = {
    "error", "frequency_penalty", "instructions", "max_output_tokens", "max_tool_calls", "metadata", "object", "output",
    "parallel_tool_calls", "presence_penalty", "previous_response_id", "prompt", "prompt_cache_key",
    "prompt_cache_retention", "safety_identifier", "status", "store", "temperature", "text", "tool_choice", "tools",
    "top_logprobs", "top_p", "truncation", "usage", "user",
}  # fmt: skip
"""Top-level fields that repeat the request, or that the walker looks at one by one."""
TERMINAL = {"response.completed", "response.incomplete", "response.failed"}
CLOSERS = {
    "apply_patch_call": "apply_patch_call_output",
    "computer_call": "computer_call_output",
    "custom_tool_call": "custom_tool_call_output",
    "local_shell_call": "local_shell_call_output",
    "mcp_approval_request": "mcp_approval_response",
    "shell_call": "shell_call_output",
    "tool_search_call": "tool_search_output",
}
"""The vendor's own calls, and the items that answer them."""


def final_response(events: list[Any]) -> dict[str, Any]:
    """The response object of a stream's terminal event."""
    found: dict[str, Any] = next(event["response"] for event in events if event["type"] in TERMINAL)
    return found


def done_items(events: list[Any]) -> list[Any]:
    """The items of a stream's `output_item.done` events, in the order of the output."""
    done = [event for event in events if event["type"] == "response.output_item.done"]
    return [event["item"] for event in sorted(done, key=lambda event: event["output_index"])]


def readable(item: dict[str, Any]) -> dict[str, Any]:
    """An item without what only its maker reads."""
    return {name: value for name, value in item.items() if name not in ("encrypted_content", "fingerprint")}


def differences(body: dict[str, Any], reply: Reply) -> list[str]:
    """Where a reply does not hold what a response object says, or holds more."""
    held, found = said(reply), []
    for number, item in enumerate(body["output"]):
        for each in wanted(item):
            met = held.pop(0) if held else None
            found += [f"output[{number}]: {difference}" for difference in compare(each, met)]
    found += [f"the reply holds more: {left!r}" for left in held]
    found += [f"{name} is lost" for name in lost_fields(body, reply)]
    return found


def wanted(item: dict[str, Any]) -> list[dict[str, Any]]:
    """What one output item must show up as: each content part of a message, or the item itself."""
    return item["content"] if item["type"] == "message" else [item]


def compare(each: dict[str, Any], met: Any) -> list[str]:
    """Differences between a content part or an item and the part or call that stands for it."""
    match each["type"]:
        case "output_text":
            pairs = [("text", each["text"], met.text)]
            pairs += [("citations", each["annotations"], [citation.source for citation in met.citations])]
            for annotation, citation in zip(each["annotations"], met.citations, strict=True):
                pairs += [("citation", annotation["type"], citation.kind), ("url", annotation.get("url"), citation.url)]
                pairs += [("start", annotation.get("start_index"), citation.start)]
                pairs += [("end", annotation.get("end_index"), citation.end)]
            pairs += [("logprobs", each.get("logprobs"), met.state["part"].get("logprobs"))]
        case "refusal":
            pairs = [("kind", "refusal", met.kind), ("text", each["refusal"], met.text)]
        case "function_call":
            pairs = [("id", each["call_id"], met.invocation_id), ("name", each["name"], met.option_name)]
            pairs += [("arguments", each["arguments"], met.raw_arguments), ("item id", each["id"], met.state["id"])]
        case "reasoning":
            texts = [passage["text"] for passage in [*each["summary"], *(each.get("content") or ())]]
            pairs = [
                ("kind", "reasoning", met.kind),
                ("texts", texts, [text for text in met.text.split("\n\n") if text]),
            ]
            if any("\n\n" in text for text in texts):
                pairs[1] = ("texts", "\n\n".join(texts), met.text)
            pairs += [("state", each, met.state)]
        case "image_generation_call" if each["result"]:
            pairs = [("kind", "media", met.kind), ("image", each["result"], met.url.partition(",")[2])]
            pairs += [("rest", {**each, "result": None}, {**met.state["item"], "result": None})]
        case _:
            pairs = [("kind", "opaque", met.kind), ("block", each, met.block)]
    return unequal(*pairs)


def lost_fields(body: dict[str, Any], reply: Reply) -> Iterator[str]:
    """Fields of a response object that the reply does not hold."""
    places = {"id": reply.origin.response_id, "model": reply.origin.reported_model or reply.origin.model}
    for name, value in body.items():
        if value is None or name in REQUEST_ECHOES:
            continue
        if name in places:
            if places[name] != value:
                yield name
        elif (reply.details or {}).get(name) != value:
            yield name
    if body.get("usage") and (reply.usage.details != body["usage"] or figures(body["usage"]) != shown(reply)):
        yield "usage"
    reason = (body.get("incomplete_details") or {}).get("reason")
    if reply.raw_finish_reason != (reason or body["status"]):
        yield "status"


def figures(usage: dict[str, Any]) -> list[int | None]:
    """The figures that have a neutral name."""
    read, made = usage["input_tokens_details"], usage["output_tokens_details"]
    named = [usage["input_tokens"], usage["output_tokens"], read["cached_tokens"], read.get("cache_write_tokens")]
    return [*named, made["reasoning_tokens"], usage["total_tokens"]]


def shown(reply: Reply) -> list[int | None]:
    """The same figures as a reply shows them."""
    usage = reply.usage
    named = [usage.input_tokens, usage.output_tokens, usage.cache_read_tokens, usage.cache_write_tokens]
    return [*named, usage.reasoning_tokens, usage.total_tokens]


def expected_items(output: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What of an output goes back: all of it but reasoning that nothing can read or that nothing follows."""
    kept = list(output)
    while kept and kept[-1]["type"] == "reasoning":
        kept.pop()
    readable = [item for item in kept if item["type"] != "reasoning" or item.get("encrypted_content")]
    if len(readable) == len(kept):
        return kept
    bound = ("message", "function_call")
    return [{k: v for k, v in item.items() if k != "id" or item["type"] not in bound} for item in readable]


def added_up(exchange: Exchange) -> dict[str, Any]:
    """The final response with the done items: what is encrypted is encrypted anew in it, and theirs is to go back."""
    final, done = final_response(exchange.events or []), done_items(exchange.events or [])
    assert [readable(item) for item in done] == [readable(item) for item in final["output"]]
    return {**final, "output": done}


def closers(reply: Reply) -> Iterator[Message]:
    """An answer to each of the vendor's own calls that has none."""
    opaque = [each for each in said(reply) if each.kind == "opaque"]
    closed = {each.pair_id for each in opaque if each.pair == "closes"}
    for each in opaque:
        if each.pair == "opens" and each.pair_id not in closed:
            block = {"type": CLOSERS[each.block["type"]], "answers": each.pair_id}
            part = OpaquePart(dialect=RESPONSES.name, block=block, pair_id=each.pair_id, pair="closes")
            yield Message(policy="user", payload=PartsPayload(parts=(part,)))


def returned(body: dict[str, Any], reply: Reply) -> list[str]:
    """Where the items that go back are not those that came, in their order; what cannot go back is a loss."""
    output = body["output"]
    rendering, expected = sent_back(RESPONSES, reply, closers(reply)), expected_items(output)
    sent = rendering.body["input"][1:]
    after = {item["type"] for item in sent[len(expected) :]}
    lost = len(output) - len(expected)
    bound = [item for item in output if lost and item["type"] in ("message", "function_call") and "id" in item]
    freed = sum(len(item.get("content", [item])) for item in bound)
    return unequal(
        ("items", expected, sent[: len(expected)]),
        ("what follows", set(), after - {"message", "function_call_output", *CLOSERS.values()}),
        ("losses", ["dropped"] * lost + ["withheld"] * freed, [loss.kind for loss in rendering.losses]),
    )


def has_its_own_tests(exchange: Exchange) -> bool:
    """Whether it holds no answer: it failed on the way, or is not made yet."""
    return "stream_error" in exchange.features or (exchange.response or {}).get("status") == "queued"


WIRE = Wire(
    dialect=RESPONSES,
    counts=(366, 163, 16, 523),
    added_up=added_up,
    differences=differences,
    returned=returned,
    refusal=lambda exchange: CODES[exchange.response["error"]["code"]],
    restored=partial(restored, "input"),
    beside=("output[].type",),
    fields=("output", "usage"),
    is_left_out=has_its_own_tests,
)
