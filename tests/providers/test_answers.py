"""What each vendor's blocks become in a reply, and all else that an answer says: who answered, and how much."""

from typing import Any

import pytest
import sabir
from google.genai import types
from sabir.base.failures import Loss
from sabir.errors import CallError
from sabir.vocabulary.messages import OptionCallPayload
from sabir.vocabulary.native import NativeCallPart, NativeResultPart
from sabir.vocabulary.parts import Citation, MediaPart, OpaquePart, ReasoningPart, RefusalPart, TextPart
from sabir.vocabulary.reply import Reply, Usage
from sabir_google.decode import FINISH_REASONS

from tests.providers.test_replies import chat, claude, gemini, response
from tests.providers.wires import DIALECTS, scope_of, whole

CLAUDE, GEMINI, CHAT, RESPONSES = DIALECTS
PNG = "iVBORw0KGgo="
PIXEL = f"data:image/png;base64,{PNG}"
NAMES = {"my_weather": "my weather"}


def reply_of(name: str, body: Any) -> Reply:
    return whole(scope_of(name, request_id="req_1", option_names=NAMES), body)


def blocks(reply: Reply) -> list[Any]:
    """Parts and calls in order; an id that was made up is left out."""
    found: list[Any] = []
    for message in reply.messages:
        found += message.parts if message.call is None else (message.call,)
    return found


def call(name: str, arguments: Any, wire_id: str = "c", **fields: Any) -> OptionCallPayload:
    return OptionCallPayload(invocation_id=wire_id, option_name=name, arguments=arguments, **fields)


def opaque(name: str, block: Any, pair_id: str | None = None, pair: Any = None) -> OpaquePart:
    return OpaquePart(dialect=name, block=block, pair_id=pair_id, pair=pair)


def chosen(*, kind: str = "function", wire_id: str = "c", further: Any = None, **inner: Any) -> dict[str, Any]:
    return {"tool_calls": [{"id": wire_id, "type": kind, kind: inner, **(further or {})}]}


def item(**fields: Any) -> dict[str, Any]:
    return {"id": "fc_1", "type": "function_call", "call_id": "c", "name": "weather", "arguments": "{}", **fields}


def spoken(*content: Any, **fields: Any) -> dict[str, Any]:
    return {"id": "msg_1", "type": "message", "role": "assistant", **fields, "content": list(content)}


def say(text: str, *annotations: Any, **fields: Any) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": list(annotations), **fields}


# ---- Anthropic

THINKING = {"type": "thinking", "thinking": "Hm.", "signature": "sig"}
SERVER = {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {"query": "q"}}
FOUND = {"type": "web_search_tool_result", "tool_use_id": "srv_1", "content": []}
MCP = {"type": "mcp_tool_use", "id": "mcp_1", "name": "echo", "input": {}, "server_name": "s"}
USE = {"type": "tool_use", "id": "c", "name": "my_weather", "input": {"city": "Rome"}}
CALLER = {"caller": {"type": "code_execution_20260120", "tool_id": "srv_1"}}
SKY = {
    "type": "char_location", "cited_text": "clear", "document_index": 0, "document_title": "Sky",
    "start_char_index": 3, "end_char_index": 8, "file_id": "file_1",
}  # fmt: skip
CLAUDES: list[tuple[Any, list[Any]]] = [
    (claude({"type": "text", "text": "Hi."}), [TextPart(text="Hi.")]),
    (claude({"type": "text", "text": "Hi.", "new": 1}), [TextPart(text="Hi.", state={"new": 1})]),
    (claude({"type": "text", "text": ""}), []),
    (claude({"type": "text", "text": "It is.", "citations": [SKY]}), [TextPart(text="It is.", citations=(
        Citation(kind="char_location", title="Sky", cited_text="clear", file_id="file_1", source=SKY),))]),
    (claude(THINKING), [ReasoningPart(text="Hm.", state={"type": "thinking", "signature": "sig"})]),
    (claude({**THINKING, "thinking": ""}), [ReasoningPart(text="", state={"type": "thinking", "signature": "sig"})]),
    (claude({"type": "redacted_thinking", "data": "x"}),
     [ReasoningPart(text="", state={"type": "redacted_thinking", "data": "x"})]),
    (claude(THINKING, USE, {**USE, **CALLER, "id": "d"}), [
        ReasoningPart(text="Hm.", state={"type": "thinking", "signature": "sig"}), call("my weather", {"city": "Rome"}),
        call("my weather", {"city": "Rome"}, wire_id="d", state=CALLER)]),
    (claude({**USE, "input": [1]}), [call("my weather", {}, raw_arguments="[1]", invalid_arguments=True)]),
    (claude(SERVER, FOUND, MCP), [
        NativeCallPart(tool="web_search", dialect=CLAUDE, raw=SERVER, pair_id="srv_1", queries=("q",)),
        NativeResultPart(tool="web_search", dialect=CLAUDE, raw=FOUND, pair_id="srv_1"),
        NativeCallPart(tool="mcp_server", dialect=CLAUDE, raw=MCP, pair_id="mcp_1", server="s", name="echo")]),
    *((claude(block), [opaque(CLAUDE, block)]) for block in (
        {"type": "container_upload", "file_id": "f"}, {"type": "of 2030", "x": [1]}, {"no": "type"}, "?", 7)),
]  # fmt: skip

