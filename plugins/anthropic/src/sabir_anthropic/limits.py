"""How long an answer may be: the maximum where none is asked for, and from which on it must come as a stream.

    asked for, or the model's whole output ──▶ max_tokens ── above what may come at once ──▶ streamed, whoever asks

The wire wants a maximum in every request. The SDK's typed call refuses one that may take longer than ten minutes
unless it streams; ready bytes pass that guard by, so that it stands here (docs/reference/guards.md).
"""

from collections.abc import Mapping

from sabir.authoring import RequestScope

UNKNOWN_MODEL = 4096
"""What every model can answer with; for one of which nothing is known."""
MOST_AT_ONCE = 21_333
"""The longest answer that the SDK waits for: it takes 128,000 tokens an hour, and ten minutes at most."""
MODELS_AT_ONCE: Mapping[str, int] = {
    "anthropic.claude-opus-4-1-20250805-v1:0": 8192,
    "anthropic.claude-opus-4-20250514-v1:0": 8192,
    "claude-4-opus-20250514": 8192,
    "claude-opus-4-0": 8192,
    "claude-opus-4-1@20250805": 8192,
    "claude-opus-4-20250514": 8192,
    "claude-opus-4@20250514": 8192,
}
"""Models of which it waits for less, as the SDK has them (`anthropic._constants`, held equal by a test)."""
BEYOND_CONTEXT = "output_beyond_context"
"""Word of models.toml: the vendor refuses a maximum that reaches beyond the context together with the prompt.

So it was before Claude 4.5; later models take it, and stop where the context ends.
https://platform.claude.com/docs/en/build-with-claude/context-windows
"""


def most_at_once(model: str) -> int:
    """The longest answer of a model, in tokens, that may come at once."""
    return MODELS_AT_ONCE.get(model, MOST_AT_ONCE)


def answer_limit(scope: RequestScope, *, thinking: int) -> int:
    """The maximum of a request, in tokens; where none is asked for, the model's own, which is told as a loss.

    A model that counts it together with the prompt gets what may come at once, which leaves the prompt its room, or
    twice the tokens that it shall think by. The request is marked to be streamed where it may take too long otherwise.
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
