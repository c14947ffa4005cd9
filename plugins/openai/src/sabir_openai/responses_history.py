"""A stored Responses request → messages, options and settings.

    instructions              a leading system message, which renders as the first item of `input` (loss: relocated)
    system, developer, user   one message each                 a string `input` is a user message
    the model's items         as from decoding a response, with the scope's policy and the target's origin
    function_call_output      a result of the option that its call names
    every other item          an opaque part; outputs that the user's own program created are in user messages

A reference to an item that only the vendor stores is a loss, and so is the pairing of a result with such a call.
Messages get no role hints, because their policies render to the same roles.
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
    """Decodes a stored request of `openai.responses`. Consecutive items of the model are grouped into messages as in a
    reply.
    """

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
        """Read the field `instructions`, which becomes the leading system message."""
        if given:
            self.add_message("system", [TextPart(text=History.expect(given, str, "instructions"))], "instructions")
            self.add_loss("relocated", "instructions", "the instructions became the first message of the input")

    def input(self, given: JSONValue) -> None:
        """Read the field `input`: a list of items, or the user's text. It may be missing if the request refers to
        stored state.
        """
        if isinstance(given, str):
            self.add_message("user", [TextPart(text=given)], "input")
        elif given is not None or not any(self.found.get(name) for name in _STORED):
            self.read_messages(given)
            self._flush()

    def read_message(self, message: Fields, path: str) -> None:
        """Read one item. Without a type, it is a message if it has a role, or a reference if it has an id. Raises
        HistoryInvalid if it has none of them.
        """
        kind = text_or_empty(message.get("type"))
        kind = kind or ("message" if "role" in message else "item_reference" if "id" in message else "")
        if not kind:
            raise HistoryInvalid(f"{path} has neither a type, a role nor an id; expected an input item")
        if kind == "message":
            super().read_message(message, path)
        else:
            _ITEMS.get(kind, _History.other)(self, message, path)

    def _flush(self) -> None:
        """Add the messages of the model's items that were read since the last call."""
        if self.done:
            self.extend(self.done, "input")
        self.done = []

    def said(self, item: Fields, path: str) -> None:
        """Add a message with the role system, developer or user. Content of an unknown type becomes an opaque part."""
        self._flush()
        self.add_losses_of_unknown_fields(item, {"role", "content"}, path, _NO_PLACE)
        policy, head = "user" if item["role"] == "user" else "system", without_fields(item, "content")
        parts = self.parts(item.get("content"), f"{path}.content", lambda each: {**head, "content": [each]})
        self.add_message(policy, parts, path)

    def assistant(self, item: Fields, path: str) -> None:
        """Read an assistant message. If the message has further fields, such as an id, its parts keep them as state.

        An empty message is dropped with a loss.
        """
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
        """Read a call of an option. Raises HistoryInvalid without a name."""
        History.expect_name(item.get("name"), f"{path}.name")
        if not text_or_empty(item.get("call_id")):
            self.add_loss("synthesized", f"{path}.call_id", "it is missing, so one was generated")
        self.other(item, path)

    def output(self, item: Fields, path: str) -> None:
        """Add the result of a call: a text, or texts and media. Raises HistoryInvalid without a call id."""
        self._flush()
        call_id, said = History.expect_name(item.get("call_id"), f"{path}.call_id"), item.get("output")
        calls = (each.call for each in reversed(self.messages) if each.call and each.call.invocation_id == call_id)
        state = object_or_empty(call.state) if (call := next(calls, None)) else {}
        repeated = {name for name in REPEATED if item.get(name) == state.get(name)}
        self.add_losses_of_unknown_fields(item, {"type", "call_id", "output", "name"} | repeated, path, _NO_PLACE)
        parts = said if isinstance(said, str) else self.parts(said, f"{path}.output")
        self.add_result(call_id, parts, path, text_or_empty(item.get("name")))

    def reference(self, item: Fields, path: str) -> None:
        """Report an item that only the vendor stores as a loss."""
        shown = one_line(ascii(item.get("id")), 80)
        self.add_loss(
            "dropped", path, f"only the vendor's server stores the item {shown}; replace the reference with the item"
        )

    def other(self, item: Fields, path: str) -> None:
        """Read any other item. An output of the user's own program and an item with another role than "assistant"
        become user messages; every other item belongs to the model.
        """
        _, half = PAIRS.get(text_or_empty(item.get("type")), (None, None))
        is_output = half == "closes" and item.get("execution") != "server"
        if not is_output and item.get("role", "assistant") == "assistant":
            self.done += item_blocks(item, self.scope)
            return
        self._flush()
        self.add_message("user", [opaque_item(item)], path)

    def tools(self, given: JSONValue) -> None:
        """Read the field `tools`: options, and the vendor's own tools."""
        for index, tool in enumerate(History.expect(given, list, "tools")):
            declared = tool if object_or_empty(tool).get("type") == "function" else None
            self.offer(tool, declared, ResponsesOptionHints, f"tools[{index}]")

    def choice(self, choice: JSONValue) -> None:
        """Read the field `tool_choice`. A choice that no neutral setting can express becomes a vendor setting."""
        found = object_or_empty(choice)
        if not self.set_option_choice(
            choice, text_or_empty(found.get("name")) if found.keys() == {"type", "name"} else ""
        ):
            self.set_vendor_setting("tool_choice", choice)

    def reasoning(self, reasoning: JSONValue) -> None:
        """Read the field `reasoning`. The effort becomes a neutral setting, and all other fields a vendor setting."""
        found: dict[str, Any] = History.expect(reasoning, dict, "reasoning")
        if self.accepts_setting("reasoning_effort", found.get("effort")):
            self.set_setting("reasoning_effort", found["effort"], "reasoning")
            found = without_fields(found, "effort")
        if further := {name: value for name, value in found.items() if value is not None}:
            self.set_vendor_setting("reasoning", further)

    def text_settings(self, wanted: JSONValue) -> None:
        """Read the field `text`: the response format and `verbosity`. Other fields go to `extra_body`, within
        `text`.
        """
        for name, value in History.expect(wanted, dict, "text").items():
            if name == "format" and self._hold_to(object_or_empty(value)):
                continue
            if name == "verbosity" and value is not None:
                self.set_vendor_setting(name, value, within="text")
            elif value is not None:
                self.set_extra_body(name, value, within="text")

    def _hold_to(self, form: Fields) -> bool:
        """Set the response format. Return False if no neutral setting can express it. {} is the default."""
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
"""Type of an item other than a message → the function that reads such items; for all others, `_History.other`."""
decode_history = _History.decode


def _bare(block: Block) -> Block:
    """Return a text part without its state if neither the state nor the citations contain anything; other blocks
    unchanged.
    """
    if not isinstance(block, TextPart):
        return block
    says_more = block.citations or any(
        without_fields(object_or_empty(object_or_empty(block.state).get("part")), "type").values()
    )
    return block if says_more else TextPart(text=block.text)
