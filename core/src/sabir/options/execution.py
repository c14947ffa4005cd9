"""How one option answers one call: the same steps whether the caller awaits or waits.

    call ──bind──▶ Bound ──(function)──▶ Outcome ──finish──▶ option result
           └─ arguments refused ────────────────────────────▶ error result, the function never ran

An exception of the function becomes an error result, as do SystemExit and the cancellation of something that the
function waited for; the caller's own cancellation, interrupts and CallsTooDeep are raised to the caller. An error
before the function ran is answered by the policy `runtime`.

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
from functools import partial
from threading import Event as Signal
from threading import Thread
from typing import TYPE_CHECKING, Any, NamedTuple, ParamSpec, Protocol, TypeAlias, TypeVar
from weakref import WeakKeyDictionary

from sabir.base.errors import (
    BuilderError,
    CallsTooDeep,
    NotJSON,
    OptionFailed,
    OptionInvalid,
    OutsideEvaluation,
    one_line,
)
from sabir.base.values import FrozenDict
from sabir.options.signatures import ArgumentsRefused, Binder, Bound, Signature, bind_schema
from sabir.vocabulary.constructors import name_kind, option_result, result_fields
from sabir.vocabulary.messages import RUNTIME, Message, OptionCallPayload

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


def start_thread(function: Callable[[], Given]) -> "Future[Given]":
    """The future of a function's result; it runs in a thread of its own, in the context of its caller."""
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
    return await asyncio.wrap_future(start_thread(run))


async def called(function: Callable[[Asked], Given | Awaitable[Given]], asked: Asked) -> Given:
    """A function's result: a coroutine function is awaited, any other runs in a thread of its own."""
    answer = function(asked) if inspect.iscoroutinefunction(function) else await in_thread(function, asked)
    return await answer if isinstance(answer, Awaitable) else answer


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

    Its name was specified so: vendors call an option a tool.
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

    def entered(self) -> AbstractContextManager[None]:
        """Make this the current context within the `with` block."""
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


class Depth(NamedTuple):
    """How many calls one is within."""

    calls: int

    @classmethod
    def current(cls) -> "Depth":
        """That of what runs here."""
        return cls(_depth.get())

    def entered(self) -> AbstractContextManager[None]:
        """What runs within is within so many calls."""
        return _being(_depth, self.calls)

    @classmethod
    def deeper(cls, name: str) -> AbstractContextManager[None]:
        """What runs within is called by the policy or option of that name; CallsTooDeep beyond `MOST_DEPTH`."""
        calls = _depth.get() + 1
        if calls > MOST_DEPTH:
            remedy = "have it end, and offer no option to itself"
            raise CallsTooDeep(f"{name!r} is called within {MOST_DEPTH} other calls, perhaps by itself; {remedy}")
        return cls(calls).entered()


INVALID_ARGUMENTS = "invalid_arguments"
"""The error type of the result for a call whose arguments do not fit."""
RESULT_INVALID = "result_invalid"
"""The error type of the result for a returned value that no message can hold."""


class Runnable(Protocol):
    """The runnable half of an option; without a `binder`, the JSON schema `parameters` validates the arguments."""

    @property
    def name(self) -> str:
        """The option's name, which its calls have."""

    @property
    def function(self) -> Callable[..., Any] | None:
        """The function to run; None if there is none."""

    @property
    def binder(self) -> Binder | None:
        """The binder that validates the function's arguments."""

    @property
    def parameters(self) -> FrozenDict:
        """The JSON schema of the arguments."""


class Outcome(NamedTuple):
    """The outcome of a run: a value, or an exception."""

    value: Any = None
    error: BaseException | None = None


_CANCELLED = Outcome(error=OptionFailed("CancelledError", "the option waited for something that was cancelled"))


def answer_call_sync(option: Runnable, call: Message) -> Message:
    """Run an option for a call, in this thread; raises OptionInvalid, before it runs, if the option needs a loop."""
    function = check_runs(option, asynchronous=False)
    bound = _bind(option, call)
    if isinstance(bound, Message):
        return bound
    outcome = _run(function, bound)
    if inspect.iscoroutine(outcome.value):
        outcome.value.close()
        raise OptionInvalid(_await_instead(option.name))
    return _finish(call, outcome)


