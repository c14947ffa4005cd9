"""A program's own loop: requests in, responses out, each with a session that records (WI-52).

class Support(MainLoop[Ticket, Answer]):
    def create_prompt(self, ticket):
        return Prompt(ns="support", key="ticket", system=RULES, messages=[…], output=Answer)

response = await Support(llm, options=[search]).execute(ticket)

Where a session is kept is the caller's business: give one with a journal, or observe it.
"""

from abc import ABC, abstractmethod
from typing import Generic, TypeVar, Unpack

from sabir import Adapter
from sabir.vocabulary.settings import refuse_misnamed
from sabir_session import Session

from sabir_runtime.evaluate import EvaluateArguments, EvaluationArguments, evaluate, evaluate_sync
from sabir_runtime.prompt import Output, Prompt
from sabir_runtime.response import PromptResponse

Request = TypeVar("Request")


class MainLoop(ABC, Generic[Request, Output]):
    """Evaluates the prompts that a subclass makes of requests, all with the adapter and in the manner given."""

    def __init__(self, adapter: Adapter, **how: Unpack[EvaluationArguments]) -> None:
        """The manner is that of `evaluate`; each evaluation has a session of its own."""
        refuse_misnamed(type(self).__name__, how, tuple(EvaluationArguments.__annotations__))
        self._adapter = adapter
        self._how = how

    @abstractmethod
    def create_prompt(self, request: Request) -> Prompt[Output]:
        """The prompt of a request; the same one for the same request, so that it can be resumed."""

    def create_session(self) -> Session:
        """The session of a new evaluation; a subclass may give it a journal."""
        return Session()

    async def execute(
        self,
        request: Request,
        *,
        session: Session | None = None,
        resume: bool = False,
        evaluation_id: str | None = None,
    ) -> PromptResponse[Output]:
        """Evaluate a request, in a session of its own or in the one given; raises what `evaluate` raises (D-18).

        `resume` goes on with the latest evaluation of the session given, or with the one that `evaluation_id` names.
        """
        how = self._told(session, resume, evaluation_id)
        return await evaluate(self._adapter, self.create_prompt(request), **how)

    def execute_sync(
        self,
        request: Request,
        *,
        session: Session | None = None,
        resume: bool = False,
        evaluation_id: str | None = None,
    ) -> PromptResponse[Output]:
        """As `execute`, waiting."""
        how = self._told(session, resume, evaluation_id)
        return evaluate_sync(self._adapter, self.create_prompt(request), **how)

    def _told(self, session: Session | None, resume: bool, evaluation_id: str | None) -> EvaluateArguments:
        where = session or self.create_session()
        return EvaluateArguments(**self._how, session=where, resume=resume, evaluation_id=evaluation_id)
