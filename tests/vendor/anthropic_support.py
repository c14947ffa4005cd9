"""Walkers over Messages bodies that know nothing of the plugin: block by block, event by event, request by request.

events ──accumulate──▶ the message that they put together, the first where several are recorded as one

sent     ──normal──▶ ┐
                     ├ equal, once what the losses name is taken out of what was sent
rendered ──normal──▶ ┘

What a request and its rendering back may differ in:

null fields, stream                  say nothing, or how the call was made
a string                             is one text block, of a message and of a result; so is `system`
neighbouring messages of one role    are one message: the vendor joins them
empty lists, false flags             hold without being said
the order of tools                   options come first
a tool without description or type   is one with an empty one, of type custom
no result                            is the JSON text of an empty one
cache markers                        are as they were; their `type` is said once more
"""

import json
from typing import Any

from sabir.base.failures import Loss
from sabir.contract.dialect import DecodedHistory
from sabir.errors import AuthenticationFailed, CallError, ContextTooLong, InvalidRequest, ModelNotFound, RateLimited
from sabir.vocabulary.reply import Reply
from sabir_anthropic.dialect import MESSAGES

from tests.vendor.support import Exchange, Wire, lost, sent_back, unequal, without_losses

TYPES: dict[str, type[CallError]] = {
    "authentication_error": AuthenticationFailed,
    "invalid_request_error": InvalidRequest,
    "not_found_error": ModelNotFound,
    "rate_limit_error": RateLimited,
}
SETTINGS = {"temperature": "temperature", "top_p": "top_p", "vendor.anthropic.top_k": "top_k"}
"""Setting of a rendering's loss → the field of a request that it names."""


