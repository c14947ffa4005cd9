"""Converts an MCP server's answer to an option's return value. Unsupported content becomes text.

    text             ──▶ text part
    image, audio     ──▶ media part, a data URL
    resource         ──▶ its address as text, then text or media part
    resource link    ──▶ text that describes it
    structured value ──▶ the JSON value if there is no other content; else JSON text after the parts, unless a text
                         already has the value

Annotations and `_meta` are notes for programs, and are discarded. The protocol's definition:
https://modelcontextprotocol.io/specification/2025-11-25/server/tools#tool-result
"""

import base64
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeAlias
from urllib.parse import unquote, urlsplit

from sabir import MediaPart, OptionFailed, TextPart
from sabir.authoring import DataURL, JSONValue, MediaURL, Modality, count_values, has_more_values
from sabir.errors import MediaRefused

if TYPE_CHECKING:
    from mcp_types import CallToolResult

ResultPart: TypeAlias = TextPart | MediaPart
"""A part of an option's result that is not JSON: a text or a medium."""

MODALITIES: Mapping[str, Modality] = {"image": "image", "audio": "audio", "video": "video"}
"""The part of a MIME type before the slash → modality. Any other type is a document."""
_WHITESPACE = " \t\r\n\f\v"
UNKNOWN_BYTES = "application/octet-stream"
OPTION_FAILED = "option_failed"
"""The error type of a failure that the option itself reports."""
NO_REASON = "the option reported a failure without a reason"


def option_value(result: "CallToolResult") -> JSONValue | list[ResultPart]:
    """Return the value that an option returns for a server's answer: a JSON value, a list of parts, or None if empty.

    Raises OptionFailed if the answer reports a failure.
    """
    parts = [part for block in result.content for part in _read_block(block)]
    is_structured = "structured_content" in result.model_fields_set and result.structured_content is not None
    if result.is_error:
        reason = _describe_parts(parts) or (_json(result.structured_content) if is_structured else "")
        raise OptionFailed(OPTION_FAILED, reason or NO_REASON)
    if not is_structured:
        return parts or None
    value: JSONValue = result.structured_content
    blocks: list[Any] = list(result.content)
    texts = [block.text for block in blocks if getattr(block, "type", "") == "text"]
    repeating = _count_repeating(texts, value)
    if repeating == len(parts):
        return value
    return parts if repeating else [*parts, TextPart(text=_json(value))]


def _read_block(block: Any) -> Iterator[ResultPart]:
    """Yield the parts for one content block. Its type is Any, because a later SDK may have further kinds of blocks."""
    reader = READERS.get(getattr(block, "type", ""))
    if reader is None:
        yield TextPart(text=f"[unknown kind of content: {_json(_dump_block(block))}]")
    else:
        yield from reader(block)


def _read_resource(block: Any) -> Iterator[ResultPart]:
    resource = block.resource
    if (text := getattr(resource, "text", None)) is not None:
        yield TextPart(text=f"[{resource.uri}]\n{text}")
        return
    yield TextPart(text=f"[{resource.uri}]")
    mime = resource.mime_type or ""
    modality = MODALITIES.get(mime.partition("/")[0], "document")
    yield _read_medium(modality, mime, resource.blob, name=_file_name(resource.uri))


def _read_link(block: Any) -> Iterator[ResultPart]:
    size = f"{block.size} bytes" if block.size is not None else ""
    details = (block.title or block.name, block.mime_type or "", size, block.description or "")
    yield TextPart(text=f"[resource {block.uri}: {', '.join(filter(None, details))}]")


READERS: Mapping[str, Callable[[Any], Iterable[ResultPart]]] = {
    "text": lambda block: [TextPart(text=block.text)],
    "image": lambda block: [_read_medium("image", block.mime_type, block.data)],
    "audio": lambda block: [_read_medium("audio", block.mime_type, block.data)],
    "resource": _read_resource,
    "resource_link": _read_link,
}
"""The `type` of a content block → the function that returns the block's parts."""
KINDS = frozenset(READERS)


def _read_medium(modality: Modality, mime: str, data: str, *, name: str | None = None) -> ResultPart:
    """Return a media part, or a text if the base64 is invalid or a media part cannot have this type."""
    is_wrapped = any(space in data for space in _WHITESPACE)  # some servers break base64 into lines
    payload = data.translate(dict.fromkeys(map(ord, _WHITESPACE))) if is_wrapped else data
    try:
        beginning = base64.b64decode(payload, validate=True)[:64]
    except ValueError as error:
        return _describe_removed(modality, mime, data, f"contains invalid base64: {error}")
    mime_type = mime.partition(";")[0].strip().lower() or DataURL.sniff(beginning) or UNKNOWN_BYTES
    url = DataURL.from_base64(payload, mime_type)
    try:
        MediaURL(url).check()
    except MediaRefused as error:
        return _describe_removed(modality, mime, data, str(error).removeprefix(MediaURL(url).shown).strip())
    return MediaPart(modality=modality, url=url, name=name)


def _describe_removed(modality: Modality, mime: str, data: str, reason: str) -> TextPart:
    return TextPart(text=f"[{modality} of type {mime or 'unknown'}, {len(data)} characters, removed: it {reason}]")


def _count_repeating(texts: list[str], value: JSONValue) -> int:
    """Count the texts that repeat a structured value, which servers send for clients without structured values.

    Servers send a value that is not an object under the only key "result", and a list as one text for each item.
    """
    inner = value["result"] if isinstance(value, dict) and list(value) == ["result"] else value
    items = inner if isinstance(inner, list | tuple) else ()
    if len(items) == len(texts) and all(map(_ComparedValue.is_in, map(_ComparedValue.of, items), texts)):
        return len(texts)
    wanted = [_ComparedValue.of(each) for each in ([value] if inner is value else [value, inner])]
    return sum(any(each.is_in(text) for each in wanted) for text in texts)


class _ComparedValue(NamedTuple):
    """A JSON value that is compared with texts. `text` is its JSON, which is computed once for all texts."""

    value: JSONValue
    text: str
    values: int
    """How many JSON values the value contains."""

    @classmethod
    def of(cls, value: JSONValue) -> Self:
        text = json.dumps(value, sort_keys=True)
        return cls(value, text, count_values(text, len(text)))

    def is_in(self, text: str) -> bool:
        """Return whether a text is the value, or is JSON text of the value.

        The text is parsed only if it has no more JSON values than the value. Otherwise, megabytes of `[{},{},…` in a
        text, whose values the limit on messages does not count, would need gigabytes as objects.
        """
        if text == self.value:
            return True
        if isinstance(self.value, str) or has_more_values(text, self.values):
            return False
        try:
            return json.dumps(json.loads(text), sort_keys=True) == self.text
        except (ValueError, RecursionError):
            return False


def _describe_parts(parts: list[ResultPart]) -> str:
    """Return the text of parts, with a description of each medium, because an error result contains only text."""
    return "\n".join(part.text if isinstance(part, TextPart) else _describe_medium(part) for part in parts).strip()


def _describe_medium(part: MediaPart) -> str:
    mime = part.url.removeprefix("data:").partition(";")[0]
    return f"[{part.modality} of type {mime}, removed: an error can contain only text]"


def _dump_block(block: Any) -> Any:
    dump = getattr(block, "model_dump", None)
    return dump(mode="json", by_alias=True, exclude_none=True) if dump else repr(block)


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _file_name(uri: str) -> str | None:
    try:
        return unquote(urlsplit(uri).path).rpartition("/")[2] or None
    except ValueError:
        return None
