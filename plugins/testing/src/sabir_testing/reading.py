"""Bytes and JSON values of any wire, read: what a body is as a text, which JSON documents are in it, and their texts.

bodies      decompressed (`unpacked`: gzip, deflate, br, zstd), and as a text (`as_text`: UTF-8, UTF-16 and UTF-32 by
            their mark or their zeros, and any encoding that the content type names); runs of base64 (`encoded`)
documents   {"a": 1}                    one document
            data: {"a": 1}\\n\\n          one an event (server-sent events), however many `data:` lines it has
            {"a": 1}\\n{"a": 2}\\n        one a line
            \\x00\\x08{"a": 1}\\x00\\xff     one a frame of bytes, read as letters
values      {"a": ["x", {"b": 1}]}  ──leaves──▶  a, x, b, 1          objects ──▶ every object in it

`replace` puts changed documents back where they stood; all other characters stay as they are.
"""

import base64
import codecs
import gzip
import json
import re
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from typing import Any, NamedTuple

from sabir.authoring import JSONValue

# Values

Place = tuple[str | int, ...]
"""Names and positions from a value's root to what is in it."""


class Leaf(NamedTuple):
    """A value that holds no others, or the name of a field, and its place."""

    place: Place
    value: str | float | bool | None
    is_name: bool = False


def walk(value: Any, place: Place = ()) -> Iterator[Leaf]:
    """Every leaf of a JSON value in its order; a name stands before what it names, at the same place."""
    if isinstance(value, Mapping):
        for name, member in value.items():
            yield Leaf((*place, name), name, is_name=True)
            yield from walk(member, (*place, name))
    elif isinstance(value, list | tuple):
        for position, member in enumerate(value):
            yield from walk(member, (*place, position))
    else:
        yield Leaf(place, value)


def leaves(value: JSONValue, *, has_names: bool = True) -> list[str]:
    """Every text in it, the names of fields and numbers too; no empty ones."""
    found = (leaf.value for leaf in walk(value) if has_names or not leaf.is_name)
    return [str(each) for each in found if each not in ("", None) and not isinstance(each, bool)]


def texts(value: JSONValue) -> list[str]:
    """Every text in it, numbers too, but no names of fields; no empty ones."""
    return leaves(value, has_names=False)


def strings(value: JSONValue) -> Iterator[str]:
    """Every string in it, the names of fields aside."""
    return (leaf.value for leaf in walk(value) if isinstance(leaf.value, str) and not leaf.is_name)


def objects(value: JSONValue) -> list[Mapping[str, JSONValue]]:
    """Every object in it."""
    if isinstance(value, Mapping):
        return [value, *(found for item in value.values() for found in objects(item))]
    if isinstance(value, list | tuple):
        return [found for item in value for found in objects(item)]
    return []


def read(text: str | bytes) -> JSONValue:
    """A text as the JSON that it is, or as itself."""
    try:
        value: JSONValue = json.loads(text)
    except ValueError:
        return text.decode("utf-8", "replace") if isinstance(text, bytes) else text
    return value


def every_string(value: JSONValue) -> Iterator[str]:
    """Every string of a JSON value, its keys among them, and what stands in strings that are JSON themselves."""
    for leaf in walk(value):
        if isinstance(leaf.value, str):
            yield leaf.value
            yield from () if leaf.is_name else _inner(leaf.value)


def _inner(text: str) -> Iterator[str]:
    """The strings of a JSON text: arguments and results often are such."""
    if text.startswith(("{", "[")):
        try:
            yield from every_string(json.loads(text))
        except ValueError:
            return


# Bodies

_MARKS = (  # of 32 bits first: its mark begins as that of 16 bits does
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
    (codecs.BOM_UTF8, "utf-8"),
)
_CHARSET = re.compile(r"charset=[\"']?([\w.:-]+)", re.IGNORECASE)
_RUN = re.compile(r"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{6,}={0,2}")
_URL_SAFE = str.maketrans("-_", "+/")


def unpacked(body: bytes, encodings: str) -> bytes | None:
    """The body without what `Content-Encoding` says of it; None where that is unknown here, or not true.

    Some clients take the encoding away and keep its name: a plain text is what it is.
    """
    for name in reversed([each.strip().lower() for each in encodings.split(",")]):
        unpack = _UNPACKERS.get(name)
        if unpack is None:
            return None
        try:
            body = unpack(body)
        except Exception:  # each library has errors of its own
            return body if is_plain(body) else None
    return body


def is_plain(body: bytes) -> bool:
    """Whether it is a text in UTF-8 that a person could read."""
    try:
        return all(letter.isprintable() or letter.isspace() for letter in body.decode())
    except UnicodeDecodeError:
        return False


def _inflated(body: bytes) -> bytes:
    """What servers call deflate: with zlib's heading, or without."""
    try:
        return zlib.decompress(body)
    except zlib.error:
        return zlib.decompress(body, -zlib.MAX_WBITS)


def _by(*modules: str) -> Callable[[bytes], bytes]:
    """`decompress` of the first of those modules that is installed; ImportError where none is."""

    def unpack(body: bytes) -> bytes:
        for name in modules:
            with suppress(ImportError):
                found: bytes = import_module(name).decompress(body)
                return found
        raise ImportError(f"none of {', '.join(modules)} is installed")

    return unpack


