"""The names of errors in a store: in the column `fault` of `sabir_runs`, and in the errors that the engine stores.

    ReplayMismatch("run 'r' …")  ──fault_text──▶  "ReplayMismatch: run 'r' …"  ──parse_fault──▶  a ReplayMismatch

A stored name belongs to the format of the store, not to a class: a class that is renamed or moved keeps its name here.
"""

from sabir_runtime.durable.errors import DurableFault, RowRefused, RunConflict, RunNotFound, StoreInvalid
from sabir_runtime.failures import PolicyFailed, PolicyInvalid, ReplayMismatch

NAMES: dict[type[Exception], str] = {
    RowRefused: "RowRefused",
    StoreInvalid: "StoreInvalid",
    RunNotFound: "RunNotFound",
    RunConflict: "RunConflict",
    DurableFault: "DurableFault",
    ReplayMismatch: "ReplayMismatch",
    PolicyFailed: "PolicyFailed",
    PolicyInvalid: "PolicyInvalid",
}
"""Class of errors → its name in stores. A class precedes its base classes."""
OTHER = "Error"
"""The stored name of all other errors. The engine stores it with a text that begins with the error's class name."""
_RAISED: dict[str, type[ReplayMismatch | RowRefused]] = {
    "RowRefused": RowRefused,
    "ReplayMismatch": ReplayMismatch,
}
"""Stored name of a fault → the error that the caller of a paused run receives. For other faults it is RunPaused."""


def fault_name(fault: BaseException) -> str:
    """Return the stored name of an error: the name of its nearest class in `NAMES`, else `OTHER`."""
    return next((name for kind, name in NAMES.items() if isinstance(fault, kind)), OTHER)


def fault_text(fault: Exception) -> str:
    """Return the text that is stored for a fault: its stored name and its message."""
    return f"{fault_name(fault)}: {fault}"


def parse_fault(text: str | None) -> Exception | None:
    """Return the RowRefused or ReplayMismatch that a stored fault describes; None for any other fault, or no fault."""
    name, _, detail = (text or "").partition(": ")
    kind = _RAISED.get(name)
    return None if kind is None else kind(detail)
