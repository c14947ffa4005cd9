"""Settings and options → the fields of a request beside its contents. The model is not among them: the path names it.

    neutral settings ──▶ generationConfig, toolConfig      settings that the wire lacks are losses
    options ──▶ functionDeclarations, by JSON schema       vendor settings ──▶ verbatim, last
    system texts ──▶ systemInstruction                     no user content, or none last ──▶ a closing user content
    vendor settings of the other service alone             left out (loss: dropped)

The SDK's typed calls raise ValueError for a field that only the other service takes (the Gemini API or Vertex AI);
ready bytes bypass that guard, so it is repeated here (docs/reference/guards.md).

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
from sabir_google.settings import TOP_LEVEL, Fields, GoogleSettings, camel, spelled

FIELDS: Mapping[str, str] = {
    "max_output_tokens": "maxOutputTokens",
    "temperature": "temperature",
    "top_p": "topP",
    "seed": "seed",
    "stop": "stopSequences",
}
"""Neutral setting → field of generationConfig that takes its value as it is."""
MOST_STOPS = 5
_DECLARING = frozenset({"functionDeclarations", "function_declarations"})
MODES: Mapping[str, str] = {"auto": "AUTO", "none": "NONE", "required": "ANY"}
LEVELS: tuple[ReasoningEffort, ...] = ("low", "medium", "high")
"""Thinking levels that every model from Gemini 3 on accepts, except Gemini 3 Pro; models.toml lists those of each."""
BUDGETS: Mapping[ReasoningEffort, int] = {"none": 0, "minimal": 512, "low": 1024, "medium": 8192, "high": 24_576}
"""Effort → thinking tokens of Gemini 2.5; no model of it takes less, except 0, and only the largest takes more."""
READ = frozenset({
    "$anchor", "$defs", "$id", "$ref", "additionalProperties", "anyOf", "description", "enum", "format", "items",
    "maximum", "maxItems", "minimum", "minItems", "oneOf", "prefixItems", "properties", "propertyOrdering",
    "required", "title", "type",
})  # fmt: skip
"""Keywords of a response's JSON schema that are read. https://ai.google.dev/api/generate-content#GenerationConfig"""
REPLY = SchemaRule(
    # Keywords that constrain nothing need no loss.
    keywords=READ | {"$comment", "$schema", "default", "examples"},
    values={"enum": lambda value: all(isinstance(each, str | int | float) for each in value)},
    lone_reference=True,
)
PARAMETERS = SchemaRule(root="object")
"""https://ai.google.dev/api/caching#FunctionDeclaration"""
_COUNTED = frozenset({"contents", "generationConfig", "systemInstruction", "tools"})
"""The fields that Vertex AI's counting endpoint takes. https://docs.cloud.google.com/vertex-ai/docs/reference/rest"""
DEFAULT_NAME = "output"
"""The name of a response format without one."""


VERTEX = "vertex"
"""Quirk of a client of Vertex AI; without it the service is the Gemini API."""
VERTEX_URL = "https://aiplatform.googleapis.com"
"""The endpoint of Vertex AI in an origin: neither service reads the signatures of the other."""
ONLY_VERTEX = (
    "audio_timestamp", "image_config.image_output_options", "image_config.output_compression_quality",
    "image_config.output_mime_type", "image_config.person_generation", "image_config.prominent_people",
    "model_armor_config", "routing_config", "safety_settings.method",
    "tool_config.function_calling_config.stream_function_call_arguments", "tools.enterprise_web_search",
    "tools.exa_ai_search", "tools.google_maps.grounding_types", "tools.google_search.blocking_confidence",
    "tools.google_search.exclude_domains", "tools.parallel_ai_search", "tools.retrieval",
)  # fmt: skip
"""Vendor settings, and fields within them, that the SDK refuses to send to the Gemini API."""
ONLY_GEMINI = (
    "store", "tool_config.include_server_side_tool_invocations", "tools.file_search", "tools.mcp_servers.name",
    "tools.mcp_servers.streamable_http_transport",
)  # fmt: skip
"""Vendor settings that the SDK refuses to send to Vertex AI."""
CACHES = "cachedContents/"


