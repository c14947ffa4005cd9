"""Settings, options and leading system texts → the fields of a request, except its messages.

    neutral settings ──▶ request fields           a setting that the model or the API does not accept is a loss
    reasoning_effort ──▶ thinking and effort      by the model's row in models.toml
    options ──▶ tools     vendor settings ──▶ unchanged, last
    prompt_cache and cache breakpoints ──▶ markers, added to the bytes
    max_output_tokens, or the model's maximum ──▶ max_tokens ── above most_at_once ──▶ always streamed

A row of models.toml may refuse the MODEL_QUIRKS below in addition to settings and features.

The API requires max_tokens in every request. The typed calls of the SDK refuse a request that may take longer than ten
minutes without a stream. sabir sends ready bytes, which the SDK does not check, so this module repeats the check
(docs/reference/guards.md).
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sabir import ResponseFormat
from sabir.authoring import (
    JSON_OBJECT,
    Insertion,
    JSONValue,
    LossKind,
    ReasoningEffort,
    RequestScope,
    TurnScope,
    encode_json,
    first_whole_number,
    fit_effort,
    fit_schema,
    object_or_empty,
    without_fields,
)

from sabir_anthropic.encode import TRAILING_SPACE, encode_system
from sabir_anthropic.native import BETAS
from sabir_anthropic.schema import PARAMETERS, REPLY, STRICT, StrictSchemas
from sabir_anthropic.settings import AnthropicObject, AnthropicSettings

DEFAULT_MAX_TOKENS = 4096
"""The `max_tokens` that is sent if the user set none and the model's maximum is not known. Every model accepts it."""
MOST_AT_ONCE = 21_333
"""The largest max_tokens that the SDK accepts without a stream: it assumes 128,000 tokens an hour and waits ten
minutes.
"""
MODELS_AT_ONCE: Mapping[str, int] = dict.fromkeys((
    "anthropic.claude-opus-4-1-20250805-v1:0", "anthropic.claude-opus-4-20250514-v1:0", "claude-4-opus-20250514",
    "claude-opus-4-0", "claude-opus-4-1@20250805", "claude-opus-4-20250514", "claude-opus-4@20250514",
), 8192)  # fmt: skip
"""Model → its limit in the SDK, which is lower than MOST_AT_ONCE. A test compares the limits with the SDK's."""
BEYOND_CONTEXT = "output_beyond_context"
"""Word in `rejects` of models.toml: the model refuses requests whose prompt and max_tokens together exceed the context.

Models before Claude 4.5 refuse such requests. Later models accept them and stop where the context ends.
https://platform.claude.com/docs/en/build-with-claude/context-windows
"""
DEFAULT_NAME = "output"
"""The name of a decoded response format whose schema has no title. It is not sent as a title."""
PATH = "/v1/messages"
COUNT_FIELDS = frozenset({
    "cache_control", "context_management", "mcp_servers", "messages", "model", "output_config", "speed", "system",
    "thinking", "tool_choice", "tools",
})  # fmt: skip
"""Fields of a request that the endpoint for counting tokens accepts."""

