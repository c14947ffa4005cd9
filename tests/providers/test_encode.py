"""What a conversation, its media and its results are on each wire, and that stored media are read as what they were."""

import json
from typing import Any

import pytest
import sabir
from sabir.contract.turns import TurnScope
from sabir.vocabulary.parts import MediaPart, TextPart

from tests.providers.wires import DIALECTS, ITEMS, MODELS, body, call, items, lost, render, result, said

CLAUDE, GEMINI, CHAT, RESPONSES = DIALECTS
PNG = "data:image/png;base64,iVBORw0KGgo="
WAV = "data:audio/wav;base64,UklGRg=="
PDF = "data:application/pdf;base64,JVBERi0="
FILES = "https://generativelanguage.googleapis.com/v1beta/files"
GOLDENS = {
    CLAUDE: (
        '{"model":"claude-opus-5-5","max_tokens":1024,"system":[{"type":"text","text":"Be brief."}],"messages":['
        '{"role":"user","content":[{"type":"text","text":"Umbrella?"},{"type":"text","text":"Now?"}]},'
        '{"role":"assistant","content":[{"type":"text","text":"Let me see."},'
        '{"type":"tool_use","id":"call_1","name":"weather","input":{"city":"Ulm"}},'
        '{"type":"tool_use","id":"call_2","name":"weather","input":{"city":"Köln"}}]},'
        '{"role":"user","content":[{"type":"tool_result","tool_use_id":"call_1","content":"{\\"degrees\\":18}"},'
        '{"type":"tool_result","tool_use_id":"call_2","content":"rain"}]},'
        '{"role":"assistant","content":[{"type":"text","text":"Yes."}]},'
        '{"role":"user","content":[{"type":"text","text":"Thanks."}]}]}'
    ),
    GEMINI: (
        '{"systemInstruction":{"parts":[{"text":"Be brief."}]},"contents":['
        '{"role":"user","parts":[{"text":"Umbrella?"},{"text":"Now?"}]},'
        '{"role":"model","parts":[{"text":"Let me see."},{"functionCall":{"name":"weather","args":{"city":"Ulm"}}},'
        '{"functionCall":{"name":"weather","args":{"city":"Köln"}}}]},'
        '{"role":"user","parts":[{"functionResponse":{"name":"weather","response":{"degrees":18}}},'
        '{"functionResponse":{"name":"weather","response":{"output":"rain"}}}]},'
        '{"role":"model","parts":[{"text":"Yes."}]},{"role":"user","parts":[{"text":"Thanks."}]}]}'
    ),
    CHAT: (
        '{"model":"unlisted","messages":[{"role":"system","content":"Be brief."},'
        '{"role":"user","content":[{"type":"text","text":"Umbrella?"},{"type":"text","text":"Now?"}]},'
        '{"role":"assistant","content":"Let me see.","tool_calls":['
        '{"id":"call_1","type":"function","function":{"name":"weather","arguments":"{\\"city\\":\\"Ulm\\"}"}},'
        '{"id":"call_2","type":"function","function":{"name":"weather","arguments":"{\\"city\\":\\"Köln\\"}"}}]},'
        '{"role":"tool","tool_call_id":"call_1","content":"{\\"degrees\\":18}"},'
        '{"role":"tool","tool_call_id":"call_2","content":"rain"},'
        '{"role":"assistant","content":"Yes."},{"role":"user","content":"Thanks."}]}'
    ),
    RESPONSES: (
        '{"model":"unlisted","store":false,"input":['
        '{"type":"message","role":"system","content":[{"type":"input_text","text":"Be brief."}]},'
        '{"type":"message","role":"user","content":[{"type":"input_text","text":"Umbrella?"},'
        '{"type":"input_text","text":"Now?"}]},{"type":"message","role":"assistant","content":"Let me see."},'
        '{"type":"function_call","call_id":"call_1","name":"weather","arguments":"{\\"city\\":\\"Ulm\\"}"},'
        '{"type":"function_call","call_id":"call_2","name":"weather","arguments":"{\\"city\\":\\"Köln\\"}"},'
        '{"type":"function_call_output","call_id":"call_1","output":"{\\"degrees\\":18}"},'
        '{"type":"function_call_output","call_id":"call_2","output":"rain"},'
        '{"type":"message","role":"assistant","content":"Yes."},'
        '{"type":"message","role":"user","content":[{"type":"input_text","text":"Thanks."}]}]}'
    ),
}


