"""A stored request → messages, options and settings. Field names may be in camelCase or snake_case.

    systemInstruction      a leading system message            functionResponse   the result of a call
    user, no role          the user's parts                    other parts        opaque parts
    model                  as from decoding a response, with the scope's policy and the target's origin

A result belongs to the call with the same id. A result without an id belongs to the first call of the same name that
has no result yet. Other parts in a content with results become a user message, which renders as a separate content.
"""

import re
from collections.abc import Collection, Mapping
from contextlib import suppress
from typing import Any, ClassVar

from pydantic import ValidationError
from sabir import MediaPart, OpaquePart, OptionCallPayload, OptionResultPayload, TextPart
from sabir.authoring import (
    DataURL,
    DecodeScope,
    Fields,
    Frozen,
    History,
    JSONValue,
    KnownPart,
    encode_json,
    list_or_empty,
    object_or_empty,
    text_or_empty,
    without_fields,
)
from sabir.errors import HistoryInvalid, ResponseInvalid

from sabir_google.decode import decode_part, modality_of, plain_part
from sabir_google.encode import FILES_URL, STORED_ERROR_TYPE
from sabir_google.native import NAME, TOGETHER, read_declarations
from sabir_google.request import DEFAULT_NAME, FIELDS, MODES
from sabir_google.settings import MEDIA_HINTS, TOP_LEVEL, GoogleOptionHints, GoogleSettings, camel_case, camel_fields
from sabir_google.streamed_calls import join_calls

_NEUTRAL: Mapping[str, str] = {name: setting for setting, name in FIELDS.items()}
"""Field of generationConfig → the neutral setting with the same meaning."""
_SNAKE: Mapping[str, str] = {camel_case(name): name for name in GoogleSettings.model_fields}
"""Name of a field in camelCase → the vendor setting."""
_OBJECTS = frozenset(
    {"codeExecutionResult", "executableCode", "fileData", "functionCall", "functionResponse", "inlineData", "toolCall",
     "toolResponse", "videoMetadata", "mediaResolution"}
)  # fmt: skip
"""Fields of a part that are objects, and whose own field names may also be in snake_case."""
_DECLARED = frozenset({"name", "description", "parameters", "parametersJsonSchema"})
_CHOICES: Mapping[str, str] = {mode: choice for choice, mode in MODES.items()}
"""Mode of `functionCallingConfig` → option choice."""
_NOT_STORED = "a message cannot store it"


