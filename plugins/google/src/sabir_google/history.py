"""A stored request → messages, options and settings. Field names may be in camelCase or snake_case.

    systemInstruction      a leading system message            functionResponse   the result of a call
    user, no role          the user's parts                    every other part   an opaque part
    model                  as from decoding a response, with the scope's policy and the target's origin

A result belongs to the call with its id; without an id, to the first call of its name that has no result. Other parts
in a content with results become a user message, and render as a content of their own.
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

from sabir_google.decode import NAME, modality_of, part_block, plain_part
from sabir_google.encode import FILES, PLAIN_ERROR
from sabir_google.request import DEFAULT_NAME, FIELDS, MODES
from sabir_google.settings import MEDIA_HINTS, TOP_LEVEL, GoogleSettings, OptionHints, camel, spelled
from sabir_google.streamed_calls import join_calls

_NEUTRAL: Mapping[str, str] = {name: setting for setting, name in FIELDS.items()}
"""Field of generationConfig → the neutral setting with the same meaning."""
_SNAKE: Mapping[str, str] = {camel(name): name for name in GoogleSettings.model_fields}
_OBJECTS = frozenset(
    {"codeExecutionResult", "executableCode", "fileData", "functionCall", "functionResponse", "inlineData", "toolCall",
     "toolResponse", "videoMetadata", "mediaResolution"}
)  # fmt: skip
"""Fields of a part that are objects whose field names may also be in snake_case."""
_DECLARED = frozenset({"name", "description", "parameters", "parametersJsonSchema"})
_CHOICES: Mapping[str, str] = {mode: choice for choice, mode in MODES.items()}
_NO_PLACE = "a message cannot store it"


class _History(History):
    """Decodes a stored request of `google.generate_content`. `waiting` lists the calls without a result so far: the id
    ("" for none) and the name in the request, and the invocation id.
    """

    vendor_model = GoogleSettings
    messages_field = "contents"
    streaming = ()
    says_nothing: ClassVar = {"thought": (False,)}

    def __init__(self, found: Fields, scope: DecodeScope) -> None:
        super().__init__(spelled(found), scope)
        self.waiting: list[tuple[str, str, str]] = []

    def system(self, system: JSONValue) -> None:
        """Read the field `systemInstruction`, which becomes the leading system message."""
        self.add_losses_of_unknown_fields(object_or_empty(system), {"parts", "role"}, "systemInstruction", _NO_PLACE)
        given = [system] if isinstance(system, str) else object_or_empty(system).get("parts")
        parts = []
        for index, each in enumerate(given if isinstance(given, list) else [given]):
            said = each if isinstance(each, str) else object_or_empty(each).get("text")
            if isinstance(said, str):
                parts.append(TextPart(text=said))
                self.add_losses_of_unknown_fields(
                    object_or_empty(each), {"text"}, f"systemInstruction.parts[{index}]", _NO_PLACE
                )
            else:
                self.add_loss("dropped", f"systemInstruction.parts[{index}]", "a system message accepts only text")
        self.add_message("system", parts, "systemInstruction")

    def _wholes(self, content: Fields, path: str) -> list[Any]:
        self.add_losses_of_unknown_fields(content, {"role", "parts"}, path, _NO_PLACE)
        return [_part(each) for each in History.list_at(content, "parts")]

    def model_content(self, content: Fields, path: str) -> None:
        """Read a content with the role `model`. Raises HistoryInvalid for a call without a name or with invalid
        pieces.
        """
        blocks = []
        try:
            parts = join_calls(self._wholes(content, path), self.scope)
        except ResponseInvalid:
            raise HistoryInvalid(
                f"{path} contains a call in pieces that do not match; pass the complete args of the call instead"
            ) from None
        for index, part in enumerate(parts):
            call = object_or_empty(object_or_empty(part).get("functionCall"))
            if "functionCall" in object_or_empty(part):
                History.expect_name(call.get("name"), f"{path}.parts[{index}].functionCall.name")
            block = part_block(part, self.scope)
            blocks.append(block)
            if isinstance(block, OptionCallPayload):
                self.waiting.append(
                    (text_or_empty(call.get("id")), text_or_empty(call.get("name")), block.invocation_id)
                )
        self.extend(blocks, path)

    def user_content(self, content: Fields, path: str) -> None:
        """Read a content with another role: results become messages of their own, all other parts one user message."""
        said: list[KnownPart] = []
        parts = self._wholes(content, path)
        for index, part in enumerate(parts):
            place = f"{path}.parts[{index}]"
            if isinstance(part, dict) and "functionResponse" in part:
                self.add_losses_of_unknown_fields(part, {"functionResponse"}, place, _NO_PLACE)
                self._result(History.expect(part["functionResponse"], dict, f"{place}.functionResponse"), place)
            elif (read := _said(part, self.scope)) is not None:
                said.append(read)
        if said or not any("functionResponse" in object_or_empty(part) for part in parts):
            self.add_message("user", said, path)

    def _result(self, found: Fields, path: str) -> None:
        where = f"{path}.functionResponse"
        name, wire_id = History.expect_name(found.get("name"), f"{where}.name"), text_or_empty(found.get("id"))
        self.add_losses_of_unknown_fields(found, {"id", "name", "response", "parts"}, where, _NO_PLACE)
        answered = next((each for each in self.waiting if (each[0] == wire_id if wire_id else each[1] == name)), None)
        if answered:
            self.waiting.remove(answered)
        call_id = answered[2] if answered else wire_id or f"{path} {name}"
        said = self._response(History.expect(found.get("response") or {}, dict, f"{where}.response"), where)
        media = [_said(_part(each), self.scope) for each in list_or_empty(found.get("parts"))]
        kept: list[KnownPart] = [part for part in media if isinstance(part, MediaPart)]
        if len(kept) < len(media):
            self.add_loss("dropped", f"{where}.parts", "parts of a result that are not media were removed")
        if kept:
            result = said.get("result")
            if result not in (None, {}) and not isinstance(result, str):
                self.add_loss("rewritten", f"{where}.response", "a result with media contains its value as JSON text")
                result = encode_json(result)
            said |= {"result": None, "parts": [TextPart(text=result), *kept] if isinstance(result, str) else kept}
        self.add_result(call_id, (), path, self.scope.option_names.get(name, name), **said)

    def _response(self, response: Fields, path: str) -> dict[str, Any]:
        """Return the fields of an OptionResultPayload: those of an error, or the result in `output`. An object with
        other fields is the result itself.
        """
        if response.keys() == {"error"}:
            error = response["error"]
            inner = {"message": error, "type": PLAIN_ERROR} if isinstance(error, str) else object_or_empty(error)
            said = {"error_type": inner.get("type"), "error_message": inner.get("message"), "is_error": True}
            with suppress(ValidationError):
                if {"type", "message"} <= inner.keys() <= {"type", "message", "retryable"}:
                    said["retryable"] = inner.get("retryable")
                    OptionResultPayload.model_validate({"invocation_id": "x", "option_name": "x", **said})
                    return said
        if response.keys() == {"output"}:
            return {"result": response["output"]}
        if response.keys() & {"output", "error"}:
            reason = "output or error together with other fields: the complete object became the result"
            self.add_loss("rewritten", f"{path}.response", reason)
        return {"result": dict(response)}

    def tools(self, given: JSONValue) -> None:
        """Read the field `tools`. A declaration becomes an option if options and hints can express all its fields;
        other declarations, and the vendor's own tools, become vendor settings.
        """
        for index, each in enumerate([given] if isinstance(given, dict) else History.expect(given, list, "tools")):
            path = f"tools[{index}]"
            tool = spelled(History.expect(each, dict, path))
            for place, declared in enumerate(list_or_empty(tool.get("functionDeclarations"))):
                if not self._option(spelled(object_or_empty(declared))):
                    whole = {"functionDeclarations": [declared]}
                    self.add_vendor_tool(whole, f"{path}.functionDeclarations[{place}]")
            if rest := without_fields(tool, "functionDeclarations"):
                self.add_vendor_tool(rest, path)

    def _option(self, declared: Fields) -> bool:
        """Add the option of a declaration. Return False, and add nothing, if it has fields that no hint can express."""
        schema = declared.get("parametersJsonSchema") or _json_schema(declared.get("parameters"))
        said = {name: value for name, value in declared.items() if value and name not in _DECLARED}
        vendor = _hints(said, OptionHints, self.scope)
        name, description = text_or_empty(declared.get("name")), text_or_empty(declared.get("description"))
        return vendor is not None and self.add_option(name, description, schema, vendor)

    def read_setting(self, name: str, value: JSONValue) -> None:
        """Read any other field of the request as a vendor setting."""
        self.set_vendor_setting(_SNAKE.get(name, name), value, name)

    def generation(self, given: JSONValue) -> None:
        """Read the field `generationConfig`: neutral settings, the response format, and vendor settings. Other fields
        go to `extra_body`.
        """
        config = spelled(History.expect(given, dict, "generationConfig"))
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
            elif name in _SNAKE and name not in map(camel, TOP_LEVEL):
                self.set_vendor_setting(_SNAKE[name], value, name, "generationConfig")
            else:
                self.set_extra_body(name, value, "generationConfig")

    def choice(self, given: JSONValue) -> None:
        """Read the field `toolConfig`: the option choice. Other fields, and a choice that no neutral setting can
        express, become a vendor setting.
        """
        config = spelled(History.expect(given, dict, "toolConfig"))
        calling = spelled(object_or_empty(config.get("functionCallingConfig")))
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
        "systemInstruction": system, "contents": History.read_messages, "tools": tools, "generationConfig": generation,
        "toolConfig": choice,
    }  # fmt: skip
    roles: ClassVar = {"": user_content, "function": user_content, "model": model_content, "user": user_content}


decode_history = _History.decode


def _part(part: JSONValue) -> Any:
    """Return a part without null fields and with field names in camelCase, also in the objects of _OBJECTS. A string
    becomes a text part. Arguments and results are not changed.
    """
    if not isinstance(part, dict):
        return {"text": part} if isinstance(part, str) else part
    found = plain_part(spelled(part))
    return found | {name: spelled(found[name]) for name in found.keys() & _OBJECTS if isinstance(found[name], dict)}


def _said(part: Any, scope: DecodeScope) -> KnownPart | None:
    """Return the user's part for a part of the request: a text, a medium, or an opaque part. None for an empty text."""
    found = object_or_empty(part)
    if found.keys() == {"text"} and isinstance(found["text"], str):
        return TextPart(text=found["text"]) if found["text"] else None
    return _medium(found, scope) or OpaquePart(dialect=NAME, block=part)


