"""The errors of durable runs. Policies raise their own errors, see `sabir_runtime.failures`.

RuntimeFault
└── DurableFault
    ├── StoreInvalid      a wrong URL, an unreachable database, or a store of a newer version (ValueError)
    │   └── RowRefused    another program changed a row of the store
    ├── RunnerInUse       this process already has a DurableRunner with other settings
    ├── RunNotFound       no run has this name (LookupError)
    ├── RunConflict       the run's state does not allow the request
    └── RunStopped        a run stopped here without a result
        ├── RunTaken      another worker has the run now, or the runner was closed
        ├── RunCancelled
        └── RunPaused
"""

from sabir_runtime.failures import RuntimeFault


class DurableFault(RuntimeFault):
    """The base class of the errors of durable runs and their store."""


class StoreInvalid(DurableFault, ValueError):
    """Raised if a store's URL is wrong, its database cannot be used, or a newer version has written the store."""


class RowRefused(StoreInvalid):
    """Raised if a row of the store contains a value that this package did not write. The value was not loaded.

    Loading such a value, for example a pickle, could run foreign code. If the value is the stored input of a run, a
    worker pauses the run. `run` is the name of the run, or None if it is not known. `detail` is the message without the
    run's name.
    """

    def __init__(self, detail: str, run: str | None = None) -> None:
        super().__init__(detail if run is None else f"run {run!r}: {detail}")
        self.detail, self.run = detail, run


class RunnerInUse(DurableFault):
    """Raised if this process already has an open DurableRunner with other settings. Close that runner first.

    Also raised if other code has started DBOS in this process.
    """


class RunNotFound(DurableFault, LookupError):
    """Raised if the store has no run with this name, or the run has no call with this path."""


class RunConflict(DurableFault):
    """Raised if the state of a run does not allow a request, for example resuming a run that is done.

    Also raised for an invalid run name, if the name belongs to another application's run or is used already, and if no
    worker serves the run's version.
    """


class RunStopped(DurableFault):
    """The base class of the errors for a run that stopped without a result: RunTaken, RunCancelled and RunPaused."""


class RunTaken(RunStopped):
    """Raised if this process no longer has the run: another worker continues it, or the runner was closed.

    The store refuses further records of this process for the run. If the runner was closed, launch a runner to continue
    the run.
    """


class RunCancelled(RunStopped):
    """Raised to the caller who awaits a run that was cancelled. `Runs.resume` continues the run."""


class RunPaused(RunStopped):
    """Raised to the caller who awaits a run that was paused. `Runs.resume` continues the run.

    A run is paused by `Runs.pause`, or because of a fault that the message names, for example that many workers died
    while they performed the run. For some faults, the caller receives RowRefused or ReplayMismatch instead.
    """
