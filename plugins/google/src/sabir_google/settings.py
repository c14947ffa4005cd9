"""Settings that only this wire has, strict; given as `vendor={"google": {…}}`, and sent in the vendor's own spelling.

What a neutral setting says is not repeated here; `thinking_config` holds what stands beside the neutral effort, and
wins over it. https://ai.google.dev/api/generate-content
"""

from collections.abc import Mapping
from typing import Any, TypeAlias

from sabir.models import Frozen

Fields: TypeAlias = dict[str, Any]
"""An object of the vendor's own, sent as it is; the vendor checks what is in it, hence Any."""

TOP_LEVEL = frozenset(
    {
        "cached_content", "continuation_token", "labels", "model_armor_config", "safety_settings", "service_tier",
        "store", "tool_config", "tools",
    }
)  # fmt: skip
"""Settings that are fields of the request; all others are within its `generationConfig`."""


class GoogleSettings(Frozen):
    """Vendor settings of `google.generate_content`. `tools` are the vendor's own, offered beside the options."""

    cached_content: str | None = None
    continuation_token: str | None = None
    labels: dict[str, str] | None = None
    model_armor_config: Fields | None = None
    safety_settings: tuple[Fields, ...] | None = None
    service_tier: str | None = None
    store: bool | None = None
    tool_config: Fields | None = None
    tools: tuple[Fields, ...] = ()

    audio_timestamp: bool | None = None
    candidate_count: int | None = None
    enable_affective_dialog: bool | None = None
    frequency_penalty: float | None = None
    image_config: Fields | None = None
    logprobs: int | None = None
    media_resolution: str | None = None
    presence_penalty: float | None = None
    response_logprobs: bool | None = None
    response_mime_type: str | None = None
    response_modalities: tuple[str, ...] | None = None
    response_schema: Fields | None = None
    routing_config: Fields | None = None
    speech_config: Fields | None = None
    thinking_config: Fields | None = None
    top_k: int | float | None = None


def camel(name: str) -> str:
    """A name as the wire spells it: `top_k` is `topK`."""
    first, *rest = name.split("_")
    return first + "".join(word[:1].upper() + word[1:] for word in rest)


def spelled(values: Mapping[str, Any]) -> Fields:
    """An object whose own field names are as the wire spells them; what they hold stays as it is."""
    return {camel(name): value for name, value in values.items()}
