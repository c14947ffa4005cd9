"""Strict models of what only this wire has; given as `vendor={"google": {…}}`, and sent in the vendor's own spelling.

Neutral settings are not repeated here; `thinking_config` holds the fields beside the neutral effort, and overrides
it. Media and options have their own hints. https://ai.google.dev/api/generate-content
"""

from collections.abc import Mapping
from typing import Any, TypeAlias

from sabir.authoring import Frozen

Fields: TypeAlias = dict[str, Any]
"""A vendor-defined object, sent verbatim; the vendor checks its contents, hence Any."""

TOP_LEVEL = frozenset({
    "cached_content", "continuation_token", "labels", "model_armor_config", "safety_settings", "service_tier",
    "store", "tool_config", "tools",
})  # fmt: skip
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


class VideoMetadata(Frozen, strict=True):
    """The part of a video that is read: frames per second, start and end offset, such as "2.5s"."""

    fps: int | float | None = None
    start_offset: str | None = None
    end_offset: str | None = None
    content_layers: list[str] | None = None


class MediaResolution(Frozen, strict=True):
    """How many tokens a medium is read as; `level` is a vendor's name, such as "MEDIA_RESOLUTION_LOW"."""

    level: str | None = None
    num_tokens: int | None = None


class MediaHints(Frozen, strict=True):
    """Vendor hints of an image or a document."""

    media_resolution: MediaResolution | None = None


class VideoHints(MediaHints):
    """Vendor hints of a video."""

    video_metadata: VideoMetadata | None = None


class OptionHints(Frozen, strict=True):
    """Vendor hints of an option: further fields of its declaration; `response` is a schema in the vendor's own form."""

    behavior: str | None = None
    response: Fields | None = None
    response_json_schema: Fields | None = None


MEDIA_HINTS: Mapping[str, type[MediaHints]] = {"image": MediaHints, "video": VideoHints, "document": MediaHints}
"""Modality → its hints; audio has none, because the resolution does not change how it is read."""


def camel(name: str) -> str:
    """A name as the wire spells it: `top_k` is `topK`."""
    first, *rest = name.split("_")
    return first + "".join(word[:1].upper() + word[1:] for word in rest)


def spelled(values: Mapping[str, Any]) -> Fields:
    """An object with its own field names in the wire's spelling; the values stay as they are."""
    return {camel(name): value for name, value in values.items() if value is not None}
