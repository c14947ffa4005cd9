"""Run the functions of options, and give each run a ToolContext.

    function, BoundArguments ──run, or run_in_loop──▶ Outcome: a value, or an exception

SystemExit, and the cancellation of something that the function waited for, are outcomes too. The cancellation of the
caller and KeyboardInterrupt are raised to the caller.

In an event loop, functions that are not coroutine functions run in threads of their own. These are not the threads of
`asyncio.to_thread`, which are few and also used for the lookup of host names: a slow function here delays only other
functions here. They are daemon threads, so the process can end while a function still runs.

    @sabir.option
    def pay(amount: int, context: ToolContext) -> str:
        if context.is_resume and (receipt := receipts.get(context.idempotency_key)): return receipt

An evaluation or a runner fills in a parameter of the type ToolContext, which is not shown to the model.
`ToolContext.current()` returns the same object. It is stored in a context variable, so functions that an option calls
and threads that core starts can read it too. The nesting depth of calls is a context variable as well; a runner that
runs a call in another process sends the depth along. Endless nesting raises CallsTooDeep, which does not become an
option's result.
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
Argument = TypeVar("Argument")
Returned = TypeVar("Returned")

MOST_THREADS = 512
"""The largest number of threads that `in_thread` runs at once for one event loop. Further functions wait, in order, for
a free thread.
"""


def run_in_thread(function: Callable[[], Returned]) -> "Future[Returned]":
    """Start a function in a new daemon thread, with a copy of the caller's context variables. Return a Future of its
    result.

    The Future is a `concurrent.futures.Future`. It cannot be cancelled, and raises the function's exception.
    """
    from concurrent.futures import Future  # imported only where threads run

    future: Future[Returned] = Future()
    future.set_running_or_notify_cancel()  # now the future cannot be cancelled, because the thread would run on
    context = copy_context()

    def run() -> None:
        try:
            future.set_result(context.run(function))
        except BaseException as error:
            future.set_exception(error)

    Thread(target=run, name="sabir", daemon=True).start()
    return future


_free: "WeakKeyDictionary[AbstractEventLoop, Semaphore]" = WeakKeyDictionary()
"""Event loop → how many more threads it may start now."""


async def in_thread(
    function: Callable[Parameters, Returned], *arguments: Parameters.args, **named: Parameters.kwargs
) -> Returned:
    """Run a function in a thread of its own, with the caller's context variables, and return its result.

    Waits if MOST_THREADS threads run for this event loop. If the caller is cancelled, a function that has begun runs to
    its end. A StopIteration is raised as a RuntimeError, because a future
    cannot contain it (https://docs.python.org/3/library/asyncio-future.html#asyncio.Future.set_exception).
    """
    import asyncio  # imported only where a loop runs; sync callers do not need it

    loop = asyncio.get_running_loop()
    free = _free.setdefault(loop, asyncio.Semaphore(MOST_THREADS))

    def run() -> Returned:
        try:
            return function(*arguments, **named)
        except StopIteration as error:
            raise RuntimeError(f"{getattr(function, '__name__', 'a function')} raised StopIteration") from error
        finally:
            with suppress(RuntimeError):  # the loop was closed, so no function waits for the thread
                loop.call_soon_threadsafe(free.release)

    await free.acquire()
    return await asyncio.wrap_future(run_in_thread(run))


async def call_function(function: Callable[[Argument], Returned | Awaitable[Returned]], argument: Argument) -> Returned:
    """Call a function with the argument `argument` from async code, and return its result. A coroutine function is
    awaited; any other function runs in a new thread. If that returns an awaitable, the awaitable is awaited too.
    """
    answer = function(argument) if inspect.iscoroutinefunction(function) else await in_thread(function, argument)
    return await answer if isinstance(answer, Awaitable) else answer


MOST_DEPTH = 50
"""The largest number of nested calls. So few usually do not reach Python's own limit of 1,000 frames."""

Report: TypeAlias = Callable[[float, float | None, str], None]


def _ignore_report(done: float, total: float | None, text: str) -> None:
    """Do nothing: the default of `ToolContext._report`."""


@dataclass(frozen=True)
class ToolContext:
    """The context of one run of an option's function (vendors call an option a tool).

    Add a parameter of this type to the function. Evaluations and runners fill the parameter in; the model does not see
    it. Outside of an evaluation or a runner, `Option.answer` and `sabir.answer` have no context and raise
    OptionInvalid, unless the parameter has a default. `call_id` is the id of the call; a provider may use the same id
    again in a later turn. `idempotency_key` is unique: it names this call of this reply, and stays the same when the
    call runs again. `is_resume` is True if the call may have run before, in a process that ended before the result was
    recorded. `cancelled` is a threading.Event that is set when the caller no longer waits for the result.

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
    _report: Report = field(default=_ignore_report, repr=False, compare=False)

    @classmethod
    def current(cls) -> "ToolContext":
        """Return the context of the option's function that an evaluation or a runner is running. Raises
        OutsideEvaluation if there is none.
        """
        context = _CURRENT.get()
        if context is None:
            remedy = "call it in an option that evaluate runs"
            raise OutsideEvaluation(f"this code does not run inside an option of an evaluation; {remedy}")
        return context

    @classmethod
    def __sabir_provide__(cls) -> "ToolContext":
        """Return the value for a parameter of this type: `current()`, with the same error."""
        return cls.current()

    def report(self, done: float, total: float | None = None, text: str = "") -> None:
        """Report progress to the observers of the evaluation: `done` of `total`, in units of your choice, and a text.

        `total` None means that the end is unknown. Without observers, or after `cancelled` was set, nothing happens.
        """
        if not self.cancelled.is_set():
            self._report(done, total, text)

    def entered(self) -> AbstractContextManager[None]:
        """Return a context manager that makes this the current context inside its `with` block. For runners."""
        return set_during(_CURRENT, self)


@contextmanager
def set_during(variable: ContextVar[Returned], value: Returned) -> Iterator[None]:
    """Set a context variable for the duration of the `with` block.

    A coroutine that is closed in another context, as by the garbage collector, ends the block there. Then nothing is
    reset, because the other context never had the value.
    """
    token = variable.set(value)
    try:
        yield
    finally:
        with suppress(ValueError):
            variable.reset(token)


_CURRENT: ContextVar[ToolContext | None] = ContextVar("sabir.tool_context", default=None)
_depth: ContextVar[int] = ContextVar("sabir.depth", default=0)


class CallDepth(NamedTuple):
    """The nesting depth of option and policy calls, for runners. The depth is stored in a context variable; a runner
    that runs a call in another process sends the depth along.

    `calls` is the number of calls around the running code.
    """

    calls: int

    @classmethod
    def current(cls) -> "CallDepth":
        """Return the depth of the running code."""
        return cls(_depth.get())

    def set(self) -> AbstractContextManager[None]:
        """Return a context manager that sets the call depth to this one for the duration of its `with` block."""
        return set_during(_depth, self.calls)

    @classmethod
    def one_deeper(cls, name: str) -> AbstractContextManager[None]:
        """Return a context manager that increases the depth by one inside its `with` block. Raises CallsTooDeep at once
        if the depth would exceed 50.

        `name` is the policy or option that is called, for the error.
        """
        calls = _depth.get() + 1
        if calls > MOST_DEPTH:
            remedy = "make the calls end, and do not offer an option to its own model"
            raise CallsTooDeep(f"{name!r} is nested in {MOST_DEPTH} other calls, perhaps of itself; {remedy}")
        return cls(calls).set()


class RunOutcome(NamedTuple):
    """The outcome of running a function: the returned value, or in `error` the exception that the function raised."""

    value: Any = None
    error: BaseException | None = None


_CANCELLED = RunOutcome(error=OptionFailed("CancelledError", "the option waited for something that was cancelled"))
"""The outcome of a function that waited for something that was cancelled."""


def run(function: Callable[..., Any], bound: BoundArguments) -> RunOutcome:
    """Run a function in this thread and return its outcome.

    An Exception, SystemExit or CancelledError of the function becomes an outcome. KeyboardInterrupt and any other
    exception are raised.
    """
    try:
        return RunOutcome(function(*bound.positional, **bound.named))
    except (Exception, SystemExit) as error:
        return RunOutcome(error=error)
    except BaseException as error:
        from asyncio import CancelledError  # imported already if one was raised

        if isinstance(error, CancelledError):
            return _CANCELLED
        raise


async def run_in_loop(function: Callable[..., Any], bound: BoundArguments) -> RunOutcome:
    """Run a coroutine function in this task, any other function in a new thread, and return the outcome. If the
    function returns an awaitable, this task awaits it.

    The exceptions that become an outcome are those of `run`, except that the cancellation of this task is raised.
    """
    outcome = run(function, bound) if Signature.is_asynchronous(function) else await in_thread(run, function, bound)
    return await _await_outcome(outcome.value) if inspect.isawaitable(outcome.value) else outcome


async def _await_outcome(value: Awaitable[Any]) -> RunOutcome:
    """Await what a function returned, and return the outcome. Only the cancellation of this task is raised."""
    import asyncio  # imported only where a loop runs; sync callers do not need it

    try:
        return RunOutcome(await value)
    except (Exception, SystemExit) as error:
        return RunOutcome(error=error)
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        return _CANCELLED


class RaisedError(NamedTuple):
    """The description of an exception for an option's error result. All texts can be encoded as JSON.

    `type` is the name of the exception's class, `message` its text, and `retryable` whether the same call may succeed
    later.
    """

    type: str
    message: str
    retryable: bool

    @classmethod
    def from_exception(cls, error: BaseException) -> "RaisedError":
        """Return the description of an exception. For an OptionFailed, it consists of the error's `error_type` (the
        class's name if that is empty), `error_message` and `retryable`.

        For other exceptions, the message is the exception's text, or the class's name if the text is empty. `retryable`
        is True only if the exception has an attribute `retryable` that is True.
        """
        kind = error.__class__.__name__
        if isinstance(error, OptionFailed):
            return cls(_encodable(error.error_type) or kind, _encodable(error.error_message), bool(error.retryable))
        try:
            text = str(error) or kind
        except Exception:
            text = kind
        try:
            retryable = getattr(error, "retryable", False) is True
        except Exception:
            retryable = False
        return cls(kind, _encodable(text), retryable)


def _encodable(text: str) -> str:
    """Return the text with lone surrogates escaped, so that JSON can represent it."""
    return text.encode("utf-8", "backslashreplace").decode()
