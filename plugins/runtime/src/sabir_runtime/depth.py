"""How deep policies and evaluations call each other: what would never end, ends at a depth.

    ctx.plan(…) ─▶ ctx.search(…)               a policy that a policy calls is one deeper
    a chosen option ─▶ its policy, or whatever evaluation its function makes      so is what answers a call

The depth is a context variable: tasks and threads have that of whoever starts them, and a runner that performs calls
elsewhere sends it along. So is the list in which the fault is noted: the result of an option holds the fault's name and
words alone, and an option's own error may have that name too.
"""

from collections.abc import Awaitable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

from sabir import Message

from sabir_runtime.errors import CallsTooDeep

MOST_DEPTH = 50
"""So many calls may be within each other; Python's own limit (1,000 frames) lies beyond that."""

Given = TypeVar("Given")

_depth: ContextVar[int] = ContextVar("sabir_runtime.depth", default=0)
_met: ContextVar[list[CallsTooDeep] | None] = ContextVar("sabir_runtime.depth.met", default=None)


def current() -> int:
    """How many calls this one is within."""
    return _depth.get()


@contextmanager
def at(depth: int) -> Iterator[None]:
    """What runs within is within so many calls."""
    token = _depth.set(depth)
    try:
        yield
    finally:
        _depth.reset(token)


@contextmanager
def deeper(name: str) -> Iterator[list[CallsTooDeep]]:
    """What runs within is called by the policy or option of that name; CallsTooDeep beyond `MOST_DEPTH`.

    Gives the list in which that fault is noted where it is met within.
    """
    depth = _depth.get() + 1
    if depth > MOST_DEPTH:
        remedy = "have it end, and offer no option to itself"
        raise _noted(CallsTooDeep(f"{name!r} is called within {MOST_DEPTH} other calls, perhaps by itself; {remedy}"))
    met: list[CallsTooDeep] = []
    token = _met.set(met)
    try:
        with at(depth):
            yield met
    finally:
        _met.reset(token)


def checked(result: Message, met: list[CallsTooDeep]) -> Message:
    """The result of an option; CallsTooDeep where it failed of that, which was met while it ran."""
    found = result.result
    if met and found is not None and found.error_type == CallsTooDeep.__name__:
        raise _noted(CallsTooDeep(found.error_message or ""))
    return result


async def heard(performed: Awaitable[Given]) -> Given:
    """What a call gives; CallsTooDeep is noted here, wherever it was met: a runner may perform calls elsewhere."""
    try:
        return await performed
    except CallsTooDeep as fault:
        _noted(fault)
        raise


def _noted(fault: CallsTooDeep) -> CallsTooDeep:
    met = _met.get()
    if met is not None:
        met.append(fault)
    return fault
