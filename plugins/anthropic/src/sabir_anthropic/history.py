"""A stored request → messages, options and settings.

    system                    a system message: the field at the start, a message with this role at its place
    user                      texts and media; a `tool_result` is the result of the option that its call names
    assistant                 as from decoding a response, with the scope's policy and the target's origin
    every other block         an opaque part
    tools                     options; declarations with another type than "custom" are the vendor's own tools
    their further fields      vendor hints of an option or a document, if a hint for the field exists
    cache_control             a breakpoint if it is at a place that `cache_breakpoints` can name; otherwise a loss

Messages get no role hints, because their policies render to the same roles.
"""

import base64
from collections.abc import Sequence
from itertools import groupby
from typing import Any, ClassVar, TypeAlias

from sabir import MediaPart, TextPart
from sabir.authoring import (
    DecodeScope,
    Fields,
    History,
    JSONValue,
    KnownPart,
    PartReader,
    object_or_empty,
    text_or_empty,
    without_fields,
)

from sabir_anthropic.decode import decode_block, opaque_block
from sabir_anthropic.encode import TOLD
from sabir_anthropic.settings import AnthropicSettings, DocumentHints, OptionHints

Blocks: TypeAlias = Sequence[tuple[dict[str, Any], str]]
"""Content blocks without their cache markers, each with its path in the request."""

_CHOICES = {"auto": "auto", "none": "none", "any": "required"}
_OPTION_FIELDS = frozenset({"cache_control", "description", "input_schema", "name", "type", *OptionHints.model_fields})
_RESULT_FIELDS = frozenset({"content", "is_error", "tool_use_id", "toolset_name", "type"})
"""Fields of a result that are stored, or that rendering restores: `toolset_name` comes from the result's call."""
_SOURCE_FIELDS = frozenset({"type", "media_type", "data", "url", "file_id"})
_NO_PLACE = "a message cannot store it"


def _image(found: Fields, scope: DecodeScope) -> MediaPart | None:
    return MediaPart.from_wire("image", _url(object_or_empty(found.get("source")), scope))


def _document(found: Fields, scope: DecodeScope) -> MediaPart | None:
    hints, url = scope.read_hints(found, DocumentHints), _url(object_or_empty(found.get("source")), scope)
    return None if hints is None else MediaPart.from_wire("document", url, found.get("title"), vendor=hints)


def _url(source: Fields, scope: DecodeScope) -> str:
    """Return the URL or data URL of a source; "" if its type is unknown."""
    match source.get("type"):
        case "base64":
            return f"data:{text_or_empty(source.get('media_type'))};base64,{text_or_empty(source.get('data'))}"
        case "text" if source.get("media_type") == "text/plain":
            return f"data:text/plain;base64,{base64.b64encode(text_or_empty(source.get('data')).encode()).decode()}"
        case "url":
            return text_or_empty(source.get("url"))
        case "file":
            return scope.file_url(source.get("file_id"))
    return ""


