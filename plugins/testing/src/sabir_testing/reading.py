"""Reading: the text of a body in any encoding, the JSON documents in it, and the texts in JSON values.

bodies      decompressed (`decompress`: gzip, deflate, br, zstd), and decoded (`as_text`: UTF-8, UTF-16 and UTF-32,
            detected by their marks or zeros, and the encoding in the content type); base64 in texts (`base64_runs`)
documents   {"a": 1}                    one document
            data: {"a": 1}\\n\\n          one document for each server-sent event, which may have several `data:` lines
            {"a": 1}\\n{"a": 2}\\n        one document for each line
            \\x00\\x08{"a": 1}\\x00\\xff     one document for each binary frame, decoded as Latin-1
values      {"a": ["x", {"b": 1}]}  ──leaves──▶  a, x, b, 1          objects ──▶ every object in the value
            ──paths_in──▶ (), ("a",), ("a", 0), ("a", 1), ("a", 1, "b")   member_at, replace_at: the value at a path

`replace` writes changed documents back at their places. All other characters remain unchanged.
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

JSONPath = tuple[str | int, ...]
"""A path in a JSON value: names of fields and positions in arrays."""


class Leaf(NamedTuple):
    """A text, number, boolean or null in a JSON value, or the name of a field, with its path."""

    path: JSONPath
    value: str | float | bool | None
    is_name: bool = False


def walk(value: Any, path: JSONPath = ()) -> Iterator[Leaf]:
    """Yield every leaf of a JSON value, in order. The name of a field comes before its value, with the same path."""
    if isinstance(value, Mapping):
        for name, member in value.items():
            yield Leaf((*path, name), name, is_name=True)
            yield from walk(member, (*path, name))
    elif isinstance(value, list | tuple):
        for position, member in enumerate(value):
            yield from walk(member, (*path, position))
    else:
        yield Leaf(path, value)


def paths_in(document: Any, path: JSONPath = ()) -> Iterator[JSONPath]:
    """Yield the path of a JSON value, and those of all values in it, each before the values in it."""
    yield path
    steps: Any = document.items() if isinstance(document, dict) else ()
    steps = enumerate(document) if isinstance(document, list) else steps
    for step, member in steps:
        yield from paths_in(member, (*path, step))


def member_at(document: Any, path: JSONPath) -> Any:  # any JSON value
    """Return the value at a path in a JSON value."""
    for step in path:
        document = document[step]
    return document


def replace_at(document: Any, path: JSONPath, other: JSONValue) -> JSONValue:
    """Return a copy of a JSON value with another value at the path."""
    if not path:
        return other
    first, *rest = path
    copy = document.copy()
    copy[first] = replace_at(document[first], tuple(rest), other)
    replaced: JSONValue = copy
    return replaced


def without_member(document: Any, path: JSONPath) -> JSONValue:
    """Return a copy of a JSON value without the field or the list element at the path. Raises IndexError for ()."""
    holder = member_at(document, path[:-1]).copy()
    del holder[path[-1]]
    return replace_at(document, path[:-1], holder)


def leaves(value: JSONValue, *, has_names: bool = True) -> list[str]:
    """Return all non-empty texts and numbers in a JSON value as texts, with `has_names` also the names of fields."""
    values = (leaf.value for leaf in walk(value) if has_names or not leaf.is_name)
    return [str(each) for each in values if each not in ("", None) and not isinstance(each, bool)]


def texts(value: JSONValue) -> list[str]:
    """Return all non-empty texts and numbers in a JSON value as texts, without the names of fields."""
    return leaves(value, has_names=False)


def strings(value: JSONValue) -> Iterator[str]:
    """Return all strings in a JSON value, without the names of fields."""
    return (leaf.value for leaf in walk(value) if isinstance(leaf.value, str) and not leaf.is_name)


def objects(value: JSONValue) -> list[Mapping[str, JSONValue]]:
    """Return all objects in a JSON value, each before the objects in it."""
    if isinstance(value, Mapping):
        return [value, *(inner for item in value.values() for inner in objects(item))]
    if isinstance(value, list | tuple):
        return [inner for item in value for inner in objects(item)]
    return []


def as_json(text: str | bytes) -> JSONValue:
    """Return the JSON value of a text; the text itself if it is not JSON, decoded as UTF-8 if it is bytes."""
    try:
        value: JSONValue = json.loads(text)
    except ValueError:
        return text.decode("utf-8", "replace") if isinstance(text, bytes) else text
    return value


def every_string(value: JSONValue) -> Iterator[str]:
    """Yield all strings in a JSON value, with the names of fields and the strings within strings that are JSON objects
    or arrays.
    """
    for leaf in walk(value):
        if isinstance(leaf.value, str):
            yield leaf.value
            yield from () if leaf.is_name else _strings_in_json(leaf.value)


def _strings_in_json(text: str) -> Iterator[str]:
    """Yield the strings in a text that is JSON, as arguments and results often are."""
    if text.startswith(("{", "[")):
        try:
            yield from every_string(json.loads(text))
        except ValueError:
            return


# Bodies

_BYTE_ORDER_MARKS = (  # UTF-32 first, because its mark begins like the mark of UTF-16
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
    (codecs.BOM_UTF8, "utf-8"),
)
_CHARSET = re.compile(r"charset=[\"']?([\w.:-]+)", re.IGNORECASE)
_BASE64 = re.compile(r"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{6,}={0,2}")
_URL_SAFE = str.maketrans("-_", "+/")


def decompress(body: bytes, encodings: str) -> bytes | None:
    """Decompress a body by the value of its header `Content-Encoding`.

    Returns None for an unknown encoding, for invalid data, and if the library for the encoding is not installed. Plain
    text that cannot be decompressed is returned unchanged, because some clients decompress the body and keep the
    header.
    """
    for name in reversed([each.strip().lower() for each in encodings.split(",")]):
        unpack = _UNPACKERS.get(name)
        if unpack is None:
            return None
        try:
            body = unpack(body)
        except Exception:  # each library has its own exceptions
            return body if is_plain(body) else None
    return body


def is_plain(body: bytes) -> bool:
    """Return whether a body is printable UTF-8 text."""
    try:
        return all(letter.isprintable() or letter.isspace() for letter in body.decode())
    except UnicodeDecodeError:
        return False


def _inflate(body: bytes) -> bytes:
    """Decompress `deflate`, which servers send with or without the zlib header."""
    try:
        return zlib.decompress(body)
    except zlib.error:
        return zlib.decompress(body, -zlib.MAX_WBITS)


def _decompress_with(*modules: str) -> Callable[[bytes], bytes]:
    """Return a function that calls `decompress` of the first installed module, or raises ImportError."""

    def unpack(body: bytes) -> bytes:
        for name in modules:
            with suppress(ImportError):
                unpacked_body: bytes = import_module(name).decompress(body)
                return unpacked_body
        raise ImportError(f"the body cannot be decompressed; install one of {', '.join(modules)}")

    return unpack


_UNPACKERS: Mapping[str, Callable[[bytes], bytes]] = {
    "": bytes,
    "identity": bytes,
    "gzip": gzip.decompress,
    "x-gzip": gzip.decompress,
    "deflate": _inflate,
    "br": _decompress_with("brotli", "brotlicffi"),
    "zstd": _decompress_with("compression.zstd", "backports.zstd", "zstandard"),
}
_MAGIC = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd", **dict.fromkeys((b"x\x01", b"x\x9c", b"x\xda"), "deflate")}


def decompress_detected(body: bytes) -> bytes:
    """Return the body, decompressed if it begins like gzip, zstd or deflate data, is valid and not empty, and the
    library for zstd is installed.
    """
    name = next((name for magic, name in _MAGIC.items() if body.startswith(magic)), "")
    return decompress(body, name) or body


@dataclass(frozen=True)
class BodyText:
    """The text of a body. Its bytes are `mark + text.encode(encoding)`."""

    text: str
    encoding: str
    mark: bytes = b""

    def encode(self, text: str) -> bytes:
        """Return the bytes of another text in the same encoding, with the same mark."""
        return self.mark + text.encode(self.encoding)


def as_text(body: bytes, content_type: str = "") -> BodyText | None:
    """Return the text of a body; None if none of the tried encodings fits. `content_type` may name an encoding."""
    mark, encoding = next(((mark, name) for mark, name in _BYTE_ORDER_MARKS if body.startswith(mark)), (b"", ""))
    charset = _CHARSET.search(content_type)
    for name in (encoding, json.detect_encoding(body), charset[1] if charset else "utf-8"):
        try:
            text = body[len(mark) :].decode(name)
            if text.encode(name) == body[len(mark) :]:
                return BodyText(text, name, mark)
        except (LookupError, UnicodeError, ValueError):
            continue
    return None


class Base64Run(NamedTuple):
    """A run of base64 letters in a text, from `start` to `end`. `content` are the decoded bytes."""

    start: int
    end: int
    run: str
    content: bytes

    def encode(self, content: bytes) -> str:
        """Return other bytes as base64 of the same variant."""
        is_url_safe, is_padded = "-" in self.run or "_" in self.run, len(self.run) % 4 == 0
        text = (base64.urlsafe_b64encode if is_url_safe else base64.b64encode)(content).decode()
        return text if is_padded else text.rstrip("=")


def base64_runs(text: str) -> Iterator[Base64Run]:
    """Yield the runs of base64 letters in a text, in order. Ordinary words can be such runs by chance."""
    for match in _BASE64.finditer(text):
        letters = match.group().rstrip("=")
        letters = letters[: len(letters) - (len(letters) % 4 == 1)]  # a single further letter encodes no byte
        padding = "=" * (-len(letters) % 4)
        try:
            content = base64.b64decode(letters.translate(_URL_SAFE) + padding, validate=True)
        except ValueError:
            continue
        run = letters + padding if text.startswith(padding, match.start() + len(letters)) else letters
        yield Base64Run(match.start(), match.start() + len(run), run, content)


# Documents

_DATA_LINES = re.compile(r"(?:^data:[^\r\n]*(?:\r\n|\r|\n|\Z))+", re.MULTILINE)
_LINE = re.compile(r"[^\r\n]+")
_COUNTER = re.compile(r"(?:.*_)?index")
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1f]")
_SURROGATE = re.compile(r"[\ud800-\udfff]")
_DECODER = json.JSONDecoder()


@dataclass(frozen=True)
class Document:
    """A JSON value, and its start and end in a text."""

    start: int
    end: int
    value: Any


def documents(text: str) -> list[Document]:
    """Return the JSON objects and arrays in a body's text, in order; [] if there are none."""
    if document := list(_parse_document(text, 0, len(text))):
        return document
    if is_framed(text):
        return list(_parse_frames(text))
    if _DATA_LINES.search(text) is None:
        return list(_parse_lines(text, 0, len(text)))
    return [document for block in _DATA_LINES.finditer(text) for document in _parse_event(text, *block.span())]


