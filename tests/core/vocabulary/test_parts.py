"""Parts: text, media, reasoning, refusal, opaque; strict when made, tolerant when loaded."""

from typing import Any, get_args

import pytest
from pydantic import TypeAdapter, ValidationError
from sabir.base.models import load_stored
from sabir.vocabulary.media import Modality
from sabir.vocabulary.parts import MediaPart, OpaquePart, Part, ReasoningPart, TextPart, UnknownPart

from tests.core.samples import EVERY_PART

PART: TypeAdapter[Any] = TypeAdapter(Part)


def test_parts_have_their_fields_and_no_others() -> None:
    """PJ-14 … PJ-17: kinds default, texts and URLs are required, no path and no bytes exist, MIME decides nothing."""
    for modality in get_args(Modality):
        part = MediaPart(modality=modality, url="https://example.org/x.png", mime="whatever you say")
        assert (part.kind, part.modality, part.mime) == ("media", modality, "whatever you say")
        assert (part.prompt_hint, part.id, part.name) == (None, None, None)
    assert {"path", "bytes", "data"}.isdisjoint(MediaPart.model_fields)
    for fields in ({"modality": "image"}, {"url": "https://a"}, {"modality": "smell", "url": "https://a"}):
        with pytest.raises(ValidationError):
            MediaPart(**fields)
    assert (TextPart(text="a").kind, TextPart(text="").text) == ("text", "")
    for fields in ({}, {"text": 3}):
        with pytest.raises(ValidationError, match=r"text\n"):
            TextPart(**fields)


@pytest.mark.parametrize(
    "url",
    [
        "https://Example.ORG:443/ä%20b?q=1#f", "http://localhost:8080/a", "HTTPS://example.org/a",
        "DATA:image/png;base64,iVBORw0KGgo=", "data:image/png;base64,iVBOR%2B%3D",
        "data:image/png;base64,iVBORw0KGgo=", "data:audio/wav;codec=1;base64,AA==",
        "data:text/plain,hello%20world", "data:,hello", "provider-file:acme/file-abc_123",
        "data:application/vnd.openxmlformats-officedocument.wordprocessingml.document;base64,AA==",
    ],
)  # fmt: skip
def test_a_url_keeps_the_string_given(url: str) -> None:
    """D-02: no normalising, no parsing of payloads."""
    assert MediaPart(modality="document", url=url).url == url


@pytest.mark.parametrize(
    "url",
    [
        "", "picture.png", "/etc/passwd", "file:///etc/passwd", "javascript:alert(1)", "ftp://example.org/a",
        "https://", "https:///path", "https://example.org/a b", "https://example.org/a\0b",
        "https://example.org/a%00b", "https://example.org/a\nb", "https://[::1",
        "data:text/html,<script>", "data:image/svg+xml;base64,AA==", "data:application/javascript,alert(1)",
        "data:TEXT/HTML;base64,AA==", "data:image/png;base64", "data:image/png;base64,AA==<script>",
        "data:image/png;base64,A A=", "data:image/png;base64,AA%0", "data:text/plain,a\0b",
        "provider-file:acme", "provider-file:acme/a b", "provider-file:/x",
    ],
)  # fmt: skip
def test_a_url_that_no_message_may_carry_is_refused(url: str) -> None:
    """UP-22, D-02: schemes, hosts, control characters, active content."""
    with pytest.raises(ValidationError, match="url\n"):
        MediaPart(modality="image", url=url)


@pytest.mark.parametrize("part", EVERY_PART, ids=lambda part: part.kind)
def test_a_part_survives_json_with_its_own_type_and_has_no_other_fields(part: Any) -> None:
    """PJ-11: the error names unknown fields and lists those there are."""
    again = PART.validate_json(PART.dump_json(part))

    assert (again, type(again)) == (part, type(part))
    with pytest.raises(ValidationError, match="has no field 'zzz'; its fields are "):
        type(part)(**part.model_dump(), zzz=1)


def test_what_is_a_makers_own_is_any_json_and_keeps_its_order() -> None:
    """UP-12: signed data goes back byte for byte; a pair is named by its id and its side, or not at all."""
    part = ReasoningPart(text="", state={"z": 1, "a": [{"y": 1, "b": 2}]})
    opaque = OpaquePart(dialect="acme.wire", block={"type": "search", "a": None})

    assert part.state_json == '{"z":1,"a":[{"y":1,"b":2}]}'
    assert (list(part.state), TextPart(text="a").state) == (["z", "a"], None)
    assert (opaque.block, opaque.block_json) == ({"type": "search", "a": None}, '{"type":"search","a":null}')
    with pytest.raises(ValidationError, match="numbers must be finite"):
        OpaquePart(dialect="acme.wire", block=float("nan"))
    for half in ({"pair_id": "1"}, {"pair": "opens"}):
        with pytest.raises(ValidationError, match="both `pair_id` and `pair`, or neither"):
            OpaquePart(dialect="acme.wire", block={}, **half)


def test_an_unknown_kind_is_refused_when_made_and_kept_when_loaded() -> None:
    """A newer writer's part survives a load and a save, key for key; one without a kind is none (PJ-11)."""
    document = {"kind": "hologram", "z": None, "a": [1, {"y": 1, "b": 2}]}
    with pytest.raises(ValidationError, match="kind 'hologram' is unknown; known kinds are text, media"):
        PART.validate_python(document)
    loaded = load_stored(PART.validate_python, document)

    assert isinstance(loaded, UnknownPart)
    assert PART.dump_python(loaded) == document
    assert PART.dump_json(loaded) == b'{"kind":"hologram","z":null,"a":[1,{"y":1,"b":2}]}'
    for other in ({}, {"text": "a"}, {"kind": 3}, {"kind": None}, "text", None):
        with pytest.raises(ValidationError):
            load_stored(PART.validate_python, other)
