"""Answer lengths: the maximum if the caller sets none, and the length above which an answer must be streamed.

    asked for, or the model's whole output ──▶ max_tokens ── above the limit without a stream ──▶ always streamed

The wire wants a maximum in every request. The SDK's typed call refuses one that may take longer than ten minutes
unless it streams; ready bytes bypass that guard, so it is repeated here (docs/reference/guards.md).
"""

from collections.abc import Mapping

from sabir.authoring import RequestScope

UNKNOWN_MODEL = 4096
"""Tokens that every model can answer with; for models that are not in models.toml."""
MOST_AT_ONCE = 21_333
"""The longest answer, in tokens, that the SDK waits for: it assumes 128,000 tokens an hour and waits ten minutes."""
MODELS_AT_ONCE: Mapping[str, int] = {
    "anthropic.claude-opus-4-1-20250805-v1:0": 8192,
    "anthropic.claude-opus-4-20250514-v1:0": 8192,
    "claude-4-opus-20250514": 8192,
    "claude-opus-4-0": 8192,
    "claude-opus-4-1@20250805": 8192,
    "claude-opus-4-20250514": 8192,
    "claude-opus-4@20250514": 8192,
}
"""Models with a lower limit in the SDK (`anthropic._constants`, held equal by a test)."""
BEYOND_CONTEXT = "output_beyond_context"
"""Word of models.toml: the vendor refuses a maximum that exceeds the context together with the prompt.

Models before Claude 4.5 refuse it; later models take it and stop where the context ends.
https://platform.claude.com/docs/en/build-with-claude/context-windows
"""


def most_at_once(model: str) -> int:
    """The longest answer of a model, in tokens, that may come without a stream."""
    return MODELS_AT_ONCE.get(model, MOST_AT_ONCE)


def answer_limit(scope: RequestScope, *, thinking: int) -> int:
    """The maximum of a request, in tokens; if the caller sets none, the model's own, which is reported as a loss.

    A model that counts it together with the prompt gets the longest answer without a stream, which leaves room for the
    prompt, or twice its thinking budget. The request is marked as streamed if it may otherwise take too long.
    """
    most = most_at_once(scope.target.model)
    limit: int | None = scope.take("max_output_tokens")
    if limit is None:
        limit = scope.model_info.output_tokens or UNKNOWN_MODEL
        if BEYOND_CONTEXT in scope.model_info.rejects:
            limit = min(limit, max(most, 2 * thinking))
        scope.losses.add(
            "synthesized",
            f"the wire wants a maximum, and none was set: {limit}; set max_output_tokens for another",
            path="settings.max_output_tokens",
        )
    scope.only_as_stream = limit > most
    return limit
