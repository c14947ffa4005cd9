"""How an evaluation can end other than with a response.

SabirError
├── ConversationNotFound    resume, but nothing was recorded (ValueError)
├── PromptMismatch          resume with another prompt than the recorded one (ValueError)
├── ApprovalPending         calls wait for a person; carries them
└── BudgetExhausted         a limit is reached; carries the response so far

After the last two, and after any error of a call, a session holds what was done: `resume=True` goes on from there.
"""

from decimal import Decimal
from typing import TYPE_CHECKING, Any

from sabir import SabirError
from sabir.authoring import OptionCall

if TYPE_CHECKING:
    from sabir_session.evaluation.prompts import PromptResponse


class ConversationNotFound(SabirError, ValueError):
    """There is nothing to resume."""


class PromptMismatch(SabirError, ValueError):
    """The prompt differs from the recorded conversation's: in namespace and key, or without these in content."""


class ApprovalPending(SabirError):
    """Calls wait for a person's approval; all others have run and are recorded.

    `calls` are the waiting calls. Resume the evaluation to call `approve` for them again.
    """

    def __init__(self, message: str, *, calls: tuple[OptionCall, ...], evaluation_id: str) -> None:
        super().__init__(message)
        self.calls = calls
        self.evaluation_id = evaluation_id


class BudgetExhausted(SabirError):
    """A limit of a budget is reached, or what was spent of it is not known; the next provider call was not made.

    `limit` names it ("turns", "tokens", "seconds", "cost"), `allowed` and `spent` are its figures, `spent` is None if
    a provider did not report it. `response` is the evaluation so far, None if no reply has come and for an adapter of
    `within`. `running` are the calls that were given up when the time was over, and whose options still run.
    """

    def __init__(
        self,
        limit: str,
        allowed: float | Decimal,
        spent: float | Decimal | None,
        *,
        running: tuple[OptionCall, ...] = (),
    ) -> None:
        figures = "what was spent is not known" if spent is None else f"{spent} spent"
        names = ", ".join(call.call.option_name for call in running)
        figures += f", and nobody waits any more for {names}, still running" if running else ""
        remedy = f"raise it with Budget({limit}=…), and resume"
        super().__init__(f"the budget of {allowed} {limit} is exhausted: {figures}; {remedy}")
        self.limit = limit
        self.allowed = allowed
        self.spent = spent
        self.running = running
        self.response: PromptResponse[Any] | None = None
