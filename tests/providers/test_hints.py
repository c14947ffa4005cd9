"""Vendor hints of media and options: what is sent, told, or refused, and what a stored request gives back."""

from typing import Any

import pytest
import sabir
from hypothesis import given, settings
from hypothesis import strategies as st
from sabir.errors import SettingsInvalid
from sabir.options.option import Option
from sabir.vocabulary.parts import MediaPart, TextPart

from tests.laws.oracle import check_request
from tests.providers.wires import DIALECTS, ITEMS, MODELS, body, call, lost, render, result

CLAUDE, GEMINI, CHAT, RESPONSES = DIALECTS
MODELS = {**MODELS, GEMINI: "gemini-3-pro-preview"}
PNG, WAV, PDF = (
    "data:image/png;base64,iVBORw0KGgo=",
    "data:audio/wav;base64,UklGRg==",
    "data:application/pdf;base64,JVBERi0=",
)
VIDEO = {"fileData": {"mimeType": "video/mp4", "fileUri": "https://x.org/v.mp4"}}
PIXEL = {"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgo="}}
PAGES = {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="}}
FILE = {"filename": "document.pdf", "file_data": PDF}
CITED = {"citations": {"enabled": True}, "context": "A draft."}
LOW = {"level": "MEDIA_RESOLUTION_LOW"}
CLIP = {"fps": 0.5, "start_offset": "2s", "end_offset": "10s"}
SENT_CLIP = {"fps": 0.5, "startOffset": "2s", "endOffset": "10s"}
EVERY = {"media_resolution": LOW, "video_metadata": CLIP}
BREAKPOINT = {"mode": "explicit", "ttl": "12h"}
ENDS = {"prompt_cache_breakpoint": BREAKPOINT}
BOTH = {"*": {"detail": "low", **ENDS}}
MAKE: dict[str, Any] = {
    "image": lambda vendor: sabir.image(PNG, vendor=vendor),
    "audio": lambda vendor: sabir.audio(WAV, vendor=vendor),
    "document": lambda vendor: sabir.document(PDF, vendor=vendor),
    "video": lambda vendor: sabir.video("https://x.org/v.mp4", vendor=vendor),
}


def picture(**said: Any) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": PNG, **said}}


def shown(**said: Any) -> dict[str, Any]:
    return {"type": "input_image", "detail": "auto", "image_url": PNG, **said}


MEDIA: list[tuple[str, str, Any, Any, list[str]]] = [
    (CLAUDE, "document", {"anthropic": CITED}, {**PAGES, **CITED}, []),
    (CLAUDE, "document", {"*": {**CITED, "detail": "low"}}, {**PAGES, **CITED}, [".*.detail"]),
    (CLAUDE, "document", {"*": {**CITED, "context": "Old."}, "anthropic": {"context": "A draft."}},
     {**PAGES, **CITED}, []),
    (CLAUDE, "document", {"openai": {"detail": "low"}}, PAGES, [""]),
    (CLAUDE, "document", {"openai": {"detail": "low"}, "anthropic": {}}, PAGES, []),
    (CLAUDE, "image", {"anthropic": {"cache_control": {"type": "ephemeral"}}},
     {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}},
     [".anthropic"]),
    (GEMINI, "video", {"google": EVERY, "other": {"a": 1}},
     {**VIDEO, "mediaResolution": LOW, "videoMetadata": SENT_CLIP}, []),
    (GEMINI, "image", {"*": {**EVERY, "detail": "low"}}, {**PIXEL, "mediaResolution": LOW},
     [".*.video_metadata", ".*.detail"]),
    (GEMINI, "audio", {"*": EVERY}, {"inlineData": {"mimeType": "audio/wav", "data": "UklGRg=="}},
     [".*.media_resolution", ".*.video_metadata"]),
    (GEMINI, "audio", {"google": EVERY}, {"inlineData": {"mimeType": "audio/wav", "data": "UklGRg=="}}, [".google"]),
    (GEMINI, "image", {"other": {"detail": "low"}}, PIXEL, [""]),
    (CHAT, "image", {"openai": {"detail": "low"}}, picture(detail="low"), []),
    (CHAT, "image", {"openai": {"detail": "original"}, "other": {"x": 1}}, picture(detail="original"), []),
    (CHAT, "image", {"*": {"detail": "low"}, "openai": {"detail": "high"}}, picture(detail="high"), []),
    (CHAT, "image", {"*": {"detail": "ultra"}}, picture(), [".*.detail"]),
    (CHAT, "image", None, picture(), []),
    (CHAT, "image", BOTH, {**picture(detail="low"), **ENDS}, []),
    (CHAT, "audio", BOTH, {"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}, **ENDS},
     [".*.detail"]),
    (CHAT, "document", BOTH, {"type": "file", "file": FILE, **ENDS}, [".*.detail"]),
    (CHAT, "document", {"openai": {"detail": "low"}}, {"type": "file", "file": FILE}, [".openai.detail"]),
    (RESPONSES, "image", {"openai": {"detail": "low"}}, shown(detail="low"), []),
    (RESPONSES, "image", {"*": {"detail": "ultra"}}, shown(), [".*.detail"]),
    (RESPONSES, "image", {"other": {"detail": "low"}}, shown(), [""]),
    (RESPONSES, "image", BOTH, shown(detail="low", **ENDS), []),
    (RESPONSES, "document", BOTH, {"type": "input_file", **FILE, "detail": "low", **ENDS}, []),
]  # fmt: skip
"""A medium's hints, its block on the wire, and where behind `vendor` the losses are."""
IN_RESULTS = {
    CLAUDE: lambda last: last["content"][0]["content"],
    GEMINI: lambda last: last["parts"][0]["functionResponse"]["parts"],
    RESPONSES: lambda last: last["output"],
}


@pytest.mark.parametrize(("name", "kind", "vendor", "block", "losses"), MEDIA)
def test_a_medium_is_sent_with_its_hints(name: str, kind: str, vendor: Any, block: Any, losses: list[str]) -> None:
    medium = MAKE[kind](vendor)
    asked = render(name, sabir.user(medium), model=MODELS[name])
    check_request(name, asked.body_bytes)
    (item,) = body(asked)[ITEMS[name]]

    assert item["parts" if name == GEMINI else "content"] == [block]
    assert set(lost(asked)) == {("dropped", f"parts[0].vendor{path}") for path in losses}
    if name not in IN_RESULTS or kind not in ("image", "document"):
        return
    answered = render(name, sabir.user("?"), call(), result(parts=(medium,)), model=MODELS[name])
    check_request(name, answered.body_bytes)
    assert IN_RESULTS[name](body(answered)[ITEMS[name]][-1]) == [block]
    assert {loss for loss in lost(answered) if loss[0] != "synthesized"} == set(lost(asked))


SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}
CLOSED = {**SCHEMA, "required": ["city"], "additionalProperties": False}
FREE = {"type": "object", "properties": {"city": {"type": "string", "minLength": 1}}}
LOOSE = {"type": "object", "properties": {"city": {"type": "string"}, "unit": {"type": "string"}}, "required": ["city"]}
NARROWED = {**LOOSE, "required": ["city", "unit"], "additionalProperties": False}
LATER = {"allowed_callers": ["programmatic"], "async": True, "defer_loading": True, "output_schema": FREE}
OFFERED = {
    "allowed_callers": ["direct", "code_execution_20260521"], "defer_loading": True, "eager_input_streaming": False,
    "input_examples": [{"city": "Oslo"}], "strict": True,
}  # fmt: skip
BLOCKING = {"behavior": "BLOCKING", "response_json_schema": {"type": "object", "properties": {"foo_bar": {}}}}
SENT_BLOCKING = {"behavior": "BLOCKING", "responseJsonSchema": BLOCKING["response_json_schema"]}
OPENAI = (CHAT, RESPONSES)
OPTIONS: list[tuple[str, Any, Any, dict[str, Any], list[tuple[str, str]]]] = [
    (CLAUDE, CLOSED, {"anthropic": OFFERED}, {"input_schema": CLOSED, **OFFERED}, []),
    (CLAUDE, CLOSED, {"*": {"strict": True, "behavior": "BLOCKING"}}, {"input_schema": CLOSED, "strict": True},
     [("dropped", ".vendor.*.behavior")]),
    (CLAUDE, SCHEMA, {"*": {"defer_loading": True}, "anthropic": {"defer_loading": False}},
     {"input_schema": SCHEMA, "defer_loading": False}, []),
    (CLAUDE, SCHEMA, {"google": {"behavior": "BLOCKING"}}, {"input_schema": SCHEMA}, [("dropped", ".vendor")]),
    (GEMINI, SCHEMA, {"google": BLOCKING}, {"parametersJsonSchema": SCHEMA, **SENT_BLOCKING}, []),
    (GEMINI, SCHEMA, {"*": {"behavior": "BLOCKING", "defer_loading": True}},
     {"parametersJsonSchema": SCHEMA, "behavior": "BLOCKING"}, [("dropped", ".vendor.*.defer_loading")]),
    *((name, CLOSED, {"openai": {"strict": False}}, {"parameters": CLOSED, "strict": False}, []) for name in OPENAI),
    *((name, LOOSE, {"openai": {"strict": True}}, {"parameters": NARROWED, "strict": True},
       [("rewritten", ".parameters.properties.unit")]) for name in OPENAI),
    (CHAT, FREE, {"*": {"strict": True}}, {"parameters": FREE}, [("downgraded", ".parameters")]),
    (RESPONSES, FREE, {"*": {"strict": True}}, {"parameters": FREE, "strict": False}, [("downgraded", ".parameters")]),
    (RESPONSES, CLOSED, {"openai": LATER}, {"parameters": CLOSED, "strict": True, **LATER}, []),
    (CHAT, CLOSED, {"*": LATER}, {"parameters": CLOSED, "strict": True},
     [("dropped", f".vendor.*.{name}") for name in LATER]),
    (CHAT, CLOSED, {"openai": {"defer_loading": True, "strict": False}}, {"parameters": CLOSED, "strict": False},
     [("dropped", ".vendor.openai.defer_loading")]),
]  # fmt: skip