# ---- Google

SIGNED = {"thoughtSignature": "c2ln"}
CODE = {"executableCode": {"id": "x1", "language": "PYTHON", "code": "1"}, **SIGNED}
OUTPUT = {"codeExecutionResult": {"id": "x1", "outcome": "OUTCOME_OK", "output": "1"}}
BARE = {"executableCode": {"language": "PYTHON", "code": "2"}}
GEMINIS: list[tuple[Any, list[Any]]] = [
    (gemini({"text": "Hm.", "thought": True}, {"text": "So.", **SIGNED}, {"text": "", **SIGNED}), [
        ReasoningPart(text="Hm."), TextPart(text="So.", state={"part": SIGNED}),
        TextPart(text="", state={"part": SIGNED})]),
    (gemini({"inlineData": {"mimeType": "image/png", "data": PNG}, **SIGNED}),
     [MediaPart(modality="image", url=PIXEL, state={"part": SIGNED})]),
    (gemini({"functionCall": {"name": "my_weather", "args": {"b": 1, "a": 2}, "id": "c"}, **SIGNED}),
     [call("my weather", {"b": 1, "a": 2}, state={"part": SIGNED, "call": {"id": "c"}})]),
    (gemini(CODE, OUTPUT, BARE, {"hologram": 1}, {"": {"id": "x1"}}), [
        NativeCallPart(tool="code_execution", dialect=GEMINI, raw=CODE, pair_id="x1", code="1"),
        NativeResultPart(tool="code_execution", dialect=GEMINI, raw=OUTPUT, pair_id="x1", output="1"),
        NativeCallPart(tool="code_execution", dialect=GEMINI, raw=BARE, code="2"),
        opaque(GEMINI, {"hologram": 1}), opaque(GEMINI, {"": {"id": "x1"}})]),
    *((gemini(part), [opaque(GEMINI, part)]) for part in (
        {"inlineData": {"mimeType": "image/svg+xml", "data": "AAAA"}}, {"inlineData": {"mimeType": "image/png"}},
        {"inlineData": {"mimeType": "image/png", "data": "AAAA"}, "thought": True}, {"text": 7}, "words")),
    (gemini({"text": "a"}, {}, {"text": ""}), [TextPart(text="a")]),
]  # fmt: skip

# ---- OpenAI, Chat Completions

