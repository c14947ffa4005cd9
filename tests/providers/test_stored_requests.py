"""A stored request of each vendor, as sabir's own data and back: what is read, what goes back, what is a loss."""

import json
from typing import Any

import pytest
import sabir
from sabir.authoring import JSON_OBJECT
from sabir.contract.dialect import DecodedHistory
from sabir.errors import HistoryInvalid
from sabir.vocabulary.parts import MediaPart, OpaquePart, ReasoningPart, RefusalPart, TextPart
from sabir.vocabulary.settings import Settings

from tests.providers.test_encode import BOTH_WAYS
from tests.providers.wires import DIALECTS, ITEMS, MODELS

CLAUDE, GEMINI, CHAT, RESPONSES = DIALECTS
PNG = "iVBORw0KGgo="
PIXEL = f"data:image/png;base64,{PNG}"
PDF = "data:application/pdf;base64,JVBERi0="
SCHEMA = {
    "type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"], "additionalProperties": False,
}  # fmt: skip
WEATHER = {"name": "weather", "description": "The sky.", "parameters": SCHEMA, "strict": True}


def request(name: str, *items: Any, **fields: Any) -> dict[str, Any]:
    least = {"max_tokens": 100} if name == CLAUDE else {}
    return {"model": MODELS[name], **least, **fields, ITEMS[name]: list(items)}


def read(name: str, *items: Any, **fields: Any) -> DecodedHistory:
    return sabir.dialect(name).decode_history(request(name, *items, **fields))


def back(name: str, history: DecodedHistory) -> dict[str, Any]:
    rendering = sabir.dialect(name).render(
        history.messages, model=history.model, options=history.options, settings=history.settings
    )
    found: dict[str, Any] = json.loads(rendering.body_bytes)
    return found


def losses(history: DecodedHistory) -> list[str]:
    return [f"{loss.kind} {loss.path}" for loss in history.losses]


def policies(history: DecodedHistory) -> str:
    return " ".join(message.policy for message in history.messages)


# ---- how each wire says it


def text(said: str) -> dict[str, Any]:
    return {"type": "text", "text": said}


def user(*content: Any) -> dict[str, Any]:
    return {"role": "user", "content": [text(each) if isinstance(each, str) else each for each in content]}


def claude(*content: Any) -> dict[str, Any]:
    return {**user(*content), "role": "assistant"}


def contents(*parts: Any, role: str = "user") -> dict[str, Any]:
    return {"role": role, "parts": [{"text": each} if isinstance(each, str) else each for each in parts]}


def gemini(*parts: Any) -> dict[str, Any]:
    return contents(*parts, role="model")