MODEL_QUIRKS = frozenset(
    {BEYOND_CONTEXT, "forced_choice", "temperature_with_top_p", "thinking.adaptive", "thinking.between_tools", "top_k"}
)  # fmt: skip
"""Words that `rejects` in models.toml may contain in addition to settings and features: a maximum beyond the context, a
forced choice of an option, temperature together with top_p, thinking without a budget, thinking only between calls, and
`top_k`."""
FIELDS: Mapping[str, str] = {
    "max_output_tokens": "max_tokens", "stop": "stop_sequences", "temperature": "temperature", "top_p": "top_p",
}  # fmt: skip
"""Neutral setting → request field in which its value is sent unchanged."""
CHOICES: Mapping[str, str] = {"auto": "auto", "none": "none", "required": "any"}
"""Option choice → the type of `tool_choice`. If the choice is an option's name, the type is "tool"."""
EFFORTS: tuple[ReasoningEffort, ...] = ("none", "low", "medium", "high", "xhigh", "max")
"""Efforts that a model is assumed to accept if it is not in models.toml. "none" turns thinking off."""
MIN_BUDGET = 1024
"""The smallest thinking budget that the API accepts, in tokens.
https://platform.claude.com/docs/en/build-with-claude/extended-thinking
"""
BUDGETS: Mapping[str, int] = {
    "minimal": MIN_BUDGET, "low": 4096, "medium": 10_000, "high": 20_000, "xhigh": 32_000, "max": 64_000,
}  # fmt: skip
"""Effort → thinking budget in tokens, for models that need a budget. Half of max_tokens is sent if that is less, but
never less than MIN_BUDGET.
"""
OLDER_VERSION = "2023-06-01"
"""The API version before the version that the SDK sends. https://platform.claude.com/docs/en/api/versioning"""
COMPATIBLE = "compatible"
"""Quirk of another vendor's endpoint with this API: the endpoint does not know the newer API version."""
BREAKPOINT_PLACES = ("options", "system", "closed", "end", "automatic")
"""Places of cache breakpoints in the order in which the vendor reads them. The vendor accepts at most four."""
MOST_MARKERS = 4
"""The largest number of cache markers in a request.
https://platform.claude.com/docs/en/build-with-claude/prompt-caching
"""
AUTOMATIC_CACHE, TOP_LEVEL_CACHE = "automatic_cache", "top_level_cache"
"""Quirks of other vendors' endpoints: the endpoint caches every prompt by itself and has no markers, or accepts only
one marker, in the request's field `cache_control`."""
HOUR = "1h"
"""The longest lifetime of a cached prefix."""
CONTINUE_TEXT, BEGIN_TEXT = "Continue.", "Begin."
"""Texts of the user message that is added at the end of a conversation, or to an empty one, if the API requires it."""
_MIN_TOP_P = 0.95
"""The smallest `top_p` that the API accepts while thinking is on."""


def most_at_once(model: str) -> int:
    """Return the largest max_tokens of a request to the model without a stream."""
    return MODELS_AT_ONCE.get(model, MOST_AT_ONCE)


def encode_request(scope: RequestScope) -> Mapping[str, JSONValue]:
    """Return all fields of the request except the messages. Report settings that cannot be sent as losses.

    Raises SettingsInvalid for an invalid vendor setting or an option choice that is not offered.
    """
    return _RequestBuilder(scope, scope.read_vendor(AnthropicSettings)).build()


def encode_count(body: Mapping[str, JSONValue], scope: TurnScope) -> tuple[str, Mapping[str, JSONValue]]:
    """Return the path and the body of a request that counts the tokens of `body`, without fields that the endpoint
    does not accept.
    """
    return f"{PATH}/count_tokens", {name: value for name, value in body.items() if name in COUNT_FIELDS}


