"""Settings and hints that only OpenAI's wires have, as strict models; given as `vendor={"openai": {…}}`.

Neutral settings are not repeated here. An endpoint's own settings that OpenAI does not have go through
`extra_body`. https://developers.openai.com/api/reference/resources/chat and …/responses
"""

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

from pydantic import Field, StrictBool, create_model
from sabir.authoring import Frozen

Fields: TypeAlias = dict[str, Any]
"""A vendor-defined object, sent verbatim; the vendor checks its contents, hence Any."""
Level: TypeAlias = Literal["low", "medium", "high"]


class _Shared(Frozen):
    """Settings of both dialects. `tools` are declarations of the vendor's own tools, offered beside the options."""

    metadata: dict[str, str] | None = None
    moderation: Fields | None = None
    prompt_cache_key: str | None = None
    prompt_cache_options: Fields | None = None
    prompt_cache_retention: Literal["in_memory", "24h"] | None = None
    safety_identifier: str | None = None
    service_tier: str | None = None
    store: bool | None = None
    tools: tuple[Fields, ...] = ()
    tool_choice: str | Fields | None = None
    top_logprobs: int | None = None
    user: str | None = None
    verbosity: Level | None = None


class ChatSettings(_Shared):
    """Vendor settings of `openai.chat`."""

    audio: Fields | None = None
    frequency_penalty: float | None = None
    logit_bias: dict[str, int] | None = None
    logprobs: bool | None = None
    modalities: tuple[Literal["text", "audio"], ...] | None = None
    n: int | None = None
    prediction: Fields | None = None
    presence_penalty: float | None = None
    web_search_options: Fields | None = None


class ResponsesSettings(_Shared):
    """Vendor settings of `openai.responses`; `reasoning` holds the fields beside the neutral effort."""

    access_programs: Fields | None = None
    background: bool | None = None
    context_management: tuple[Fields, ...] | None = None
    conversation: str | Fields | None = None
    image: Fields | None = None
    include: tuple[str, ...] | None = None
    max_tool_calls: int | None = None
    previous_response_id: str | None = None
    prompt: Fields | None = None
    reasoning: Fields | None = None
    truncation: Literal["auto", "disabled"] | None = None


class MediaHints(Frozen):
    """Hints of every medium. A hint that is not set is not sent, so no hint may be null."""

    prompt_cache_breakpoint: Fields = Field(default_factory=dict)


class ImageHints(MediaHints):
    """Hints of an image."""

    detail: Literal["auto", "low", "high", "original"] = "auto"


class FileHints(MediaHints):
    """Hints of a document for `openai.responses`."""

    detail: Literal["auto", "low", "high"] = "auto"


class ChatFileHints(FileHints):
    """Hints of a document for `openai.chat`, which has no `detail`."""

    detail: Literal["auto", "low", "high"] = Field(default="auto", exclude=True)


_FURTHER: Mapping[str, Any] = {
    "allowed_callers": tuple[Literal["direct", "programmatic"], ...],
    "async": StrictBool,
    "defer_loading": StrictBool,
    "output_schema": Fields,
}
"""Hints that only functions of `openai.responses` have; made by a call because a class cannot name a field `async`."""


def _option_hints(name: str, *, further: bool) -> type[Frozen]:
    """The hints of an option: `strict`, which applies to any schema, and hints that only one wire takes."""
    fields: dict[str, Any] = {
        field: (kind, Field(default=None, exclude=not further)) for field, kind in _FURTHER.items()
    }
    return create_model(name, __base__=Frozen, strict=(StrictBool, False), **fields)


ChatOptionHints = _option_hints("ChatOptionHints", further=False)
ResponsesOptionHints = _option_hints("ResponsesOptionHints", further=True)
