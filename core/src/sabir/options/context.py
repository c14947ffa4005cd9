"""The context of an option's run, which the option may read and report to; and how deep calls are nested.

    @sabir.option
    def pay(amount: int, context: ToolContext) -> str:
        if context.is_resume and (receipt := receipts.get(context.idempotency_key)): return receipt

A parameter of this type is filled in where the option runs, and is not shown to the model. `ToolContext.current()`
gives the same: it is a context variable, so functions that an option calls find it too, as do threads that core starts.

    ctx.plan(…) ─▶ ctx.search(…)               a policy that a policy calls is one deeper
    a chosen option ─▶ its policy, or an evaluation that its function runs        so is the run that answers a call

The depth is a context variable too, and a runner that performs calls elsewhere sends it along. Endless nesting ends at
a depth, by an error that does not become an option's result.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from threading import Event as Signal
from typing import NamedTuple, TypeAlias

from sabir.base.errors import CallsTooDeep, OutsideEvaluation

MOST_DEPTH = 50
"""The most calls that may be nested in each other; Python's own limit (1,000 frames) lies beyond that."""

Report: TypeAlias = Callable[[float, float | None, str], None]


def _unheard(done: float, total: float | None, text: str) -> None:
    """The report that does nothing."""


@dataclass(frozen=True)
class ToolContext:
    """The run of one option for one call.

    `call_id` is the call's invocation id; a provider may use the same id again in a later turn. `idempotency_key` is
    unique: it names this call of this reply, and stays the same when the call runs again. `is_resume` says that the
    call may have run before, in a process that ended before its result was recorded. `cancelled` is set when the
    caller no longer waits for the result; options in threads may check it or wait for it.
    """

    call_id: str
    is_resume: bool = False
    idempotency_key: str = ""
    cancelled: Signal = field(default_factory=Signal, compare=False)
    _report: Report = field(default=_unheard, repr=False, compare=False)

    @classmethod
    def current(cls) -> "ToolContext":
        """The context of the option that runs here; raises OutsideEvaluation if none does."""
        found = _CURRENT.get()
        if found is None:
            raise OutsideEvaluation("no option of an evaluation runs here; ask inside of an option that evaluate runs")
        return found

    @classmethod
    def __sabir_provide__(cls) -> "ToolContext":
        """The value that core fills in for a parameter of this type; raises OutsideEvaluation if no option runs."""
        return cls.current()

    def report(self, done: float, total: float | None = None, text: str = "") -> None:
        """Report to the watcher of the evaluation how far this run is: `done` of `total`, in the option's own units."""
        if not self.cancelled.is_set():
            self._report(done, total, text)

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Make this the current context within the `with` block."""
        token = _CURRENT.set(self)
        try:
            yield
        finally:
            _CURRENT.reset(token)


_CURRENT: ContextVar[ToolContext | None] = ContextVar("sabir.tool_context", default=None)
_depth: ContextVar[int] = ContextVar("sabir.depth", default=0)


class Depth(NamedTuple):
    """How many calls one is within."""

    calls: int

    @classmethod
    def current(cls) -> "Depth":
        """That of what runs here."""
        return cls(_depth.get())

    @contextmanager
    def entered(self) -> Iterator[None]:
        """What runs within is within so many calls."""
        token = _depth.set(self.calls)
        try:
            yield
        finally:
            _depth.reset(token)

    @classmethod
    @contextmanager
    def deeper(cls, name: str) -> Iterator[None]:
        """What runs within is called by the policy or option of that name; CallsTooDeep beyond `MOST_DEPTH`."""
        calls = _depth.get() + 1
        if calls > MOST_DEPTH:
            remedy = "have it end, and offer no option to itself"
            raise CallsTooDeep(f"{name!r} is called within {MOST_DEPTH} other calls, perhaps by itself; {remedy}")
        with cls(calls).entered():
            yield
