"""Timeouts and limits of callers and workers. All times are in seconds.

caller   send ──acceptance──▶ accepted ──silence──▶ beat ──silence──▶ … ──▶ answer          all within timeout
worker        ◀─accept_after─┘         └──beat────▶
"""

from typing import Annotated

from pydantic import AfterValidator, Field
from sabir.authoring import Frozen

from sabir_runtime.distributed.access import Access
from sabir_runtime.distributed.envelopes import LARGEST
from sabir_runtime.distributed.subjects import INBOXES, check_inbox

Inbox = Annotated[str, AfterValidator(check_inbox)]
Seconds = float
"""A duration in seconds on a monotonic clock. Clocks of two machines are never compared."""


class CallSettings(Frozen):
    """Timeouts and limits of a DistributedRunner. All times are in seconds.

    >>> from sabir_runtime.distributed import CallSettings
    >>> CallSettings(timeout=60).attempts
    3
    """

    timeout: Seconds = Field(default=300.0, gt=0, allow_inf_nan=False)
    """The maximum time of one call, including all attempts. After that, the call raises RequestTimedOut."""
    acceptance: Seconds = Field(default=5.0, gt=0)
    """The maximum time until a worker answers or accepts a request. After that, another worker is tried."""
    silence: Seconds = Field(default=5.0, gt=0)
    """The maximum time between two reports of a worker that accepted. After that, the worker counts as dead.

    The caller waits at least three of the worker's `beat` intervals.
    """
    attempts: int = Field(default=3, ge=1)
    """The number of workers that a request is given to, one after another, before the call raises WorkerLost."""
    patience: Seconds = Field(default=10.0, ge=0)
    """The time to wait for a worker or the server if none is there. After that: NoWorkers or NoServer."""
    in_flight: int = Field(default=256, ge=1)
    """The maximum number of simultaneous requests of the runner. Further calls wait, at most `timeout`."""
    compress_above: int = Field(default=256 * 1024, ge=0)
    """The size in bytes above which a request is compressed."""
    largest: int = Field(default=LARGEST, ge=1)
    """The maximum size of an answer in bytes, decompressed."""
    inbox: Inbox = INBOXES
    """The prefix of the subject on which answers arrive.

    With a prefix of your own, the server's permissions can keep other users from reading the answers. The workers'
    settings need the same prefix.
    """
    access: Access = Access()
    """Credentials and certificates for the server."""


class WorkerSettings(Frozen):
    """Limits and intervals of a Worker. All times are in seconds.

    >>> from sabir_runtime.distributed import WorkerSettings
    >>> WorkerSettings(concurrency=4).waiting
    256
    """

    concurrency: int = Field(default=32, ge=1)
    """The maximum number of requests that run at the same time."""
    waiting: int = Field(default=256, ge=0)
    """The maximum number of further requests in the worker's queue. Callers send other requests again later."""
    accept_after: Seconds = Field(default=0.05, ge=0)
    """The time after which the worker confirms a request that it has not answered yet."""
    beat: Seconds = Field(default=1.0, gt=0)
    """The interval of reports to callers that their requests are still in work."""
    drain: Seconds = Field(default=30.0, ge=0)
    """The time for running requests to finish after `stop`. After that, they are cancelled and go to other workers."""
    patience: Seconds = Field(default=60.0, ge=0)
    """The time to wait for the server when it cannot be reached. After that, `run` raises NoServer."""
    compress_above: int = Field(default=256 * 1024, ge=0)
    """The size in bytes above which an answer is compressed."""
    largest: int = Field(default=LARGEST, ge=1)
    """The maximum size of a request in bytes, decompressed."""
    held: int = Field(default=8 * LARGEST, ge=1)
    """The maximum total size in bytes of running and queued requests. Callers send other requests again later."""
    longest: Seconds = Field(default=86_400.0, gt=0, allow_inf_nan=False)
    """The maximum time of one request, even if the caller's timeout is longer."""
    inbox: Inbox = INBOXES
    """The prefix of callers' inboxes. The worker answers only to subjects with this prefix or with `_INBOX`."""
    access: Access = Access()
    """Credentials and certificates for the server."""
