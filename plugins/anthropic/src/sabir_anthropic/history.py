"""A stored request → messages, options and settings.

    system                    a leading system message; a later one where it stands
    user                      what is said and shown; a `tool_result` is the result of the option that its call names
    assistant                 as decoding a response gives it, of the scope's policy, its origin here
    every other block         an opaque part
    tools                     options; those with a type are the vendor's own
    their further fields      vendor hints of an option or a document, as far as those have them
    cache_control             a breakpoint where it stands at one of the places that have a name; else a loss

Roles need no hint: policies render to them.
"""

import base64
from collections.abc import Callable, Collection, Mapping
from typing import Any

from sabir import DecodedHistory, MediaPart, OptionResultPayload, TextPart
from sabir.authoring import (
    DecodeScope,
    Fields,
    History,
    JSONValue,
    KnownPart,
    Leaf,
    Sections,
    expect,
    expect_name,
    fields,
    file_url,
    listed,
    medium,
    one_line,
    read_hints,
    read_request,
    read_text,
    text,
    without,
)
from sabir.errors import HistoryInvalid

from sabir_anthropic.decode import Block, build, decode_block, opaque_block
from sabir_anthropic.encode import TOLD
from sabir_anthropic.settings import AnthropicSettings, DocumentHints, OptionHints

_NEUTRAL: Mapping[str, str] = {
    "max_tokens": "max_output_tokens",
    "temperature": "temperature",
    "top_p": "top_p",
    "stop_sequences": "stop",
}
"""Field → the neutral setting that says the same."""
_CHOICES: Mapping[str, str] = {"auto": "auto", "none": "none", "any": "required"}
_OPTION_FIELDS = frozenset({"cache_control", "description", "input_schema", "name", "type", *OptionHints.model_fields})
_RESULT_FIELDS = frozenset({"cache_control", "content", "is_error", "tool_use_id", "toolset_name", "type"})
"""Fields of a result; the toolset is that of its call."""
_NO_PLACE = "it has no place in a message"


def decode_history(body: bytes, scope: DecodeScope) -> DecodedHistory:
    """The request as sabir's own data; HistoryInvalid for what is no request of this dialect."""
    found = read_request(body, scope)
    history = _History(found, scope, AnthropicSettings)
    history.read_system(found.get("system"))
    messages = expect(found.get("messages"), list, "messages")
    places = {_closed(messages): "closed", len(messages) - 1: "end"}
    for index, message in enumerate(messages):
        history.place = places.get(index, "")
        history.read_message(expect(message, dict, f"messages[{index}]"), f"messages[{index}]")
    history.read_tools(listed(found, "tools"))
    for name, value in found.items():
        history.read_field(name, value)
    history.end()
    return history.whole()


def _image(found: Fields, scope: DecodeScope) -> MediaPart | None:
    return medium("image", _url(fields(found.get("source")), scope))


def _document(found: Fields, scope: DecodeScope) -> MediaPart | None:
    hints, url = read_hints(found, DocumentHints, scope), _url(fields(found.get("source")), scope)
    return None if hints is None else medium("document", url, found.get("title"), hints)


def _url(source: Fields, scope: DecodeScope) -> str:
    """The URL that a source says; empty for one that no part may carry."""
    match source.get("type"):
        case "base64":
            return f"data:{text(source.get('media_type'))};base64,{text(source.get('data'))}"
        case "text" if source.get("media_type") == "text/plain":
            return f"data:text/plain;base64,{base64.b64encode(text(source.get('data')).encode()).decode()}"
        case "url":
            return text(source.get("url"))
        case "file":
            return file_url(source.get("file_id"), scope)
    return ""


_LEAVES: Mapping[str, Leaf] = {
    "text": Leaf("", read_text, frozenset({"text", "cache_control"})),
    "image": Leaf("", _image, frozenset({"source", "cache_control"})),
    "document": Leaf("", _document, frozenset({"source", "title", "cache_control", *DocumentHints.model_fields})),
}
_SOURCE_FIELDS = frozenset({"type", "media_type", "data", "url", "file_id"})


def _says_more(block: Fields) -> bool:
    """Whether a medium says what no part can."""
    kind, said = block.get("type"), {name for name, value in block.items() if value is not None}
    if kind not in ("image", "document"):
        return False
    return bool(said - {"type", *_LEAVES[kind].known} or fields(block.get("source")).keys() - _SOURCE_FIELDS)


