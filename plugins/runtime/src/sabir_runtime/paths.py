"""Paths of bound calls within a run. A repeated run usually gives each call the same path.

    run ─ 0:plan ─┬─ 0:llm
                  ├─ 1:llm ─ [call-7] ─ 0:search        calls of an option: a lane named after the option call's id
                  ├─ ~0 ─ 0:search                      calls of other asyncio tasks: a lane for each, numbered
                  └─ ~1 ─ 0:search · 1:search           by the order of the tasks' first calls

A lane is a part of a run, with a path of its own, in which calls are numbered from 0. A call gets its number when
`ctx.search(…)` is called, before the call is awaited. Calls that one task awaits together therefore get the same paths
however long each call takes. Only runners that store calls use these paths.
"""

import asyncio
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

from sabir.authoring import set_during


@dataclass(slots=True)
class Lane:
    """A path in a run, below which the calls of one asyncio task are numbered from 0."""

    path: str
    task: "asyncio.Task[object] | None"
    calls: int = 0
    children: int = 0
    lanes: "WeakKeyDictionary[asyncio.Task[object], Lane]" = field(default_factory=WeakKeyDictionary)

    def of_task(self, task: "asyncio.Task[object] | None") -> "Lane":
        """Return this lane for its own task and for None, else the task's lane below this lane, created if needed."""
        if task is None or task is self.task:
            return self
        if task not in self.lanes:
            self.lanes[task] = Lane(f"{self.path}/~{self.children}", task)
            self.children += 1
        return self.lanes[task]


_lane: ContextVar[Lane | None] = ContextVar("sabir_runtime.lane", default=None)


def is_entered() -> bool:
    """Return whether calls get numbered paths here: in a run of a runner that stores calls, or in `branch`."""
    return _lane.get() is not None


def next_path(name: str) -> str:
    """Return the path of the next bound call of this name, and count the call. Without a lane, return `0:name`."""
    lane = _lane.get()
    if lane is None:
        return f"0:{name}"
    task_lane = lane.of_task(_current_task())
    index, task_lane.calls = task_lane.calls, task_lane.calls + 1
    return f"{task_lane.path}/{index}:{name}"


def enter(path: str) -> AbstractContextManager[None]:
    """Number the calls that are made in the `with` block from 0, with paths below `path`."""
    return set_during(_lane, Lane(path, _current_task()))


@contextmanager
def branch(name: str) -> Iterator[str]:
    """Give the bound calls in the `with` block paths below `[name]`, numbered from 0. Yields the path of the branch.

    Use `branch` inside each asyncio task that a policy starts, if a task awaits something else before its first bound
    call. Otherwise tasks are numbered by the order of their first bound calls, which may vary, so that a repeated
    durable run does not find its stored calls. Give each branch a different name.

    >>> from sabir_runtime import branch
    >>> with branch("left") as path:
    ...     print(path)
    [left]
    """
    lane = _lane.get()
    path = f"{lane.of_task(_current_task()).path}/[{name}]" if lane else f"[{name}]"
    with enter(path):
        yield path


def _current_task() -> "asyncio.Task[object] | None":
    try:
        return asyncio.current_task()
    except RuntimeError:  # outside of an event loop
        return None
