"""Whatever a server answers is in the result: as text, as media, as JSON, or as text that says what was there."""

import base64
import json
from typing import Any

import pytest
import sabir
from mcp.types import (
    Annotations,
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    TextResourceContents,
)
from sabir import MediaPart, OptionFailed, TextPart
from sabir_mcp.contents import option_value

PNG = b"\x89PNG\r\n\x1a\n a small picture"
DATA = base64.b64encode(PNG).decode()


def answer(*blocks: Any, **more: Any) -> CallToolResult:
    return CallToolResult(content=list(blocks), **more)


def text(said: str) -> TextContent:
    return TextContent(text=said)


def resource(**contents: Any) -> EmbeddedResource:
    kind = TextResourceContents if "text" in contents else BlobResourceContents
    return EmbeddedResource(resource=kind(**contents))


def test_texts_are_text_parts_in_their_order() -> None:
    """Annotations are notes to programs and change nothing."""
    noted = TextContent(text="two", annotations=Annotations(audience=["user"], priority=0.1))

    assert option_value(answer(text("one"), noted)) == [TextPart(text="one"), TextPart(text="two")]


def test_nothing_is_null() -> None:
    """An option that has nothing to say has answered all the same."""
    assert option_value(answer()) is None


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        (ImageContent(data=DATA, mime_type="image/png"), ("image", "image/png", None)),
        (ImageContent(data=DATA, mime_type="IMAGE/PNG; charset=x"), ("image", "image/png", None)),
        (ImageContent(data=f"{DATA[:20]}\r\n{DATA[20:]}\n", mime_type="image/png"), ("image", "image/png", None)),
        (AudioContent(data=DATA, mime_type="audio/ogg"), ("audio", "audio/ogg", None)),
        (resource(uri="x://y/sky.png", mime_type="image/png", blob=DATA), ("image", "image/png", "sky.png")),
        (resource(uri="x://y/a%20b.mp4", mime_type="video/mp4", blob=DATA), ("video", "video/mp4", "a b.mp4")),
        (resource(uri="x://y/", mime_type="application/pdf", blob=DATA), ("document", "application/pdf", None)),
        (resource(uri="x://y/z", blob=DATA), ("document", "image/png", "z")),
    ],
)
def test_media_are_data_urls_of_the_same_bytes(block: Any, expected: tuple[str, str, str | None]) -> None:
    *_, part = option_value(answer(block))  # type: ignore[misc]

    assert isinstance(part, MediaPart)
    modality, mime, name = expected
    assert (part.modality, part.name) == (modality, name)
    assert part.url == f"data:{mime};base64,{DATA}"


@pytest.mark.parametrize(
    ("block", "said"),
    [
        (
            ImageContent(data=DATA, mime_type="image/svg+xml"),
            "[image of type image/svg+xml, 32 characters, removed: it is of type image/svg+xml, which a media part "
            "cannot contain; convert it first]",
        ),
        (
            AudioContent(data="no base64!", mime_type="audio/wav"),
            "[audio of type audio/wav, 10 characters, removed: "
            "it contains invalid base64: Only base64 data is allowed]",
        ),
        (
            ImageContent(data="abcde", mime_type="image/png"),
            "[image of type image/png, 5 characters, removed: it contains invalid base64: Invalid base64-encoded "
            "string: number of data characters (5) cannot be 1 more than a multiple of 4]",
        ),
    ],
)
def test_what_no_message_may_carry_is_said_instead(block: Any, said: str) -> None:
    """A vendor that got it would refuse the whole conversation, now and ever after."""
    assert option_value(answer(text("Look:"), block)) == [TextPart(text="Look:"), TextPart(text=said)]


def test_a_resource_is_its_address_and_its_contents() -> None:
    """The address is what the server knows it by."""
    notes = resource(uri="notes://rome", mime_type="text/plain", text="Wet.\nCold.")
    picture = resource(uri="x://y/sky.png", mime_type="image/png", blob=DATA)

    found = option_value(answer(notes, picture))

    assert isinstance(found, list)
    assert found[:2] == [TextPart(text="[notes://rome]\nWet.\nCold."), TextPart(text="[x://y/sky.png]")]
    assert isinstance(found[2], MediaPart)


def test_a_link_says_what_it_leads_to() -> None:
    full = ResourceLink(
        uri="file:///june.pdf",
        name="june.pdf",
        title="Report of June",
        description="Rain by day.",
        mime_type="application/pdf",
        size=0,
    )
    bare = ResourceLink(uri="x:y", name="y")

    assert option_value(answer(full, bare)) == [
        TextPart(text="[resource file:///june.pdf: Report of June, application/pdf, 0 bytes, Rain by day.]"),
        TextPart(text="[resource x:y: y]"),
    ]


def test_content_of_a_later_kind_is_shown_as_it_came() -> None:
    """An SDK that knows more than this package loses nothing by it."""

    class Hologram(TextContent):
        type: str = "hologram"  # type: ignore[assignment]

    class Bare:
        def __repr__(self) -> str:
            return "<something else>"

    later = answer()
    later.content = [Hologram(text="…"), Bare()]  # type: ignore[list-item]

    assert option_value(later) == [
        TextPart(text='[unknown kind of content: {"type": "hologram", "text": "…"}]'),
        TextPart(text='[unknown kind of content: "<something else>"]'),
    ]


