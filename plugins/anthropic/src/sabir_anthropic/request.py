"""Settings, options and hoisted system text → the fields of a request beside its messages.

    neutral settings by name ──▶ wire fields      settings that a model refuses or the wire lacks are losses
    reasoning_effort ──▶ thinking and effort      by the model's row in models.toml
    options ──▶ tools     vendor settings ──▶ verbatim, last     cache breakpoints ──▶ markers, at the join
    asked for, or the model's whole output ──▶ max_tokens ── above the limit without a stream ──▶ always streamed

A row of models.toml may refuse the WORDS below in addition to wire settings and features.

The wire wants a maximum in every request. The SDK's typed call refuses one that may take longer than ten minutes
unless it streams; ready bytes bypass that guard, so it is repeated here (docs/reference/guards.md).
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

from sabir_anthropic.encode import WHITE_END, encode_system
from sabir_anthropic.schema import PARAMETERS, REPLY, STRICT, StrictSchemas
from sabir_anthropic.settings import AnthropicSettings, Fields

UNKNOWN_MODEL = 4096
"""Tokens that every model can answer with; for models that are not in models.toml."""
MOST_AT_ONCE = 21_333
"""The longest answer, in tokens, that the SDK waits for: it assumes 128,000 tokens an hour and waits ten minutes."""
MODELS_AT_ONCE: Mapping[str, int] = dict.fromkeys((
    "anthropic.claude-opus-4-1-20250805-v1:0", "anthropic.claude-opus-4-20250514-v1:0", "claude-4-opus-20250514",
    "claude-opus-4-0", "claude-opus-4-1@20250805", "claude-opus-4-20250514", "claude-opus-4@20250514",
), 8192)  # fmt: skip
"""Models with a lower limit in the SDK (`anthropic._constants`, held equal by a test)."""
BEYOND_CONTEXT = "output_beyond_context"
"""Word of models.toml: the vendor refuses a maximum that exceeds the context together with the prompt.

Models before Claude 4.5 refuse it; later models take it and stop where the context ends.
https://platform.claude.com/docs/en/build-with-claude/context-windows
"""
PATH = "/v1/messages"
COUNTED = frozenset({
    "cache_control", "context_management", "mcp_servers", "messages", "model", "output_config", "speed", "system",
    "thinking", "tool_choice", "tools",
})  # fmt: skip
"""Fields of a request that the counting endpoint takes."""

WORDS = frozenset(
    {BEYOND_CONTEXT, "forced_choice", "temperature_with_top_p", "thinking.adaptive", "thinking.between_tools", "top_k"}
)  # fmt: skip
"""Words that a row of models.toml may refuse in addition to wire settings and features: a maximum beyond the context, a
forced choice of an option, both samplers at once, thinking without a budget, thinking only between calls, `top_k`."""
EFFORTS: tuple[ReasoningEffort, ...] = ("none", "low", "medium", "high", "xhigh", "max")
"""Efforts of a model that is not in models.toml: those of the wire, and not thinking."""
LEAST_BUDGET = 1024
"""The vendor's own. https://platform.claude.com/docs/en/build-with-claude/extended-thinking"""
BUDGETS: Mapping[str, int] = {
    "minimal": LEAST_BUDGET, "low": 4096, "medium": 10_000, "high": 20_000, "xhigh": 32_000, "max": 64_000,
}  # fmt: skip
"""Effort → tokens for a model that thinks by a budget: at most half of the tokens that it may answer with."""
OLDER = "2023-06-01"
"""The version of the API before the one that the SDK asks for. https://platform.claude.com/docs/en/api/versioning"""
COMPATIBLE = "compatible"
"""Quirk of another vendor's endpoint that speaks this dialect: it does not know the newer version."""
PLACES = ("options", "system", "closed", "end", "automatic")
"""Places of cache breakpoints in the order in which the vendor reads them; it takes at most four breakpoints."""
LONGEST = "1h"
GO_ON, BEGIN = "Continue.", "Begin."
_LEAST_TOP_P = 0.95
"""The least `top_p` that thinking allows."""


def most_at_once(model: str) -> int:
    """The longest answer of a model, in tokens, that may come without a stream."""
    return MODELS_AT_ONCE.get(model, MOST_AT_ONCE)


def encode_request(scope: RequestScope) -> Mapping[str, JSONValue]:
    """Every field but the messages."""
    return _Request(scope, scope.read_vendor(AnthropicSettings)).whole()


def encode_count(body: Mapping[str, JSONValue], scope: TurnScope) -> tuple[str, Mapping[str, JSONValue]]:
    """The path and body that ask for the vendor's own count, with the fields that the counting endpoint takes."""
    return f"{PATH}/count_tokens", {name: value for name, value in body.items() if name in COUNTED}


