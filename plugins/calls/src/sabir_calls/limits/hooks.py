"""Hooks that report the attempts of a call to its slot: each retry is one more request, the headers of a response may
report how much is left, and after a failure the provider may report when to try again.

    slot of the call ──context variable──▶ hooks of the call, which run in the same task or thread
"""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from contextvars import ContextVar

from sabir import CallError, Rendering, hookimpl
from sabir.authoring import set_during

from sabir_calls.limits.limit import Slot

_slots: ContextVar[tuple[Slot, ...]] = ContextVar("sabir_calls_slots", default=())


def calling_in(slot: Slot) -> AbstractContextManager[None]:
    """Return a context manager: report the attempts of calls in the `with` block to `slot`, and to the slots of
    enclosing blocks.
    """
    return set_during(_slots, (*_slots.get(), slot))


@hookimpl
def sabir_call_started(rendering: Rendering, attempt: int) -> None:
    """Count a retry, which is sent without waiting for the limit."""
    if attempt > 1:
        for slot in _slots.get():
            slot.retry()


@hookimpl
def sabir_call_answered(rendering: Rendering, headers: Mapping[str, str]) -> None:
    """Read from the headers of a response how much the provider still accepts."""
    for slot in _slots.get():
        slot.learn(headers)


@hookimpl
def sabir_call_failed(rendering: Rendering, error: CallError) -> None:
    """If the provider reported when to try again, let no request that waits for the limit start before that time."""
    for slot in _slots.get():
        slot.fail(error)
