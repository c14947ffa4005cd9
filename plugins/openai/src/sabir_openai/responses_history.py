"""A stored Responses request → messages, options and settings.

    instructions              a leading system message; rendered back it is the first item of `input` (loss: relocated)
    system, developer, user   a message each                   a string `input` is the user's
    what the model did        as decoding a response gives it, of the scope's policy, its origin here
    function_call_output      a result of the option that its call names
    every other item          an opaque part; the outputs of a user's own program are the user's

A reference to an item that only the vendor holds is a loss, and so is what a result of such a call would have paired
with. Roles need no hint: policies render to them.
"""

from collections.abc import Callable, Mapping
from typing import Any

from sabir import DecodedHistory, MediaPart, OpaquePart, OptionCallPayload, TextPart
from sabir.authoring import (
    DecodeScope,
    Fields,
    JSONValue,
    KnownPart,
    Leaf,
    ReplyBuilder,
    data_url,
    expect,
    expect_name,
    fields,
    file_url,
    listed,
    medium,
    one_line,
    read_request,
    read_text,
    text,
    without,
)
from sabir.errors import HistoryInvalid

from sabir_openai.history import RequestHistory, read_streaming
from sabir_openai.responses_decode import PAIRS, Block, item_blocks, opaque_item
from sabir_openai.settings import ResponsesOptionHints, ResponsesSettings

_NEUTRAL: Mapping[str, str] = {
    "max_output_tokens": "max_output_tokens",
    "temperature": "temperature",
    "top_p": "top_p",
    "parallel_tool_calls": "parallel_options",
}
"""Field → the neutral setting that says the same."""
_STORED = ("prompt", "conversation", "previous_response_id")
"""Fields that name what the vendor holds; with one of them a request may have no input."""
_ROLES: Mapping[str, str] = {"system": "system", "developer": "system", "user": "user"}
"""Role → policy; the assistant's is the scope's."""
_TEXT_FORMATS = frozenset({"format", "verbosity"})
_NO_PLACE = "it has no place in a message"


def decode_history(body: bytes, scope: DecodeScope) -> DecodedHistory:
    """The request as sabir's own data; HistoryInvalid for what is no request of this dialect."""
    found = read_request(body, scope)
    history = RequestHistory(found, scope, ResponsesSettings)
    if instructions := found.get("instructions"):
        history.say("system", [TextPart(text=expect(instructions, str, "instructions"))], "instructions")
        history.lose("relocated", "instructions", "they render as the first message of the input")
    given = found.get("input")
    if isinstance(given, str):
        history.say("user", [TextPart(text=given)], "input")
    elif given is not None or not any(found.get(name) for name in _STORED):
        reader = _Items(history)
        for index, item in enumerate(expect(given, list, "input")):
            reader.take(expect(item, dict, f"input[{index}]"), f"input[{index}]")
        reader.flush()
    _settings(history, found)
    return history.whole()


def _image(found: Fields, scope: DecodeScope) -> MediaPart | None:
    return medium("image", text(found.get("image_url")) or file_url(found.get("file_id"), scope))


def _file(found: Fields, scope: DecodeScope) -> MediaPart | None:
    data, url = text(found.get("file_data")), text(found.get("file_url"))
    url = data_url(data, "application/pdf") if data else url or file_url(found.get("file_id"), scope)
    return medium("document", url, found.get("filename"))


_TEXT = Leaf("", read_text, frozenset({"text"}))
_LEAVES: Mapping[str, Leaf] = {
    "text": _TEXT,
    "input_text": _TEXT,
    "output_text": _TEXT,
    "input_image": Leaf("", _image, frozenset({"image_url", "file_id"})),
    "input_file": Leaf("", _file, frozenset({"file_data", "file_url", "file_id", "filename"})),
}