@pytest.mark.parametrize(("name", "schema", "vendor", "declared", "losses"), OPTIONS)
def test_an_option_is_declared_with_its_hints(name: str, schema: Any, vendor: Any, declared: Any, losses: Any) -> None:
    option = Option.from_schema("look", "Look.", schema, vendor=vendor)
    rendering = render(name, sabir.user("?"), options=[option], model=MODELS[name])
    (tool,) = body(rendering)["tools"]
    found = tool["functionDeclarations"][0] if name == GEMINI else tool.get("function", tool)

    check_request(name, rendering.body_bytes)
    kind = {"type": "function"} if name == RESPONSES else {}
    assert found == {**kind, "name": "look", "description": "Look.", **declared}
    assert lost(rendering) == [(what, f"options[0]{path}") for what, path in losses]
    assert "anthropic-beta" not in rendering.headers


OF_IMAGES = "; its fields are detail, prompt_cache_breakpoint$"
WRONG_MEDIA: list[tuple[str, str, Any, str]] = [
    *((CLAUDE, "document", hints, r"\(document\).*; its fields are citations, context$") for hints in (
        {"citations": {"enabled": "yes"}}, {"citations": {"on": True}}, {"title": "t"})),
    (GEMINI, "video", {"video_metadata": {"fps": "1"}}, r"video_metadata\.fps"),
    (GEMINI, "video", {"videoMetadata": {}}, r"videoMetadata: .*; its fields are media_resolution, video_metadata$"),
    (GEMINI, "image", {"video_metadata": CLIP}, r"video_metadata: .*; its fields are media_resolution$"),
    (GEMINI, "image", {"media_resolution": "low"}, "media_resolution"),
    *((name, "image", hints, f"{next(iter(hints))}: .*{OF_IMAGES}") for name in OPENAI for hints in (
        {"detail": "ultra"}, {"detail": None}, {"detial": "low"}, {"prompt_cache_breakpoint": None})),
    (CHAT, "document", {"detail": "ultra"}, "detail: "),
]  # fmt: skip


