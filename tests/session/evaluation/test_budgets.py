"""An evaluation ends before it spends more than it may; what earlier processes spent counts."""

from contextlib import suppress
from decimal import Decimal
from typing import Any

import pytest
import sabir
from sabir_session import (
    Budget,
    BudgetExhausted,
    Conversation,
    ConversationNotFound,
    Prompt,
    Session,
    evaluate_sync,
    get_inner_messages,
    with_budget,
)
from sabir_session.evaluation.budgets import MOST_REQUESTS
from sabir_testing.scripted import ScriptedAdapter, always, calls, cut_off, reply

from tests.session.support import ListJournal, recording

PROMPT: Prompt[None] = Prompt(messages=[sabir.user("Count.")])
SEVEN = sabir.Usage(input_tokens=5, output_tokens=2)


def look() -> str:
    """Look."""
    return "seen"


def endless(usage: sabir.Usage | None = SEVEN) -> ScriptedAdapter:
    """A model that never has enough; each reply uses seven tokens."""
    return ScriptedAdapter(always(reply(calls(look={}), usage=usage)))


def cents(reply: sabir.Reply) -> Decimal:
    """A cent a token."""
    return Decimal(reply.usage.total_tokens or 0)


@pytest.mark.parametrize(
    ("budget", "limit", "requests", "spent"),
    [
        (Budget(turns=3), "turns", 3, 3),
        (Budget(turns=0), "turns", 0, 0),
        (Budget(tokens=14), "tokens", 2, 14),
        (Budget(tokens=15), "tokens", 3, 21),
        (Budget(cost=20, price=cents), "cost", 3, Decimal(21)),
        (Budget(cost=Decimal("0.5"), price=lambda reply: 0.25), "cost", 2, Decimal("0.50")),
        (Budget(turns=9, tokens=7), "tokens", 1, 7),
    ],
)
def test_the_call_that_would_go_beyond_a_limit_is_not_made(
    budget: Budget, limit: str, requests: int, spent: object
) -> None:
    """The error names the limit and its figures, and what was done stays recorded: pending nothing."""
    llm, session = endless(), Session()
    with pytest.raises(BudgetExhausted, match=limit) as met:
        evaluate_sync(llm, PROMPT, session=session, options=[look], budget=budget)

    assert (len(llm.sent), met.value.limit, met.value.spent) == (requests, limit, spent)
    assert [record.role for record in get_inner_messages(session)].count("tool") == requests


def test_without_a_budget_there_are_so_many_requests_and_no_more() -> None:
    """A model that never has enough ends as with a budget; each resume has as many again, and any budget lifts it."""
    journal, llm = ListJournal(), endless()
    for resume, requests in ((False, MOST_REQUESTS), (True, 2 * MOST_REQUESTS)):
        told = rf"budget of {requests} turns .* raise the limit with Budget\(turns=…\)"
        with pytest.raises(BudgetExhausted, match=told):
            evaluate_sync(llm, PROMPT, session=recording(journal), options=[look], resume=resume)
        assert len(llm.sent) == requests

    for budget in (Budget(), Budget(turns=MOST_REQUESTS + 2)):
        lasting = ScriptedAdapter(*[calls(look={})] * (MOST_REQUESTS + 1), "Done.")
        assert evaluate_sync(lasting, PROMPT, options=[look], budget=budget).text == "Done."


@pytest.mark.parametrize("cost", [float("nan"), float("inf"), Decimal("NaN"), -1])
def test_a_price_that_no_limit_could_stop_is_refused(cost: Any) -> None:
    """A sum that is not a number is never beyond anything; the reply that was paid for is recorded all the same."""
    session = Session()
    budget = Budget(cost=1, price=lambda reply: cost)
    with pytest.raises(sabir.SettingsInvalid, match=r"price\(\) returned"):
        evaluate_sync(endless(), PROMPT, session=session, options=[look], budget=budget)

    assert [record.role for record in get_inner_messages(session)] == ["system", "user", "assistant"]


