"""Settings and options → the fields of a Chat Completions request, except its messages.

neutral settings ──▶ fields of the request     a setting that the model or the API does not accept is a loss
options ──▶ tools        vendor settings ──▶ unchanged, and they replace other fields of the same name
"""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from sabir import ResponseFormat, TextPart
from sabir.authoring import (
    JSON_OBJECT,
    IdentifierRule,
    Insertion,
    JSONValue,
    ReasoningEffort,
    RequestScope,
    fit_effort,
    fit_schema,
    object_or_empty,
    without_fields,
)

from sabir_openai.prompt_cache import encode_prompt_cache
from sabir_openai.schema import LOOSE, STRICT
from sabir_openai.settings import (
    OPENAI,
    ChatSettings,
    ResponsesSettings,
    drop_other_settings,
    drop_other_tools,
    has_tool,
    settings_of,
)

FIELDS: Mapping[str, str] = {
    "max_output_tokens": "max_completion_tokens",
    "temperature": "temperature",
    "top_p": "top_p",
    "stop": "stop",
    "seed": "seed",
    "reasoning_effort": "reasoning_effort",
}
"""Neutral setting → request field in which its value is sent. The quirks `max_tokens` and `random_seed` replace two of
these fields.
"""
_REPLACED_SETTINGS: Mapping[str, str] = {"tool_choice": "option_choice", "thinking": "reasoning_effort"}
"""Vendor setting → the neutral setting that it replaces. A vendor setting with the name of a field in FIELDS replaces
the neutral setting of that field.
"""
_SAMPLING = frozenset({"temperature", "top_p"})
"""Settings that a model accepts only while reasoning is off."""
REFUSED_EFFORTS: frozenset[ReasoningEffort] = frozenset({"max"})
"""Reasoning efforts that OpenAI's own Chat Completions API refuses for every model. Gateways accept them.

Verified by the authors of pydantic-ai (2.68, profiles/openai.py, `openai_chat_supports_max_reasoning_effort`).
"""
OPTIONS_ON_CHAT = "options_on_chat"
"""Name of a fact in models.toml, for models that accept no options on OpenAI's Chat Completions API while they reason.
"unless_it_reasons": the model reasons only when an effort is set, so it accepts options without an effort.
"never_reasoning": the model reasons by default, so it accepts options only with the effort "none".
https://github.com/openai/openai-openapi/issues/541 and https://github.com/BerriAI/litellm/pull/34569
"""
MAX_STOPS = 4
"""The maximum number of stop texts in a request."""
DescribeTool: TypeAlias = Callable[[Mapping[str, Any]], tuple[Any, dict[str, Any]]]
"""A function: a declared tool → its name, and the value of `tool_choice` that chooses the tool."""
FORMAT_NAMES = IdentifierRule(longest=64)
"""The rule for names of response formats."""


def encode_request(scope: RequestScope) -> Mapping[str, JSONValue]:
    """Return all fields of the request except the messages. Report settings that cannot be sent as losses.

    Raises SettingsInvalid for an invalid vendor setting or an option choice that is not offered.
    """
    drop_other_settings(scope, ChatSettings, ResponsesSettings)
    vendor = drop_other_tools(scope.read_vendor(settings_of(ChatSettings, scope)), scope, nested=True)
    if vendor.pop("prefix", False):
        _mark_prefix(scope)
    scope.reasoning_is_off = _turns_reasoning_off(vendor)
    names = {setting: _field_name(name, scope) for setting, name in FIELDS.items()}
    neutral = scope.neutral_fields(names, stops=MAX_STOPS, take=accepted_setting)
    body: dict[str, Any] = {"model": scope.target.model} | neutral
    if "thinking_type" in scope.quirks and body.get("reasoning_effort") == "none":
        body = without_fields(body, "reasoning_effort") | {"thinking": {"type": "disabled"}}
    if scope.options and (rule := scope.model_info.facts.get(OPTIONS_ON_CHAT)):
        body |= _without_reasoning(scope, body.get("reasoning_effort"), str(rule))
    native = dict(scope.native)
    tools = [*encode_options(scope), *native.pop("tools", ()), *vendor.pop("tools", ())]
    body |= native
    cache_fields = encode_prompt_cache(scope, vendor, tools)
    if tools:
        body["tools"] = tools
    body |= encode_choice(scope, tools, _describe_nested_tool) | _response_format(scope) | cache_fields
    replaced = {**_REPLACED_SETTINGS, **{field: setting for setting, field in names.items()}}
    for name in body.keys() & vendor.keys():
        setting = replaced.get(name, name)
        reason = f"the vendor setting {name} replaces this setting"
        scope.losses.add("dropped", reason, path=f"settings.{setting}")
    return body | vendor