class _History(History):
    """A decoded history of this dialect."""

    says_nothing: Mapping[str, Collection[Any]] = {"type": ("custom",), "is_error": (False,)}
    place = ""
    """Where a breakpoint stands that marks the last block of the message being read."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._breakpoints: dict[str, JSONValue] = {}

    def read_system(self, given: JSONValue) -> None:
        """The system text at the top."""
        if not given:
            return
        blocks = [{"type": "text", "text": given}] if isinstance(given, str) else expect(given, list, "system")
        parts = []
        for index, block in enumerate(blocks):
            path = f"system[{index}]"
            self._read_marker(block, "system" if index == len(blocks) - 1 else "", path)
            parts += self._system_part(block, path)
        self.say("system", parts, "system")

    def _system_part(self, block: JSONValue, path: str) -> list[KnownPart]:
        if isinstance(part := self.part(block, _LEAVES, path), TextPart):
            return [part]
        self.lose("dropped", path, "a system message holds nothing but text")
        return []

    def read_message(self, message: Fields, path: str) -> None:
        """One message of any role."""
        role, reader = message.get("role"), _ROLES.get(text(message.get("role")))
        if reader is None:
            expected = ", ".join(sorted(_ROLES))
            raise HistoryInvalid(f"{path}.role is {one_line(ascii(role), 40)}; expected one of {expected}")
        self.lose_unknown(message, {"role", "content"}, path, _NO_PLACE)
        wholes = _blocks(message.get("content"), f"{path}.content")
        for index, block in enumerate(wholes):
            self._read_marker(block, self.place if index == len(wholes) - 1 else "", f"{path}.content[{index}]")
        reader(self, wholes, path)

    def system(self, blocks: list[Fields], path: str) -> None:
        """A late system message."""
        indexed = enumerate(blocks)
        self.say("system", [p for i, each in indexed for p in self._system_part(each, f"{path}.content[{i}]")], path)

    def user(self, blocks: list[Fields], path: str) -> None:
        """What the user says and shows, and the results of options, in their order."""
        said: list[KnownPart] = []
        for index, block in enumerate(blocks):
            place = f"{path}.content[{index}]"
            if block.get("type") != "tool_result":
                said.append(self._shown(block, place))
                continue
            if said:
                self.say("user", said, path)
            said = []
            self.result(block, place)
        if said or not blocks:
            self.say("user", said, path)

    def _shown(self, block: Fields, path: str) -> KnownPart:
        """The part that a block is; verbatim where a part cannot say all of it."""
        part = None if _says_more(block) else self.part(block, _LEAVES, path)
        return part or opaque_block(without(block, "cache_control"))

    def result(self, block: Fields, path: str) -> None:
        """The result of a call: a text, or texts and media, or what went wrong."""
        call_id = expect_name(block.get("tool_use_id"), f"{path}.tool_use_id")
        self.lose_unknown(block, _RESULT_FIELDS, path, _NO_PLACE)
        content = block.get("content") or ""
        wholes = _blocks(content, f"{path}.content")
        for index, each in enumerate(wholes):
            self._read_marker(each, "", f"{path}.content[{index}]")
        parts = [self._shown(each, f"{path}.content[{index}]") for index, each in enumerate(wholes)]
        if not block.get("is_error"):
            self.answer(call_id, content if isinstance(content, str) else parts, path)
            return
        first = parts[0].text if parts and isinstance(parts[0], TextPart) else ""
        rest = tuple(parts[1:] if first else (part for part in parts if not isinstance(part, TextPart)))
        self.add_result(
            OptionResultPayload(
                invocation_id=call_id,
                option_name=self.option_of(call_id, path),
                parts=rest,
                is_error=True,
                error_type=TOLD,
                error_message=first,
            )
        )

    def assistant(self, blocks: list[Fields], path: str) -> None:
        """What the model said and called, as in a reply."""
        found: list[Block] = []
        for index, block in enumerate(blocks):
            place = f"{path}.content[{index}]"
            if block.get("type") == "tool_use":
                expect_name(block.get("name"), f"{place}.name")
                expect_name(block.get("id"), f"{place}.id")
            found.append(decode_block(without(block, "cache_control"), self.scope))
        messages = build(found, self.scope).messages(self.origin)
        if not messages:
            self.lose("dropped", path, "the message is empty")
        self.extend(messages)

    def _read_marker(self, block: JSONValue, place: str, path: str) -> None:
        """A cache marker: a breakpoint at the place where it stands, or a loss."""
        given = fields(block).get("cache_control")
        if given in (None, {}):
            return
        marker = fields(given)
        is_known = marker.get("type") == "ephemeral" and not marker.keys() - {"type", "ttl"}
        if not (place and is_known) or marker.get("ttl", "5m") not in ("5m", "1h"):
            self.lose("dropped", f"{path}.cache_control", "a marker at this place is no setting")
        else:
            self._breakpoints[place] = {"at": place, "ttl": marker["ttl"]} if "ttl" in marker else place

    def read_tools(self, tools: list[JSONValue]) -> None:
        """The declarations: options, and tools of the vendor's own."""
        # Options are declared before what is the vendor's, so that the last of all is the last of those, if any.
        hints = [_option_hints(fields(tool), self.scope) for tool in tools]
        order = sorted(range(len(tools)), key=lambda index: hints[index] is None)
        last = next((index for index in reversed(order) if not fields(tools[index]).get("defer_loading")), None)
        for index, tool in enumerate(tools):
            path = f"tools[{index}]"
            found = expect(tool, dict, path)
            self._read_marker(found, "options" if index == last else "", path)
            schema, name = found.get("input_schema"), text(found.get("name"))
            description, own = text(found.get("description")), hints[index]
            if own is not None and self.add_option(name, description, schema, own):
                self.lose_unknown(found, _OPTION_FIELDS, path, "an option has no place for it")
            else:
                self.add_vendor_tool(without(found, "cache_control"), path)

    def read_field(self, name: str, value: JSONValue) -> None:
        """One field of the request beside those read above."""
        if name in _READ or value is None:
            return
        if name in _READERS:
            _READERS[name](self, value)
        elif name in _NEUTRAL:
            self.put(_NEUTRAL[name], value, name)
        elif name in _ELSEWHERE:
            self.put_extra(name, value)
        else:
            self.put_vendor(name, value)

    def choice(self, given: JSONValue) -> None:
        """Which option is to be chosen, and whether several may be."""
        found = expect(given, dict, "tool_choice")
        kind, alone = text(found.get("type")), found.get("disable_parallel_tool_use")
        known = {"type", "disable_parallel_tool_use", *(("name",) if kind == "tool" else ())}
        name = text(found.get("name")) if kind == "tool" else ""
        if found.keys() - known or not self.choose(_CHOICES.get(kind, ""), name):
            self.put_vendor("tool_choice", given)
        elif isinstance(alone, bool):
            self.put("parallel_options", not alone, "tool_choice")

    def output(self, given: JSONValue) -> None:
        """The schema that replies are held to; what stands beside it stays the vendor's."""
        found = expect(given, dict, "output_config")
        form = fields(found.get("format"))
        schema = form.get("schema")
        name = text(fields(schema).get("title")) or "output"
        if form.get("type") == "json_schema" and form.keys() == {"type", "schema"} and self.hold_to(name, schema):
            found = without(found, "format")
        if found:
            self.put_vendor("output_config", found)

    def stream(self, given: JSONValue) -> None:
        """Whether a call streams is no setting: it is how it is made."""
        if given:
            self.lose("dropped", "stream", "a call streams by `stream` instead of `complete`")

    def end(self) -> None:
        """Set the breakpoints that were found."""
        if self._breakpoints:
            self.put_vendor("cache_breakpoints", list(self._breakpoints.values()))


