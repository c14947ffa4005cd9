"""A prompt, options for it, and a town in which its evaluation can be interrupted."""

from typing import Any

import pytest
import sabir
from sabir import ToolContext
from sabir_session import Session
from sabir_session.evaluation.evaluate import evaluate_sync
from sabir_session.evaluation.prompts import Prompt, PromptResponse
from sabir_testing.scripted import ScriptedAdapter

from tests.session.journals import ListJournal, recording

PROMPT: Prompt[None] = Prompt(ns="trips", key="umbrella", system="Be brief.", messages=[sabir.user("Umbrella today?")])
PARIS, ROME = {"city": "Paris"}, {"city": "Rome"}


@sabir.option
def weather(city: str) -> str:
    "Current weather in a city."
    return f"rain in {city}"


@sabir.option
async def tide(city: str) -> str:
    "The tide in a city."
    return f"low in {city}"


class Stopped(BaseException):
    """The process ends here."""


class Town:
    """Two options that log their runs; one of them can be made to end the process."""

    def __init__(self, *, stops: str = "") -> None:
        self.ran: list[tuple[str, bool]] = []
        self._stops = stops

    def weather(self, city: str) -> str:
        """Current weather in a city."""
        if city == self._stops:
            raise Stopped
        context = ToolContext.current()
        self.ran.append((context.call_id, context.is_resume))
        return f"rain in {city}"

    def run(
        self, llm: sabir.Adapter, session: Session, *, resume: bool = False, evaluation_id: str | None = None
    ) -> PromptResponse[None]:
        """Evaluate, waiting."""
        return evaluate_sync(
            llm, PROMPT, session=session, options=[self.weather], resume=resume, evaluation_id=evaluation_id
        )


def interrupted(journal: ListJournal, *answers: Any, stops: str = "Rome") -> Town:
    """A town whose process ended while the weather in that city was looked up."""
    town = Town(stops=stops)
    with pytest.raises(Stopped):
        town.run(ScriptedAdapter(*answers), recording(journal))
    return town
