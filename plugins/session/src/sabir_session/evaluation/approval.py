"""Approval of option calls by a person.

    call ──approve──▶ "allow" ──▶ the option runs
                  ├─▶ "deny" ───▶ an error result of type "denied", by the policy "human"
                  └─▶ "wait" ───▶ ApprovalPending, after the reply's other calls have run; a resume asks again

A call that waits is recorded as pending and as needing approval, so it waits after a restart too. A resume without
`approve` raises ApprovalPending and runs no call of that reply. The program stores the decisions of its users itself.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from sabir import Message, OptionResultBuilder, SettingsInvalid
from sabir.authoring import JSONValue, OptionCall, encode_json, one_line
from typing_extensions import TypeAliasType

DecisionWord: TypeAlias = Literal["allow", "deny", "wait"]

DENIED = "denied"
"""The error type of the result of an option call that a person denied."""
HUMAN = "human"
"""The policy of the results of option calls that a person denied."""


@dataclass(frozen=True)
class Decision:
    """A person's decision about one option call, with a reason or other arguments. An `approve` function returns it.

    `kind` is "allow" to run the call, "deny" to send the model an error result instead, or "wait" to leave the call
    open, which raises ApprovalPending. `reason` is the reason of a denial, which is sent to the model. `arguments` are
    the arguments with which an allowed call runs; None means the model's own arguments. The recorded call has the
    model's own arguments in any case.

    Raises SettingsInvalid for an unknown kind, and for arguments of a call that is not allowed.
    """

    kind: DecisionWord
    reason: str = ""
    arguments: Mapping[str, JSONValue] | None = None

    def __post_init__(self) -> None:
        """Raise SettingsInvalid for an invalid decision."""
        if self.kind not in ("allow", "deny", "wait"):
            raise SettingsInvalid(f"{self.kind!r} is not a decision; expected 'allow', 'deny', 'wait' or a Decision")
        if self.arguments is not None and self.kind != "allow":
            raise SettingsInvalid(f"Decision({self.kind!r}) cannot have arguments; only an allowed call runs")


DecisionLike: TypeAlias = Decision | DecisionWord
Approve = TypeAliasType("Approve", Callable[[OptionCall], DecisionLike | Awaitable[DecisionLike]])
"""A function that gets an option call before the call runs, and returns "allow", "deny", "wait" or a Decision. In async
evaluations, the function may be a coroutine function, and any other function is called in a thread."""


def as_decision(decided: object) -> Decision:
    """Return the result of `approve` as a Decision. Raises SettingsInvalid for an invalid result."""
    if isinstance(decided, Decision):
        return decided
    if isinstance(decided, str):
        return Decision(decided)  # type: ignore[arg-type]  # Decision checks the word
    name = type(decided).__name__
    raise SettingsInvalid(f"approve() returned a value of type {name}; expected 'allow', 'deny', 'wait' or a Decision")


def apply_decision(call: OptionCall, decision: Decision | None) -> OptionCall:
    """Return the call with the arguments of the decision; unchanged if the decision has none."""
    if decision is None or decision.arguments is None:
        return call
    fields = {"arguments": encode_json(dict(decision.arguments)), "raw_arguments": None}
    payload = call.call.model_copy(update={**fields, "invalid_arguments": False, "cut_off": False})
    return call.model_copy(update={"payload": payload})


def denial_result(call: Message, decision: Decision) -> Message:
    """Return the error result of a denied call, which is recorded and sent to the model."""
    reason = one_line(decision.reason) or "a person denied this call"
    return OptionResultBuilder.response_to(call, policy=HUMAN).error(DENIED, reason)
