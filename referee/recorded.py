"""Conversations of several vendors: recorded requests, joined and marked, read at run time and not stored.

    SABIR_VENDOR_CASSETTES/anthropic.messages.jsonl.gz ─┐
                           openai.chat.jsonl.gz ────────┼─▶ one conversation of three vendors, with marks
                           gemini.generateContent… ─────┘

Only requests with texts, reasoning, calls and results are read. Each text, result and argument gets a mark at its end.
"""

import gzip
import itertools
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from referee.rules import camel

Entry = dict[str, Any]
VARIABLE = "SABIR_VENDOR_CASSETTES"
COUNT = 12
MOST = 20_000
"""Characters of the longest request that is read."""


class NotRead(Exception):
    """A request with content that has no neutral form here."""


def _part(**fields: Any) -> Entry:
    return fields


def _anthropic(body: Entry) -> Iterator[Entry]:
    names: dict[str, str] = {}
    for item in body["messages"]:
        content = item["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        parts = [_anthropic_part(block, names) for block in blocks]
        results = [part for part in parts if part["kind"] == "result"]
        others = [part for part in parts if part["kind"] != "result"]
        if item["role"] not in ("user", "assistant"):
            raise NotRead
        yield from (
            {"role": role, "content": each} for role, each in (("tool", results), (item["role"], others)) if each
        )


def _anthropic_part(block: Entry, names: dict[str, str]) -> Entry:
    match block["type"]:
        case "text":
            return _part(kind="text", text=block["text"])
        case "thinking":
            return _part(kind="reasoning", text=block["thinking"], signature=block["signature"])
        case "tool_use":
            names[block["id"]] = block["name"]
            return _part(kind="call", id=block["id"], name=block["name"], arguments=block["input"])
        case "tool_result":
            content = block.get("content", "")
            texts = [content] if isinstance(content, str) else [each["text"] for each in content]
            return _result(block["tool_use_id"], names, texts)
    raise NotRead


def _result(call: str, names: dict[str, str], texts: list[str]) -> Entry:
    content = [{"kind": "text", "text": text} for text in texts]
    return _part(kind="result", id=call, name=names[call], content=content)


def _chat(body: Entry) -> Iterator[Entry]:
    names: dict[str, str] = {}
    for item in body["messages"]:
        content = item.get("content")
        texts = [content] if isinstance(content, str) else [each["text"] for each in content or ()]
        parts = [_part(kind="text", text=text) for text in texts]
        if item["role"] == "tool":
            yield {"role": "tool", "content": [_result(item["tool_call_id"], names, texts)]}
        elif item["role"] in ("user", "assistant"):
            for call in item.get("tool_calls") or ():
                names[call["id"]] = call["function"]["name"]
                arguments = json.loads(call["function"]["arguments"])
                parts.append(_part(kind="call", id=call["id"], name=names[call["id"]], arguments=arguments))
            yield {"role": item["role"], "content": parts}


def _google(body: Entry) -> Iterator[Entry]:
    numbers = itertools.count()
    open_calls: list[Entry] = []
    for content in body["contents"]:
        parts: list[Entry] = []
        results: list[Entry] = []
        for part in ({camel(name): value for name, value in each.items()} for each in content["parts"]):
            if part.get("thought"):
                raise NotRead
            if "functionCall" in part:
                call = part["functionCall"]
                if "thoughtSignature" in part:
                    parts.append(_part(kind="reasoning", text="", signature=part["thoughtSignature"]))
                named = _part(id=call.get("id") or f"google_{next(numbers)}", name=call["name"])
                parts.append({"kind": "call", **named, "arguments": call.get("args") or {}})
                open_calls.append(named)
            elif "functionResponse" in part:
                call = open_calls.pop(0)
                results.append(_result(call["id"], {call["id"]: call["name"]}, [json.dumps(part["functionResponse"])]))
            else:
                parts.append(_part(kind="text", text=part["text"]))
        role = "assistant" if content["role"] == "model" else "user"
        yield from ({"role": each, "content": some} for each, some in (("tool", results), (role, parts)) if some)


READERS: dict[str, tuple[str, Callable[[Entry], Iterator[Entry]]]] = {
    "anthropic.messages": ("anthropic.messages", _anthropic),
    "openai.chat": ("openai.chat", _chat),
    "google.generate_content": ("gemini.generateContent", _google),
}


def conversations() -> dict[str, Entry]:
    """Return the joined conversations by their exchanges' ids; nothing if the recordings are not on this machine."""
    folder = os.environ.get(VARIABLE)
    if not folder or not Path(folder).is_dir():
        return {}
    read = [list(itertools.islice(_requests(Path(folder), wire), COUNT)) for wire in READERS]
    joined = {}
    for turn, parts in enumerate(zip(*read, strict=False)):
        rotated = [*parts[turn % 3 :], *parts[: turn % 3]]
        messages = [message for _, each in rotated for message in each]
        joined[" + ".join(name for name, _ in rotated)] = _marked(messages)
    return joined


def _requests(folder: Path, wire: str) -> Iterator[tuple[str, list[Entry]]]:
    """Yield the exchanges of a wire whose requests have a call and its result."""
    name, reader = READERS[wire]
    seen: set[str] = set()
    with gzip.open(folder / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
        for line in lines:
            exchange = json.loads(line)
            if exchange["provenance"] != "recorded" or exchange["status"] != 200 or len(line) > MOST:
                continue
            try:
                messages = list(reader(exchange["request"]))
            except (NotRead, KeyError, TypeError, IndexError, ValueError):
                continue
            text = json.dumps(messages)
            if '"call"' in text and '"result"' in text and messages[0]["role"] == "user" and text not in seen:
                seen.add(text)
                yield exchange["id"], [_from(message, wire) for message in messages]


def _from(message: Entry, wire: str) -> Entry:
    return {**message, "from": wire} if message["role"] == "assistant" else message


def _marked(messages: list[Entry]) -> Entry:
    """Return the history with a mark at the end of each text and in the first text of a call's arguments."""
    numbers = itertools.count(5000)
    names: set[str] = set()
    for message in messages:
        for part in message["content"]:
            for each in (part, *part.get("content", ())):
                if each.get("text", "").strip():
                    each["text"] += f" MARK{next(numbers)}"
            if part["kind"] == "call":
                names.add(part["name"])
                word = next((name for name, value in part["arguments"].items() if isinstance(value, str)), None)
                if word:
                    part["arguments"][word] += f" MARK{next(numbers)}"
    schema = {"type": "object", "properties": {}}
    options = [{"name": name, "description": "Recorded.", "parameters": schema} for name in sorted(names)]
    return {"title": "Recorded", "options": options, "messages": messages}
