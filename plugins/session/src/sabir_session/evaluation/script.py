"""The steps of an evaluation in their order, written once for synchronous callers and event loops.

    open calls? ─▶ ask ─▶ start ─▶ take and record each ─┐
        ▲                                                ▼
    record it ◀── complete ◀── budget ◀── over? ── no ───┘        a resumed one enters here too

Everything is recorded before it is used. Errors pass through, and the session says where to continue. The performer
does all I/O; a synchronous one never suspends, so `to_its_end` runs the same steps without a loop.
"""

from collections.abc import Coroutine

from sabir import Message

from sabir_session.evaluation.approval import ALLOWED, Decision, denial, with_arguments
from sabir_session.evaluation.conversation import Conversation, OpenCall
from sabir_session.evaluation.errors import ApprovalPending
from sabir_session.evaluation.perform import Performer, Run
from sabir_session.evaluation.progress import CallEnded, ReplyArrived, RequestStarted


async def evaluated(conversation: Conversation, io: Performer) -> None:
    """Continue a conversation until its last reply has no calls; raises BudgetExhausted and ApprovalPending."""
    try:
        for record in conversation.unrecorded:
            io.record(record)
        for earlier in conversation.replies:
            io.spending.add(earlier)
        while not conversation.is_over:
            if conversation.open:
                await _answered(conversation, io)
                continue
            io.spending.check()
            io.tell(RequestStarted(conversation.turn + 1))
            reply = await io.complete(conversation.messages)
            io.record(conversation.take(reply, io.asked_about or ()))
            io.spending.add(reply)
            io.tell(ReplyArrived(reply))
    finally:
        io.cancelled.set()


def to_its_end(steps: Coroutine[object, object, None]) -> None:
    """Run steps whose performer never suspends."""
    try:
        steps.send(None)
    except StopIteration:
        return
    raise AssertionError("a performer that waits has suspended")


async def _answered(conversation: Conversation, io: Performer) -> None:
    """Answer the open calls, recording each result at once; raises ApprovalPending for calls that must wait."""
    if conversation.needs_approval and io.asked_about is None:
        raise _pending(conversation, "resume with approve=, which decides")
    runs: list[Run] = []
    for call in tuple(conversation.open):
        decision = await _decided(call, io)
        if decision.kind == "allow":
            runs.append(Run(call, with_arguments(call.message, decision)))
        elif decision.kind == "deny":
            _settle(conversation, io, call, denial(call.message, decision))
    io.start(runs)
    for _ in runs:
        is_taken = False
        try:
            run, result = await io.take()
            is_taken = True
            _settle(conversation, io, run.open, result)
        except BaseException:
            late = await io.stop()
            for run, result in () if is_taken else late:  # it ended although it was cancelled
                _settle(conversation, io, run.open, result)
            raise
    if conversation.open:
        raise _pending(conversation, "resume the evaluation to ask again")


def _pending(conversation: Conversation, remedy: str) -> ApprovalPending:
    calls = tuple(call.message for call in conversation.open)
    names = ", ".join(call.call.option_name for call in calls)
    evaluation_id = conversation.heading.evaluation_id
    return ApprovalPending(f"calls wait for approval: {names}; {remedy}", calls=calls, evaluation_id=evaluation_id)


async def _decided(call: OpenCall, io: Performer) -> Decision:
    return await io.ask(call.message) if call.message.call.option_name in (io.asked_about or ()) else ALLOWED


def _settle(conversation: Conversation, io: Performer, call: OpenCall, result: Message) -> None:
    io.record(conversation.settle(call, result))
    io.tell(CallEnded(call.message, result))
