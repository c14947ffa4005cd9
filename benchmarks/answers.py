"""What servers answer: bodies and streams that carry what a vendor's do, and nothing more.

reply ─ a short text      reply_with_calls ─ a text and five calls      stream ─ small pieces of text, then a call
"""

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from benchmarks.work import MODELS, SENTENCES, Entry, call, compact, dumped, known_id

_REPLY = "Take the umbrella: it rains in Bergen until four, and the ferry has no roof over its deck."
_USAGE = {
    "openai.chat": {
        "prompt_tokens": 210, "completion_tokens": 30, "total_tokens": 240,
        "prompt_tokens_details": {"cached_tokens": 0, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": 0, "audio_tokens": 0, "accepted_prediction_tokens": 0,
                                      "rejected_prediction_tokens": 0},
    },
    "openai.responses": {
        "input_tokens": 210, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 30,
        "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 240,
    },
    "anthropic.messages": {
        "input_tokens": 210, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": 30,
        "service_tier": "standard",
    },
    "google.generate_content": {
        "promptTokenCount": 210, "candidatesTokenCount": 30, "totalTokenCount": 240,
        "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 210}],
    },
}  # fmt: skip


def reply_text() -> str:
    """What `reply` says, and `reply_with_calls` before its calls."""
    return _REPLY


def reply(wire: str) -> bytes:
    return dumped(_ANSWERS[wire](_REPLY, []))


def reply_with_calls(wire: str, numbers: range = range(5), text: str = _REPLY) -> bytes:
    """A text and the calls with those numbers, as the wire's server answers; an empty text is left out."""
    return dumped(_ANSWERS[wire](text, [call(number) for number in numbers]))


def answered(wire: str, numbers: range = range(5), text: str = _REPLY) -> Entry:
    """What whoever decodes `reply_with_calls` or `stream` must have found; Google's calls have no ids."""
    calls = [call(number) for number in numbers]
    return {"text": text, "calls": [(known_id(wire, each["id"]), each["name"], each["arguments"]) for each in calls]}


def found(wire: str, text: str, calls: Iterable[tuple[str | None, str, Mapping[str, Any]]]) -> Entry:
    """What a contender decoded, comparable with `answered`."""
    listed = [
        (known_id(wire, identifier), name, json.loads(json.dumps(dict(given)))) for identifier, name, given in calls
    ]
    return {"text": text, "calls": listed}


def reply_that_says(wire: str, entry: Entry) -> bytes:
    """An assistant's message of the conversation as the wire's server answers, with the reasoning that it has."""
    calls = [entry] if entry["kind"] == "call" else []
    return dumped(_reasoned(wire, _ANSWERS[wire](entry.get("text", ""), calls), entry.get("reasoning")))


def _reasoned(wire: str, answer: Entry, told: Entry | None) -> Entry:
    """The answer with what was thought before it: an item, a block, or a signature of the last part."""
    if told is None or wire == "openai.chat":
        return answer
    if wire == "openai.responses":
        answer["output"].insert(0, reasoning_item(told))
    elif wire == "anthropic.messages":
        block = {"type": "thinking", "thinking": told["text"], "signature": told["seal"]}
        answer["content"].insert(0, block)
    else:
        answer["candidates"][0]["content"]["parts"][-1]["thoughtSignature"] = told["seal"]
    return answer


def reasoning_item(told: Entry) -> Entry:
    return {
        "id": f"rs_{told['seal'][:24]}", "type": "reasoning", "encrypted_content": told["seal"],
        "summary": [{"type": "summary_text", "text": told["text"]}],
    }  # fmt: skip


def _chat_answer(text: str, calls: list[Entry]) -> Entry:
    message: Entry = {"role": "assistant", "content": text or None, "refusal": None, "annotations": []}
    if calls:
        message["tool_calls"] = [
            {
                "id": each["id"],
                "type": "function",
                "function": {"name": each["name"], "arguments": compact(each["arguments"])},
            }
            for each in calls
        ]
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": "tool_calls" if calls else "stop"}
    return {
        "id": "chatcmpl-bench01", "object": "chat.completion", "created": 1790000000, "model": MODELS["openai.chat"],
        "choices": [choice], "usage": _USAGE["openai.chat"], "service_tier": "default",
        "system_fingerprint": "fp_bench",
    }  # fmt: skip


