"""A stored Chat Completions request → messages, options and settings.

    system, developer ─▶ policy "system"      user ─▶ policy "user"      assistant ─▶ the scope's policy
    tool              ─▶ the result of the option that its call names

Assistant messages get the origin of the target model, so that they are sent back unchanged. Messages get no role hints,
because their policies render to the same roles. The `name` of a message other than a result is a loss. The older
fields `functions` and `function_call` and the role `function` become options, calls and results, and render in today's
form (loss: rewritten).
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

from sabir_openai.chat_decode import decode_message
from sabir_openai.chat_request import FIELDS
from sabir_openai.prompt_cache import KEY, RETENTION, read_top_level, split_markers
from sabir_openai.schema import STRICT, is_strict_already
from sabir_openai.settings import ChatOptionHints, ChatSettings, FileHints, ImageHints, OpenAIMediaHints, settings_with

_SOUNDS: Mapping[str, str] = {"mp3": "audio/mpeg", "wav": "audio/wav"}
"""Format of `input_audio` → MIME type."""
_CALL_FIELDS: Mapping[str, Sequence[str]] = {"function": ("name", "arguments"), "custom": ("name", "input")}
"""Type of a call → the known fields of the object under that type. Its other fields are losses."""
_OLDER_FORM = "the deprecated form was converted to today's form (tools, tool_choice, tool_calls)"
_NOT_STORED = "a message cannot store it"
_NOT_IN_CHOICE = "an option choice cannot store it"


_HINT_MODELS: Mapping[str, type[BaseModel]] = {
    "image_url": ImageHints, "input_audio": OpenAIMediaHints, "file": OpenAIMediaHints, "input_image": ImageHints,
    "input_file": FileHints,
}  # fmt: skip
"""Type of a content part → the model of its hints. Hints are fields of the part, except `detail` of `image_url`, which
is a field of the object `image_url`.
"""
_OPTION_FIELDS = frozenset({"type", "name", "description", "parameters"})
_FORMAT_FIELDS = frozenset({"type", "name", "description", "schema", "strict"})


class OpenAIHistory(History):
    """Decodes a stored request of one of OpenAI's dialects. Base class for both dialects."""

    streaming = ("stream", "stream_options")
    says_nothing: ClassVar = {
        "async": (False,), "defer_loading": (False,), "detail": ("auto",), "prefix": (False,), "status": ("completed",),
        "type": ("message", "function"),
    }  # fmt: skip

    def __init__(self, request: Fields, scope: DecodeScope) -> None:
        super().__init__(request, scope)
        row = Row.load_packaged("sabir_openai", scope.target.provider)
        self._own_settings = row.own_settings if row else FrozenDict()
        self._renamed = {field: name for entry in (row.entries if row else ()) for name, field in entry.renames.items()}
        """Field of the endpoint → the neutral setting that the endpoint's row sends in this field."""
        self._is_strict_by_default = row is None or any("strict" in entry.accepts for entry in row.entries)

    def read_setting(self, name: str, value: JSONValue) -> None:
        """Read a setting. If the endpoint's row sends a neutral setting in this field, set the neutral setting. The
        fields that sabir sends for `prompt_cache` become this setting.
        """
        is_own_key = KEY.fullmatch(text_or_empty(self.found.get("prompt_cache_key"))) is not None
        is_longer = self.found.get("prompt_cache_retention") == RETENTION
        if name == "prompt_cache_key" and is_own_key:
            self._settings["prompt_cache"] = "1h" if is_longer else True
        elif name == "prompt_cache_retention" and is_own_key and is_longer:
            pass
        elif name == "cache_control" and (lifetime := read_top_level(object_or_empty(value))) is not None:
            self.set_setting("prompt_cache", lifetime, name)
        elif name in self._renamed and name not in self.neutral:
            self.set_setting(str(self._renamed[name]), value, name)
        else:
            super().read_setting(name, value)

    def set_vendor_setting(self, name: str, value: JSONValue, field: str = "", within: str = "") -> None:
        """Set a vendor setting. Valid settings that only this endpoint's row has are vendor settings too. Any other
        setting becomes a field of `extra_body`.
        """
        try:
            model = settings_with(self.vendor_model, self._own_settings)
            is_own = name in self._own_settings and model.model_validate({name: value})
        except ValidationError:
            is_own = False
        if is_own:
            self._vendor[name] = value
        else:
            super().set_vendor_setting(name, value, field, within)

    def part(self, content: JSONValue, path: str) -> KnownPart | None:
        """Return the part for one item of a content array; None if no part can express the item. Fields of a medium
        become hints if such hints exist.
        """
        fields = object_or_empty(content)
        kind = text_or_empty(fields.get("type"))
        if kind not in _HINT_MODELS:
            return super().part(content, path)
        inner = fields.get(kind)
        holder = inner if isinstance(inner, dict) else fields
        hints = self._read_hints({**fields, "detail": holder.get("detail")}, _HINT_MODELS[kind])
        bare = without_fields(fields, *hints.keys() - {"detail"})
        if "detail" in hints:
            bare = (
                {**bare, kind: without_fields(inner, "detail")} if holder is inner else without_fields(bare, "detail")
            )
        part = super().part(bare, path)
        return part.model_copy(update={"vendor": {self.scope.target.provider: hints}}) if part and hints else part

    def _read_hints(self, fields: Fields, model: type[BaseModel]) -> Fields:
        """Return the fields that are valid hints of `model` and differ from the default."""
        hints = {}
        for name, field in model.model_fields.items():
            is_default = field.exclude or fields.get(name) in self.says_nothing.get(name, ())
            if name in fields and not is_default and self.scope.read_hints({name: fields[name]}, model):
                hints[name] = fields[name]
        return hints

    def add_declaration(self, tool: JSONValue, declared: JSONValue, model: type[BaseModel], path: str) -> bool:
        """Add the option of a declaration and return True. `tool` is an item of the field "tools", and `declared` the
        object in it that has the option's name. `model` is the model of the option's hints.

        If no option can express the declaration, add `tool` unchanged to the vendor settings and return False.
        """
        fields = object_or_empty(declared)
        hints = stored_hints = self._read_hints(fields, model)
        parameters = object_or_empty(fields.get("parameters")) or {"type": "object", "properties": {}}
        if hints.get("strict") is self._default_strict(parameters):
            stored_hints = without_fields(hints, "strict")
        vendor = {self.scope.target.provider: stored_hints} if stored_hints else None
        name, description = text_or_empty(fields.get("name")), text_or_empty(fields.get("description"))
        # `defer_loading` hides an option until a search finds it. Where the field is not a hint, the declaration stays
        # a vendor tool.
        is_option = bool(fields) and ("defer_loading" in hints or not fields.get("defer_loading"))
        if is_option and self.add_option(name, description, fields.get("parameters"), vendor):
            self.add_losses_of_unknown_fields(fields, {*_OPTION_FIELDS, *hints}, path, "an option cannot store it")
            return True
        self.add_vendor_tool(tool, path)
        return False

    def _default_strict(self, parameters: Fields) -> bool:
        """Return whether rendering makes an option with this schema strict if it has no hint `strict`."""
        return self._is_strict_by_default and is_strict_already(parameters)

    def read_plain_format(self, form: Fields, path: str) -> bool:
        """Read a response format of the type `text` (the default) or `json_object`. Return False for other types."""
        kind = form.get("type")
        if kind not in ("text", "json_object"):
            return False
        if kind == "json_object":
            self.set_json_response()
        self.add_losses_of_unknown_fields(form, {"type"}, path, "a response format cannot store it")
        return True

    def read_schema_format(self, json_schema: Fields, path: str) -> bool:
        """Set the schema that replies must match. If no neutral setting can express the format, return False."""
        name, description = (text_or_empty(json_schema.get(field)) for field in ("name", "description"))
        schema, is_known = json_schema.get("schema"), json_schema.keys() <= _FORMAT_FIELDS
        if not is_known or not self.set_response_format(name, schema, description or None):
            return False
        strict = json_schema.get("strict")
        if isinstance(strict, bool) and strict is bool(fit_schema(json_schema["schema"], STRICT).refusal):
            reason = "`strict` is not stored; sabir sets it in each request if the schema allows it"
            self.add_loss("rewritten", f"{path}.strict", reason)
        return True


