"""Media within the value of an option, files by their type, and names of documents, on each wire."""

import base64
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
import sabir
from pydantic import BaseModel
from sabir.vocabulary.parts import MediaPart

from tests.providers.wires import DIALECTS, body, items, render

CLAUDE, GEMINI, CHAT, RESPONSES = DIALECTS
BYTES = b"\x89PNG\r\n\x1a\n" + bytes(range(90))
PNG = sabir.image(BYTES)
DATA = base64.b64encode(BYTES).decode()


@dataclass
class Shot:
    shot: MediaPart


class Scan(BaseModel):
    shot: MediaPart


SHAPES: dict[str, Callable[[MediaPart], Any]] = {
    "dict": lambda medium: {"caption": "a", "shot": medium},
    "lists": lambda medium: [["a", medium]],
    "dataclass": Shot,
    "model": lambda medium: Scan(shot=medium),
    "tuple": lambda medium: {"t": ("a", medium)},
    "parts": lambda medium: ["a", medium],
}


def strings(value: Any, key: str = "") -> Iterator[tuple[str, str]]:
    """Every string of a JSON value, with its key."""
    if isinstance(value, dict):
        for name, item in value.items():
            yield from strings(item, name)
    elif isinstance(value, list):
        for item in value:
            yield from strings(item, key)
    elif isinstance(value, str):
        yield key, value


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", DIALECTS)
def test_a_medium_that_an_option_returns_is_sent_as_one_or_reported(name: str, shape: str) -> None:
    """No text of the request has its bytes, in whatever the option put it."""
    taken = sabir.Option.from_function(lambda: SHAPES[shape](PNG), name="shoot")
    asked = sabir.MessageBuilder(policy="llm").add_option_call("shoot", {})

    rendering = render(name, sabir.user("Go."), asked, taken.answer_sync(asked))

    carriers = [(key, value) for key, value in strings(body(rendering)) if DATA in value]
    assert all(key in ("data", "image_url", "url") and value.endswith(DATA) for key, value in carriers)
    assert len(carriers) == 1 or {loss.kind for loss in rendering.losses} & {"dropped", "downgraded"}


OFFICE, OPEN = "application/vnd.openxmlformats-officedocument.", "application/vnd.oasis.opendocument."
NAMES = {
    "application/pdf": "document.pdf", "text/plain": "document.txt", "text/csv": "document.csv",
    "text/markdown": "document.md", "application/json": "document.json", "text/x-python": "document.py",
    "application/rtf": "document.rtf", "application/xml": "document.xml", "application/msword": "document.doc",
    "application/vnd.ms-excel": "document.xls", "application/vnd.ms-powerpoint": "document.ppt",
    f"{OFFICE}wordprocessingml.document": "document.docx", f"{OFFICE}spreadsheetml.sheet": "document.xlsx",
    f"{OFFICE}presentationml.presentation": "document.pptx", f"{OPEN}text": "document.odt",
    "text/x-never-seen": "document",
}  # fmt: skip


@pytest.mark.parametrize("mime", NAMES)
@pytest.mark.parametrize("name", DIALECTS)
def test_a_document_without_a_name_is_named_after_its_type(name: str, mime: str) -> None:
    """Only OpenAI's wires want a name; where a wire does not take the type, no name is sent."""
    document = sabir.document(b"a,b", mime=mime)
    rendering = render(name, sabir.user("See", document))

    names = {value for key, value in strings(body(rendering)) if key == "filename"}
    is_named = name == RESPONSES or (name == CHAT and mime == "application/pdf")
    assert names == ({NAMES[mime]} if is_named else set())
    own = items(name, sabir.user("See", document.model_copy(update={"name": "of mine"})))
    assert ("of mine" in json.dumps(own)) >= is_named


PHOTO = b"\x00\x00\x00\x18ftypheic\x00\x00\x00\x00mif1heic" + bytes(40)


@pytest.mark.parametrize(("make", "brand", "mime", "takers"), [
    (sabir.image, b"heic", "image/heic", {GEMINI}),
    (sabir.image, b"mif1", "image/heif", {GEMINI}),
    (sabir.image, b"avif", "image/avif", set()),
    (sabir.audio, b"M4B ", "audio/mp4", {GEMINI}),
    (sabir.video, b"qt  ", "video/quicktime", {GEMINI}),
])  # fmt: skip
@pytest.mark.parametrize("name", DIALECTS)
def test_a_file_of_a_brand_goes_to_the_wires_that_read_its_type(
    name: str, make: Callable[[bytes], MediaPart], brand: bytes, mime: str, takers: set[str]
) -> None:
    rendering = render(name, sabir.user("See", make(PHOTO.replace(b"ftypheic", b"ftyp" + brand))))

    assert (mime in json.dumps(body(rendering))) == (name in takers)
    assert bool(rendering.losses) == (name not in takers)
