"""A stored Chat Completions request → messages, options and settings.

    system, developer ─▶ policy "system"      user ─▶ policy "user"      assistant ─▶ the scope's policy
    tool              ─▶ a result of the option that its call names

Assistant messages get the origin of the target model, so that they are sent back unchanged. Messages get no role hints,
because their policies render to the same roles. A message's `name` is a loss. The older fields `functions` and
`function_call` and the role `function` become options, calls and results, and render in today's form (loss: rewritten).
"""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar
from uuid import uuid4

from pydantic import BaseModel, ValidationError
from sabir import MediaPart, OptionCallPayload
from sabir.authoring import (
    DataURL,
    DecodeScope,
    Fields,
    FrozenDict,
    History,
    JSONValue,
    KnownPart,
    PartReader,
    Row,
    fit_schema,
    object_or_empty,
    text_or_empty,
    without_fields,
)
from sabir.errors import HistoryInvalid

from sabir_openai.chat_decode import message_blocks
from sabir_openai.chat_request import FIELDS
from sabir_openai.schema import STRICT, is_strict_already
from sabir_openai.settings import ChatOptionHints, ChatSettings, FileHints, ImageHints, MediaHints, settings_with

_SOUNDS: Mapping[str, str] = {"mp3": "audio/mpeg", "wav": "audio/wav"}
_CHOSEN: Mapping[str, Sequence[str]] = {"function": ("name", "arguments"), "custom": ("name", "input")}
"""Type of a call → the known fields of the object under that type. Its other fields are losses."""
_OLDER = "the deprecated form was converted to today's form (tools, tool_choice, tool_calls)"
_NO_PLACE = "a message cannot store it"
_NO_CHOICE = "an option choice cannot store it"


_HINTS: Mapping[str, type[BaseModel]] = {
    "image_url": ImageHints, "input_audio": MediaHints, "file": MediaHints, "input_image": ImageHints,
    "input_file": FileHints,
}  # fmt: skip
"""Type of a content part → the model of its hints. Hints are fields of the part, except `detail` of `image_url`, which
is in the object `image_url`.
"""
_OPTION_FIELDS = frozenset({"type", "name", "description", "parameters"})
_FORMAT_FIELDS = frozenset({"type", "name", "description", "schema", "strict"})