def _read_image_url_part(image_url: Fields, scope: DecodeScope) -> MediaPart | None:
    return MediaPart.from_wire("image", text_or_empty(image_url.get("url")))


def _read_input_audio(input_audio: Fields, scope: DecodeScope) -> MediaPart | None:
    """Return the sound of a content part: base64 in `format`, or at some endpoints a URL or base64 without format."""
    audio_format, base64 = text_or_empty(input_audio.get("format")), text_or_empty(input_audio.get("data"))
    url = f"data:{_SOUNDS.get(audio_format, f'audio/{audio_format}')};base64,{base64}" if base64 else ""
    if not audio_format:
        url = _media_data_url(text_or_empty(input_audio.get("url")) or base64, "audio/mpeg")
    return MediaPart.from_wire("audio", url)


def _read_file_part(file: Fields, scope: DecodeScope) -> MediaPart | None:
    file_data = text_or_empty(file.get("file_data"))
    url = _media_data_url(file_data, "application/pdf") if file_data else scope.file_url(file.get("file_id"))
    return MediaPart.from_wire("document", url, file.get("filename"))


def _document_reader(field: str, name: str) -> PartReader:
    """Return the reader of a document whose URL or base64 is in `field`, or in the field `url` of the object in
    `field`. `name` is the field with the document's name.
    """

    def read(part: Fields, scope: DecodeScope) -> MediaPart | None:
        url = text_or_empty(part.get(field)) or text_or_empty(object_or_empty(part.get(field)).get("url"))
        return MediaPart.from_wire("document", _media_data_url(url, "application/pdf"), part.get(name))

    return PartReader("", read, frozenset({field, name}))


