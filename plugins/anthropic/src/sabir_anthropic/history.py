"""A stored request → messages, options and settings.

    system                    a system message, for the field and for messages with this role
    user                      texts and media; a `tool_result` is the result of the option that its call names
    assistant                 as from decoding a response, with the scope's policy and the target's origin
    other blocks              opaque parts
    tools, mcp_servers        options; declarations with another type than "custom" are the vendor's own tools, which
                              become native options or, if these cannot express them, vendor settings
    other fields of a tool    vendor hints of the option if such hints exist; the same for documents
    cache_control             `prompt_cache` if the setting places the same markers; a breakpoint if
                              `cache_breakpoints` can name the place; otherwise a loss

Messages get no role hints, because their policies render to the same roles.
"""

import base64
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any, ClassVar, TypeAlias

from sabir import DecodedHistory, MediaPart, TextPart
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
from sabir_anthropic.encode import STORED_ERROR_TYPE
from sabir_anthropic.native import read_declaration
from sabir_anthropic.request import CHOICES, DEFAULT_NAME, FIELDS
from sabir_anthropic.settings import AnthropicDocumentHints, AnthropicOptionHints, AnthropicSettings

LocatedBlocks: TypeAlias = Sequence[tuple[dict[str, Any], str]]
"""Content blocks without their cache markers, each with its path in the request."""

_CHOICES: Mapping[str, str] = {kind: choice for choice, kind in CHOICES.items()}
"""Type of `tool_choice` → option choice."""
_DOCUMENT_FIELDS = frozenset({"source", "title", *AnthropicDocumentHints.model_fields})
_OPTION_FIELDS = frozenset(
    {"cache_control", "description", "input_schema", "name", "type", *AnthropicOptionHints.model_fields}
)
_RESULT_FIELDS = frozenset({"content", "is_error", "tool_use_id", "toolset_name", "type"})
"""Fields of a result that need no loss. Rendering restores `toolset_name` from the result's call."""
_SOURCE_FIELDS = frozenset({"type", "media_type", "data", "url", "file_id"})
_NOT_STORED = "a message cannot store it"


def _read_image_block(block: Fields, scope: DecodeScope) -> MediaPart | None:
    return MediaPart.from_wire("image", _source_url(object_or_empty(block.get("source")), scope))


def _read_document_block(block: Fields, scope: DecodeScope) -> MediaPart | None:
    hints = scope.read_hints(block, AnthropicDocumentHints)
    url = _source_url(object_or_empty(block.get("source")), scope)
    return None if hints is None else MediaPart.from_wire("document", url, block.get("title"), vendor=hints)


def _source_url(source: Fields, scope: DecodeScope) -> str:
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


