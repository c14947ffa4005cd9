"""Law 12, nothing runs half-finished: a call is runnable only if its arguments are known to be finished.

    the reply ended by itself                                       every call is finished
    the wire marked the call (`is_finished`)                        the mark decides, however the reply ended
    the wire sends one block after another, and another one follows the call is finished
    the arguments came as text that closes a JSON object with members   the call is finished
    anything else                                                   the call is unfinished

Empty arguments prove nothing: a call that was cut before its first argument looks like a call without arguments.
An object that the vendor parsed proves nothing either: it may hold only the members that were complete when the reply
was cut. An unfinished call becomes `invalid_arguments` and `cut_off`; answering it gives an error result.
"""

from collections.abc import Mapping, Sequence

from sabir.vocabulary.messages import OptionCallPayload, Payload
from sabir.vocabulary.parts import Part
from sabir.vocabulary.reply import Alternative, FinishedCalls, FinishReason

ENDED_BY_ITSELF: frozenset[FinishReason] = frozenset({"stop", "option_calls", "native_calls"})
"""Finish reasons of replies that the model ended itself; after any other, the last block may be unfinished."""


def unfinished(
    payloads: Sequence[Payload | list[Part]], end: FinishReason, shown: FinishedCalls, marks: Mapping[int, bool]
) -> dict[int, OptionCallPayload]:
    """Return the unfinished calls of a reply by their positions, each as a call that was cut off.

    `end` is the reply's finish reason, `shown` the calls that the wire shows to be finished. `marks` maps the position
    of a call to the wire's own mark: True for finished, False for unfinished.
    """
    calls: dict[int, OptionCallPayload] = {}
    if marks or end not in ENDED_BY_ITSELF:
        for at, call in enumerate(payloads):
            if not isinstance(call, OptionCallPayload):
                continue
            is_shown = shown == "all" or (shown == "followed" and at < len(payloads) - 1)
            if not marks.get(at, end in ENDED_BY_ITSELF or is_shown or _is_closed_text(call)):
                calls[at] = call.model_copy(update={"invalid_arguments": True, "cut_off": True})
    return calls


def _is_closed_text(call: OptionCallPayload) -> bool:
    """Return whether the arguments are text that closes a JSON object with at least one member."""
    return call.raw_arguments is not None and not call.invalid_arguments and call.arguments_json != "{}"


def without_unfinished(alternative: Alternative, shown: FinishedCalls) -> Alternative:
    """Return the alternative with its unfinished calls marked; `shown` is that of the reply, whose end may differ."""
    payloads = [message.payload for message in alternative.messages]
    shown = "unknown" if shown == "unknown" else "followed"
    if not (calls := unfinished(payloads, alternative.finish_reason, shown, {})):
        return alternative
    messages = enumerate(alternative.messages)
    marked = (each.model_copy(update={"payload": calls[at]}) if at in calls else each for at, each in messages)
    return alternative.model_copy(update={"messages": tuple(marked)})
