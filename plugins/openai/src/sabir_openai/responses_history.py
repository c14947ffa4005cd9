"""A stored Responses request → messages, options and settings.

    instructions              a leading system message, which renders as the first item of `input` (loss: relocated)
    system, developer, user   one message each                 a string `input` is a user message
    the model's items         as from decoding a response, with the scope's policy and the target's origin
    function_call_output      the result of the option that its call names
    other items               opaque parts; outputs that the user's own program created are in user messages

A reference to an item that only the vendor stores is a loss. If only the vendor stores the call of a result and the
result does not name its option, the option is called "unknown", with a loss. Messages get no role hints, because their
policies render to the same roles.
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

from sabir_openai.chat_decode import DecodedContent
from sabir_openai.chat_history import OpenAIHistory
from sabir_openai.responses_decode import PAIRS, decode_item, opaque_item
from sabir_openai.responses_encode import REPEATED_FIELDS
from sabir_openai.responses_native import read_declaration
from sabir_openai.responses_request import FIELDS
from sabir_openai.settings import OPENAI, ResponsesOptionHints, ResponsesSettings

_REFERENCES = ("prompt", "conversation", "previous_response_id")
"""Fields that refer to state that the vendor stores. A request with one of these fields may have no input."""
_NOT_STORED = "a message cannot store it"


def _read_input_image(part: Fields, scope: DecodeScope) -> MediaPart | None:
    return MediaPart.from_wire("image", text_or_empty(part.get("image_url")) or scope.file_url(part.get("file_id")))


def _read_input_file(part: Fields, scope: DecodeScope) -> MediaPart | None:
    file_data, url = text_or_empty(part.get("file_data")), text_or_empty(part.get("file_url"))
    url = DataURL.with_sniffed_type(file_data, "application/pdf") if file_data else url
    url = url or scope.file_url(part.get("file_id"))
    return MediaPart.from_wire("document", url, part.get("filename"))


_TEXT = PartReader.for_text()


class _ResponsesHistory(OpenAIHistory):
    """Decodes a stored request of `openai.responses`. Consecutive items of the model become messages as in a reply."""

    vendor_model = ResponsesSettings
    early = ("instructions", "tools")
    messages_field = "input"
    neutral: ClassVar = {**FIELDS, "parallel_tool_calls": "parallel_options"}
    verbatim = frozenset({"verbosity"})
    leaves: ClassVar = {
        **dict.fromkeys(("text", "input_text", "output_text"), PartReader.for_text()),
        "input_image": PartReader("", _read_input_image, frozenset({"image_url", "file_id"})),
        "input_file": PartReader("", _read_input_file, frozenset({"file_data", "file_url", "file_id", "filename"})),
    }

    def __init__(self, request: Fields, scope: DecodeScope) -> None:
        super().__init__(request, scope)
        self.pending_blocks: list[DecodedContent] = []

    def read_instructions(self, instructions: JSONValue) -> None:
        """Read the field `instructions`, which becomes the leading system message."""
        if instructions:
            text = History.expect(instructions, str, "instructions")
            self.add_message("system", [TextPart(text=text)], "instructions")
            self.add_loss("relocated", "instructions", "the instructions became the first message of the input")

    def read_input(self, input_field: JSONValue) -> None:
        """Read the field `input`: a list of items, or the user's text. It may be missing if the request refers to
        stored state.
        """
        if isinstance(input_field, str):
            self.add_message("user", [TextPart(text=input_field)], "input")
        elif input_field is not None or not any(self.found.get(name) for name in _REFERENCES):
            self.read_messages(input_field)
            self._add_pending_blocks()

    def read_message(self, message: Fields, path: str) -> None:
        """Read one item. An item without a type is a message if it has a role, or a reference if it has an id. Raises
        HistoryInvalid for an item without type, role and id.
        """
        kind = text_or_empty(message.get("type"))
        kind = kind or ("message" if "role" in message else "item_reference" if "id" in message else "")
        if not kind:
            raise HistoryInvalid(f"{path} has neither a type, a role nor an id; expected an input item")
        if kind == "message":
            super().read_message(message, path)
        else:
            _ITEM_READERS.get(kind, _ResponsesHistory.read_other_item)(self, message, path)

    def _add_pending_blocks(self) -> None:
        """Add the messages of the model's items that were read since the last call."""
        if self.pending_blocks:
            self.extend(self.pending_blocks, "input")
        self.pending_blocks = []

    def read_input_message(self, item: Fields, path: str) -> None:
        """Add a message with the role system, developer or user. Content of an unknown type becomes an opaque part."""
        self._add_pending_blocks()
        self.add_losses_of_unknown_fields(item, {"role", "content"}, path, _NOT_STORED)
        policy, head = "user" if item["role"] == "user" else "system", without_fields(item, "content")
        parts = self.parts(item.get("content"), f"{path}.content", lambda each: {**head, "content": [each]})
        self.add_message(policy, parts, path)

    def read_assistant(self, item: Fields, path: str) -> None:
        """Read an assistant message. Further fields of the message, such as an id, become the state of its parts.

        An empty message is dropped with a loss.
        """
        content = item.get("content")
        parts = [content] if isinstance(content, str) else History.expect(content, list, f"{path}.content")
        parts = [{"type": "output_text", "text": part} if isinstance(part, str) else part for part in parts]
        blocks = decode_item({**item, "type": "message", "content": parts}, self.scope) if parts else []
        if not any(block.text if isinstance(block, TextPart) else block for block in blocks):
            self.add_loss("dropped", path, "the message is empty")
            return
        has_state = any(item.get(name) for name in item.keys() - {"type", "role", "content"})
        self.pending_blocks += blocks if has_state else map(_drop_empty_state, blocks)

    def read_function_call(self, item: Fields, path: str) -> None:
        """Read a call of an option. Raises HistoryInvalid without a name."""
        History.expect_name(item.get("name"), f"{path}.name")
        if not text_or_empty(item.get("call_id")):
            self.add_loss("synthesized", f"{path}.call_id", "it is missing, so one was generated")
        self.read_other_item(item, path)

    def read_function_call_output(self, item: Fields, path: str) -> None:
        """Add the result of a call: a text, or texts and media. Raises HistoryInvalid without a call id."""
        self._add_pending_blocks()
        call_id, content = History.expect_name(item.get("call_id"), f"{path}.call_id"), item.get("output")
        calls = (each.call for each in reversed(self.messages) if each.call and each.call.invocation_id == call_id)
        state = object_or_empty(call.state) if (call := next(calls, None)) else {}
        repeated = {name for name in REPEATED_FIELDS if item.get(name) == state.get(name)}
        self.add_losses_of_unknown_fields(item, {"type", "call_id", "output", "name"} | repeated, path, _NOT_STORED)
        parts = content if isinstance(content, str) else self.parts(content, f"{path}.output")
        self.add_result(call_id, parts, path, text_or_empty(item.get("name")))

    def read_item_reference(self, item: Fields, path: str) -> None:
        """Report an item that only the vendor stores as a loss."""
        item_id = one_line(ascii(item.get("id")), 80)
        reason = f"only the vendor's server stores the item {item_id}; replace the reference with the item"
        self.add_loss("dropped", path, reason)

    def read_other_item(self, item: Fields, path: str) -> None:
        """Read any other item. An output of the user's own program, and an item with another role than "assistant",
        become user messages. All other items belong to the model.
        """
        _, pair = PAIRS.get(text_or_empty(item.get("type")), (None, None))
        is_output = pair == "closes" and item.get("execution") != "server"
        if not is_output and item.get("role", "assistant") == "assistant":
            self.pending_blocks += decode_item(item, self.scope)
            return
        self._add_pending_blocks()
        self.add_message("user", [opaque_item(item)], path)

    def read_tools(self, tools: JSONValue) -> None:
        """Read the field `tools`: options, and the vendor's own tools."""
        for index, tool in enumerate(History.expect(tools, list, "tools")):
            provider, include = self.scope.target.provider, self.found.get("include")
            is_own = provider in OPENAI and isinstance(tool, dict)
            if is_own and self.add_native(read_declaration(tool, include, provider)):
                continue
            declared = tool if object_or_empty(tool).get("type") == "function" else None
            self.add_declaration(tool, declared, ResponsesOptionHints, f"tools[{index}]")

    def read_tool_choice(self, choice: JSONValue) -> None:
        """Read the field `tool_choice`. A choice that no neutral setting can express becomes a vendor setting."""
        fields = object_or_empty(choice)
        name = text_or_empty(fields.get("name")) if fields.keys() == {"type", "name"} else ""
        if not self.set_option_choice(choice, name):
            self.set_vendor_setting("tool_choice", choice)

    def read_reasoning(self, reasoning: JSONValue) -> None:
        """Read the field `reasoning`. The effort becomes a neutral setting, and all other fields a vendor setting."""
        fields: dict[str, Any] = History.expect(reasoning, dict, "reasoning")
        if self.accepts_setting("reasoning_effort", fields.get("effort")):
            self.set_setting("reasoning_effort", fields["effort"], "reasoning")
            fields = without_fields(fields, "effort")
        if further := {name: value for name, value in fields.items() if value is not None}:
            self.set_vendor_setting("reasoning", further)

    def read_text(self, wanted: JSONValue) -> None:
        """Read the field `text`: the response format and `verbosity`. Other fields go to `extra_body`, within
        `text`.
        """
        for name, value in History.expect(wanted, dict, "text").items():
            if name == "format" and self._read_format(object_or_empty(value)):
                continue
            if name == "verbosity" and value is not None:
                self.set_vendor_setting(name, value, within="text")
            elif value is not None:
                self.set_extra_body(name, value, within="text")

    def _read_format(self, form: Fields) -> bool:
        """Set the response format. Return False if no neutral setting can express it. {} means the default format."""
        read = self.read_schema_format if form.get("type") == "json_schema" else self.read_plain_format
        return read(form, "text.format") or not form

    readers: ClassVar = {
        "instructions": read_instructions, "input": read_input, "tools": read_tools, "tool_choice": read_tool_choice,
        "reasoning": read_reasoning, "text": read_text,
    }  # fmt: skip
    roles: ClassVar = {
        "assistant": read_assistant, **dict.fromkeys(("developer", "system", "user"), read_input_message),
    }  # fmt: skip


_ITEM_READERS = {
    "function_call": _ResponsesHistory.read_function_call, "item_reference": _ResponsesHistory.read_item_reference,
    "function_call_output": _ResponsesHistory.read_function_call_output,
}  # fmt: skip
"""Type of an item other than a message → the method that reads such items. `read_other_item` reads all others."""
decode_history = _ResponsesHistory.decode


def _drop_empty_state(block: DecodedContent) -> DecodedContent:
    """Return a text part without its state if the content part had only a type and a text. Return other blocks
    unchanged.
    """
    if not isinstance(block, TextPart):
        return block
    has_more = block.citations or any(
        without_fields(object_or_empty(object_or_empty(block.state).get("part")), "type").values()
    )
    return block if has_more else TextPart(text=block.text)