@pytest.mark.parametrize(("name", "kind", "hints", "words"), WRONG_MEDIA)
def test_a_wrong_hint_of_a_medium_is_refused_by_its_place(name: str, kind: str, hints: Any, words: str) -> None:
    provider = name.partition(".")[0]
    with pytest.raises(
        SettingsInvalid, match=rf"^vendor\['{provider}'\] of parts\[0\] of message .*{words}"
    ) as refused:
        render(name, sabir.user(MAKE[kind]({provider: hints})), model=MODELS[name])

    assert "\n" not in str(refused.value)


WRONG_OPTIONS: list[tuple[str, Any, str]] = [
    *((CLAUDE, hints, f"its fields are {', '.join(sorted(OFFERED))}$") for hints in (
        {"strict": 1}, {"allowed_callers": "direct"}, {"cache_control": {}})),
    (GEMINI, {"behavior": 3}, "its fields are behavior, response, response_"),
    *((CHAT, hints, "are .*strict") for hints in ({"strict": "yes"}, {"strict": None}, {"defer_loading": "yes"})),
    *((RESPONSES, hints, "its fields are .*strict") for hints in (
        {"defer_loading": 1}, {"allowed_callers": ["everyone"]}, {"async": "later"})),
]  # fmt: skip


@pytest.mark.parametrize(("name", "hints", "words"), WRONG_OPTIONS)
def test_a_wrong_hint_of_an_option_is_refused_by_its_name(name: str, hints: Any, words: str) -> None:
    option = Option.from_schema("look", "", SCHEMA, vendor={name.partition(".")[0]: hints})
    with pytest.raises(SettingsInvalid, match=rf"options\[0\], 'look', .*{next(iter(hints))}.*{words}"):
        render(name, sabir.user("?"), options=[option], model=MODELS[name])


