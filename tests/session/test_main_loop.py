"""A main loop makes sessions and prompts of requests, and leaves it to its caller where a session is kept."""

from typing import Any

import pytest
import sabir
from sabir_session import InnerMessage, Session, get_inner_messages
from sabir_session.evaluation.budgets import Budget
from sabir_session.evaluation.errors import BudgetExhausted, ConversationNotFound
from sabir_session.evaluation.main_loop import MainLoop
from sabir_session.evaluation.prompts import Prompt
from sabir_testing.scripted import ScriptedAdapter, calls

from tests.session.journals import ListJournal, numbers_of, recording


class Trips(MainLoop[str, list[int]]):
    """Counts umbrellas in a city."""

    def __init__(self, adapter: sabir.Adapter, **how: Any) -> None:
        super().__init__(adapter, **how)
        self.sessions: list[Session] = []

    def create_prompt(self, request: str) -> Prompt[list[int]]:
        """By the city."""
        return Prompt(ns="trips", key="count", system="Count.", messages=[sabir.user(request)], output=list[int])

    def create_session(self) -> Session:
        """One that a test can look into."""
        self.sessions.append(super().create_session())
        return self.sessions[-1]


def look(city: str) -> int:
    """How many umbrellas there are."""
    return 2


async def test_a_request_becomes_a_response_and_is_recorded() -> None:
    """WI-52: `execute` makes session and prompt, enables recording, and evaluates; awaited or waiting."""
    llm = ScriptedAdapter(calls(look={"city": "Paris"}), "[2]", "[3]")
    loop = Trips(llm, options=[look])
    first, second = await loop.execute("Paris"), loop.execute_sync("Rome")

    assert (first.output, second.output) == ([2], [3])
    assert [len(get_inner_messages(session)) for session in loop.sessions] == [5, 3]
    assert numbers_of(loop.sessions[1]) == [("system", 0, 0), ("user", 1, 0), ("assistant", 2, 1)]
    llm.assert_asked("Paris", "Paris", "Rome")


async def test_a_session_given_by_the_caller_is_resumed() -> None:
    """WI-53, D-18: the loop makes no session of its own then; without anything to resume it says so."""
    journal = ListJournal()
    with pytest.raises(sabir.errors.ServerFailed):
        down = [sabir.errors.ServerFailed("down")] * 3
        await Trips(ScriptedAdapter(calls(look={"city": "Paris"}), *down), options=[look]).execute(
            "Paris", session=recording(journal)
        )
    loop, session = Trips(ScriptedAdapter("[2]"), options=[look]), recording(journal)
    response = await loop.execute("Paris", session=session, resume=True)

    assert (response.output, loop.sessions) == ([2], [])
    assert numbers_of(session)[-2:] == [("tool", 3, 1), ("assistant", 4, 2)]
    with pytest.raises(ConversationNotFound):
        loop.execute_sync("Paris", resume=True)


def test_the_manner_is_that_of_evaluate() -> None:
    """Budget, approval and the rest hold for each request; another library's word is refused when the loop is made."""
    loop = Trips(ScriptedAdapter(calls(look={"city": "Paris"})), options=[look], budget=Budget(turns=1))
    with pytest.raises(BudgetExhausted):
        loop.execute_sync("Paris")
    assert [record.role for record in loop.sessions[0].select_all(InnerMessage)] == [
        "system",
        "user",
        "assistant",
        "tool",
    ]
    with pytest.raises(sabir.errors.Misnamed):
        Trips(ScriptedAdapter(), tools=[look])


def test_a_loop_without_prompts_is_none() -> None:
    """WI-52: `create_prompt` is abstract."""
    with pytest.raises(TypeError, match="create_prompt"):
        MainLoop(ScriptedAdapter())  # type: ignore[abstract]