def _function(called: Entry, arguments_text: str) -> Entry:
    return {"name": called["name"], "arguments": arguments_text}


def _responses_answer(text: str, calls: list[Entry], status: str = "completed") -> Entry:
    output: list[Entry] = [
        {
            "id": "msg_bench01", "type": "message", "status": "completed", "role": "assistant",
            "content": [{"type": "output_text", "annotations": [], "logprobs": [], "text": text}],
        }
    ] if text else []  # fmt: skip
    output += [
        {"id": f"fc_{each['id']}", "type": "function_call", "status": "completed", "call_id": each["id"],
         "name": each["name"], "arguments": compact(each["arguments"])}
        for each in calls
    ]  # fmt: skip
    return {
        "id": "resp_bench01", "object": "response", "created_at": 1790000000, "status": status, "background": False,
        "error": None, "incomplete_details": None, "instructions": None, "max_output_tokens": None,
        "model": MODELS["openai.responses"], "output": output, "parallel_tool_calls": True,
        "previous_response_id": None, "reasoning": {"effort": None, "summary": None}, "store": False,
        "temperature": 1.0, "text": {"format": {"type": "text"}}, "tool_choice": "auto", "tools": [], "top_p": 1.0,
        "truncation": "disabled", "usage": _USAGE["openai.responses"], "user": None, "metadata": {},
    }  # fmt: skip


def _anthropic_answer(text: str, calls: list[Entry]) -> Entry:
    content: list[Entry] = [{"type": "text", "text": text}] if text else []
    content += [
        {"type": "tool_use", "id": each["id"], "name": each["name"], "input": each["arguments"]} for each in calls
    ]
    return {
        "id": "msg_bench01", "type": "message", "role": "assistant", "model": MODELS["anthropic.messages"],
        "content": content, "stop_reason": "tool_use" if calls else "end_turn", "stop_sequence": None,
        "usage": _USAGE["anthropic.messages"],
    }  # fmt: skip


def _google_answer(text: str, calls: list[Entry], finish: str | None = "STOP") -> Entry:
    parts: list[Entry] = [{"text": text}] if text else []
    parts += [{"functionCall": {"name": each["name"], "args": each["arguments"]}} for each in calls]
    candidate: Entry = {"content": {"parts": parts, "role": "model"}, "index": 0}
    if finish:
        candidate["finishReason"] = finish
    return {
        "candidates": [candidate], "usageMetadata": _USAGE["google.generate_content"],
        "modelVersion": MODELS["google.generate_content"], "responseId": "bench01",
    }  # fmt: skip


_ANSWERS: dict[str, Callable[[str, list[Entry]], Entry]] = {
    "openai.chat": _chat_answer,
    "openai.responses": _responses_answer,
    "anthropic.messages": _anthropic_answer,
    "google.generate_content": _google_answer,
}


# Streams: text in small pieces, then one call; each chunk is one server-sent event.


def stream_text(wire: str, events: int) -> str:
    return "".join(_pieces(events - _FRAME[wire]))


def streamed(wire: str, events: int) -> Entry:
    """What whoever reads `stream` must have found."""
    return answered(wire, range(7, 8), stream_text(wire, events))


def stream(wire: str, events: int) -> list[bytes]:
    """A reply of exactly so many server-sent events (20 at least), each a chunk as the wire's server sends it."""
    if events < 20:
        raise ValueError(f"{events} events are too few for a text and a call; ask for 20 or more")
    pieces = _pieces(events - _FRAME[wire])
    made = _STREAMS[wire](pieces, call(7))
    assert len(made) == events, (wire, len(made), events)
    return made


def _pieces(count: int) -> list[str]:
    words = " ".join(SENTENCES).split(" ")
    return [words[number % len(words)] + " " for number in range(count)]


