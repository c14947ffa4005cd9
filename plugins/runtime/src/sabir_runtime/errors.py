"""The errors of policies, contexts and runners.

SabirError
└── RuntimeFault
    ├── PolicyInvalid     not a policy, or a policy that returned no batch (TypeError)
    ├── UnknownOption     an option's name that its context does not bind (ValueError)
    ├── PolicyFailed      a policy failed; in `failures`
    ├── LoopLimit         a policy chose options as often as its loop allows
    └── ReplayMismatch    a recorded run and its code no longer agree
"""

from sabir import SabirError


class RuntimeFault(SabirError):
    """A fault of policies, contexts or runners."""


class PolicyInvalid(RuntimeFault, TypeError):
    """A bound object is not a policy, is bound twice, or returned no batch of messages."""


class UnknownOption(RuntimeFault, ValueError):
    """An option was named that the context does not bind."""


class LoopLimit(RuntimeFault):
    """A policy chose options as often as its loop allows, and was stopped."""


class ReplayMismatch(RuntimeFault):
    """A recorded run was repeated with other code or other arguments."""