def _blocks(content: JSONValue, path: str) -> list[Fields]:
    """The blocks of a content, which may be a text, or hold texts for blocks of text."""
    blocks = [content] if isinstance(content, str) else expect(content, list, path)
    return [{"type": "text", "text": block} if isinstance(block, str) else fields(block) for block in blocks]


def _closed(messages: list[JSONValue]) -> int | None:
    """The message that ends the closed prefix: the one before the user's last, or before the last round of calls."""
    roles = [text(fields(message).get("role")) for message in messages]
    last = fields(messages[-1]).get("content") if messages else None
    kinds = {text(fields(block).get("type")) for block in last} if isinstance(last, list) else set()
    at = len(messages) - (3 if kinds == {"tool_result"} else 2)
    if at < 0 or ("tool_result" in kinds and len(kinds) > 1):
        return None
    return at if {roles[at], roles[at + 1]} == {"user", "assistant"} else None


def _option_hints(tool: Fields, scope: DecodeScope) -> Sections | None:
    """The hints of an option; None for a tool of the vendor's own, and for what no option can say."""
    return read_hints(tool, OptionHints, scope) if tool.get("type", "custom") in ("custom", None) else None


_ROLES: Mapping[str, Callable[[_History, list[Fields], str], None]] = {
    "assistant": _History.assistant,
    "system": _History.system,
    "user": _History.user,
}
_READERS: Mapping[str, Callable[[_History, JSONValue], None]] = {
    "output_config": _History.output,
    "stream": _History.stream,
    "tool_choice": _History.choice,
}
_READ = frozenset({"messages", "model", "system", "tools"})
"""Fields that are read elsewhere."""
_ELSEWHERE = frozenset({"cache_breakpoints", "version"})
"""Names of vendor settings that are no fields of a request."""
