"""Settings that only OpenAI's wires have, one strict model for each dialect; given as `vendor={"openai": {…}}`.

What a neutral setting says is not repeated here. An endpoint's own settings that OpenAI does not have go through
`extra_body`. https://developers.openai.com/api/reference/resources/chat and …/responses
"""

from typing import Any, Literal, TypeAlias

from sabir.models import Frozen

Fields: TypeAlias = dict[str, Any]
"""An object of the vendor's own, sent as it is; the vendor checks what is in it, hence Any."""
Level: TypeAlias = Literal["low", "medium", "high"]


class _Shared(Frozen):
    """What both dialects have. `tools` are declarations of the vendor's own, offered beside the options."""

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
    """Vendor settings of `openai.responses`; `reasoning` holds what stands beside the neutral effort."""

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