def encode_request(scope: RequestScope) -> Mapping[str, JSONValue]:
    """Every field but the contents."""
    vendor = scope.read_vendor(GoogleSettings)
    leave_out_the_others(vendor, scope)
    cache = vendor.get("cached_content")
    if cache and "/" not in cache and VERTEX not in scope.quirks:  # at Vertex AI the name must be given whole
        vendor["cached_content"] = f"{CACHES}{cache}"
    _close(scope)
    config = scope.neutral_fields(FIELDS, absent=("parallel_options",), stops=MOST_STOPS) | _format(scope)
    thinking = _thinking(scope, spelled(vendor.pop("thinking_config", None) or {}))
    config |= {"thinkingConfig": thinking} if thinking else {}
    tools = [*_declarations(scope), *vendor.pop("tools", ())]
    choice = _choice(scope, offers=any(tool.keys() & _DECLARING for tool in tools))
    if choice and "functionCallingConfig" in (vendor.get("tool_config") or {}):
        scope.losses.add("dropped", "the vendor setting tool_config replaces it", path="settings.option_choice")
    found: dict[str, Any] = {
        "systemInstruction": {"parts": parts} if (parts := system_parts(scope.system)) else None,
        "tools": tools,
        "toolConfig": {**choice, **(vendor.pop("tool_config", None) or {})},
        "generationConfig": config | spelled({name: vendor[name] for name in vendor.keys() - TOP_LEVEL}),
    }
    body = {name: value for name, value in found.items() if value}
    return body | {camel(name): value for name, value in vendor.items() if name in TOP_LEVEL}


def _close(scope: RequestScope) -> None:
    """Add a user content at the end where the wire requires one: nobody spoke, or the model may not speak last."""
    if scope.last_side is None:
        reason = "the API requires a user message, and there is none"
    elif scope.last_side == "assistant" and "ending_assistant" in scope.model_info.rejects:
        reason = f"{scope.target.model} does not accept a conversation that ends with a model message"
    else:
        return
    scope.losses.add("synthesized", reason, path="contents")
    scope.closing.append(FILLER)


def _thinking(scope: RequestScope, vendor: dict[str, Any]) -> dict[str, Any]:
    """Return how much the model thinks: a level from Gemini 3 on and for unknown models, else a number of tokens."""
    path, model = "settings.reasoning_effort", scope.target.model
    if vendor.keys() & {"thinkingBudget", "thinkingLevel"}:
        if scope.setting("reasoning_effort") is not None:
            scope.losses.add("dropped", "the vendor setting thinking_config replaces it", path=path)
        return vendor
    has_levels = generation(model) not in (1, 2)
    effort = fit_effort(scope, unknown=LEVELS if has_levels else tuple(BUDGETS))
    if effort is None:
        return vendor
    if has_levels:
        return {"thinkingLevel": effort.upper(), **vendor}
    budget = BUDGETS.get(effort, BUDGETS["high"])
    scope.losses.add("rewritten", f"{model} requires a number of tokens; {budget} was sent", path=path)
    return {"thinkingBudget": budget, **vendor}


def _declarations(scope: RequestScope) -> list[dict[str, Any]]:
    """The options as one tool of function declarations."""
    declared = []
    for index, option in enumerate(scope.options):
        fitted = fit_schema(option.parameters, PARAMETERS)
        parameters = fitted.parameters(scope.losses, f"options[{index}].parameters")
        hints = spelled(scope.target.hints_of(option))
        declared.append({**scope.declare(option), "parametersJsonSchema": parameters, **hints})
    return [{"functionDeclarations": declared}] if declared else []


