"""Vendor hints of media and options on both wires: what is sent, what is told, what a stored request gives back."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, get_type_hints

import pytest
import sabir
from hypothesis import given
from hypothesis import settings as drawing
from hypothesis import strategies as st
from openai.types.chat import ChatCompletionContentPartImageParam as ImageParam
from openai.types.chat import ChatCompletionContentPartInputAudioParam
from openai.types.chat.chat_completion_content_part_image_param import ImageURL
from openai.types.chat.chat_completion_content_part_param import File
from openai.types.responses import FunctionToolParam, ResponseInputFileParam, ResponseInputImageParam
from openai.types.shared_params import FunctionDefinition
from pydantic import BaseModel
from sabir.errors import SettingsInvalid
from sabir.options.option import Option
from sabir.vocabulary.messages import Message
from sabir.vocabulary.parts import MediaPart
from sabir_openai import settings
from sabir_openai.dialect import variant

from tests.laws.oracle import check_request

PIXEL = "data:image/png;base64,iVBORw0KGgo="
WAV = "data:audio/wav;base64,UklGRg=="
PDF = "data:application/pdf;base64,JVBERi0="
BREAKPOINT = {"mode": "explicit", "ttl": "12h"}
CITY = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}
LOOSE = {"type": "object", "properties": {"city": {"type": "string"}, "unit": {"type": "string"}}, "required": ["city"]}
FREE: dict[str, Any] = {"type": "object", "properties": {"city": {"type": "string", "minLength": 1}}}
DIALECTS = ["openai.chat", "openai.responses"]
CALL = sabir.MessageBuilder("llm").add_option_call("look", {})


def rendered(dialect: str, *messages: Message, options: Sequence[Option] = ()) -> tuple[Any, list[tuple[str, str]]]:
    """The body, which the SDK's types take, and the losses."""
    rendering = sabir.dialect(dialect).render(messages, model="unlisted", options=options)
    if rendering.target.provider == "openai":
        check_request(rendering.target.dialect, rendering.body_bytes)
    return json.loads(rendering.body_bytes), [(loss.kind, loss.path) for loss in rendering.losses]


def part_of(dialect: str, part: MediaPart) -> tuple[Any, list[tuple[str, str]]]:
    """A medium on the wire, beside a text, and the losses."""
    body, losses = rendered(dialect, sabir.user("Look:", part))
    return body["messages" if "chat" in dialect else "input"][0]["content"][1], losses


def tool_of(dialect: str, schema: Mapping[str, Any], vendor: Any) -> tuple[Any, list[tuple[str, str]]]:
    """What a declaration says beside its name and description, and the losses."""
    option = Option.from_schema("look", "", schema, vendor=vendor)
    body, losses = rendered(dialect, sabir.user("Hi."), options=[option])
    [tool] = body["tools"]
    declared = tool.get("function") or tool
    return {name: value for name, value in declared.items() if name not in ("type", "name")}, losses


@pytest.mark.parametrize(
    ("vendor", "detail", "lost"),
    [
        ({"openai": {"detail": "low"}}, "low", []),
        ({"openai": {"detail": "original"}, "other": {"x": 1}}, "original", []),
        ({"*": {"detail": "low"}}, "low", []),
        ({"*": {"detail": "low"}, "openai": {"detail": "high"}}, "high", []),
        ({"*": {"detail": "ultra"}}, None, [("dropped", "parts[1].vendor.*.detail")]),
        ({"other": {"detail": "low"}}, None, [("dropped", "parts[1].vendor")]),
        (None, None, []),
    ],
    ids=str,
)
def test_an_image_says_its_detail(vendor: Any, detail: str | None, lost: list[tuple[str, str]]) -> None:
    """Its own section, that for all, or none: chat then says nothing, the other wire "auto"."""
    image = sabir.image(PIXEL, vendor=vendor)
    said = {"detail": detail} if detail else {}

    assert part_of("openai.chat", image) == ({"type": "image_url", "image_url": {"url": PIXEL, **said}}, lost)
    assert part_of("openai.responses", image) == (
        {"type": "input_image", "detail": "auto", "image_url": PIXEL, **said},
        lost,
    )


