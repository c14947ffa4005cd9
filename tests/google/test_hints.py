"""Vendor hints on this wire: what of them a request says, and what of it is read back."""

import json
from collections.abc import Sequence
from typing import Any

import pytest
import sabir
from sabir.contract.dialect import Rendering
from sabir.options.option import Option
from sabir.rendering.renderer import Renderer
from sabir.vocabulary.messages import Message
from sabir.vocabulary.parts import MediaPart
from sabir.vocabulary.settings import Target
from sabir_google.dialect import GENERATE_CONTENT

from tests.laws.oracle import check_request

MODEL = "gemini-3-pro-preview"
LEVEL = {"level": "MEDIA_RESOLUTION_LOW"}
CLIP = {"fps": 0.5, "start_offset": "2s", "end_offset": "10s"}
EVERY = {"media_resolution": LEVEL, "video_metadata": CLIP}


def render(messages: Sequence[Message], options: Sequence[Option] = (), model: str = MODEL) -> Rendering:
    """What the types of the vendor's own SDK take."""
    target = Target(provider="google", dialect=GENERATE_CONTENT.name, model=model)
    rendering = Renderer(GENERATE_CONTENT, target).render(messages, options)
    check_request(GENERATE_CONTENT.name, rendering.body_bytes)
    return rendering


def losses(rendering: Rendering) -> list[tuple[str, str]]:
    return [(loss.kind, loss.path) for loss in rendering.losses]


def shown(*media: MediaPart, model: str = MODEL) -> tuple[list[Any], list[tuple[str, str]]]:
    """What each medium says beside its address or bytes, and the losses."""
    rendering = render([sabir.user("?", *media)], model=model)
    parts = json.loads(rendering.body_bytes)["contents"][0]["parts"][1:]
    beside = [{name: each for name, each in part.items() if name not in ("fileData", "inlineData")} for part in parts]
    return beside, losses(rendering)


@pytest.mark.parametrize(
    ("model", "takes"),
    [(MODEL, True), ("gemini-2.5-flash", False), ("gemini-2.5-computer-use-preview", True), ("", True)],
)
def test_models_before_gemini_3_take_no_resolution_of_one_medium(model: str, takes: bool) -> None:
    """They refuse the request, but for those that use a computer; clips they do take."""
    video = sabir.video("https://x.org/v.mp4", vendor={"*": EVERY})
    [found], lost = shown(video, model=model)

    assert ("mediaResolution" in found, "videoMetadata" in found) == (takes, True)
    assert lost == ([] if takes else [("dropped", "parts[1].vendor")])