class _Items:
    """Reads input items in order; what the model did one after the other becomes messages together, as in a reply."""

    def __init__(self, history: RequestHistory) -> None:
        self.history = history
        self.said: list[Block] = []

    def take(self, item: Fields, path: str) -> None:
        """Read one item; an item without a type is a message, or a reference."""
        kind = text(item.get("type")) or ("message" if "role" in item else "item_reference" if "id" in item else "")
        if not kind:
            raise HistoryInvalid(f"{path} has neither type nor role; expected an input item")
        _ITEMS.get(kind, _Items.other)(self, item, path)

    def flush(self) -> None:
        """End what the model did."""
        builder = ReplyBuilder(self.history.scope)
        for block in self.said:
            builder.add(block)
        self.history.extend(builder.messages(self.history.origin))
        self.said = []

    def message(self, item: Fields, path: str) -> None:
        """A message of any role."""
        role = item.get("role")
        if role == "assistant":
            self.said += self._assistant(item, path)
        elif isinstance(role, str) and role in _ROLES:
            self.flush()
            self.history.lose_unknown(item, {"role", "content"}, path, _NO_PLACE)
            parts = self._content(item.get("content"), without(item, "content"), f"{path}.content")
            self.history.say(_ROLES[role], parts, path)
        else:
            expected = ", ".join(sorted({*_ROLES, "assistant"}))
            raise HistoryInvalid(f"{path}.role is {one_line(ascii(role), 40)}; expected one of {expected}")

    def _assistant(self, item: Fields, path: str) -> list[KnownPart]:
        """The parts of a message; it is the vendor's own, and keeps its form, where it says more than its text."""
        content = item.get("content")
        parts = [content] if isinstance(content, str) else expect(content, list, f"{path}.content")
        parts = [{"type": "output_text", "text": part} if isinstance(part, str) else part for part in parts]
        found = item_blocks({**item, "type": "message", "content": parts}, self.history.scope) if parts else []
        blocks = [block for block in found if not isinstance(block, OptionCallPayload)]
        if not any(block.text if isinstance(block, TextPart) else block for block in blocks):
            self.history.lose("dropped", path, "the message is empty")
            return []
        if any(item.get(name) for name in item.keys() - {"type", "role", "content"}):
            return blocks
        return [_bare(block) for block in blocks]

    def _content(self, content: JSONValue, head: Fields, path: str) -> list[KnownPart]:
        """The parts; one of a kind that no part is becomes a message item of its own, for this dialect alone."""
        given = [content] if isinstance(content, str) else expect(content, list, path)
        parts: list[KnownPart] = []
        for index, each in enumerate(given):
            read = self.history.part(each, _LEAVES, f"{path}[{index}]")
            block = {**head, "content": [each]} if head else each
            parts.append(read or OpaquePart(dialect=self.history.scope.target.dialect, block=block))
        return parts

    def call(self, item: Fields, path: str) -> None:
        """A call of an option."""
        expect_name(item.get("name"), f"{path}.name")
        if not text(item.get("call_id")):
            self.history.lose("synthesized", f"{path}.call_id", "it is missing; one is made up")
        self.other(item, path)

    def output(self, item: Fields, path: str) -> None:
        """The result of a call: a text, or texts and media."""
        self.flush()
        call_id, said = expect_name(item.get("call_id"), f"{path}.call_id"), item.get("output")
        self.history.lose_unknown(item, {"type", "call_id", "output"}, path, _NO_PLACE)
        self.history.answer(call_id, said if isinstance(said, str) else self._content(said, {}, f"{path}.output"), path)

    def reference(self, item: Fields, path: str) -> None:
        """An item that only the vendor holds."""
        shown = one_line(ascii(item.get("id")), 80)
        self.history.lose("dropped", path, f"only the vendor holds the item {shown}; give the item itself")

    def other(self, item: Fields, path: str) -> None:
        """Any other item: what the model or the vendor's server did, or what a user's own program answered."""
        _, half = PAIRS.get(text(item.get("type")), (None, None))
        is_output = half == "closes" and item.get("execution") != "server"
        if not is_output and item.get("role", "assistant") == "assistant":
            self.said += item_blocks(item, self.history.scope)
            return
        self.flush()
        self.history.say("user", [opaque_item(item)], path)


_ITEMS: Mapping[str, Callable[[_Items, Fields, str], None]] = {
    "message": _Items.message,
    "function_call": _Items.call,
    "function_call_output": _Items.output,
    "item_reference": _Items.reference,
}
"""Type of an item → what reads it."""


def _bare(block: KnownPart) -> KnownPart:
    """A text of the assistant's that is nothing but its characters, as such; any other part as it is."""
    if not isinstance(block, TextPart):
        return block
    says_more = block.citations or any(without(fields(fields(block.state).get("part")), "type").values())
    return block if says_more else TextPart(text=block.text)


def _settings(history: RequestHistory, found: Fields) -> None:
    for index, tool in enumerate(listed(found, "tools")):
        is_function = fields(tool).get("type") == "function"
        history.offer(tool, tool if is_function else None, ResponsesOptionHints, f"tools[{index}]")
    for name, value in found.items():
        if name in _READERS:
            if value is not None:
                _READERS[name](history, value)
        elif name in _READ or (value is None and name in _NEUTRAL.keys() | ResponsesSettings.model_fields.keys()):
            continue
        elif name in _NEUTRAL:
            history.put(_NEUTRAL[name], value, name)
        elif name in _ELSEWHERE:
            history.put_extra(name, value)
        else:
            history.put_vendor(name, value)
    read_streaming(history, found)


def _choice(history: RequestHistory, choice: JSONValue) -> None:
    found = fields(choice)
    name = text(found.get("name")) if found.keys() == {"type", "name"} else ""
    if not history.choose(choice, name):
        history.put_vendor("tool_choice", choice)


def _reasoning(history: RequestHistory, reasoning: JSONValue) -> None:
    found: dict[str, Any] = expect(reasoning, dict, "reasoning")
    if history.takes("reasoning_effort", found.get("effort")):
        history.put("reasoning_effort", found["effort"], "reasoning")
        found = without(found, "effort")
    if further := {name: value for name, value in found.items() if value is not None}:
        history.put_vendor("reasoning", further)


def _text(history: RequestHistory, wanted: JSONValue) -> None:
    """How the text shall be; whole and verbatim where a part of it has no neutral name."""
    found = expect(wanted, dict, "text")
    form, verbosity = fields(found.get("format")), found.get("verbosity")
    is_known = not found.keys() - _TEXT_FORMATS and form.get("type", "json_schema") == "json_schema"
    if not is_known or (form and not history.hold_to_format(form, "text.format")):
        history.put_extra("text", wanted)
    elif verbosity is not None:
        history.put_vendor("verbosity", verbosity)


_READERS: Mapping[str, Callable[[RequestHistory, JSONValue], None]] = {
    "tool_choice": _choice,
    "reasoning": _reasoning,
    "text": _text,
}
_READ = frozenset({"model", "input", "instructions", "tools", "stream", "stream_options"})
"""Fields that are read elsewhere."""
_ELSEWHERE = frozenset({"verbosity"})
"""Names of vendor settings that mean another field than the one at a request's top."""