def test_the_error_carries_the_response_so_far() -> None:
    with pytest.raises(BudgetExhausted) as met:
        evaluate_sync(endless(), PROMPT, options=[look], budget=Budget(turns=2))
    response = met.value.response

    assert response is not None
    assert [message.kind for message in response.messages] == ["parts", *["option_call", "option_result"] * 2]
    assert (response.usage.total_tokens, len(response.reply.option_calls), response.output) == (14, 1, None)
    with pytest.raises(BudgetExhausted) as before:
        evaluate_sync(endless(), PROMPT, budget=Budget(seconds=0))
    assert (before.value.response, before.value.limit) == (None, "seconds")


def test_what_earlier_processes_spent_counts_on_resume() -> None:
    """Turns, tokens and cost are in the records; under a larger budget, the evaluation goes on where it stopped."""
    journal = ListJournal()
    with pytest.raises(BudgetExhausted):
        evaluate_sync(endless(), PROMPT, session=recording(journal), options=[look], budget=Budget(turns=2))
    llm = endless()
    for budget, spent in ((Budget(turns=2), 2), (Budget(tokens=14), 14), (Budget(cost=14, price=cents), Decimal(14))):
        with pytest.raises(BudgetExhausted) as met:
            evaluate_sync(llm, PROMPT, session=recording(journal), options=[look], budget=budget, resume=True)
        assert met.value.spent == spent
    assert llm.sent == ()
    with pytest.raises(BudgetExhausted):
        evaluate_sync(llm, PROMPT, session=recording(journal), options=[look], budget=Budget(tokens=15), resume=True)
    assert len(llm.sent) == 1


@pytest.mark.parametrize(
    "budget", [Budget(tokens=1000), Budget(cost=1000, price=lambda reply: None)], ids=["tokens", "cost"]
)
def test_what_a_provider_does_not_say_is_not_taken_for_nothing(budget: Budget) -> None:
    """The limit cannot be kept, so that the next call is refused; without such a limit it does not matter."""
    llm = endless(sabir.Usage(output_tokens=2))
    with pytest.raises(BudgetExhausted, match="not known") as met:
        evaluate_sync(llm, PROMPT, options=[look], budget=budget)

    assert (len(llm.sent), met.value.spent) == (1, None)
    with pytest.raises(BudgetExhausted, match="turns"):
        evaluate_sync(endless(sabir.Usage()), PROMPT, options=[look], budget=Budget(turns=2))


@pytest.mark.parametrize(
    "limits",
    [
        {"turns": -1}, {"seconds": -0.5}, {"cost": 1}, {"seconds": float("nan")}, {"turns": "3"}, {"seconds": "1"},
        {"seconds": Decimal(1)},
    ],
    ids=str,
)  # fmt: skip
def test_a_budget_that_cannot_be_kept_is_refused(limits: dict[str, Any]) -> None:
    with pytest.raises(sabir.SettingsInvalid, match="Budget"):
        Budget(**limits)


async def test_any_loop_can_have_a_budget() -> None:
    """`within` wraps an adapter: every way of asking is counted and refused alike."""
    rendered = endless().render("Hi")
    for budget in (Budget(turns=1), Budget(tokens=7), Budget(cost=7, price=cents)):
        for ask in _waiting(rendered):
            llm = with_budget(endless(), budget)
            assert ask(llm).usage == SEVEN
            with pytest.raises(BudgetExhausted) as met:
                ask(llm)
            assert met.value.response is None

    llm = with_budget(endless(), Budget(turns=3))
    await llm.complete("Hi")
    await llm.send(rendered)
    await llm.stream("Hi").reply()
    for refused in (lambda: llm.complete("Hi"), lambda: llm.send(rendered)):
        with pytest.raises(BudgetExhausted):
            await refused()
    with pytest.raises(BudgetExhausted):
        llm.stream("Hi")