def _read_video_url_part(video_url: Fields, scope: DecodeScope) -> MediaPart | None:
    return MediaPart.from_wire("video", text_or_empty(video_url.get("url")))


def _media_data_url(text: str, mime: str) -> str:
    """Return a URL unchanged, or base64 as a data URL with the MIME type of the bytes; `mime` is the default."""
    return text if "://" in text[:32] or not text else DataURL.with_sniffed_type(text, mime)


class _ChatHistory(OpenAIHistory):
    """Decodes a stored request of `openai.chat`. The option of a result is found by the calls before the result."""

    vendor_model = ChatSettings
    early = ("tools", "functions")
    neutral: ClassVar = {
        **{field: setting for setting, field in FIELDS.items()},
        "max_tokens": "max_output_tokens",
        "parallel_tool_calls": "parallel_options",
    }
    leaves: ClassVar = {
        "text": PartReader.for_text(),
        "image_url": PartReader("image_url", _read_image_url_part, frozenset({"url"})),
        "input_audio": PartReader("input_audio", _read_input_audio, frozenset({"data", "format", "url"})),
        "file": PartReader("file", _read_file_part, frozenset({"file_data", "file_id", "filename"})),
        "document_url": _document_reader("document_url", "document_name"),
        "file_url": _document_reader("file_url", "file_name"),
        "video_url": PartReader("video_url", _read_video_url_part, frozenset({"url"})),
    }

    def __init__(self, request: Fields, scope: DecodeScope) -> None:
        bare, lifetime = split_markers(request)
        super().__init__(bare, scope)
        if lifetime is not None:
            self.set_setting("prompt_cache", lifetime, "cache_control")
        self.open_function_calls: dict[str, list[str]] = {}
        """Option name → generated ids of its calls without a result, for the older form of calls, which has no ids."""

    def read_input_message(self, message: Fields, path: str) -> None:
        """Add a message with the role system, developer or user."""
        self.add_losses_of_unknown_fields(message, {"role", "content"}, path, _NOT_STORED)
        policy = "user" if message["role"] == "user" else "system"
        self.add_message(policy, self.parts(message.get("content"), f"{path}.content"), path)

    def read_assistant(self, message: Fields, path: str) -> None:
        """Add the parts and option calls of an assistant message, as from decoding a response.

        Raises HistoryInvalid if its content or a call has an invalid form.
        """
        if not isinstance(message.get("content"), str | list | None):
            raise HistoryInvalid(f"{path}.content is {ascii(message['content'])[:40]}; expected a string or an array")
        self._check_tool_calls(message, path)
        indexed, unread = decode_message(message, self.scope)
        blocks = [block for _, block in indexed]
        if (audio := self._read_stored_audio(unread)) is not None:
            calls = sum(isinstance(block, OptionCallPayload) for block in blocks)
            blocks.insert(len(blocks) - calls, audio)
        if unread.get("prefix") is True and "prefix" in self._own_settings and message is self.found["messages"][-1]:
            self.set_vendor_setting("prefix", unread.pop("prefix"))
        messages = self.extend(blocks, path)
        self.add_losses_of_unknown_fields(unread, (), path, _NOT_STORED)
        if message.get("function_call") is not None and (call := messages[-1].call):
            self.open_function_calls.setdefault(call.option_name, []).append(call.invocation_id)
            self.add_loss("rewritten", f"{path}.function_call", _OLDER_FORM)

    def _read_stored_audio(self, unread: dict[str, Any]) -> MediaPart | None:
        """Return the part for an assistant's audio that the vendor stores under an id. None if there is no such id."""
        audio_id = text_or_empty(object_or_empty(unread.get("audio")).get("id"))
        part = MediaPart.from_wire("audio", self.scope.file_url(audio_id)) if audio_id else None
        if part is not None:
            del unread["audio"]
        return part and part.model_copy(update={"state": {"audio": {"id": audio_id}}})

    def _check_tool_calls(self, message: Fields, path: str) -> None:
        """Raise HistoryInvalid for a call without a name. Report fields that a call cannot store as losses."""
        for index, call in enumerate(History.list_at(message, "tool_calls", path)):
            call_path = f"{path}.tool_calls[{index}]"
            kind = "custom" if "custom" in History.expect(call, dict, call_path) else "function"
            inner: dict[str, Any] = History.expect(call.get(kind), dict, f"{call_path}.{kind}")
            History.expect_name(inner.get("name"), f"{call_path}.{kind}.name")
            self.add_losses_of_unknown_fields(inner, _CALL_FIELDS[kind], f"{call_path}.{kind}", _NOT_STORED)
            if call.get("index") not in (None, index):
                self.add_loss("dropped", f"{call_path}.index", _NOT_STORED)
            if not text_or_empty(call.get("id")):
                self.add_loss("synthesized", f"{call_path}.id", "it is missing, so one was generated")
        if message.get("function_call") is not None:
            call_path = f"{path}.function_call"
            function_call: Fields = History.expect(message["function_call"], dict, call_path)
            History.expect_name(function_call.get("name"), f"{call_path}.name")

    def read_tool(self, message: Fields, path: str) -> None:
        """Add the result of one call. Errors cannot be recognized, because the API has no field for them."""
        call_id = History.expect_name(message.get("tool_call_id"), f"{path}.tool_call_id")
        content, name = message.get("content") or "", text_or_empty(message.get("name"))
        known = {"role", "content", "tool_call_id", *(("name",) if name == self.names.get(call_id, name) else ())}
        self.add_losses_of_unknown_fields(message, known, path, _NOT_STORED)
        parts = content if isinstance(content, str) else self.parts(content, f"{path}.content")
        self.add_result(call_id, parts, path, name)

    def read_function(self, message: Fields, path: str) -> None:
        """Add a result in the older form. It answers the option's first call that has no result yet."""
        name = History.expect_name(message.get("name"), f"{path}.name")
        open_calls = self.open_function_calls.get(name)
        call_id = open_calls.pop(0) if open_calls else f"call_{uuid4().hex}"
        self.add_losses_of_unknown_fields(message, {"role", "content", "name"}, path, _NOT_STORED)
        self.add_loss("rewritten", path, _OLDER_FORM)
        content = "" if message.get("content") is None else History.expect(message["content"], str, f"{path}.content")
        self.add_result(call_id, content, path, name)

    def read_tools(self, tools: JSONValue) -> None:
        """Read the field `tools`: options, and the vendor's own tools."""
        for index, tool in enumerate(History.expect(tools, list, "tools")):
            fields, path = object_or_empty(tool), f"tools[{index}]"
            declared = fields.get("function") if fields.get("type", "function") == "function" else None
            if self.add_declaration(tool, declared, ChatOptionHints, f"{path}.function"):
                self.add_losses_of_unknown_fields(fields, {"type", "function"}, path, "an option cannot store it")

    def read_functions(self, functions: JSONValue) -> None:
        """Read the field `functions`: options in the older form."""
        for index, function in enumerate(History.expect(functions, list, "functions")):
            path = f"functions[{index}]"
            self.add_declaration({"type": "function", "function": function}, function, ChatOptionHints, path)
            self.add_loss("rewritten", path, _OLDER_FORM)

    def read_function_call(self, choice: JSONValue) -> None:
        """Read the field `function_call`: the option choice in the older form."""
        self.add_loss("rewritten", "function_call", _OLDER_FORM)
        if not self.set_option_choice(choice, text_or_empty(object_or_empty(choice).get("name"))):
            self.set_extra_body("function_call", choice)
        else:
            self.add_losses_of_unknown_fields(object_or_empty(choice), {"name"}, "function_call", _NOT_IN_CHOICE)

    def read_tool_choice(self, choice: JSONValue) -> None:
        """Read the field `tool_choice`. A choice that no neutral setting can express becomes a vendor setting."""
        fields = object_or_empty(choice)
        kind = text_or_empty(fields.get("type"))
        inner = object_or_empty(fields.get(kind))
        if not self.set_option_choice("required" if choice == "any" else choice, text_or_empty(inner.get("name"))):
            self.set_vendor_setting("tool_choice", choice)
        else:
            self.add_losses_of_unknown_fields(fields, {"type", kind}, "tool_choice", _NOT_IN_CHOICE)
            self.add_losses_of_unknown_fields(inner, {"name"}, f"tool_choice.{kind}", _NOT_IN_CHOICE)

    def read_response_format(self, wanted: JSONValue) -> None:
        """Read the field `response_format`. A format that no neutral setting can express goes to `extra_body`."""
        fields = object_or_empty(wanted)
        schema, path = object_or_empty(fields.get("json_schema")), "response_format.json_schema"
        if self.read_plain_format(fields, "response_format"):
            return
        if fields.get("type") == "json_schema" and self.read_schema_format(schema, path):
            reason = "a response format cannot store it"
            self.add_losses_of_unknown_fields(fields, {"type", "json_schema"}, "response_format", reason)
        else:
            self.set_extra_body("response_format", wanted)

    readers: ClassVar = {
        "messages": OpenAIHistory.read_messages, "tools": read_tools, "functions": read_functions,
        "function_call": read_function_call, "tool_choice": read_tool_choice, "response_format": read_response_format,
    }  # fmt: skip
    roles: ClassVar = {
        **dict.fromkeys(("system", "developer", "user"), read_input_message),
        "assistant": read_assistant, "tool": read_tool, "function": read_function,
    }  # fmt: skip


decode_history = _ChatHistory.decode
