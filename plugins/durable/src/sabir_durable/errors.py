"""What can go wrong with durable runs, beside what policies themselves raise.

RuntimeFault
└── DurableFault
    ├── StoreInvalid      no URL of a store, or a store that a newer version wrote (ValueError)
    ├── RunnerInUse       this process runs its engine already, with other settings
    ├── RunNotFound       no run of that name (LookupError)
    ├── RunConflict       what was asked for does not fit the state that a run is in
    └── RunStopped        a run ends here without a result
        ├── RunTaken      another worker has it now
        ├── RunCancelled
        └── RunPaused
"""

from sabir_runtime.errors import RuntimeFault


class DurableFault(RuntimeFault):
    """A fault of durable runs."""


class StoreInvalid(DurableFault, ValueError):
    """What was given as a store is none, cannot be reached, or was written by a newer version."""


class RunnerInUse(DurableFault):
    """The engine serves one store in each process, and serves another one already."""


class RunNotFound(DurableFault, LookupError):
    """The store holds no run, or no call, of that name."""


class RunConflict(DurableFault):
    """What was asked for does not fit the state that a run is in."""


class RunStopped(DurableFault):
    """A run ends here without a result."""


class RunTaken(RunStopped):
    """Another worker carries this run on: what this one still writes is refused."""


class RunCancelled(RunStopped):
    """The run was cancelled."""


class RunPaused(RunStopped):
    """The run is paused, by somebody or because its code no longer fits what it recorded."""