class _GenerateContentHistory(History):
    """Decodes a stored request of `google.generate_content`."""

    vendor_model = GoogleSettings
    early = ("systemInstruction", "tools")
    messages_field = "contents"
    streaming = ()
    says_nothing: ClassVar = {"thought": (False,)}

    def __init__(self, request: Fields, scope: DecodeScope) -> None:
        super().__init__(camel_fields(request), scope)
        self.open_calls: list[tuple[str, str, str]] = []
        """Id ("" for none), name and invocation id of each call that has no result yet."""

    def read_system_instruction(self, system: JSONValue) -> None:
        """Read the field `systemInstruction`, which becomes the leading system message."""
        self.add_losses_of_unknown_fields(object_or_empty(system), {"parts", "role"}, "systemInstruction", _NOT_STORED)
        json_parts = [system] if isinstance(system, str) else object_or_empty(system).get("parts")
        parts = []
        for index, each in enumerate(json_parts if isinstance(json_parts, list) else [json_parts]):
            path, text = f"systemInstruction.parts[{index}]", object_or_empty(each).get("text", each)
            if isinstance(text, str):
                parts.append(TextPart(text=text))
                self.add_losses_of_unknown_fields(object_or_empty(each), {"text"}, path, _NOT_STORED)
            else:
                self.add_loss("dropped", path, "a system message accepts only text")
        self.add_message("system", parts, "systemInstruction")

    def _plain_parts(self, content: Fields, path: str) -> list[Any]:
        """Return the parts of a content in camelCase. Report further fields of the content as losses."""
        self.add_losses_of_unknown_fields(content, {"role", "parts"}, path, _NOT_STORED)
        return [_normalize_part(each) for each in History.list_at(content, "parts")]

    def read_model_content(self, content: Fields, path: str) -> None:
        """Read a content with the role `model`. Raises HistoryInvalid for a call without a name or with invalid
        pieces.
        """
        blocks = []
        try:
            parts = join_calls(self._plain_parts(content, path), self.scope)
        except ResponseInvalid:
            problem = f"{path} contains a call in pieces that do not match"
            raise HistoryInvalid(f"{problem}; pass the complete args of the call instead") from None
        for index, part in enumerate(parts):
            call = object_or_empty(object_or_empty(part).get("functionCall"))
            if "functionCall" in object_or_empty(part):
                History.expect_name(call.get("name"), f"{path}.parts[{index}].functionCall.name")
            block = decode_part(part, self.scope)
            blocks.append(block)
            if isinstance(block, OptionCallPayload):
                wire_id, name = text_or_empty(call.get("id")), text_or_empty(call.get("name"))
                self.open_calls.append((wire_id, name, block.invocation_id))
        self.extend(blocks, path)

    def read_user_content(self, content: Fields, path: str) -> None:
        """Read a content with another role. Each result becomes a message, and all other parts become one message."""
        user_parts: list[KnownPart] = []
        parts = self._plain_parts(content, path)
        for index, part in enumerate(parts):
            part_path = f"{path}.parts[{index}]"
            if isinstance(part, dict) and "functionResponse" in part:
                self.add_losses_of_unknown_fields(part, {"functionResponse"}, part_path, _NOT_STORED)
                self._add_function_response(part["functionResponse"], part_path)
            elif (user_part := _read_user_part(part, self.scope)) is not None:
                user_parts.append(user_part)
        if user_parts or not any("functionResponse" in object_or_empty(part) for part in parts):
            self.add_message("user", user_parts, path)

    def _add_function_response(self, function_response: JSONValue, path: str) -> None:
        """Add the result of a call: a value or an error, with media. `path` is the part's place in the request."""
        where = f"{path}.functionResponse"
        response: Fields = History.expect(function_response, dict, where)
        name, wire_id = History.expect_name(response.get("name"), f"{where}.name"), text_or_empty(response.get("id"))
        self.add_losses_of_unknown_fields(response, {"id", "name", "response", "parts"}, where, _NOT_STORED)
        call = next((each for each in self.open_calls if (each[0] == wire_id if wire_id else each[1] == name)), None)
        if call:
            self.open_calls.remove(call)
        call_id = call[2] if call else wire_id or f"{path} {name}"
        fields = self._read_response_object(response.get("response") or {}, f"{where}.response")
        media = [_read_user_part(_normalize_part(each), self.scope) for each in list_or_empty(response.get("parts"))]
        media_parts: list[KnownPart] = [part for part in media if isinstance(part, MediaPart)]
        if len(media_parts) < len(media):
            self.add_loss("dropped", f"{where}.parts", "parts of a result that are not media were removed")
        if media_parts:
            output = fields.get("result")
            if output not in (None, {}) and not isinstance(output, str):
                self.add_loss("rewritten", f"{where}.response", "a result with media contains its value as JSON text")
                output = encode_json(output)
            texts = [TextPart(text=output)] if isinstance(output, str) else []
            fields |= {"result": None, "parts": [*texts, *media_parts]}
        self.add_result(call_id, (), path, self.scope.option_names.get(name, name), **fields)

    def _read_response_object(self, response_object: JSONValue, path: str) -> dict[str, Any]:
        """Return the fields of an OptionResultPayload for the `response` of a result: an error, or the result in
        `output`. If the object has other fields, the complete object is the result.
        """
        response: Fields = History.expect(response_object, dict, path)
        if response.keys() == {"error"}:
            error = response["error"]
            from_text = {"message": error, "type": STORED_ERROR_TYPE}
            details = from_text if isinstance(error, str) else object_or_empty(error)
            fields = {"error_type": details.get("type"), "error_message": details.get("message"), "is_error": True}
            with suppress(ValidationError):
                if {"type", "message"} <= details.keys() <= {"type", "message", "retryable"}:
                    fields["retryable"] = details.get("retryable")
                    OptionResultPayload.model_validate({"invocation_id": "x", "option_name": "x", **fields})
                    return fields
        if response.keys() == {"output"}:
            return {"result": response["output"]}
        if response.keys() & {"output", "error"}:
            reason = "output or error in an unknown form: the complete object became the result"
            self.add_loss("rewritten", path, reason)
        return {"result": dict(response)}

    def read_tools(self, declarations: JSONValue) -> None:
        """Read the field `tools`. A declaration becomes an option if options and hints can express all its fields.
        Other declarations, and the vendor's own tools, become vendor settings.
        """
        tools = [declarations] if isinstance(declarations, dict) else History.expect(declarations, list, "tools")
        # If functions are declared too, a request has the field TOGETHER, or is for Vertex AI, whose tools stay vendor
        # settings.
        declared = [camel_fields(object_or_empty(each)) for each in tools]
        is_together = TOGETHER.items() <= camel_fields(object_or_empty(self.found.get("toolConfig"))).items()
        is_plain = is_together or not any("functionDeclarations" in each for each in declared)
        for index, each in enumerate(tools):
            path = f"tools[{index}]"
            tool = camel_fields(History.expect(each, dict, path))
            for position, declared in enumerate(list_or_empty(tool.get("functionDeclarations"))):
                if not self._add_declaration(camel_fields(object_or_empty(declared))):
                    tool_path = f"{path}.functionDeclarations[{position}]"
                    self.add_vendor_tool({"functionDeclarations": [declared]}, tool_path)
            natives, further = read_declarations(tool, self.scope.target.provider)
            if is_plain and natives and all(map(self.add_native, natives)):
                tool = dict(further)
            if vendor_tool := without_fields(tool, "functionDeclarations"):
                self.add_vendor_tool(vendor_tool, path)

    def _add_declaration(self, declared: Fields) -> bool:
        """Add the option of a declaration and return True. If it has fields that no hint can express, return False."""
        schema = declared.get("parametersJsonSchema") or _json_schema(declared.get("parameters"))
        hint_fields = {name: value for name, value in declared.items() if value and name not in _DECLARED}
        vendor = _read_hint_fields(hint_fields, GoogleOptionHints, self.scope)
        name, description = text_or_empty(declared.get("name")), text_or_empty(declared.get("description"))
        return vendor is not None and self.add_option(name, description, schema, vendor)

    def read_setting(self, name: str, value: JSONValue) -> None:
        """Read any other field of the request as a vendor setting."""
        self.set_vendor_setting(_SNAKE.get(name, name), value, name)

    def read_generation_config(self, generation_config: JSONValue) -> None:
        """Read the field `generationConfig`: neutral settings, the response format, and vendor settings. Other fields
        go to `extra_body`.
        """
        config = camel_fields(History.expect(generation_config, dict, "generationConfig"))
        schema = config.get("responseJsonSchema")
        if config.get("responseMimeType") != "application/json":
            pass
        elif not config.keys() & {"responseJsonSchema", "responseSchema"}:
            self.set_json_response()
            config = without_fields(config, "responseMimeType")
        elif self.set_response_format(text_or_empty(object_or_empty(schema).get("title")) or DEFAULT_NAME, schema):
            config = without_fields(config, "responseMimeType", "responseJsonSchema")
        for name, value in config.items():
            if name in _NEUTRAL:
                self.set_setting(_NEUTRAL[name], value, name, "generationConfig")
            elif name in _SNAKE and name not in map(camel_case, TOP_LEVEL):
                self.set_vendor_setting(_SNAKE[name], value, name, "generationConfig")
            else:
                self.set_extra_body(name, value, "generationConfig")

    def read_tool_config(self, tool_config: JSONValue) -> None:
        """Read the field `toolConfig`: the option choice. Other fields, and a choice that no neutral setting can
        express, become a vendor setting.
        """
        config = camel_fields(History.expect(tool_config, dict, "toolConfig"))
        calling = camel_fields(object_or_empty(config.get("functionCallingConfig")))
        allowed: Collection[Any] = list_or_empty(calling.get("allowedFunctionNames"))
        mode = _CHOICES.get(text_or_empty(calling.get("mode")).upper(), "")
        is_known = calling.keys() <= {"mode", "allowedFunctionNames"} and len(allowed) <= 1
        if allowed:
            is_known, mode = is_known and mode == "required", ""
        if is_known and calling and self.set_option_choice(mode, text_or_empty(next(iter(allowed), ""))):
            config = without_fields(config, "functionCallingConfig")
        if config:
            self.set_vendor_setting("tool_config", config)

    readers: ClassVar = {
        "systemInstruction": read_system_instruction, "contents": History.read_messages, "tools": read_tools,
        "generationConfig": read_generation_config, "toolConfig": read_tool_config,
    }  # fmt: skip
    roles: ClassVar = {
        "": read_user_content, "function": read_user_content, "model": read_model_content, "user": read_user_content,
    }  # fmt: skip