@pytest.mark.parametrize("name", DIALECTS)
def test_a_conversation_to_the_byte(name: str) -> None:
    rendering = render(
        name, sabir.system("Be brief."), sabir.user("Umbrella?", "Now?"), said("Let me see."),
        call(1, arguments={"city": "Ulm"}), call(2, arguments={"city": "Köln"}), result(2, result="rain"),
        result(1, result={"degrees": 18}), said("Yes."), sabir.user("Thanks."),
    )  # fmt: skip

    assert rendering.body_bytes.decode() == GOLDENS[name]
    assert rendering.losses == ()


STREAMED = {
    CLAUDE: ("/v1/messages", {"stream": True}),
    GEMINI: ("/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse", {}),
    CHAT: ("/chat/completions", {"stream": True, "stream_options": {"include_usage": True}}),
    RESPONSES: ("/responses", {"stream": True}),
}


@pytest.mark.parametrize("name", DIALECTS)
def test_a_stream_is_asked_for_by_a_path_or_by_fields(name: str) -> None:
    rendering = render(name, sabir.user("Hi"))
    path, fields = STREAMED[name]

    assert rendering.for_stream().path == path
    assert rendering.path == path.replace(":streamGenerateContent?alt=sse", ":generateContent")
    assert body(rendering.for_stream()) == {**body(rendering), **fields}


def claude(kind: str, source: str, **fields: Any) -> dict[str, Any]:
    return {"type": kind, "source": {"type": source, **fields}}


def file(**fields: Any) -> dict[str, Any]:
    return {"type": "file", "file": fields}


def picture(url: str) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": url}}


def shown(**fields: Any) -> dict[str, Any]:
    return {"type": "input_image", "detail": "auto", **fields}


def at(uri: str, mime: str | None = None) -> dict[str, Any]:
    return {"fileData": {**({"mimeType": mime} if mime else {}), "fileUri": uri}}


def inline(mime: str, data: str) -> dict[str, Any]:
    return {"inlineData": {"mimeType": mime, "data": data}}


