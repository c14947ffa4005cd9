"""What can go wrong with policies, contexts and runners.

SabirError
└── RuntimeFault
    ├── PolicyInvalid     what was bound is no policy, or gave no batch (TypeError)
    ├── UnknownOption     an option's name that its context does not bind (ValueError)
    ├── PolicyFailed      a policy failed where it ran, elsewhere or earlier
    ├── LoopLimit         a policy chose options as often as its loop allows
    └── ReplayMismatch    a recorded run and its code no longer agree
"""

from typing import Self

from sabir import OptionFailed, SabirError
from sabir.execution import is_retryable


class RuntimeFault(SabirError):
    """A fault of policies, contexts or runners."""


class PolicyInvalid(RuntimeFault, TypeError):
    """What was bound is no policy, is bound twice, or returned no batch of messages."""


class UnknownOption(RuntimeFault, ValueError):
    """An option was named that the context does not bind (RN-19)."""


class PolicyFailed(RuntimeFault, OptionFailed):
    """A policy failed in another process or in an earlier one (RN-31).

    `error_type` is the class of what it raised there, `error_message` what that said, `retryable` whether asking
    again may help.
    """

    @classmethod
    def of(cls, error: Exception) -> Self:
        """The failure that an exception of a policy stands for, as it is recorded or sent."""
        if isinstance(error, OptionFailed):
            return cls(error.error_type, error.error_message, retryable=is_retryable(error))
        return cls(type(error).__name__, str(error) or type(error).__name__, retryable=is_retryable(error))


class LoopLimit(RuntimeFault):
    """A policy chose options as often as its loop allows, and was stopped."""


class ReplayMismatch(RuntimeFault):
    """A recorded run meets code or arguments other than those it was recorded with (D-11)."""