decode_history = _GenerateContentHistory.decode


def _normalize_part(part: JSONValue) -> Any:
    """Return a part without null fields and with field names in camelCase, also within the objects that _OBJECTS names.
    A string becomes a text part. Arguments and results are not changed.
    """
    if not isinstance(part, dict):
        return {"text": part} if isinstance(part, str) else part
    plain = plain_part(camel_fields(part))
    objects = {name: plain[name] for name in plain.keys() & _OBJECTS if isinstance(plain[name], dict)}
    return plain | {name: camel_fields(value) for name, value in objects.items()}


def _read_user_part(part: Any, scope: DecodeScope) -> KnownPart | None:
    """Return the text, medium or opaque part for a user's part of the request. None for an empty text."""
    fields = object_or_empty(part)
    if fields.keys() == {"text"} and isinstance(fields["text"], str):
        return TextPart(text=fields["text"]) if fields["text"] else None
    return _read_media_part(fields, scope) or OpaquePart(dialect=NAME, block=part)


def _snake_case_fields(values: Any) -> Any:
    """Return an object with its field names in snake_case, as in hints. Return other values unchanged."""
    if not isinstance(values, dict):
        return values
    return {re.sub("[A-Z]", lambda match: f"_{match[0].lower()}", name): value for name, value in values.items()}