SEA = "Ünder the sea (example)."
URL = {
    "type": "url_citation",
    "url_citation": {"start_index": 14, "end_index": 23, "url": "https://e.org", "title": "S"},
}
ODD = {"type": "hint", "n": 1}
AUDIO = {"id": "audio_1", "data": "UklGRgAAAABXQVZF", "transcript": "Hello.", "expires_at": 9}
DETAILS = [{"type": "reasoning.text", "text": "Hm.", "signature": "s"}]
CHUNKS: list[Any] = [
    {"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}, {"type": "text", "text": "Ah."},
    {"type": "reference", "reference_ids": [1]}, {"type": "text", "text": "Oh.", "cache": True},
    {"type": "refusal", "refusal": "No."}, "bare",
]  # fmt: skip
CHATS: list[tuple[Any, list[Any]]] = [
    (chat({"content": "Hello."}), [TextPart(text="Hello.")]),
    *((chat(chosen(name=wire, arguments=text)),
       [call(name, parsed, raw_arguments=text, invalid_arguments=text == "not json")])
      for wire, name, text, parsed in (("my_weather", "my weather", '{ "a" : 1 }', {"a": 1}),
                                       ("other", "other", "not json", {}), ("other", "other", "", {}))),
    (chat(chosen(kind="custom", name="f", input="4 + 4", further={"signature": "s"})),
     [call("f", {"input": "4 + 4"}, state={"type": "custom", "further": {"signature": "s"}})]),
    (chat({"refusal": "I cannot."}), [RefusalPart(text="I cannot.")]),
    (chat({"content": SEA, "annotations": [URL, ODD]}), [TextPart(text=SEA, citations=(
        Citation(kind="url_citation", url="https://e.org", title="S", start=14, end=23, source=URL),
        Citation(kind="hint", source=ODD)))]),
    (chat({"audio": AUDIO}), [
        MediaPart(modality="audio", url=f"data:audio/wav;base64,{AUDIO['data']}",
                  state={"audio": {"id": "audio_1", "expires_at": 9}}),
        TextPart(text="Hello.", state={"transcript_of": "audio_1"})]),
    (chat({"audio": {"id": "a", "data": "AAAA"}}),
     [MediaPart(modality="audio", url="data:application/octet-stream;base64,AAAA", state={"audio": {"id": "a"}})]),
    *((chat({"content": "Ah.", field: "Hm.", "reasoning_details": DETAILS}),
       [ReasoningPart(text="Hm.", state={"field": field, "details": DETAILS}), TextPart(text="Ah.")])
      for field in ("reasoning_content", "reasoning")),
    (chat({"content": "a", "reasoning": "Hm.", "reasoning_content": "Hm."}),
     [ReasoningPart(text="Hm.", state={"field": "reasoning_content", "also": "reasoning"}), TextPart(text="a")]),
    (chat({"content": CHUNKS}), [
        ReasoningPart(text="Hm.", state={"chunk": CHUNKS[0]}), TextPart(text="Ah."), opaque(CHAT, CHUNKS[2]),
        TextPart(text="Oh.", state={"chunk": CHUNKS[3]}), RefusalPart(text="No."), TextPart(text="bare")]),
    *((chat({"content": said}), [opaque(CHAT, content)])
      for content in (5, {"a": 1}, {"type": "text", "text": 5}, {"type": "refusal", "refusal": []}, {})
      for said in (content, [content])),
    (chat({"content": "a", "images": [{"type": "image_url", "image_url": {"url": PIXEL}}]}),
     [TextPart(text="a"), MediaPart(modality="image", url=PIXEL)]),
    ({"choices": [{"index": 0, "finish_reason": "content_filter"}]}, []),
]  # fmt: skip

# ---- OpenAI, Responses

HEAD = {"id": "msg_1", "type": "message", "role": "assistant", "phase": "commentary"}
BEAM = {"type": "output_hologram", "beam": 7}
TOLD = {"type": "reasoning", "summary": [{"type": "summary_text", "text": said} for said in ("First.", "Then.")]}
THOUGHT = {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "Hm."}]}
HIDDEN = {"type": "reasoning", "summary": [], "encrypted_content": "g"}
MADE = {"id": "ig_1", "type": "image_generation_call", "output_format": "jpeg", "revised_prompt": "A hat."}
ANNOTATIONS: list[tuple[Any, Citation]] = [
    ({"type": "url_citation", "url": "https://e.org", "title": "E", "start_index": 4, "end_index": 7},
     Citation(kind="url_citation", url="https://e.org", title="E", start=4, end=7)),
    ({"type": "container_file_citation", "file_id": "f", "filename": "a.csv", "start_index": 0, "end_index": 2},
     Citation(kind="container_file_citation", title="a.csv", file_id="f", start=0, end=2)),
    ({"type": "file_citation", "file_id": "f", "filename": "a.pdf", "index": 12},
     Citation(kind="file_citation", title="a.pdf", file_id="f")),
    ({"type": "file_path", "file_id": "f", "index": 3}, Citation(kind="file_path", file_id="f")),
    ({"of": "another make"}, Citation(kind="annotation")),
]  # fmt: skip
ITEMS: list[tuple[Any, str | None, Any]] = [
    ({"type": "computer_call", "id": "cu_1", "call_id": "c"}, "c", "opens"),
    ({"type": "custom_tool_call", "id": "ctc_1", "call_id": "c", "input": "4 + 4"}, "c", "opens"),
    ({"type": "local_shell_call", "id": "lsh_1", "call_id": "c"}, "c", "opens"),
    ({"type": "local_shell_call_output", "id": "c"}, "c", "closes"),
    ({"type": "mcp_approval_request", "id": "m", "arguments": "{}"}, "m", "opens"),
    ({"type": "mcp_approval_response", "approval_request_id": "m"}, "m", "closes"),
    ({"type": "shell_call_output", "id": "sho_1", "call_id": "c"}, "c", "closes"),
    ({"type": "tool_search_call", "id": "tsc_1", "call_id": None, "execution": "server"}, None, None),
    ({"type": "tool_search_call", "id": "tsc_1", "call_id": "c", "execution": "client"}, "c", "opens"),
    ({"type": "program", "id": "cm_1", "call_id": "c", "code": "1"}, None, None),
    ({"type": "tomorrows_call", "id": "tc_1", "call_id": "c"}, None, None),
    ("no item at all", None, None),
    *(({**HEAD, "content": content}, None, None) for content in ([], None, "Hi.", {"type": "output_text"})),
    *(({"type": "image_generation_call", **said}, None, None)
      for said in ({"result": None}, {"result": "PHN2Zz4=", "output_format": "svg"}, {"result": 5})),
]  # fmt: skip
"""Items that are kept to the letter, and which half of which pair they are."""
RESPONSE: list[tuple[Any, list[Any]]] = [
    (response(spoken(say("Hi.", logprobs=[]), {"type": "refusal", "refusal": "No."}, BEAM, phase="commentary")), [
        TextPart(text="Hi.", state={"item": HEAD, "part": {"type": "output_text", "logprobs": []}}),
        RefusalPart(text="No.", state={"item": HEAD, "part": {"type": "refusal"}}),
        opaque(RESPONSES, {**HEAD, "content": [BEAM]})]),
    *((response(spoken(say("See.", given), phase="commentary")), [TextPart(
        text="See.", citations=(citation.model_copy(update={"source": given}),),
        state={"item": HEAD, "part": {"type": "output_text"}})]) for given, citation in ANNOTATIONS),
    (response(TOLD, THOUGHT, HIDDEN), [
        ReasoningPart(text="First.\n\nThen.", state=TOLD), ReasoningPart(text="Hm.", state=THOUGHT),
        ReasoningPart(text="", state=HIDDEN)]),
    (response(item(arguments='{ "b":1,"a":2 }', namespace="n"), item(name="my_weather"), item(arguments='{"a": "R')), [
        call("weather", {"b": 1, "a": 2}, raw_arguments='{ "b":1,"a":2 }', state={"id": "fc_1", "namespace": "n"}),
        call("my weather", {}, raw_arguments="{}", state={"id": "fc_1"}),
        call("weather", {}, raw_arguments='{"a": "R', invalid_arguments=True, state={"id": "fc_1"})]),
    (response({**MADE, "result": "/9j/"}), [
        MediaPart(modality="image", url="data:image/jpeg;base64,/9j/", prompt_hint="A hat.", state={"item": MADE})]),
    (response({"type": "image_generation_call", "result": "iVBO"}), [MediaPart(
        modality="image", url="data:image/png;base64,iVBO", state={"item": {"type": "image_generation_call"}})]),
    *((response(each), [opaque(RESPONSES, each, *half)]) for each, *half in ITEMS),
]  # fmt: skip
ANSWERS = [
    (name, body, expected)
    for name, rows in zip(DIALECTS, (CLAUDES, GEMINIS, CHATS, RESPONSE), strict=True) for body, expected in rows
]  # fmt: skip


