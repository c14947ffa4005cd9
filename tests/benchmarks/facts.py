"""What a request says, whoever wrote it: equal for equal work.

body ──normalised──▶ facts ◀──expected── messages
"""

import json
from collections.abc import Callable, Mapping
from typing import Any

from tests.benchmarks.conversations import Entry, compact

Fact = tuple[Any, ...]


def expected(wire: str, entries: list[Entry]) -> list[Fact]:
    """What a request of these messages must say, comparable with `normalised`."""
    facts: list[Fact] = []
    for entry in entries:
        match entry["kind"]:
            case "call":
                facts.append(("call", known_id(wire, entry["id"]), entry["name"], entry["arguments"]))
            case "result":
                facts.append(("result", known_id(wire, entry["id"]), _known_name(wire, entry["name"]), entry["text"]))
            case kind:
                facts.append(({"text": "assistant"}.get(kind, kind), entry["text"]))
    return facts


def normalised(wire: str, body: bytes | str | Mapping[str, Any]) -> list[Fact]:
    """What a request's messages say: (role, text), ("call", id, name, arguments), ("result", id, name, text).

    Ids are None on Google's wire, and results' names None on the others, which have none. Neighbouring texts of
    one role in one message are joined. A mapping may be a part of a request: its messages and its system alone.
    """
    fields: Mapping[str, Any] = json.loads(body) if isinstance(body, bytes | str) else body
    return _READERS[wire](fields)


def _chat_facts(body: Mapping[str, Any]) -> list[Fact]:
    facts: list[Fact] = []
    for message in body["messages"]:
        role = {"developer": "system"}.get(message["role"], message["role"])
        text = _joined(message.get("content"))
        if role == "tool":
            facts.append(("result", message["tool_call_id"], None, text))
        elif text:
            facts.append((role, text))
        for made in message.get("tool_calls") or ():
            function = made["function"]
            facts.append(("call", made["id"], function["name"], json.loads(function["arguments"])))
    return facts


def _responses_facts(body: Mapping[str, Any]) -> list[Fact]:
    facts: list[Fact] = [("system", body["instructions"])] if body.get("instructions") else []
    for item in body["input"]:
        match item.get("type", "message"):
            case "message":
                role = {"developer": "system"}.get(item["role"], item["role"])
                facts.append((role, _joined(item["content"])))
            case "function_call":
                facts.append(("call", item["call_id"], item["name"], json.loads(item["arguments"])))
            case "function_call_output":
                facts.append(("result", item["call_id"], None, _joined(item["output"])))
            case kind:
                facts.append((kind,))
    return facts


def _anthropic_facts(body: Mapping[str, Any]) -> list[Fact]:
    facts: list[Fact] = [("system", _joined(body["system"]))] if body.get("system") else []
    for message in body["messages"]:
        content = message["content"]
        for block in [{"type": "text", "text": content}] if isinstance(content, str) else content:
            match block["type"]:
                case "text":
                    facts.append((message["role"], block["text"]))
                case "tool_use":
                    facts.append(("call", block["id"], block["name"], block["input"]))
                case "tool_result":
                    facts.append(("result", block["tool_use_id"], None, _joined(block.get("content"))))
                case kind:
                    facts.append((kind,))
    return facts


def _google_facts(body: Mapping[str, Any]) -> list[Fact]:
    instruction = body.get("systemInstruction") or body.get("system_instruction")
    facts: list[Fact] = [("system", _joined(instruction["parts"]))] if instruction else []
    for content in body["contents"]:
        role = {"model": "assistant"}.get(content["role"], content["role"])
        for part in content["parts"]:
            made = part.get("functionCall") or part.get("function_call")
            came = part.get("functionResponse") or part.get("function_response")
            if made:
                facts.append(("call", None, made["name"], made["args"]))
            elif came:
                facts.append(("result", None, came["name"], _only_text(came["response"])))
            else:
                facts.append((role, part["text"]))
    return facts


_READERS: dict[str, Callable[[Mapping[str, Any]], list[Fact]]] = {
    "openai.chat": _chat_facts,
    "openai.responses": _responses_facts,
    "anthropic.messages": _anthropic_facts,
    "google.generate_content": _google_facts,
}


def known_id(wire: str, identifier: str | None) -> str | None:
    """An id as the wire knows it: None on Google's, which has none."""
    return None if wire == "google.generate_content" else identifier


def _known_name(wire: str, name: str) -> str | None:
    return name if wire == "google.generate_content" else None


def _joined(content: Any) -> str:
    """The text of a string, or of a list of blocks that hold some."""
    if content is None or isinstance(content, str):
        return content or ""
    return "".join(block if isinstance(block, str) else block.get("text", "") for block in content)


def _only_text(response: Mapping[str, Any]) -> str:
    """What a function response says, whatever its one field is called."""
    values = list(response.values())
    return values[0] if len(values) == 1 and isinstance(values[0], str) else compact(response)