def _read_hint_fields(fields: Fields, model: type[Frozen], scope: DecodeScope) -> Mapping[str, Any] | None:
    """Return the fields as hints of `model`. None if a field is not a hint of the model or has an invalid value."""
    named = _snake_case_fields(fields)
    return None if named.keys() - model.model_fields.keys() else scope.read_hints(named, model)


def _read_media_part(part: Fields, scope: DecodeScope) -> MediaPart | None:
    """Return the media part, with hints, for a part of the request. None if the part is not a medium, has no MIME type,
    or has fields that no hint can express.
    """
    blob, file = object_or_empty(part.get("inlineData")), object_or_empty(part.get("fileData"))
    mime = text_or_empty(blob.get("mimeType") or file.get("mimeType")).lower()
    further = without_fields(part, "inlineData", "fileData")
    hint_fields = {name: _snake_case_fields(value) for name, value in further.items()}
    vendor = _read_hint_fields(hint_fields, MEDIA_HINTS.get(modality_of(mime), Frozen), scope)
    if vendor is None or len(part) != len(hint_fields) + 1:
        return None
    if blob.keys() == {"mimeType", "data"}:
        base64 = text_or_empty(blob["data"]).replace("-", "+").replace("_", "/")
        return MediaPart.from_wire(modality_of(mime), DataURL.from_base64(base64, mime), vendor=vendor)
    uri = text_or_empty(file.get("fileUri"))
    if file.keys() - {"mimeType", "fileUri"} or not mime:
        return None
    if uri.startswith(FILES_URL) or not uri.startswith(("http://", "https://")):
        uri = scope.file_url(uri.removeprefix(FILES_URL))
    media_part = MediaPart.from_wire(modality_of(mime), uri, vendor=vendor)
    return media_part and media_part.model_copy(update={"mime": mime})


def _json_schema(schema: JSONValue) -> Any:
    """Return a schema in Google's own form as a JSON schema: types in lower case, and `nullable` as the type "null"."""
    if isinstance(schema, list):
        return [_json_schema(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    converted: dict[str, Any] = {}
    for name, value in schema.items():
        if name in ("properties", "$defs") and isinstance(value, dict):
            converted[name] = {key: _json_schema(each) for key, each in value.items()}
        else:
            converted[name] = value if name in ("enum", "default", "example") else _json_schema(value)
    if isinstance(kind := converted.get("type"), str):
        is_nullable = converted.pop("nullable", None) is True
        converted["type"] = [kind.lower(), "null"] if is_nullable else kind.lower()
    return converted