class _History(History):
    """Decodes a stored request of `anthropic.messages`."""

    vendor_model = AnthropicSettings
    neutral: ClassVar = {
        "max_tokens": "max_output_tokens", "temperature": "temperature", "top_p": "top_p", "stop_sequences": "stop",
    }  # fmt: skip
    verbatim = frozenset({"cache_breakpoints", "version"})
    leaves: ClassVar = {
        "text": PartReader.for_text(),
        "image": PartReader("", _image, frozenset({"source"})),
        "document": PartReader("", _document, frozenset({"source", "title", *DocumentHints.model_fields})),
    }
    says_nothing: ClassVar = {"type": ("custom",), "is_error": (False,)}

    def __init__(self, found: Fields, scope: DecodeScope) -> None:
        super().__init__(found, scope)
        self._places: dict[str, str] = {}
        """Path of a message → the place of the breakpoint that a cache marker at the end of this message means."""
        self._breakpoints: dict[str, JSONValue] = {}

    def leading(self, given: JSONValue) -> None:
        """Read the field `system`."""
        if given:
            self._instruct(self._blocks(given, "system", "system"), "system")

    def _instruct(self, blocks: Blocks, path: str) -> None:
        parts = []
        for block, place in blocks:
            if isinstance(part := self.part(block, place), TextPart):
                parts.append(part)
            else:
                self.add_loss("dropped", place, "a system message can contain only text")
        self.add_message("system", parts, path)

    def conversation(self, given: JSONValue) -> None:
        """Read the field `messages`."""
        messages = History.expect(given, list, "messages")
        self._places = {f"messages[{_closed(messages)}]": "closed", f"messages[{len(messages) - 1}]": "end"}
        self.read_messages(messages)

    def _content(self, message: Fields, path: str) -> Blocks:
        self.add_losses_of_unknown_fields(message, {"role", "content"}, path, _NO_PLACE)
        return self._blocks(message.get("content"), f"{path}.content", self._places.get(path, ""))

    def system(self, message: Fields, path: str) -> None:
        """Read a message with the role `system`."""
        self._instruct(self._content(message, path), path)

    def user(self, message: Fields, path: str) -> None:
        """Read a message with the role `user`: results become one message each, and other blocks between them one
        message.
        """
        blocks = self._content(message, path)
        for is_result, group in groupby(blocks, key=lambda each: each[0].get("type") == "tool_result"):
            if not is_result:
                self.add_message("user", [self._shown(*each) for each in group], path)
                continue
            for each in group:
                self._result(*each)
        if not blocks:
            self.add_message("user", (), path)

    def _shown(self, block: Fields, path: str) -> KnownPart:
        """Return the part for a block; an opaque part if no other part can express all fields of the block."""
        kind, said = block.get("type"), {name for name, value in block.items() if value is not None}
        if kind in ("image", "document"):
            further = object_or_empty(block.get("source")).keys() - _SOURCE_FIELDS
            if further or said - {"type", *self.leaves[kind].known}:
                return opaque_block(block)
        return self.part(block, path) or opaque_block(block)

    def _result(self, block: Fields, path: str) -> None:
        """Add the result of a call: a text, texts and media, or an error. The first text of an error is its message."""
        call_id = History.expect_name(block.get("tool_use_id"), f"{path}.tool_use_id")
        self.add_losses_of_unknown_fields(block, _RESULT_FIELDS, path, _NO_PLACE)
        content = block.get("content") or ""
        parts = [self._shown(*each) for each in self._blocks(content, f"{path}.content")]
        if not block.get("is_error"):
            self.add_result(call_id, content if isinstance(content, str) else parts, path)
            return
        first = parts[0].text if parts and isinstance(parts[0], TextPart) else ""
        rest = parts[1:] if first else [part for part in parts if not isinstance(part, TextPart)]
        self.add_result(call_id, rest, path, is_error=True, error_type=TOLD, error_message=first)

    def assistant(self, message: Fields, path: str) -> None:
        """Read a message with the role `assistant` as decoding a reply does. Raises HistoryInvalid for a call without a
        name or an id.
        """
        blocks = self._content(message, path)
        for block, place in blocks:
            for name in ("name", "id") if block.get("type") == "tool_use" else ():
                History.expect_name(block.get(name), f"{place}.{name}")
        self.extend([decode_block(block, self.scope) for block, _ in blocks], path)

    def _blocks(self, content: JSONValue, path: str, place: str = "") -> Blocks:
        """Return the blocks of a content, which is a text or a list. `place` is the breakpoint place of a cache marker
        on the last block; markers on other blocks are losses.
        """
        given = [content] if isinstance(content, str) else History.expect(content, list, path)
        found = []
        for index, each in enumerate(given):
            block = {"type": "text", "text": each} if isinstance(each, str) else object_or_empty(each)
            self._mark(block, place if index == len(given) - 1 else "", f"{path}[{index}]")
            found.append((without_fields(block, "cache_control"), f"{path}[{index}]"))
        return found

    def _mark(self, block: Fields, place: str, path: str) -> None:
        """Read the cache marker of a block, if there is one. Add a breakpoint at `place`, or a loss if it is "" or the
        marker is unknown.
        """
        given = block.get("cache_control")
        if given in (None, {}):
            return
        marker = object_or_empty(given)
        is_known = marker.get("type") == "ephemeral" and not marker.keys() - {"type", "ttl"}
        if not (place and is_known) or marker.get("ttl", "5m") not in ("5m", "1h"):
            self.add_loss("dropped", f"{path}.cache_control", "a cache marker at this place has no setting in sabir")
            return
        self._breakpoints[place] = {"at": place, "ttl": marker["ttl"]} if "ttl" in marker else place
        self.set_vendor_setting("cache_breakpoints", list(self._breakpoints.values()))

    def tools(self, given: JSONValue) -> None:
        """Read the field `tools`: options, and the vendor's own tools."""
        declared = []
        for index, each in enumerate(History.expect(given, list, "tools")):
            tool = History.expect(each, dict, f"tools[{index}]")
            # Without hints (None), it is the vendor's own tool, or a declaration that no option can express.
            is_option = tool.get("type") in ("custom", None)
            declared.append((tool, self.scope.read_hints(tool, OptionHints) if is_option else None))
        # Rendering sends options before the vendor's tools. So the marked tool is the last vendor tool, if there is
        # one.
        places = [(own is None, at) for at, (tool, own) in enumerate(declared) if not tool.get("defer_loading")]
        last = max(places, default=(False, None))[1]
        for index, (found, own) in enumerate(declared):
            path, name, description = (
                f"tools[{index}]",
                text_or_empty(found.get("name")),
                text_or_empty(found.get("description")),
            )
            self._mark(found, "options" if index == last else "", path)
            if own is not None and self.add_option(name, description, found.get("input_schema"), own):
                self.add_losses_of_unknown_fields(found, _OPTION_FIELDS, path, "an option cannot store it")
            else:
                self.add_vendor_tool(without_fields(found, "cache_control"), path)

    def choice(self, given: JSONValue) -> None:
        """Read the field `tool_choice`: the option choice, and whether several options may be called at once. A choice
        that no neutral setting can express becomes a vendor setting.
        """
        found = History.expect(given, dict, "tool_choice")
        kind, alone = text_or_empty(found.get("type")), found.get("disable_parallel_tool_use")
        name = text_or_empty(found.get("name")) if kind == "tool" else ""
        known = {"type", "disable_parallel_tool_use", *(("name",) if kind == "tool" else ())}
        if (
            found.keys() - known
            or not isinstance(alone, bool | None)
            or not self.set_option_choice(_CHOICES.get(kind, ""), name)
        ):
            self.set_vendor_setting("tool_choice", given)
        elif isinstance(alone, bool):
            self.set_setting("parallel_options", not alone, "tool_choice")

    def output(self, given: JSONValue) -> None:
        """Read the field `output_config`. A JSON schema becomes the response format, all other fields a vendor
        setting.
        """
        found = History.expect(given, dict, "output_config")
        form = object_or_empty(found.get("format"))
        schema = form.get("schema")
        name = text_or_empty(object_or_empty(schema).get("title")) or "output"
        if (
            form.get("type") == "json_schema"
            and form.keys() == {"type", "schema"}
            and self.set_response_format(name, schema)
        ):
            found = without_fields(found, "format")
        if found:
            self.set_vendor_setting("output_config", found)

    readers: ClassVar = {
        "system": leading, "messages": conversation, "tools": tools, "output_config": output, "tool_choice": choice,
    }  # fmt: skip
    roles: ClassVar = {"assistant": assistant, "system": system, "user": user}


decode_history = _History.decode


def _closed(messages: list[JSONValue]) -> int:
    """Return the index of the last message of the closed prefix, which ends before the last user message, or before the
    last calls if the last message has their results. Negative if there is no closed prefix.
    """
    roles = [text_or_empty(object_or_empty(message).get("role")) for message in messages]
    last = object_or_empty(messages[-1]).get("content") if messages else None
    kinds = {text_or_empty(object_or_empty(block).get("type")) for block in last} if isinstance(last, list) else set()
    at = len(messages) - (3 if kinds == {"tool_result"} else 2)
    if at < 0 or ("tool_result" in kinds and len(kinds) > 1):
        return -1
    return at if {roles[at], roles[at + 1]} == {"user", "assistant"} else -1
