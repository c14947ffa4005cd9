"""Settings and options → the fields of a Responses request beside its input.

    neutral settings by name ──▶ wire fields        settings that a model refuses or the wire lacks are losses
    options ──▶ tools        vendor settings ──▶ as they are, last

Nothing is stored unless the vendor settings ask for it: a conversation carries its own state, as encrypted reasoning.
The vendor returns that by default; for models known to reason it is also requested, as older endpoints require.
"""

from collections.abc import Mapping
from typing import Any

from sabir.authoring import FrozenDict, JSONValue, RequestScope, TurnScope, fit_effort, without_fields
from sabir.errors import SettingsInvalid

from sabir_openai.chat_request import encode_choice, encode_format, encode_options, take
from sabir_openai.settings import ChatSettings, ResponsesSettings, in_form, leave_out_the_others, settings_of

FIELDS = {name: name for name in ("max_output_tokens", "temperature", "top_p")}
"""Neutral setting → field that takes its value as it is."""
ENCRYPTED_REASONING = "reasoning.encrypted_content"
PATH = "/responses"
COUNTED = frozenset({
    "conversation", "input", "instructions", "model", "parallel_tool_calls", "previous_response_id", "reasoning",
    "text", "tool_choice", "tools", "truncation",
})  # fmt: skip
"""Fields of a request that the counting endpoint takes."""


def encode_request(scope: RequestScope) -> Mapping[str, JSONValue]:
    """Every field but the input."""
    leave_out_the_others(scope, ResponsesSettings, ChatSettings)
    if scope.vendor.get("store") is False:  # it is the default of every request here
        scope.vendor = FrozenDict(without_fields(scope.vendor, "store"))
    vendor = in_form(scope.read_vendor(settings_of(ResponsesSettings, scope)), scope, nested=False)
    if previous := vendor.get("previous_response_id"):
        _expect_news(previous, scope)
    body: dict[str, Any] = {"model": scope.target.model}
    if _is_heeded(scope, "store"):
        body["store"] = bool(vendor.get("background"))
    body |= scope.neutral_fields(FIELDS, absent=("stop", "seed"), take=take)
    asked = [ENCRYPTED_REASONING] if scope.model_info.reasoning and _is_heeded(scope, "include") else []
    effort, verbosity, form = fit_effort(scope), vendor.pop("verbosity", None), take(scope, "response_format")
    tools = [*map(_flat, encode_options(scope)), *vendor.pop("tools", ())]
    found: dict[str, Any] = {
        "include": list(dict.fromkeys([*asked, *vendor.pop("include", ())])),
        "reasoning": vendor.pop("reasoning", {}) | ({} if effort is None else {"effort": effort}),
        "text": {"format": encoded} if form is not None and (encoded := encode_format(form, scope)) else {},
        "tools": tools,
    }
    if verbosity is not None:
        found["text"]["verbosity"] = verbosity
    body |= {name: value for name, value in found.items() if value} | encode_choice(scope, tools, _declared)
    if "tool_choice" in body and "tool_choice" in vendor:
        scope.losses.add("dropped", "the vendor setting tool_choice replaces it", path="settings.option_choice")
    return body | vendor


def _is_heeded(scope: RequestScope, name: str) -> bool:
    """Return whether the endpoint heeds a field that nobody asked for; one that stores nothing refuses only `true`."""
    return scope.model_info.status_of(f"vendor.{name}") != "ignored"


def _expect_news(previous: str, scope: RequestScope) -> None:
    """Raise SettingsInvalid if the server stores a part of the sent history and would read it twice."""
    if any(message.origin is not None and message.origin.response_id == previous for message in scope.messages):
        said = (
            f"previous_response_id {previous!r} is a reply in the history, and the server stores all messages up to it"
        )
        raise SettingsInvalid(f"{said} and would read them twice; pass only the messages after it, or remove the id")


def _flat(tool: Mapping[str, Any]) -> dict[str, Any]:
    """A chat declaration in this wire's form: without its inner object, and always with `strict`."""
    return {"type": tool["type"], "strict": False, **tool[tool["type"]]}


def _declared(tool: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
    return tool.get("name"), {"type": tool.get("type"), "name": tool.get("name")}


def encode_count(body: Mapping[str, JSONValue], scope: TurnScope) -> tuple[str, Mapping[str, JSONValue]]:
    """The path and body that ask for the vendor's own count, with the fields that the counting endpoint takes."""
    return f"{PATH}/input_tokens", {name: value for name, value in body.items() if name in COUNTED}
