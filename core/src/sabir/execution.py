"""How one option answers one call: the same steps whether a caller awaits or not.

    call ──prepare──▶ Run ──(function)──▶ Outcome ──finish──▶ option result
           └─ arguments refused ─────────────────────────────▶ error result, the function never ran (PJ-34)

An exception of the function becomes an error result; the caller's cancellation and interrupts go on to the caller.
"""

import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from sabir.arguments import ArgumentsRefused, Bound, bind_schema
from sabir.errors import BuilderError, OptionFailed, OptionInvalid, one_line
from sabir.messages import Message, OptionCallPayload
from sabir.results import name_kind
from sabir.signatures import is_asynchronous

if TYPE_CHECKING:
    from sabir.options import Option

INVALID_ARGUMENTS = "invalid_arguments"
"""The error type of a call whose arguments do not fit."""
RESULT_INVALID = "result_invalid"
"""The error type of a result that no message can hold."""


@dataclass(frozen=True, slots=True)
class Run:
    """A function with its validated arguments."""

    function: Callable[..., Any]
    bound: Bound

    def __call__(self) -> "Outcome":
        """Run it; an exception is an outcome too."""
        try:
            return Outcome(self.function(*self.bound.positional, **self.bound.named))
        except Exception as error:
            return Outcome(error=error)


class Outcome(NamedTuple):
    """What came of a run: a value, or an exception."""

    value: Any = None
    error: Exception | None = None


def answer_call_sync(option: "Option", call: Message) -> Message:
    """Run an option for a call, in this thread. OptionInvalid, before anything runs, where it needs a loop."""
    check_runs(option, asynchronous=False)
    prepared = _prepare(option, call)
    if isinstance(prepared, Message):
        return prepared
    outcome = prepared()
    if inspect.iscoroutine(outcome.value):
        outcome.value.close()
        raise OptionInvalid(_await_instead(option.name))
    return _finish(call, outcome)


async def answer_call(option: "Option", call: Message) -> Message:
    """Run an option for a call: a coroutine function here, any other function in a thread of its own."""
    check_runs(option, asynchronous=True)
    prepared = _prepare(option, call)
    if isinstance(prepared, Message):
        return prepared
    outcome = prepared() if is_asynchronous(prepared.function) else await _in_thread(prepared)
    if inspect.isawaitable(outcome.value):
        outcome = await _settle(outcome.value)
    return _finish(call, outcome)


async def _in_thread(prepared: Callable[[], Outcome]) -> Outcome:
    import asyncio  # loaded where a loop runs; those who wait need none of it

    return await asyncio.to_thread(prepared)


async def _settle(value: Awaitable[Any]) -> Outcome:
    import asyncio

    try:
        return Outcome(await value)
    except Exception as error:
        return Outcome(error=error)
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        return Outcome(error=OptionFailed("CancelledError", "the option waited for something that was cancelled"))


def check_runs(option: "Option", *, asynchronous: bool) -> None:
    """OptionInvalid for an option without a function, or with one that cannot run without a loop."""
    if option.function is None:
        remedy = "answer its calls yourself: OptionResultBuilder.response_to(call).success(…)"
        raise OptionInvalid(f"option {option.name!r} has no function to run; {remedy}")
    if not asynchronous and is_asynchronous(option.function):
        raise OptionInvalid(_await_instead(option.name))


def _await_instead(name: str) -> str:
    return f"option {name!r} is asynchronous; use `await option.answer(call)` or `await sabir.answer(reply, options)`"


def _prepare(option: "Option", call: Message) -> Run | Message:
    payload = _call_of(option, call)
    if payload.invalid_arguments:
        text = one_line(payload.raw_arguments or "", 100)
        return error_result(call, INVALID_ARGUMENTS, f"the arguments are no JSON object: {text!r}")
    binder = option.binder or bind_schema(option.parameters)
    try:
        bound = binder(payload.arguments_json)
    except ArgumentsRefused as error:
        return error_result(call, INVALID_ARGUMENTS, str(error))
    assert option.function is not None  # check_runs came first
    return Run(option.function, bound)


def _call_of(option: "Option", call: object) -> OptionCallPayload:
    payload = call.call if isinstance(call, Message) else None
    if payload is None:
        raise OptionInvalid(
            f"option {option.name!r} answers option calls, not {name_kind(call)}; see reply.option_calls"
        )
    if payload.option_name != option.name:
        raise OptionInvalid(f"option {option.name!r} was given a call of {payload.option_name!r}; use sabir.answer")
    return payload


def _finish(call: Message, outcome: Outcome) -> Message:
    from sabir.builders import OptionResultBuilder

    if isinstance(outcome.error, OptionFailed):
        failed = outcome.error
        kind, text = _written(failed.error_type) or type(failed).__name__, _written(failed.error_message)
        return error_result(call, kind, text, retryable=failed.retryable)
    if outcome.error is not None:
        retryable = getattr(outcome.error, "retryable", False) is True
        return error_result(call, type(outcome.error).__name__, _text_of(outcome.error), retryable=retryable)
    try:
        return OptionResultBuilder.response_to(call).success(outcome.value)
    except BuilderError as error:
        return error_result(call, RESULT_INVALID, str(error))


def error_result(
    call: Message, error_type: str, text: str, *, policy: str | None = None, retryable: bool = False
) -> Message:
    """An error result for a call, its text in one line; by the option itself unless a policy is given."""
    from sabir.builders import OptionResultBuilder

    return OptionResultBuilder.response_to(call, policy=policy).error(error_type, one_line(text), retryable)


def _text_of(error: Exception) -> str:
    try:
        text = str(error) or type(error).__name__
    except Exception:
        text = type(error).__name__
    return _written(text)


def _written(text: str) -> str:
    """A text that JSON can hold: half a character becomes its number."""
    return text.encode("utf-8", "backslashreplace").decode()
