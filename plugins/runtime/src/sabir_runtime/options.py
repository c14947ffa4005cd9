"""A bound policy as an option: chosen by a call, performed by the runner, its batch the call's result.

    option call ──arguments, validated──▶ bound(observations=[call], …) ──batch──▶ value of the result

    texts and media of the batch             ──▶ parts
    none of these, results of its own calls  ──▶ their values
    nothing                                  ──▶ null

A policy that is chosen sees the call, and nothing else, as its observation (RN-09).
"""

from collections.abc import Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from sabir import Message, Option, OptionFailed

if TYPE_CHECKING:
    from sabir_runtime.bound import BoundPolicy
    from sabir_runtime.policies import Batch

CHOSEN: ContextVar[Message] = ContextVar("sabir_runtime.chosen")
"""The option call that is being answered."""


MOST_KEPT = 16
"""Options of one bound policy that are kept, by what was offered beside it."""


def option_of(bound: "BoundPolicy", offered: Sequence[str] | None) -> Option:
    """The option that stands for a bound policy; `offered` is what its chooser could choose. Made once for each."""
    key = tuple(offered or ())
    known = bound.made_options.get(key)
    if known is None:
        if len(bound.made_options) >= MOST_KEPT:
            bound.made_options.clear()
        known = bound.made_options[key] = _option_of(bound, list(key))
    return known


def _option_of(bound: "BoundPolicy", offered: list[str]) -> Option:
    async def perform(**arguments: Any) -> Any:  # whatever a result holds
        message = CHOSEN.get()
        options = offered if bound.options is None else bound.options
        return value_of(await bound.perform([message], options, arguments), message)

    return bound.signature.as_option(bound.name, perform)


def value_of(batch: "Batch", call: Message) -> Any:  # whatever a result holds
    """What a batch says in answer to the call that asked for it; OptionFailed where it says that it failed."""
    said = [part for message in batch if message.kind == "parts" for part in message.parts]
    said = [part for part in said if part.kind in ("text", "media")]
    if said:
        return said
    results = [message.result for message in batch if message.result is not None]
    if len(results) > 1:
        return [result.error_message if result.is_error else result.result for result in results]
    if not results:
        return None
    (result,) = results
    if result.is_error:
        raise OptionFailed(str(result.error_type), str(result.error_message), retryable=bool(result.retryable))
    return list(result.parts) if result.parts else result.result
