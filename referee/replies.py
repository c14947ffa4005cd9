"""The body with which a vendor's server answers, from the neutral form of an assistant's message.

    {"content": [reasoning, text, call …], "finish": "length"}  ──body──▶  JSON of a wire

A library that reads this body builds its own message with all that it needs to continue, such as signed reasoning.
"""

import json
from collections.abc import Callable
from typing import Any

Entry = dict[str, Any]
FINE: Entry = {"content": [{"kind": "text", "text": "Fine."}]}


def arguments_text(call: Entry) -> str:
    """Return the arguments as text: what a model had written when its reply was cut off, or JSON."""
    return call["arguments_text"] if "arguments_text" in call else json.dumps(call["arguments"])


def _chat(parts: list[Entry], finish: str) -> Entry:
    calls = [
        {"id": part["id"], "type": "function", "function": {"name": part["name"], "arguments": arguments_text(part)}}
        for part in parts
        if part["kind"] == "call"
    ]
    text = "".join(part["text"] for part in parts if part["kind"] == "text")
    message: Entry = {"role": "assistant", "content": text or None, "refusal": None}
    reason = finish or ("tool_calls" if calls else "stop")
    choice = {"index": 0, "message": message | ({"tool_calls": calls} if calls else {}), "finish_reason": reason}
    usage = {"prompt_tokens": 9, "completion_tokens": 9, "total_tokens": 18}
    head = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "gpt-4.1"}
    return {**head, "choices": [{**choice, "logprobs": None}], "usage": usage}


def _responses(parts: list[Entry], finish: str) -> Entry:
    output: list[Entry] = []
    status = "incomplete" if finish else "completed"
    for number, part in enumerate(parts):
        if part["kind"] == "reasoning":
            summary = [{"type": "summary_text", "text": part["text"]}]
            output.append({"type": "reasoning", "id": f"rs_{number}", "summary": summary,
                           "encrypted_content": part["signature"]})  # fmt: skip
        elif part["kind"] == "call":
            output.append({"type": "function_call", "id": f"fc_{number}", "call_id": part["id"], "status": status,
                           "name": part["name"], "arguments": arguments_text(part)})  # fmt: skip
        else:
            content = [{"type": "output_text", "text": part["text"], "annotations": [], "logprobs": []}]
            output.append({"type": "message", "id": f"msg_{number}", "role": "assistant", "status": status,
                           "content": content})  # fmt: skip
    details = {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
    usage = {"input_tokens": 9, "output_tokens": 9, "total_tokens": 18, **details}
    cut = {"reason": "max_output_tokens"} if finish else None
    return {"id": "resp_1", "object": "response", "created_at": 1, "model": "gpt-5", "output": output, "usage": usage,
            "status": status, "incomplete_details": cut, "error": None, "instructions": None, "metadata": {},
            "parallel_tool_calls": True, "temperature": 1, "top_p": 1, "tool_choice": "auto", "tools": []}  # fmt: skip


def _messages(parts: list[Entry], finish: str) -> Entry:
    blocks: list[Entry] = []
    for part in parts:
        if part["kind"] == "reasoning":
            blocks.append({"type": "thinking", "thinking": part["text"], "signature": part["signature"]})
        elif part["kind"] == "call":
            blocks.append({"type": "tool_use", "id": part["id"], "name": part["name"], "input": part["arguments"]})
        else:
            blocks.append({"type": "text", "text": part["text"], "citations": None})
    calls = any(part["kind"] == "call" for part in parts)
    reason = "max_tokens" if finish else "tool_use" if calls else "end_turn"
    return {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5", "content": blocks,
            "stop_reason": reason, "stop_sequence": None,
            "usage": {"input_tokens": 9, "output_tokens": 9}}  # fmt: skip


def _generate_content(parts: list[Entry], finish: str) -> Entry:
    content: list[Entry] = []
    signature = next((part["signature"] for part in parts if part["kind"] == "reasoning"), None)
    for part in parts:
        if part["kind"] == "reasoning":
            content += [{"text": part["text"], "thought": True}] if part["text"] else []
            continue
        call = {key: part[key] for key in ("id", "name") if key in part} | {"args": part.get("arguments")}
        content.append({"functionCall": call} if part["kind"] == "call" else {"text": part["text"]})
        if signature:
            content[-1]["thoughtSignature"], signature = signature, None
    candidate = {"content": {"role": "model", "parts": content}, "finishReason": "MAX_TOKENS" if finish else "STOP"}
    usage = {"promptTokenCount": 9, "candidatesTokenCount": 9, "totalTokenCount": 18}
    return {"candidates": [{**candidate, "index": 0}], "usageMetadata": usage, "modelVersion": "gemini-3-pro-preview"}


_WRITERS: dict[str, Callable[[list[Entry], str], Entry]] = {
    "openai.chat": _chat,
    "openai.responses": _responses,
    "anthropic.messages": _messages,
    "google.generate_content": _generate_content,
}


def body(wire: str, message: Entry) -> bytes:
    """Return the reply of a wire's server that has the content of an assistant's message."""
    return json.dumps(_WRITERS[wire](message["content"], message.get("finish", ""))).encode()
