"""A walker over Responses bodies that knows nothing of the decoder: what streams add up to, and what goes back."""

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
ECHOES = {
    "frequency_penalty", "instructions", "max_output_tokens", "max_tool_calls", "metadata", "object",
    "parallel_tool_calls", "presence_penalty", "previous_response_id", "prompt", "prompt_cache_key",
    "prompt_cache_retention", "safety_identifier", "store", "temperature", "text", "tool_choice", "tools",
    "top_logprobs", "top_p", "truncation", "user",
}  # fmt: skip
"""Fields of a response that repeat the request."""
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
    found: dict[str, Any] = next(event["response"] for event in events if event["type"] in TERMINAL)
    return found


def done_items(events: list[Any]) -> list[Any]:
    """The items of a stream's `output_item.done` events, in the order of the output."""
    done = [event for event in events if event["type"] == "response.output_item.done"]
    return [event["item"] for event in sorted(done, key=lambda event: event["output_index"])]


def readable(item: dict[str, Any]) -> dict[str, Any]:
    """An item without what only its maker reads."""
    return {name: value for name, value in item.items() if name not in ("encrypted_content", "fingerprint")}


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
    returned=returned,
    refusal=lambda exchange: CODES[exchange.response["error"]["code"]],
    restored=partial(restored, "input"),
    beside=("output[].type", "status"),
    echoes=ECHOES,
    is_left_out=has_its_own_tests,
)
