"""The JSON documents in a body: the whole of it, one an event, or one a line; and the texts in them.

{"a": 1}                    one document
data: {"a": 1}\\n\\n          one an event (server-sent events), however many `data:` lines it has
{"a": 1}\\n{"a": 2}\\n        one a line
\\x00\\x08{"a": 1}\\x00\\xff     one a frame of bytes, read as letters

`replace` puts changed documents back where they stood; all other characters stay as they are.
"""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sabir_testing.reading.values import Place, walk

_DATA = re.compile(r"(?:^data:[^\r\n]*(?:\r\n|\r|\n|\Z))+", re.MULTILINE)
_LINE = re.compile(r"[^\r\n]+")
_COUNTER = re.compile(r"(?:.*_)?index")
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1f]")
_DECODER = json.JSONDecoder()


@dataclass(frozen=True)
class Document:
    """A JSON value, and where in the text it stands."""

    start: int
    end: int
    value: Any


def documents(text: str) -> list[Document]:
    """The documents of a body in order; none where it holds no JSON object or array."""
    whole = _parsed(text, 0, len(text))
    if whole is not None:
        return [whole]
    if is_framed(text):
        return list(_framed(text))
    if _DATA.search(text) is None:
        return list(_lines(text, 0, len(text)))
    return [found for block in _DATA.finditer(text) for found in _event(text, block.start(), block.end())]


def is_framed(text: str) -> bool:
    """Whether a body, as it reads, holds what no text does: lengths and marks of frames."""
    return _CONTROL.search(text) is not None


def _framed(text: str) -> Iterator[Document]:
    at = 0
    while (start := text.find("{", at)) >= 0:
        try:
            value, at = _DECODER.raw_decode(text, start)
        except ValueError:
            at = start + 1
        else:
            yield Document(start, at, value)


def replace(text: str, changed: Sequence[tuple[Document, Any]]) -> str:
    """The text with other values in the place of some of its documents, each written on one line."""
    for document, value in sorted(changed, key=lambda each: each[0].start, reverse=True):
        text = text[: document.start] + written(value) + text[document.end :]
    return text


def written(value: Any) -> str:
    """A value as compact JSON that UTF-8 can hold; a lone half of a surrogate pair stays escaped."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text if _is_encodable(text) else json.dumps(value, separators=(",", ":"))


def texts(value: Any) -> Iterator[tuple[Place, str]]:
    """Every text in a value with its place, names of fields among them."""
    return ((leaf.place, leaf.value) for leaf in walk(value) if isinstance(leaf.value, str))


def shown_place(place: Place) -> str:
    """A place as one writes it: `choices[0].delta.content`."""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in place).lstrip(".")


@dataclass(frozen=True)
class Fragment:
    """A text that may be a piece of a longer one: the document it is in, and its place there."""

    document: int
    place: Place
    text: str


def streamed(values: Sequence[Any]) -> list[list[Fragment]]:
    """The texts at the same place of several documents, which a reader would put together.

    Documents that count (`index`, `output_index`) are put together for each count.
    """
    groups: dict[tuple[Place, Place], list[Fragment]] = {}
    for number, value in enumerate(values):
        for place, text, counts in _leaves(value, (), ()):
            groups.setdefault((place, counts), []).append(Fragment(number, place, text))
    return list(groups.values())


def put(value: Any, place: Place, text: str) -> None:
    """Set the text at a place of a value."""
    for step in place[:-1]:
        value = value[step]
    value[place[-1]] = text


def _leaves(value: Any, place: Place, counts: Place) -> Iterator[tuple[Place, str, Place]]:
    if isinstance(value, str):
        if place:
            yield place, value, counts
    elif isinstance(value, dict):
        own = [member for name, member in value.items() if isinstance(member, int) and _COUNTER.fullmatch(str(name))]
        for name, member in value.items():
            yield from _leaves(member, (*place, name), (*counts, *own))
    elif isinstance(value, list):
        for position, member in enumerate(value):
            yield from _leaves(member, (*place, position), counts)


def _event(text: str, start: int, end: int) -> Iterator[Document]:
    """An event's `data:` lines as one document; where they are none together, each on its own."""
    lines = list(_LINE.finditer(text, start, end))
    payload = "\n".join(line.group()[5:] for line in lines)
    whole = _value(payload)
    if whole is not None:
        yield Document(_payload_start(text, lines[0].start()), lines[-1].end(), whole)
        return
    for line in lines:
        yield from _lines(text, line.start() + 5, line.end())


def _payload_start(text: str, start: int) -> int:
    return start + 6 if text.startswith("data: ", start) else start + 5


def _lines(text: str, start: int, end: int) -> Iterator[Document]:
    for line in _LINE.finditer(text, start, end):
        found = _parsed(text, line.start(), line.end())
        if found is not None:
            yield found


def _parsed(text: str, start: int, end: int) -> Document | None:
    inside = text[start:end]
    value = _value(inside)
    if value is None:
        return None
    lead = len(inside) - len(inside.lstrip())
    return Document(start + lead, start + len(inside.rstrip()), value)


def _value(text: str) -> Any:
    if not text.lstrip().startswith(("{", "[")):
        return None
    try:
        return json.loads(text)
    except ValueError:
        return None


def _is_encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
