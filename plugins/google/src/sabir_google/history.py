"""A stored request → messages, options and settings; fields in either of the spellings that the vendor's API takes.

    systemInstruction      a leading system message            functionResponse   a result of the call that it answers
    user, no role          the user's parts                    every other part   an opaque part
    model                  as decoding a response gives it, of the scope's policy, its origin here

A result answers the call of its id; without one, the first call of its name that has none yet. What stands beside
results in one content is the user's, and renders as a content of its own.
"""

import re
from collections.abc import Callable, Collection, Mapping
from typing import Any

from pydantic import ValidationError
from sabir import DecodedHistory, MediaPart, OpaquePart, OptionCallPayload, OptionResultPayload, TextPart
from sabir.authoring import (
    DecodeScope,
    Fields,
    Frozen,
    History,
    JSONValue,
    KnownPart,
    ReplyBuilder,
    Sections,
    encode_json,
    expect,
    expect_name,
    fields,
    items,
    listed,
    medium,
    one_line,
    read_hints,
    read_request,
    spelled_for_url,
    text,
    without,
)
from sabir.errors import HistoryInvalid, ResponseInvalid

from sabir_google.arguments import join_calls
from sabir_google.decode import NAME, modality_of, part_block
from sabir_google.encode import FILES, PLAIN_ERROR
from sabir_google.request import DEFAULT_NAME, FIELDS, MODES
from sabir_google.settings import MEDIA_HINTS, GoogleSettings, OptionHints, camel, spelled

_NEUTRAL: Mapping[str, str] = {name: setting for setting, name in FIELDS.items()}
"""Field of generationConfig → the neutral setting that says the same."""
_SNAKE: Mapping[str, str] = {camel(name): name for name in GoogleSettings.model_fields}
_OBJECTS = frozenset(
    {"codeExecutionResult", "executableCode", "fileData", "functionCall", "functionResponse", "inlineData", "toolCall",
     "toolResponse", "videoMetadata", "mediaResolution"}
)  # fmt: skip
"""Fields of a part whose own fields have two spellings as well."""
_DECLARED = frozenset({"name", "description", "parameters", "parametersJsonSchema"})
_CHOICES: Mapping[str, str] = {mode: choice for choice, mode in MODES.items()}
_NO_PLACE = "it has no place in a message"


def decode_history(body: bytes, scope: DecodeScope) -> DecodedHistory:
    """The request as sabir's own data; HistoryInvalid for what is no request of this dialect."""
    found = spelled(read_request(body, scope))
    reader = _Reader(History(found, scope, GoogleSettings))
    if (system := found.get("systemInstruction")) is not None:
        reader.system(system)
    for index, content in enumerate(expect(found.get("contents"), list, "contents")):
        reader.take(expect(content, dict, f"contents[{index}]"), f"contents[{index}]")
    _settings(reader.history, found)
    return reader.history.whole()