def _named(values: Any) -> Any:
    """Return an object with its field names in snake_case, as in hints. Other values are returned unchanged."""
    found = object_or_empty(values)
    snake = {re.sub("[A-Z]", lambda each: f"_{each[0].lower()}", name): value for name, value in found.items()}
    return snake if isinstance(values, dict) else values


def _hints(said: Fields, model: type[Frozen], scope: DecodeScope) -> Mapping[str, Any] | None:
    """Return fields as hints of `model`. None if a field is not a hint of the model or has an invalid value."""
    named = _named(said)
    return None if named.keys() - model.model_fields.keys() else scope.read_hints(named, model)


def _medium(found: Fields, scope: DecodeScope) -> MediaPart | None:
    """Return the media part, with hints, for a part of the request. None if the part has further fields, is not a
    medium, or has no MIME type.
    """
    blob, file = object_or_empty(found.get("inlineData")), object_or_empty(found.get("fileData"))
    mime = text_or_empty(blob.get("mimeType") or file.get("mimeType")).lower()
    said = {name: _named(value) for name, value in without_fields(found, "inlineData", "fileData").items()}
    vendor = _hints(said, MEDIA_HINTS.get(modality_of(mime), Frozen), scope)
    if vendor is None or len(found) != len(said) + 1:
        return None
    if blob.keys() == {"mimeType", "data"}:
        data = text_or_empty(blob["data"]).replace("-", "+").replace("_", "/")
        return MediaPart.from_wire(modality_of(mime), DataURL.from_base64(data, mime), vendor=vendor)
    uri = text_or_empty(file.get("fileUri"))
    if file.keys() - {"mimeType", "fileUri"} or not mime:
        return None
    if uri.startswith(FILES) or not uri.startswith(("http://", "https://")):
        uri = scope.file_url(uri.removeprefix(FILES))
    read = MediaPart.from_wire(modality_of(mime), uri, vendor=vendor)
    return read and read.model_copy(update={"mime": mime})


def _json_schema(schema: JSONValue) -> Any:
    """Return a schema in Google's own form as a JSON schema: types in lower case, and `nullable` as the type "null"."""
    if isinstance(schema, list):
        return [_json_schema(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    found: dict[str, Any] = {}
    for name, value in schema.items():
        if name in ("properties", "$defs") and isinstance(value, dict):
            found[name] = {key: _json_schema(each) for key, each in value.items()}
        else:
            found[name] = value if name in ("enum", "default", "example") else _json_schema(value)
    if isinstance(kind := found.get("type"), str):
        is_nullable = found.pop("nullable", None) is True
        found["type"] = [kind.lower(), "null"] if is_nullable else kind.lower()
    return found
