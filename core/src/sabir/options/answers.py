"""Answers all calls of a reply in their order, each by its option; a failure of one loses none of the others.

    reply | messages ──unanswered calls──▶ option.answer ──▶ results, to be appended to the conversation

This is the one implementation; runners build on it. A call of an option that was not offered gets an error result from
the runtime, and nothing runs.
"""

from collections.abc import Iterable

from sabir.options.execution import answer_call, answer_call_sync, check_runs, error_result
from sabir.options.option import Option, OptionLike
from sabir.vocabulary.constructors import as_messages
from sabir.vocabulary.messages import RUNTIME, Message
from sabir.vocabulary.pairs import Unanswered
from sabir.vocabulary.reply import Reply

OPTION_NOT_OFFERED = "option_not_offered"
"""The error type of the result for an option that was not offered."""


def answer_sync(reply: Reply | Message | Iterable[Message], options: Iterable[OptionLike]) -> list[Message]:
    """Answer every unanswered option call of a reply, or of a history, in order; one result a call.

    Raises OptionInvalid, before anything runs, for an option that was called but has no function, or an asynchronous
    one: `await sabir.answer(...)` runs those.
    """
    answered_by = _answered_by(reply, options, asynchronous=False)
    return [by if isinstance(by, Message) else answer_call_sync(by, call) for call, by in answered_by]


async def answer(reply: Reply | Message | Iterable[Message], options: Iterable[OptionLike]) -> list[Message]:
    """As `answer_sync`, one call after another; asynchronous options are awaited, others run in threads."""
    answered_by = _answered_by(reply, options, asynchronous=True)
    return [by if isinstance(by, Message) else await answer_call(by, call) for call, by in answered_by]


def unanswered(messages: Iterable[Message]) -> list[Message]:
    """The option calls without a result, in order.

    A result answers the first unanswered call of its id in the nearest earlier run of calls that has such a call.
    """
    given, calls = list(messages), Unanswered()
    for position, message in enumerate(given):
        calls.take(position, message.payload)
    return [given[position] for position in calls.positions()]


def _answered_by(
    reply: Reply | Message | Iterable[Message], options: Iterable[OptionLike], *, asynchronous: bool
) -> list[tuple[Message, Option | Message]]:
    """Each unanswered call with the option that answers it, or with the refusal that does."""
    offered = {option.name: option for option in Option.all_of(options)}
    calls = unanswered(reply.messages if isinstance(reply, Reply) else as_messages(reply))
    found = [(call, _option_or_refusal(call, offered)) for call in calls]
    for _, by in found:
        if isinstance(by, Option):
            check_runs(by, asynchronous=asynchronous)
    return found


def _option_or_refusal(call: Message, offered: dict[str, Option]) -> Option | Message:
    name = call.call.option_name if call.call else ""
    if name in offered:
        return offered[name]
    known = ", ".join(offered) or "none"
    text = f"option {name!r} was not offered; offered are: {known}"
    return error_result(call, OPTION_NOT_OFFERED, text, policy=RUNTIME)