class _Reader:
    """Reads contents in order; `waiting` are calls without a result: id, name on the wire, invocation id."""

    def __init__(self, history: History) -> None:
        self.history = history
        self.waiting: list[tuple[str, str, str]] = []

    def system(self, system: JSONValue) -> None:
        """The leading system message."""
        given = [system] if isinstance(system, str) else fields(system).get("parts")
        parts = []
        for index, each in enumerate(given if isinstance(given, list) else [given]):
            said = each if isinstance(each, str) else fields(each).get("text")
            if isinstance(said, str):
                parts.append(TextPart(text=said))
            else:
                self.history.lose("dropped", f"systemInstruction.parts[{index}]", "a system message takes texts alone")
        self.history.say("system", parts, "systemInstruction")

    def take(self, content: Fields, path: str) -> None:
        """Read one content."""
        role = content.get("role")
        parts = [_part(each) for each in listed(content, "parts")]
        self.history.lose_unknown(content, {"role", "parts"}, path, _NO_PLACE)
        if role == "model":
            self._model(parts, path)
        elif role in ("user", "function", "", None):
            self._user(parts, path)
        else:
            raise HistoryInvalid(f"{path}.role is {one_line(ascii(role), 40)}; expected user or model")

    def _model(self, parts: list[Any], path: str) -> None:
        builder = ReplyBuilder(self.history.scope)
        try:
            parts = join_calls(parts, self.history.scope)
        except ResponseInvalid:
            raise HistoryInvalid(f"{path} holds a call in pieces whose paths do not fit; give its args whole") from None
        for index, part in enumerate(parts):
            if "functionCall" in fields(part):
                expect_name(fields(part["functionCall"]).get("name"), f"{path}.parts[{index}].functionCall.name")
            block = part_block(part, self.history.scope)
            if isinstance(block, OptionCallPayload):
                builder.add(block)
                call = fields(part["functionCall"])
                self.waiting.append((text(call.get("id")), text(call.get("name")), block.invocation_id))
            else:
                builder.add(block)
        messages = builder.messages(self.history.origin)
        if not messages:
            self.history.lose("dropped", path, "the message is empty")
        self.history.extend(messages)

    def _user(self, parts: list[Any], path: str) -> None:
        said: list[KnownPart] = []
        for index, part in enumerate(parts):
            place = f"{path}.parts[{index}]"
            if isinstance(part, dict) and "functionResponse" in part:
                self.history.lose_unknown(part, {"functionResponse"}, place, _NO_PLACE)
                self._result(expect(part["functionResponse"], dict, f"{place}.functionResponse"), place)
            elif (read := _said(part, self.history.scope)) is not None:
                said.append(read)
        if said or not any("functionResponse" in fields(part) for part in parts):
            self.history.say("user", said, path)

    def _result(self, found: Fields, path: str) -> None:
        name = expect_name(found.get("name"), f"{path}.functionResponse.name")
        self.history.lose_unknown(found, {"id", "name", "response", "parts"}, f"{path}.functionResponse", _NO_PLACE)
        option_name = self.history.scope.option_names.get(name, name)
        invocation_id = self._answered(text(found.get("id")), name) or text(found.get("id")) or f"{path} {name}"
        said = self._response(expect(found.get("response") or {}, dict, f"{path}.functionResponse.response"), path)
        media = [_said(_part(each), self.history.scope) for each in items(found.get("parts"))]
        kept = [part for part in media if isinstance(part, MediaPart)]
        if len(kept) < len(media):
            self.history.lose("dropped", f"{path}.functionResponse.parts", "not all of it is a medium")
        if kept:
            said = {**said, "result": None, "parts": [*self._texts(said.get("result"), path), *kept]}
        answer = {"invocation_id": invocation_id, "option_name": option_name, **said}
        self.history.add_result(OptionResultPayload.model_validate(answer))

    def _answered(self, wire_id: str, name: str) -> str:
        """The invocation id of the call that a result answers; "" where there is none."""
        found = [each for each in self.waiting if (each[0] == wire_id if wire_id else each[1] == name)]
        if not found:
            return ""
        self.waiting.remove(found[0])
        return found[0][2]

    def _response(self, response: Fields, path: str) -> dict[str, Any]:
        """What a result says: an error, an output, or the whole."""
        error = response.get("error")
        if response.keys() == {"error"} and isinstance(error, str):
            return {"is_error": True, "error_type": PLAIN_ERROR, "error_message": error}
        inner = fields(error)
        if response.keys() == {"error"} and {"type", "message"} <= inner.keys() <= {"type", "message", "retryable"}:
            given = {
                "error_type": inner["type"],
                "error_message": inner["message"],
                "retryable": inner.get("retryable"),
            }
            try:
                OptionResultPayload(invocation_id="x", option_name="x", is_error=True, **given)
                return {"is_error": True, **given}
            except ValidationError:
                pass
        if response.keys() == {"output"}:
            return {"result": response["output"]}
        if response.keys() & {"output", "error"}:
            self.history.lose("rewritten", f"{path}.functionResponse.response", "the whole renders as its output")
        return {"result": dict(response)}

    def _texts(self, result: JSONValue, path: str) -> list[TextPart]:
        """The text that stands beside a result's media."""
        if result in (None, {}):
            return []
        if not isinstance(result, str):
            self.history.lose("rewritten", f"{path}.functionResponse.response", "beside media it is JSON text")
            result = encode_json(result)
        return [TextPart(text=result)]


def _part(part: JSONValue) -> Any:
    """A part, and the objects in it, as the wire spells them; what is within calls and results stays as it is."""
    if isinstance(part, str):
        return {"text": part}
    if not isinstance(part, dict):
        return part
    found = spelled(part)
    return {
        name: spelled(value) if name in _OBJECTS and isinstance(value, dict) else value for name, value in found.items()
    }


def _said(part: Any, scope: DecodeScope) -> KnownPart | None:
    """A part of the user's: a text, a medium, or what only this dialect has; None for an empty text."""
    found = fields(part)
    if found.keys() == {"text"} and isinstance(found["text"], str):
        return TextPart(text=found["text"]) if found["text"] else None
    return _medium(found, scope) or OpaquePart(dialect=NAME, block=part)


def _named(values: Any) -> Any:
    """An object of the wire with its own names as hints have them: `startOffset` is `start_offset`."""
    if not isinstance(values, dict):
        return values
    return {re.sub("[A-Z]", lambda found: f"_{found[0].lower()}", name): value for name, value in values.items()}


def _hints(said: Fields, model: type[Frozen], scope: DecodeScope) -> Sections | None:
    """What an object of the wire says besides, as hints; None where their model has no place for some of it."""
    named = _named(said)
    return None if named.keys() - model.model_fields.keys() else read_hints(named, model, scope)


