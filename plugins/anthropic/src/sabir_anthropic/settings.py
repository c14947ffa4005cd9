"""Settings that only Anthropic's wire has, as one strict model; given as `vendor={"anthropic": {…}}`.

What a neutral setting says is not repeated here; fields that only some betas have go through `extra_body`.
https://platform.claude.com/docs/en/api/messages/create
"""

from typing import Any, Literal, TypeAlias

from sabir.models import Frozen

Fields: TypeAlias = dict[str, Any]
"""An object of the vendor's own, sent as it is; the vendor checks what is in it, hence Any."""
BreakpointPlace: TypeAlias = Literal["options", "system", "closed", "end"]
"""Where a cache breakpoint goes: after the last declaration, after the hoisted system text, at the end of the closed
prefix, at the end of all messages."""


class Breakpoint(Frozen):
    """A cache breakpoint that lives for another time than the default five minutes."""

    at: BreakpointPlace
    ttl: Literal["5m", "1h"]


class AnthropicSettings(Frozen):
    """Vendor settings of `anthropic.messages`.

    `betas` are sent as the header that names them. `cache_control` caches automatically, `cache_breakpoints` names
    places. `thinking` and `output_config` take the place of what `reasoning_effort` and `response_format` would say.
    `tools` are declarations of the vendor's own, offered beside the options. `version` is that of the API: the older
    one has `temperature`, `top_p` and `top_k`, which older models still take.
    """

    betas: tuple[str, ...] = ()
    cache_breakpoints: tuple[BreakpointPlace | Breakpoint, ...] = ()
    cache_control: Fields | None = None
    container: str | Fields | None = None
    context_management: Fields | None = None
    diagnostics: Fields | None = None
    inference_geo: str | None = None
    mcp_servers: tuple[Fields, ...] | None = None
    metadata: Fields | None = None
    output_config: Fields | None = None
    service_tier: str | None = None
    speed: str | None = None
    thinking: Fields | None = None
    tool_choice: Fields | None = None
    tools: tuple[Fields, ...] = ()
    top_k: int | None = None
    version: Literal["2023-06-01", "2026-10-21"] | None = None