def _without_reasoning(scope: RequestScope, effort: ReasoningEffort | None, rule: str) -> dict[str, Any]:
    """Return the field `reasoning_effort` that turns reasoning off, so that the model accepts options, and report a
    loss; {} if the model does not reason anyway. If the model cannot stop reasoning, remove the options instead.

    `rule` is the value of the model's fact OPTIONS_ON_CHAT.
    """
    if effort == "none" or (effort is None and rule == "unless_it_reasons"):
        return {}
    reason = f"{scope.target.model} accepts no tools on {scope.target.dialect} while it reasons"
    if "none" in (scope.model_info.efforts or ()):
        reason += "; reasoning was turned off ('none'); openai.responses accepts tools together with reasoning"
        scope.losses.add("downgraded", reason, path="settings.reasoning_effort")
        return {"reasoning_effort": "none"}
    scope.losses.add("dropped", f"{reason}, and it always reasons; use openai.responses", path="options")
    scope.options = ()
    return {}


def _turns_reasoning_off(vendor: Mapping[str, Any]) -> bool:
    """Return whether the vendor settings `reasoning` and `thinking`, which only some endpoints have, turn reasoning
    off.
    """
    reasoning = object_or_empty(vendor.get("reasoning"))
    is_off = reasoning.get("effort") == "none" or reasoning.get("enabled") is False
    return is_off or object_or_empty(vendor.get("thinking")).get("type") == "disabled"


def _mark_prefix(scope: RequestScope) -> None:
    """Mark the last message as the beginning of the reply. Report a loss if it is not an assistant message."""
    path = f"settings.vendor.{scope.target.provider}.prefix"
    if scope.last_side == "assistant":
        scope.insertions.append(Insertion("end", b"}", b',"prefix":true', path))
    else:
        reason = "only an assistant message can begin the reply, and the last message is not one"
        scope.losses.add("dropped", reason, path=path)


def accepted_setting(scope: RequestScope, setting: str) -> Any:
    """Return the value of a setting to send; None if it is not set.

    If the model does not accept the setting, always or while it reasons, report a loss and return None. An effort that
    the model does not accept becomes the nearest one.
    """
    if setting == "reasoning_effort":
        is_own = scope.target.provider in OPENAI and "max_tokens" not in scope.quirks
        return fit_effort(scope, refused=REFUSED_EFFORTS if is_own else ())
    reasons = scope.model_info.reasoning and scope.settings.take("reasoning_effort") not in (None, "none")
    is_sampling = setting in _SAMPLING and setting not in scope.model_info.rejects
    if is_sampling and reasons and scope.settings.take(setting) is not None:
        reason = f"{scope.target.model} accepts {setting} only without reasoning"
        scope.losses.add("dropped", reason, path=f"settings.{setting}")
        return None
    return scope.setting(setting)


def _field_name(name: str, scope: RequestScope) -> str:
    """Return the name under which this endpoint and model expect the field `name`."""
    if name == "seed" and "random_seed" in scope.quirks:
        return "random_seed"
    # The older name: by the model's row, or assumed for an unknown endpoint, except for OpenAI's reasoning models.
    is_row = "max_tokens" in scope.model_info.quirks
    is_older = is_row or ("max_tokens" in scope.quirks and not scope.model_info.reasoning)
    return "max_tokens" if name == "max_completion_tokens" and is_older else name


def encode_options(scope: RequestScope) -> list[dict[str, Any]]:
    """Return the options as function declarations. Report options and hints that the API does not accept as losses.

    With the hint `strict` True, an option is strict if its schema can be strict and the target is not known to refuse
    or ignore `strict`. With False, it is not strict. Without the hint, an option is strict if the strict schema accepts
    all values of the schema and the target is known to accept `strict`.
    """
    if scope.options and not scope.supports("options", "options"):
        return []
    declared = []
    for index, option in enumerate(scope.options):
        path, hints = f"options[{index}].parameters", scope.target.hints_of(option)
        strict = fit_schema(option.parameters, STRICT)
        is_plain = not strict.narrows and _strict_is_known(scope)
        is_strict = hints.get("strict", is_plain) and not strict.refusal
        if hints.get("strict") and strict.refusal:
            scope.losses.add("downgraded", f"the option was sent without `strict`: {strict.refusal}", path=path)
            hints = without_fields(hints, "strict")
        if is_strict and not scope.supports("strict", f"options[{index}].strict"):
            is_strict, hints = False, without_fields(hints, "strict")
        fitted = strict if is_strict else fit_schema(option.parameters, LOOSE)
        function = {**scope.declare(option), "parameters": fitted.parameters(scope.losses, path)}
        declared.append(
            {"type": "function", "function": {**function, **({"strict": True} if is_strict else {}), **hints}}
        )
    return declared


