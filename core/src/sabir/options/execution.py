"""Run the functions of options, and give each run a ToolContext.

    function, BoundArguments ──run, or run_in_loop──▶ Outcome: a value, or an exception

SystemExit, and the cancellation of something that the function waited for, are outcomes too. The caller's own
cancellation and interrupts are raised to the caller.

Functions that wait run in threads: options that are no coroutine functions, and functions that ask people. They are
not the threads of `asyncio.to_thread`, which are few and shared with name look-ups: a function that waits here delays
only functions that are queued here. They are daemon threads: the process ends even if a function does not.

    @sabir.option
    def pay(amount: int, context: ToolContext) -> str:
        if context.is_resume and (receipt := receipts.get(context.idempotency_key)): return receipt

A parameter of the type ToolContext is filled in where the option runs, and is not shown to the model.
`ToolContext.current()` gives the same: it is a context variable, so functions that an option calls find it too, as do
threads that core starts. How deep calls are nested is a context variable as well; a runner that performs calls
elsewhere sends it along. Endless nesting ends at a depth, by an error that does not become an option's result.
"""

import inspect
import logging
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from contextvars import ContextVar, copy_context
from dataclasses import dataclass, field
from threading import Event as Signal
from threading import Thread
from typing import TYPE_CHECKING, Any, NamedTuple, ParamSpec, TypeAlias, TypeVar
from weakref import WeakKeyDictionary

from sabir.base.errors import CallsTooDeep, OptionFailed, OutsideEvaluation
from sabir.options.signatures import BoundArguments, Signature

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, Semaphore
    from concurrent.futures import Future


logger = logging.getLogger("sabir")
logger.addHandler(logging.NullHandler())
Parameters = ParamSpec("Parameters")
Asked = TypeVar("Asked")
Given = TypeVar("Given")

MOST_THREADS = 512
"""The most threads that run at once for one event loop; further functions wait, in order, until one has ended."""


def run_in_thread(function: Callable[[], Given]) -> "Future[Given]":
    """Start a function in a new daemon thread, with the context variables of the caller. Return a Future of its result.

    The Future is a `concurrent.futures.Future` and cannot be cancelled.
    """
    from concurrent.futures import Future  # imported only where threads run

    future: Future[Given] = Future()
    future.set_running_or_notify_cancel()  # it cannot be cancelled: the thread runs on
    context = copy_context()

    def run() -> None:
        try:
            future.set_result(context.run(function))
        except BaseException as error:
            future.set_exception(error)

    Thread(target=run, name="sabir", daemon=True).start()
    return future


_free: "WeakKeyDictionary[AbstractEventLoop, Semaphore]" = WeakKeyDictionary()
"""How many more threads each loop may start."""


async def in_thread(
    function: Callable[Parameters, Given], *arguments: Parameters.args, **named: Parameters.kwargs
) -> Given:
    """A function's result, run in a thread of its own and in the context of its caller.

    A StopIteration arrives as a RuntimeError: no future can hold it, and the caller would wait for ever
    (https://docs.python.org/3/library/asyncio-future.html#asyncio.Future.set_exception).
    """
    import asyncio  # imported only where a loop runs; waiting callers do not need it

    loop = asyncio.get_running_loop()
    free = _free.setdefault(loop, asyncio.Semaphore(MOST_THREADS))

    def run() -> Given:
        try:
            return function(*arguments, **named)
        except StopIteration as error:
            raise RuntimeError(f"{getattr(function, '__name__', 'a function')} raised StopIteration") from error
        finally:
            with suppress(RuntimeError):  # the loop was closed, so no function waits for the thread
                loop.call_soon_threadsafe(free.release)

    await free.acquire()
    return await asyncio.wrap_future(run_in_thread(run))


async def call_function(function: Callable[[Asked], Given | Awaitable[Given]], asked: Asked) -> Given:
    """Call a function with one argument, from async code, and return its result. A coroutine function is awaited; any
    other function runs in a new thread.
    """
    answer = function(asked) if inspect.iscoroutinefunction(function) else await in_thread(function, asked)
    return await answer if isinstance(answer, Awaitable) else answer


MOST_DEPTH = 50
"""The most calls that may be nested in each other; Python's own limit (1,000 frames) lies beyond that."""

Report: TypeAlias = Callable[[float, float | None, str], None]


def _unheard(done: float, total: float | None, text: str) -> None:
    """The report that does nothing."""


