"""Settings and hints that only Anthropic's wire has, as strict models; given as `vendor={"anthropic": {…}}`.

    AnthropicSettings   with settings      DocumentHints   with a document      OptionHints   with an option

Neutral settings are not repeated here; fields that only some betas have go through `extra_body`.
https://platform.claude.com/docs/en/api/messages/create
"""

from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

from pydantic import Field
from sabir.authoring import Frozen

Fields: TypeAlias = dict[str, Any]
"""A vendor-defined object, sent verbatim; the vendor checks its contents, hence Any."""
BreakpointPlace: TypeAlias = Literal["options", "system", "closed", "end"]
"""Where a cache breakpoint goes: after the last declaration, after the hoisted system text, at the end of the closed
prefix, at the end of all messages."""


class Breakpoint(Frozen):
    """A cache breakpoint whose lifetime is not the default five minutes."""

    at: BreakpointPlace
    ttl: Literal["5m", "1h"]


class Citations(Frozen, strict=True):
    """Whether the model may cite a document."""

    enabled: bool = False


class DocumentHints(Frozen, strict=True):
    """Hints of a document in a user's message or an option's result. The model reads `context` but does not cite it.

    https://platform.claude.com/docs/en/build-with-claude/citations
    """

    citations: Citations = Field(default_factory=Citations)
    context: str = ""


class OptionHints(Frozen, strict=True):
    """Hints of an option, none of which needs a beta.

    https://platform.claude.com/docs/en/agents-and-tools/tool-use/tool-reference
    """

    allowed_callers: Sequence[str] = ()
    defer_loading: bool = False
    eager_input_streaming: bool = False
    input_examples: Sequence[Fields] = ()
    strict: bool = False


class AnthropicSettings(Frozen):
    """Vendor settings of `anthropic.messages`.

    `betas` are sent as the header that names them. `cache_control` caches automatically, `cache_breakpoints` names
    places. `thinking` and `output_config` replace the fields made from `reasoning_effort` and `response_format`.
    `tools` declare the vendor's own tools, offered beside the options. `version` is the API's version; the older one
    has `temperature`, `top_p` and `top_k`, which older models still take.
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
