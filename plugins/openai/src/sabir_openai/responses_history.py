"""A stored Responses request → messages, options and settings.

    instructions              a leading system message; rendered back it is the first item of `input` (loss: relocated)
    system, developer, user   a message each                   a string `input` is the user's
    the model's items         as from decoding a response, with the scope's policy and this scope's origin
    function_call_output      a result of the option that its call names
    every other item          an opaque part; outputs of the user's own program belong to the user

A reference to an item that only the vendor stores is a loss, and so is the pairing of a result with such a call.
Messages need no role hints: their policies render to the same roles.
"""

from typing import Any, ClassVar

from sabir import MediaPart, TextPart
from sabir.authoring import (
    DataURL,
    DecodeScope,
    Fields,
    History,
    JSONValue,
    PartReader,
    object_or_empty,
    one_line,
    text_or_empty,
    without_fields,
)
from sabir.errors import HistoryInvalid

from sabir_openai.chat_decode import Block
from sabir_openai.chat_history import RequestHistory
from sabir_openai.responses_decode import PAIRS, item_blocks, opaque_item
from sabir_openai.responses_encode import REPEATED
from sabir_openai.responses_request import FIELDS
from sabir_openai.settings import ResponsesOptionHints, ResponsesSettings

_STORED = ("prompt", "conversation", "previous_response_id")
"""Fields that refer to state that the vendor stores; with one of them a request may have no input."""
_NO_PLACE = "a message cannot store it"


def _image(found: Fields, scope: DecodeScope) -> MediaPart | None:
    return MediaPart.from_wire("image", text_or_empty(found.get("image_url")) or scope.file_url(found.get("file_id")))


def _file(found: Fields, scope: DecodeScope) -> MediaPart | None:
    data, url = text_or_empty(found.get("file_data")), text_or_empty(found.get("file_url"))
    url = DataURL.with_sniffed_type(data, "application/pdf") if data else url or scope.file_url(found.get("file_id"))
    return MediaPart.from_wire("document", url, found.get("filename"))


_TEXT = PartReader.for_text()


