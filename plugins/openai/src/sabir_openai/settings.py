"""Settings and hints that only OpenAI's APIs have. Pass the settings as `Settings(vendor={"openai": {…}})`. For another
provider, write its name instead of "openai", also in hints.

    ChatSettings, ResponsesSettings       settings of a call
    EmbeddingSettings                     settings of a request for embeddings
    OpenAIMediaHints                      hints that every medium may have
    ImageHints, FileHints, ChatFileHints  hints of a medium           `vendor=` of sabir.image and sabir.document
    ChatOptionHints, ResponsesOptionHints hints of an option          `vendor=` of sabir.option

Neutral settings, which all providers share, such as `temperature`, are not repeated here. Pass settings that only
another endpoint has in `extra_body`, unless the endpoint's row (`gateways/NAME.toml`) lists them in `own_settings`.
Fields have the vendor's names and meanings: https://developers.openai.com/api/reference/resources/chat and …/responses

For an endpoint with both APIs, the section may contain settings of both. A setting that only the other API has is left
out, with a loss. For OpenAI and Azure, tools and a tool choice in the other API's form are left out too. A tool of the
chat API is {"type": T, T: {…}}, a tool of the responses API is {"type": T, …}. OpenAI's chat API has functions and
custom tools only. Other endpoints may have tools of their own, which are sent unchanged.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any, Literal, TypeAlias

from pydantic import BaseModel, Field, StrictBool, create_model
from sabir.authoring import Frozen, FrozenDict, RequestScope, Row, TurnScope, object_or_empty, without_fields

OPENAI = frozenset({"openai", "azure"})
"""The names of the providers for OpenAI's models at OpenAI and on Azure."""
OpenAIObject: TypeAlias = dict[str, Any]
"""A JSON object that the vendor defines. It is sent unchanged and checked by the vendor only, hence Any."""
Verbosity: TypeAlias = Literal["low", "medium", "high"]
"""Values of `verbosity`."""


class EmbeddingSettings(Frozen):
    """Settings of `openai.embeddings`. https://developers.openai.com/api/reference/resources/embeddings"""

    user: str | None = None
    """An identifier of the end user, which helps OpenAI to detect misuse. Send a hash, not a name."""


class _CommonSettings(Frozen):
    """Settings of both dialects."""

    metadata: dict[str, str] | None = None
    """Names and values that OpenAI stores with the response."""
    moderation: OpenAIObject | None = None
    """How OpenAI checks input and output for harmful content."""
    prompt_cache_key: str | None = None
    """A text that is the same in all requests with a similar prompt. It increases the number of cache hits.
    https://developers.openai.com/api/docs/guides/prompt-caching
    """
    prompt_cache_options: OpenAIObject | None = None
    """Options for prompt caching: "mode" (explicit or implicit breakpoints) and "ttl"."""
    prompt_cache_retention: Literal["in_memory", "24h"] | None = None
    """How long cached prompts are stored. Deprecated by OpenAI in favour of `prompt_cache_options`."""
    safety_identifier: str | None = None
    """An identifier of the end user, which helps OpenAI to detect misuse. Send a hash, not a name."""
    service_tier: str | None = None
    """The processing tier, such as "flex" or "priority"."""
    store: bool | None = None
    """Whether OpenAI stores the response for later retrieval. If this is None or False, `openai.responses` sends False;
    if it is None and `background` is True, it sends True. False and `background` True together raise SettingsInvalid,
    because the API stores such responses. Not sent by default to endpoints that are known to ignore it.
    """
    tools: tuple[OpenAIObject, ...] = ()
    """Declarations of the vendor's own tools, such as web search. They are offered in addition to the options."""
    tool_choice: str | OpenAIObject | None = None
    """The field "tool_choice", such as the choice of a vendor's own tool. It replaces the setting `option_choice`."""
    top_logprobs: int | None = None
    """The number of most likely tokens to return for each position, 0 to 20."""
    user: str | None = None
    """An identifier of the end user. Deprecated by OpenAI in favour of `safety_identifier` and `prompt_cache_key`."""
    verbosity: Verbosity | None = None
    """How detailed the answer is: "low", "medium" or "high"."""


class ChatSettings(_CommonSettings):
    """Vendor settings of the dialect `openai.chat`, by OpenAI's names. Every field is optional. A field that is not set
    adds nothing to the request.

    https://developers.openai.com/api/reference/resources/chat/subresources/completions/methods/create
    """

    audio: OpenAIObject | None = None
    """Voice and format of audio output. Required if `modalities` contains "audio"."""
    frequency_penalty: float | None = None
    """Penalty for tokens that grows with the number of their occurrences so far, -2 to 2."""
    logit_bias: dict[str, int] | None = None
    """Token id → bias from -100 (never) to 100 (always), which changes how likely the token is."""
    logprobs: bool | None = None
    """Whether to return log probabilities of the output tokens."""
    modalities: tuple[Literal["text", "audio"], ...] | None = None
    """The kinds of output, "text" and "audio"."""
    n: int | None = None
    """The number of answers to generate. The further ones are in `Reply.alternatives`."""
    prediction: OpenAIObject | None = None
    """Text that most of the answer is expected to repeat, for faster output.
    https://developers.openai.com/api/docs/guides/predicted-outputs
    """
    presence_penalty: float | None = None
    """Penalty for tokens that occurred so far, no matter how often, -2 to 2."""
    web_search_options: OpenAIObject | None = None
    """Options of the web search of search models. https://developers.openai.com/api/docs/guides/tools-web-search"""


