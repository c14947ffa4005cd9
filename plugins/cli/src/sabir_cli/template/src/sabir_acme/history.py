"""A stored request → messages, options and settings: the reverse of encode.py, to import requests of other programs.

    instructions ─▶ policy "system"      by user ─▶ policy "user"      by model ─▶ the model      by option ─▶ results

Change: `readers` and `roles`, and their methods. Fields that sabir cannot store are losses, or are stored unchanged in
`extra_body`.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

from sabir import TextPart
from sabir.authoring import History, JSONValue, object_or_empty, text_or_empty

from sabir_acme.decode import read_block, read_part
from sabir_acme.encode import SETTINGS
from sabir_acme.settings import AcmeSettings

NO_PLACE = "a message or an option cannot store it"


class AcmeHistory(History):
    """Decodes a stored request of `acme.chat`."""

    vendor_model = AcmeSettings
    early = ("instructions", "tools")
    messages_field = "turns"
    neutral: ClassVar = {field: setting for setting, field in SETTINGS.items()}

    def instructions(self, text: JSONValue) -> None:
        """Read the field `instructions`, which becomes the leading system message."""
        self.add_message("system", [TextPart(text=History.expect(text, str, "instructions"))], "instructions")

    def read_message(self, message: Mapping[str, Any], path: str) -> None:
        """Read one turn with the method that `roles` names for its field `by`."""
        self.add_losses_of_unknown_fields(message, {"by", "parts"}, path, NO_PLACE)
        History.expect(message.get("parts"), list, f"{path}.parts")
        super().read_message({"role": message.get("by"), **message}, path)

    def user(self, turn: Mapping[str, Any], path: str) -> None:
        """Add a turn of the user."""
        self.add_message("user", [read_part(each, self.scope) for each in turn["parts"]], path)

    def model_turn(self, turn: Mapping[str, Any], path: str) -> None:
        """Add a turn of the model: its parts and option calls."""
        self.extend([read_block(each, self.scope) for each in turn["parts"]], path)

    def option(self, turn: Mapping[str, Any], path: str) -> None:
        """Add the results of option calls. Raises HistoryInvalid for a result without an id."""
        for index, result in enumerate(turn["parts"]):
            place = f"{path}.parts[{index}]"
            call_id = History.expect_name(History.expect(result, dict, place).get("id"), f"{place}.id")
            self.add_losses_of_unknown_fields(result, {"type", "id", "parts", "error"}, place, NO_PLACE)
            parts = [read_part(each, self.scope) for each in History.list_at(result, "parts")]
            only, error = parts[0] if len(parts) == 1 else None, object_or_empty(result.get("error"))
            if not error:
                text = only.text if isinstance(only, TextPart) and only.state is None else None
                self.add_result(call_id, parts if text is None else text, place)
                continue
            self.add_losses_of_unknown_fields(error, {"type", "message", "retryable"}, f"{place}.error", NO_PLACE)
            failure = {f"error_{name}": text_or_empty(error.get(name)) or "failed" for name in ("type", "message")}
            self.add_result(call_id, parts, place, is_error=True, retryable=error.get("retryable"), **failure)

    def tools(self, tools: JSONValue) -> None:
        """Read the field `tools`: add the options. An invalid declaration is a loss."""
        for index, tool in enumerate(History.expect(tools, list, "tools")):
            path = f"tools[{index}]"
            self.add_losses_of_unknown_fields(
                History.expect(tool, dict, path), {"name", "description", "parameters"}, path, NO_PLACE
            )
            if not self.add_option(
                text_or_empty(tool.get("name")), text_or_empty(tool.get("description")), tool.get("parameters")
            ):
                self.add_loss("dropped", path, "the declaration is not a valid option")

    def choice(self, choice: JSONValue) -> None:
        """Read the field `choice`: the option choice. An unknown choice goes to `extra_body`."""
        if not self.set_option_choice(choice, text_or_empty(object_or_empty(choice).get("name"))):
            self.set_extra_body("choice", choice)

    def shape(self, shape: JSONValue) -> None:
        """Read the field `shape`: the schema that replies must match. An invalid one goes to `extra_body`."""
        fields = object_or_empty(shape)
        if fields and not self.set_response_format(
            text_or_empty(fields.get("name")), fields.get("schema"), fields.get("description")
        ):
            self.set_extra_body("shape", shape)

    readers: ClassVar = {
        "instructions": instructions, "turns": History.read_messages, "tools": tools, "choice": choice, "shape": shape,
    }  # fmt: skip
    roles: ClassVar = {"user": user, "model": model_turn, "option": option}


decode_history = AcmeHistory.decode
