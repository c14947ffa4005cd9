"""Answering all calls of a reply: in their order, each by its option, one failure losing none of the others.

    reply | messages ──unanswered calls──▶ option.answer ──▶ results, to be appended to the conversation

This is the one implementation; runners build on it. A call of what was not offered is refused by the runtime and
never run (PJ-06, D-08).
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from sabir.constructors import as_messages
from sabir.execution import answer_call, answer_call_sync, check_runs, error_result
from sabir.messages import RUNTIME, Message
from sabir.options import Option, OptionLike, as_options
from sabir.reply import Reply

OPTION_NOT_OFFERED = "option_not_offered"
"""The error type of a call of an option that was not offered."""


class _Task(NamedTuple):
    """A call with the option that answers it, or with the refusal that does."""

    call: Message
    option: Option | None
    refusal: Message | None


def answer_sync(reply: Reply | Message | Iterable[Message], options: Iterable[OptionLike]) -> list[Message]:
    """Answer every unanswered option call of a reply, or of a history, in order; one result a call.

    Raises OptionInvalid, before anything runs, for an option that was called but has no function, or an asynchronous
    one: `await sabir.answer(...)` runs those.
    """
    tasks = _tasks(reply, options, asynchronous=False)
    return [task.refusal or answer_call_sync(_option_of(task), task.call) for task in tasks]


async def answer(reply: Reply | Message | Iterable[Message], options: Iterable[OptionLike]) -> list[Message]:
    """As `answer_sync`, one call after another; asynchronous options are awaited, others run in threads."""
    tasks = _tasks(reply, options, asynchronous=True)
    return [task.refusal or await answer_call(_option_of(task), task.call) for task in tasks]


def unanswered(messages: Iterable[Message]) -> list[Message]:
    """The option calls without a result, in order.

    A result answers a call of its id in the nearest earlier run of calls that has an unanswered one; there, the first
    (UP-13). A run is option calls with no other message between them.
    """
    calls: list[tuple[int, Message]] = []
    run = 0
    for message in messages:
        payload = message.payload
        if payload.kind == "option_call":
            calls.append((run, message))
            continue
        run += 1
        if payload.kind == "option_result":
            pairs = [pair for pair in calls if _id(pair[1]) == payload.invocation_id]
            if pairs:
                calls.remove(next(pair for pair in pairs if pair[0] == pairs[-1][0]))
    return [call for _, call in calls]


def _tasks(
    reply: Reply | Message | Iterable[Message], options: Iterable[OptionLike], *, asynchronous: bool
) -> list[_Task]:
    offered = {option.name: option for option in as_options(options)}
    tasks = [_task(call, offered) for call in unanswered(_messages_of(reply))]
    for task in tasks:
        if task.option is not None:
            check_runs(task.option, asynchronous=asynchronous)
    return tasks


def _task(call: Message, offered: dict[str, Option]) -> _Task:
    name = call.call.option_name if call.call else ""
    option = offered.get(name)
    if option is not None:
        return _Task(call, option, None)
    known = ", ".join(offered) or "none"
    text = f"option {name!r} was not offered; offered are: {known}"
    return _Task(call, None, error_result(call, OPTION_NOT_OFFERED, text, policy=RUNTIME))


def _option_of(task: _Task) -> Option:
    assert task.option is not None  # a task has an option or a refusal
    return task.option


def _id(call: Message) -> str:
    return call.call.invocation_id if call.call else ""


def _messages_of(reply: Reply | Message | Iterable[Message]) -> Sequence[Message]:
    return reply.messages if isinstance(reply, Reply) else as_messages(reply)
