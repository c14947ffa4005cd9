"""A distributed runner for sabir: policies spread over workers, through NATS."""

from sabir_distributed.access import Access
from sabir_distributed.errors import (
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
from sabir_distributed.runner import DistributedRunner
from sabir_distributed.settings import CallSettings, WorkerSettings
from sabir_distributed.worker import Worker

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