def is_framed(text: str) -> bool:
    """Return whether the text of a body contains control characters, as binary frames do."""
    return _CONTROL.search(text) is not None


def _parse_frames(text: str) -> Iterator[Document]:
    at = 0
    while (start := text.find("{", at)) >= 0:
        try:
            value, at = _DECODER.raw_decode(text, start)
        except ValueError:
            at = start + 1
        else:
            yield Document(start, at, value)


def replace(text: str, changed: Sequence[tuple[Document, Any]]) -> str:
    """Return the text with other values instead of some of its documents, as compact JSON."""
    for document, value in sorted(changed, key=lambda each: each[0].start, reverse=True):
        text = text[: document.start] + compact_json(value) + text[document.end :]
    return text


def texts_between(text: str, parsed: Sequence[Document]) -> list[str]:
    """Return the parts of a text before, between and after its documents."""
    ends = [0, *(document.end for document in parsed)]
    starts = [*(document.start for document in parsed), len(text)]
    return [text[end:start] for end, start in zip(ends, starts, strict=True)]


def compact_json(value: Any) -> str:
    """Return a value as compact JSON. If UTF-8 cannot encode one of its characters, all non-ASCII ones are escaped."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return json.dumps(value, separators=(",", ":")) if _SURROGATE.search(text) else text


def texts_with_paths(value: Any) -> Iterator[tuple[JSONPath, str]]:
    """Return all texts in a JSON value with their paths, including the names of fields."""
    return ((leaf.path, leaf.value) for leaf in walk(value) if isinstance(leaf.value, str))


def format_path(path: JSONPath) -> str:
    """Return a path as text, such as `choices[0].delta.content`."""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).lstrip(".")


@dataclass(frozen=True)
class Fragment:
    """A text that may be a piece of a longer text. `document` is the number of its document, `path` its path there."""

    document: int
    path: JSONPath
    text: str


def group_fragments(values: Sequence[Any]) -> list[list[Fragment]]:
    """Return groups of texts that a stream's reader would join: the texts with the same path in several documents.

    Documents with different counters (`index`, `output_index`) are in different groups.
    """
    groups: dict[tuple[JSONPath, JSONPath], list[Fragment]] = {}
    for number, value in enumerate(values):
        for path, text, counts in _text_leaves(value, (), ()):
            groups.setdefault((path, counts), []).append(Fragment(number, path, text))
    return list(groups.values())


def fragments_of(values: Sequence[Any], text: str) -> list[Fragment]:
    """Return the first group of texts that a stream's reader would join to this text; [] if there is none."""
    groups = group_fragments(values)
    return next((each for each in groups if "".join(fragment.text for fragment in each) == text), [])


