"""Settings and options → the fields of a Responses request beside its input.

    neutral settings by name ──▶ wire fields        what a model refuses, or the wire cannot say, is a loss
    options ──▶ tools        vendor settings ──▶ as they are, last

Nothing is stored unless the vendor settings ask for it: a conversation carries its own state, as encrypted reasoning.
The vendor returns that by default; of models known to reason it is asked for too, as older endpoints want.
"""

from collections.abc import Mapping
from typing import Any

from sabir import ResponseFormat
from sabir.authoring import JSONValue, RequestScope, read_vendor
from sabir.errors import SettingsInvalid

from sabir_openai.chat_request import FORMAT_NAMES, encode_choice, encode_options, take, tell_changes
from sabir_openai.schema import make_strict
from sabir_openai.settings import ResponsesSettings

_FIELDS = ("max_output_tokens", "temperature", "top_p")
"""Settings whose field has their name and takes their value as it is."""
_ABSENT = ("stop", "seed")
"""Settings that this wire has no field for."""
ENCRYPTED_REASONING = "reasoning.encrypted_content"


def encode_request(scope: RequestScope) -> Mapping[str, JSONValue]:
    """Every field but the input."""
    vendor = read_vendor(ResponsesSettings, scope)
    if previous := vendor.get("previous_response_id"):
        _expect_news(previous, scope)
    body: dict[str, Any] = {"model": scope.target.model, "store": bool(vendor.get("background"))}
    body |= {setting: value for setting in _FIELDS if (value := take(scope, setting)) is not None}
    for setting in _ABSENT:
        if scope.settings.take(setting) is not None:
            scope.losses.add("dropped", f"{scope.target.dialect} has no field for it", path=f"settings.{setting}")
    asked = [ENCRYPTED_REASONING] if scope.model_info.reasoning else []
    effort, verbosity = take(scope, "reasoning_effort"), vendor.pop("verbosity", None)
    tools = [*map(_flat, encode_options(scope)), *vendor.pop("tools", ())]
    found = {
        "include": list(dict.fromkeys([*asked, *vendor.pop("include", ())])),
        "reasoning": {**vendor.pop("reasoning", {}), **({} if effort is None else {"effort": effort})},
        "text": {**_format(scope), **({} if verbosity is None else {"verbosity": verbosity})},
        "tools": tools,
    }
    body |= {name: value for name, value in found.items() if value} | encode_choice(scope, tools, _declared)
    if "tool_choice" in body and "tool_choice" in vendor:
        scope.losses.add("dropped", "the vendor setting tool_choice takes its place", path="settings.option_choice")
    return body | vendor


def _expect_news(previous: str, scope: RequestScope) -> None:
    """Raise SettingsInvalid where the server holds a part of the history and would read it twice."""
    if any(message.origin is not None and message.origin.response_id == previous for message in scope.messages):
        said = f"previous_response_id {previous!r} names an answer of the history: the server holds all up to it"
        raise SettingsInvalid(f"{said}, and would read that twice; give the messages after it alone, or leave it out")


def _flat(tool: Mapping[str, Any]) -> dict[str, Any]:
    """A declaration of chat's as this wire has it: without its inner object, and with `strict` always said."""
    return {"type": tool["type"], "strict": False, **tool[tool["type"]]}


def _declared(tool: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
    return tool.get("name"), {"type": tool.get("type"), "name": tool.get("name")}


def _format(scope: RequestScope) -> dict[str, Any]:
    wanted: ResponseFormat | None = take(scope, "response_format")
    if wanted is None:
        return {}
    path, found = "settings.response_format", make_strict(wanted.schema_view)
    tell_changes(found, path, scope)
    for reason in () if found.strict else found.reasons:
        scope.losses.add("downgraded", f"the schema cannot be strict, so that replies may miss it: {reason}", path=path)
    name = FORMAT_NAMES.fitted(wanted.name)
    if name != wanted.name:
        scope.losses.add("rewritten", f"the wire takes {name!r} for {wanted.name!r}", path=f"{path}.name")
    schema = {"type": "json_schema", "name": name, "schema": found.schema, "strict": found.strict}
    return {"format": {**schema, "description": wanted.description} if wanted.description else schema}