def _choice(scope: RequestScope, *, offers: bool) -> dict[str, Any]:
    """The option that the model must choose; raises SettingsInvalid if it is not offered, a loss if no option is.

    The vendor's own tools do not count as options: the vendor refuses a choice beside them alone (pydantic-ai#5791).
    """
    choice = scope.setting("option_choice")
    if choice is None:
        return {}
    config: dict[str, Any] = {"mode": MODES.get(choice, "ANY")}
    if choice not in MODES:
        config["allowedFunctionNames"] = [scope.name_choice(choice)]
    if offers:
        return {"functionCallingConfig": config}
    scope.losses.add("dropped", "no options were passed", path="settings.option_choice")
    return {}


def _format(scope: RequestScope) -> dict[str, Any]:
    """The schema that replies must match; the format's name and description are put into it if it has none.

    Beside a `$ref` the vendor takes no other keyword, so they are a loss there.
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
    said = {"title": wanted.name if wanted.name != DEFAULT_NAME else "", "description": wanted.description or ""}
    for keyword, value in said.items():
        if value and "$ref" in schema:
            reason = f"a schema with $ref cannot also contain {keyword}"
            scope.losses.add("dropped", reason, path=f"{path}.{keyword}")
        elif value:
            schema.setdefault(keyword, value)
    return {"responseMimeType": "application/json", "responseJsonSchema": schema}


def leave_out_the_others(vendor: Fields, scope: RequestScope) -> None:
    """Remove vendor settings that only the other service has; each is a loss."""
    others, service = (ONLY_GEMINI, "Vertex AI") if VERTEX in scope.quirks else (ONLY_VERTEX, "the Gemini API")
    for path in others:
        if _taken_out(vendor, path.split(".")):
            where = f"settings.vendor.{scope.target.provider}.{path}"
            scope.losses.add("dropped", f"{service} does not accept it, and the SDK refuses to send it", path=where)
    for name in ("safety_settings", "tools"):
        if name in vendor:
            vendor[name] = [each for each in vendor[name] if each]


def _taken_out(holder: Any, names: list[str]) -> bool:
    """Remove a field everywhere in `holder`, in either spelling; return whether it was there."""
    if isinstance(holder, list):
        return any([_taken_out(each, names) for each in holder])
    if not isinstance(holder, dict):
        return False
    first, *rest = names
    spelt = [name for name in (first, camel(first)) if name in holder]
    if rest:
        return any([_taken_out(holder[name], rest) for name in dict.fromkeys(spelt)])
    return any([holder.pop(name, None) is not None for name in spelt])


def model_path(target: Target) -> str:
    """Return a model's path below the endpoint, as the SDK makes it: in the folder that its name has, or in `models`.

    Raises SettingsInvalid for a name with `..`, as the SDK does: the path could reach another resource with the key.
    """
    if ".." in target.model:
        raise SettingsInvalid(f"the model {target.model!r} would change the URL's path; use a name without '..'")
    is_placed = target.model.startswith(("models/", "tunedModels/"))
    name = target.model if is_placed else f"models/{target.model}"
    return f"/v1beta/{quote(name, safe='/')}"


def path(target: Target) -> str:
    """The path of the model and its method; v1beta, because only that version reads JSON schemas of parameters."""
    return f"{model_path(target)}:generateContent"


def stream_path(target: Target) -> str:
    """As `path`, for a stream of server-sent events."""
    return f"{model_path(target)}:streamGenerateContent?alt=sse"


def encode_count(body: Mapping[str, JSONValue], scope: TurnScope) -> tuple[str, Mapping[str, JSONValue]]:
    """The path and body that ask for the vendor's own count of the request; the body names the model too."""
    path = model_path(scope.target)
    if VERTEX in scope.quirks:
        return f"{path}:countTokens", {name: value for name, value in body.items() if name in _COUNTED}
    return f"{path}:countTokens", {"generateContentRequest": {"model": unquote(path).removeprefix("/v1beta/"), **body}}