def _strict_is_known(scope: RequestScope) -> bool:
    """Return whether options may be strict without a hint: the model's row or OpenAI's lists `strict` as accepted."""
    return "no_strict" not in scope.quirks and scope.model_info.status_of("strict") == "accepted"


def encode_choice(scope: RequestScope, tools: list[dict[str, Any]], describe: DescribeTool) -> dict[str, Any]:
    """Return the fields `tool_choice` and `parallel_tool_calls`, without fields that are not set. If the request has no
    tools, report losses and return {}.

    `describe` returns a tool's name and the value of `tool_choice` for that tool. The choice of a vendor's tool that
    this dialect does not accept is a loss. Raises SettingsInvalid for any other name that is not offered.
    """
    choice, parallel = accepted_setting(scope, "option_choice"), accepted_setting(scope, "parallel_options")
    choice_field = choice if scope.native_choice is None else scope.native_choice
    if choice is not None and choice not in RequestScope.CHOICES:
        wire_name = scope.option_names.get(choice, choice)
        choice_field = next((choice_field for name, choice_field in map(describe, tools) if name == wire_name), None)
        if choice_field is None and has_tool(scope, choice):
            reason = f"{scope.target.dialect} does not accept the chosen tool {choice!r}"
            scope.losses.add("dropped", reason, path="settings.option_choice")
        elif choice_field is None:
            raise scope.not_offered(choice)
    fields = {"option_choice": ("tool_choice", choice_field), "parallel_options": ("parallel_tool_calls", parallel)}
    set_fields = {setting: field for setting, field in fields.items() if field[1] is not None}
    if tools:
        return dict(set_fields.values())
    for setting in set_fields:
        scope.losses.add("dropped", "the request has no options", path=f"settings.{setting}")
    return {}


def _describe_nested_tool(tool: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
    kind = str(tool.get("type"))
    name = object_or_empty(tool.get(kind)).get("name")
    return name, {"type": kind, kind: {"name": name}}


def _response_format(scope: RequestScope) -> dict[str, Any]:
    """Return the field `response_format`; {} if the setting is not set or the API does not accept the schema."""
    wanted: ResponseFormat | None = accepted_setting(scope, "response_format")
    if wanted is None:
        return {}
    if "json_object" not in scope.quirks:
        if not (form := encode_format(wanted, scope)):
            return {}
        schema = {"json_schema": without_fields(form, "type")} if form["type"] == "json_schema" else {}
        return {"response_format": {"type": form["type"], **schema}}
    if wanted == JSON_OBJECT:
        return {"response_format": {"type": "json_object"}}
    problem = f"{scope.target} can restrict replies to JSON, but not to a schema"
    reason = f"{problem}; describe the schema in the instructions"
    scope.losses.add("dropped", reason, path="settings.response_format.schema")
    return {"response_format": {"type": "json_object"}}


def encode_format(wanted: ResponseFormat, scope: RequestScope) -> dict[str, Any]:
    """Return the response format: a schema, strict if possible, or any JSON object. If the API does not accept the
    schema, return {} and report a loss.

    The vendor refuses the type `json_object` unless a message contains the word JSON. Without that word, the schema of
    any object is sent, not strict. https://developers.openai.com/api/docs/guides/structured-outputs#json-mode
    """
    if wanted == JSON_OBJECT:
        texts = (part.text for message in scope.messages for part in message.parts if isinstance(part, TextPart))
        any_object = {"name": wanted.name, "schema": wanted.schema_view, "strict": False}
        is_mentioned = any("json" in text.lower() for text in texts)
        return {"type": "json_object"} if is_mentioned else {"type": "json_schema", **any_object}
    path, strict = "settings.response_format", fit_schema(wanted.schema_view, STRICT)
    fitted = fit_schema(wanted.schema_view, LOOSE) if strict.refusal else strict
    if fitted.refusal:
        scope.losses.add("dropped", f"the API does not accept this schema: {fitted.refusal}", path=path)
        return {}
    if strict.refusal:
        reason = f"replies may not match the schema, because the schema cannot be strict: {strict.refusal}"
        scope.losses.add("downgraded", reason, path=path)
    fitted.report(scope.losses, f"{path}.schema")
    name = FORMAT_NAMES.fit(wanted.name)
    if name != wanted.name:
        reason = f"the name {wanted.name!r} was sent as {name!r}, which the API accepts"
        scope.losses.add("rewritten", reason, path=f"{path}.name")
    schema = {"type": "json_schema", "name": name, "schema": fitted.schema, "strict": not strict.refusal}
    return schema | {"description": wanted.description} if wanted.description else schema