@pytest.mark.parametrize(("name", "body", "expected"), ANSWERS)
def test_a_block_is_a_part_or_a_call_and_all_else_its_state(name: str, body: Any, expected: list[Any]) -> None:
    """Law 3, PJ-14, UP-22: nothing of a block is lost; one of no known shape is kept to the letter (law 10)."""
    found = blocks(reply_of(name, body))

    assert found == expected
    assert [getattr(each, "block_json", "") for each in found] == [getattr(each, "block_json", "") for each in expected]


def test_a_call_without_an_id_gets_one() -> None:
    for name, body in (
        (GEMINI, gemini({"functionCall": {"name": "add"}})),
        (CHAT, chat({"function_call": {"name": "add", "arguments": "{}"}}, "function_call")),
    ):
        reply = reply_of(name, body)
        (made,) = blocks(reply)
        assert (made.option_name, made.arguments, made.state, reply.finish_reason) == ("add", {}, None, "option_calls")
        assert made.invocation_id


CHANGES = [{"type": "thinking_dropped", "path": "messages.1", "reason": "binding"}, {"type": "of 2030"}]
REMOVED = [{"type": "reasoning", "id": "rs_1", "action": "removed", "reason": "mismatch"}]
SOUND = {"audio": {"id": "a", "data": "not base64!"}}
BAD = {"images": [{"type": "image_url", "image_url": {"url": "javascript:1"}}]}
STRANGE = {"mood": "good", "tool_calls": [{"id": "1", "type": "odd", "odd": {}}]}
FEEDBACK = {"blockReason": "SAFETY", "safetyRatings": [{"category": "HARM", "probability": "HIGH"}]}
ECHOES = {
    "tools": [],
    "temperature": 1.0,
    "metadata": {},
    "instructions": "x",
    "error": None,
    "incomplete_details": None,
}
BESIDE: list[tuple[str, Any, dict[str, Any]]] = [
    (CLAUDE, claude(), {"details": None}),
    (CLAUDE, claude(container={"id": "c"}, stop_details={"type": "x"}, diagnostics=None),
     {"details": {"container": {"id": "c"}, "stop_details": {"type": "x"}}}),
    (CLAUDE, claude(input_transformations=CHANGES),
     {"losses": (Loss(kind="dropped", path="messages.1",
                      reason="the server removed this thinking from the input (binding)"),)}),
    (GEMINI, {**gemini(), "createTime": "now"}, {"details": {"createTime": "now"}}),
    (GEMINI, {"candidates": [{"index": 0, "content": {"role": "model"}}]}, {"details": None}),
    (GEMINI, {"candidates": [{"index": 0, "avgLogprobs": -0.5, "content": {"note": 1}}]},
     {"details": {"candidates": [{"index": 0, "avgLogprobs": -0.5, "content": {"note": 1}}]}}),
    (GEMINI, {"promptFeedback": FEEDBACK, "usageMetadata": {"promptTokenCount": 4}}, {
        "messages": (), "finish_reason": "content_filter", "raw_finish_reason": "SAFETY",
        "details": {"promptFeedback": FEEDBACK}, "usage": Usage(input_tokens=4, details={"promptTokenCount": 4})}),
    (CHAT, {**chat({"content": "a"}), "created": 1}, {"details": {"created": 1}}),
    (CHAT, {"choices": [{"index": 0, "message": {}, "logprobs": {"content": []}}], "prompt_filter_results": [{"n": 0}]},
     {"details": {"prompt_filter_results": [{"n": 0}], "choices": [{"index": 0, "logprobs": {"content": []}}]}}),
    *((CHAT, chat({"content": "Hi.", **field}), {"details": {"choices": [{"index": 0, "message": field}]}})
      for field in (SOUND, BAD, STRANGE, {"refusal": {"a": 1}}, {"annotations": "x"}, {"tool_calls": {"a": 1}},
                    {"function_call": 5})),
    (CHAT, chat({"content": "a", "reasoning": "Ha.", "reasoning_content": "Hm."}),
     {"reasoning": "Hm.", "details": {"choices": [{"index": 0, "message": {"reasoning": "Ha."}}]}}),
    (RESPONSES, response(service_tier="flex", something_new=[1], **ECHOES),
     {"details": {"service_tier": "flex", "something_new": [1]}}),
    (RESPONSES, response(input_transformations=REMOVED),
     {"losses": (Loss(kind="dropped", path="input_transformations[0]",
                      reason="the server removed rs_1 from the input (mismatch)"),)}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "body", "expected"), BESIDE)
