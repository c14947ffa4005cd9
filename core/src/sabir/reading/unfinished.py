"""Law 12, nothing runs half-finished: a call is runnable only if its arguments are known to be finished.

    the reply ended by itself                                       every call is finished
    the wire marked the call (`is_finished`)                        the mark decides, however the reply ended
    the wire sends one block after another, and another one follows the call is finished
    the arguments came as text that closes a JSON object with members   the call is finished
    anything else                                                   the call is unfinished

Empty arguments prove nothing: a call that was cut before its first argument looks like a call without arguments.
An object that the vendor parsed proves nothing either: Anthropic sends the members that were complete when the reply
was cut. An unfinished call becomes `invalid_arguments` and `cut_off`; answering it gives an error result.
"""

from collections.abc import Iterable, Mapping, Sequence

from sabir.vocabulary.messages import OptionCallPayload
from sabir.vocabulary.reply import Alternative, FinishedCalls, FinishReason

ENDED_BY_ITSELF: frozenset[FinishReason] = frozenset({"stop", "option_calls", "native_calls"})
"""Finish reasons of replies that the model ended itself; after any other, the last block may be unfinished."""
_CUT_OFF: Mapping[str, bool] = {"invalid_arguments": True, "cut_off": True}


def unfinished(
    payloads: Sequence[object],
    finish_reason: FinishReason,
    finished_calls: FinishedCalls = "unknown",
    marks: Mapping[int, bool] | None = None,
) -> dict[int, OptionCallPayload]:
    """Return the unfinished calls among the payloads of a reply, by position, each as a call that was cut off.

    `marks` maps the position of a call to the wire's own mark: True for finished, False for unfinished.
    """
    marks = marks or {}
    if finish_reason in ENDED_BY_ITSELF and not marks:
        return {}
    last = len(payloads) - 1
    calls = {at: payload for at, payload in enumerate(payloads) if isinstance(payload, OptionCallPayload)}
    finished = {
        at: finish_reason in ENDED_BY_ITSELF
        or finished_calls == "all"
        or (finished_calls == "followed" and at < last)
        or _is_closed_text(call)
        for at, call in calls.items()
    }
    return {at: call.model_copy(update=_CUT_OFF) for at, call in calls.items() if not marks.get(at, finished[at])}


def _is_closed_text(call: OptionCallPayload) -> bool:
    """Return whether the arguments are text that closes a JSON object with at least one member."""
    return call.raw_arguments is not None and not call.invalid_arguments and call.arguments_json != "{}"


def without_unfinished(alternatives: Iterable[Alternative], finished_calls: FinishedCalls) -> tuple[Alternative, ...]:
    """Return the alternatives with their unfinished calls marked; each has its own finish reason and no marks."""
    order: FinishedCalls = "unknown" if finished_calls == "unknown" else "followed"
    return tuple(_with_marked_calls(each, order) for each in alternatives)


def _with_marked_calls(alternative: Alternative, finished_calls: FinishedCalls) -> Alternative:
    messages = list(alternative.messages)
    payloads = [message.payload for message in messages]
    for at, call in unfinished(payloads, alternative.finish_reason, finished_calls).items():
        messages[at] = messages[at].model_copy(update={"payload": call})
    return alternative.model_copy(update={"messages": tuple(messages)})
