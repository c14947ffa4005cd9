"""An MCP server's answer as an option's return value. Nothing is left out: unsupported content becomes text.

    text             ──▶ text part
    image, audio     ──▶ media part, a data URL
    resource         ──▶ its address as text, then text or media part
    resource link    ──▶ text that describes it
    structured value ──▶ only the JSON value if the contents repeat it, else JSON text after them

Annotations and `_meta` are notes to programs, not contents. The protocol's definition:
https://modelcontextprotocol.io/specification/2025-11-25/server/tools#tool-result
"""

import base64
import binascii
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import unquote, urlsplit

from sabir import MediaPart, OptionFailed, TextPart
from sabir.authoring import DataURL, JSONValue, MediaURL, Modality
from sabir.errors import MediaRefused

if TYPE_CHECKING:
    from mcp_types import CallToolResult

ResultPart: TypeAlias = TextPart | MediaPart
"""What an option may return besides JSON."""

MODALITIES: Mapping[str, Modality] = {"image": "image", "audio": "audio", "video": "video"}
"""First half of a MIME type → modality; all others are documents."""
UNKNOWN_BYTES = "application/octet-stream"
OPTION_FAILED = "option_failed"
"""The error type of a failure that the option itself reports."""
NOTHING_SAID = "the option reports a failure and says nothing of it"


def returned_by(result: "CallToolResult") -> JSONValue | list[ResultPart]:
    """The value that an option returns for a server's answer: JSON, or parts. Raises OptionFailed where it failed."""
    parts = [part for block in result.content for part in _parts(block)]
    is_structured = "structured_content" in result.model_fields_set and result.structured_content is not None
    if result.is_error:
        said = _described(parts) or (_json(result.structured_content) if is_structured else "")
        raise OptionFailed(OPTION_FAILED, said or NOTHING_SAID)
    if not is_structured:
        return parts or None
    value: JSONValue = result.structured_content
    if _repeats(parts, value):
        return value
    return [*parts, TextPart(text=_json(value))]


def _parts(block: Any) -> Iterator[ResultPart]:
    """The parts of one block; Any, as a later SDK may know kinds that this one does not."""
    reader = READERS.get(getattr(block, "type", ""))
    if reader is None:
        yield TextPart(text=f"[content of a kind that is not known here: {_json(_document(block))}]")
    else:
        yield from reader(block)


def _resource(block: Any) -> Iterator[ResultPart]:
    found = block.resource
    if (text := getattr(found, "text", None)) is not None:
        yield TextPart(text=f"[{found.uri}]\n{text}")
        return
    yield TextPart(text=f"[{found.uri}]")
    mime = found.mime_type or ""
    yield _medium(MODALITIES.get(mime.partition("/")[0], "document"), mime, found.blob, name=_file_name(found.uri))


def _link(block: Any) -> Iterator[ResultPart]:
    size = f"{block.size} bytes" if block.size is not None else ""
    known = (block.title or block.name, block.mime_type or "", size, block.description or "")
    yield TextPart(text=f"[resource {block.uri}: {', '.join(filter(None, known))}]")


READERS: Mapping[str, Callable[[Any], Iterable[ResultPart]]] = {
    "text": lambda block: [TextPart(text=block.text)],
    "image": lambda block: [_medium("image", block.mime_type, block.data)],
    "audio": lambda block: [_medium("audio", block.mime_type, block.data)],
    "resource": _resource,
    "resource_link": _link,
}
"""The `type` of a block → its parts."""
KINDS = frozenset(READERS)


def _medium(modality: Modality, mime: str, data: str, *, name: str | None = None) -> ResultPart:
    """A medium; a text that describes it if its bytes are broken or no message may carry its type."""
    try:
        content = base64.b64decode("".join(data.split()), validate=True)  # some servers wrap its lines
    except binascii.Error as error:
        return _left_out(modality, mime, data, f"holds broken base64: {error}")
    url = DataURL.of(content, mime.partition(";")[0].strip().lower() or DataURL.sniff(content) or UNKNOWN_BYTES)
    try:
        MediaURL(url).check()
    except MediaRefused as error:
        return _left_out(modality, mime, data, str(error).removeprefix(MediaURL(url).shown).strip())
    return MediaPart(modality=modality, url=url, name=name)


def _left_out(modality: Modality, mime: str, data: str, reason: str) -> TextPart:
    return TextPart(text=f"[{modality} of type {mime or 'unknown'}, {len(data)} characters, left out: it {reason}]")


def _repeats(parts: list[ResultPart], value: JSONValue) -> bool:
    """Whether contents only repeat a structured value, as servers do for clients that know none.

    A value that is no object travels below the one key "result", and a list as one text for each of its items.
    """
    inner = value["result"] if isinstance(value, dict) and list(value) == ["result"] else value
    whole = [value, inner]
    texts = [part.text for part in parts if isinstance(part, TextPart)]
    if len(texts) != len(parts):
        return False
    if len(texts) <= 1:
        return all(any(_says(text, each) for each in whole) for text in texts)
    items = inner if isinstance(inner, list | tuple) else []
    return len(items) == len(texts) and all(map(_says, texts, items))


def _says(text: str, value: JSONValue) -> bool:
    if text == value:
        return True
    try:
        return json.dumps(json.loads(text), sort_keys=True) == json.dumps(value, sort_keys=True)
    except ValueError:
        return False


def _described(parts: list[ResultPart]) -> str:
    """Parts in words: an error holds text alone."""
    return "\n".join(part.text if isinstance(part, TextPart) else _in_words(part) for part in parts).strip()


def _in_words(part: MediaPart) -> str:
    mime = part.url.removeprefix("data:").partition(";")[0]
    return f"[{part.modality} of type {mime}, left out: an error holds text alone]"


def _document(block: Any) -> Any:
    dump = getattr(block, "model_dump", None)
    return dump(mode="json", by_alias=True, exclude_none=True) if dump else repr(block)


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _file_name(uri: str) -> str | None:
    try:
        return unquote(urlsplit(uri).path).rpartition("/")[2] or None
    except ValueError:
        return None
