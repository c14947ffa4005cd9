"""What a request says, whoever wrote it: equal for equal work.

body ──normalised──▶ facts ◀──expected── messages
"""

import json
import re
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tests.benchmarks.conversations import Entry, compact

Fact = tuple[Any, ...]

NO_SIGNATURES = ("", "c2tpcF90aG91Z2h0X3NpZ25hdHVyZV92YWxpZGF0b3I", "skip/thought/signature/validator")
"""What Google documents for a signature that there is not, as bytes or as a text; it says nothing."""
_REFUSED = {
    "openai.chat": re.compile(r".{65,}"),
    "openai.responses": re.compile(r".{65,}"),
    "anthropic.messages": re.compile(r".*[^a-zA-Z0-9_-]"),
}
"""Wire → the ids of calls that it refuses."""


def expected(wire: str, entries: list[Entry]) -> list[Fact]:
    """What a request of these messages must say, comparable with `normalised`."""
    facts: list[Fact] = []
    for entry in entries:
        if told := entry.get("reasoning"):
            facts.append(("reasoning", told["text"], told["seal"].rstrip("=")))
        match entry["kind"]:
            case "call":
                facts.append(("call", known_id(wire, entry["id"]), entry["name"], entry["arguments"]))
            case "result":
                facts.append(("result", known_id(wire, entry["id"]), _known_name(wire, entry["name"]), entry["text"]))
            case kind:
                facts.append(({"text": "assistant"}.get(kind, kind), entry["text"]))
        if "image" in entry:
            facts.append(("image", entry["image"]))
    return _paired(facts)


def normalised(wire: str, body: bytes | str | Mapping[str, Any]) -> list[Fact]:
    """What a request's messages say.

    (role, text), ("image", URL), ("reasoning", text, seal), ("call", id, name, arguments), ("result", id, name, text).
    Ids are numbers: what a wire makes of one is its own, but a result has its call's. They are None on Google's wire,
    and results' names None on the others, which have none. Neighbouring texts of one message are joined. A mapping may
    be a part of a request: its messages and its system alone.
    """
    return _paired(list(_READERS[wire](_fields(body))))


def refused_ids(wire: str, body: bytes | str | Mapping[str, Any]) -> int:
    """How many calls of a request have an id that the wire refuses."""
    if wire not in _REFUSED:
        return 0
    calls = [fact for fact in _READERS[wire](_fields(body)) if fact[0] == "call"]
    return sum(bool(_REFUSED[wire].match(str(fact[1]))) for fact in calls)


def _fields(body: bytes | str | Mapping[str, Any]) -> Mapping[str, Any]:
    fields: Mapping[str, Any] = json.loads(body) if isinstance(body, bytes | str) else body
    return fields


def _paired(facts: list[Fact]) -> list[Fact]:
    """The facts with the number of its call for every id that a call has."""
    ids = [fact[1] for fact in facts if fact[0] == "call" and fact[1] is not None]
    numbers = {identifier: number for number, identifier in enumerate(ids)}
    return [
        (kind, numbers.get(rest[0], rest[0]), *rest[1:]) if kind in ("call", "result") else (kind, *rest)
        for kind, *rest in facts
    ]


def _chat_facts(body: Mapping[str, Any]) -> Iterator[Fact]:
    for message in body["messages"]:
        role = {"developer": "system"}.get(message["role"], message["role"])
        text = _joined(message.get("content"))
        if role == "tool":
            yield "result", message["tool_call_id"], None, text
        elif text:
            yield role, text
        for block in _blocks(message.get("content"), "image_url"):
            yield "image", block["image_url"]["url"]
        for made in message.get("tool_calls") or ():
            function = made["function"]
            yield "call", made["id"], function["name"], json.loads(function["arguments"])


def _responses_facts(body: Mapping[str, Any]) -> Iterator[Fact]:
    if body.get("instructions"):
        yield "system", body["instructions"]
    for item in body["input"]:
        match item.get("type", "message"):
            case "message":
                yield {"developer": "system"}.get(item["role"], item["role"]), _joined(item["content"])
                for block in _blocks(item["content"], "input_image"):
                    yield "image", block["image_url"]
            case "function_call":
                yield "call", item["call_id"], item["name"], json.loads(item["arguments"])
            case "function_call_output":
                yield "result", item["call_id"], None, _joined(item["output"])
            case "reasoning":
                yield "reasoning", _joined(item.get("summary")), (item.get("encrypted_content") or "").rstrip("=")
            case kind:
                yield (kind,)


def _anthropic_facts(body: Mapping[str, Any]) -> Iterator[Fact]:
    if body.get("system"):
        yield "system", _joined(body["system"])
    for message in body["messages"]:
        content = message["content"]
        blocks: list[Any] = [{"type": "text", "text": content}] if isinstance(content, str) else content
        for block in blocks:
            match block["type"]:
                case "text":
                    yield message["role"], block["text"]
                case "image":
                    yield "image", f"data:{block['source']['media_type']};base64,{block['source']['data']}"
                case "thinking":
                    yield "reasoning", block["thinking"], block["signature"].rstrip("=")
                case "tool_use":
                    yield "call", block["id"], block["name"], block["input"]
                case "tool_result":
                    yield "result", block["tool_use_id"], None, _joined(block.get("content"))
                case kind:
                    yield (kind,)


def _google_facts(body: Mapping[str, Any]) -> Iterator[Fact]:
    instruction = body.get("systemInstruction") or body.get("system_instruction")
    if instruction:
        yield "system", _joined(instruction["parts"])
    for content in body["contents"]:
        role = {"model": "assistant"}.get(content["role"], content["role"])
        for part in content["parts"]:
            made = part.get("functionCall") or part.get("function_call")
            came = part.get("functionResponse") or part.get("function_response")
            shown = part.get("inlineData") or part.get("inline_data")
            seal = _standard(part.get("thoughtSignature") or part.get("thought_signature") or "")
            if seal not in NO_SIGNATURES:
                yield "reasoning", "", seal
            if made:
                yield "call", None, made["name"], made["args"]
            elif came:
                yield "result", None, came["name"], _only_text(came["response"])
            elif shown:
                data = _standard(shown["data"])
                mime = shown.get("mimeType") or shown.get("mime_type")
                yield "image", f"data:{mime};base64,{data}{'=' * (-len(data) % 4)}"
            else:
                yield role, part["text"]


_READERS: dict[str, Callable[[Mapping[str, Any]], Iterator[Fact]]] = {
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


def _blocks(content: Any, kind: str) -> list[Any]:
    return [block for block in content if block.get("type") == kind] if isinstance(content, list) else []


def _standard(encoded: str | bytes) -> str:
    """Bytes in base64, of whichever alphabet, in the standard one and without padding."""
    given = encoded if isinstance(encoded, str) else b64encode(encoded).decode()
    return given.replace("-", "+").replace("_", "/").rstrip("=")


def _only_text(response: Mapping[str, Any]) -> str:
    """What a function response says, whatever its one field is called."""
    values = list(response.values())
    return values[0] if len(values) == 1 and isinstance(values[0], str) else compact(response)
