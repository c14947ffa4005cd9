"""A stored request → messages, options and settings: the reverse of encode.py, to import requests of other programs.

    brief ─▶ policy "system"      role human ─▶ results, then policy "user"      role machine ─▶ the model

Fields that sabir cannot store are losses, or are stored unchanged in `extra_body`.
"""

from typing import Any, ClassVar

from sabir import TextPart
from sabir.authoring import Fields, History, JSONValue, object_or_empty, text_or_empty

from sabir_lantern.decode import read_block, read_part
from sabir_lantern.encode import EFFORTS, SETTINGS
from sabir_lantern.settings import LanternSettings

NO_PLACE = "a message or an option cannot store it"
LEVELS = {level: effort for effort, level in EFFORTS.items()}


class LanternHistory(History):
    """Decodes a stored request of `lantern.say`."""

    vendor_model = LanternSettings
    messages_field = "talk"
    early = ("brief",)
    neutral: ClassVar = {field: setting for setting, field in SETTINGS.items()}

    def brief(self, text: JSONValue) -> None:
        """Read the field `brief`, which becomes the leading system message."""
        self.add_message("system", [TextPart(text=History.expect(text, str, "brief"))], "brief")

    def read_message(self, message: Fields, path: str) -> None:
        """Read one turn with the method that `roles` names for its role."""
        self.add_losses_of_unknown_fields(message, {"role", "parts"}, path, NO_PLACE)
        History.expect(message.get("parts"), list, f"{path}.parts")
        super().read_message(message, path)

    def human(self, turn: Fields, path: str) -> None:
        """Add the results of a turn, then a message with its other parts."""
        rest = []
        for index, part in enumerate(turn["parts"]):
            if object_or_empty(part).get("kind") == "result":
                self._add_result(part, f"{path}.parts[{index}]")
            else:
                rest.append(read_part(part, self.scope))
        if rest or not turn["parts"]:
            self.add_message("user", rest, path)

    def _add_result(self, part: Fields, path: str) -> None:
        call_id = History.expect_name(part.get("call"), f"{path}.call")
        self.add_losses_of_unknown_fields(part, {"kind", "call", "text", "failed"}, path, NO_PLACE)
        text, failed = text_or_empty(part.get("text")), object_or_empty(part.get("failed"))
        if not failed:
            self.add_result(call_id, text, path)
            return
        self.add_losses_of_unknown_fields(failed, {"name", "about", "again"}, f"{path}.failed", NO_PLACE)
        again = failed.get("again")
        error: dict[str, Any] = {
            "error_type": text_or_empty(failed.get("name")) or "Failed",
            "error_message": text_or_empty(failed.get("about")) or "failed",
            "retryable": again if isinstance(again, bool) else None,
        }
        self.add_result(call_id, [TextPart(text=text)] if text else [], path, is_error=True, **error)

    def machine(self, turn: Fields, path: str) -> None:
        """Add a turn of the model: its parts and option calls."""
        self.extend([read_block(each, self.scope) for each in turn["parts"]], path)

    def tools(self, tools: JSONValue) -> None:
        """Read the field `tools`: add the options. An invalid declaration is a loss."""
        for index, tool in enumerate(History.expect(tools, list, "tools")):
            path = f"tools[{index}]"
            self.add_losses_of_unknown_fields(
                History.expect(tool, dict, path), {"name", "about", "args"}, path, NO_PLACE
            )
            name, about = text_or_empty(tool.get("name")), text_or_empty(tool.get("about"))
            if not self.add_option(name, about, tool.get("args")):
                self.add_loss("dropped", path, "the declaration is not a valid option")

    def effort(self, level: JSONValue) -> None:
        """Read the field `effort`. An unknown level goes to `extra_body`."""
        if effort := LEVELS.get(text_or_empty(level)):
            self.set_setting("reasoning_effort", effort, "effort")
        else:
            self.set_extra_body("effort", level)

    readers: ClassVar = {"brief": brief, "talk": History.read_messages, "tools": tools, "effort": effort}
    roles: ClassVar = {"human": human, "machine": machine}


decode_history = LanternHistory.decode
