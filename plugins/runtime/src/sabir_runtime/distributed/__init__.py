"""Policies performed by worker processes, connected by a NATS server. Needs the extra `distributed`."""

from typing import TYPE_CHECKING

from sabir_runtime.extras import lazy_names

if TYPE_CHECKING:
    from sabir_runtime.distributed.access import Access
    from sabir_runtime.distributed.errors import (
        AccessInvalid,
        AccessRefused,
        EnvelopeInvalid,
        NoServer,
        NoWorkers,
        PayloadTooLarge,
        RequestTimedOut,
        RunnerClosed,
        WorkerLost,
    )
    from sabir_runtime.distributed.runner import DistributedRunner
    from sabir_runtime.distributed.settings import CallSettings, WorkerSettings
    from sabir_runtime.distributed.worker import Worker

__all__ = [
    "Access",
    "AccessInvalid",
    "AccessRefused",
    "CallSettings",
    "DistributedRunner",
    "EnvelopeInvalid",
    "NoServer",
    "NoWorkers",
    "PayloadTooLarge",
    "RequestTimedOut",
    "RunnerClosed",
    "Worker",
    "WorkerLost",
    "WorkerSettings",
]

_MODULE_OF = dict.fromkeys(__all__, "errors") | {
    "Access": "access",
    **dict.fromkeys(("CallSettings", "WorkerSettings"), "settings"),
    "DistributedRunner": "runner",
    "Worker": "worker",
}
"""The modules of the public names."""
__getattr__ = lazy_names(__name__, _MODULE_OF)
