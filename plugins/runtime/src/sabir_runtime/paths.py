"""Names of bound calls that stay the same when a run is repeated.

    run ─ 0:plan ─┬─ 0:llm
                  ├─ 1:llm ─ [call-7] ─ 0:search        the answer of an option call: a lane of its call's id
                  ├─ ~0 ─ 0:search                      tasks of its own: a lane each, in the order in which
                  └─ ~1 ─ 0:search · 1:search           they first call

An index is taken when `ctx.search(…)` is called, before anything is awaited; so concurrent branches get the same names
however long each of their calls takes. Only runners that keep records use these names.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary


@dataclass(slots=True)
class Lane:
    """Counts the calls of one task."""

    path: str
    task: "asyncio.Task[object] | None"
    calls: int = 0
    children: int = 0
    lanes: "WeakKeyDictionary[asyncio.Task[object], Lane]" = field(default_factory=WeakKeyDictionary)

    def of_task(self, task: "asyncio.Task[object] | None") -> "Lane":
        """The lane of a task: this one, or a lane below it for a task that was started in it."""
        if task is None or task is self.task:
            return self
        if task not in self.lanes:
            self.lanes[task] = Lane(f"{self.path}/~{self.children}", task)
            self.children += 1
        return self.lanes[task]


_lane: ContextVar[Lane | None] = ContextVar("sabir_runtime.lane", default=None)


def is_entered() -> bool:
    """Whether there is a current lane."""
    return _lane.get() is not None


def next_path(name: str) -> str:
    """The path of the next bound call of that name; the first path of a run if no lane was entered."""
    lane = _lane.get()
    if lane is None:
        return f"0:{name}"
    mine = lane.of_task(_task())
    index, mine.calls = mine.calls, mine.calls + 1
    return f"{mine.path}/{index}:{name}"


@contextmanager
def enter(path: str) -> Iterator[None]:
    """Count the calls within as those of the call at this path."""
    token = _lane.set(Lane(path, _task()))
    try:
        yield
    finally:
        _lane.reset(token)


@contextmanager
def branch(name: str) -> Iterator[str]:
    """Count the calls within in a lane of this name; yields its path.

    For tasks of a policy that wait for something else before their first call: the order of their calls then varies,
    and each needs its own name.
    """
    lane = _lane.get()
    path = f"{lane.of_task(_task()).path}/[{name}]" if lane else f"[{name}]"
    with enter(path):
        yield path


def _task() -> "asyncio.Task[object] | None":
    try:
        return asyncio.current_task()
    except RuntimeError:  # outside of an event loop
        return None