def test_what_has_no_neutral_place_is_in_the_details(name: str, body: Any, expected: dict[str, Any]) -> None:
    reply = reply_of(name, body)

    assert {field: getattr(reply, field) for field in expected} == expected


@pytest.mark.parametrize("name", DIALECTS)
def test_the_origin_is_the_name_that_was_asked_for(name: str) -> None:
    body: Any = {
        CLAUDE: claude({"type": "text", "text": "a"}), GEMINI: {**gemini({"text": "a"}), "responseId": "r"},
        CHAT: chat({"content": "a"}), RESPONSES: response(spoken(say("a"))),
    }[name]  # fmt: skip
    reply = reply_of(name, body | {"modelVersion" if name == GEMINI else "model": "m-2026"})

    assert (reply.origin.model, reply.origin.reported_model) == ("m", "m-2026")
    assert reply.origin.response_id == {CLAUDE: "msg_1", GEMINI: "r", CHAT: "c", RESPONSES: "resp_1"}[name]
    assert [(each.policy, each.role_hint_for_llm, each.origin) for each in reply.messages] == [
        ("llm", None, reply.origin)
    ]


def test_further_answers_are_alternatives() -> None:
    second = {"index": 1, "message": {"content": "b"}, "finish_reason": "length", "logprobs": {"content": [1]}}
    chats = chat({"content": "a"})
    geminis, other = gemini({"text": "a"}), gemini({"text": "b"}, {"functionCall": {"name": "add"}})
    for name, body, reason, details in (
        (CHAT, {**chats, "choices": [second, *chats["choices"]]}, "length",
         [{"index": 1, "logprobs": {"content": [1]}}]),
        (GEMINI, {"candidates": [*geminis["candidates"], {**other["candidates"][0], "index": 1}]}, "option_calls",
         [{}, {"index": 1}]),
    ):  # fmt: skip
        reply = reply_of(name, body)
        (alternative,) = reply.alternatives
        assert (reply.text, alternative.messages[0].text, alternative.finish_reason) == ("a", "b", reason)
        assert reply.details == {"choices" if name == CHAT else "candidates": details}


