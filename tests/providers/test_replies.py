"""What every dialect makes of answers that are none, of errors in mid-stream, and of the vendor's word for the end."""

import json
from typing import Any

import pytest
import sabir
from sabir.errors import (
    CallError,
    ContextTooLong,
    Overloaded,
    QuotaExceeded,
    RateLimited,
    ResponseInvalid,
    ServerFailed,
    StreamBroken,
)
from sabir.vocabulary.reply import BlockDelta, BlockEnd, BlockStart, ReplyEnd, ReplyStart

from tests.providers.wires import DIALECTS, events, fold, same, scope_of, whole

CLAUDE, GEMINI, CHAT, RESPONSES = DIALECTS
NO_ANSWERS: dict[str, list[bytes]] = {
    CLAUDE: [b"{}", b'{"content":null}', b'{"content":{}}'],
    GEMINI: [b"{}", b'"x"', b'[{"a":1}]', b'{"candidates":[]}'],
    CHAT: [b"[1]", b'{"a":NaN}', b'{"choices":[]}', b'{"choices":'],
    RESPONSES: [b'{"hello": 1}', b'{"output": {}}', b'{"output": ['],
}


@pytest.mark.parametrize("name", DIALECTS)
def test_what_is_no_answer_is_an_invalid_response(name: str) -> None:
    scope = scope_of(name, request_id="req_1")
    for body in (b"", b"  ", b"<html>busy</html>", b"[]", b"\xff\xfe", *NO_ANSWERS[name]):
        with pytest.raises(ResponseInvalid, match=rf"^{scope.target.provider}:m answered ") as raised:
            sabir.dialect(name).dialect.decode(body, scope)
        assert (raised.value.provider, raised.value.request_id) == (scope.target.provider, "req_1")
        assert "\n" not in str(raised.value)


@pytest.mark.parametrize("name", DIALECTS)
def test_an_event_that_is_no_object_is_an_invalid_response(name: str) -> None:
    for data in ("<html>", "{", "[1]", '"a"'):
        with pytest.raises(ResponseInvalid, match="JSON object"):
            events(scope_of(name), data)


def claude(*content: Any, **fields: Any) -> dict[str, Any]:
    head = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "usage": {}}
    return {**head, "stop_reason": "end_turn", **fields, "content": list(content)}


def gemini(*parts: Any, reason: str | None = "STOP") -> dict[str, Any]:
    return {"candidates": [{"content": {"role": "model", "parts": list(parts)}, "finishReason": reason}]}


def chat(message: Any, finish: str | None = "stop", key: str = "message") -> dict[str, Any]:
    return {"id": "c", "model": "m", "choices": [{"index": 0, key: message, "finish_reason": finish}]}


def response(*output: Any, **fields: Any) -> dict[str, Any]:
    return {"id": "resp_1", "model": "m", "status": "completed", "output": list(output), **fields}


