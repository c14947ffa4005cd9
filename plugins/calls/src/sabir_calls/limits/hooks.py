"""What the limit learns of the attempts inside one call: a failed attempt may tell when to try again, and each retry is
one more request.

    slot of the call ──context variable──▶ hooks of the call, which run in the same task or thread
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from sabir import CallError, Rendering, hookimpl

from sabir_calls.limits.limit import Slot

_slots: ContextVar[tuple[Slot, ...]] = ContextVar("sabir_calls_slots", default=())


@contextmanager
def calling_in(slot: Slot) -> Iterator[None]:
    """Report the attempts of calls in the `with` block to `slot`, too."""
    token = _slots.set((*_slots.get(), slot))
    try:
        yield
    finally:
        _slots.reset(token)


@hookimpl
def sabir_call_started(rendering: Rendering, attempt: int) -> None:
    """Count a retry, which is sent without waiting for the limit."""
    if attempt > 1:
        for slot in _slots.get():
            slot.retry()


@hookimpl
def sabir_call_failed(rendering: Rendering, error: CallError) -> None:
    """Pause everybody who shares the limit, if the provider reported when to try again."""
    for slot in _slots.get():
        slot.fail(error)