BOTH_WAYS: list[tuple[str, Any, dict[str, Any], Any]] = [
    (CLAUDE, "image", {"url": "https://e.org/a.png"}, claude("image", "url", url="https://e.org/a.png")),
    (CLAUDE, "image", {"url": PNG}, claude("image", "base64", media_type="image/png", data="iVBORw0KGgo=")),
    (CLAUDE, "image", {"url": "provider-file:anthropic/f"}, claude("image", "file", file_id="f")),
    (CLAUDE, "document", {"url": "https://e.org/a.pdf"}, claude("document", "url", url="https://e.org/a.pdf")),
    (CLAUDE, "document", {"url": "provider-file:anthropic/f"}, claude("document", "file", file_id="f")),
    (CLAUDE, "document", {"url": PDF, "name": "a.pdf"},
     {**claude("document", "base64", media_type="application/pdf", data="JVBERi0="), "title": "a.pdf"}),
    (CLAUDE, "document", {"url": "data:text/plain;base64,w6k=", "name": "t"},
     {**claude("document", "text", media_type="text/plain", data="é"), "title": "t"}),
    (GEMINI, "image", {"url": PNG}, inline("image/png", "iVBORw0KGgo=")),
    (GEMINI, "document", {"url": "https://e.org/a.pdf", "mime": "application/pdf"},
     at("https://e.org/a.pdf", "application/pdf")),
    (GEMINI, "document", {"url": "provider-file:google/gs://b/a.pdf", "mime": "application/pdf"},
     at("gs://b/a.pdf", "application/pdf")),
    (GEMINI, "document", {"url": "provider-file:google/a1", "mime": "application/pdf"},
     at(f"{FILES}/a1", "application/pdf")),
    (CHAT, "image", {"url": PNG}, picture(PNG)),
    (CHAT, "image", {"url": "https://e.org/a.gif"}, picture("https://e.org/a.gif")),
    (CHAT, "audio", {"url": WAV}, {"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}}),
    (CHAT, "audio", {"url": "data:audio/mpeg;base64,SUQz"},
     {"type": "input_audio", "input_audio": {"data": "SUQz", "format": "mp3"}}),
    (CHAT, "document", {"url": PDF, "name": "bill.pdf"}, file(filename="bill.pdf", file_data=PDF)),
    (CHAT, "document", {"url": "provider-file:openai/file-1"}, file(file_id="file-1")),
    (RESPONSES, "image", {"url": PNG}, shown(image_url=PNG)),
    (RESPONSES, "image", {"url": "https://e.org/a.png"}, shown(image_url="https://e.org/a.png")),
    (RESPONSES, "image", {"url": "provider-file:openai/file-1"}, shown(file_id="file-1")),
    (RESPONSES, "document", {"url": "https://e.org/a.pdf"}, {"type": "input_file", "file_url": "https://e.org/a.pdf"}),
    (RESPONSES, "document", {"url": "provider-file:openai/f"}, {"type": "input_file", "file_id": "f"}),
    (RESPONSES, "document", {"url": PDF, "name": "bill.pdf"},
     {"type": "input_file", "filename": "bill.pdf", "file_data": PDF}),
]  # fmt: skip
"""A medium, and its form on the wire, which is read as that medium."""
ONE_WAY: list[tuple[str, str, dict[str, Any], Any]] = [
    (CLAUDE, "image", {"url": "data:image/jpg;base64,/9j/"},
     claude("image", "base64", media_type="image/jpeg", data="/9j/")),
    (GEMINI, "image", {"url": "data:image/jpg;base64,/+8="}, inline("image/jpeg", "/+8=")),
    (GEMINI, "image", {"url": "data:image/PNG;q=1;base64,AAA="}, inline("image/png;q=1", "AAA=")),
    (GEMINI, "image", {"url": "https://x.org/a.PNG?b=1"}, at("https://x.org/a.PNG?b=1", "image/png")),
    (GEMINI, "image", {"url": "https://x.org/a", "mime": "image/webp"}, at("https://x.org/a", "image/webp")),
    *((GEMINI, "image", {"url": "https://x.org/a", "mime": hint}, at("https://x.org/a"))
      for hint in ("photo", "image/*", "*/*", "image/", "", "image/png, image/webp")),
    (GEMINI, "image", {"url": "https://x.org/a.png", "mime": "image/*"}, at("https://x.org/a.png", "image/png")),
    (GEMINI, "image", {"url": "https://x.org/a", "name": "sky.webp"}, at("https://x.org/a", "image/webp")),
    (GEMINI, "image", {"url": "https://x.org/a", "mime": "image/PNG; q=1"}, at("https://x.org/a", "image/png;q=1")),
    (GEMINI, "image", {"url": "provider-file:google/files/abc", "mime": "image/png"}, at(f"{FILES}/abc", "image/png")),
    (GEMINI, "image", {"url": "provider-file:google/gs://b/a.heic"}, at("gs://b/a.heic", "image/heic")),
    (CHAT, "image", {"url": "data:image/png,%89PNG"}, picture("data:image/png;base64,iVBORw==")),
    (CHAT, "document", {"url": PDF}, file(filename="document.pdf", file_data=PDF)),
    (RESPONSES, "image", {"url": "data:image/png,%89PNG"}, shown(image_url="data:image/png;base64,iVBORw==")),
    (RESPONSES, "document", {"url": "data:text/csv,a%2Cb"},
     {"type": "input_file", "filename": "document.csv", "file_data": "data:text/csv;base64,YSxi"}),
]  # fmt: skip


def content(name: str, *messages: Any, **how: Any) -> Any:
    last = items(name, *messages, **how)[-1]
    return next(last[field] for field in ("content", "parts", "output") if field in last)


@pytest.mark.parametrize(("name", "modality", "fields", "block"), [*BOTH_WAYS, *ONE_WAY])
def test_a_medium_has_one_form(name: str, modality: Any, fields: Any, block: Any) -> None:
    rendering = render(name, said(MediaPart(modality=modality, **fields), policy="user"))

    assert content(name, said(MediaPart(modality=modality, **fields), policy="user")) == [block]
    assert rendering.losses == ()


NOT_TAKEN: list[tuple[str, str, str]] = [
    (CLAUDE, "audio", WAV),
    (CLAUDE, "document", "data:text/csv;base64,//8="),  # of a text type, but not of UTF-8
    (GEMINI, "image", "data:image/gif;base64,R0lGODlh"),
    (GEMINI, "document", "data:application/msword;base64,AAAA"),
    (CHAT, "image", "provider-file:openai/file-1"),
    (CHAT, "image", "data:image/bmp;base64,Qk0="),
    (CHAT, "audio", "https://e.org/a.mp3"),
    (CHAT, "audio", "data:audio/flac;base64,ZkxhQw=="),
    (CHAT, "document", "https://e.org/a.pdf"),
    (CHAT, "document", "data:text/plain;base64,QQ=="),
    (CHAT, "video", "https://e.org/a.mp4"),
    (RESPONSES, "audio", WAV),
    (RESPONSES, "video", "https://e.org/a.mp4"),
    (RESPONSES, "document", "data:application/zip;base64,UEsDBA=="),
    (RESPONSES, "image", "data:image/tiff;base64,SUkqAA=="),
    (RESPONSES, "image", "provider-file:other/file-1"),
]


@pytest.mark.parametrize(("name", "modality", "url"), NOT_TAKEN)
def test_what_a_wire_has_no_place_for_is_a_placeholder_or_left_out(name: str, modality: Any, url: str) -> None:
    message = said("See", MediaPart(modality=modality, url=url, prompt_hint="a hat"), policy="user")
    rendering, dropping = render(name, message), render(name, message, unsupported_media="drop")

    shown = "" if url.startswith("data:") else f" {url}"
    assert content(name, message)[1]["text"] == f"[{modality} not shown: a hat{shown}]"
    assert "not shown" not in dropping.body_bytes.decode()
    assert (lost(rendering), lost(dropping)) == ([("downgraded", "parts[1]")], [("dropped", "parts[1]")])


TIMEOUT = {"is_error": True, "error_type": "Timeout", "error_message": "no answer"}
FAILED = '{"error":{"type":"Timeout","message":"no answer"}}'
RESULTS: list[tuple[str, dict[str, Any], Any]] = [
    *((name, {"result": value}, text) for name in (CLAUDE, CHAT, RESPONSES) for value, text in [
        ("18 °C", "18 °C"), (None, "null"), (0, "0"), ("", '""'), ({"b": 1, "a": [2.5, None]}, '{"a":[2.5,null],"b":1}')
    ]),
    (CLAUDE, {"result": "  "}, '"  "'),
    (CLAUDE, {"parts": ["seen"]}, [{"type": "text", "text": "seen"}]),
    (CHAT, {"parts": ["seen"]}, "seen"),
    (CHAT, {"parts": ["a", "b"]}, [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]),
    (RESPONSES, {"parts": ["seen"]}, [{"type": "input_text", "text": "seen"}]),
    *((name, {**TIMEOUT, "retryable": True}, FAILED.replace("}}", ',"retryable":true}}'))
      for name in (CLAUDE, CHAT, RESPONSES)),
    (CLAUDE, {**TIMEOUT, "parts": ["log"]}, [{"type": "text", "text": FAILED}, {"type": "text", "text": "log"}]),
    (CHAT, {**TIMEOUT, "parts": ["log"]}, [{"type": "text", "text": FAILED}, {"type": "text", "text": "log"}]),
    (RESPONSES, {**TIMEOUT, "parts": ["log"]},
     [{"type": "input_text", "text": FAILED}, {"type": "input_text", "text": "log"}]),
    *((GEMINI, {"result": value}, sent) for value, sent in [
        ("18 °C", {"output": "18 °C"}), ("", {"output": ""}), (3, {"output": 3}), (None, {"output": None}),
        ([1], {"output": [1]}), ({}, {}), ({"celsius": 18}, {"celsius": 18}),
        ({"output": 1, "more": 2}, {"output": {"output": 1, "more": 2}}),
        ({"error": "is what I study"}, {"output": {"error": "is what I study"}}),
    ]),
    (GEMINI, TIMEOUT, {"error": {"type": "Timeout", "message": "no answer"}}),
    (GEMINI, {**TIMEOUT, "retryable": True}, {"error": {"type": "Timeout", "message": "no answer", "retryable": True}}),
    (GEMINI, {**TIMEOUT, "error_type": "error"}, {"error": "no answer"}),
]  # fmt: skip
"""What an option answered, and what stands for it on the wire."""


@pytest.mark.parametrize(("name", "fields", "expected"), RESULTS)
def test_a_result_says_what_it_is_and_whether_it_failed(name: str, fields: dict[str, Any], expected: Any) -> None:
    parts = {"parts": tuple(TextPart(text=text) for text in fields["parts"])} if "parts" in fields else {}
    rendering = render(name, sabir.user("?"), call(), result(**{**fields, **parts}))
    last = body(rendering)[ITEMS[name]][-1]

    assert rendering.losses == ()
    if name == CLAUDE:
        (block,) = last["content"]
        assert (block["content"], block.get("is_error", False)) == (expected, "is_error" in fields)
    elif name == GEMINI:
        assert last["parts"] == [{"functionResponse": {"name": "weather", "response": expected}}]
    else:
        assert (
            last
            == {
                CHAT: {"role": "tool", "tool_call_id": "call_1", "content": expected},
                RESPONSES: {"type": "function_call_output", "call_id": "call_1", "output": expected},
            }[name]
        )


FAMILIES: list[tuple[str, str, str]] = [
    *((CLAUDE, name, "claude-opus-5-5") for name in (
        "claude-opus-5-5", "claude-opus-5-5-20260922", "anthropic.claude-opus-5-5-20260922-v1:0",
        "eu.anthropic.claude-opus-5-5", "claude-opus-5-5@20260922", "claude-opus-5-5-latest",
    )),
    (CLAUDE, "claude-opus-5", "claude-opus-5"),
    (GEMINI, "gemini-3-pro-preview", "gemini-3-pro"),
    (GEMINI, "gemini-2.0-flash-001", "gemini-2.0-flash"),
    (GEMINI, "models/gemini-2.5-flash-preview-09-2025", "gemini-2.5-flash"),
    (GEMINI, "gemini-2.5-flash-lite", "gemini-2.5-flash-lite"),
    (GEMINI, "gemini-3.1-pro-preview-customtools", "gemini-3.1-pro-preview-customtools"),
    (RESPONSES, "gpt-5.4-2026-03-05", "gpt-5.4"),
    (RESPONSES, "gpt-5.4", "gpt-5.4"),
    (RESPONSES, "gpt-5.4-mini", "gpt-5.4-mini"),
    *((name, "", "") for name in DIALECTS),
]  # fmt: skip


@pytest.mark.parametrize(("name", "model", "family"), FAMILIES)
def test_releases_of_one_model_read_what_each_other_thought(name: str, model: str, family: str) -> None:
    assert sabir.dialect(name).dialect.family(model) == family


COUNTED = {
    CLAUDE: ("/v1/messages/count_tokens", {"model", "system", "messages", "tools"}),
    GEMINI: ("/v1beta/models/gemini-2.5-flash:countTokens", {"generateContentRequest"}),
    RESPONSES: ("/responses/input_tokens", {"model", "input", "reasoning", "tools", "tool_choice"}),
}


@pytest.mark.parametrize("name", DIALECTS)
def test_what_is_counted_is_what_the_counting_endpoint_takes(name: str) -> None:
    weather = sabir.Option.from_schema("weather", "", {"type": "object", "properties": {}})
    given = {"max_output_tokens": 5, **({"reasoning_effort": "low", "option_choice": "auto"} if name == RESPONSES else
             {"stop": "x"})}  # fmt: skip
    rendering = render(name, sabir.system("Be brief."), sabir.user("Hi"), options=[weather], **given)
    dialect = sabir.dialect(name).dialect
    scope = TurnScope(rendering.target, dialect.tables)
    asked = dialect.encode_count and dialect.encode_count(rendering.body, scope)

    assert (asked and (asked[0], set(asked[1]))) == COUNTED.get(name)
    if name == GEMINI:
        assert asked and asked[1]["generateContentRequest"] == {
            "model": f"models/{MODELS[name]}", **json.loads(rendering.body_bytes),
        }  # fmt: skip