SAID = {"text": "Hello."}
CALL = {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
ENDS: dict[str, list[tuple[Any, str | None, str]]] = {
    CLAUDE: [
        (claude(stop_reason=raw), raw, neutral) for raw, neutral in [
            ("end_turn", "stop"), ("stop_sequence", "stop"), ("tool_use", "option_calls"), ("max_tokens", "length"),
            ("model_context_window_exceeded", "length"), ("refusal", "content_filter"), ("pause_turn", "paused"),
            ("of 2030", "other"), (None, "other"),
        ]
    ],
    GEMINI: [
        (gemini(SAID, reason=raw), raw, neutral) for raw, neutral in [
            ("STOP", "stop"), ("MAX_TOKENS", "length"), ("CONTINUATION", "length"), ("SAFETY", "content_filter"),
            ("MODEL_ARMOR", "content_filter"), ("ESCALATION", "content_filter"), ("IMAGE_SAFETY", "content_filter"),
            ("UNEXPECTED_TOOL_CALL", "error"), ("MALFORMED_FUNCTION_CALL", "error"), ("NO_IMAGE", "error"),
            ("OTHER", "other"), ("INVENTED_TOMORROW", "other"),
        ]
    ],
    CHAT: [
        *((chat({"content": "a"}, raw), raw, neutral) for raw, neutral in [
            ("stop", "stop"), ("length", "length"), ("content_filter", "content_filter"), ("model_length", "length"),
            ("insufficient_system_resource", "error"), ("never heard of it", "other"), (None, "other"),
        ]),
        (chat({"refusal": "No."}), "stop", "content_filter"),
        (chat({"tool_calls": [CALL]}), "stop", "option_calls"),  # as a named choice ends
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", ENDS)
def test_why_it_stopped_is_neutral_and_raw(name: str) -> None:
    replies = [whole(scope_of(name), body) for body, _, _ in ENDS[name]]

    assert [(reply.raw_finish_reason, reply.finish_reason) for reply in replies] == [
        (raw, neutral) for _, raw, neutral in ENDS[name]
    ]


def delta(text: str) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}


BLOCK = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
STOPPED = {"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": None}, "usage": {}}
TEXT = {"type": "output_text", "text": "Hello.", "annotations": []}
MESSAGE = {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "content": [TEXT]}
STREAMS: dict[str, tuple[Any, list[Any], list[Any]]] = {
    CLAUDE: (
        claude({"type": "text", "text": "Hello."}),
        [{"type": "message_start", "message": claude(stop_reason=None)}, BLOCK, delta("Hel"), delta("lo.")],
        [{"type": "content_block_stop", "index": 0}, STOPPED, {"type": "message_stop"}],
    ),
    GEMINI: (gemini(SAID), [gemini({"text": "Hel"}, reason=None), gemini({"text": "lo."}, reason=None)], [gemini()]),
    CHAT: (
        chat({"content": "Hello."}),
        [chat({"content": "Hel"}, None, "delta"), chat({"content": "lo."}, None, "delta")],
        [chat({}, "stop", "delta"), "[DONE]"],
    ),
    RESPONSES: (
        response(MESSAGE),
        [
            {"type": "response.created", "response": response(status="in_progress")},
            {"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": "Hel"},
            {"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": "lo."},
        ],
        [{"type": "response.completed", "response": response(MESSAGE)}],
    ),
}
"""A whole answer, the events of the same as a stream, and those that end it."""


@pytest.mark.parametrize("name", DIALECTS)
def test_a_stream_is_the_whole_answer_and_broken_without_its_end(name: str) -> None:
    body, begun, ended = STREAMS[name]
    reply = fold(scope_of(name), *begun, *ended, *([] if name == GEMINI else begun))
    found: list[Any] = events(scope_of(name), *begun, *ended)
    first, *grown, block, end = found

    assert same(reply, whole(scope_of(name), body))
    assert isinstance(first, ReplyStart) and first.origin.response_id == reply.origin.response_id
    place: Any = {"index": grown[0].index, "kind": "text"}
    assert grown == [BlockStart(**place), BlockDelta(**place, text="Hel"), BlockDelta(**place, text="lo.")]
    assert block == BlockEnd(index=place["index"], block=reply.messages[0].parts[0])
    assert isinstance(end, ReplyEnd) and (end.finish_reason, end.origin) == ("stop", reply.origin)
    for cut in ([], ended[:-1] if name == CLAUDE else []):
        with pytest.raises(StreamBroken) as raised:
            fold(scope_of(name), *begun, *cut)
        assert raised.value.partial.text == "Hello."


FAILS: list[tuple[str, Any, type[CallError]]] = [
    (CLAUDE, {"type": "error", "error": {"type": "overloaded_error", "message": "Slow"}}, Overloaded),
    (CLAUDE, {"type": "error", "error": {"type": "rate_limit_error", "message": "Slow"}}, RateLimited),
    (GEMINI, {"error": {"code": 503, "message": "overloaded: Slow", "status": "UNAVAILABLE"}}, Overloaded),
    (CHAT, {"error": {"message": "Slow", "code": "rate_limit_exceeded"}}, RateLimited),
    (CHAT, {"error": {"code": 429, "message": "Slow"}}, RateLimited),
    (CHAT, {"error": {"code": 502, "message": "Slow"}, "choices": [{"index": 0, "finish_reason": "error"}]},
     ServerFailed),
    (CHAT, {"error": {"type": "exceed_context_size_error", "message": "Slow", "code": 400}}, ContextTooLong),
    (CHAT, {"error": "Slow"}, ServerFailed),
    (RESPONSES, {"type": "error", "code": "rate_limit_exceeded", "message": "Slow", "param": None}, RateLimited),
    (RESPONSES, {"type": "error", "error": {"code": "insufficient_quota", "message": "Slow"}}, QuotaExceeded),
    (RESPONSES, {"error": {"code": "server_error", "message": "Slow"}}, ServerFailed),
    (RESPONSES, {"type": "response.failed", "response": response(error={"code": "server_error", "message": "Slow"})},
     ServerFailed),
]  # fmt: skip


@pytest.mark.parametrize(("name", "event", "kind"), FAILS)
def test_an_error_in_mid_stream_is_the_error_that_it_reports(name: str, event: Any, kind: type[CallError]) -> None:
    scope = scope_of(name, request_id="req_1")
    with pytest.raises(kind, match="Slow") as raised:
        events(scope, *STREAMS[name][1], event)

    assert raised.value.provider == scope.target.provider
    assert raised.value.request_id == "req_1"


def test_an_event_called_error_is_one_without_the_word_inside() -> None:
    with pytest.raises(RateLimited):
        events(scope_of(CHAT), {"message": "slow down", "code": 429}, name="error")


COUNTS = [(CLAUDE, "input_tokens", 12), (GEMINI, "totalTokens", 31), (RESPONSES, "input_tokens", 42)]


@pytest.mark.parametrize(("name", "field", "count"), COUNTS)
def test_a_count_is_one_field_of_its_answer(name: str, field: str, count: int) -> None:
    dialect = sabir.dialect(name).dialect

    assert dialect.decode_count(json.dumps({field: count, "object": "x"}).encode()) == count
    for answer in (b"", b"<html>", b"{}", b"[]", json.dumps({field: "x"}).encode()):
        with pytest.raises(ResponseInvalid, match=f"expected the field '{field}'"):
            dialect.decode_count(answer)