class RequestHistory(History):
    """Decodes a stored request of one of OpenAI's dialects. Base class for both dialects."""

    streaming = ("stream", "stream_options")
    says_nothing: ClassVar = {
        "async": (False,), "defer_loading": (False,), "detail": ("auto",), "prefix": (False,), "status": ("completed",),
        "type": ("message", "function"),
    }  # fmt: skip

    def __init__(self, found: Fields, scope: DecodeScope) -> None:
        super().__init__(found, scope)
        row = Row.load_packaged("sabir_openai", scope.target.provider)
        self._own = row.own_settings if row else FrozenDict()
        self._renamed = {field: name for entry in (row.entries if row else ()) for name, field in entry.renames.items()}
        """Field of the endpoint → the neutral setting that the endpoint's row sends under this name."""
        self._makes_strict = row is None or any("strict" in entry.accepts for entry in row.entries)

    def read_setting(self, name: str, value: JSONValue) -> None:
        """Read a setting. A field that the endpoint's row renames becomes the neutral setting of that row."""
        if name in self._renamed and name not in self.neutral:
            self.set_setting(str(self._renamed[name]), value, name)
        else:
            super().read_setting(name, value)

    def set_vendor_setting(self, name: str, value: JSONValue, field: str = "", within: str = "") -> None:
        """Store a vendor setting. Valid settings that only this endpoint's row has are vendor settings too."""
        try:
            is_own = name in self._own and settings_with(self.vendor_model, self._own).model_validate({name: value})
        except ValidationError:
            is_own = False
        if is_own:
            self._vendor[name] = value
        else:
            super().set_vendor_setting(name, value, field, within)

    def part(self, content: JSONValue, path: str) -> KnownPart | None:
        """Return the part for one item of a content array. Fields of a medium that are hints become the part's
        hints.
        """
        whole = object_or_empty(content)
        kind = text_or_empty(whole.get("type"))
        if kind not in _HINTS:
            return super().part(content, path)
        inner = whole.get(kind)
        place = inner if isinstance(inner, dict) else whole
        hints = self._hints({**whole, "detail": place.get("detail")}, _HINTS[kind])
        bare = without_fields(whole, *hints.keys() - {"detail"})
        if "detail" in hints:
            bare = {**bare, kind: without_fields(inner, "detail")} if place is inner else without_fields(bare, "detail")
        part = super().part(bare, path)
        return part.model_copy(update={"vendor": {self.scope.target.provider: hints}}) if part and hints else part

    def _hints(self, found: Fields, model: type[BaseModel]) -> Fields:
        """Return the fields in `found` that are valid hints of `model` and differ from the default."""
        hints = {}
        for name, field in model.model_fields.items():
            is_default = field.exclude or found.get(name) in self.says_nothing.get(name, ())
            if name in found and not is_default and self.scope.read_hints({name: found[name]}, model):
                hints[name] = found[name]
        return hints

    def offer(self, tool: JSONValue, declared: JSONValue, model: type[BaseModel], path: str) -> bool:
        """Add the option of a declaration and return True. `model` is the model of the option's hints.

        If the declaration is not an option, add `tool` unchanged to the vendor settings and return False.
        """
        found = object_or_empty(declared)
        hints = self._hints(found, model)
        parameters = object_or_empty(found.get("parameters")) or {"type": "object", "properties": {}}
        said = without_fields(hints, "strict") if hints.get("strict") is self._default_strict(parameters) else hints
        vendor = {self.scope.target.provider: said} if said else None
        name, description = text_or_empty(found.get("name")), text_or_empty(found.get("description"))
        # `defer_loading` hides an option until a search finds it. Where the field is not a hint, the declaration stays
        # a vendor tool.
        is_option = bool(found) and ("defer_loading" in hints or not found.get("defer_loading"))
        if is_option and self.add_option(name, description, found.get("parameters"), vendor):
            self.add_losses_of_unknown_fields(found, {*_OPTION_FIELDS, *hints}, path, "an option cannot store it")
            return True
        self.add_vendor_tool(tool, path)
        return False

    def _default_strict(self, parameters: Fields) -> bool:
        """Return whether rendering makes an option with this schema strict if no hint says so."""
        return self._makes_strict and is_strict_already(parameters)

    def hold_to_type(self, form: Fields, path: str) -> bool:
        """Read a response format of the type `text` (the default) or `json_object`. Return False for another type."""
        kind = form.get("type")
        if kind not in ("text", "json_object"):
            return False
        if kind == "json_object":
            self.set_json_response()
        self.add_losses_of_unknown_fields(form, {"type"}, path, "a response format cannot store it")
        return True

    def hold_to_format(self, found: Fields, path: str) -> bool:
        """Set the schema that replies must match. Return False, and set nothing, if no neutral setting can express
        it.
        """
        name, description = text_or_empty(found.get("name")), text_or_empty(found.get("description")) or None
        if found.keys() - _FORMAT_FIELDS or not self.set_response_format(name, found.get("schema"), description):
            return False
        stated = found.get("strict")
        if isinstance(stated, bool) and stated is bool(fit_schema(found["schema"], STRICT).refusal):
            reason = "`strict` is not stored; sabir sets it in each request if the schema allows it"
            self.add_loss("rewritten", f"{path}.strict", reason)
        return True


def _image(found: Fields, scope: DecodeScope) -> MediaPart | None:
    return MediaPart.from_wire("image", text_or_empty(found.get("url")))


def _sound(found: Fields, scope: DecodeScope) -> MediaPart | None:
    form, data = text_or_empty(found.get("format")), text_or_empty(found.get("data"))
    if not form:
        return MediaPart.from_wire("audio", _url(text_or_empty(found.get("url")) or data, "audio/mpeg"))
    return MediaPart.from_wire("audio", f"data:{_SOUNDS.get(form, f'audio/{form}')};base64,{data}") if data else None


def _file(found: Fields, scope: DecodeScope) -> MediaPart | None:
    data = text_or_empty(found.get("file_data"))
    url = _url(data, "application/pdf") if data else scope.file_url(found.get("file_id"))
    return MediaPart.from_wire("document", url, found.get("filename"))


def _linked(field: str, name: str) -> PartReader:
    """Return the reader of a document whose URL or base64 is in `field`, or in `url` of the object in `field`. `name`
    is the field with the document's name.
    """

    def read(found: Fields, scope: DecodeScope) -> MediaPart | None:
        url = text_or_empty(found.get(field)) or text_or_empty(object_or_empty(found.get(field)).get("url"))
        return MediaPart.from_wire("document", _url(url, "application/pdf"), found.get(name))

    return PartReader("", read, frozenset({field, name}))


