"""Shared code of both dialects' stored-request readers: hints and strict declarations.

a function declaration ──offer──▶ an option, or a vendor's own tool
a content part         ──part───▶ a part; some of its fields become hints
"""

from collections.abc import Mapping
from typing import ClassVar

from pydantic import BaseModel
from sabir.authoring import Fields, History, JSONValue, KnownPart, fields, text, without

from sabir_openai.schema import make_strict
from sabir_openai.settings import FileHints, ImageHints, MediaHints

_HINTS: Mapping[str, type[BaseModel]] = {
    "image_url": ImageHints,
    "input_audio": MediaHints,
    "file": MediaHints,
    "input_image": ImageHints,
    "input_file": FileHints,
}
"""Type of a content part → its hints, which are fields of the part; chat's `detail` is in the object of that name."""
_OPTION_FIELDS = frozenset({"type", "name", "description", "parameters"})
_FORMAT_FIELDS = frozenset({"type", "name", "description", "schema", "strict"})


class RequestHistory(History):
    """A decoded history of one of OpenAI's dialects."""

    streaming = ("stream", "stream_options")
    says_nothing: ClassVar = {
        "async": (False,),
        "defer_loading": (False,),
        "detail": ("auto",),
        "status": ("completed",),
        "type": ("message", "function"),
    }

    def part(self, content: JSONValue, path: str) -> KnownPart | None:
        """As in every history; the part of a medium gets its hints."""
        whole = fields(content)
        kind = text(whole.get("type"))
        if kind not in _HINTS:
            return super().part(content, path)
        inner = whole.get(kind)
        place = inner if isinstance(inner, dict) else whole
        hints = self._hints({**whole, "detail": place.get("detail")}, _HINTS[kind])
        bare = without(whole, *hints.keys() - {"detail"})
        if "detail" in hints:
            bare = {**bare, kind: without(inner, "detail")} if place is inner else without(bare, "detail")
        part = super().part(bare, path)
        return part.model_copy(update={"vendor": {self.scope.target.provider: hints}}) if part and hints else part

    def _hints(self, found: Fields, model: type[BaseModel]) -> Fields:
        """The fields that are hints of a model and have a value."""
        given = {name: found[name] for name, field in model.model_fields.items() if name in found and not field.exclude}
        return {
            name: value
            for name, value in given.items()
            if value not in self.says_nothing.get(name, ()) and self.scope.read_hints({name: value}, model)
        }

    def offer(self, tool: JSONValue, declared: JSONValue, model: type[BaseModel], path: str) -> None:
        """Add the option of a declaration, with that model's hints; other declarations stay a vendor's own tools."""
        found = fields(declared)
        hints = self._hints(found, model)
        strict = make_strict(fields(found.get("parameters")) or {"type": "object", "properties": {}})
        said = without(hints, "strict") if hints.get("strict") is (strict.strict and not strict.reasons) else hints
        vendor = {self.scope.target.provider: said} if said else None
        name, description = text(found.get("name")), text(found.get("description"))
        # A declaration that a field other than a hint loads later is not an option that every model may choose.
        is_option = bool(found) and ("defer_loading" in hints or not found.get("defer_loading"))
        if is_option and self.add_option(name, description, found.get("parameters"), vendor):
            self.lose_unknown(found, {*_OPTION_FIELDS, *hints}, path, "an option has no place for it")
        else:
            self.add_vendor_tool(tool, path)

    def hold_to_format(self, found: Fields, path: str) -> bool:
        """Set the schema that replies must match; return whether a neutral setting can express it."""
        name, description = text(found.get("name")), text(found.get("description")) or None
        if found.keys() - _FORMAT_FIELDS or not self.hold_to(name, found.get("schema"), description):
            return False
        stated = found.get("strict")
        if isinstance(stated, bool) and stated is not make_strict(found["schema"]).strict:
            reason = "rendering decides it: strict where the schema's meaning stays the same"
            self.lose("rewritten", f"{path}.strict", reason)
        return True
