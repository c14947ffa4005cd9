"""Settings and hints that only Google's API has. Pass the settings as `Settings(vendor={"google": {…}})`.

    GoogleSettings                       settings of a call
    GoogleEmbeddingSettings              settings of a request for embeddings
    GoogleMediaHints, GoogleVideoHints   hints of a medium   `vendor=` of sabir.image, sabir.video and sabir.document
    GoogleOptionHints                    hints of an option  `vendor=` of sabir.option

Write the names in snake_case; sabir sends them in camelCase, such as `topK` for `top_k`. Neutral settings, which all
providers share, such as `temperature`, are not repeated here. https://ai.google.dev/api/generate-content
"""

from collections.abc import Mapping
from typing import Any, TypeAlias

from sabir.authoring import Frozen

from sabir_google.prompt_cache import CachedPrompt

GoogleObject: TypeAlias = dict[str, Any]
"""A JSON object that the vendor defines and checks, hence Any."""

TOP_LEVEL = frozenset({
    "cached_content", "continuation_token", "labels", "model_armor_config", "safety_settings", "service_tier",
    "store", "tool_config", "tools",
})  # fmt: skip
"""Settings that are sent as fields of the request itself. All other settings are sent in its `generationConfig`."""


class GoogleEmbeddingSettings(Frozen):
    """Vendor settings of `google.embeddings`. https://ai.google.dev/gemini-api/docs/embeddings"""

    task_type: str | None = None
    """What the vectors are for, such as "CLUSTERING". Overrides the task that follows from the kind of the texts."""


class GoogleSettings(Frozen):
    """Vendor settings of the dialect `google.generate_content`, by Google's names. Every field is optional. A field
    that is not set adds nothing to the request, except `response_mime_type`. Fields that only the other service (Gemini
    API or Vertex AI) accepts are left out, with a loss.

    Inside objects, write the names as the API does, for example `thinking_config={"includeThoughts": True}`.
    https://ai.google.dev/api/generate-content
    """

    cached_content: str | CachedPrompt | None = None
    """A context cache of `sabir_google.create_cache`, or the name of one, as "cachedContents/…". With a CachedPrompt,
    the content of the cache is left out of the request. With a name, the request is sent completely. For the Gemini
    API, sabir adds a missing "cachedContents/".
    """
    continuation_token: str | None = None
    """The token of a response that stopped with the finish reason CONTINUATION, to continue its generation."""
    labels: dict[str, str] | None = None
    """Labels for billing reports, on Vertex AI."""
    model_armor_config: GoogleObject | None = None
    """Model Armor templates that check prompt and response, on Vertex AI. Not together with `safety_settings`."""
    safety_settings: tuple[GoogleObject, ...] | None = None
    """Thresholds for harm categories. https://ai.google.dev/gemini-api/docs/safety-settings"""
    service_tier: str | None = None
    """The processing tier, such as "flex"."""
    store: bool | None = None
    """Whether Google logs the request. Takes precedence over the project's setting."""
    tool_config: GoogleObject | None = None
    """Configuration of tools. To choose an option, use the setting `option_choice`. A "functionCallingConfig" in
    `tool_config` replaces `option_choice`.
    """
    tools: tuple[GoogleObject, ...] = ()
    """Declarations of the vendor's own tools, such as Google Search. They are offered in addition to the options."""

    audio_timestamp: bool | None = None
    """Whether the model receives timestamps of audio, on Vertex AI."""
    candidate_count: int | None = None
    """The number of answers to generate. The further ones are in `Reply.alternatives`."""
    enable_affective_dialog: bool | None = None
    """Whether the model adapts its answer to the emotions it detects."""
    frequency_penalty: float | None = None
    """Penalty for tokens that grows with the number of their occurrences so far."""
    image_config: GoogleObject | None = None
    """Options of image generation, such as the aspect ratio."""
    logprobs: int | None = None
    """The number of most likely tokens whose log probabilities are returned. Needs `response_logprobs`."""
    media_resolution: str | None = None
    """The resolution in which the model sees all media, such as "MEDIA_RESOLUTION_LOW"."""
    presence_penalty: float | None = None
    """Penalty for tokens that occurred so far, no matter how often."""
    response_logprobs: bool | None = None
    """Whether to return log probabilities of the output tokens."""
    response_mime_type: str | None = None
    """The MIME type of the answer. Usually "application/json" with `response_format` if this is not set."""
    response_modalities: tuple[str, ...] | None = None
    """The kinds of output, such as "TEXT" and "IMAGE"."""
    response_schema: GoogleObject | None = None
    """The schema of the answer in Google's own form. For a JSON schema, use the setting `response_format`."""
    routing_config: GoogleObject | None = None
    """How Vertex AI chooses a model for the request. Vertex AI only."""
    speech_config: GoogleObject | None = None
    """Voice and language of speech output."""
    thinking_config: GoogleObject | None = None
    """Further fields of "thinkingConfig", such as "includeThoughts". The fields "thinkingLevel" and "thinkingBudget"
    replace the setting `reasoning_effort`.
    """
    top_k: int | float | None = None
    """Sample only from this many most likely tokens."""


class VideoMetadata(Frozen, strict=True):
    """Which part of a video the model sees, and how."""

    fps: int | float | None = None
    """The number of frames per second that the model sees."""
    start_offset: str | None = None
    """Where to start, such as "2.5s"."""
    end_offset: str | None = None
    """Where to stop, such as "10s"."""
    content_layers: list[str] | None = None
    """The layers of the video to use, by the vendor's names."""


class MediaResolution(Frozen, strict=True):
    """How many tokens the model uses for one medium."""

    level: str | None = None
    """A level by the vendor's name, such as "MEDIA_RESOLUTION_LOW"."""
    num_tokens: int | None = None
    """The number of tokens."""


class GoogleMediaHints(Frozen, strict=True):
    """Hints of an image or a document, as `vendor={"google": {…}}` of `sabir.image` or `sabir.document`."""

    media_resolution: MediaResolution | None = None
    """How many tokens the model uses for this medium."""


class GoogleVideoHints(GoogleMediaHints):
    """Hints of a video, as `vendor={"google": {…}}` of `sabir.video`."""

    video_metadata: VideoMetadata | None = None
    """Which part of the video the model sees, and how."""


class GoogleOptionHints(Frozen, strict=True):
    """Hints of an option, as `vendor={"google": {…}}` of `sabir.option`. They are sent as fields of its declaration.

    https://ai.google.dev/api/caching#FunctionDeclaration
    """

    behavior: str | None = None
    """Whether the model waits for the result of a call: "BLOCKING" (it waits) or "NON_BLOCKING"."""
    response: GoogleObject | None = None
    """The schema of the result in Google's own form."""
    response_json_schema: GoogleObject | None = None
    """The JSON schema of the result."""


MEDIA_HINTS = {"image": GoogleMediaHints, "video": GoogleVideoHints, "document": GoogleMediaHints}
"""Modality → the model of its hints. There are no hints of audio."""


def camel_case(name: str) -> str:
    """Return a name in camelCase, as the API spells it: "topK" for "top_k"."""
    first, *rest = name.split("_")
    return first + "".join(word[:1].upper() + word[1:] for word in rest)


def camel_fields(values: Mapping[str, Any]) -> GoogleObject:
    """Return an object with its field names in camelCase and without fields that are None. Nested objects are not
    changed.
    """
    return {camel_case(name): value for name, value in values.items() if value is not None}
