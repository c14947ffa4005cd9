"""A durable runner for sabir: runs that survive a crash, on SQLite or Postgres.

runner ─▶ execution ─▶ ledger         the batch and the result of each bound call
   └─▶ worker ─▶ engine (DBOS)        the runs, their workers and their states
          └─▶ recover ─▶ leases       whose worker is dead
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sabir_durable.errors import (
        DurableFault,
        RowRefused,
        RunCancelled,
        RunConflict,
        RunnerInUse,
        RunNotFound,
        RunPaused,
        RunStopped,
        RunTaken,
        StoreInvalid,
    )
    from sabir_durable.execution import decision, holds_run
    from sabir_durable.runner import DurableRunner
    from sabir_durable.runs import Runs
    from sabir_durable.views import CallRecord, CallState, RunDetails, RunState, RunSummary

__all__ = [
    "CallRecord",
    "CallState",
    "DurableFault",
    "DurableRunner",
    "RowRefused",
    "RunCancelled",
    "RunConflict",
    "RunDetails",
    "RunNotFound",
    "RunPaused",
    "RunState",
    "RunStopped",
    "RunSummary",
    "RunTaken",
    "RunnerInUse",
    "Runs",
    "StoreInvalid",
    "decision",
    "holds_run",
]


_ELSEWHERE = {
    **dict.fromkeys(("decision", "holds_run"), "execution"),
    "DurableRunner": "runner",
    "Runs": "runs",
    **dict.fromkeys(("CallRecord", "CallState", "RunDetails", "RunState", "RunSummary"), "views"),
}
"""The modules of public names other than errors."""


def __getattr__(name: str) -> Any:
    """A public name; its module is loaded at its first use, because looking at runs needs no engine."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_ELSEWHERE.get(name, 'errors')}"), name)