def _medium(found: Fields, scope: DecodeScope) -> MediaPart | None:
    """A medium with its hints; None for a part that says more, or is none."""
    blob, file = fields(found.get("inlineData")), fields(found.get("fileData"))
    mime = text(blob.get("mimeType") or file.get("mimeType")).lower()
    said = {name: _named(value) for name, value in without(found, "inlineData", "fileData").items()}
    vendor = _hints(said, MEDIA_HINTS.get(modality_of(mime), Frozen), scope)
    if vendor is None or len(found) != len(said) + 1:
        return None
    if blob.keys() == {"mimeType", "data"}:
        data = text(blob["data"]).replace("-", "+").replace("_", "/")
        return medium(modality_of(mime), f"data:{spelled_for_url(mime)};base64,{data}", vendor=vendor)
    uri = text(file.get("fileUri"))
    if file.keys() - {"mimeType", "fileUri"} or not mime:
        return None
    if uri.startswith(FILES):
        uri = f"provider-file:{scope.target.provider}/{uri.removeprefix(FILES)}"
    elif not uri.startswith(("http://", "https://")):
        uri = f"provider-file:{scope.target.provider}/{uri}"
    read = medium(modality_of(mime), uri, vendor=vendor)
    return read and read.model_copy(update={"mime": mime})


def _settings(history: History, found: Fields) -> None:
    tools = found.get("tools")
    for index, tool in enumerate([tools] if isinstance(tools, dict) else listed(found, "tools")):
        _tool(history, spelled(expect(tool, dict, f"tools[{index}]")), f"tools[{index}]")
    for name, value in found.items():
        if value is None or name in ("contents", "model", "systemInstruction", "tools"):
            continue
        if name in _READERS:
            _READERS[name](history, spelled(expect(value, dict, name)))
        elif name in _SNAKE:
            history.put_vendor(_SNAKE[name], value)
        else:
            history.put_extra(name, value)


def _tool(history: History, tool: Fields, path: str) -> None:
    """Options of declarations; a tool of the vendor's own, or a declaration that says more than hints, stays one."""
    for index, each in enumerate(items(tool.get("functionDeclarations"))):
        declared = spelled(fields(each))
        schema = declared.get("parametersJsonSchema") or _json_schema(declared.get("parameters"))
        said = {name: value for name, value in declared.items() if value and name not in _DECLARED}
        vendor = _hints(said, OptionHints, history.scope)
        name, description = text(declared.get("name")), text(declared.get("description"))
        if vendor is None or not history.add_option(name, description, schema, vendor):
            history.add_vendor_tool({"functionDeclarations": [each]}, f"{path}.functionDeclarations[{index}]")
    if rest := without(tool, "functionDeclarations"):
        history.add_vendor_tool(rest, path)


def _json_schema(schema: JSONValue) -> Any:
    """The vendor's own form of a schema as a JSON schema: its types in lower case, `nullable` as a type."""
    if isinstance(schema, list):
        return [_json_schema(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    found = {
        name: {key: _json_schema(each) for key, each in value.items()}
        if name in ("properties", "$defs") and isinstance(value, dict)
        else value
        if name in ("enum", "default", "example")
        else _json_schema(value)
        for name, value in schema.items()
    }
    if isinstance(kind := found.get("type"), str):
        kind = kind.lower()
        found["type"] = [kind, "null"] if found.pop("nullable", None) is True else kind
    return found


def _generation(history: History, config: Fields) -> None:
    config = {name: value for name, value in config.items() if value is not None}
    if config.get("responseMimeType") == "application/json" and "responseJsonSchema" in config:
        schema = config["responseJsonSchema"]
        if history.hold_to(text(fields(schema).get("title")) or DEFAULT_NAME, schema):
            config = without(config, "responseMimeType", "responseJsonSchema")
    for name, value in config.items():
        if name in _NEUTRAL and history.takes(_NEUTRAL[name], value):
            history.put(_NEUTRAL[name], value, name)
        elif name in _SNAKE:
            history.put_vendor(_SNAKE[name], value)
        else:
            history.lose("dropped", f"generationConfig.{name}", "no setting has its name or takes its value")


def _tool_config(history: History, config: Fields) -> None:
    calling = spelled(fields(config.get("functionCallingConfig")))
    allowed: Collection[Any] = items(calling.get("allowedFunctionNames"))
    mode = _CHOICES.get(text(calling.get("mode")).upper(), "")
    is_known = calling.keys() <= {"mode", "allowedFunctionNames"} and len(allowed) <= 1
    if allowed:
        is_known, mode = is_known and mode == "required", ""
    if is_known and calling and history.choose(mode, text(next(iter(allowed), ""))):
        config = without(config, "functionCallingConfig")
    if config:
        history.put_vendor("tool_config", config)


_READERS: Mapping[str, Callable[[History, Fields], None]] = {
    "generationConfig": _generation,
    "toolConfig": _tool_config,
}
"""Field of a request → what reads it."""
