"""The durable runner, of the extra `durable`: runs that survive a crash, on SQLite or Postgres.

runner ─▶ execution ─▶ ledger         the batch and the result of each bound call
   └─▶ worker ─▶ engine (DBOS)        the runs, their workers and their states
          └─▶ recover ─▶ leases       whose worker is dead
"""

from typing import TYPE_CHECKING

from sabir_runtime.extras import lazy_names

if TYPE_CHECKING:
    from sabir_runtime.durable.errors import (
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
    from sabir_runtime.durable.execution import decision, holds_run
    from sabir_runtime.durable.runner import DurableRunner
    from sabir_runtime.durable.runs import Runs
    from sabir_runtime.durable.views import CallRecord, CallState, RunDetails, RunState, RunSummary

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

_MODULE_OF = dict.fromkeys(__all__, "errors") | {
    **dict.fromkeys(("decision", "holds_run"), "execution"),
    "DurableRunner": "runner",
    "Runs": "runs",
    **dict.fromkeys(("CallRecord", "CallState", "RunDetails", "RunState", "RunSummary"), "views"),
}
"""The modules of the public names; looking at runs needs no engine."""
__getattr__ = lazy_names(__name__, _MODULE_OF)
