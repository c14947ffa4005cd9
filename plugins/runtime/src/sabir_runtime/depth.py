"""How deep policies and evaluations call each other: what would never end, ends at a depth.

    ctx.plan(…) ─▶ ctx.search(…)               a policy that a policy calls is one deeper
    a chosen option ─▶ its policy, or whatever evaluation its function makes      so is what answers a call

The depth is a context variable: tasks and threads have that of whoever starts them, and a runner that performs calls
elsewhere sends it along.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from sabir import Message

from sabir_runtime.errors import CallsTooDeep

MOST_DEPTH = 50
"""So many calls may be within each other; Python's own limit (1,000 frames) lies beyond that."""

_depth: ContextVar[int] = ContextVar("sabir_runtime.depth", default=0)


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
def deeper(name: str) -> Iterator[None]:
    """What runs within is called by the policy or option of that name; CallsTooDeep beyond `MOST_DEPTH`."""
    depth = _depth.get() + 1
    if depth > MOST_DEPTH:
        remedy = "have it end, and offer no option to itself"
        raise CallsTooDeep(f"{name!r} is called within {MOST_DEPTH} other calls, perhaps by itself; {remedy}")
    with at(depth):
        yield


def checked(result: Message) -> Message:
    """The result of an option; CallsTooDeep where it failed of that, wherever it ran."""
    found = result.result
    if found is not None and found.error_type == CallsTooDeep.__name__:
        raise CallsTooDeep(found.error_message or "")
    return result