def _split(text: str) -> list[str]:
    """Arguments in five pieces, as models send them."""
    return [text[at * len(text) // 5 : (at + 1) * len(text) // 5] for at in range(5)]


def _chat_stream(pieces: list[str], called: Entry) -> list[bytes]:
    def chunk(delta: Entry, finish: str | None = None) -> Entry:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return {
            "id": "chatcmpl-bench01", "object": "chat.completion.chunk", "created": 1790000000,
            "model": MODELS["openai.chat"], "service_tier": "default", "system_fingerprint": "fp_bench",
            "choices": [choice], "usage": None,
        }  # fmt: skip

    opening = {
        "index": 0,
        "id": called["id"],
        "type": "function",
        "function": {"name": called["name"], "arguments": ""},
    }
    made = [chunk({"role": "assistant", "content": "", "refusal": None})]
    made += [chunk({"content": piece}) for piece in pieces]
    made.append(chunk({"tool_calls": [opening]}))
    made += [
        chunk({"tool_calls": [{"index": 0, "function": {"arguments": piece}}]})
        for piece in _split(compact(called["arguments"]))
    ]
    made.append(chunk({}, "tool_calls"))
    made.append({**chunk({}), "choices": [], "usage": _USAGE["openai.chat"]})
    return [b"data: " + dumped(each) + b"\n\n" for each in made] + [b"data: [DONE]\n\n"]


def _responses_stream(pieces: list[str], called: Entry) -> list[bytes]:
    text, place = "".join(pieces), {"item_id": "msg_bench01", "output_index": 0, "content_index": 0}
    whole = _responses_answer(text, [called])
    message, function_call = whole["output"]
    begun = {**_responses_answer("", [], "in_progress"), "usage": None}
    part = {"type": "output_text", "annotations": [], "logprobs": [], "text": ""}
    at_call: Entry = {"item_id": function_call["id"], "output_index": 1}
    made: list[Entry] = [
        {"type": "response.created", "response": begun},
        {"type": "response.in_progress", "response": begun},
        {"type": "response.output_item.added", "output_index": 0,
         "item": {**message, "status": "in_progress", "content": []}},
        {"type": "response.content_part.added", **place, "part": part},
        *({"type": "response.output_text.delta", **place, "delta": piece, "logprobs": []} for piece in pieces),
        {"type": "response.output_text.done", **place, "text": text, "logprobs": []},
        {"type": "response.content_part.done", **place, "part": {**part, "text": text}},
        {"type": "response.output_item.done", "output_index": 0, "item": message},
        {"type": "response.output_item.added", "output_index": 1,
         "item": {**function_call, "status": "in_progress", "arguments": ""}},
        *({"type": "response.function_call_arguments.delta", **at_call, "delta": piece}
          for piece in _split(compact(called["arguments"]))),
        {"type": "response.function_call_arguments.done", **at_call, "name": called["name"],
         "arguments": function_call["arguments"]},
        {"type": "response.output_item.done", "output_index": 1, "item": function_call},
        {"type": "response.completed", "response": whole},
    ]  # fmt: skip
    return [_named({**event, "sequence_number": number}) for number, event in enumerate(made)]


def _anthropic_stream(pieces: list[str], called: Entry) -> list[bytes]:
    begun = {**_anthropic_answer("", []), "stop_reason": None}
    block = {"type": "tool_use", "id": called["id"], "name": called["name"], "input": {}}
    made: list[Entry] = [
        {"type": "message_start", "message": begun},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "ping"},
        *({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": piece}}
          for piece in pieces),
        {"type": "content_block_stop", "index": 0},
        {"type": "content_block_start", "index": 1, "content_block": block},
        *({"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": piece}}
          for piece in _split(compact(called["arguments"]))),
        {"type": "content_block_stop", "index": 1},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use", "stop_sequence": None},
         "usage": {"output_tokens": 30}},
        {"type": "message_stop"},
    ]  # fmt: skip
    return [_named(event) for event in made]


def _google_stream(pieces: list[str], called: Entry) -> list[bytes]:
    made = [_google_answer(piece, [], None) for piece in pieces] + [_google_answer("", [called])]
    return [b"data: " + dumped(each) + b"\r\n\r\n" for each in made]


def _named(event: Entry) -> bytes:
    return f"event: {event['type']}\ndata: ".encode() + dumped(event) + b"\n\n"


_STREAMS: dict[str, Callable[[list[str], Entry], list[bytes]]] = {
    "openai.chat": _chat_stream,
    "openai.responses": _responses_stream,
    "anthropic.messages": _anthropic_stream,
    "google.generate_content": _google_stream,
}
_FRAME = {wire: len(make(["one piece"], call(7))) - 1 for wire, make in _STREAMS.items()}
"""How many events a wire's stream has around the pieces of its text."""