@dataclass(frozen=True)
class ToolContext:
    """The context of one run of an option's function (vendors call an option a tool).

    Add a parameter of this type to the function: sabir fills the parameter in and hides it from the model. `call_id` is
    the id of the call; a provider may use the same id again in a later turn. `idempotency_key` is unique: it names this
    call of this reply, and stays the same when the call runs again. `is_resume` is True if the call may have run
    before, in a process that ended before the result was recorded. `cancelled` is a threading.Event that is set when
    the caller no longer waits for the result.

    >>> import sabir
    >>> @sabir.option
    ... def pay(amount: int, context: sabir.ToolContext) -> str:
    ...     return f"paid {amount} once, as {context.idempotency_key}"
    >>> list(pay.parameters["properties"])
    ['amount']
    """

    call_id: str
    is_resume: bool = False
    idempotency_key: str = ""
    cancelled: Signal = field(default_factory=Signal, compare=False)
    _report: Report = field(default=_unheard, repr=False, compare=False)

    @classmethod
    def current(cls) -> "ToolContext":
        """Return the context of the option's function that is running. Raises OutsideEvaluation outside of such a
        function.
        """
        found = _CURRENT.get()
        if found is None:
            raise OutsideEvaluation(
                "this code does not run inside an option of an evaluation; call it in an option that evaluate runs"
            )
        return found

    @classmethod
    def __sabir_provide__(cls) -> "ToolContext":
        """Return the value for a parameter of this type. Raises OutsideEvaluation if no option's function is
        running.
        """
        return cls.current()

    def report(self, done: float, total: float | None = None, text: str = "") -> None:
        """Report progress to the observer of the evaluation: `done` of `total`, in units of your choice, and a text.

        `total` None means that the end is unknown. After `cancelled` is set, nothing is reported.
        """
        if not self.cancelled.is_set():
            self._report(done, total, text)

    def entered(self) -> AbstractContextManager[None]:
        """Return a context manager that makes this the current context within its `with` block."""
        return _being(_CURRENT, self)


@contextmanager
def _being(variable: ContextVar[Given], value: Given) -> Iterator[None]:
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)


_CURRENT: ContextVar[ToolContext | None] = ContextVar("sabir.tool_context", default=None)
_depth: ContextVar[int] = ContextVar("sabir.depth", default=0)


class CallDepth(NamedTuple):
    """The nesting depth of option and policy calls. The depth is stored in a context variable; runners that run a call
    elsewhere send it along.

    `calls` is the number of calls around the running code.
    """

    calls: int

    @classmethod
    def current(cls) -> "CallDepth":
        """Return the depth of the running code."""
        return cls(_depth.get())

    def set(self) -> AbstractContextManager[None]:
        """Set the call depth for the duration of the `with` block."""
        return _being(_depth, self.calls)

    @classmethod
    def one_deeper(cls, name: str) -> AbstractContextManager[None]:
        """Return a context manager that increases the depth by one in its `with` block. Raises CallsTooDeep if the
        depth exceeds 50.

        `name` is the policy or option that is called, for the error.
        """
        calls = _depth.get() + 1
        if calls > MOST_DEPTH:
            remedy = "make the calls end, and do not offer an option to its own model"
            raise CallsTooDeep(f"{name!r} is nested in {MOST_DEPTH} other calls, perhaps of itself; {remedy}")
        return cls(calls).set()


class Outcome(NamedTuple):
    """The outcome of a run: a value, or an exception."""

    value: Any = None
    error: BaseException | None = None


_CANCELLED = Outcome(error=OptionFailed("CancelledError", "the option waited for something that was cancelled"))


def run(function: Callable[..., Any], bound: BoundArguments) -> Outcome:
    """Run a function in this thread. A CancelledError that a plain function raises is not the caller's own."""
    try:
        return Outcome(function(*bound.positional, **bound.named))
    except (Exception, SystemExit) as error:
        return Outcome(error=error)
    except BaseException as error:
        from asyncio import CancelledError  # imported already if one was raised

        if isinstance(error, CancelledError):
            return _CANCELLED
        raise


async def run_in_loop(function: Callable[..., Any], bound: BoundArguments) -> Outcome:
    """Run a coroutine function here and any other function in a new thread; await a value that is awaitable."""
    outcome = run(function, bound) if Signature.is_asynchronous(function) else await in_thread(run, function, bound)
    return await _settle(outcome.value) if inspect.isawaitable(outcome.value) else outcome


async def _settle(value: Awaitable[Any]) -> Outcome:
    import asyncio  # imported only where a loop runs; waiting callers do not need it

    try:
        return Outcome(await value)
    except (Exception, SystemExit) as error:
        return Outcome(error=error)
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        return _CANCELLED


class RaisedError(NamedTuple):
    """An exception, described by the fields of an option's error result. All texts can be encoded as JSON.

    `type` is the name of the exception's class, `message` its text, and `retryable` whether the same call may succeed
    later.
    """

    type: str
    message: str
    retryable: bool

    @classmethod
    def from_exception(cls, error: BaseException) -> "RaisedError":
        """Describe an exception. An OptionFailed gives its own `error_type`, `error_message` and `retryable`.

        For other exceptions, `retryable` is True only if the exception has an attribute `retryable` that is True.
        """
        kind = error.__class__.__name__
        if isinstance(error, OptionFailed):
            return cls(_written(error.error_type) or kind, _written(error.error_message), bool(error.retryable))
        try:
            text = str(error) or kind
        except Exception:
            text = kind
        try:
            retryable = getattr(error, "retryable", False) is True
        except Exception:
            retryable = False
        return cls(kind, _written(text), retryable)


def _written(text: str) -> str:
    """The text with lone surrogates escaped, so that JSON can hold it."""
    return text.encode("utf-8", "backslashreplace").decode()