def some(**fields: Any) -> Any:
    return st.fixed_dictionaries({}, optional=fields)


yes = st.booleans()
DRAWN: dict[str, tuple[list[Any], Any, Any]] = {
    CLAUDE: (
        [st.tuples(st.just("document"), some(citations=some(enabled=yes), context=st.text()))],
        some(allowed_callers=st.lists(st.just("direct")), input_examples=st.just([{"city": "Oslo"}]),
             **dict.fromkeys(("defer_loading", "eager_input_streaming", "strict"), yes)),
        CLOSED,
    ),
    GEMINI: (
        [st.tuples(st.just("image"), some(media_resolution=st.just(LOW))),
         st.tuples(st.just("video"), some(media_resolution=st.just(LOW), video_metadata=st.just(CLIP)))],
        some(behavior=st.just("BLOCKING"), response_json_schema=st.just(SCHEMA)),
        SCHEMA,
    ),
    CHAT: (
        [st.tuples(st.just("image"), some(detail=st.just("low"), prompt_cache_breakpoint=st.just(BREAKPOINT))),
         st.tuples(st.just("document"), some(prompt_cache_breakpoint=st.just(BREAKPOINT)))],
        st.just({}) | st.just({"strict": False}),
        CLOSED,
    ),
    RESPONSES: (
        [st.tuples(st.just("image"), some(detail=st.sampled_from(["low", "high"])))],
        some(**{name: st.just(value) for name, value in LATER.items()}, strict=st.just(False)),
        CLOSED,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", DIALECTS)
@settings(max_examples=settings().max_examples // 4)
@given(data=st.data())
def test_hints_are_read_back_as_they_were_sent(name: str, data: st.DataObject) -> None:
    provider = name.partition(".")[0]
    media, offered, schema = DRAWN[name]
    drawn = data.draw(st.lists(st.one_of(media), min_size=1, max_size=3))
    parts = [MAKE[kind]({provider: hints}) for kind, hints in drawn]
    option = Option.from_schema("look", "Look.", schema, vendor={provider: data.draw(offered)})
    messages = [sabir.user("?", *parts)]
    if name in IN_RESULTS:
        pictures = [part for part in parts if part.modality != "video"]
        messages += [call(), result(parts=(TextPart(text="See:"), *pictures))]
    sent = render(name, *messages, options=[option], model=MODELS[name])
    check_request(name, sent.body_bytes)
    history = sabir.dialect(name).decode_history(sent.body_bytes)
    read = [part for message in history.messages for part in message.parts if isinstance(part, MediaPart)]
    said = [part for message in messages for part in message.parts if isinstance(part, MediaPart)]

    assert [part.vendor.get(provider, {}) for part in read] == [part.vendor.get(provider, {}) for part in said]
    assert [each.vendor.get(provider, {}) for each in history.options] == [option.vendor.get(provider, {})]
    assert history.losses == ()
    assert body(render(name, *history.messages, options=history.options, model=MODELS[name])) == body(sent)
