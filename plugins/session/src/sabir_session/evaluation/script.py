"""An evaluation as a script without I/O: it says what to do next and is told what came of it.

    script ── Record · Tell · Complete · Ask · Start · Take ──▶ driver ──▶ session, watcher, provider, person, options
       ▲                                                          │
       └───────── None · Reply · Decision · Ended ◀───────────────┘

    open calls? ─▶ ask ─▶ start ─▶ take and record each ─┐
        ▲                                                ▼
    record it ◀── complete ◀── budget ◀── over? ── no ───┘        a resumed one enters here too

What exists is recorded before anything is done with it. Errors are the driver's: it lets them through, and the session
says where to go on.
"""

from collections.abc import Collection, Generator
from typing import NamedTuple, TypeAlias

from sabir import Message, Reply
from sabir.authoring import OptionCall

from sabir_session.evaluation.approval import ALLOWED, Decision, denial, with_arguments
from sabir_session.evaluation.budgets import Spending
from sabir_session.evaluation.conversation import Conversation, OpenCall
from sabir_session.evaluation.errors import ApprovalPending
from sabir_session.evaluation.progress import CallEnded, Event, ReplyArrived, RequestStarted
from sabir_session.records.inner_messages import InnerMessage


class Record(NamedTuple):
    """Append a record to the session."""

    record: InnerMessage


class Tell(NamedTuple):
    """Tell whoever watches."""

    event: Event


class Complete(NamedTuple):
    """Ask the provider; the answer is its Reply."""

    messages: list[Message]


class Ask(NamedTuple):
    """Ask whether a call may run; the answer is a Decision."""

    call: OptionCall


class Start(NamedTuple):
    """Have calls answered, in any order, at once where that is possible."""

    runs: tuple["Run", ...]


class Take(NamedTuple):
    """Wait until the next of the calls that were started has ended; the answer is an Ended."""


class Run(NamedTuple):
    """A call that may run; `message` is what runs, which a person may have changed."""

    open: OpenCall
    message: OptionCall


class Ended(NamedTuple):
    """A run and its result."""

    run: Run
    result: Message


Action: TypeAlias = Record | Tell | Complete | Ask | Start | Take
Outcome: TypeAlias = Reply | Decision | Ended | None
Script: TypeAlias = Generator[Action, Outcome, None]


def evaluation_script(conversation: Conversation, spending: Spending, asked_about: Collection[str] | None) -> Script:
    """Go on with a conversation until its last reply asks for nothing.

    `asked_about` are the options whose calls need a person's word, None where nobody is asked. Raises BudgetExhausted
    and ApprovalPending.
    """
    for record in conversation.unrecorded:
        yield Record(record)
    for earlier in conversation.replies:
        spending.add(earlier)
    while not conversation.is_over:
        if conversation.open:
            yield from _answered(conversation, asked_about)
            continue
        spending.check()
        yield Tell(RequestStarted(conversation.turn + 1))
        reply = yield Complete(conversation.messages)
        assert isinstance(reply, Reply)
        yield Record(conversation.take(reply, asked_about or ()))
        spending.add(reply)
        yield Tell(ReplyArrived(reply))


def _answered(conversation: Conversation, asked_about: Collection[str] | None) -> Script:
    """Answer the open calls, each result recorded when it is there; ApprovalPending for those that must wait."""
    if conversation.needs_approval and asked_about is None:
        raise _pending(conversation, "resume with approve=, which decides")
    runs: list[Run] = []
    for call in tuple(conversation.open):
        decision = yield from _decided(call, asked_about or ())
        if decision.kind == "allow":
            runs.append(Run(call, with_arguments(call.message, decision)))
        elif decision.kind == "deny":
            yield from _settled(conversation, call, denial(call.message, decision))
    yield Start(tuple(runs))
    for _ in runs:
        ended = yield Take()
        assert isinstance(ended, Ended)
        yield from _settled(conversation, ended.run.open, ended.result)
    if conversation.open:
        raise _pending(conversation, "resume the evaluation to ask again")


def _pending(conversation: Conversation, remedy: str) -> ApprovalPending:
    calls = tuple(call.message for call in conversation.open)
    names = ", ".join(call.call.option_name for call in calls)
    evaluation_id = conversation.heading.evaluation_id
    return ApprovalPending(f"calls wait for approval: {names}; {remedy}", calls=calls, evaluation_id=evaluation_id)


def _decided(call: OpenCall, asked_about: Collection[str]) -> Generator[Action, Outcome, Decision]:
    if call.message.call.option_name not in asked_about:
        return ALLOWED
    decision = yield Ask(call.message)
    assert isinstance(decision, Decision)
    return decision


def _settled(conversation: Conversation, call: OpenCall, result: Message) -> Script:
    yield Record(conversation.settle(call, result))
    yield Tell(CallEnded(call.message, result))
