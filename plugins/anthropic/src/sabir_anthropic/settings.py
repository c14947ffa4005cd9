"""Settings and hints that only Anthropic's API has. Pass the settings as `Settings(vendor={"anthropic": {…}})`. For
another provider, such as `bedrock`, write its name instead of "anthropic", also in hints.

    AnthropicSettings        settings of a call; Breakpoint is an item of its `cache_breakpoints`
    AnthropicDocumentHints   hints of a document    `vendor=` of sabir.document
    AnthropicOptionHints     hints of an option     `vendor=` of sabir.option

Neutral settings, which all providers share, such as `temperature`, are not repeated here. Pass fields that only some
betas have in `extra_body`.
https://platform.claude.com/docs/en/api/messages/create
"""

from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

from pydantic import Field
from sabir.authoring import Frozen

AnthropicObject: TypeAlias = dict[str, Any]
"""A JSON object that the vendor defines. It is sent unchanged and checked by the vendor only, hence Any."""
BreakpointPlace: TypeAlias = Literal["options", "system", "closed", "end"]
"""Where a cache breakpoint goes: "options" after the last option or vendor tool, "system" after the leading system
text, "closed" at the end of the turns that later messages cannot change, "end" at the end of all messages.
"""


class Breakpoint(Frozen):
    """A cache breakpoint with a lifetime, for `AnthropicSettings.cache_breakpoints`. For the default lifetime of five
    minutes, use the name of the place instead, such as "system".
    """

    at: BreakpointPlace
    """The place of the breakpoint."""
    ttl: Literal["5m", "1h"]
    """The lifetime of the cached prefix: five minutes or one hour."""


class Citations(Frozen, strict=True):
    """Whether the model may cite a document. The value of `AnthropicDocumentHints.citations`."""

    enabled: bool = False
    """True lets the model cite the document in its answer."""


class AnthropicDocumentHints(Frozen, strict=True):
    """Hints of a document in a user message or an option result, as `vendor={"anthropic": {…}}` of `sabir.document`.

    https://platform.claude.com/docs/en/build-with-claude/citations
    """

    citations: Citations = Field(default_factory=Citations)
    """Whether the model may cite the document."""
    context: str = ""
    """Text about the document, which the model reads but does not cite."""


class AnthropicOptionHints(Frozen, strict=True):
    """Hints of an option, as `vendor={"anthropic": {…}}` of `sabir.option`. No hint needs a beta.

    https://platform.claude.com/docs/en/agents-and-tools/tool-use/tool-reference
    """

    allowed_callers: Sequence[str] = ()
    """Who may call the option: "direct" for the model, or a version of the code execution tool, for code that the
    model runs. Empty means the model.
    """
    defer_loading: bool = False
    """Whether the declaration is hidden from the model until the vendor's tool search finds it."""
    eager_input_streaming: bool = False
    """Whether the vendor streams arguments at once, without buffering them until they are valid JSON."""
    input_examples: Sequence[AnthropicObject] = ()
    """Examples of arguments."""
    strict: bool = False
    """Whether arguments must match the schema exactly. If the schema cannot be strict, or the strict schemas of the
    request exceed the API's limits, the option is sent without `strict`, with a loss.
    """


class AnthropicSettings(Frozen):
    """Vendor settings of the dialect `anthropic.messages`, by Anthropic's names. Every field is optional. A field that
    is not set adds nothing to the request.

    https://platform.claude.com/docs/en/api/messages/create
    """

    betas: tuple[str, ...] = ()
    """Names of betas to turn on, sent in the header `anthropic-beta`."""
    cache_breakpoints: tuple[BreakpointPlace | Breakpoint, ...] = ()
    """Places in the prompt. The prompt up to each place is cached.
    https://platform.claude.com/docs/en/build-with-claude/prompt-caching
    """
    cache_control: AnthropicObject | None = None
    """Turns on automatic prompt caching, for example {"type": "ephemeral"}. Anthropic then chooses the place."""
    container: str | AnthropicObject | None = None
    """The container of an earlier response, such as its id, in which the code execution tool runs again."""
    context_management: AnthropicObject | None = None
    """How the vendor clears old content, such as tool results, from a long context."""
    diagnostics: AnthropicObject | None = None
    """Options for diagnosing the request, for example why the cache was missed."""
    inference_geo: str | None = None
    """The geographic region in which the request is processed."""
    mcp_servers: tuple[AnthropicObject, ...] | None = None
    """MCP servers that Anthropic connects to."""
    metadata: AnthropicObject | None = None
    """Facts about the request. "user_id" identifies the end user, for detecting abuse; do not send a name."""
    output_config: AnthropicObject | None = None
    """Fields of the request's "output_config". They replace the fields that sabir creates from `reasoning_effort`
    ("effort") and `response_format` ("format").
    """
    service_tier: str | None = None
    """Whether the request may use priority capacity: "auto" (may) or "standard_only".
    https://platform.claude.com/docs/en/api/service-tiers
    """
    speed: str | None = None
    """How fast the model generates: "standard", or "fast" at a higher price.
    https://platform.claude.com/docs/en/build-with-claude/fast-mode
    """
    thinking: AnthropicObject | None = None
    """The field "thinking". It replaces the field that sabir creates from `reasoning_effort`.
    https://platform.claude.com/docs/en/build-with-claude/extended-thinking
    """
    tool_choice: AnthropicObject | None = None
    """The field "tool_choice". It replaces the settings `option_choice` and `parallel_options`."""
    tools: tuple[AnthropicObject, ...] = ()
    """Declarations of the vendor's own tools, such as web search. They are offered in addition to the options."""
    top_k: int | None = None
    """Sample only from this many most likely tokens. Sent only with `version` "2023-06-01" or to another vendor's
    endpoint, and only if the model does not refuse it and thinking is off. Otherwise, it is a loss.
    """
    version: Literal["2023-06-01", "2026-10-21"] | None = None
    """The version of the API, sent in the header `anthropic-version`. If None, the SDK's version is sent. At Anthropic
    and the clouds, only "2023-06-01" accepts `temperature`, `top_p` and `top_k`.
    https://platform.claude.com/docs/en/api/versioning
    """
