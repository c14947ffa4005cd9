"""How one option answers one call: the same steps whether the caller awaits or waits.

    call ──bind──▶ Bound ──(function)──▶ Outcome ──finish──▶ option result
           └─ arguments refused ────────────────────────────▶ error result, the function never ran

An exception of the function becomes an error result, as do SystemExit and the cancellation of something that the
function waited for; the caller's own cancellation, interrupts and CallsTooDeep are raised to the caller. An error
before the function ran is answered by the policy `runtime`.
"""

import inspect
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, NamedTuple, Protocol

from sabir.base.errors import BuilderError, CallsTooDeep, NotJSON, OptionFailed, OptionInvalid, one_line
from sabir.base.values import FrozenDict
from sabir.options.arguments import ArgumentsRefused, Binder, Bound, bind_schema
from sabir.options.signatures import Signature
from sabir.options.threads import in_thread
from sabir.vocabulary.constructors import name_kind, option_result, result_fields
from sabir.vocabulary.messages import RUNTIME, Message

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
    """The function's arguments for a call; an error result if the arguments do not fit."""
    if not isinstance(call, Message) or call.call is None:
        answers = f"option {option.name!r} answers option calls, not {name_kind(call)}"
        raise OptionInvalid(f"{answers}; see reply.option_calls")
    payload = call.call
    if payload.option_name != option.name:
        raise OptionInvalid(f"option {option.name!r} was given a call of {payload.option_name!r}; use sabir.answer")
    if payload.invalid_arguments:
        text = one_line(payload.raw_arguments or "", 100)
        return error_result(call, INVALID_ARGUMENTS, f"the arguments are no JSON object: {text!r}", policy=RUNTIME)
    try:
        binder = option.binder or partial(bind_schema, option.parameters)
        return binder(payload.arguments_json)
    except ArgumentsRefused as error:
        return error_result(call, INVALID_ARGUMENTS, str(error), policy=RUNTIME)


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
