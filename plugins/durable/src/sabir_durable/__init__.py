"""A durable runner for sabir: runs that survive a crash, on SQLite or Postgres.

runner ─▶ execution ─▶ ledger         what each bound call chose and gave
   └─▶ worker ─▶ engine (DBOS)        which runs there are, who has them, in what state they are
          └─▶ recovery ─▶ leases      whose worker is dead
"""

from typing import TYPE_CHECKING, Any

from sabir_durable.decisions import decision
from sabir_durable.errors import (
    DurableFault,
    RunCancelled,
    RunConflict,
    RunnerInUse,
    RunNotFound,
    RunPaused,
    RunStopped,
    RunTaken,
    StoreInvalid,
)
from sabir_durable.runner import DurableRunner
from sabir_durable.views import CallRecord, CallState, RunDetails, RunState, RunSummary

if TYPE_CHECKING:
    from sabir_durable.runs import Runs

__all__ = [
    "CallRecord",
    "CallState",
    "DurableFault",
    "DurableRunner",
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
]


def __getattr__(name: str) -> Any:
    """`Runs`, whose engine is not imported before somebody asks for it."""
    if name == "Runs":
        from sabir_durable.runs import Runs

        return Runs
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