class ResponsesSettings(_CommonSettings):
    """Vendor settings of the dialect `openai.responses`, by OpenAI's names. Every field is optional. A field that is
    not set adds nothing to the request, except `store` and `include`.

    https://developers.openai.com/api/reference/resources/responses/methods/create
    """

    access_programs: OpenAIObject | None = None
    """OpenAI's access programs for certain domains that apply to the request."""
    background: bool | None = None
    """Whether OpenAI generates the response in the background. Stream it: a call that is not streamed raises CallError
    if the response has no output yet. https://developers.openai.com/api/docs/guides/background
    """
    context_management: tuple[OpenAIObject, ...] | None = None
    """How OpenAI shortens a long context, for example by compaction."""
    conversation: str | OpenAIObject | None = None
    """The conversation, stored by OpenAI, to which the response belongs."""
    image: OpenAIObject | None = None
    """Options for all images of the request."""
    include: tuple[str, ...] | None = None
    """Further data to return, such as "web_search_call.action.sources". For models that are known to reason, sabir adds
    "reasoning.encrypted_content", unless the endpoint is known to ignore this setting.
    """
    max_tool_calls: int | None = None
    """The maximum number of calls of the vendor's own tools in one response."""
    previous_response_id: str | None = None
    """The id of a stored response that this request continues. Pass only the messages after that response."""
    prompt: OpenAIObject | None = None
    """The id of a prompt template that OpenAI stores, and values for its variables."""
    reasoning: OpenAIObject | None = None
    """Further fields of the request's "reasoning", such as "summary". The effort comes from `reasoning_effort`."""
    truncation: Literal["auto", "disabled"] | None = None
    """What OpenAI does if a conversation is too long: "auto" drops items, and "disabled" lets the request fail."""


_JSON_TYPES: Mapping[str, Any] = {
    "boolean": StrictBool, "integer": int, "number": float, "string": str, "array": tuple[Any, ...],
    "object": OpenAIObject,
}  # fmt: skip
"""JSON type → the Python type of a field. The endpoint checks the contents of arrays and objects."""


def settings_of(base: type[BaseModel], scope: RequestScope) -> type[BaseModel]:
    """Return the settings model of an endpoint: `base`, extended by the `own_settings` of the endpoint's row."""
    own = scope.model_info.facts.get("own_settings")
    return settings_with(base, {name: str(kind) for name, kind in own.items()}) if isinstance(own, Mapping) else base


def settings_with(base: type[BaseModel], own: Mapping[str, str]) -> type[BaseModel]:
    """Return a subclass of `base` with further optional fields. `own` maps their names to JSON types. Return `base` if
    `own` is empty.
    """
    return _extend_settings(base, tuple(own.items())) if own else base


@cache
def _extend_settings(base: type[BaseModel], own: tuple[tuple[str, str], ...]) -> type[BaseModel]:
    types: dict[str, Any] = {name: (_JSON_TYPES[kind] | None, None) for name, kind in own}
    return create_model(base.__name__, __base__=base, **types)


class OpenAIMediaHints(Frozen):
    """Hints that every medium may have. A hint that is not set is not sent."""

    prompt_cache_breakpoint: OpenAIObject = Field(default_factory=dict)
    """Marks the end of a reusable prompt prefix at this medium.
    https://developers.openai.com/api/docs/guides/prompt-caching
    """


class ImageHints(OpenAIMediaHints):
    """Hints of an image, as `vendor={"openai": {…}}` of `sabir.image`."""

    detail: Literal["auto", "low", "high", "original"] = "auto"
    """The resolution in which the model sees the image. "auto" lets the vendor choose, and is what `openai.responses`
    sends if this hint is not set.
    """


class FileHints(OpenAIMediaHints):
    """Hints of a document for the dialect `openai.responses`, as `vendor={"openai": {…}}` of `sabir.document`."""

    detail: Literal["auto", "low", "high"] = "auto"
    """The resolution in which the model sees the pages. "auto" lets the vendor choose."""


class ChatFileHints(FileHints):
    """Hints of a document for the dialect `openai.chat`. The hint `detail` is accepted but not sent, because this API
    has no such field.
    """

    detail: Literal["auto", "low", "high"] = Field(default="auto", exclude=True)
    """Not sent by this dialect."""