class _History(RequestHistory):
    """A history of this dialect; consecutive items of the model become messages together, as in a reply."""

    vendor_model = ResponsesSettings
    messages_field = "input"
    neutral: ClassVar = {**FIELDS, "parallel_tool_calls": "parallel_options"}
    verbatim = frozenset({"verbosity"})
    leaves: ClassVar = {
        **dict.fromkeys(("text", "input_text", "output_text"), PartReader.for_text()),
        "input_image": PartReader("", _image, frozenset({"image_url", "file_id"})),
        "input_file": PartReader("", _file, frozenset({"file_data", "file_url", "file_id", "filename"})),
    }

    def __init__(self, found: Fields, scope: DecodeScope) -> None:
        super().__init__(found, scope)
        self.done: list[Block] = []

    def instructions(self, given: JSONValue) -> None:
        """The leading system message."""
        if given:
            self.add_message("system", [TextPart(text=History.expect(given, str, "instructions"))], "instructions")
            self.add_loss("relocated", "instructions", "they were moved to the first message of the input")

    def input(self, given: JSONValue) -> None:
        """All items, or the user's text."""
        if isinstance(given, str):
            self.add_message("user", [TextPart(text=given)], "input")
        elif given is not None or not any(self.found.get(name) for name in _STORED):
            self.read_messages(given)
            self._flush()

    def read_message(self, message: Fields, path: str) -> None:
        """One item; an item without a type is a message, or a reference."""
        kind = text_or_empty(message.get("type"))
        kind = kind or ("message" if "role" in message else "item_reference" if "id" in message else "")
        if not kind:
            raise HistoryInvalid(f"{path} has neither type nor role; expected an input item")
        if kind == "message":
            super().read_message(message, path)
        else:
            _ITEMS.get(kind, _History.other)(self, message, path)

    def _flush(self) -> None:
        """Turn the model's consecutive items into messages."""
        if self.done:
            self.extend(self.done, "input")
        self.done = []

    def said(self, item: Fields, path: str) -> None:
        """Instructions, under either name, or what the user says; content of an unknown kind is an item of its own."""
        self._flush()
        self.add_losses_of_unknown_fields(item, {"role", "content"}, path, _NO_PLACE)
        policy, head = "user" if item["role"] == "user" else "system", without_fields(item, "content")
        parts = self.parts(item.get("content"), f"{path}.content", lambda each: {**head, "content": [each]})
        self.add_message(policy, parts, path)

    def assistant(self, item: Fields, path: str) -> None:
        """A message of the model; if it has more fields than its text, it is the vendor's own and keeps its form."""
        content = item.get("content")
        parts = [content] if isinstance(content, str) else History.expect(content, list, f"{path}.content")
        parts = [{"type": "output_text", "text": part} if isinstance(part, str) else part for part in parts]
        blocks = item_blocks({**item, "type": "message", "content": parts}, self.scope) if parts else []
        if not any(block.text if isinstance(block, TextPart) else block for block in blocks):
            self.add_loss("dropped", path, "the message is empty")
            return
        says_more = any(item.get(name) for name in item.keys() - {"type", "role", "content"})
        self.done += blocks if says_more else map(_bare, blocks)

    def call(self, item: Fields, path: str) -> None:
        """A call of an option."""
        History.expect_name(item.get("name"), f"{path}.name")
        if not text_or_empty(item.get("call_id")):
            self.add_loss("synthesized", f"{path}.call_id", "it is missing, so one was generated")
        self.other(item, path)

    def output(self, item: Fields, path: str) -> None:
        """The result of a call: a text, or texts and media."""
        self._flush()
        call_id, said = History.expect_name(item.get("call_id"), f"{path}.call_id"), item.get("output")
        calls = (each.call for each in reversed(self.messages) if each.call and each.call.invocation_id == call_id)
        state = object_or_empty(call.state) if (call := next(calls, None)) else {}
        repeated = {name for name in REPEATED if item.get(name) == state.get(name)}
        self.add_losses_of_unknown_fields(item, {"type", "call_id", "output", "name"} | repeated, path, _NO_PLACE)
        parts = said if isinstance(said, str) else self.parts(said, f"{path}.output")
        self.add_result(call_id, parts, path, text_or_empty(item.get("name")))

    def reference(self, item: Fields, path: str) -> None:
        """An item that only the vendor stores."""
        shown = one_line(ascii(item.get("id")), 80)
        self.add_loss("dropped", path, f"only the vendor's server stores the item {shown}; pass the item itself")

    def other(self, item: Fields, path: str) -> None:
        """Any other item: from the model or the vendor's server, or an answer of the user's own program."""
        _, half = PAIRS.get(text_or_empty(item.get("type")), (None, None))
        is_output = half == "closes" and item.get("execution") != "server"
        if not is_output and item.get("role", "assistant") == "assistant":
            self.done += item_blocks(item, self.scope)
            return
        self._flush()
        self.add_message("user", [opaque_item(item)], path)

    def tools(self, given: JSONValue) -> None:
        """Options, and tools of the vendor's own."""
        for index, tool in enumerate(History.expect(given, list, "tools")):
            declared = tool if object_or_empty(tool).get("type") == "function" else None
            self.offer(tool, declared, ResponsesOptionHints, f"tools[{index}]")

    def choice(self, choice: JSONValue) -> None:
        """The option that the model must choose."""
        found = object_or_empty(choice)
        if not self.set_option_choice(
            choice, text_or_empty(found.get("name")) if found.keys() == {"type", "name"} else ""
        ):
            self.set_vendor_setting("tool_choice", choice)

    def reasoning(self, reasoning: JSONValue) -> None:
        """How much the model reasons; what stands beside the effort stays the vendor's."""
        found: dict[str, Any] = History.expect(reasoning, dict, "reasoning")
        if self.accepts_setting("reasoning_effort", found.get("effort")):
            self.set_setting("reasoning_effort", found["effort"], "reasoning")
            found = without_fields(found, "effort")
        if further := {name: value for name, value in found.items() if value is not None}:
            self.set_vendor_setting("reasoning", further)

    def text_settings(self, wanted: JSONValue) -> None:
        """Read how the text shall be; a field without a neutral name stays verbatim, within `text`."""
        for name, value in History.expect(wanted, dict, "text").items():
            if name == "format" and self._hold_to(object_or_empty(value)):
                continue
            if name == "verbosity" and value is not None:
                self.set_vendor_setting(name, value, within="text")
            elif value is not None:
                self.set_extra_body(name, value, within="text")

    def _hold_to(self, form: Fields) -> bool:
        """Set the format of replies; return whether a neutral setting can express it, as it can the default."""
        is_schema = form.get("type") == "json_schema"
        is_set = self.hold_to_format(form, "text.format") if is_schema else self.hold_to_type(form, "text.format")
        return is_set or not form

    readers: ClassVar = {
        "instructions": instructions, "input": input, "tools": tools, "tool_choice": choice, "reasoning": reasoning,
        "text": text_settings,
    }  # fmt: skip
    roles: ClassVar = {"assistant": assistant, "developer": said, "system": said, "user": said}


_ITEMS = {
    "function_call": _History.call, "function_call_output": _History.output, "item_reference": _History.reference,
}  # fmt: skip
"""Type of an item other than a message → the function that reads it."""
decode_history = _History.decode


def _bare(block: Block) -> Block:
    """A text of the assistant without other fields, as plain text; any other block unchanged."""
    if not isinstance(block, TextPart):
        return block
    says_more = block.citations or any(
        without_fields(object_or_empty(object_or_empty(block.state).get("part")), "type").values()
    )
    return block if says_more else TextPart(text=block.text)
