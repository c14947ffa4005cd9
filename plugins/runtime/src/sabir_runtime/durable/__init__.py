"""Runs of policies that continue after a crash, with records in SQLite or Postgres. Needs the extra `durable`.

A run is one call of a policy from outside, with all calls that the policy makes.

runner ─▶ execution ─▶ ledger         stores the batch and the result of each bound call
   └─▶ worker ─▶ engine (DBOS)        the runs, their workers and their states
          └─▶ recover ─▶ leases       finds the runs of dead workers
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
"""The modules of the public names. Importing `Runs` does not import the engine."""
__getattr__ = lazy_names(__name__, _MODULE_OF)
