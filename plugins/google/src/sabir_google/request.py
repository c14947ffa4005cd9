"""Settings and options → the fields of a request, except its contents. The model is in the path, not in a field.

    neutral settings ──▶ generationConfig, toolConfig      a setting that the API does not have is a loss
    options ──▶ functionDeclarations, by JSON schema       vendor settings ──▶ unchanged, last
    leading system texts ──▶ systemInstruction             a user content at the end, if the API requires one
    vendor settings that only the other service accepts    left out (loss: dropped)

The services are the Gemini API and Vertex AI. The typed calls of the SDK raise ValueError for a field that only the
other service accepts. sabir sends ready bytes, which the SDK does not check, so this module repeats the check
(docs/reference/guards.md).

https://ai.google.dev/api/generate-content and https://ai.google.dev/gemini-api/docs/thinking
"""

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, unquote

from sabir import ResponseFormat, SettingsInvalid, Target
from sabir.authoring import (
    JSON_OBJECT,
    JSONValue,
    ReasoningEffort,
    RequestScope,
    SchemaRule,
    TurnScope,
    fit_effort,
    fit_schema,
)

from sabir_google.encode import FILLER, generation, system_parts
from sabir_google.native import VERTEX
from sabir_google.prompt_cache import CachedPrompt, apply_cache
from sabir_google.settings import TOP_LEVEL, GoogleObject, GoogleSettings, camel_case, camel_fields

FIELDS: Mapping[str, str] = {
    "max_output_tokens": "maxOutputTokens",
    "temperature": "temperature",
    "top_p": "topP",
    "seed": "seed",
    "stop": "stopSequences",
}
"""Neutral setting → field of generationConfig in which its value is sent unchanged."""
MAX_STOPS = 5
"""The maximum number of stop texts in a request."""
_DECLARING = frozenset({"functionDeclarations", "function_declarations"})
"""The name of the field with function declarations, in both spellings."""
MODES: Mapping[str, str] = {"auto": "AUTO", "none": "NONE", "required": "ANY"}
"""Option choice → mode of `functionCallingConfig`. If the choice is an option's name, the mode is "ANY"."""
LEVELS: tuple[ReasoningEffort, ...] = ("low", "medium", "high")
"""Thinking levels for a model whose `efforts` are not in models.toml. Most models from Gemini 3 on accept all three."""
BUDGETS: Mapping[ReasoningEffort, int] = {"none": 0, "minimal": 512, "low": 1024, "medium": 8192, "high": 24_576}
"""Effort → thinking budget in tokens for Gemini 2.5. All its models accept 512 to 24,576 tokens."""
SCHEMA_KEYWORDS = frozenset({
    "$anchor", "$defs", "$id", "$ref", "additionalProperties", "anyOf", "description", "enum", "format", "items",
    "maximum", "maxItems", "minimum", "minItems", "oneOf", "prefixItems", "properties", "propertyOrdering",
    "required", "title", "type",
})  # fmt: skip
"""Keywords of a reply's JSON schema that the API reads. Others are sent too, and most are reported as losses.
https://ai.google.dev/api/generate-content#GenerationConfig
"""
REPLY = SchemaRule(
    # The last four keywords do not restrict values, so a loss is not needed.
    keywords=SCHEMA_KEYWORDS | {"$comment", "$schema", "default", "examples"},
    values={"enum": lambda value: all(isinstance(each, str | int | float) for each in value)},
    lone_reference=True,
)
PARAMETERS = SchemaRule(root="object")
"""The rule for the schemas of options' parameters. https://ai.google.dev/api/caching#FunctionDeclaration"""
COUNT_FIELDS = frozenset({"contents", "generationConfig", "systemInstruction", "tools"})
"""Fields that Vertex AI's endpoint for counting tokens accepts.
https://docs.cloud.google.com/vertex-ai/docs/reference/rest
"""
DEFAULT_NAME = "output"
"""The name of a decoded response format whose schema has no title. It is not sent as a title."""


VERTEX_URL = "https://aiplatform.googleapis.com"
"""The URL of Vertex AI in the origins of its replies, so that its signatures are not sent to the Gemini API."""
ONLY_VERTEX = (
    "audio_timestamp", "image_config.image_output_options", "image_config.output_compression_quality",
    "image_config.output_mime_type", "image_config.person_generation", "image_config.prominent_people",
    "model_armor_config", "routing_config", "safety_settings.method",
    "tool_config.function_calling_config.stream_function_call_arguments", "tools.enterprise_web_search",
    "tools.exa_ai_search", "tools.google_maps.grounding_types", "tools.google_search.blocking_confidence",
    "tools.google_search.exclude_domains", "tools.parallel_ai_search", "tools.retrieval",
)  # fmt: skip
"""Vendor settings, and paths of fields within them, that the SDK refuses to send to the Gemini API."""
ONLY_GEMINI = (
    "store", "tool_config.include_server_side_tool_invocations", "tools.file_search", "tools.mcp_servers.name",
    "tools.mcp_servers.streamable_http_transport",
)  # fmt: skip
"""Vendor settings, and paths of fields within them, that the SDK refuses to send to Vertex AI."""
CACHES = "cachedContents/"
"""The beginning of the name of a cache at the Gemini API."""


