"""Answers of every vendor's shape, with all that binds them to their maker; invented, none was recorded.

    BODIES[dialect] ──decode──▶ replies of one provider ──conversations──▶ histories for law 9

Every signature, ciphertext, id of the vendor's own and hidden thought begins with SEALED, so that a test can tell
whether one of them reached somebody else.
"""

import json
from collections.abc import Sequence
from functools import cache
from typing import Any

import sabir
from hypothesis import strategies as st
from sabir.contract.scope import DecodeScope
from sabir.vocabulary.messages import Message
from sabir.vocabulary.parts import MediaPart, TextPart
from sabir.vocabulary.settings import Target
from sabir_testing.histories.random_histories import PIXEL
from sabir_testing.histories.samples import message_by, result_message

SEALED = "sealed-"
said = message_by
PICTURE = PIXEL.partition(",")[2]


def _chat(message: dict[str, Any], finish: str = "stop") -> dict[str, Any]:
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish}
    return {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "gpt-5", "choices": [choice]}


def _tool(call_id: str, name: str, arguments: str) -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


CHAT = [
    _chat({"content": "The sky is clear.", "refusal": None}),
    _chat({"content": None, "refusal": "I will not."}),
    _chat({"content": None, "tool_calls": [_tool("call_1", "weather", '{"city": "Oslo"}')]}, "tool_calls"),
    _chat(
        {"content": "Two at once.", "tool_calls": [_tool("call_1", "weather", "{}"), _tool("call_2", "add", "{]")]},
        "tool_calls",
    ),
    _chat(
        {
            "content": "As reported.",
            "annotations": [
                {
                    "type": "url_citation",
                    "url_citation": {"url": "https://example.org", "title": "T", "start_index": 0, "end_index": 2},
                }
            ],
        }
    ),
]


def _responses(*output: dict[str, Any]) -> dict[str, Any]:
    return {"id": "resp_1", "object": "response", "status": "completed", "model": "gpt-5", "output": list(output)}