def set_text(value: Any, path: JSONPath, text: str) -> None:
    """Set the text at a path in a value."""
    member_at(value, path[:-1])[path[-1]] = text


def _text_leaves(value: Any, path: JSONPath, counts: JSONPath) -> Iterator[tuple[JSONPath, str, JSONPath]]:
    if isinstance(value, str):
        if path:
            yield path, value, counts
    elif isinstance(value, dict):
        own = [member for name, member in value.items() if isinstance(member, int) and _COUNTER.fullmatch(str(name))]
        for name, member in value.items():
            yield from _text_leaves(member, (*path, name), (*counts, *own))
    elif isinstance(value, list):
        for position, member in enumerate(value):
            yield from _text_leaves(member, (*path, position), counts)


def _parse_event(text: str, start: int, end: int) -> Iterator[Document]:
    """Yield the joined `data:` lines of an event as one document, or a document for each line that is JSON."""
    lines = list(_LINE.finditer(text, start, end))
    value = _parse_container("\n".join(line.group()[5:] for line in lines))
    if value is not None:
        first = lines[0].start() + 5
        yield Document(first + text.startswith(" ", first), lines[-1].end(), value)
        return
    for line in lines:
        yield from _parse_lines(text, line.start() + 5, line.end())


def _parse_lines(text: str, start: int, end: int) -> Iterator[Document]:
    for line in _LINE.finditer(text, start, end):
        yield from _parse_document(text, line.start(), line.end())


def _parse_document(text: str, start: int, end: int) -> Iterator[Document]:
    """Yield the document of a part of a text, if the part is JSON."""
    inside = text[start:end]
    value = _parse_container(inside)
    if value is not None:
        yield Document(start + len(inside) - len(inside.lstrip()), start + len(inside.rstrip()), value)


def _parse_container(text: str) -> Any:
    if not text.lstrip().startswith(("{", "[")):
        return None
    try:
        return json.loads(text)
    except ValueError:
        return None
