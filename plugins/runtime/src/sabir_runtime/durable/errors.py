"""The errors of durable runs. Policies raise their own errors, see `sabir_runtime.failures`.

RuntimeFault
└── DurableFault
    ├── StoreInvalid      a wrong URL or application name, an unusable database, or a newer store (ValueError)
    │   └── RowRefused    a value in the store was written by another program
    ├── RunnerInUse       this process already has a DurableRunner with other settings
    ├── RunNotFound       no run has this name (LookupError)
    ├── RunConflict       the run's state or name does not allow the request
    └── RunStopped        a run stopped without a result
        ├── RunTaken      this process no longer has the run
        ├── RunCancelled
        └── RunPaused
"""

from sabir_runtime.failures import RuntimeFault


class DurableFault(RuntimeFault):
    """The base class of the errors of durable runs and their store."""


class StoreInvalid(DurableFault, ValueError):
    """Raised if a store's URL is wrong, its database cannot be used, or a newer version has written the store.

    Also raised if the database has no tables of runs, and for a wrong application name. Also a ValueError.
    """


class RowRefused(StoreInvalid):
    """Raised if a value in the store is not in the JSON serialization of this package. The value was not loaded.

    Loading a value of another program, for example a pickle, could run foreign code. If the value is the stored input
    of a run, a worker pauses the run. `run` is the name of the run, or None. `detail` is the message, without the run's
    name if `run` is set.
    """

    def __init__(self, detail: str, run: str | None = None) -> None:
        super().__init__(detail if run is None else f"run {run!r}: {detail}")
        self.detail, self.run = detail, run


class RunnerInUse(DurableFault):
    """Raised if this process has already launched a DurableRunner with other settings. Close that runner first.

    Also raised if other code has started DBOS in this process.
    """


class RunNotFound(DurableFault, LookupError):
    """Raised if the store has no run with this name, or the run has no call with this path. Also a LookupError."""


class RunConflict(DurableFault):
    """Raised if the state of a run does not allow a request, for example resuming a run that is done.

    Also raised for an invalid run name, if the name belongs to another application's run, if the name for a fork is
    used already, if no worker serves the run's version, if a run ended without a result, and by `DurableRunner.run`
    inside a run.
    """


class RunStopped(DurableFault):
    """The base class of the errors for a run that stopped without a result: RunTaken, RunCancelled and RunPaused."""


class RunTaken(RunStopped):
    """Raised if this process no longer has the run: it was stopped, another worker took it, or the runner was closed.

    If the run was stopped or taken, the store refuses further records of this process for the run. If the runner was
    closed, launch a runner to continue the run.
    """


class RunCancelled(RunStopped):
    """Raised to the caller who awaits a run that was cancelled. `Runs.resume` continues the run."""


class RunPaused(RunStopped):
    """Raised to the caller who awaits a run that was paused. `Runs.resume` continues the run.

    A run is paused by `Runs.pause`, or because of a fault that the message names, for example that many workers died
    while they performed the run. For some faults, the caller receives RowRefused or ReplayMismatch instead.
    """