def encode_request(scope: RequestScope) -> Mapping[str, JSONValue]:
    """Return all fields of the request except the contents. Report settings that cannot be sent as losses.

    Raises SettingsInvalid for an invalid vendor setting or an option choice that is not offered.
    """
    vendor = scope.read_vendor(GoogleSettings)
    drop_settings_of_other_service(vendor, scope)
    cache = vendor.get("cached_content")
    # Vertex AI requires the complete name.
    if isinstance(cache, str) and cache and "/" not in cache and VERTEX not in scope.quirks:
        vendor["cached_content"] = f"{CACHES}{cache}"
    _add_closing_content(scope)
    config = scope.neutral_fields(FIELDS, absent=("parallel_options",), stops=MAX_STOPS)
    config |= _response_format_fields(scope)
    thinking = _thinking_config(scope, camel_fields(vendor.pop("thinking_config", None) or {}))
    config |= {"thinkingConfig": thinking} if thinking else {}
    native = dict(scope.native)
    tools = [*_function_declarations(scope), *native.pop("tools", ()), *vendor.pop("tools", ())]
    choice = _function_calling_config(scope, offers=any(tool.keys() & _DECLARING for tool in tools))
    if choice and "functionCallingConfig" in (vendor.get("tool_config") or {}):
        reason = "the vendor setting tool_config replaces this setting"
        scope.losses.add("dropped", reason, path="settings.option_choice")
    fields: dict[str, Any] = {
        "systemInstruction": {"parts": parts} if (parts := system_parts(scope.system)) else None,
        "tools": tools,
        "toolConfig": {**native.get("toolConfig", {}), **choice, **(vendor.pop("tool_config", None) or {})},
        "generationConfig": config | camel_fields({name: vendor[name] for name in vendor.keys() - TOP_LEVEL}),
    }
    body = {name: value for name, value in fields.items() if value}
    has_cache = bool(cache)
    if cache and not isinstance(cache, str):
        has_cache = apply_cache(body, CachedPrompt.model_validate(vendor.pop("cached_content")), scope)
    if scope.setting("prompt_cache") and not has_cache:
        reason = "the API caches by itself, or in a cache of sabir_google.create_cache that cached_content names"
        scope.losses.add("dropped", reason, path="settings.prompt_cache")
    return body | {camel_case(name): value for name, value in vendor.items() if name in TOP_LEVEL}


def _add_closing_content(scope: RequestScope) -> None:
    """Add a user content at the end, with a loss, if there is no content, or if the last content is the model's and the
    model does not accept this.
    """
    if scope.last_side is None:
        reason = "the API requires a user message, and there is none; the text '…' was sent"
    elif scope.last_side == "assistant" and "ending_assistant" in scope.model_info.rejects:
        refusal = f"{scope.target.model} does not accept a conversation that ends with a model message"
        reason = f"{refusal}; a user message '…' was added"
    else:
        return
    scope.losses.add("synthesized", reason, path="contents")
    scope.closing.append(FILLER)


def _thinking_config(scope: RequestScope, vendor: dict[str, Any]) -> dict[str, Any]:
    """Return the field `thinkingConfig`: the vendor's fields, and a level, or a budget in tokens for Gemini 1 and 2.

    A level or a budget in the vendor's fields replaces the neutral effort (loss: dropped).
    """
    path, model = "settings.reasoning_effort", scope.target.model
    if vendor.keys() & {"thinkingBudget", "thinkingLevel"}:
        if scope.setting("reasoning_effort") is not None:
            scope.losses.add("dropped", "the vendor setting thinking_config replaces this setting", path=path)
        return vendor
    has_levels = generation(model) not in (1, 2)
    effort = fit_effort(scope, unknown=LEVELS if has_levels else tuple(BUDGETS))
    if effort is None:
        return vendor
    if has_levels:
        return {"thinkingLevel": effort.upper(), **vendor}
    budget = BUDGETS.get(effort, BUDGETS["high"])
    reason = f"{model} accepts no effort, but a thinking budget in tokens; {budget} was sent"
    scope.losses.add("rewritten", reason, path=path)
    return {"thinkingBudget": budget, **vendor}


def _function_declarations(scope: RequestScope) -> list[dict[str, Any]]:
    """Return a list with one tool that declares all options; [] without options."""
    declared = []
    for index, option in enumerate(scope.options):
        fitted = fit_schema(option.parameters, PARAMETERS)
        parameters = fitted.parameters(scope.losses, f"options[{index}].parameters")
        hints = camel_fields(scope.target.hints_of(option))
        declared.append({**scope.declare(option), "parametersJsonSchema": parameters, **hints})
    return [{"functionDeclarations": declared}] if declared else []


