"""A program's own loop: requests in, responses out, each with a session that records.

class Support(MainLoop[Ticket, Answer]):
    def create_prompt(self, ticket):
        return Prompt(ns="support", key="ticket", system=RULES, messages=[…], output=Answer)

response = await Support(llm, options=[search]).execute(ticket)

The caller decides where a session is stored: give one with a journal, or observe it.
"""

from abc import ABC, abstractmethod
from typing import Generic, TypeVar, Unpack

from sabir import Adapter, Settings

from sabir_session.evaluation.evaluate import (
    EvaluateArguments,
    EvaluationArguments,
    SessionArguments,
    evaluate,
    evaluate_sync,
)
from sabir_session.evaluation.prompts import Output, Prompt, PromptResponse
from sabir_session.state.session import Session

Request = TypeVar("Request")


class MainLoop(ABC, Generic[Request, Output]):
    """Evaluates the prompts that a subclass makes from requests, all with the same adapter and arguments."""

    def __init__(self, adapter: Adapter, **how: Unpack[EvaluationArguments]) -> None:
        """The manner is that of `evaluate`; each evaluation has a session of its own."""
        Settings.refuse_misnamed(type(self).__name__, how, tuple(EvaluationArguments.__annotations__))
        self._adapter = adapter
        self._how = how

    @abstractmethod
    def create_prompt(self, request: Request) -> Prompt[Output]:
        """The prompt of a request; the same one for the same request, so that it can be resumed."""

    def create_session(self) -> Session:
        """The session of a new evaluation; a subclass may give it a journal."""
        return Session()

    async def execute(self, request: Request, **where: Unpack[SessionArguments]) -> PromptResponse[Output]:
        """Evaluate a request, in a session of its own or in the one given; raises what `evaluate` raises.

        `resume` goes on with the latest evaluation of the session given, or with the one that `evaluation_id` names.
        """
        return await evaluate(self._adapter, self.create_prompt(request), **self._told(where))

    def execute_sync(self, request: Request, **where: Unpack[SessionArguments]) -> PromptResponse[Output]:
        """As `execute`, waiting."""
        return evaluate_sync(self._adapter, self.create_prompt(request), **self._told(where))

    def _told(self, where: SessionArguments) -> EvaluateArguments:
        where["session"] = where.get("session") or self.create_session()
        return EvaluateArguments(**self._how, **where)
