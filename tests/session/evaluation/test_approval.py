"""A person's word before an option runs; what waits for it survives the process."""

import asyncio
from typing import Any

import pytest
import sabir
from sabir_session import (
    ApprovalPending,
    Decision,
    Prompt,
    Session,
    Snapshot,
    evaluate,
    evaluate_sync,
    get_inner_messages,
    get_pending_tool_calls,
)
from sabir_testing.scripted import ScriptedAdapter, call, calls

from tests.session.support import ListJournal, numbers_of, recording

PROMPT: Prompt[None] = Prompt(ns="desk", key="refund", messages=[sabir.user("Refund order 7.")])


class EvaluationIO:
    """Two options, and what ran."""

    def __init__(self) -> None:
        self.ran: list[str] = []
        self.asked: list[str] = []

    def look_up(self, order: int) -> str:
        self.ran.append(f"look_up {order}")
        return "paid"

    def refund(self, order: int, amount: int = 10) -> str:
        self.ran.append(f"refund {order} {amount}")
        return "refunded"

    def approving(self, word: Any) -> Any:
        """Lets everything but refunds through; for those, gives that word."""

        def approve(message: sabir.Message) -> Any:
            assert message.call is not None
            self.asked.append(message.call.option_name)
            return word if message.call.option_name == "refund" else "allow"

        return approve

    def evaluate(self, llm: sabir.Adapter, session: Session, word: Any, *, resume: bool = False) -> str:
        options = [self.look_up, self.refund]
        return evaluate_sync(
            llm, PROMPT, session=session, options=options, approve=self.approving(word), resume=resume
        ).text


def chosen() -> Any:
    """A call that is harmless between two that are not."""
    return calls(refund=[{"order": 7}, {"order": 8}], look_up={"order": 7})


def test_a_denied_call_never_runs_and_the_model_is_told_why() -> None:
    """An error result of type `denied`, by the policy `human`; the conversation goes on (UP-29)."""
    desk, session = EvaluationIO(), Session()
    llm = ScriptedAdapter(calls(refund={"order": 7}), "I must not.")

    assert desk.evaluate(llm, session, Decision("deny", reason="Ask\nfinance.")) == "I must not."
    (result,) = llm.last.results
    assert (result.error_type, result.error_message) == ("denied", "Ask finance.")
    assert desk.ran == []
    record = get_inner_messages(session)[3]
    assert record.messages[0].policy == "human"
    assert get_inner_messages(session)[2].tool_calls[0].status == "failed"

    desk.evaluate(again := ScriptedAdapter(calls(refund={"order": 7}), "No."), Session(), "deny")
    assert again.last.results[0].error_message == "a person denied this call"


def test_calls_that_wait_let_all_others_run_first() -> None:
    """ApprovalPending names those that wait, once what may run has run and is recorded."""
    desk, session = EvaluationIO(), Session()
    with pytest.raises(ApprovalPending, match="calls wait for approval: refund, refund") as met:
        desk.evaluate(ScriptedAdapter(chosen()), session, "wait")

    assert desk.ran == ["look_up 7"]
    assert [dict(message.call.arguments) for message in met.value.calls if message.call] == [{"order": 7}, {"order": 8}]
    assert [(record.sequence, record.content) for record in get_inner_messages(session)][3:] == [(5, "paid")]
    pending = get_pending_tool_calls(session, met.value.evaluation_id)
    assert [each.name for each in pending] == ["refund", "refund"]


@pytest.mark.parametrize("is_journal", [True, False])
def test_what_waits_survives_a_restart_and_is_asked_about_again(is_journal: bool) -> None:
    """A new process has the journal, or a snapshot, and nothing else; allowed then, the call runs once, and the numbers
    are those of a run in which nobody waited (WI-42, WI-43)."""
    journal, first = ListJournal(), EvaluationIO()
    session = recording(journal)
    with pytest.raises(ApprovalPending):
        first.evaluate(ScriptedAdapter(chosen()), session, "wait")
    restarted = recording(journal if is_journal else ListJournal())
    if not is_journal:
        restarted.mutate().rollback(Snapshot.from_json(session.snapshot().to_json()))
    still, later = EvaluationIO(), EvaluationIO()
    with pytest.raises(ApprovalPending):
        still.evaluate(ScriptedAdapter(), restarted, "wait", resume=True)
    llm = ScriptedAdapter("Done.")

    assert later.evaluate(llm, restarted, "allow", resume=True) == "Done."
    assert (still.ran, later.ran) == ([], ["refund 7 10", "refund 8 10"])
    assert later.asked == ["refund", "refund"]
    assert [result.result for result in llm.last.results] == ["refunded", "refunded", "paid"]
    assert numbers_of(restarted)[2:] == [
        ("assistant", 2, 1), ("tool", 3, 1), ("tool", 4, 1), ("tool", 5, 1), ("assistant", 6, 2),
    ]  # fmt: skip


