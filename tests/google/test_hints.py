"""Vendor hints on this wire: what of them a request says, and what of it is read back."""

import json
from collections.abc import Sequence
from typing import Any

import pytest
import sabir
from sabir.contract.protocols import Rendering
from sabir.errors import SettingsInvalid
from sabir.options.option import Option
from sabir.rendering.renderer import Renderer
from sabir.vocabulary.messages import Message
from sabir.vocabulary.parts import MediaPart
from sabir.vocabulary.target import Target
from sabir_google.dialect import GENERATE_CONTENT

from tests.laws.oracle import check_request

MODEL = "gemini-3-pro-preview"
PIXEL = "data:image/png;base64,iVBORw0KGgo="
LEVEL = {"level": "MEDIA_RESOLUTION_LOW"}
CLIP = {"fps": 0.5, "start_offset": "2s", "end_offset": "10s"}
SCHEMA = {"type": "object", "properties": {"foo_bar": {"type": "string"}}}
WEATHER = {"behavior": "BLOCKING", "response_json_schema": SCHEMA}
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


def answered(medium: MediaPart) -> list[Message]:
    call = {"kind": "option_call", "invocation_id": "c", "option_name": "look"}
    said = {"kind": "option_result", "invocation_id": "c", "option_name": "look", "parts": (medium,)}
    return [sabir.user("?"), Message(policy="llm", payload=call), Message(policy="look", payload=said)]


def test_a_request_with_hints_to_the_byte() -> None:
    """A golden: hints stand beside what they are for, as the wire spells them; schemas stay as they are."""
    video = sabir.video("https://x.org/v.mp4", vendor={"google": EVERY, "other": {"a": 1}})
    option = Option.from_schema("f", "F.", {"type": "object", "properties": {}}, vendor={"google": WEATHER})
    rendering = render([sabir.user(video)], [option])

    assert rendering.body_bytes.decode() == (
        '{"tools":[{"functionDeclarations":[{"name":"f","description":"F.",'
        '"parametersJsonSchema":{"type":"object","properties":{}},"behavior":"BLOCKING",'
        '"responseJsonSchema":{"type":"object","properties":{"foo_bar":{"type":"string"}}}}]}],"contents":['
        '{"role":"user","parts":[{"fileData":{"mimeType":"video/mp4","fileUri":"https://x.org/v.mp4"},'
        '"mediaResolution":{"level":"MEDIA_RESOLUTION_LOW"},'
        '"videoMetadata":{"fps":0.5,"startOffset":"2s","endOffset":"10s"}}]}]}'
    )
    assert rendering.losses == ()


def test_hints_for_all_are_taken_where_the_modality_has_them() -> None:
    """Pictures, pages and videos are read at a resolution, videos in clips; sounds take none of it."""
    sections: Any = {"*": EVERY | {"detail": "low"}}
    resolution, clip = (
        {"mediaResolution": LEVEL},
        {"videoMetadata": {"fps": 0.5, "startOffset": "2s", "endOffset": "10s"}},
    )
    media = (
        sabir.image(PIXEL, vendor=sections),
        sabir.document("https://x.org/a.pdf", vendor=sections),
        sabir.video("https://x.org/v.mp4", vendor=sections),
        sabir.audio("https://x.org/s.mp3", vendor=sections),
    )
    found, lost = shown(*media)

    assert found == [resolution, resolution, resolution | clip, {}]
    taken = [{"media_resolution"}, {"media_resolution"}, {"media_resolution", "video_metadata"}, set()]
    assert set(lost) == {
        ("dropped", f"parts[{index}].vendor.*.{name}")
        for index, names in enumerate(taken, 1)
        for name in {"media_resolution", "video_metadata", "detail"} - names
    }
    option = Option.from_schema("f", "", {}, vendor={"*": {"behavior": "BLOCKING", "defer_loading": True}})
    assert losses(render([sabir.user("?")], [option])) == [("dropped", "options[0].vendor.*.defer_loading")]


def test_hints_for_others_and_of_sounds_are_losses() -> None:
    """They are for another provider; or no sound has any."""
    sound = sabir.audio("https://x.org/s.mp3", vendor={"google": EVERY})
    image = sabir.image(PIXEL, vendor={"other": {"detail": "low"}})

    assert shown(sound, image) == ([{}, {}], [("dropped", "parts[1].vendor.google"), ("dropped", "parts[2].vendor")])


@pytest.mark.parametrize(
    ("make", "hints", "words"),
    [
        (sabir.video, {"video_metadata": {"fps": "1"}}, r"video_metadata\.fps"),
        (sabir.video, {"videoMetadata": {}}, r"videoMetadata: .*; it has media_resolution, video_metadata$"),
        (sabir.image, {"video_metadata": CLIP}, r"video_metadata: .*; it has media_resolution$"),
        (sabir.image, {"media_resolution": "low"}, "media_resolution"),
    ],
)
def test_a_wrong_hint_is_refused_by_name(make: Any, hints: Any, words: str) -> None:
    """Strict, as settings are."""
    with pytest.raises(SettingsInvalid, match=rf"vendor\['google'\] of parts\[0\] .*{words}"):
        render([sabir.user(make("https://x.org/a", vendor={"google": hints}))])


def test_a_wrong_hint_of_an_option_is_refused_by_name() -> None:
    """It names the option."""
    option = Option.from_schema("f", "", {}, vendor={"google": {"behavior": 3}})

    with pytest.raises(SettingsInvalid, match=r"options\[0\], 'f', .*behavior: .*it has behavior, response, response_"):
        render([sabir.user("?")], [option])


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


def test_a_results_media_have_hints_too() -> None:
    """The wire has the same place for them there."""
    rendering = render(answered(sabir.image(PIXEL, vendor={"google": {"media_resolution": LEVEL}})))
    [part] = json.loads(rendering.body_bytes)["contents"][2]["parts"][0]["functionResponse"]["parts"]

    assert part["mediaResolution"] == LEVEL


def test_what_was_rendered_is_read_with_the_same_hints() -> None:
    """Media of both sides, and options."""
    vendor: Any = {"google": {"media_resolution": LEVEL}}
    history = [
        *answered(sabir.image(PIXEL, vendor=vendor)),
        sabir.user(sabir.video("https://x.org/v.mp4", vendor={"google": EVERY})),
    ]
    option = Option.from_schema("look", "Look.", {"type": "object", "properties": {}}, vendor={"google": WEATHER})
    read = sabir.dialect(GENERATE_CONTENT.name).decode_history(render(history, [option]).body_bytes)

    assert read.options == (option,)
    media = [part for message in read.messages for part in message.parts if isinstance(part, MediaPart)]
    assert [part.vendor for part in media] == [vendor, {"google": EVERY}]
    assert read.losses == ()
