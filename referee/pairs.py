"""The calls of a request's body and the results that it presents as theirs, as text, for each wire.

    pairs("openai.chat", body) ──▶ ('{"city": "Oslo"}', 'rain'), …

Google's calls may have no ids: then results belong to the calls of the turn before, in their order.
"""

import json
from collections.abc import Callable, Iterator
from typing import Any

from referee.rules import camel

Body = dict[str, Any]
Pairs = Iterator[tuple[str, str]]


def pairs(wire: str, body: Body) -> Pairs:
    """Yield the text of each call with the text of its result, in the order of results."""
    return _READERS[wire](body)


def _chat(body: Body) -> Pairs:
    calls: dict[str, str] = {}
    for item in body["messages"]:
        calls.update({call["id"]: json.dumps(call) for call in item.get("tool_calls") or ()})
        if item["role"] == "tool":
            yield calls.get(item["tool_call_id"], ""), json.dumps(item["content"])


def _responses(body: Body) -> Pairs:
    calls: dict[str, str] = {}
    for item in body["input"] if isinstance(body["input"], list) else ():
        if item.get("type") == "function_call":
            calls[item["call_id"]] = item["arguments"]
        elif item.get("type") == "function_call_output":
            yield calls.get(item["call_id"], ""), json.dumps(item["output"])


def _messages(body: Body) -> Pairs:
    calls: dict[str, str] = {}
    for item in body["messages"]:
        for block in item["content"] if isinstance(item["content"], list) else ():
            if block["type"] == "tool_use":
                calls[block["id"]] = json.dumps(block["input"])
            elif block["type"] == "tool_result":
                yield calls.get(block["tool_use_id"], ""), json.dumps(block["content"])


def _generate_content(body: Body) -> Pairs:
    calls: list[Body] = []
    for content in body["contents"]:
        parts = [{camel(name): value for name, value in part.items()} for part in content["parts"]]
        results = [part["functionResponse"] for part in parts if "functionResponse" in part]
        for number, result in enumerate(results):
            named = [call for call in calls if result.get("id") and call.get("id") == result["id"]]
            call = named[0] if named else calls[number] if number < len(calls) else {}
            yield json.dumps(call), json.dumps(result)
        calls = [part["functionCall"] for part in parts if "functionCall" in part] or calls


_READERS: dict[str, Callable[[Body], Pairs]] = {
    "openai.chat": _chat,
    "openai.responses": _responses,
    "anthropic.messages": _messages,
    "google.generate_content": _generate_content,
}