def spoken(content: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The blocks that say something: all but texts without a character."""
    return [block for block in content if block["type"] != "text" or block["text"]]


def accumulate(events: list[Any]) -> dict[str, Any]:
    message: dict[str, Any] = {}
    texts: dict[int, str] = {}
    for event in json.loads(json.dumps(events)):
        match event["type"]:
            case "message_start":
                message = event["message"]
            case "content_block_start":
                assert event["index"] == len(message["content"])
                message["content"].append(event["content_block"])
            case "content_block_delta":
                block, delta = message["content"][event["index"]], event["delta"]
                if delta["type"] == "input_json_delta":
                    texts[event["index"]] = texts.get(event["index"], "") + delta["partial_json"]
                elif delta["type"] == "citations_delta":
                    block["citations"] = [*(block.get("citations") or []), delta["citation"]]
                else:
                    for name in ("text", "thinking"):
                        block |= {name: block[name] + delta[name]} if name in delta else {}
                    block |= {name: delta[name] for name in ("signature", "content") if name in delta}
            case "message_delta":
                usage = {name: value for name, value in event.pop("usage").items() if value is not None}
                message["usage"] |= usage
                message |= event.pop("delta")
                message |= {name: value for name, value in event.items() if name != "type"}
            case "message_stop":
                break
    for index, text in texts.items():
        if text:
            message["content"][index]["input"] = json.loads(text)
    return message


def expected_blocks(content: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What of a content goes back: blocks that say something, complete pairs, thinking that leads to something."""
    opened = {block["id"] for block in content if block["type"] in ("server_tool_use", "mcp_tool_use")}
    closed = {block["tool_use_id"] for block in content if block["type"].endswith("_tool_result")}
    kept = [
        block
        for block in spoken(content)
        if not (block["type"] in ("server_tool_use", "mcp_tool_use") and block["id"] not in closed)
        and not (block["type"].endswith("_tool_result") and block["tool_use_id"] not in opened)
    ]
    if not any(block.get("text", "").strip() for block in kept):
        kept = [block for block in kept if block["type"] != "text"]
    while kept and "thinking" in kept[-1]["type"]:
        kept.pop()
    return [
        {name: value for name, value in block.items() if value is not None or name != "citations"} for block in kept
    ]


def normal(body: dict[str, Any], lost: list[Any]) -> dict[str, Any]:
    head = {name: value for name, value in body.items() if name not in ("stream", "messages")}
    head["system"] = _blocks(head.get("system"), lost)
    tools = [_tool(tool) for tool in head.get("tools") or ()]
    head["tools"] = sorted(tools, key=lambda tool: "type" in tool) or None
    messages: list[dict[str, Any]] = []
    for message in filter(None, body["messages"]):
        blocks = _blocks(message["content"], lost)
        if not blocks:
            continue
        if messages and messages[-1]["role"] == message["role"]:
            messages[-1] = {**message, "content": [*messages[-1]["content"], *blocks]}
        else:
            messages.append({**message, "content": blocks})
    found: dict[str, Any] = _without_nulls({**head, "messages": messages})
    return found


def _blocks(content: Any, lost: list[Any]) -> list[dict[str, Any]]:
    given = [{"type": "text", "text": content}] if isinstance(content, str) else content or []
    return [found for block in given if block is not None and (found := _block(block, lost))]


def _block(block: dict[str, Any], lost: list[Any]) -> dict[str, Any] | None:
    bare = {name: value for name, value in block.items() if name != "cache_control"}
    if bare in lost or block.get("tool_use_id", block.get("id", "")) in lost or block.get("text") in lost:
        return None
    if block.get("text") == "":
        return None
    found = {name: value for name, value in block.items() if value not in (None, [], False) or name == "input"}
    if block["type"] == "tool_result":
        found["content"] = _blocks(block.get("content") or '""', lost)
    return found


def _tool(tool: dict[str, Any]) -> dict[str, Any]:
    found = {name: value for name, value in tool.items() if value not in (None, "")}
    if found.get("type") == "custom":
        del found["type"]
    return found


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        kept = {name: _without_nulls(item) for name, item in value.items()}
        return {name: item for name, item in kept.items() if item is not None and item != []}
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value


def returned(body: dict[str, Any], reply: Reply) -> list[str]:
    """Where the blocks that go back are not those that came, in their order; what cannot go back is a loss."""
    rendering, expected = sent_back(MESSAGES, reply), expected_blocks(body["content"])
    messages = [message for message in rendering.body["messages"] if message["role"] == "assistant"]
    lost = ["dropped"] * (len(spoken(body["content"])) - len(expected))
    return unequal(
        ("blocks", expected, [block for message in messages for block in message["content"]]),
        ("losses", lost, [loss.kind for loss in rendering.losses]),
    )


def refusal(exchange: Exchange) -> type[CallError]:
    """Wire-rules §6: the words of a long prompt, else the type."""
    told = exchange.response["error"]
    return ContextTooLong if "prompt is too long" in told["message"] else TYPES[told["type"]]


def restored(
    request: dict[str, Any], body: dict[str, Any] | None, history: DecodedHistory, losses: tuple[Loss, ...]
) -> tuple[Any, Any]:
    """Both in one form, without the settings that the model does not take."""
    sent = without_losses(request, history.losses)
    dropped = [loss for loss in losses if loss.kind == "dropped"]
    for loss in dropped:
        if (name := loss.path.removeprefix("settings.")) in SETTINGS:
            sent.pop(SETTINGS[name])
    for tool in (body or {}).get("tools", ()):  # of an object without properties, empty ones are sent
        if (tool.get("input_schema") or {}).get("properties") == {}:
            del tool["input_schema"]["properties"]
    for tool in sent.get("tools") or ():
        if (tool.get("input_schema") or {}).get("properties") == {}:
            tool["input_schema"] = {key: each for key, each in tool["input_schema"].items() if key != "properties"}
    expected = normal(sent, lost(history, dropped, "text"))
    if body is None:
        return expected.get("messages"), None
    if any(loss.kind == "synthesized" and loss.path == "messages" for loss in losses):
        body["messages"].pop()
    return expected, normal(body, [])


WIRE = Wire(
    dialect=MESSAGES,
    counts=(358, 153, 17, 506),
    added_up=lambda exchange: accumulate(exchange.events or []),
    returned=returned,
    refusal=refusal,
    restored=restored,
    beside=("content[].type", "type", "role"),
)