class _RequestBuilder:
    """Builds the fields of one request. `thinking` is the request's field "thinking", {} if it is not sent."""

    def __init__(self, scope: RequestScope, vendor: dict[str, Any]) -> None:
        self._scope = scope
        self._vendor = vendor
        self._rejects = scope.model_info.rejects
        self._markers: dict[str, dict[str, Any]] = {}
        self._limit = self._output_limit()
        self._effort: str | None = None
        self._strict = StrictSchemas()
        self.thinking: AnthropicObject = self._thinking_field()

    def lose(self, kind: LossKind, reason: str, setting: str) -> None:
        """Report the loss of a neutral setting or, if AnthropicSettings has a field `setting`, of a vendor setting."""
        own = f"vendor.{self._scope.target.provider}." if setting in AnthropicSettings.model_fields else ""
        self._scope.losses.add(kind, reason, path=f"settings.{own}{setting}")

    def build(self) -> dict[str, Any]:
        """Return the fields, as far as possible in the order in which the vendor caches them. Call only once."""
        scope, vendor = self._scope, self._vendor
        if betas := vendor.pop("betas", ()):
            scope.headers[BETAS] = ",".join(dict.fromkeys(filter(None, (*betas, scope.headers.get(BETAS)))))
        if version := vendor.pop("version", ""):
            scope.headers["anthropic-version"] = version
        neutral = {"effort": self._effort, "format": self._output_format()}
        native = dict(scope.native)
        tools = [*self._tool_declarations(), *native.pop("tools", ()), *vendor.pop("tools", ())]
        servers = [*native.pop("mcp_servers", ()), *(vendor.pop("mcp_servers", None) or ())]
        system = encode_system(scope.system, scope.losses)
        self._markers = self._read_breakpoints("system" if system else "options" if tools else "")
        config = {name: value for name, value in neutral.items() if value} | vendor.pop("output_config", {})
        for name, setting in (("effort", "reasoning_effort"), ("format", "response_format")):
            if neutral[name] and config[name] != neutral[name]:
                self.lose("dropped", "the vendor setting output_config replaces this setting", setting)
        fields = {
            "model": scope.target.model,
            FIELDS["max_output_tokens"]: self._limit,
            "mcp_servers": servers,
            "tools": self._mark_last_block(tools, "options"),
            "system": self._mark_last_block(system, "system"),
            "tool_choice": self._tool_choice(tools),
            "thinking": dict(self.thinking),
            "output_config": config,
            **self._markers.get("automatic", {}),
            FIELDS["stop"]: self._stop_sequences(),
            **self._sampling_fields(is_newer=version != OLDER_VERSION and COMPATIBLE not in scope.quirks),
        }
        for place in ("closed", "end"):
            if marker := self._markers.get(place):
                text = b"," + encode_json(marker)[1:-1].encode()
                scope.insertions.append(Insertion(place, b"}]}", text, f"settings.{self._marker_settings[place]}"))
        self._add_closing_message(is_formatted="format" in config)
        return {name: value for name, value in fields.items() if value not in (None, [], {})} | vendor

    def _output_limit(self) -> int:
        """Return max_tokens. If the user set no maximum, return the model's and report a loss.

        For a model that rejects BEYOND_CONTEXT, the value is at most the limit without a stream, or twice the thinking
        budget, so that the prompt fits into the context. Above the limit without a stream, `scope.only_as_stream` is
        set.
        """
        scope, most = self._scope, most_at_once(self._scope.target.model)
        limit: int | None = scope.setting("max_output_tokens")
        if limit is None:
            limit = scope.model_info.output_tokens or DEFAULT_MAX_TOKENS
            if BEYOND_CONTEXT in self._rejects:
                by_effort = BUDGETS.get(scope.settings.take("reasoning_effort") or "", 0)
                budget = first_whole_number(object_or_empty(self._vendor.get("thinking")).get("budget_tokens")) or 0
                limit = min(limit, max(most, 2 * budget, 2 * by_effort if "thinking.adaptive" in self._rejects else 0))
            reason = f"the API requires max_output_tokens and none was set, so {limit} was sent"
            self.lose("synthesized", reason, "max_output_tokens")
        scope.only_as_stream = limit > most
        return limit

    def _thinking_field(self) -> AnthropicObject:
        """Return the field `thinking`, from the vendor setting or the neutral effort. Set `_effort`, the effort to
        send.
        """
        vendor_thinking, thinking = self._vendor.pop("thinking", None), self._thinking_for_effort()
        if vendor_thinking is not None and thinking and self._effort is None and thinking != vendor_thinking:
            self.lose("dropped", "the vendor setting thinking replaces this setting", "reasoning_effort")
        return vendor_thinking or thinking

    def _thinking_for_effort(self) -> AnthropicObject:
        """Return the field `thinking` for the neutral effort, or {}. Set `_effort` if the model accepts an effort."""
        scope, info = self._scope, self._scope.model_info
        always_thinks = info.efforts is not None and "none" not in info.efforts and info.reasoning is not False
        wants_none = scope.settings.take("reasoning_effort") == "none"
        if wants_none and always_thinks and "thinking.between_tools" not in self._rejects:
            reason = f"thinking between calls of {scope.target.model} cannot be turned off"
            self.lose("downgraded", reason, "reasoning_effort")
            return {"type": "between_tools"}
        effort = fit_effort(scope, unknown=EFFORTS)
        if effort is None:
            return {}
        if effort == "none":
            return {"type": "disabled"}
        if "thinking.adaptive" in self._rejects:
            return self._thinking_budget(effort)
        self._effort = effort
        return {} if "thinking" in self._rejects else {"type": "adaptive"}

    def _thinking_budget(self, effort: str) -> dict[str, Any]:
        """Return the field `thinking` with a budget for the effort. Report a loss if max_tokens is too low for it."""
        wanted = BUDGETS[effort]
        budget = max(min(wanted, self._limit // 2), MIN_BUDGET)
        if budget >= self._limit:
            reason = f"thinking needs a max_output_tokens above {MIN_BUDGET}, but the limit is {self._limit}"
            self.lose("dropped", reason, "reasoning_effort")
            return {}
        if budget < wanted and self._scope.settings.take("max_output_tokens"):
            reason = f"max_output_tokens={self._limit} reduced the thinking budget from {wanted} to {budget} tokens"
            self.lose("downgraded", reason, "reasoning_effort")
        return {"type": "enabled", "budget_tokens": budget}

    def _sampling_fields(self, *, is_newer: bool) -> dict[str, Any]:
        """Return the fields `temperature`, `top_p` and `top_k`. If the API version or the model does not accept a
        value, report a loss and return None in its place.
        """
        model, thinks = self._scope.target.model, self.thinking.get("type") in ("enabled", "adaptive")
        fields = {FIELDS[setting]: self._scope.setting(setting) for setting in ("temperature", "top_p")}
        temperature, top_p = fields.values()
        fields["top_k"] = self._vendor.pop("top_k", None)
        both = None not in (temperature, top_p) and "temperature_with_top_p" in self._rejects
        below = f"the API accepts no top_p below {_MIN_TOP_P} while thinking is on"
        newer = f"only an older API version accepts this setting; set the vendor setting version={OLDER_VERSION!r}"
        for setting, is_refused, reason in (
            *((setting, is_newer, newer) for setting in fields),
            ("temperature", (temperature or 0) > 1, "the API accepts no temperature above 1"),
            ("temperature", thinks and temperature != 1, "the API accepts only temperature 1 while thinking is on"),
            ("top_p", thinks and (top_p or 0) < _MIN_TOP_P, below),
            ("top_p", both, f"{model} refuses top_p together with temperature"),
            ("top_k", thinks, "the API accepts no top_k while thinking is on"),
            ("top_k", "top_k" in self._rejects, f"{model} refuses top_k"),
        ):
            if is_refused and fields[setting] is not None:
                self.lose("dropped", reason, setting)
                fields[setting] = None
        return fields

    def _stop_sequences(self) -> list[str]:
        """Return the stop texts. Report texts of white space only, and the setting `seed`, as losses."""
        stops = self._scope.neutral_fields({"stop": "stop"}, absent=("seed",)).get("stop", ())
        reason = "the API does not accept a stop text that is only white space"
        for index, stop in enumerate(stops):
            if not stop.strip():
                self.lose("dropped", reason, f"stop[{index}]")
        return [stop for stop in stops if stop.strip()]

    def _tool_declarations(self) -> Iterator[dict[str, Any]]:
        """Yield the declaration of each option. Report schemas that cannot be strict, and other changes, as losses."""
        for index, option in enumerate(self._scope.options):
            path, hints = f"options[{index}].parameters", self._scope.target.hints_of(option)
            fitted = fit_schema(option.parameters, STRICT if hints.get("strict") else PARAMETERS)
            if hints.get("strict"):
                refusal = fitted.refusal or self._strict.add(fitted.optional, fitted.unions, tools=1)
                if refusal:
                    self._scope.losses.add("downgraded", f"the option was sent without `strict`: {refusal}", path=path)
                    fitted, hints = fit_schema(option.parameters, PARAMETERS), without_fields(hints, "strict")
            if fitted.names:
                self._scope.argument_names[option.name] = fitted.names
            parameters = fitted.parameters(self._scope.losses, path)
            yield {**self._scope.declare(option), "input_schema": parameters, **hints}

    def _output_format(self) -> dict[str, Any] | None:
        """Return the field `format` for the response format; None without a format, or with a loss if it is refused."""
        wanted: ResponseFormat | None = self._scope.setting("response_format")
        if wanted is None:
            return None
        if wanted == JSON_OBJECT:
            reason = "the API has no JSON mode without a schema; ask for JSON in a message"
            self.lose("dropped", reason, "response_format")
            return None
        fitted = fit_schema(wanted.schema_view, REPLY)
        if refusal := fitted.refusal or self._strict.add(fitted.optional, fitted.unions):
            self.lose("dropped", f"the API does not accept this schema: {refusal}", "response_format")
            return None
        fitted.report(self._scope.losses, "settings.response_format.schema")
        annotations = {"title": wanted.name if wanted.name != DEFAULT_NAME else "", "description": wanted.description}
        for keyword, text in annotations.items():
            if text:
                fitted.schema.setdefault(keyword, text)
        return {"type": "json_schema", "schema": fitted.schema}

    def _tool_choice(self, tools: Sequence[AnthropicObject]) -> dict[str, Any]:
        """Return the field `tool_choice`: the option choice, and whether several options may be called at once.

        If the request has no tools, or if the vendor setting `tool_choice` replaces the neutral settings, report losses
        and return {}.
        """
        settings = {setting: self._scope.setting(setting) for setting in ("option_choice", "parallel_options")}
        choice, parallel = settings.values()
        field = {} if choice is None else self._choice_of_tool(choice, tools)
        field = self._allow_forced(field, dict(object_or_empty(self._scope.native_choice)))
        if "tool_choice" in self._vendor or not tools:
            replaced = "the vendor setting tool_choice replaces this setting"
            reason = replaced if "tool_choice" in self._vendor else "the request has no options"
            for setting in (setting for setting, value in settings.items() if value is not None):
                self.lose("dropped", reason, setting)
            return {}
        if parallel is not None and field.get("type") == "none":
            self.lose("dropped", "parallel_options has no effect if option_choice is 'none'", "parallel_options")
            return field
        return field if parallel is None else {"type": "auto", **field, "disable_parallel_tool_use": not parallel}

    def _choice_of_tool(self, choice: str, tools: Sequence[AnthropicObject]) -> dict[str, Any]:
        """Return the field `tool_choice` for an option choice. Raises SettingsInvalid if a name is not offered."""
        field = {"type": CHOICES.get(choice, "tool")}
        if choice not in CHOICES:
            field["name"] = self._scope.option_names.get(choice, choice)
            if not any(tool.get("name") == field["name"] for tool in tools):
                raise self._scope.not_offered(choice)
        return field if not tools or choice in ("auto", "none") else self._allow_forced({}, field)

    def _allow_forced(self, field: AnthropicObject, forced: AnthropicObject) -> AnthropicObject:
        """Return `forced`, a choice that forces a call; `field` if it is empty. If the model cannot be forced, report a
        loss and return the choice "auto".
        """
        if not forced:
            return field
        if "forced_choice" in self._rejects:
            refusal = f"{self._scope.target.model} cannot be forced to call a tool"
        elif self.thinking.get("type") == "enabled":
            refusal = "the API cannot force a tool call while thinking with a budget is on"
        else:
            return forced
        self.lose("downgraded", refusal, "option_choice")
        return {"type": "auto"}

    def _read_breakpoints(self, first: str) -> dict[str, dict[str, Any]]:
        """Return the cache markers to send: a place of BREAKPOINT_PLACES → the field `cache_control`.

        `first` is the place for the first marker of the setting `prompt_cache`, or "". A marker of an hour after a
        marker of five minutes is sent with five minutes (loss: downgraded). The vendor setting `cache_control` becomes
        the place "automatic". If "end" already marks the same block, the setting is dropped with a loss.

        https://platform.claude.com/docs/en/build-with-claude/prompt-caching
        """
        breakpoints = [object_or_empty(each) or {"at": each} for each in self._vendor.pop("cache_breakpoints", ())]
        markers = {each["at"]: {"type": "ephemeral", **without_fields(each, "at")} for each in breakpoints}
        if automatic := self._vendor.pop("cache_control", None):
            if "end" in markers and (len(markers) == len(BREAKPOINT_PLACES) - 1 or markers["end"] != automatic):
                reason = "the cache breakpoint 'end' marks the block that cache_control would mark"
                self.lose("dropped", reason, "cache_control")
            else:
                markers["automatic"] = automatic
        own = f"vendor.{self._scope.target.provider}.cache_breakpoints"
        self._marker_settings = dict.fromkeys(markers, own)
        self._add_prompt_cache(markers, first)
        is_short = False
        for place in sorted(markers, key=BREAKPOINT_PLACES.index):
            if is_short and markers[place].get("ttl") == HOUR:
                reason = f"a cache of {HOUR} may not follow a cache of 5m; the breakpoint {place!r} was sent with 5m"
                self._scope.losses.add("downgraded", reason, path=f"settings.{self._marker_settings[place]}")
                markers[place] = without_fields(markers[place], "ttl")
            is_short = is_short or markers[place].get("ttl") != HOUR
        return {place: {"cache_control": marker} for place, marker in markers.items()}

    def _add_prompt_cache(self, markers: dict[str, dict[str, Any]], first: str) -> None:
        """Add the markers of the setting `prompt_cache` at the places without a marker: the end of the closed turns,
        and the place `first`, as far as the API accepts so many markers. Report a loss if it does not accept any.
        """
        lifetime = self._scope.setting("prompt_cache")
        if lifetime is None:
            return
        is_top_level = TOP_LEVEL_CACHE in self._scope.quirks
        if AUTOMATIC_CACHE in self._scope.quirks and not is_top_level:
            if lifetime is not True:
                reason = f"{self._scope.target.provider} caches prompts by itself and accepts no lifetime"
                self.lose("downgraded", reason, "prompt_cache")
            return
        places = ("automatic",) if is_top_level else ("closed", first)
        if len(markers) >= MOST_MARKERS and places[0] not in markers:
            reason = f"the API accepts at most {MOST_MARKERS} cache markers, and the vendor settings place them all"
            self.lose("dropped", reason, "prompt_cache")
        for place in places:
            if place and place not in markers and len(markers) < MOST_MARKERS:
                later = BREAKPOINT_PLACES[BREAKPOINT_PLACES.index(place) :]
                is_long = lifetime is True and any(markers.get(each, {}).get("ttl") == HOUR for each in later)
                ttl = HOUR if is_long else lifetime
                markers[place] = {"type": "ephemeral"} | ({} if ttl is True else {"ttl": ttl})
                self._marker_settings[place] = "prompt_cache"

    def _mark_last_block(self, blocks: list[dict[str, Any]], place: str) -> list[dict[str, Any]]:
        """Add the marker to the last block if the place has a breakpoint, and return the blocks. Without a block,
        report a loss.
        """
        # The vendor does not cache tools that it loads later, and refuses a marker on them.
        last = next((index for index in reversed(range(len(blocks))) if not blocks[index].get("defer_loading")), None)
        marker = self._markers.get(place, {})
        if marker and last is None:
            reason = f"the request has no {place}, so the cache breakpoint {place!r} was not sent"
            self.lose("dropped", reason, "cache_breakpoints")
        if last is None or not marker:
            return blocks
        return [*blocks[:last], {**blocks[last], **marker}, *blocks[last + 1 :]]

    def _add_closing_message(self, *, is_formatted: bool) -> None:
        """Add a user message after all messages if the API requires one, and report a loss."""
        scope = self._scope
        last = scope.last_turn if scope.last_side == "assistant" else None
        entry = last.entries[-1] if last and last.entries else None
        pieces = entry.pieces if entry and entry.keeps_state else ()
        # The last part of the last turn, if this model wrote it. Reasoning does not count, because it may be left out.
        part = next((piece for piece in reversed(pieces) if piece.kind != "reasoning"), None)
        if scope.last_side not in (None, "assistant") or (part and part.kind == "opaque"):
            return
        rejects_end = "ending_assistant" in self._rejects
        reasons = {
            "the API requires a user message": scope.last_side is None,
            f"{scope.target.model} does not accept a conversation that ends with an assistant message": rejects_end,
            "the API accepts no beginning of the answer while thinking is on": self.thinking.get("type") == "enabled",
            "the API does not accept the beginning of an answer together with a schema": is_formatted,
            "nothing after the last assistant message could be sent": last is None,
            TRAILING_SPACE: bool(part and part.kind == "text" and part.text[-1:].isspace()),
        }
        if reason := next((reason for reason, holds in reasons.items() if holds), ""):
            text = BEGIN_TEXT if scope.last_side is None else CONTINUE_TEXT
            scope.closing.append({"role": "user", "content": [{"type": "text", "text": text}]})
            scope.losses.add("synthesized", f"{reason}; {text!r} was added at the end", path="messages")
