"""A durable runner for sabir: runs that survive a crash, on SQLite or Postgres.

runner ─▶ execution ─▶ ledger         what each bound call chose and gave
   └─▶ worker ─▶ engine (DBOS)        which runs there are, who has them, in what state they are
          └─▶ recovery ─▶ leases      whose worker is dead
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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
    from sabir_durable.execution import holds_run
    from sabir_durable.runner import DurableRunner
    from sabir_durable.runs import Runs
    from sabir_durable.views import CallRecord, CallState, RunDetails, RunState, RunSummary

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
    "holds_run",
]


_ELSEWHERE = {
    "decision": "decisions",
    "holds_run": "execution",
    "DurableRunner": "runner",
    "Runs": "runs",
    **dict.fromkeys(("CallRecord", "CallState", "RunDetails", "RunState", "RunSummary"), "views"),
}
"""Where the public names are that are not errors."""


def __getattr__(name: str) -> Any:
    """A public name; its module is loaded when somebody asks for it, for to look at runs takes no engine."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_ELSEWHERE.get(name, 'errors')}"), name)
