"""Fields that only one of the vendor's two services takes: the Gemini API or Vertex AI.

    vendor settings ── of the other service alone ──▶ left out (loss: dropped)
                    └─ all else ─────────────────────▶ as they are

The SDK's typed calls raise ValueError for such a field; ready bytes bypass that guard, so it is repeated here
(docs/reference/guards.md).
"""

from typing import Any

from sabir.authoring import RequestScope

from sabir_google.settings import Fields, camel

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


def leave_out_the_others(vendor: Fields, scope: RequestScope) -> None:
    """Remove vendor settings that only the other service has; each is a loss."""
    others, service = (ONLY_GEMINI, "Vertex AI") if VERTEX in scope.quirks else (ONLY_VERTEX, "the Gemini API")
    for path in others:
        if _taken_out(vendor, path.split(".")):
            where = f"settings.vendor.{scope.target.provider}.{path}"
            scope.losses.add("dropped", f"{service} does not take it, and the SDK refuses to send it there", path=where)
    for name in ("safety_settings", "tools"):
        if name in vendor:
            vendor[name] = [each for each in vendor[name] if each]


def whole_name(cache: str, scope: RequestScope) -> str:
    """A cache's name as the Gemini API has it, with its collection; at Vertex AI it must be given whole."""
    return cache if "/" in cache or VERTEX in scope.quirks else f"{CACHES}{cache}"


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