def _waiting(rendered: sabir.Rendering) -> Any:
    def streamed(llm: sabir.Adapter) -> sabir.Reply:
        with llm.stream_sync("Hi") as stream:
            return stream.reply()

    return lambda llm: llm.complete_sync("Hi"), lambda llm: llm.send_sync(rendered), streamed


def test_a_stream_that_breaks_has_cost_what_nobody_said() -> None:
    """It is counted as far as it came; one that never began is not counted."""
    broken = with_budget(ScriptedAdapter(cut_off("half a sen"), "Done."), Budget(tokens=1000))
    with pytest.raises(sabir.StreamBroken), broken.stream_sync("Hi") as stream:
        stream.reply()
    with pytest.raises(BudgetExhausted, match="not known"):
        broken.complete_sync("Hi")
    down = with_budget(ScriptedAdapter(cut_off(), cut_off(), cut_off(), "Done."), Budget(turns=1, tokens=1000))
    with pytest.raises(sabir.errors.ConnectionFailed), down.stream_sync("Hi") as stream:
        stream.reply()
    assert down.complete_sync("Hi").text == "Done."


async def test_a_wrapped_adapter_is_the_adapter_otherwise() -> None:
    inner = ScriptedAdapter("Done.", speaks_as="clerk")
    llm = with_budget(inner, Budget(turns=1))

    assert (llm.target, llm.speaks_as) == (inner.target, "clerk")
    assert llm.render("Hi").body == inner.render("Hi").body
    assert "with_budget(<ScriptedAdapter" in repr(llm)
    assert evaluate_sync(llm, PROMPT).text == "Done."
    llm.close()
    await llm.aclose()


@pytest.mark.parametrize(
    ("budget", "spent"),
    [(Budget(turns=2), 2), (Budget(tokens=14), 14), (Budget(cost=14, price=cents), Decimal(14))],
    ids=["turns", "tokens", "cost"],
)
def test_a_budget_counts_dropped_turns(budget: Budget, spent: object, place: dict[str, Any]) -> None:
    llm = ScriptedAdapter(always(reply("Po.", usage=SEVEN)))
    with Conversation(llm, budget=budget, **place) as chat:
        for _ in range(2):
            chat.ask_sync("Name a river.")
            assert [message.text for message in chat.drop_last()] == ["Name a river.", "Po."]
        assert (chat.messages, chat.unfinished, chat.usage.total_tokens) == ((), False, 0)
        with pytest.raises(ConversationNotFound):
            chat.drop_last()
        with chat.fork("other") as fork:
            refused(fork, spent, llm)
        if not place:
            refused(chat, spent, llm)
    if place:
        with Conversation(llm, budget=budget, **place) as chat:
            refused(chat, spent, llm)
            chat.budget = None
            chat.ask_sync()
            chat.drop_last()
            chat.budget = budget
            with pytest.raises(BudgetExhausted):
                chat.ask_sync("Another.")


def refused(chat: Conversation[Any], spent: object, llm: ScriptedAdapter) -> None:
    """Ask a question that is beyond the budget."""
    requests = len(llm.sent)
    with pytest.raises(BudgetExhausted) as caught:
        chat.ask_sync("Another.")
    assert (caught.value.spent, len(llm.sent)) == (spent, requests)


def test_a_replaced_turn_counts(place: dict[str, Any]) -> None:
    """`replacing_last` spends twice, whether the new answer is complete or not."""
    llm = ScriptedAdapter(always(reply("Po.", usage=SEVEN)))
    with Conversation(llm, **place) as chat:
        chat.ask_sync("Name a river.")
        with chat.replacing_last():
            chat.ask_sync("Name a river.")
        with suppress(RuntimeError), chat.replacing_last():
            chat.ask_sync("Name a river.")
            raise RuntimeError
        assert len(chat.messages) == 2
        chat.budget = Budget(tokens=21)
        refused(chat, 21, llm)