async def answer_call(option: Runnable, call: Message) -> Message:
    """Run an option for a call: a coroutine function here, any other function in a thread of its own."""
    function = check_runs(option, asynchronous=True)
    bound = _bind(option, call)
    if isinstance(bound, Message):
        return bound
    outcome = _run(function, bound) if Signature.is_asynchronous(function) else await in_thread(_run, function, bound)
    if inspect.isawaitable(outcome.value):
        outcome = await _settle(outcome.value)
    return _finish(call, outcome)


def _run(function: Callable[..., Any], bound: Bound) -> Outcome:
    """Run the function; an exception is an outcome too. A CancelledError of a plain function is not the caller's."""
    try:
        return Outcome(function(*bound.positional, **bound.named))
    except (Exception, SystemExit) as error:
        return Outcome(error=error)
    except BaseException as error:
        from asyncio import CancelledError  # imported already if one was raised

        if isinstance(error, CancelledError):
            return _CANCELLED
        raise


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


def check_runs(option: Runnable, *, asynchronous: bool) -> Callable[..., Any]:
    """An option's function; raises OptionInvalid if it has none, or one that cannot run without a loop."""
    if option.function is None:
        remedy = "answer its calls yourself: OptionResultBuilder.response_to(call).success(…)"
        raise OptionInvalid(f"option {option.name!r} has no function to run; {remedy}")
    if not asynchronous and Signature.is_asynchronous(option.function):
        raise OptionInvalid(_await_instead(option.name))
    return option.function


def _await_instead(name: str) -> str:
    return f"option {name!r} is asynchronous; use `await option.answer(call)` or `await sabir.answer(reply, options)`"


def _bind(option: Runnable, call: object) -> Bound | Message:
    """Return the function's arguments for a call, or an error result if they do not fit or were cut off."""
    if not isinstance(call, Message) or call.call is None:
        answers = f"option {option.name!r} answers option calls, not {name_kind(call)}"
        raise OptionInvalid(f"{answers}; see reply.option_calls")
    payload = call.call
    if payload.option_name != option.name:
        raise OptionInvalid(f"option {option.name!r} was given a call of {payload.option_name!r}; use sabir.answer")
    if payload.invalid_arguments:
        return error_result(call, INVALID_ARGUMENTS, _describe_invalid(payload), policy=RUNTIME)
    try:
        binder = option.binder or partial(bind_schema, option.parameters)
        return binder(payload.arguments_json)
    except ArgumentsRefused as error:
        return error_result(call, INVALID_ARGUMENTS, str(error), policy=RUNTIME)


def _describe_invalid(payload: OptionCallPayload) -> str:
    """Return the error text for a call with `invalid_arguments`, with the remedy for the model and its user."""
    if payload.cut_off:
        arrived = one_line(payload.unreadable_arguments or payload.arguments_json, 100)
        remedy = "call it again with shorter arguments, or have max_output_tokens raised"
        return f"the call was cut off before its arguments were complete, so it was not run; {remedy} ({arrived!r})"
    return f"the arguments are no JSON object: {one_line(payload.raw_arguments or '', 100)!r}"


def _finish(call: Message, outcome: Outcome) -> Message:
    error = outcome.error
    if isinstance(error, CallsTooDeep):
        raise error
    if error is None:
        try:
            return option_result(call, result_fields(outcome.value))
        except (BuilderError, NotJSON) as refused:
            return error_result(call, RESULT_INVALID, str(refused))
    said = RaisedError.of(error)
    if not isinstance(error, OptionFailed):  # the model reads one line of it; only the log has the traceback
        logger.warning("option %r raised %s", call.call and call.call.option_name, said.type, exc_info=error)
    return error_result(call, said.type, said.message, retryable=said.retryable)


def error_result(
    call: Message, error_type: str, text: str, *, policy: str | None = None, retryable: bool = False
) -> Message:
    """An error result for a call, its text in one line; its policy is `policy`, or else the option's name."""
    failure = {"is_error": True, "error_type": error_type, "error_message": one_line(text), "retryable": retryable}
    return option_result(call, failure, policy=policy)


class RaisedError(NamedTuple):
    """What an exception says, as the error result of an option has it: text that JSON can hold."""

    type: str
    message: str
    retryable: bool

    @classmethod
    def of(cls, error: BaseException) -> "RaisedError":
        """Its class and words, and whether it says that the same may succeed later; OptionFailed says all itself."""
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
