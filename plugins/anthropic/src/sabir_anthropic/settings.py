"""Settings and hints that only Anthropic's API has. Pass the settings as `Settings(vendor={"anthropic": {…}})`.

    AnthropicSettings   settings of a call
    DocumentHints       hints of a document     `vendor=` of sabir.document
    OptionHints         hints of an option      `vendor=` of sabir.option

Neutral settings, such as `temperature`, are not repeated here. Pass fields that only some betas have in `extra_body`.
https://platform.claude.com/docs/en/api/messages/create
"""

from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

from pydantic import Field
from sabir.authoring import Frozen

Fields: TypeAlias = dict[str, Any]
"""A JSON object that the vendor defines. It is sent unchanged and checked by the vendor only, hence Any."""
BreakpointPlace: TypeAlias = Literal["options", "system", "closed", "end"]
"""Where a cache breakpoint goes: "options" after the last option, "system" after the leading system text, "closed" at
the end of the closed prefix, "end" at the end of all messages.
"""


class Breakpoint(Frozen):
    """A cache breakpoint with a lifetime, for `AnthropicSettings.cache_breakpoints`. A place name alone means five
    minutes, the vendor's default.
    """

    at: BreakpointPlace
    """The place of the breakpoint."""
    ttl: Literal["5m", "1h"]
    """The lifetime of the cached prefix: five minutes or one hour."""


class Citations(Frozen, strict=True):
    """Whether the model may cite a document."""

    enabled: bool = False
    """True allows citations. The default is False."""


class DocumentHints(Frozen, strict=True):
    """Hints of a document in a user message or an option result, as `vendor={"anthropic": {…}}` of `sabir.document`.

    https://platform.claude.com/docs/en/build-with-claude/citations
    """

    citations: Citations = Field(default_factory=Citations)
    """Whether the model may cite the document."""
    context: str = ""
    """Text about the document, which the model reads but does not cite."""


class OptionHints(Frozen, strict=True):
    """Hints of an option, as `vendor={"anthropic": {…}}` of `sabir.option`. None of them needs a beta.

    https://platform.claude.com/docs/en/agents-and-tools/tool-use/tool-reference
    """

    allowed_callers: Sequence[str] = ()
    """Who may call the option: "direct" for the model, or a version of the code execution tool."""
    defer_loading: bool = False
    """Whether the model gets the declaration only when the tool search finds it."""
    eager_input_streaming: bool = False
    """Whether arguments are streamed before they are complete and validated."""
    input_examples: Sequence[Fields] = ()
    """Examples of arguments."""
    strict: bool = False
    """Whether arguments must match the schema exactly."""


class AnthropicSettings(Frozen):
    """Vendor settings of the dialect `anthropic.messages`, by Anthropic's names. Every field is optional; None means
    the vendor's default.

    https://platform.claude.com/docs/en/api/messages/create
    """

    betas: tuple[str, ...] = ()
    """Names of betas, sent in the header `anthropic-beta`."""
    cache_breakpoints: tuple[BreakpointPlace | Breakpoint, ...] = ()
    """Places at which the prompt is cached. https://platform.claude.com/docs/en/build-with-claude/prompt-caching"""
    cache_control: Fields | None = None
    """Turns on automatic prompt caching, for example {"type": "ephemeral"}."""
    container: str | Fields | None = None
    """The container of the code execution tool to use again."""
    context_management: Fields | None = None
    """How the vendor clears old content, such as tool results, from a long context."""
    diagnostics: Fields | None = None
    """Options for diagnosing the request, for example why the cache was missed."""
    inference_geo: str | None = None
    """The geographic region in which the request is processed."""
    mcp_servers: tuple[Fields, ...] | None = None
    """MCP servers that Anthropic connects to."""
    metadata: Fields | None = None
    """Facts about the request, such as "user_id"."""
    output_config: Fields | None = None
    """Fields that replace those which sabir creates from `reasoning_effort` ("effort") and `response_format`
    ("format").
    """
    service_tier: str | None = None
    """"auto" or "standard_only". https://platform.claude.com/docs/en/api/service-tiers"""
    speed: str | None = None
    """"standard" or "fast". https://platform.claude.com/docs/en/build-with-claude/fast-mode"""
    thinking: Fields | None = None
    """The field "thinking", in place of the one that sabir creates from `reasoning_effort`.
    https://platform.claude.com/docs/en/build-with-claude/extended-thinking
    """
    tool_choice: Fields | None = None
    """The choice of one of the vendor's own tools. For options, use the setting `option_choice`."""
    tools: tuple[Fields, ...] = ()
    """Declarations of the vendor's own tools, such as web search. They are offered in addition to the options."""
    top_k: int | None = None
    """Sample only from this many most likely tokens. Accepted by the older API version and older models only."""
    version: Literal["2023-06-01", "2026-10-21"] | None = None
    """The version of the API, sent in the header `anthropic-version`. The older version has `temperature`, `top_p` and
    `top_k`. https://platform.claude.com/docs/en/api/versioning
    """