_UNPACKERS: Mapping[str, Callable[[bytes], bytes]] = {
    "": bytes,
    "identity": bytes,
    "gzip": gzip.decompress,
    "x-gzip": gzip.decompress,
    "deflate": _inflated,
    "br": _by("brotli", "brotlicffi"),
    "zstd": _by("compression.zstd", "backports.zstd", "zstandard"),
}
_MAGIC = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd", **dict.fromkeys((b"x\x01", b"x\x9c", b"x\xda"), "deflate")}


def opened(body: bytes) -> bytes:
    """The body, decompressed if its first bytes name a known compression."""
    name = next((name for magic, name in _MAGIC.items() if body.startswith(magic)), "")
    return unpacked(body, name) or body


@dataclass(frozen=True)
class BodyText:
    """A body as a text: `mark` and `text.encode(encoding)` are its bytes again."""

    text: str
    encoding: str
    mark: bytes = b""

    def written(self, text: str) -> bytes:
        """Another text in the same encoding."""
        return self.mark + text.encode(self.encoding)


def as_text(body: bytes, content_type: str = "") -> BodyText | None:
    """The body as a text; None where it is none."""
    mark, encoding = next(((mark, name) for mark, name in _MARKS if body.startswith(mark)), (b"", ""))
    named = _CHARSET.search(content_type)
    for name in (encoding, json.detect_encoding(body), named[1] if named else "utf-8"):
        try:
            text = body[len(mark) :].decode(name)
            if text.encode(name) == body[len(mark) :]:
                return BodyText(text, name, mark)
        except (LookupError, UnicodeError, ValueError):
            continue
    return None


class Encoded(NamedTuple):
    """A run of base64 from `start` to `end` of a text, as it stands there, and the bytes that it holds."""

    start: int
    end: int
    run: str
    held: bytes

    def written(self, held: bytes) -> str:
        """Other bytes in the same alphabet."""
        is_url_safe, is_padded = "-" in self.run or "_" in self.run, len(self.run) % 4 == 0
        text = (base64.urlsafe_b64encode if is_url_safe else base64.b64encode)(held).decode()
        return text if is_padded else text.rstrip("=")


def encoded(text: str) -> Iterator[Encoded]:
    """The runs of base64 in a text, in order; many a word is one by chance, and holds nothing that reads."""
    for found in _RUN.finditer(text):
        letters = found.group().rstrip("=")
        letters = letters[: len(letters) - (len(letters) % 4 == 1)]  # a single letter more holds no byte
        padding = "=" * (-len(letters) % 4)
        try:
            held = base64.b64decode(letters.translate(_URL_SAFE) + padding, validate=True)
        except ValueError:
            continue
        run = letters + padding if text.startswith(padding, found.start() + len(letters)) else letters
        yield Encoded(found.start(), found.start() + len(run), run, held)


# Documents

_DATA = re.compile(r"(?:^data:[^\r\n]*(?:\r\n|\r|\n|\Z))+", re.MULTILINE)
_LINE = re.compile(r"[^\r\n]+")
_COUNTER = re.compile(r"(?:.*_)?index")
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1f]")
_HALF = re.compile(r"[\ud800-\udfff]")
_DECODER = json.JSONDecoder()


@dataclass(frozen=True)
class Document:
    """A JSON value, and where in the text it stands."""

    start: int
    end: int
    value: Any


def documents(text: str) -> list[Document]:
    """The documents of a body in order; none where it holds no JSON object or array."""
    if whole := list(_parsed(text, 0, len(text))):
        return whole
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


def around(text: str, found: Sequence[Document]) -> list[str]:
    """The parts of a text before, between and after its documents."""
    ends = [0, *(document.end for document in found)]
    starts = [*(document.start for document in found), len(text)]
    return [text[end:start] for end, start in zip(ends, starts, strict=True)]


def written(value: Any) -> str:
    """A value as compact JSON that UTF-8 can hold; a lone half of a surrogate pair stays escaped."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return json.dumps(value, separators=(",", ":")) if _HALF.search(text) else text


def placed_texts(value: Any) -> Iterator[tuple[Place, str]]:
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
    whole = _value("\n".join(line.group()[5:] for line in lines))
    if whole is not None:
        first = lines[0].start() + 5
        yield Document(first + text.startswith(" ", first), lines[-1].end(), whole)
        return
    for line in lines:
        yield from _lines(text, line.start() + 5, line.end())


def _lines(text: str, start: int, end: int) -> Iterator[Document]:
    for line in _LINE.finditer(text, start, end):
        yield from _parsed(text, line.start(), line.end())


def _parsed(text: str, start: int, end: int) -> Iterator[Document]:
    """The document that a part of a text is, if it is one."""
    inside = text[start:end]
    value = _value(inside)
    if value is not None:
        yield Document(start + len(inside) - len(inside.lstrip()), start + len(inside.rstrip()), value)


def _value(text: str) -> Any:
    if not text.lstrip().startswith(("{", "[")):
        return None
    try:
        return json.loads(text)
    except ValueError:
        return None