class _Request:
    """The fields of a request under construction; `thinking` is how the model will think, from any setting."""

    def __init__(self, scope: RequestScope, vendor: dict[str, Any]) -> None:
        self._scope = scope
        self._vendor = vendor
        self._rejects = scope.model_info.rejects
        self._markers = self._read_breakpoints()
        self._limit = self._answer_limit()
        self._effort: str | None = None
        self._strict = StrictSchemas()
        self.thinking: Fields = self._thinking()

    def lose(self, kind: LossKind, reason: str, setting: str) -> None:
        """Record the loss of a setting, by the vendor's name where it is one of the vendor's own."""
        own = f"vendor.{self._scope.target.provider}." if setting in AnthropicSettings.model_fields else ""
        self._scope.losses.add(kind, reason, path=f"settings.{own}{setting}")

    def whole(self) -> dict[str, Any]:
        """The fields, as far as possible in the order in which the vendor caches them."""
        scope, vendor = self._scope, self._vendor
        if betas := vendor.pop("betas", ()):
            scope.headers["anthropic-beta"] = ",".join(betas)
        if version := vendor.pop("version", ""):
            scope.headers["anthropic-version"] = version
        neutral = {"effort": self._effort, "format": self._format()}
        tools = [*self._options(), *vendor.pop("tools", ())]
        config = {name: value for name, value in neutral.items() if value} | vendor.pop("output_config", {})
        for name, setting in (("effort", "reasoning_effort"), ("format", "response_format")):
            if neutral[name] and config[name] != neutral[name]:
                self.lose("dropped", "the vendor setting output_config replaces it", setting)
        found = {
            "model": scope.target.model,
            "max_tokens": self._limit,
            "tools": self._marked(tools, "options"),
            "system": self._marked(encode_system(scope.system, scope.losses), "system"),
            "tool_choice": self._choice(tools),
            "thinking": dict(self.thinking),
            "output_config": config,
            **self._markers.get("automatic", {}),
            "stop_sequences": self._stops(),
            **self._samplers(is_newer=version != OLDER and COMPATIBLE not in scope.quirks),
        }
        for place in ("closed", "end"):
            if marker := self._markers.get(place):
                text = b"," + encode_json(marker)[1:-1].encode()
                path = f"settings.vendor.{scope.target.provider}.cache_breakpoints"
                scope.insertions.append(Insertion(place, b"}]}", text, path))
        self._close(is_formatted="format" in config)
        return {name: value for name, value in found.items() if value not in (None, [], {})} | vendor

    def _answer_limit(self) -> int:
        """The maximum of a request, in tokens; if the caller sets none, the model's own, which is reported as a loss.

        A model that counts it together with the prompt gets the longest answer without a stream, which leaves room for
        the prompt, or twice its thinking budget. The request is marked as streamed if it may otherwise take too long.
        """
        scope, most = self._scope, most_at_once(self._scope.target.model)
        limit: int | None = scope.setting("max_output_tokens")
        if limit is None:
            limit = scope.model_info.output_tokens or UNKNOWN_MODEL
            if BEYOND_CONTEXT in self._rejects:
                by_effort = BUDGETS.get(scope.settings.take("reasoning_effort") or "", 0)
                budget = first_whole_number(object_or_empty(self._vendor.get("thinking")).get("budget_tokens")) or 0
                limit = min(limit, max(most, 2 * budget, 2 * by_effort if "thinking.adaptive" in self._rejects else 0))
            reason = f"the API requires max_output_tokens and none was set, so {limit} was sent"
            self.lose("synthesized", reason, "max_output_tokens")
        scope.only_as_stream = limit > most
        return limit

    def _thinking(self) -> Fields:
        """Return the field `thinking`, from the vendor setting or the neutral effort, and set the effort to send."""
        given, thinking = self._vendor.pop("thinking", None), self._neutral_thinking()
        if given is not None and thinking and self._effort is None and thinking != given:
            self.lose("dropped", "the vendor setting thinking replaces it", "reasoning_effort")
        return given or thinking

    def _neutral_thinking(self) -> Fields:
        scope, info = self._scope, self._scope.model_info
        always_thinks = info.efforts is not None and "none" not in info.efforts and info.reasoning is not False
        wants_none = scope.settings.take("reasoning_effort") == "none"
        if wants_none and always_thinks and "thinking.between_tools" not in self._rejects:
            self.lose("downgraded", f"{scope.target.model} still thinks between calls", "reasoning_effort")
            return {"type": "between_tools"}
        effort = fit_effort(scope, unknown=EFFORTS)
        if effort is None:
            return {}
        if effort == "none":
            return {"type": "disabled"}
        if "thinking.adaptive" in self._rejects:
            return self._budget(effort)
        self._effort = effort
        return {} if "thinking" in self._rejects else {"type": "adaptive"}

    def _budget(self, effort: str) -> dict[str, Any]:
        wanted = BUDGETS[effort]
        budget = max(min(wanted, self._limit // 2), LEAST_BUDGET)
        if budget >= self._limit:
            reason = f"thinking needs {LEAST_BUDGET} tokens or more, but the limit is {self._limit} tokens"
            self.lose("dropped", reason, "reasoning_effort")
            return {}
        if budget < wanted and self._scope.settings.take("max_output_tokens"):
            reason = f"the limit of {self._limit} tokens reduced the thinking budget from {wanted} to {budget}"
            self.lose("downgraded", reason, "reasoning_effort")
        return {"type": "enabled", "budget_tokens": budget}

    def _samplers(self, *, is_newer: bool) -> dict[str, Any]:
        """Temperature, `top_p` and `top_k`: only in the older version of the API, and only if the model takes them."""
        model, thinks = self._scope.target.model, self.thinking.get("type") in ("enabled", "adaptive")
        found = {setting: self._scope.setting(setting) for setting in ("temperature", "top_p")}
        temperature, top_p = found.values()
        found["top_k"] = self._vendor.pop("top_k", None)
        both = None not in (temperature, top_p) and "temperature_with_top_p" in self._rejects
        newer = f"only the older API version accepts it; choose it with the vendor setting version={OLDER!r}"
        for setting, is_refused, reason in (
            *((setting, is_newer, newer) for setting in found),
            ("temperature", (temperature or 0) > 1, "the API accepts at most 1"),
            ("temperature", thinks and temperature != 1, "a model that thinks accepts only 1"),
            (
                "top_p",
                thinks and (top_p or 0) < _LEAST_TOP_P,
                f"a model that thinks accepts no value below {_LEAST_TOP_P}",
            ),
            ("top_p", both, f"{model} refuses it together with temperature"),
            ("top_k", thinks, "a model that thinks does not accept it"),
            ("top_k", "top_k" in self._rejects, f"{model} refuses it"),
        ):
            if is_refused and found[setting] is not None:
                self.lose("dropped", reason, setting)
                found[setting] = None
        return found

    def _stops(self) -> list[str]:
        given = self._scope.neutral_fields({"stop": "stop"}, absent=("seed",)).get("stop", ())
        for index, stop in enumerate(given):
            if not stop.strip():
                self.lose("dropped", "the API does not accept a stop text that is only white space", f"stop[{index}]")
        return [stop for stop in given if stop.strip()]

    def _options(self) -> Iterator[dict[str, Any]]:
        for index, option in enumerate(self._scope.options):
            path, hints = f"options[{index}].parameters", self._scope.target.hints_of(option)
            fitted = fit_schema(option.parameters, STRICT if hints.get("strict") else PARAMETERS)
            if hints.get("strict"):
                refusal = fitted.refusal or self._strict.add(fitted.optional, fitted.unions, tools=1)
                if refusal:
                    self._scope.losses.add("downgraded", f"it was sent without `strict`: {refusal}", path=path)
                    fitted, hints = fit_schema(option.parameters, PARAMETERS), without_fields(hints, "strict")
            if fitted.names:
                self._scope.argument_names[option.name] = fitted.names
            parameters = fitted.parameters(self._scope.losses, path)
            yield {**self._scope.declare(option), "input_schema": parameters, **hints}

    def _format(self) -> dict[str, Any] | None:
        wanted: ResponseFormat | None = self._scope.setting("response_format")
        if wanted is None:
            return None
        if wanted == JSON_OBJECT:
            self.lose(
                "dropped", "the API has no JSON mode without a schema; ask for JSON in a message", "response_format"
            )
            return None
        fitted = fit_schema(wanted.schema_view, REPLY)
        if refusal := fitted.refusal or self._strict.add(fitted.optional, fitted.unions):
            self.lose("dropped", f"the API does not accept this schema: {refusal}", "response_format")
            return None
        fitted.report(self._scope.losses, "settings.response_format.schema")
        if wanted.description:
            fitted.schema.setdefault("description", wanted.description)
        return {"type": "json_schema", "schema": fitted.schema}

    def _choice(self, tools: Sequence[Fields]) -> dict[str, Any]:
        """The choice of an option and whether several may be called at once; losses where nothing is offered."""
        given = {setting: self._scope.setting(setting) for setting in ("option_choice", "parallel_options")}
        choice, parallel = given.values()
        found = {} if choice is None else self._chosen(choice, tools)
        if "tool_choice" in self._vendor or not tools:
            taken = "the vendor setting tool_choice replaces it"
            for setting in (setting for setting, value in given.items() if value is not None):
                self.lose("dropped", taken if "tool_choice" in self._vendor else "no options were passed", setting)
            return {}
        if parallel is not None and found.get("type") == "none":
            self.lose("dropped", "it has no effect, because option_choice is 'none'", "parallel_options")
            return found
        return found if parallel is None else {"type": "auto", **found, "disable_parallel_tool_use": not parallel}

    def _chosen(self, choice: str, tools: Sequence[Fields]) -> dict[str, Any]:
        if choice in ("auto", "none"):
            return {"type": choice}
        name = self._scope.option_names.get(choice, choice)
        if choice != "required" and not any(tool.get("name") == name for tool in tools):
            raise self._scope.not_offered(choice)
        if tools and "forced_choice" in self._rejects:
            refusal = f"{self._scope.target.model} cannot be forced to call a tool"
        elif tools and self.thinking.get("type") == "enabled":
            refusal = "a model that thinks by a budget cannot be forced to call a tool"
        else:
            return {"type": "any"} if choice == "required" else {"type": "tool", "name": name}
        self.lose("downgraded", refusal, "option_choice")
        return {"type": "auto"}

    def _read_breakpoints(self) -> dict[str, dict[str, Any]]:
        """Place → its marker: those of an hour before those of five minutes, an automatic one last, if a place is left.

        https://platform.claude.com/docs/en/build-with-claude/prompt-caching
        """
        wholes = [object_or_empty(each) or {"at": each} for each in self._vendor.pop("cache_breakpoints", ())]
        given = {each["at"]: {"type": "ephemeral", **without_fields(each, "at")} for each in wholes}
        if automatic := self._vendor.pop("cache_control", None):
            if "end" in given and (len(given) == len(PLACES) - 1 or given["end"] != automatic):
                self.lose("dropped", "the cache breakpoint 'end' marks the same block already", "cache_control")
            else:
                given["automatic"] = automatic
        is_short = False
        for place in sorted(given, key=PLACES.index):
            if is_short and given[place].get("ttl") == LONGEST:
                reason = f"a cache of {LONGEST} may not follow a shorter one; {place!r} was sent with the short time"
                self.lose("downgraded", reason, "cache_breakpoints")
                given[place] = without_fields(given[place], "ttl")
            is_short = is_short or given[place].get("ttl") != LONGEST
        return {place: {"cache_control": marker} for place, marker in given.items()}

    def _marked(self, blocks: list[dict[str, Any]], place: str) -> list[dict[str, Any]]:
        """The blocks, with the last one marked if the caller marked the place; a loss if there is no block."""
        # Tools that the vendor loads later are not cached, and the vendor refuses them with a marker.
        at = next((index for index in reversed(range(len(blocks))) if not blocks[index].get("defer_loading")), None)
        marker = self._markers.get(place, {})
        if marker and at is None:
            self.lose("dropped", f"the request has no {place} to mark for the cache", "cache_breakpoints")
        return blocks if at is None or not marker else [*blocks[:at], {**blocks[at], **marker}, *blocks[at + 1 :]]

    def _close(self, *, is_formatted: bool) -> None:
        """End the messages with a user message where the wire requires one."""
        scope = self._scope
        last = scope.last_turn if scope.last_side == "assistant" else None
        entry = last.entries[-1] if last and last.entries else None
        pieces = entry.pieces if entry and entry.keeps_state else ()
        # The last part of the last turn if the model said it; reasoning is skipped, since it may be left out.
        part = next((piece for piece in reversed(pieces) if piece.kind != "reasoning"), None)
        if scope.last_side not in (None, "assistant") or (part and part.kind == "opaque"):
            return
        rejects_end = "ending_assistant" in self._rejects
        reasons = {
            "the API requires a user message": scope.last_side is None,
            f"{scope.target.model} does not accept a conversation that ends with an assistant message": rejects_end,
            "a model that thinks does not accept the beginning of its answer": self.thinking.get("type") == "enabled",
            "the API does not accept the beginning of an answer together with a schema": is_formatted,
            "nothing after the last assistant message could be sent": last is None,
            WHITE_END: bool(part and part.kind == "text" and part.text[-1:].isspace()),
        }
        if reason := next((reason for reason, holds in reasons.items() if holds), ""):
            said = BEGIN if scope.last_side is None else GO_ON
            scope.closing.append({"role": "user", "content": [{"type": "text", "text": said}]})
            scope.losses.add("synthesized", f"{reason}; {said!r} was added at the end", path="messages")