_RESPONSES_HINTS: Mapping[str, Any] = {
    "allowed_callers": tuple[Literal["direct", "programmatic"], ...],
    "async": StrictBool,
    "defer_loading": StrictBool,
    "output_schema": OpenAIObject,
}
"""Hints that only functions of `openai.responses` have. The models are created by a function because the name of a
class's field cannot be `async`.
"""


def _option_hints(name: str, *, further: bool) -> type[Frozen]:
    """Return a model of an option's hints: `strict`, and the hints of `openai.responses`. Without `further`, these
    hints are accepted but not sent.
    """
    fields: dict[str, Any] = {
        field: (kind, Field(default=None, exclude=not further)) for field, kind in _RESPONSES_HINTS.items()
    }
    return create_model(name, __base__=Frozen, strict=(StrictBool, False), **fields)


ChatOptionHints = _option_hints("ChatOptionHints", further=False)
"""Hints of an option for the dialect `openai.chat`. The hints that only `openai.responses` has are accepted but not
sent.

`strict` True asks for arguments that match the schema exactly. If `strict` is not set, the option is strict if the
target is known to accept this and no arguments are excluded.
"""
ResponsesOptionHints = _option_hints("ResponsesOptionHints", further=True)
"""Hints of an option for the dialect `openai.responses`.

`strict` is the same hint as in ChatOptionHints. `allowed_callers` says who may call the option: "direct" for the model,
"programmatic" for a program that the model writes. `defer_loading` hides the option until OpenAI's tool search finds
it. `async` and `output_schema` are the fields of OpenAI's function declaration.
"""


def is_openai(scope: RequestScope | TurnScope) -> bool:
    """Return whether the endpoint is OpenAI's or Azure's: the provider is `openai` or `azure`, without the quirk
    `system_role`.
    """
    return scope.target.provider in OPENAI and "system_role" not in scope.quirks


def drop_other_settings(scope: RequestScope, own: type[BaseModel], other: type[BaseModel]) -> None:
    """Remove the vendor settings that only the other dialect has from `scope`, and report them as losses.

    `own` and `other` are the settings models of the two dialects. Only settings for OpenAI, Azure and the gateways of
    this package with both dialects are removed. For other endpoints, such settings raise SettingsInvalid later.
    """
    absent = [name for name in scope.vendor if name in other.model_fields and name not in own.model_fields]
    if not absent:  # the usual case, in which the row need not be loaded
        return
    row = Row.load_packaged("sabir_openai", scope.target.provider)
    if scope.target.provider in OPENAI or (row is not None and len(row.dialects) > 1):
        scope.vendor = FrozenDict(without_fields(scope.vendor, *absent))
        for name in absent:
            _report_dropped(scope, name, f"{scope.target.dialect} has no field {name}")


def drop_other_tools(vendor: dict[str, Any], scope: RequestScope, *, nested: bool) -> dict[str, Any]:
    """Return the vendor settings without tools and a tool choice in the other dialect's form, and report them as
    losses. Settings for other endpoints than OpenAI's and Azure's are returned unchanged.

    `nested` says that this dialect has a tool's fields in an object under its type. A tool choice is also removed if
    all tools were removed and there are no options.
    """
    if not is_openai(scope):
        return vendor
    tools = []
    for index, tool in enumerate(vendor.get("tools", ())):
        if _is_nested(tool) is nested:
            tools.append(tool)
        else:
            reason = f"{scope.target.dialect} does not accept the tool {tool.get('type')!r} in this form"
            _report_dropped(scope, f"tools[{index}]", reason)
    vendor |= {"tools": tools} if "tools" in vendor else {}
    choice = vendor.get("tool_choice")
    has_lost_tools = bool(scope.vendor.get("tools")) and not tools and not scope.options
    if has_lost_tools and choice is not None:
        _report_dropped(scope, "tool_choice", "no tool is left to choose")
    elif isinstance(choice, Mapping) and _is_nested(choice) is not nested:
        reason = f"{scope.target.dialect} does not accept the choice {choice.get('type')!r} in this form"
        _report_dropped(scope, "tool_choice", reason)
    else:
        return vendor
    return without_fields(vendor, "tool_choice")


def _is_nested(tool: Mapping[str, Any]) -> bool:
    return isinstance(tool.get(str(tool.get("type"))), Mapping)


def _report_dropped(scope: RequestScope, name: str, reason: str) -> None:
    scope.losses.add("dropped", reason, path=f"settings.vendor.{scope.target.provider}.{name}")


def has_tool(scope: RequestScope, name: str) -> bool:
    """Return whether a tool in the vendor settings has this name, even if this dialect does not accept the tool."""
    tools = scope.vendor.get("tools", ())
    return any((object_or_empty(tool.get(str(tool.get("type")))) or tool).get("name") == name for tool in tools)
