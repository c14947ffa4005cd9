"""Vendor hints of media and options on both wires: what is sent, what is told, what a stored request gives back."""

from typing import Any, get_type_hints

import pytest
import sabir
from openai.types.chat import ChatCompletionContentPartImageParam as ImageParam
from openai.types.chat import ChatCompletionContentPartInputAudioParam
from openai.types.chat.chat_completion_content_part_image_param import ImageURL
from openai.types.chat.chat_completion_content_part_param import File
from openai.types.responses import FunctionToolParam, ResponseInputFileParam, ResponseInputImageParam
from openai.types.shared_params import FunctionDefinition
from pydantic import BaseModel
from sabir.options.option import Option
from sabir.vocabulary.parts import MediaPart
from sabir_openai import settings
from sabir_openai.dialect import variant

PIXEL = "data:image/png;base64,iVBORw0KGgo="
CITY = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}


def test_an_endpoint_that_knows_no_strict_takes_none() -> None:
    """Its tables say so; ids of one length hold there too."""
    option = Option.from_schema("look", "", CITY, vendor={"*": {"strict": True}})
    image = sabir.image(PIXEL, vendor={"deepseek": {"detail": "low"}})
    rendering = sabir.adapter("deepseek:unlisted").render(sabir.user("Look:", image), options=[option])
    [told] = rendering.losses

    assert rendering.body["tools"][0]["function"] == {"name": "look", "parameters": CITY}
    assert (told.kind, told.path) == ("dropped", "options[0].vendor.*.strict")
    assert rendering.body["messages"][0]["content"][1]["image_url"] == {"url": PIXEL, "detail": "low"}
    assert variant("chat", 9).tables.variants["no_strict"].calls.ids.longest == 9


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
