"""Answers of Messages, whole, streamed and in AWS frames, that the tests of this folder share."""

import base64
import json
import struct
import zlib
from typing import Any

import sabir
from sabir.contract.scope import DecodeScope
from sabir.vocabulary.reply import Reply
from sabir.vocabulary.settings import Target
from sabir_anthropic.dialect import MESSAGES

SCOPE = DecodeScope(
    target=Target(provider="anthropic", dialect="anthropic.messages", model="claude-opus-5-5"),
    option_names={"my_weather": "my weather"},
)
THINKING = {"type": "thinking", "thinking": "Hm.", "signature": "sig"}
USE = {"type": "tool_use", "id": "toolu_1", "name": "my_weather", "input": {"city": "Rome"}}
SERVER = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "q"}}
FOUND = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}


def message(*content: Any, **fields: Any) -> dict[str, Any]:
    head = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-opus-5-5", "stop_sequence": None}
    return {**head, "stop_reason": "end_turn", "usage": {}, **fields, "content": list(content)}


def decode(*content: Any, **fields: Any) -> Reply:
    return MESSAGES.decode(json.dumps(message(*content, **fields)).encode(), SCOPE)


START = {"type": "message_start", "message": message(stop_reason=None, usage={"input_tokens": 3, "output_tokens": 1})}
STOP = {"type": "message_stop"}


def begun(index: int, block: Any) -> dict[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": block}


def delta(index: int, kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": {"type": f"{kind}_delta", **fields}}


def done(index: int) -> dict[str, Any]:
    return {"type": "content_block_stop", "index": index}


def ended(reason: str = "end_turn", **usage: Any) -> dict[str, Any]:
    return {"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": None}, "usage": usage}


def frame(payload: bytes, **headers: str) -> bytes:
    """An AWS frame, its checksums right."""
    head = b"".join(
        bytes([len(name) + 1]) + f":{name.replace('_', '-')}".encode() + b"\x07" + struct.pack(">H", len(value))
        + value.encode() for name, value in headers.items()
    )  # fmt: skip
    prelude = struct.pack(">II", len(head) + len(payload) + 16, len(head))
    whole = prelude + struct.pack(">I", zlib.crc32(prelude)) + head + payload
    return whole + struct.pack(">I", zlib.crc32(whole))


def framed(event: Any) -> bytes:
    payload = json.dumps({"bytes": base64.b64encode(json.dumps(event).encode()).decode(), "p": "abc"}).encode()
    return frame(payload, event_type="chunk", content_type="application/json", message_type="event")


def streamed(wire: list[Any]) -> bytes:
    return "".join(f"event: {each['type']}\ndata: {json.dumps(each)}\n\n" for each in wire).encode()


ANSWER = json.dumps(message({"type": "text", "text": "Hello."})).encode()
WIRE = [START, begun(0, {"type": "text", "text": ""}), delta(0, "text", text="Hello."), done(0), ended(), STOP]
SHORT = sabir.Settings(max_output_tokens=1024, retries=0)
"""An answer that may come at once."""
