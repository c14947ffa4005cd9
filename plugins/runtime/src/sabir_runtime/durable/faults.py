"""The names of errors in a store: in the column `fault` of `sabir_runs`, and in the errors that the engine stores.

    ReplayMismatch("run 'r' …")  ──fault_text──▶  "ReplayMismatch: run 'r' …"  ──parse_fault──▶  an equal error

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
"""Class → its name in stores; the class before its bases."""
OTHER = "Error"
"""The stored name of any other error, whose class is in the text after it."""
_RAISED: dict[str, type[ReplayMismatch | RowRefused]] = {
    "RowRefused": RowRefused,
    "ReplayMismatch": ReplayMismatch,
}
"""Stored names of faults that the caller of a paused run gets; of other faults the caller gets RunPaused."""


def fault_name(fault: BaseException) -> str:
    """Return the stored name of an error: that of its nearest class with one."""
    return next((name for kind, name in NAMES.items() if isinstance(fault, kind)), OTHER)


def fault_text(fault: Exception) -> str:
    """Return the text that is stored for a fault."""
    return f"{fault_name(fault)}: {fault}"


def parse_fault(text: str | None) -> Exception | None:
    """Return the error that the caller of a paused run gets for a stored fault; None if that is RunPaused."""
    name, _, detail = (text or "").partition(": ")
    kind = _RAISED.get(name)
    return None if kind is None else kind(detail)