class _MessagesHistory(History):
    """Decodes a stored request of `anthropic.messages`."""

    vendor_model = AnthropicSettings
    early = ("system", "tools")
    neutral: ClassVar = {field: setting for setting, field in FIELDS.items()}
    verbatim = frozenset({"cache_breakpoints", "version"})
    leaves: ClassVar = {
        "text": PartReader.for_text(),
        "image": PartReader("", _read_image_block, frozenset({"source"})),
        "document": PartReader("", _read_document_block, _DOCUMENT_FIELDS),
    }
    says_nothing: ClassVar = {"type": ("custom",), "is_error": (False,)}

    def __init__(self, request: Fields, scope: DecodeScope) -> None:
        super().__init__(request, scope)
        self._breakpoint_places: dict[str, str] = {}
        """Path of a message → the value of `Breakpoint.at` for a cache marker at the end of this message."""
        self._breakpoints: dict[str, JSONValue] = {}
        self._servers: set[str] = set()
        """The names of the MCP servers that became native options."""

    def read_system_field(self, system: JSONValue) -> None:
        """Read the field `system`."""
        if system:
            self._add_system_message(self._split_content(system, "system", "system"), "system")

    def _add_system_message(self, blocks: LocatedBlocks, path: str) -> None:
        """Add a system message with the texts among the blocks. Other blocks are losses."""
        parts = []
        for block, block_path in blocks:
            if isinstance(part := self.part(block, block_path), TextPart):
                parts.append(part)
            else:
                self.add_loss("dropped", block_path, "a system message can contain only text")
        self.add_message("system", parts, path)

    def read_messages_field(self, json_messages: JSONValue) -> None:
        """Read the field `messages`."""
        messages = History.expect(json_messages, list, "messages")
        closed, end = f"messages[{_closed_prefix_end(messages)}]", f"messages[{len(messages) - 1}]"
        self._breakpoint_places = {closed: "closed", end: "end"}
        self.read_messages(messages)

    def _message_blocks(self, message: Fields, path: str) -> LocatedBlocks:
        """Return the blocks of a message. Cache markers at the places of breakpoints become breakpoints."""
        self.add_losses_of_unknown_fields(message, {"role", "content"}, path, _NOT_STORED)
        return self._split_content(message.get("content"), f"{path}.content", self._breakpoint_places.get(path, ""))

    def read_system(self, message: Fields, path: str) -> None:
        """Read a message with the role `system`."""
        self._add_system_message(self._message_blocks(message, path), path)

    def read_user(self, message: Fields, path: str) -> None:
        """Read a message with the role `user`. Each result becomes a message, and so does each group of adjacent other
        blocks.
        """
        blocks = self._message_blocks(message, path)
        for is_result, group in groupby(blocks, key=lambda each: each[0].get("type") == "tool_result"):
            if not is_result:
                self.add_message("user", [self._read_input_block(*each) for each in group], path)
                continue
            for each in group:
                self._add_tool_result(*each)
        if not blocks:
            self.add_message("user", (), path)

    def _read_input_block(self, block: Fields, path: str) -> KnownPart:
        """Return the part for a block. If no other part can express all fields of the block, it is an opaque part."""
        kind, fields = block.get("type"), {name for name, value in block.items() if value is not None}
        if kind in ("image", "document"):
            further = object_or_empty(block.get("source")).keys() - _SOURCE_FIELDS
            if further or fields - {"type", *self.leaves[kind].known}:
                return opaque_block(block)
        return self.part(block, path) or opaque_block(block)

    def _add_tool_result(self, block: Fields, path: str) -> None:
        """Add the result of a call: a text, texts and media, or an error. The first text becomes an error's message."""
        call_id = History.expect_name(block.get("tool_use_id"), f"{path}.tool_use_id")
        self.add_losses_of_unknown_fields(block, _RESULT_FIELDS, path, _NOT_STORED)
        content = block.get("content") or ""
        parts = [self._read_input_block(*each) for each in self._split_content(content, f"{path}.content")]
        if not block.get("is_error"):
            self.add_result(call_id, content if isinstance(content, str) else parts, path)
            return
        first = parts[0].text if parts and isinstance(parts[0], TextPart) else ""
        others = parts[1:] if first else [part for part in parts if not isinstance(part, TextPart)]
        self.add_result(call_id, others, path, is_error=True, error_type=STORED_ERROR_TYPE, error_message=first)

    def read_assistant(self, message: Fields, path: str) -> None:
        """Read a message with the role `assistant` like a reply. Raises HistoryInvalid for a call without a name or an
        id.
        """
        blocks = self._message_blocks(message, path)
        for block, block_path in blocks:
            for name in ("name", "id") if block.get("type") == "tool_use" else ():
                History.expect_name(block.get(name), f"{block_path}.{name}")
        self.extend([decode_block(block, self.scope) for block, _ in blocks], path)

    def _split_content(self, content: JSONValue, path: str, at: str = "") -> LocatedBlocks:
        """Return the blocks of a content, which is a text or a list. `at` is the value of `Breakpoint.at` for a cache
        marker on the last block. Markers on other blocks are reported as losses.
        """
        contents = [content] if isinstance(content, str) else History.expect(content, list, path)
        blocks = []
        for index, each in enumerate(contents):
            block = {"type": "text", "text": each} if isinstance(each, str) else object_or_empty(each)
            self._read_cache_control(block, at if index == len(contents) - 1 else "", f"{path}[{index}]")
            blocks.append((without_fields(block, "cache_control"), f"{path}[{index}]"))
        return blocks

    def _read_cache_control(self, block: Fields, at: str, path: str) -> None:
        """Add a breakpoint at the place `at` if the block has a cache marker. If `at` is "" or the marker is unknown,
        add a loss instead.
        """
        cache_control = block.get("cache_control")
        if cache_control in (None, {}):
            return
        marker = object_or_empty(cache_control)
        is_known = marker.get("type") == "ephemeral" and not marker.keys() - {"type", "ttl"}
        if not (at and is_known) or marker.get("ttl", "5m") not in ("5m", "1h"):
            self.add_loss("dropped", f"{path}.cache_control", "sabir has no setting for this cache marker")
            return
        self._breakpoints[at] = {"at": at, "ttl": marker["ttl"]} if "ttl" in marker else at
        self.set_vendor_setting("cache_breakpoints", list(self._breakpoints.values()))

    def build(self) -> DecodedHistory:
        """Return the decoded history, with `prompt_cache` instead of breakpoints if it places the same markers."""
        first = "system" if self.found.get("system") else "options" if self.found.get("tools") else ""
        lifetimes = [object_or_empty(each).get("ttl", True) for each in self._breakpoints.values()]
        if self._breakpoints.keys() == {"closed", first} - {""} and len({*map(str, lifetimes)}) == 1:
            self._settings["prompt_cache"] = lifetimes[0]
            del self._vendor["cache_breakpoints"]
        return super().build()

    def read_tools(self, declarations: JSONValue) -> None:
        """Read the field `tools`: options, and the vendor's own tools."""
        declared = []
        for index, each in enumerate(History.expect(declarations, list, "tools")):
            tool = History.expect(each, dict, f"tools[{index}]")
            # None instead of hints means: one of the vendor's own tools, or a declaration that no option can express.
            is_option = tool.get("type") in ("custom", None)
            declared.append((tool, self.scope.read_hints(tool, AnthropicOptionHints) if is_option else None))
        servers = {
            text_or_empty(each.get("name")): each
            for each in map(object_or_empty, self.list_at(self.found, "mcp_servers"))
        }
        natives = [
            read_declaration(without_fields(tool, "cache_control"), servers, self.scope.target.provider)
            if hints is None
            else None
            for tool, hints in declared
        ]
        # Rendering sends functions, then native options, then vendor tools, so the last of the last kind counts.
        ranks = [
            0 if hints is not None else 1 if native else 2 for (_, hints), native in zip(declared, natives, strict=True)
        ]
        loaded = [
            (rank, at)
            for at, (rank, (tool, _)) in enumerate(zip(ranks, declared, strict=True))
            if not tool.get("defer_loading")
        ]
        last = max(loaded, default=(0, None))[1]
        for index, (tool, hints) in enumerate(declared):
            path, name = f"tools[{index}]", text_or_empty(tool.get("name"))
            description = text_or_empty(tool.get("description"))
            self._read_cache_control(tool, "options" if index == last else "", path)
            if hints is not None and self.add_option(name, description, tool.get("input_schema"), hints):
                self.add_losses_of_unknown_fields(tool, _OPTION_FIELDS, path, "an option cannot store it")
            elif self.add_native(natives[index]):
                self._servers.add(text_or_empty(tool.get("mcp_server_name")))
            else:
                self.add_vendor_tool(without_fields(tool, "cache_control"), path)

    def read_mcp_servers(self, servers: JSONValue) -> None:
        """Read the field `mcp_servers`. Servers that are not part of a native option become a vendor setting."""
        listed = History.expect(servers, list, "mcp_servers")
        others = [each for each in listed if object_or_empty(each).get("name") not in self._servers]
        if others or not listed:
            self.set_vendor_setting("mcp_servers", others)

    def read_tool_choice(self, tool_choice: JSONValue) -> None:
        """Read the field `tool_choice`: the option choice, and whether several options may be called at once. A choice
        that no neutral setting can express becomes a vendor setting.
        """
        fields = History.expect(tool_choice, dict, "tool_choice")
        kind, is_single = text_or_empty(fields.get("type")), fields.get("disable_parallel_tool_use")
        name = text_or_empty(fields.get("name")) if kind == "tool" else ""
        known = {"type", "disable_parallel_tool_use", *(("name",) if kind == "tool" else ())}
        is_known = fields.keys() <= known and isinstance(is_single, bool | None)
        if not is_known or not self.set_option_choice(_CHOICES.get(kind, ""), name):
            self.set_vendor_setting("tool_choice", tool_choice)
        elif isinstance(is_single, bool):
            self.set_setting("parallel_options", not is_single, "tool_choice")

    def read_output_config(self, output_config: JSONValue) -> None:
        """Read the field `output_config`. A JSON schema becomes the response format, and the other fields become a
        vendor setting.
        """
        config = History.expect(output_config, dict, "output_config")
        form = object_or_empty(config.get("format"))
        schema = form.get("schema")
        name = text_or_empty(object_or_empty(schema).get("title")) or DEFAULT_NAME
        is_schema = form.get("type") == "json_schema" and form.keys() == {"type", "schema"}
        if is_schema and self.set_response_format(name, schema):
            config = without_fields(config, "format")
        if config:
            self.set_vendor_setting("output_config", config)

    readers: ClassVar = {
        "system": read_system_field, "messages": read_messages_field, "tools": read_tools,
        "mcp_servers": read_mcp_servers, "output_config": read_output_config, "tool_choice": read_tool_choice,
    }  # fmt: skip
    roles: ClassVar = {"assistant": read_assistant, "system": read_system, "user": read_user}


decode_history = _MessagesHistory.decode


def _closed_prefix_end(messages: list[JSONValue]) -> int:
    """Return the index of the last message of the closed prefix, which later messages cannot change; -1 without one.

    The prefix ends before the last user message. If the last message contains results, the prefix ends before the
    message with their calls.
    """
    roles = [text_or_empty(object_or_empty(message).get("role")) for message in messages]
    last = object_or_empty(messages[-1]).get("content") if messages else None
    kinds = {text_or_empty(object_or_empty(block).get("type")) for block in last} if isinstance(last, list) else set()
    at = len(messages) - (3 if kinds == {"tool_result"} else 2)
    if at < 0 or ("tool_result" in kinds and len(kinds) > 1):
        return -1
    return at if {roles[at], roles[at + 1]} == {"user", "assistant"} else -1