def _said(text: str, *annotations: dict[str, Any]) -> dict[str, Any]:
    content = [{"type": "output_text", "text": text, "annotations": list(annotations), "logprobs": []}]
    return {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": content}


_THOUGHT = {
    "type": "reasoning",
    "id": f"rs_{SEALED}1",
    "summary": [{"type": "summary_text", "text": f"{SEALED}thought"}],
    "encrypted_content": f"{SEALED}cipher",
}
_FUNCTION = {
    "type": "function_call",
    "id": f"fc_{SEALED}1",
    "call_id": "call_1",
    "name": "weather",
    "arguments": '{"city":"Oslo"}',
    "status": "completed",
}
RESPONSES = [
    _responses(_said("The sky is clear.")),
    _responses(_THOUGHT, _said("I thought about it.")),
    _responses(_THOUGHT, _FUNCTION),
    _responses(_THOUGHT, _FUNCTION, {**_FUNCTION, "id": f"fc_{SEALED}2", "call_id": "call_2", "name": "add"}),
    _responses(
        {"type": "web_search_call", "id": f"ws_{SEALED}1", "status": "completed", "action": {"type": "search"}},
        _said("Found.", {"type": "url_citation", "url": "https://example.org", "title": "T", "start_index": 0,
                         "end_index": 5}),
    ),
    _responses(
        {"type": "custom_tool_call", "id": f"ctc_{SEALED}1", "call_id": f"{SEALED}c", "name": "own", "input": "x"}
    ),
    _responses(
        {"type": "image_generation_call", "id": f"ig_{SEALED}1", "status": "completed", "result": PICTURE},
        _said("Painted."),
    ),
]  # fmt: skip


def _messages(*content: dict[str, Any], stop: str = "end_turn") -> dict[str, Any]:
    usage = {"input_tokens": 3, "output_tokens": 4}
    head = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-sonnet-5", "stop_sequence": None}
    return {**head, "content": list(content), "stop_reason": stop, "usage": usage}


_THINKING = {"type": "thinking", "thinking": f"{SEALED}thought", "signature": f"{SEALED}signature"}
_USE = {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {"city": "Oslo"}}
_SERVER = {"type": "server_tool_use", "id": f"srvtoolu_{SEALED}1", "name": "web_search", "input": {"query": "q"}}
_FOUND = {
    "type": "web_search_tool_result",
    "tool_use_id": f"srvtoolu_{SEALED}1",
    "content": [
        {
            "type": "web_search_result",
            "url": "https://example.org",
            "title": "T",
            "encrypted_content": f"{SEALED}page",
            "page_age": None,
        }
    ],
}
_CITED = {
    "type": "web_search_result_location",
    "url": "https://example.org",
    "title": "T",
    "cited_text": "clear",
    "encrypted_index": f"{SEALED}index",
}
MESSAGES = [
    _messages({"type": "text", "text": "The sky is clear."}),
    _messages(_THINKING, {"type": "text", "text": "I thought about it."}),
    _messages({"type": "redacted_thinking", "data": f"{SEALED}data"}, {"type": "text", "text": "Hidden."}),
    _messages(_THINKING, _USE, {**_USE, "id": "toolu_2", "name": "add", "input": {}}, stop="tool_use"),
    _messages(_SERVER, _FOUND, {"type": "text", "text": "Found.", "citations": [_CITED]}),
    _messages({"type": "text", "text": "Let me look."}, _SERVER, stop="pause_turn"),
]


def _gemini(*parts: dict[str, Any], **candidate: Any) -> dict[str, Any]:
    one = {"content": {"role": "model", "parts": list(parts)}, "finishReason": "STOP", "index": 0, **candidate}
    usage = {"promptTokenCount": 3, "candidatesTokenCount": 4, "totalTokenCount": 7}
    return {"candidates": [one], "usageMetadata": usage, "modelVersion": "gemini-3-pro", "responseId": "r1"}


_GEMINI_CALL = {"functionCall": {"name": "weather", "args": {"city": "Oslo"}}, "thoughtSignature": f"{SEALED}c2lnA"}
GEMINI = [
    _gemini({"text": "The sky is clear."}),
    _gemini({"text": f"{SEALED}thought", "thought": True}, {"text": "So.", "thoughtSignature": f"{SEALED}c2lnA"}),
    _gemini(_GEMINI_CALL, {"functionCall": {"name": "add", "args": {}}}),
    _gemini({"functionCall": {"id": "fc-1", "name": "weather", "args": {}}, "thoughtSignature": f"{SEALED}c2lnA"}),
    _gemini(
        {"executableCode": {"id": f"{SEALED}1", "language": "PYTHON", "code": "print(1)"}},
        {"codeExecutionResult": {"id": f"{SEALED}1", "outcome": "OUTCOME_OK", "output": "1"}},
        {"text": "One."},
    ),
    _gemini({"text": "A picture:"}, {"inlineData": {"mimeType": "image/png", "data": PICTURE}}),
    _gemini(
        {"text": "Found."},
        groundingMetadata={
            "groundingChunks": [{"web": {"uri": "https://example.org", "title": "T"}}],
            "groundingSupports": [
                {"segment": {"startIndex": 0, "endIndex": 5, "text": "Found"}, "groundingChunkIndices": [0]}
            ],
        },
    ),
]
BODIES: dict[str, list[dict[str, Any]]] = {
    "openai.chat": CHAT,
    "openai.responses": RESPONSES,
    "anthropic.messages": MESSAGES,
    "google.generate_content": GEMINI,
}
MODELS = {
    "openai.chat": "gpt-5",
    "openai.responses": "gpt-5",
    "anthropic.messages": "claude-sonnet-5",
    "google.generate_content": "gemini-3-pro",
}
ELSEWHERE = "https://elsewhere.example"


def target_of(dialect: str, endpoint: str | None = None) -> Target:
    """Where a dialect's own model is; at another endpoint where one is given."""
    target = sabir.dialect(dialect).target
    changes = {"model": MODELS[dialect]} | ({} if endpoint is None else {"endpoint": endpoint})
    return target.model_copy(update=changes)


@cache
def decoded(dialect: str, endpoint: str | None = None) -> tuple[tuple[Message, ...], ...]:
    """The messages of each of a dialect's answers."""
    scope = DecodeScope(target_of(dialect, endpoint))
    made = sabir.dialect(dialect).dialect
    return tuple(made.decode(json.dumps(body).encode(), scope).messages for body in BODIES[dialect])


def _result(call: Message, kind: str) -> Message:
    assert call.call is not None
    forms: dict[str, dict[str, Any]] = {
        "value": {"result": {"celsius": 18}},
        "text": {"result": "rain"},
        "error": {"is_error": True, "error_type": "Boom", "error_message": "no"},
        "picture": {"parts": (TextPart(text="see"), MediaPart(modality="image", url=PIXEL))},
    }
    return result_message(call.call.invocation_id, name=call.call.option_name, **forms[kind])


@st.composite
def exchanges(draw: Any, dialect: str, endpoint: str | None = None) -> Sequence[Message]:
    """What a user says, what the provider answers (its messages with new ids), and the results of its calls."""
    asked = draw(st.sampled_from(["Umbrella?", "And now?"]))
    user = draw(st.sampled_from([[said("user", asked)], [said("user", asked), said("system", "Be brief.")], []]))
    answer = draw(st.sampled_from(decoded(dialect, endpoint)))
    mine = [Message.model_validate({**message.model_dump(mode="json"), "id": f"m{draw(st.integers(0, 10**9))}"})
            for message in answer]  # fmt: skip
    results = [
        _result(each, draw(st.sampled_from(["value", "text", "error", "picture"]))) for each in mine if each.call
    ]
    kept = draw(st.sampled_from(["all", "all", "all", "none", "last"]))
    return [*user, *mine, *(results if kept == "all" else results[-1:] if kept == "last" else [])]


def conversations(*sources: tuple[str, str | None]) -> st.SearchStrategy[list[Message]]:
    """Conversations that providers of these dialects and endpoints answered in turn, in any order."""
    one = st.one_of([exchanges(dialect, endpoint) for dialect, endpoint in sources])
    leading = st.sampled_from([[], [said("system", "You know the sky.")]])
    return st.builds(
        lambda start, turns: [*start, *(message for turn in turns for message in turn)],
        leading,
        st.lists(one, min_size=1, max_size=4),
    )
