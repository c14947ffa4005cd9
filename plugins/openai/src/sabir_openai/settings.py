"""Settings and hints that only OpenAI's wires have, as strict models; given as `vendor={"openai": {…}}`.

Neutral settings are not repeated here. An endpoint's own settings that OpenAI does not have go through
`extra_body`. https://developers.openai.com/api/reference/resources/chat and …/responses

The section `openai` serves both dialects, and what only the other one takes is a loss: its settings, and tools and a
choice in its form. A tool of chat is {"type": T, T: {…}}, one of responses {"type": T, …}. OpenAI's chat knows
functions and custom tools alone; other endpoints have tools of their own, which are sent as they are.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any, Literal, TypeAlias

from pydantic import BaseModel, Field, StrictBool, create_model
from sabir.authoring import Frozen, FrozenDict, RequestScope, Row, TurnScope, object_or_empty, without_fields

OPENAI = frozenset({"openai", "azure"})
"""The providers that serve OpenAI's models with OpenAI's own server."""
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


_JSON_TYPES: Mapping[str, Any] = {
    "boolean": StrictBool, "integer": int, "number": float, "string": str, "array": tuple[Any, ...], "object": Fields,
}  # fmt: skip
"""JSON type → the type of a field; the endpoint checks the contents."""


def settings_of(base: type[BaseModel], scope: RequestScope) -> type[BaseModel]:
    """Return the vendor settings of an endpoint: those of its dialect, and the fields that only its row has."""
    own = scope.model_info.facts.get("own_settings")
    return settings_with(base, {name: str(kind) for name, kind in own.items()}) if isinstance(own, Mapping) else base


def settings_with(base: type[BaseModel], own: Mapping[str, str]) -> type[BaseModel]:
    """Return vendor settings with further fields, given by their JSON types."""
    return _with_own(base, tuple(own.items())) if own else base


@cache
def _with_own(base: type[BaseModel], own: tuple[tuple[str, str], ...]) -> type[BaseModel]:
    types: dict[str, Any] = {name: (_JSON_TYPES[kind] | None, None) for name, kind in own}
    return create_model(base.__name__, __base__=base, **types)


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


def is_openai(scope: RequestScope | TurnScope) -> bool:
    """Return whether the endpoint is OpenAI's own or Azure's; others have another name or the quirk `system_role`."""
    return scope.target.provider in OPENAI and "system_role" not in scope.quirks


def leave_out_the_others(scope: RequestScope, own: type[BaseModel], other: type[BaseModel]) -> None:
    """Remove the vendor settings that only the other dialect has; each is a loss.

    At a gateway that speaks one dialect, they stay and are refused: no dialect of that gateway takes them.
    """
    absent = [name for name in scope.vendor if name in other.model_fields and name not in own.model_fields]
    if not absent:  # as nearly always: then no row is looked up
        return
    row = Row.load_packaged("sabir_openai", scope.target.provider)
    if scope.target.provider in OPENAI or (row is not None and len(row.dialects) > 1):
        scope.vendor = FrozenDict(without_fields(scope.vendor, *absent))
        for name in absent:
            _lose(scope, name, f"{scope.target.dialect} has no field for it")


def in_form(vendor: dict[str, Any], scope: RequestScope, *, nested: bool) -> dict[str, Any]:
    """Return the vendor settings without the tools and the choice that have the other dialect's form; losses for them.

    `nested` says that this dialect has a tool's fields in an object under its type.
    """
    if not is_openai(scope):
        return vendor
    tools = []
    for index, tool in enumerate(vendor.get("tools", ())):
        if _is_nested(tool) is nested:
            tools.append(tool)
        else:
            _lose(
                scope,
                f"tools[{index}]",
                f"{scope.target.dialect} does not accept the tool {tool.get('type')!r} in this form",
            )
    vendor |= {"tools": tools} if "tools" in vendor else {}
    choice = vendor.get("tool_choice")
    is_alone = bool(scope.vendor.get("tools")) and not tools and not scope.options
    if is_alone and choice is not None:
        _lose(scope, "tool_choice", "no options were passed")
    elif isinstance(choice, Mapping) and _is_nested(choice) is not nested:
        _lose(
            scope,
            "tool_choice",
            f"{scope.target.dialect} does not accept the choice {choice.get('type')!r} in this form",
        )
    else:
        return vendor
    return without_fields(vendor, "tool_choice")


def _is_nested(tool: Mapping[str, Any]) -> bool:
    return isinstance(tool.get(str(tool.get("type"))), Mapping)


def _lose(scope: RequestScope, name: str, reason: str) -> None:
    scope.losses.add("dropped", reason, path=f"settings.vendor.{scope.target.provider}.{name}")


def has_tool(scope: RequestScope, name: str) -> bool:
    """Return whether a tool of the vendor settings has that name, also if this dialect does not take it."""
    tools = scope.vendor.get("tools", ())
    return any((object_or_empty(tool.get(str(tool.get("type")))) or tool).get("name") == name for tool in tools)
