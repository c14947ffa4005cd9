"""Settings and options → the fields of a Responses request, except its input.

    neutral settings ──▶ fields of the request     a setting that the model or the API does not accept is a loss
    options ──▶ tools        vendor settings ──▶ unchanged, and they replace other fields of the same name

OpenAI stores no response unless `store` or `background` is True. Instead, replies contain encrypted reasoning, which is
sent back. The vendor returns encrypted reasoning by default. For models known to reason, the request also asks for it,
because older endpoints require this.
"""

from collections.abc import Mapping
from typing import Any

from sabir.authoring import FrozenDict, JSONValue, RequestScope, TurnScope, fit_effort, without_fields
from sabir.errors import SettingsInvalid

from sabir_openai.chat_request import accepted_setting, encode_choice, encode_format, encode_options
from sabir_openai.prompt_cache import encode_prompt_cache
from sabir_openai.settings import ChatSettings, ResponsesSettings, drop_other_settings, drop_other_tools, settings_of

FIELDS = {name: name for name in ("max_output_tokens", "temperature", "top_p")}
"""Neutral setting → request field in which its value is sent unchanged."""
ENCRYPTED_REASONING = "reasoning.encrypted_content"
"""The value of `include` that requests encrypted reasoning."""
PATH = "/responses"
COUNT_FIELDS = frozenset({
    "conversation", "input", "instructions", "model", "parallel_tool_calls", "previous_response_id", "reasoning",
    "text", "tool_choice", "tools", "truncation",
})  # fmt: skip
"""Fields of a request that the endpoint for counting tokens accepts."""


def encode_request(scope: RequestScope) -> Mapping[str, JSONValue]:
    """Return all fields of the request except the input. Report settings that cannot be sent as losses.

    Raises SettingsInvalid for an invalid vendor setting, an option choice that is not offered, `background` True with
    `store` False, and a `previous_response_id` of a reply in the history.
    """
    drop_other_settings(scope, ResponsesSettings, ChatSettings)
    if scope.vendor.get("store") is False:  # every request of this dialect sends False by default
        if scope.vendor.get("background"):
            rule = "the API stores responses that it generates in the background"
            raise SettingsInvalid(f"vendor has background=True and store=False, but {rule}; remove one of the two")
        scope.vendor = FrozenDict(without_fields(scope.vendor, "store"))
    vendor = drop_other_tools(scope.read_vendor(settings_of(ResponsesSettings, scope)), scope, nested=False)
    if previous_id := vendor.get("previous_response_id"):
        _check_previous_response(previous_id, scope)
    body: dict[str, Any] = {"model": scope.target.model}
    if _is_worth_sending(scope, "store"):
        body["store"] = bool(vendor.get("background"))
    body |= scope.neutral_fields(FIELDS, absent=("stop", "seed"), take=accepted_setting)
    encrypted = [ENCRYPTED_REASONING] if scope.model_info.reasoning and _is_worth_sending(scope, "include") else []
    effort, verbosity = fit_effort(scope), vendor.pop("verbosity", None)
    form = accepted_setting(scope, "response_format")
    native = dict(scope.native)
    tools = [*map(_flatten_tool, encode_options(scope)), *native.pop("tools", ()), *vendor.pop("tools", ())]
    included = native.pop("include", ()) if _is_worth_sending(scope, "include") else ()
    body |= encode_prompt_cache(scope, vendor, tools)
    fields: dict[str, Any] = {
        "include": list(dict.fromkeys([*encrypted, *vendor.pop("include", ()), *included])),
        "reasoning": vendor.pop("reasoning", {}) | ({} if effort is None else {"effort": effort}),
        "text": {"format": encoded} if form is not None and (encoded := encode_format(form, scope)) else {},
        "tools": tools,
    }
    if verbosity is not None:
        fields["text"]["verbosity"] = verbosity
    body |= {name: value for name, value in fields.items() if value} | encode_choice(scope, tools, _describe_flat_tool)
    if "tool_choice" in body and "tool_choice" in vendor:
        reason = "the vendor setting tool_choice replaces this setting"
        scope.losses.add("dropped", reason, path="settings.option_choice")
    return body | vendor


def _is_worth_sending(scope: RequestScope, name: str) -> bool:
    """Return whether to send a field that the user did not set. False if the endpoint is known to ignore the field."""
    return scope.model_info.status_of(f"vendor.{name}") != "ignored"


def _check_previous_response(previous_id: str, scope: RequestScope) -> None:
    """Raise SettingsInvalid if the reply with the id `previous_id` is in the history, because the server would read the
    stored messages twice.
    """
    if any(message.origin is not None and message.origin.response_id == previous_id for message in scope.messages):
        problem = f"previous_response_id {previous_id!r} is the id of a reply in the history"
        reason = "and the server stores all messages up to it and would read them twice"
        raise SettingsInvalid(f"{problem}, {reason}; pass only the messages after it, or remove the id")


def _flatten_tool(tool: Mapping[str, Any]) -> dict[str, Any]:
    """Return a tool declaration of `openai.chat` in the form of this API: without the inner object. A missing `strict`
    becomes False.
    """
    return {"type": tool["type"], "strict": False, **tool[tool["type"]]}


def _describe_flat_tool(tool: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
    return tool.get("name"), {"type": tool.get("type"), "name": tool.get("name")}


def encode_count(body: Mapping[str, JSONValue], scope: TurnScope) -> tuple[str, Mapping[str, JSONValue]]:
    """Return the path and the body of a request that counts the tokens of `body`. Fields that the endpoint does not
    accept are left out.
    """
    return f"{PATH}/input_tokens", {name: value for name, value in body.items() if name in COUNT_FIELDS}