@pytest.mark.parametrize("word", ["wait", "allow"])
def test_what_waits_never_runs_because_a_resume_forgot_to_ask(word: str) -> None:
    """The record says that a person is to be asked: without `approve`, nothing runs, nobody is asked, nothing is sent.

    That holds for a process that died before anybody was asked, too.
    """
    journal, desk = ListJournal(), EvaluationIO()

    def dies(message: sabir.Message) -> str:
        raise KeyboardInterrupt

    with pytest.raises(ApprovalPending if word == "wait" else KeyboardInterrupt):
        evaluate_sync(
            ScriptedAdapter(chosen()), PROMPT, session=recording(journal), options=[desk.look_up, desk.refund],
            approve=desk.approving("wait") if word == "wait" else dies,
        )  # fmt: skip
    desk.ran.clear()
    session, llm = recording(journal), ScriptedAdapter("Done.")
    held = len(journal.lines)
    with pytest.raises(ApprovalPending, match="resume with approve=") as met:
        evaluate_sync(llm, PROMPT, session=session, options=[desk.look_up, desk.refund], resume=True)

    assert (desk.ran, llm.sent, len(journal.lines)) == ([], (), held)
    assert len(met.value.calls) == (2 if word == "wait" else 3)
    assert desk.evaluate(llm, session, "allow", resume=True) == "Done."


def test_a_person_may_give_other_arguments() -> None:
    """They run in place of the model's, and are validated alike; the conversation still shows the model's own."""
    desk, session = EvaluationIO(), Session()
    llm = ScriptedAdapter(calls(refund={"order": 7, "amount": 500}), "Done.")
    desk.evaluate(llm, session, Decision("allow", arguments={"order": 7, "amount": 5}))

    assert desk.ran == ["refund 7 5"]
    assert get_inner_messages(session)[2].tool_calls[0].arguments == '{"order":7,"amount":500}'
    wrong = ScriptedAdapter(calls(refund={"order": 7}), "Hm.")
    desk.evaluate(wrong, Session(), Decision("allow", arguments={"order": "seven"}))
    assert wrong.last.results[0].error_type == "invalid_arguments"
    mended = ScriptedAdapter(call("refund", "not JSON"), "Done.")
    desk.evaluate(mended, Session(), Decision("allow", arguments={"order": 9}))
    assert desk.ran == ["refund 7 5", "refund 9 10"]
    with pytest.raises(sabir.SettingsInvalid, match="only an allowed call runs"):
        Decision("deny", arguments={"order": 1})


@pytest.mark.parametrize("word", ["yes", True, None, 3])
def test_what_is_no_decision_is_refused_and_nothing_runs(word: object) -> None:
    """A truthy answer must not let money go."""
    desk = EvaluationIO()
    with pytest.raises(sabir.SettingsInvalid, match="'allow', 'deny', 'wait' or a Decision"):
        desk.evaluate(ScriptedAdapter(chosen()), Session(), word)

    assert desk.ran == []


async def test_a_person_may_be_awaited() -> None:
    desk = EvaluationIO()

    async def later(message: sabir.Message) -> str:
        await asyncio.sleep(0)
        return "allow"

    for approve in (later, lambda message: later(message)):
        llm = ScriptedAdapter(calls(refund={"order": 7}), "Done.")
        await evaluate(llm, PROMPT, options=[desk.refund], approve=approve)  # type: ignore[arg-type]
    assert len(desk.ran) == 2
    with pytest.raises(sabir.SettingsInvalid, match="approve is a coroutine function"):
        evaluate_sync(ScriptedAdapter(chosen()), PROMPT, options=[desk.refund], approve=later)  # type: ignore[arg-type]
