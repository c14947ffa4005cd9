"""The errors of durable runs, beside the errors of policies.

RuntimeFault
└── DurableFault
    ├── StoreInvalid      not a store's URL, or a store of a newer version (ValueError)
    │   └── RowRefused    another program changed a row of the store
    ├── RunnerInUse       this process already runs its engine with other settings
    ├── RunNotFound       no run of that name (LookupError)
    ├── RunConflict       the request does not fit the run's state
    └── RunStopped        a run ends here without a result
        ├── RunTaken      another worker has the run now
        ├── RunCancelled
        └── RunPaused
"""

from sabir_runtime.failures import RuntimeFault


class DurableFault(RuntimeFault):
    """A fault of durable runs."""


class StoreInvalid(DurableFault, ValueError):
    """The given store is not a store, cannot be reached, or was written by a newer version."""


class RowRefused(StoreInvalid):
    """A row of the store holds a value that this package did not write, such as a pickle, and the value was not loaded.

    `run` is the run's name, `detail` the rest of the message.
    """

    def __init__(self, detail: str, run: str | None = None) -> None:
        super().__init__(detail if run is None else f"run {run!r}: {detail}")
        self.detail, self.run = detail, run


class RunnerInUse(DurableFault):
    """The engine serves one store in each process, and already serves another one."""


class RunNotFound(DurableFault, LookupError):
    """The store holds no run, or no call, of that name."""


class RunConflict(DurableFault):
    """The request does not fit the run's state."""


class RunStopped(DurableFault):
    """A run ends here without a result."""


class RunTaken(RunStopped):
    """Another worker continues this run: writes of this worker are refused."""


class RunCancelled(RunStopped):
    """The run was cancelled."""


class RunPaused(RunStopped):
    """The run is paused, on request or because its code no longer fits its records."""