def chat(said: Any = None, **fields: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": said, **fields}


def message(*content: Any, role: str = "user") -> dict[str, Any]:
    parts = [{"type": "input_text", "text": each} if isinstance(each, str) else each for each in content]
    return {"type": "message", "role": role, "content": parts}


USE = {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {"city": "Rome"}}
ANSWERED = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "rain"}
THINKING = {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}
SEARCH = {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {"query": "x"}}
FOUND = {"type": "web_search_tool_result", "tool_use_id": "srv_1", "content": []}
CALL = {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": '{"city":  "Rome"}'}}
TOOL = {"role": "tool", "tool_call_id": "call_1", "content": '{"sky": "blue"}'}
ITEM = {"type": "function_call", "call_id": "call_1", "name": "weather", "arguments": '{"city":  "Rome"}'}
OUTPUT = {"type": "function_call_output", "call_id": "call_1", "output": "rain"}
REASONING = {
    "type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "Look."}], "encrypted_content": "g",
}  # fmt: skip
ANSWER = {
    "type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "phase": "final_answer",
    "content": [{"type": "output_text", "text": "It rains.", "annotations": [], "logprobs": []}],
}  # fmt: skip
CUSTOM = {"id": "call_1", "type": "custom", "custom": {"name": "run", "input": "print(1)"}}


def function(name: str = "weather", **further: Any) -> dict[str, Any]:
    return {"functionCall": {"name": name, "args": {}, **further}}


def answer(response: Any, name: str = "weather", **further: Any) -> dict[str, Any]:
    return {"functionResponse": {"name": name, "response": response, **further}}


SIGNED = {**function(id="fc-1"), "thoughtSignature": "c2ln"}
GEMINI_3 = "gemini-3.5-flash"
"""It takes a resolution of one medium, and wants signatures."""
VIDEO = {"fileData": {"fileUri": "https://x.org/v.mp4", "mimeType": "video/mp4"}}
SOUND = {"fileData": {"fileUri": "https://x.org/s.mp3", "mimeType": "audio/mpeg"}}
BLOB = {"inlineData": {"mimeType": "image/png", "data": PNG}}
CLIP = {"fps": 1, "startOffset": "2s", "endOffset": "2.5s", "contentLayers": ["FRAMES"]}
LOW = {"level": "MEDIA_RESOLUTION_LOW", "numTokens": 9}
DECLARED = {"name": "f", "description": "F.", "parametersJsonSchema": SCHEMA}
VERBATIM: dict[str, tuple[Any, ...]] = {
    CLAUDE: (
        {"type": "document", "source": {"type": "url", "url": "https://e.org"}, "citations": {"of_2030": True}},
        {"type": "image", "source": {"type": "url", "url": "https://e.org"}, "context": "x"},
        {"type": "image", "source": {"type": "url", "url": "https://e.org/a.png", "cache_control": {"type": "x"}}},
        {"type": "document", "source": {"type": "content", "content": "x"}},
        {"type": "image", "source": {"type": "of 2030"}},
        {"type": "search_result", "source": "s", "title": "t", "content": []},
        {"type": "container_upload", "file_id": "file_1"},
    ),
    GEMINI: (
        {"fileData": {"fileUri": "https://x.org/v"}}, VIDEO | BLOB, VIDEO | {"videoMetadata": {"fps": "1"}},
        VIDEO | {"videoMetadata": {"unheardOf": 1}}, VIDEO | {"mediaResolution": "LOW"},
        VIDEO | {"partMetadata": {"a": 1}}, BLOB | {"videoMetadata": CLIP}, SOUND | {"mediaResolution": LOW},
        {"videoMetadata": CLIP},
    ),
}  # fmt: skip
"""Blocks of the user's that no part can say."""
WHOLE = {
    "systemInstruction": {"parts": [{"text": "Be brief."}]},
    "tools": [{"functionDeclarations": [{**DECLARED, "name": "weather"}]}, {"googleSearch": {}}],
    "toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["weather"]}},
    "generationConfig": {
        "temperature": 0.5, "topP": 0.9, "topK": 4, "maxOutputTokens": 9, "seed": 1, "stopSequences": ["x"],
        "responseMimeType": "application/json", "responseJsonSchema": {"title": "T", "type": "object"},
        "thinkingConfig": {"thinkingBudget": 1},
    },
    "safetySettings": [{"category": "A", "threshold": "B"}],
    "cachedContent": "cachedContents/1",
    "unheardOf": {"a_b": 1},
}  # fmt: skip
HINTED = {"behavior": "BLOCKING", "response": {"type": "OBJECT", "properties": {"fooBar": {"type": "STRING"}}}}
GO_BACK: list[tuple[str, str, list[Any], dict[str, Any]]] = [
    (CLAUDE, "system user llm llm weather user llm user",
     [user("Umbrella?"), claude(THINKING, USE), user(ANSWERED), user("So?"), claude("Yes."), user("Thanks.")],
     {"system": [text("Be brief.")]}),
    (CLAUDE, "user llm user", [user("?"), claude(SEARCH, FOUND, "Found."), user("Thanks.")], {}),
    (CLAUDE, "user llm weather", [user("?"), claude(USE), user({**ANSWERED, "content": [text("see"), {
        "type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}]})], {}),
    (CLAUDE, "user llm weather", [user("?"), claude({**USE, "toolset_name": "browser"}),
     user({**ANSWERED, "toolset_name": "browser"})], {}),
    (CLAUDE, "user llm weather", [user("?"), claude(USE), user({**ANSWERED, "content": "no", "is_error": True})], {}),
    (CLAUDE, "user llm weather",
     [user("?"), claude(USE), user({**ANSWERED, "content": [text("no"), text("never")], "is_error": True})], {}),
    (GEMINI, "system user llm llm weather llm user",
     [contents("?"), gemini({"text": "Hm.", "thought": True}, {**function(id="fc-1"), "thoughtSignature": "c2ln"}),
      contents(answer({"celsius": 18}, id="fc-1")), gemini("Mild."), contents("And here?")], WHOLE),
    *((GEMINI, "user llm weather", [contents("?"), gemini(function()), contents(answer(response))], {})
      for response in ({"output": "18 °C"}, {"output": None}, {}, {"error": "no"},
                       {"error": {"type": "Boom", "message": "no", "retryable": True}})),
    (GEMINI, "user llm weather user",
     [contents("?"), gemini(function()), contents(answer({"n": 1})), contents("So?")], {}),
    (GEMINI, "user", [contents("?")], {"tools": [{"functionDeclarations": [{**DECLARED, **HINTED}]}]}),
    *((GEMINI, "user", [contents("?")], {"tools": [{"functionDeclarations": [{**DECLARED, **more}]}]})
      for more in ({"behavior": 1}, {"unheardOf": "x"}, {"response": "STRING"})),
    *((GEMINI, "user", [contents("?")], {"toolConfig": config}) for config in (
        {"functionCallingConfig": {"mode": "VALIDATED"}}, {"functionCallingConfig": {"mode": "ANY",
        "allowedFunctionNames": ["a", "b"]}})),
    (CHAT, "system user llm", [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Hi."},
     chat("Hello.")], {}),
    (CHAT, "llm weather", [chat(tool_calls=[CALL]), TOOL], {}),
    (CHAT, "llm weather", [chat(tool_calls=[CALL]), {**TOOL, "content": [text("rain"), text("wind")]}], {}),
    (CHAT, "llm run", [chat(tool_calls=[CUSTOM]), TOOL], {}),
    (CHAT, "llm user llm", [chat([{"type": "refusal", "refusal": "No."}]), {"role": "user", "content": "Sing."},
     {"role": "assistant", "audio": {"id": "audio_1"}}], {}),
    (CHAT, "user", [{"role": "user", "content": "?"}], {
        "tools": [{"type": "function", "function": WEATHER}, {"type": "custom", "custom": {"name": "run"}}],
        "tool_choice": {"type": "function", "function": {"name": "weather"}}, "parallel_tool_calls": False}),
    (CHAT, "user", [{"role": "user", "content": "?"}], {"tools": [{"type": "function", "function": {
        **WEATHER, "strict": False}}]}),
    (CHAT, "user", [{"role": "user", "content": "?"}], {"response_format": {"type": "json_schema", "json_schema": {
        "name": "weather", "schema": SCHEMA, "strict": True, "description": "The sky."}}}),
    (RESPONSES, "user llm llm weather", [message("Hi."), REASONING, ANSWER, {**ITEM, "id": "fc_1"}, OUTPUT], {}),
    (RESPONSES, "user llm weather", [message("Hi."), ITEM, OUTPUT], {}),
    (RESPONSES, "user llm user llm user", [
        message("Hi."), {"type": "custom_tool_call", "call_id": "call_2", "name": "run", "input": "1"},
        {"type": "custom_tool_call_output", "call_id": "call_2", "output": "1"},
        {"type": "tool_search_call", "call_id": "call_3", "execution": "server", "arguments": {}},
        {"type": "tool_search_output", "call_id": "call_3", "execution": "server", "tools": []},
        {"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAA"}, message("Hi.")], {}),
    (RESPONSES, "user user", [message("Hi."), {"type": "additional_tools", "role": "developer", "tools": []}], {}),
    (RESPONSES, "user user", [message("Look:"), message({"type": "hologram", "light": 1})], {}),
    (RESPONSES, "user", [message("Hi.")], {"tool_choice": {"type": "function", "name": "weather"}, "tools": [
        {"type": "function", **WEATHER}, {"type": "function", **WEATHER, "name": "later", "defer_loading": True},
        {"type": "web_search"}]}),
    (RESPONSES, "user", [message("Hi.")], {"tools": [{"type": "web_search"}], "tool_choice": {"type": "web_search"}}),
    (RESPONSES, "user", [message("Hi.")], {"text": {"verbosity": "low", "format": {
        "type": "json_schema", "name": "weather", "schema": SCHEMA, "strict": True, "description": "The sky."}}}),
    *((CLAUDE, "user", [user(block)], {}) for block in VERBATIM[CLAUDE]),
    *((GEMINI, "user", [contents(block, "a")], {}) for block in VERBATIM[GEMINI]),
]  # fmt: skip


@pytest.mark.parametrize(("name", "whose", "items", "fields"), GO_BACK)
def test_a_request_goes_back_as_it_was(name: str, whose: str, items: list[Any], fields: dict[str, Any]) -> None:
    history = read(name, *items, **fields)
    sent = back(name, history)

    assert (policies(history), history.losses, history.model) == (whose, (), MODELS[name])
    assert {message.role_hint_for_llm for message in history.messages} == {None}
    assert {bool(message.origin) for message in history.messages if message.policy == "llm"} <= {True}
    assert sent[ITEMS[name]] == items
    assert {field: sent.get(field) for field in fields} == fields


MEDIA: list[tuple[str, Any, MediaPart]] = [
    *((name, block, MediaPart(modality=modality, **fields)) for name, modality, fields, block in BOTH_WAYS),
    (GEMINI, VIDEO | {"videoMetadata": CLIP, "mediaResolution": LOW}, MediaPart(
        modality="video", url="https://x.org/v.mp4", mime="video/mp4", vendor={"google": {
            "media_resolution": {"level": "MEDIA_RESOLUTION_LOW", "num_tokens": 9},
            "video_metadata": {"fps": 1, "start_offset": "2s", "end_offset": "2.5s", "content_layers": ["FRAMES"]}}})),
    (GEMINI, BLOB | {"mediaResolution": {"level": "A"}},
     MediaPart(modality="image", url=PIXEL, vendor={"google": {"media_resolution": {"level": "A"}}})),
]  # fmt: skip


@pytest.mark.parametrize(("name", "block", "expected"), MEDIA)
@pytest.mark.parametrize("is_result", [False, True])
def test_a_medium_goes_there_and_back(name: str, block: Any, expected: MediaPart, is_result: bool) -> None:
    shown = {CLAUDE: [user(block)], GEMINI: [contents(block)], CHAT: [user(block)], RESPONSES: [message(block)]}
    told = {
        CLAUDE: [user("?"), claude(USE), user({**ANSWERED, "content": [block]})],
        GEMINI: [contents("?"), gemini(SIGNED), contents(answer({}, id="fc-1", parts=[block]))],
        RESPONSES: [ITEM, {**OUTPUT, "output": [block]}],
    }
    items = (told if is_result else shown).get(name)
    if items and not (is_result and expected.modality == "video"):
        history = read(name, *items, model=GEMINI_3 if name == GEMINI else "claude-haiku-4-5")
        assert history.messages[-1].parts == (expected,)
        assert (history.losses, back(name, history)[ITEMS[name]]) == ((), items)


READ_OTHERWISE: list[tuple[str, list[Any], dict[str, Any], list[Any]]] = [
    (CLAUDE, [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}], {"system": "Brief."},
     [("system", "Brief."), ("user", "Hi"), ("llm", "Hello")]),
    (CLAUDE, [user("?"), claude(USE), user(ANSWERED, "So?")], {},
     [("user", "?"), ("llm", ""), ("weather", ""), ("user", "So?")]),
    (CLAUDE, [user("?"), claude(USE), user({"type": "tool_result", "tool_use_id": "toolu_1"})], {},
     [("user", "?"), ("llm", ""), ("weather", "")]),
    *((GEMINI, [{**role, "parts": [{"text": "Hi."}]}], {}, [("user", "Hi.")])
      for role in ({}, {"role": "function"}, {"role": ""})),
    (GEMINI, [contents("?"), gemini(function()), contents(answer({"n": 1}), "So?")], {},
     [("user", "?"), ("llm", ""), ("weather", ""), ("user", "So?")]),
    (CHAT, [{"role": "developer", "content": "Be brief."}], {}, [("system", "Be brief.")]),
    (CHAT, [chat(refusal="No.")], {}, [("llm", "")]),
    (RESPONSES, [{"role": "developer", "content": "Be brief."}, {"role": "user", "content": "Hi."},
     {"role": "assistant", "content": "Hello."}], {}, [("system", "Be brief."), ("user", "Hi."), ("llm", "Hello.")]),
]  # fmt: skip


@pytest.mark.parametrize(("name", "items", "fields", "expected"), READ_OTHERWISE)
def test_another_form_says_the_same(name: str, items: list[Any], fields: dict[str, Any], expected: list[Any]) -> None:
    history = read(name, *items, **fields)

    assert [(each.policy, each.text) for each in history.messages] == expected
    assert history.losses == ()


def test_parts_of_other_forms_are_read_or_kept() -> None:
    unknown = {"type": "hologram", "light": 1}
    (shown,) = read(CHAT, user({"type": "file", "file": {"file_data": "JVBERi0="}}, unknown)).messages
    assert shown.parts == (MediaPart(modality="document", url=PDF), OpaquePart(dialect=CHAT, block=unknown))
    assert read(CHAT, chat(refusal="No.")).messages[0].parts == (RefusalPart(text="No."),)
    bare = read(CLAUDE, user("?"), claude(USE), user({"type": "tool_result", "tool_use_id": "toolu_1"})).messages[-1]
    assert bare.result is not None and bare.result.result == ""
    said = read(RESPONSES, message("?"), REASONING, {"role": "assistant", "content": "Rain."}).messages[1]
    assert said.parts == (ReasoningPart(text="Look.", state=REASONING), TextPart(text="Rain."))
    apart = back(RESPONSES, read(RESPONSES, message("Look:", unknown)))["input"]
    assert apart == [message("Look:"), message(unknown)]
    (only,) = sabir.dialect(RESPONSES).decode_history({"input": "Hi."}).messages
    assert (only.policy, only.text) == ("user", "Hi.")


@pytest.mark.parametrize("name", DIALECTS)
def test_what_the_model_said_has_its_origin_here(name: str) -> None:
    """Signed state goes back only where it came from; the assistant may be another policy."""
    said = {CLAUDE: claude("Hi."), GEMINI: gemini("Hi."), CHAT: chat("Hi."), RESPONSES: {**chat("Hi.")}}[name]
    target = sabir.dialect(name).target
    (message,) = sabir.dialect(name).decode_history(request(name, said), policy="painter").messages

    assert (message.policy, message.origin is not None) == ("painter", True)
    assert message.origin is not None
    assert (message.origin.provider, message.origin.dialect) == (target.provider, name)
    assert (message.origin.model, message.origin.endpoint) == (MODELS[name], target.endpoint)


def test_a_request_that_names_its_model_gives_its_signatures_back_to_it() -> None:
    """Gemini's path names it on the wire; whoever stored the body may add it, in either form."""
    items = [contents("?"), gemini(SIGNED), contents(answer({}, id="fc-1"))]
    for model in ("gemini-3-pro", "models/gemini-3-pro-preview"):
        history = sabir.dialect(GEMINI).decode_history({"contents": items, "model": model})
        rendering = sabir.dialect(GEMINI).render(history.messages, model="gemini-3-pro-preview")
        assert json.loads(rendering.body_bytes)["contents"] == items
    elsewhere = sabir.dialect(GEMINI).decode_history({"contents": items}).messages
    rendering = sabir.dialect(GEMINI).render(elsewhere, model="gemini-3-pro-preview")
    assert "c2ln" not in rendering.body_bytes.decode()
    assert [loss.kind for loss in rendering.losses] == ["withheld", "synthesized"]


def test_both_spellings_are_read() -> None:
    """Google's SDK mixes them, and has an alphabet of its own for base64; what is the user's stays as it is."""
    history = read(
        GEMINI, contents({
            "inline_data": {"mime_type": "image/png", "data": "-_8="},
            "media_resolution": {"level": "A", "num_tokens": None},
        }),
        gemini({"function_call": {"name": "weather", "args": {"a_b": 1}}, "thought_signature": "c2ln"}),
        contents({"function_response": {"name": "weather", "response": {"c_d": 2}}}),
        model=GEMINI_3, system_instruction={"parts": {"text": "Be brief."}},
        generation_config={"max_output_tokens": 9, "thinking_config": {"include_thoughts": True}},
        tools={"function_declarations": [{**DECLARED, "response_json_schema": SCHEMA}]},
    )  # fmt: skip
    sent = back(GEMINI, history)

    assert sent["contents"] == [
        contents({"inlineData": {"mimeType": "image/png", "data": "+/8="}, "mediaResolution": {"level": "A"}}),
        gemini({"functionCall": {"name": "weather", "args": {"a_b": 1}}, "thoughtSignature": "c2ln"}),
        contents(answer({"c_d": 2})),
    ]
    assert sent["systemInstruction"] == {"parts": [{"text": "Be brief."}]}
    assert sent["generationConfig"] == {"maxOutputTokens": 9, "thinkingConfig": {"includeThoughts": True}}
    assert sent["tools"] == [{"functionDeclarations": [{**DECLARED, "responseJsonSchema": SCHEMA}]}]
    assert history.losses == ()


def test_a_call_in_pieces_is_stored_as_one() -> None:
    piece = {"jsonPath": "$.city", "stringValue": "Rome"}
    pieces = ({"name": "weather", "willContinue": True}, {"partialArgs": [piece]})
    (_, asked) = read(GEMINI, contents("?"), gemini(*({"functionCall": each} for each in pieces))).messages
    assert asked.call is not None and asked.call.arguments == {"city": "Rome"}
    damaged = {"functionCall": {"name": "weather", "partialArgs": [{**piece, "jsonPath": "$"}]}}
    with pytest.raises(HistoryInvalid, match=r"contents\[1\] contains a call in pieces"):
        read(GEMINI, contents("?"), gemini(damaged))


def pairs(history: DecodedHistory) -> list[int]:
    """For each result the place of its call among all calls."""
    calls = [message.call.invocation_id for message in history.messages if message.call]
    assert len(set(calls)) == len(calls)
    return [calls.index(message.result.invocation_id) for message in history.messages if message.result]


def test_results_find_their_calls() -> None:
    named = gemini(function(), function("add"), function(), function(id="fc-1"), function(id="fc-2"))
    answers = [answer({}, id="fc-2"), answer({}), answer({}), answer({}, "add"), answer({}, id="fc-1")]
    assert pairs(read(GEMINI, contents("?"), named, contents(*answers))) == [4, 0, 2, 1, 3]
    older = read(
        CHAT, *(chat(function_call={"name": name}) for name in ("weather", "time", "weather")),
        *({"role": "function", "name": name, "content": "x"} for name in ("weather", "weather", "time")),
    )  # fmt: skip
    assert pairs(older) == [0, 2, 1]
    other = {**CALL, "function": {"name": "time", "arguments": "{}"}}
    assert policies(read(CHAT, chat(tool_calls=[CALL]), TOOL, chat(tool_calls=[other]), TOOL)) == "llm weather llm time"


def test_the_older_form_of_chat_becomes_todays() -> None:
    declared = {name: value for name, value in WEATHER.items() if name != "strict"}
    rounds = [chat(function_call={"name": "weather"}), {"role": "function", "name": "weather", "content": "rain"}] * 2
    history = read(CHAT, *rounds, functions=[declared], function_call={"name": "weather"})

    assert ([each.name for each in history.options], history.settings.option_choice) == (["weather"], "weather")
    assert [message["role"] for message in back(CHAT, history)["messages"]] == ["assistant", "tool"] * 2
    assert losses(history) == [
        f"rewritten {path}" for path in (
            "functions[0]", "function_call", "messages[0].function_call", "messages[1]", "messages[2].function_call",
            "messages[3]",
        )
    ]  # fmt: skip


IMAGE = {"type": "image_url", "image_url": {"url": PIXEL, "sharpness": 9}, "cache": True}
MARKED = {**CALL, "index": 3, "function": {"name": "weather", "arguments": "{}", "note": "x"}}
PLACE = "dropped messages[0].content[0].cache_control"
CHOSEN: dict[str, Any] = {"type": "function", "function": {"name": "w"}}
OFFERED: dict[str, Any] = {"type": "function", "function": {"name": "w", "parameters": {"type": "object"}}}
LOST: list[tuple[str, list[Any], dict[str, Any], list[str]]] = [
    (CLAUDE, [user("Hi"), {"role": "system", "content": [text("Brief."), {"type": "tool_addition", "tool": {}}]}], {},
     ["dropped messages[1].content[1]"]),
    *((CLAUDE, [user({**text("?"), "cache_control": marker})], {}, [PLACE])
      for marker in ("yes", {"type": "other"}, {"type": "ephemeral", "ttl": "9h"}, {"ttl": "1h"})),
    (CLAUDE, [user("?")], {"stream": True}, ["dropped stream"]),
    (CLAUDE, [user("?")], {"stream": False}, []),
    *((GEMINI, [contents("?"), gemini(function()), contents(answer(response))], {},
       ["rewritten contents[2].parts[0].functionResponse.response"])
      for response in ({"error": "x", "more": 1}, {"output": 1, "more": 2}, {"error": {"type": 7}})),
    (GEMINI, [{**contents("Hi."), "note": 1}, gemini()],
     {"generationConfig": {"unheardOf": 1, "temperature": 0.5},
      "systemInstruction": {**contents({"text": "a", "mood": "x"}, {"inlineData": {}}), "note": 1}},
     ["dropped systemInstruction.note", "dropped systemInstruction.parts[0].mood",
      "dropped systemInstruction.parts[1]", "dropped contents[0].note", "dropped contents[1]"]),
    (CHAT, [user("?")],
     {"tools": [{**OFFERED, "cache": 1}], "tool_choice": {**CHOSEN, "mode": "x", "function": {"name": "w", "why": "y"}},
      "response_format": {"type": "json_object", "strict": True}},
     ["dropped tools[0].cache", "dropped tool_choice.mode", "dropped tool_choice.function.why",
      "dropped response_format.strict"]),
    (CHAT, [user("?")],
     {"response_format": {"type": "json_schema", "note": 1, "json_schema": {"name": "n", "schema": {"type": "object"}}},
      "functions": [OFFERED["function"]], "function_call": {"name": "w", "why": "y"}},
     ["rewritten functions[0]", "dropped response_format.note", "rewritten function_call",
      "dropped function_call.why"]),
    (CHAT, [user("?")], {"stream": True, "stream_options": {}}, ["dropped stream"]),
    (CHAT, [user("?")], {"stream_options": {"include_usage": True}}, ["dropped stream_options"]),
    (CHAT, [user("Hi."), {"role": "tool", "tool_call_id": "call_9", "content": "18"}], {}, ["synthesized messages[1]"]),
    (CHAT, [{**user(IMAGE), "name": "Ada"}, chat(tool_calls=[MARKED], name="bot", weight=0), {**TOOL, "name": "clock"},
            user(), chat("")], {},
     [f"dropped messages{path}" for path in (
         "[0].name", "[0].content[0].image_url.sharpness", "[0].content[0].cache",
         "[1].tool_calls[0].function.note", "[1].tool_calls[0].index", "[1].name", "[1].weight", "[2].name", "[3]",
         "[4]")]),
    (RESPONSES, [message("Hi.")], {"instructions": "Be brief."}, ["relocated instructions"]),
    (RESPONSES, [message("Hi."), {"type": "item_reference", "id": "fc_1"}, {"id": "rs_1"}, OUTPUT], {},
     ["dropped input[1]", "dropped input[2]", "synthesized input[3]"]),
    (RESPONSES, [{**message({"type": "input_image", "image_url": PIXEL, "sharpness": 9}), "id": "msg_1"}, ITEM,
                 {**OUTPUT, "id": "fco_1"}, message(), {"role": "assistant", "content": ""}], {},
     [f"dropped input{path}" for path in ("[0].id", "[0].content[0].sharpness", "[2].id", "[3]", "[4]")]),
]  # fmt: skip


@pytest.mark.parametrize(("name", "items", "fields", "expected"), LOST)
def test_what_has_no_place_is_a_loss_by_its_path(name: str, items: list[Any], fields: Any, expected: list[str]) -> None:
    assert losses(read(name, *items, **fields)) == expected


def test_a_result_of_gemini_beside_media_is_text() -> None:
    for response, texts, told in (({"output": "A map."}, ["A map."], 0), ({}, [], 0), ({"a": 1}, ['{"a":1}'], 1)):
        history = read(GEMINI, contents("?"), gemini(function()), contents(answer(response, parts=[BLOB])))
        assert history.messages[2].parts == (
            *(TextPart(text=each) for each in texts),
            MediaPart(modality="image", url=PIXEL),
        )
        assert len(history.losses) == told


DEFERRED = {"name": "w", "input_schema": {"type": "object"}, "strict": True, "defer_loading": True, "of_2030": 1}
LATER = {"name": "later", "input_schema": {"type": "object"}, "defer_loading": "of 2030"}


def test_declarations_are_options_or_the_vendors_own() -> None:
    """What has hints that are none is no option; what an option cannot say is a loss."""
    tools = [DEFERRED, LATER, {"type": "web_search_20260318", "name": "web_search"}]
    history = read(CLAUDE, user("?"), tools=tools)

    hints = {"strict": True, "defer_loading": True}
    assert [each.vendor for each in history.options] == [
        {"anthropic": hints},
        {"anthropic": {"type": tools[2]["type"]}},
    ]
    assert list(history.settings.vendor["anthropic"]["tools"]) == [LATER]
    assert losses(history) == ["dropped tools[0].of_2030"]


def test_functions_are_options_and_other_tools_the_vendors_own() -> None:
    files, run = {"type": "file_search", "vector_store_ids": ["v"]}, {"type": "custom", "custom": {"name": "run"}}
    for name, tools, rest in (
        (CHAT, [{"type": "function", "function": WEATHER}, run], [run]),
        (RESPONSES, [{"type": "function", **WEATHER}, files], [files]),
        (GEMINI, [{"functionDeclarations": [{**DECLARED, "name": "weather"}]}, {"googleSearch": {}}],
         [{"googleSearch": {}}]),
    ):  # fmt: skip
        history = read(name, tools=tools)
        assert ([each.name for each in history.options], history.losses) == (["weather"], ())
        assert list(history.settings.vendor[name.partition(".")[0]]["tools"]) == rest


def test_a_schema_of_googles_own_form_becomes_a_json_schema() -> None:
    inner = {"type": "ARRAY", "items": {"type": "INTEGER"}}
    own = {"type": "OBJECT", "properties": {"type": {"type": "STRING", "nullable": True, "enum": ["A"]}, "b": inner}}
    history = read(GEMINI, contents("?"), tools=[{"functionDeclarations": [{"name": "f", "parameters": own}]}])

    assert history.options[0].parameters == {
        "type": "object",
        "properties": {
            "type": {"type": ["string", "null"], "enum": ["A"]}, "b": {"type": "array", "items": {"type": "integer"}},
        },
    }  # fmt: skip


TOOLS = [{"name": "w", "input_schema": {"type": "object"}}]
ELSEWHERE = {"type": "function", "function": {"name": "elsewhere"}}
ALLOWED = {"type": "allowed_tools", "mode": "auto", "tools": []}
JSON = {"type": "json_object"}


def vendor(name: str, **section: Any) -> dict[str, Any]:
    return {"vendor": {name.partition(".")[0]: section}}


def extra(name: str, **fields: Any) -> dict[str, Any]:
    return {"extra_body_for": {name: fields}}


SETTINGS: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    (CLAUDE, {"temperature": 0.5, "top_p": 0.9, "stop_sequences": ["a"], "top_k": 4, "of_2030": 1, "container": None},
     {"temperature": 0.5, "top_p": 0.9, "stop": ["a"], **vendor(CLAUDE, top_k=4), **extra(CLAUDE, of_2030=1)}),
    (CLAUDE, {"metadata": {"user_id": "u"}, "thinking": {"type": "x"}, "betas": ["x"], "cache_control": {"a": 1}},
     vendor(CLAUDE, metadata={"user_id": "u"}, thinking={"type": "x"}, betas=["x"], cache_control={"a": 1})),
    (CLAUDE, {"version": "2023-06-01", "cache_breakpoints": ["end"]},
     extra(CLAUDE, version="2023-06-01", cache_breakpoints=["end"])),
    (CLAUDE, {"output_config": {"effort": "low", "format": {
        "type": "json_schema", "schema": {"type": "object", "title": "T"}}}},
     {"response_format": {"name": "T", "schema": {"type": "object", "title": "T"}},
      **vendor(CLAUDE, output_config={"effort": "low"})}),
    (CLAUDE, {"tool_choice": {"type": "any", "disable_parallel_tool_use": True}},
     {"option_choice": "required", "parallel_options": False}),
    (CLAUDE, {"tool_choice": {"type": "auto"}}, {"option_choice": "auto"}),
    (CLAUDE, {"tool_choice": {"type": "none"}}, {"option_choice": "none"}),
    (CLAUDE, {"tools": TOOLS, "tool_choice": {"type": "tool", "name": "w"}}, {"option_choice": "w"}),
    (CLAUDE, {"tools": TOOLS, "tool_choice": {"type": "tool", "name": "x"}},
     vendor(CLAUDE, tool_choice={"type": "tool", "name": "x"})),
    (GEMINI, {"toolConfig": {"includeServerSideToolInvocations": True}},
     vendor(GEMINI, tool_config={"includeServerSideToolInvocations": True})),
    (CHAT, {"max_completion_tokens": 9}, {"max_output_tokens": 9}),
    (CHAT, {"max_tokens": 9}, {"max_output_tokens": 9}),
    (CHAT, {"max_tokens": 9, "max_completion_tokens": 8},
     {"max_output_tokens": 9, **extra(CHAT, max_completion_tokens=8)}),
    (CHAT, {"temperature": 0, "top_p": 0.5, "seed": 3}, {"temperature": 0, "top_p": 0.5, "seed": 3}),
    (CHAT, {"stop": "END"}, {"stop": "END"}),
    (CHAT, {"stop": ["A", "B"]}, {"stop": ["A", "B"]}),
    (CHAT, {"reasoning_effort": "low"}, {"reasoning_effort": "low"}),
    (CHAT, {"reasoning_effort": "cosmic"}, extra(CHAT, **{"reasoning_effort": "cosmic"})),
    (CHAT, {"temperature": -1}, extra(CHAT, **{"temperature": -1})),
    (CHAT, {"seed": "3"}, extra(CHAT, **{"seed": "3"})),
    (CHAT, {"tool_choice": "required"}, {"option_choice": "required"}),
    (CHAT, {"tool_choice": ELSEWHERE}, vendor(CHAT, tool_choice=ELSEWHERE)),
    (CHAT, {"n": 2, "user": "u"}, vendor(CHAT, n=2, user="u")),
    (CHAT, {"n": "many"}, extra(CHAT, **{"n": "many"})),
    (CHAT, {"trace": "a1"}, extra(CHAT, **{"trace": "a1"})),
    (CHAT, {"response_format": JSON}, {"response_format": JSON_OBJECT}),
    (CHAT, {"response_format": {"type": "text"}}, {}),
    (CHAT, {"temperature": None, "tools": None, "user": None, "stop": None, "stream": False}, {}),
    (RESPONSES, {"max_output_tokens": 9, "temperature": 0}, {"max_output_tokens": 9, "temperature": 0}),
    (RESPONSES, {"parallel_tool_calls": False}, {"parallel_options": False}),
    (RESPONSES, {"reasoning": {"effort": "low"}}, {"reasoning_effort": "low"}),
    (RESPONSES, {"reasoning": {"effort": "low", "summary": "auto"}},
     {"reasoning_effort": "low", **vendor(RESPONSES, reasoning={"summary": "auto"})}),
    (RESPONSES, {"reasoning": {"effort": "cosmic"}}, vendor(RESPONSES, reasoning={"effort": "cosmic"})),
    (RESPONSES, {"text": {"verbosity": "low"}}, vendor(RESPONSES, verbosity="low")),
    (RESPONSES, {"text": {"format": JSON, "verbosity": "low"}},
     {"response_format": JSON_OBJECT, **vendor(RESPONSES, verbosity="low")}),
    (RESPONSES, {"text": {"format": {"type": "text"}}}, {}),
    (RESPONSES, {"text": {"format": {"type": "grammar"}, "verbosity": "loud", "of_2030": 1}},
     extra(RESPONSES, text={"format": {"type": "grammar"}, "verbosity": "loud", "of_2030": 1})),
    (GEMINI, {"generationConfig": {"responseMimeType": "application/json"}}, {"response_format": JSON_OBJECT}),
    (GEMINI, {"generationConfig": {"temperature": "hot", "candidateCount": "x", "of2030": 1, "topK": 4}},
     {**vendor(GEMINI, top_k=4),
      **extra(GEMINI, generationConfig={"temperature": "hot", "candidateCount": "x", "of2030": 1})}),
    (RESPONSES, {"verbosity": "low"}, extra(RESPONSES, **{"verbosity": "low"})),
    (RESPONSES, {"store": True, "include": []}, vendor(RESPONSES, store=True, include=[])),
    (RESPONSES, {"previous_response_id": "resp_1"}, vendor(RESPONSES, previous_response_id="resp_1")),
    (RESPONSES, {"tool_choice": ALLOWED}, vendor(RESPONSES, tool_choice=ALLOWED)),
    (RESPONSES, {"stop": "END"}, extra(RESPONSES, **{"stop": "END"})),
    (RESPONSES, {"trace": "a1", "user": None, "text": None, "tool_choice": None}, extra(RESPONSES, **{"trace": "a1"})),
]  # fmt: skip


@pytest.mark.parametrize(("name", "fields", "expected"), SETTINGS, ids=str)
def test_settings_have_their_neutral_name_or_stay_verbatim(name: str, fields: Any, expected: Any) -> None:
    least = {"max_output_tokens": 100} if name == CLAUDE else {}
    assert read(name, **fields).settings == Settings(**least, **expected)


@pytest.mark.parametrize("name", ["prompt", "conversation", "previous_response_id"])
def test_a_request_that_goes_on_from_the_vendors_store_may_have_no_input(name: str) -> None:
    """Its messages are with the vendor; what names them is a setting."""
    value = {"id": "pmpt_1"} if name == "prompt" else "id_1"
    history = sabir.dialect(RESPONSES).decode_history({"model": "m", name: value})

    assert (history.messages, history.settings.vendor) == ((), {"openai": {name: value}})


SHORT, LONG = {"cache_control": {"type": "ephemeral"}}, {"cache_control": {"type": "ephemeral", "ttl": "1h"}}


def test_cache_markers_are_breakpoints_where_they_have_a_name() -> None:
    stored = request(
        CLAUDE, user({**text("Hi"), **SHORT}), claude("Hello"), user("So?", {**text("Well?"), **SHORT}),
        system=[{**text("Brief."), **LONG}], tools=[{**TOOLS[0], **LONG}],
    )  # fmt: skip
    history = sabir.dialect(CLAUDE).decode_history(stored)
    sent = back(CLAUDE, history)

    assert list(history.settings.vendor["anthropic"]["cache_breakpoints"]) == [
        {"at": "system", "ttl": "1h"}, {"at": "options", "ttl": "1h"}, "end",
    ]  # fmt: skip
    assert losses(history) == [PLACE]
    assert (sent["system"], sent["messages"][2]) == (stored["system"], stored["messages"][2])
    assert sent["tools"][0]["cache_control"] == LONG["cache_control"]


@pytest.mark.parametrize(
    "items", [[user("a"), claude("b"), user("c")], [user("a"), claude(USE), user(ANSWERED)], [user("a"), claude("b")]]
)
def test_a_marker_at_the_end_of_the_closed_prefix_is_that_breakpoint(items: list[Any]) -> None:
    settings = Settings(max_output_tokens=9, vendor={"anthropic": {"cache_breakpoints": ["closed", "end"]}})
    marked = back(CLAUDE, read(CLAUDE, *items, model="claude-haiku-4-5").model_copy(update={"settings": settings}))
    again = sabir.dialect(CLAUDE).decode_history(marked)

    assert json.dumps(marked).count("cache_control") == 2
    assert (again.settings, again.losses) == (settings, ())