def test_every_reason_that_googles_sdk_names_is_known() -> None:
    unsaid = {"FINISH_REASON_UNSPECIFIED", "OTHER"}
    assert {each.value for each in types.FinishReason} - FINISH_REASONS.keys() == unsaid


def test_a_lone_surrogate_becomes_a_replacement_character() -> None:
    """No text of the library holds one; pairs stay what they are."""
    body = rb'{"choices":[{"message":{"content":"a\ud83d\ude00b\ud800c"}}]}'
    assert sabir.dialect(CHAT).dialect.decode(body, scope_of(CHAT)).text == "a😀b\ufffdc"


REFUSED, HI = spoken({"type": "refusal", "refusal": "No."}), spoken(say("Hi."))
CUSTOM = {"type": "custom_tool_call", "id": "ctc_1", "call_id": "c", "name": "sum", "input": "4 + 4"}
SHELL = {"type": "shell_call", "id": "sh_1", "call_id": "c", "action": {"commands": ["ls"]}, "environment": None}
RAN = {"type": "shell_call_output", "id": "sho_1", "call_id": "c", "output": []}
FINDING = {"type": "tool_search_call", "id": "tsc_1", "call_id": "c", "arguments": {}}
STOPPED: list[tuple[Any, str, str | None]] = [
    (response(HI), "stop", "completed"),
    (response(item()), "option_calls", "completed"),
    (response(REFUSED), "content_filter", "completed"),
    *((response(item(), incomplete_details={"reason": raw}), reason, raw) for raw, reason in (
        ("max_output_tokens", "length"), ("content_filter", "content_filter"), ("steered", "paused"),
        ("max_messages", "other"))),
    (response(HI, status="in_progress"), "other", "in_progress"),
    *((response(status=raw), reason, raw) for raw, reason in (
        ("cancelled", "error"), ("failed", "error"), ("dreaming", "other"))),
    (response(HI, status=None), "other", None),
    *((response(*output), "native_calls", "completed") for output in (
        [CUSTOM], [SHELL], [{"type": "local_shell_call", "call_id": "c"}], [{"type": "computer_call", "call_id": "c"}],
        [{"type": "apply_patch_call", "call_id": "c"}], [{"type": "mcp_approval_request", "id": "m"}],
        [{**FINDING, "execution": "client"}], [HI, CUSTOM], [item(), CUSTOM], [SHELL, RAN, CUSTOM | {"call_id": "d"}])),
    *((response(*output), "stop", "completed") for output in (
        [SHELL, RAN, HI], [{**SHELL, "environment": {"type": "container_reference", "container_id": "c"}}],
        [{**FINDING, "execution": "server"}], [{"type": "web_search_call", "id": "ws_1"}, HI],
        [{"type": "mcp_call", "id": "mcp_1", "output": "x"}, HI])),
    (response(REFUSED, CUSTOM), "content_filter", "completed"),
    (response(CUSTOM, incomplete_details={"reason": "max_output_tokens"}), "length", "max_output_tokens"),
]  # fmt: skip


@pytest.mark.parametrize(("body", "reason", "raw"), STOPPED)
def test_a_status_and_what_waits_for_the_client_are_one_neutral_reason(body: Any, reason: str, raw: str | None) -> None:
    """Wire-rules §4 for Responses: a call that the vendor ran by itself waits for nobody."""
    reply = reply_of(RESPONSES, body)

    assert (reply.finish_reason, reply.raw_finish_reason) == (reason, raw)


@pytest.mark.parametrize("status", ["queued", "in_progress"])
def test_an_answer_that_is_not_made_yet_says_what_is_to_be_done(status: str) -> None:
    """A background response at once holds nothing: a loop that took it for a reply would ask again, or end."""
    with pytest.raises(CallError, match=f"answered {status!r}.*response resp_1.*stream the response") as raised:
        reply_of(RESPONSES, response(status=status, background=True))

    assert (raised.value.code, raised.value.request_id, raised.value.retryable) == (status, "req_1", False)
