"""The errors of durable runs, beside the errors of policies.

RuntimeFault
└── DurableFault
    ├── StoreInvalid      not a store's URL, or a store of a newer version (ValueError)
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