@pytest.mark.parametrize(
    ("value", "texts"),
    [
        ({"celsius": 18}, []),
        ({"celsius": 18}, ['{\n  "celsius": 18\n}']),
        ({"b": 1, "a": [True]}, ['{"a":[true],"b":1}']),
        ({"result": 3}, ["3"]),
        ({"result": "rain"}, ["rain"]),
        ({"result": None}, ["null"]),
        ({"result": ["rain", {"a": 1}]}, ["rain", '{"a": 1}']),
        ({"result": ["rain"]}, ["rain"]),
        ([1, 2], ["1", "2"]),
        ("rain", ["rain"]),
        (18.5, ["18.5"]),
    ],
)
def test_a_structured_value_that_texts_repeat_is_that_value(value: Any, texts: list[str]) -> None:
    """Servers say it twice for clients that know no structured values; a model need not read it twice."""
    assert option_value(answer(*map(text, texts), structured_content=value)) == value


@pytest.mark.parametrize(
    ("value", "texts"),
    [
        ({"celsius": 18}, ["It is mild."]),
        ({"celsius": 1}, ['{"celsius": true}']),
        ({"result": ["rain"]}, ["rain", "wind"]),
        ({"result": ["rain", "wind"]}, ["rain", "sun"]),
        ({"result": 3, "more": 1}, ["3"]),
    ],
)
def test_a_structured_value_stands_beside_texts_that_say_something_else(value: Any, texts: list[str]) -> None:
    found = option_value(answer(*map(text, texts), structured_content=value))

    assert isinstance(found, list)
    assert [part.text for part in found[:-1] if isinstance(part, TextPart)] == texts
    assert isinstance(found[-1], TextPart)
    assert sabir.base.values.encode_json(value) == sabir.base.values.encode_json(json.loads(found[-1].text))


PICTURE = ImageContent(data=DATA, mime_type="image/png")
LINK = ResourceLink(uri="x:y", name="y")


@pytest.mark.parametrize(
    ("value", "blocks", "texts"),
    [
        ({"count": 1}, [text('{"count": 1}'), PICTURE], ['{"count": 1}']),
        ({"count": 1}, [PICTURE, text('{"count":1}')], ['{"count":1}']),
        ({"result": ["rain", "sun"]}, [text("rain"), PICTURE, text("sun")], ["rain", "sun"]),
        ({"count": 1}, [text('{"count": 1}'), AudioContent(data=DATA, mime_type="audio/ogg")], ['{"count": 1}']),
        ({"count": 1}, [text('{"count": 1}'), LINK], ['{"count": 1}', "[resource x:y: y]"]),
        ({"count": 1}, [resource(uri="x:y", text="z"), text('{"count": 1}')], ["[x:y]\nz", '{"count": 1}']),
        ({"count": 1}, [text("One."), text('{"count": 1}')], ["One.", '{"count": 1}']),
        ({"count": 1}, [text("One."), PICTURE], ["One.", '{"count": 1}']),
        ({"count": 1}, [LINK], ["[resource x:y: y]", '{"count": 1}']),
    ],
)
def test_a_structured_value_stands_once_beside_other_contents(value: Any, blocks: list[Any], texts: list[str]) -> None:
    """A text that has the value is not followed by its JSON, whatever stands next to that text."""
    parts = option_value(answer(*blocks, structured_content=value))

    assert isinstance(parts, list)
    assert [part.text for part in parts if isinstance(part, TextPart)] == texts
    assert sum(isinstance(part, MediaPart) for part in parts) == sum(hasattr(block, "data") for block in blocks)


def test_a_structured_value_stands_beside_media() -> None:
    """A picture is more than what is said of it."""
    found = option_value(answer(ImageContent(data=DATA, mime_type="image/png"), structured_content={"width": 8}))

    assert isinstance(found, list)
    assert [part.kind for part in found] == ["media", "text"]
    assert found[1] == TextPart(text='{"width": 8}')


@pytest.mark.parametrize(
    ("result", "said"),
    [
        (answer(text("closed"), text("till Monday"), is_error=True), "closed till Monday"),
        (answer(is_error=True, structured_content={"code": 7}), '{"code": 7}'),
        (answer(is_error=True), "the option reported a failure without a reason"),
        (answer(text(" "), is_error=True), "the option reported a failure without a reason"),
        (
            answer(text("see"), ImageContent(data=DATA, mime_type="image/png"), is_error=True),
            "see [image of type image/png, removed: an error can contain only text]",
        ),
    ],
)
def test_a_failure_is_raised_in_the_servers_words(result: CallToolResult, said: str) -> None:
    """Core makes an error result of it."""
    with pytest.raises(OptionFailed) as caught:
        option_value(result)

    assert (caught.value.error_type, str(caught.value)) == ("option_failed", said)