def test_other_media_say_what_their_place_has() -> None:
    """Where the prompt cache ends, on every medium; a document's detail on one wire alone."""
    vendor = {"*": {"detail": "low", "prompt_cache_breakpoint": BREAKPOINT}}
    ends, lost = {"prompt_cache_breakpoint": BREAKPOINT}, [("dropped", "parts[1].vendor.*.detail")]
    file = {"filename": "document.pdf", "file_data": PDF}

    assert part_of("openai.chat", sabir.image(PIXEL, vendor=vendor)) == (
        {"type": "image_url", "image_url": {"url": PIXEL, "detail": "low"}, **ends},
        [],
    )
    assert part_of("openai.chat", sabir.audio(WAV, vendor=vendor)) == (
        {"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}, **ends},
        lost,
    )
    assert part_of("openai.chat", sabir.document(PDF, vendor=vendor)) == ({"type": "file", "file": file, **ends}, lost)
    assert part_of("openai.responses", sabir.document(PDF, vendor=vendor)) == (
        {"type": "input_file", **file, "detail": "low", **ends},
        [],
    )


def test_a_hint_of_the_providers_other_wire_is_lost_and_no_error() -> None:
    """A conversation goes on with either wire; a field that neither has is refused by both."""
    later, low = {"openai": {"defer_loading": True, "strict": False}}, {"openai": {"detail": "low"}}

    assert tool_of("openai.chat", CITY, later) == (
        {"parameters": CITY, "strict": False},
        [("dropped", "options[0].vendor.openai.defer_loading")],
    )
    assert part_of("openai.chat", sabir.document(PDF, vendor=low))[1] == [("dropped", "parts[1].vendor.openai.detail")]
    with pytest.raises(SettingsInvalid, match=r"detail: "):
        part_of("openai.chat", sabir.document(PDF, vendor={"openai": {"detail": "ultra"}}))


def test_a_result_says_the_hints_of_its_media() -> None:
    """Where results have media at all; elsewhere a placeholder stands for both."""
    image = sabir.image(PIXEL, vendor={"openai": {"detail": "low"}})
    history = sabir.user("Hi."), CALL, sabir.OptionResultBuilder.response_to(CALL).success(image)

    body, losses = rendered("openai.responses", *history)
    assert body["input"][-1]["output"] == [{"type": "input_image", "detail": "low", "image_url": PIXEL}]
    assert losses == []
    assert rendered("openai.chat", *history)[1] == [("downgraded", "parts[0]")]


def test_an_option_is_as_strict_as_it_says() -> None:
    """What a strict schema asks more is told; one that cannot be strict is sent as it is, for the vendor to judge."""
    strict, loose = {"openai": {"strict": True}}, {"openai": {"strict": False}}
    narrowed = {**LOOSE, "required": ["city", "unit"], "additionalProperties": False}
    told = [("rewritten", "options[0].parameters")]

    for dialect in DIALECTS:
        assert tool_of(dialect, CITY, loose) == ({"parameters": CITY, "strict": False}, [])
        assert tool_of(dialect, LOOSE, strict) == ({"parameters": narrowed, "strict": True}, told)
        assert tool_of(dialect, FREE, {"*": {"strict": True}}) == ({"parameters": FREE, "strict": True}, [])


def test_an_option_says_when_it_is_loaded_and_by_whom_it_is_called() -> None:
    """Functions of one wire have that; the other tells that it has none."""
    further = {"allowed_callers": ["programmatic"], "async": True, "defer_loading": True, "output_schema": FREE}
    lost = [("dropped", f"options[0].vendor.*.{name}") for name in further]

    assert tool_of("openai.responses", CITY, {"openai": further}) == (
        {"parameters": CITY, "strict": True, **further},
        [],
    )
    assert tool_of("openai.chat", CITY, {"*": further}) == ({"parameters": CITY, "strict": True}, lost)


def test_an_endpoint_that_knows_no_strict_takes_none() -> None:
    """Its tables say so; ids of one length hold there too."""
    option = Option.from_schema("look", "", CITY, vendor={"*": {"strict": True}})
    image = sabir.image(PIXEL, vendor={"deepseek": {"detail": "low"}})
    rendering = sabir.adapter("deepseek:unlisted").render(sabir.user("Look:", image), options=[option])
    [told] = rendering.losses

    assert rendering.body["tools"][0]["function"] == {"name": "look", "parameters": CITY}
    assert (told.kind, told.path) == ("dropped", "options[0].vendor.*.strict")
    assert rendering.body["messages"][0]["content"][1]["image_url"] == {"url": PIXEL, "detail": "low"}
    assert variant("chat", 9).tables.variants["no_strict"].call_ids.longest == 9


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(
    ("vendor", "named"),
    [
        ({"detail": "ultra"}, "detail: "),
        ({"detail": None}, "detail: "),
        ({"detial": "low"}, "detial: "),
        ({"prompt_cache_breakpoint": None}, "prompt_cache_breakpoint: "),
    ],
    ids=str,
)
def test_a_wrong_hint_of_an_image_is_refused_in_one_line(dialect: str, vendor: Any, named: str) -> None:
    """It names the field, and those that there are."""
    with pytest.raises(SettingsInvalid, match=named + r".*; it has detail, prompt_cache_breakpoint$"):
        part_of(dialect, sabir.image(PIXEL, vendor={"openai": vendor}))


@pytest.mark.parametrize(
    ("dialect", "vendor"),
    [
        ("openai.chat", {"strict": "yes"}),
        ("openai.chat", {"strict": None}),
        ("openai.chat", {"defer_loading": "yes"}),
        ("openai.responses", {"defer_loading": 1}),
        ("openai.responses", {"allowed_callers": ["everyone"]}),
        ("openai.responses", {"async": "later"}),
    ],
    ids=str,
)
def test_a_wrong_hint_of_an_option_is_refused_in_one_line(dialect: str, vendor: Any) -> None:
    """It names the option, the field, and those that there are."""
    with pytest.raises(SettingsInvalid, match=rf"options\[0\], 'look', .*{next(iter(vendor))}.*; it has .*strict"):
        tool_of(dialect, CITY, {"openai": vendor})


@pytest.mark.parametrize(
    ("model", "typed", "ours"),
    [
        (settings.ImageHints, get_type_hints(ImageURL) | get_type_hints(ImageParam), {"url", "image_url"}),
        (settings.MediaHints, get_type_hints(ChatCompletionContentPartInputAudioParam), {"input_audio"}),
        (settings.ChatFileHints, get_type_hints(File), {"file"}),
        (settings.ImageHints, get_type_hints(ResponseInputImageParam), {"file_id", "image_url"}),
        (settings.FileHints, get_type_hints(ResponseInputFileParam), {"file_data", "file_id", "file_url", "filename"}),
        (settings.ChatOptionHints, get_type_hints(FunctionDefinition), {"name", "description", "parameters"}),
        (settings.ResponsesOptionHints, get_type_hints(FunctionToolParam), {"name", "description", "parameters"}),
    ],
)
def test_hints_are_the_fields_of_the_sdk(model: type[BaseModel], typed: dict[str, Any], ours: set[str]) -> None:
    """All that a medium or an option does not say itself: a field that the SDK adds shows up here."""
    taken = {name for name, field in model.model_fields.items() if not field.exclude}

    assert taken == typed.keys() - ours - {"type"}


breakpoints = st.fixed_dictionaries({}, optional={"prompt_cache_breakpoint": st.just(BREAKPOINT)})
details = st.fixed_dictionaries({}, optional={"detail": st.sampled_from(["low", "high"])})
media = st.one_of(
    st.builds(lambda *said: ("image", PIXEL, {**said[0], **said[1]}), breakpoints, details),
    st.builds(lambda said: ("document", PDF, said), breakpoints),
)
deferred = st.fixed_dictionaries(
    {},
    optional={
        "allowed_callers": st.lists(st.sampled_from(["direct", "programmatic"]), max_size=2),
        "async": st.just(True),
        "defer_loading": st.just(True),
        "output_schema": st.just(CITY),
    },
)
strictness = st.sampled_from([(CITY, {}), (CITY, {"strict": False}), (FREE, {"strict": True}), (FREE, {})])


@pytest.mark.parametrize("dialect", DIALECTS)
@drawing(max_examples=drawing().max_examples // 4)
@given(shown=st.lists(media, min_size=1, max_size=3), schema=strictness, further=deferred)
def test_what_was_rendered_reads_back_with_the_same_hints(
    dialect: str, shown: list[Any], schema: Any, further: dict[str, Any]
) -> None:
    """And renders to the same bytes again, which the SDK's types take."""
    parts = [
        MediaPart(modality=kind, url=url, name="a.pdf", vendor={"openai": said} if said else None)
        for kind, url, said in shown
    ]
    said = {**schema[1], **(further if dialect == "openai.responses" else {})}
    option = Option.from_schema("look", "", schema[0], vendor={"openai": said} if said else None)

    body, losses = rendered(dialect, sabir.user(*parts), options=[option])
    history = sabir.dialect(dialect).decode_history(body)

    assert (losses, history.losses) == ([], ())
    assert [part.vendor for part in history.messages[0].parts if isinstance(part, MediaPart)] == [
        part.vendor for part in parts
    ]
    assert [each.vendor for each in history.options] == [option.vendor]
    assert rendered(dialect, *history.messages, options=history.options)[0] == body


def test_a_stored_field_that_is_no_hint_stays_a_loss() -> None:
    """A value that the wire does not have, or a field in the other's place; what it shows is kept."""
    content = [
        {"type": "image_url", "image_url": {"url": PIXEL, "detail": "ultra"}},
        {"type": "image_url", "image_url": {"url": PIXEL}, "detail": "low"},
        {"type": "image_url", "image_url": {"url": PIXEL, "detail": "high"}, "detail": "low"},
    ]
    stored = {"model": "unlisted", "messages": [{"role": "user", "content": content}]}
    history = sabir.dialect("openai.chat").decode_history(stored)
    images = [part for part in history.messages[0].parts if isinstance(part, MediaPart)]

    assert [image.vendor for image in images] == [{}, {}, {"openai": {"detail": "high"}}]
    assert [loss.path for loss in history.losses] == [
        "messages[0].content[0].image_url.detail",
        "messages[0].content[1].detail",
        "messages[0].content[2].detail",
    ]


def test_a_function_that_a_gateway_loads_later_stays_its_own() -> None:
    """Where its dialect has no such hint, no model may choose it freely."""
    later = {"type": "function", "function": {"name": "later", "parameters": CITY, "defer_loading": True}}
    stored = {"model": "unlisted", "messages": [{"role": "user", "content": "Hi."}], "tools": [later]}
    history = sabir.dialect("openai.chat").decode_history(stored)

    assert history.options == ()
    assert history.settings.vendor == {"openai": {"tools": [later]}}
