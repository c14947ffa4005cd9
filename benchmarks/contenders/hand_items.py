"""The hand-written loops of the limit over its messages: one for each wire, as plain as the wire lets them be.

What the conversations hold is all that they know: texts, an image beside a user's, calls, results, sealed thoughts, ids
that a wire does not take.
"""

import re
from collections.abc import Iterable
from functools import partial
from hashlib import sha256
from typing import Any

import orjson

from benchmarks.work import Entry

Messages = Iterable[Any]
"""Of the limit: a kind is read once, which no type checker follows."""
NO_SIGNATURE = "c2tpcF90aG91Z2h0X3NpZ25hdHVyZV92YWxpZGF0b3I="
"""What Google documents for calls of another maker's, where its model wants a signature."""

is_valid = re.compile(r"[A-Za-z0-9_-]{1,64}").fullmatch
refused = re.compile(r"[^A-Za-z0-9_-]")


def known(identifier: str) -> str:
    """An id that the wire takes, for one that it does not."""
    return f"{refused.sub('_', identifier)[:51]}_{sha256(identifier.encode()).hexdigest()[:12]}"


def chat(messages: Messages) -> list[Entry]:
    items: list[Entry] = []
    calls: list[Entry] | None = None
    for message in messages:
        kind = message.kind
        if kind == "call":
            function = {"name": message.name, "arguments": message.arguments}
            if calls is None:
                calls = []
                items.append({"role": "assistant", "content": None, "tool_calls": calls})
            identifier = message.id if is_valid(message.id) else known(message.id)
            calls.append({"id": identifier, "type": "function", "function": function})
            continue
        calls = None
        if kind == "result":
            identifier = message.id if is_valid(message.id) else known(message.id)
            items.append({"role": "tool", "tool_call_id": identifier, "content": message.text})
        elif message.image:
            shown = {"type": "image_url", "image_url": {"url": message.image}}
            items.append({"role": message.role, "content": [{"type": "text", "text": message.text}, shown]})
        else:
            items.append({"role": message.role, "content": message.text})
    return items


def responses(messages: Messages) -> list[Entry]:
    """For OpenAI's Responses: what has an id goes back as the item that it was."""
    items: list[Entry] = []
    for message in messages:
        kind = message.kind
        if kind == "result":
            identifier = message.id if is_valid(message.id) else known(message.id)
            items.append({"type": "function_call_output", "call_id": identifier, "output": message.text})
            continue
        thought = message.thought
        if thought is not None and thought.is_own:
            summary = [{"type": "summary_text", "text": thought.text}]
            items.append({
                "type": "reasoning", "id": f"rs_{thought.seal[:24]}", "summary": summary,
                "encrypted_content": thought.seal,
            })  # fmt: skip
        if kind == "call":
            identifier = message.id if is_valid(message.id) else known(message.id)
            item = {
                "type": "function_call", "call_id": identifier, "name": message.name, "arguments": message.arguments,
            }  # fmt: skip
            if message.item:
                item["id"], item["status"] = message.item, "completed"
            items.append(item)
        elif message.item:
            content = [{"type": "output_text", "text": message.text, "annotations": [], "logprobs": []}]
            items.append({
                "type": "message", "id": message.item, "role": "assistant", "status": "completed", "content": content,
            })  # fmt: skip
        elif message.image:
            text = {"type": "input_text", "text": message.text}
            shown = {"type": "input_image", "detail": "auto", "image_url": message.image}
            items.append({"role": message.role, "content": [text, shown]})
        else:
            items.append({"role": message.role, "content": message.text})
    return items


def anthropic(messages: Messages) -> list[Entry]:
    items: list[Entry] = []
    last: tuple[str, list[Entry]] = ("", [])
    for message in messages:
        kind = message.kind
        blocks: list[Entry] = []
        if kind == "result":
            role = "user"
            identifier = message.id if is_valid(message.id) else known(message.id)
            blocks.append({"type": "tool_result", "tool_use_id": identifier, "content": message.text})
        else:
            thought = message.thought
            if thought is not None and thought.is_own:
                blocks.append({"type": "thinking", "thinking": thought.text, "signature": thought.seal})
            if kind == "text":
                last = ("", [])
                if not blocks and not message.image:
                    items.append({"role": message.role, "content": message.text})
                    continue
                blocks.append({"type": "text", "text": message.text})
                if message.image:
                    mime, _, data = message.image[5:].partition(";base64,")
                    blocks.append({"type": "image", "source": {"type": "base64", "media_type": mime, "data": data}})
                items.append({"role": message.role, "content": blocks})
                continue
            role = "assistant"
            blocks.append({
                "type": "tool_use", "id": message.id if is_valid(message.id) else known(message.id),
                "name": message.name, "input": orjson.Fragment(message.arguments),
            })  # fmt: skip
        if last[0] == role:
            last[1].extend(blocks)
        else:
            last = (role, blocks)
            items.append({"role": role, "content": blocks})
    return items


def google(messages: Messages, *, unsigned: str = "") -> list[Entry]:
    """For Google's generateContent; `unsigned` stands for the signature of a step's first call that has none."""
    items: list[Entry] = []
    last: tuple[str, list[Entry]] = ("", [])
    for message in messages:
        kind = message.kind
        if kind == "text":
            part: Entry = {"text": message.text}
            parts = [part]
            if message.image:
                mime, _, data = message.image[5:].partition(";base64,")
                parts.append({"inlineData": {"mimeType": mime, "data": data}})
            if message.thought is not None and message.thought.is_own:
                part["thoughtSignature"] = message.thought.seal
            items.append({"role": "model" if message.role == "assistant" else "user", "parts": parts})
            last = ("", [])
            continue
        if kind == "call":
            role = "model"
            part = {"functionCall": {"name": message.name, "args": orjson.Fragment(message.arguments)}}
            if message.thought is not None and message.thought.is_own:
                part["thoughtSignature"] = message.thought.seal
            elif unsigned and last[0] != role:
                part["thoughtSignature"] = unsigned
        else:
            role = "user"
            part = {"functionResponse": {"name": message.name, "response": {"output": message.text}}}
        if last[0] == role:
            last[1].append(part)
        else:
            last = (role, [part])
            items.append({"role": role, "parts": last[1]})
    return items


gemini_3 = partial(google, unsigned=NO_SIGNATURE)
"""For the model that wants a signature on every step's first call."""