def _video(found: Fields, scope: DecodeScope) -> MediaPart | None:
    return MediaPart.from_wire("video", text_or_empty(found.get("url")))


def _url(data: str, mime: str) -> str:
    """Return a URL unchanged, and base64 as a data URL. The MIME type is detected; `mime` is the default."""
    return data if "://" in data[:32] or not data else DataURL.with_sniffed_type(data, mime)


class _History(RequestHistory):
    """Decodes a stored request of `openai.chat`. The option of a result is found by the calls before the result."""

    vendor_model = ChatSettings
    neutral: ClassVar = {
        **{field: setting for setting, field in FIELDS.items()},
        "max_tokens": "max_output_tokens",
        "parallel_tool_calls": "parallel_options",
    }
    leaves: ClassVar = {
        "text": PartReader.for_text(),
        "image_url": PartReader("image_url", _image, frozenset({"url"})),
        "input_audio": PartReader("input_audio", _sound, frozenset({"data", "format", "url"})),
        "file": PartReader("file", _file, frozenset({"file_data", "file_id", "filename"})),
        "document_url": _linked("document_url", "document_name"),
        "file_url": _linked("file_url", "file_name"),
        "video_url": PartReader("video_url", _video, frozenset({"url"})),
    }

    def __init__(self, found: Fields, scope: DecodeScope) -> None:
        super().__init__(found, scope)
        self.unanswered: dict[str, list[str]] = {}
        """Option name → generated ids of its calls in the older form that have no result yet. That form has no ids."""

    def said(self, message: Fields, path: str) -> None:
        """Add a message with the role system, developer or user."""
        self.add_losses_of_unknown_fields(message, {"role", "content"}, path, _NO_PLACE)
        policy = "user" if message["role"] == "user" else "system"
        self.add_message(policy, self.parts(message.get("content"), f"{path}.content"), path)

    def assistant(self, message: Fields, path: str) -> None:
        """Add the parts and option calls of an assistant message, as from decoding a response.

        Raises HistoryInvalid if its content or a call has an invalid form.
        """
        if not isinstance(message.get("content"), str | list | None):
            raise HistoryInvalid(f"{path}.content is {ascii(message['content'])[:40]}; expected a string or an array")
        self._check_calls(message, path)
        placed, left = message_blocks(message, self.scope)
        blocks = [block for _, block in placed]
        if (sound := self._kept_sound(left)) is not None:
            calls = sum(isinstance(block, OptionCallPayload) for block in blocks)
            blocks.insert(len(blocks) - calls, sound)
        if left.get("prefix") is True and "prefix" in self._own and message is self.found["messages"][-1]:
            self.set_vendor_setting("prefix", left.pop("prefix"))
        said = self.extend(blocks, path)
        self.add_losses_of_unknown_fields(left, (), path, _NO_PLACE)
        if message.get("function_call") is not None and (call := said[-1].call):
            self.unanswered.setdefault(call.option_name, []).append(call.invocation_id)
            self.add_loss("rewritten", f"{path}.function_call", _OLDER)

    def _kept_sound(self, left: dict[str, Any]) -> MediaPart | None:
        """Return the part for an assistant's audio that the vendor stores under an id; None if the message has none."""
        name = text_or_empty(object_or_empty(left.get("audio")).get("id"))
        part = MediaPart.from_wire("audio", self.scope.file_url(name)) if name else None
        if part is not None:
            del left["audio"]
        return part and part.model_copy(update={"state": {"audio": {"id": name}}})

    def _check_calls(self, message: Fields, path: str) -> None:
        for index, call in enumerate(History.list_at(message, "tool_calls", path)):
            place = f"{path}.tool_calls[{index}]"
            kind = "custom" if "custom" in History.expect(call, dict, place) else "function"
            chosen: dict[str, Any] = History.expect(call.get(kind), dict, f"{place}.{kind}")
            History.expect_name(chosen.get("name"), f"{place}.{kind}.name")
            self.add_losses_of_unknown_fields(chosen, _CHOSEN[kind], f"{place}.{kind}", _NO_PLACE)
            if call.get("index") not in (None, index):
                self.add_loss("dropped", f"{place}.index", _NO_PLACE)
            if not text_or_empty(call.get("id")):
                self.add_loss("synthesized", f"{place}.id", "it is missing, so one was generated")
        if message.get("function_call") is not None:
            place = f"{path}.function_call"
            History.expect_name(History.expect(message["function_call"], dict, place).get("name"), f"{place}.name")

    def tool(self, message: Fields, path: str) -> None:
        """Add the result of one call. Errors cannot be recognized, because the API has no field for them."""
        call_id = History.expect_name(message.get("tool_call_id"), f"{path}.tool_call_id")
        said, name = message.get("content") or "", text_or_empty(message.get("name"))
        known = {"role", "content", "tool_call_id", *(("name",) if name == self.names.get(call_id, name) else ())}
        self.add_losses_of_unknown_fields(message, known, path, _NO_PLACE)
        self.add_result(call_id, said if isinstance(said, str) else self.parts(said, f"{path}.content"), path, name)

    def function(self, message: Fields, path: str) -> None:
        """Add a result in the older form, to the option's first call that has no result yet."""
        name = History.expect_name(message.get("name"), f"{path}.name")
        waiting = self.unanswered.get(name)
        call_id = waiting.pop(0) if waiting else f"call_{uuid4().hex}"
        self.add_losses_of_unknown_fields(message, {"role", "content", "name"}, path, _NO_PLACE)
        self.add_loss("rewritten", path, _OLDER)
        said = "" if message.get("content") is None else History.expect(message["content"], str, f"{path}.content")
        self.add_result(call_id, said, path, name)

    def tools(self, given: JSONValue) -> None:
        """Read the field `tools`: options, and the vendor's own tools."""
        for index, tool in enumerate(History.expect(given, list, "tools")):
            declared = (
                object_or_empty(tool).get("function")
                if object_or_empty(tool).get("type", "function") == "function"
                else None
            )
            if self.offer(tool, declared, ChatOptionHints, f"tools[{index}].function"):
                self.add_losses_of_unknown_fields(
                    object_or_empty(tool), {"type", "function"}, f"tools[{index}]", "an option cannot store it"
                )

    def functions(self, given: JSONValue) -> None:
        """Read the field `functions`: options in the older form."""
        for index, function in enumerate(History.expect(given, list, "functions")):
            path = f"functions[{index}]"
            self.offer({"type": "function", "function": function}, function, ChatOptionHints, path)
            self.add_loss("rewritten", path, _OLDER)

    def older_choice(self, choice: JSONValue) -> None:
        """Read the field `function_call`: the option choice in the older form."""
        self.add_loss("rewritten", "function_call", _OLDER)
        if not self.set_option_choice(choice, text_or_empty(object_or_empty(choice).get("name"))):
            self.set_extra_body("function_call", choice)
        else:
            self.add_losses_of_unknown_fields(object_or_empty(choice), {"name"}, "function_call", _NO_CHOICE)

    def choice(self, choice: JSONValue) -> None:
        """Read the field `tool_choice`. A choice that no neutral setting can express becomes a vendor setting."""
        found = object_or_empty(choice)
        kind = text_or_empty(found.get("type"))
        inner = object_or_empty(found.get(kind))
        if not self.set_option_choice("required" if choice == "any" else choice, text_or_empty(inner.get("name"))):
            self.set_vendor_setting("tool_choice", choice)
        else:
            self.add_losses_of_unknown_fields(found, {"type", kind}, "tool_choice", _NO_CHOICE)
            self.add_losses_of_unknown_fields(inner, {"name"}, f"tool_choice.{kind}", _NO_CHOICE)

    def format(self, wanted: JSONValue) -> None:
        """Read the field `response_format`. A format that no neutral setting can express goes to `extra_body`."""
        found = object_or_empty(wanted)
        schema, path = object_or_empty(found.get("json_schema")), "response_format.json_schema"
        if self.hold_to_type(found, "response_format"):
            return
        if found.get("type") == "json_schema" and self.hold_to_format(schema, path):
            self.add_losses_of_unknown_fields(
                found, {"type", "json_schema"}, "response_format", "a response format cannot store it"
            )
        else:
            self.set_extra_body("response_format", wanted)

    readers: ClassVar = {
        "messages": RequestHistory.read_messages, "tools": tools, "functions": functions,
        "function_call": older_choice, "tool_choice": choice, "response_format": format,
    }  # fmt: skip
    roles: ClassVar = {
        "system": said, "developer": said, "user": said, "assistant": assistant, "tool": tool, "function": function,
    }  # fmt: skip


decode_history = _History.decode