def _function_calling_config(scope: RequestScope, *, offers: bool) -> dict[str, Any]:
    """Return an object with the field `functionCallingConfig` for the option choice; {} if no choice is set.

    If the request has no function declarations, report a loss and return {}: the API refuses a choice if there are only
    the vendor's own tools (pydantic-ai#5791). Raises SettingsInvalid for a name that is not offered.
    """
    choice = scope.setting("option_choice")
    if choice is None:
        return {}
    config: dict[str, Any] = {"mode": MODES.get(choice, "ANY")}
    if choice not in MODES:
        config["allowedFunctionNames"] = [scope.name_choice(choice)]
    if offers:
        return {"functionCallingConfig": config}
    scope.losses.add("dropped", "the request has no options", path="settings.option_choice")
    return {}


def _response_format_fields(scope: RequestScope) -> dict[str, Any]:
    """Return the fields that request a reply in the response format: JSON, and its schema.

    The format's name and description become `title` and `description` of the schema if the schema has none. They are
    losses if the schema has `$ref` at its root, because then the API accepts no other keyword there.
    """
    wanted: ResponseFormat | None = scope.setting("response_format")
    if wanted is None:
        return {}
    if wanted == JSON_OBJECT:
        return {"responseMimeType": "application/json"}
    path, fitted = "settings.response_format", fit_schema(wanted.schema_view, REPLY)
    if fitted.refusal:
        scope.losses.add("dropped", f"the API does not accept this schema: {fitted.refusal}", path=path)
        return {}
    fitted.report(scope.losses, f"{path}.schema")
    schema = fitted.schema
    annotations = {"title": wanted.name if wanted.name != DEFAULT_NAME else "", "description": wanted.description or ""}
    for keyword, value in annotations.items():
        if value and "$ref" in schema:
            reason = f"a schema with $ref at its root cannot also contain {keyword}"
            scope.losses.add("dropped", reason, path=f"{path}.{keyword}")
        elif value:
            schema.setdefault(keyword, value)
    return {"responseMimeType": "application/json", "responseJsonSchema": schema}


def drop_settings_of_other_service(vendor: GoogleObject, scope: RequestScope) -> None:
    """Remove vendor settings that only the other service accepts from `vendor`, and report each as a loss."""
    others, service = (ONLY_GEMINI, "Vertex AI") if VERTEX in scope.quirks else (ONLY_VERTEX, "the Gemini API")
    for path in others:
        if _remove_setting(vendor, path.split(".")):
            where = f"settings.vendor.{scope.target.provider}.{path}"
            scope.losses.add("dropped", f"{service} does not accept this setting", path=where)
    for name in ("safety_settings", "tools"):
        if name in vendor:
            vendor[name] = [each for each in vendor[name] if each]


def _remove_setting(holder: Any, names: list[str]) -> bool:
    """Remove the field at the path `names`, in snake_case or camelCase, from `holder`, or from all items if `holder` is
    a list. Return whether a value was removed.
    """
    if isinstance(holder, list):
        return any([_remove_setting(each, names) for each in holder])
    if not isinstance(holder, dict):
        return False
    first, *rest = names
    spellings = [name for name in (first, camel_case(first)) if name in holder]
    if rest:
        return any([_remove_setting(holder[name], rest) for name in dict.fromkeys(spellings)])
    return any([holder.pop(name, None) is not None for name in spellings])


def model_path(target: Target) -> str:
    """Return the URL path of a model, as the SDK builds it. The folder is `models`, unless the name begins with
    `models/` or `tunedModels/`.

    Raises SettingsInvalid for a name with "..", because the path could then reach another resource with the key.
    """
    if ".." in target.model:
        raise SettingsInvalid(f"the model {target.model!r} would change the URL's path; expected a name without '..'")
    has_folder = target.model.startswith(("models/", "tunedModels/"))
    name = target.model if has_folder else f"models/{target.model}"
    return f"/v1beta/{quote(name, safe='/')}"


def path(target: Target) -> str:
    """Return the path for a request without streaming. The version is v1beta, because only this version reads JSON
    schemas of parameters.
    """
    return f"{model_path(target)}:generateContent"


def stream_path(target: Target) -> str:
    """Return the path for a stream of server-sent events."""
    return f"{model_path(target)}:streamGenerateContent?alt=sse"


def encode_count(body: Mapping[str, JSONValue], scope: TurnScope) -> tuple[str, Mapping[str, JSONValue]]:
    """Return the path and the body of a request that counts the tokens of `body`.

    For the Gemini API, the body contains the complete request and the model. For Vertex AI, fields that the endpoint
    does not accept are left out.
    """
    path = model_path(scope.target)
    if VERTEX in scope.quirks:
        return f"{path}:countTokens", {name: value for name, value in body.items() if name in COUNT_FIELDS}
    return f"{path}:countTokens", {"generateContentRequest": {"model": unquote(path).removeprefix("/v1beta/"), **body}}
