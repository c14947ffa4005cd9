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
    """The maximum time of one call, including all attempts, but not the time to connect. After that, the call raises
    RequestTimedOut."""
    acceptance: Seconds = Field(default=5.0, gt=0)
    """The maximum time until a worker answers or accepts a request. After that, the worker counts as lost,
    and the request is sent again, or the call raises WorkerLost (see `attempts`)."""
    silence: Seconds = Field(default=5.0, gt=0)
    """The maximum time between two reports of a worker that accepted a request. After that, the worker counts as dead.

    The caller waits at least three of the worker's `beat` intervals.
    """
    attempts: int = Field(default=3, ge=1)
    """The call raises WorkerLost when workers have failed this number of times to finish its request.

    The same worker may count several times.
    """
    patience: Seconds = Field(default=10.0, ge=0)
    """How long a call waits while no worker or server is there. After that, the call raises NoWorkers or NoServer."""
    in_flight: int = Field(default=256, ge=1)
    """The maximum number of simultaneous requests of the runner. Further calls wait, and raise RequestTimedOut after
    `timeout` seconds."""
    compress_above: int = Field(default=256 * 1024, ge=0)
    """The size in bytes above which a request is compressed if that helps, or `max_payload` of the server if less."""
    largest: int = Field(default=LARGEST, ge=1)
    """The maximum size of an answer in bytes, decompressed. The call raises EnvelopeInvalid for a larger answer."""
    inbox: Inbox = INBOXES
    """The prefix of the inbox, the NATS subject on which answers arrive.

    With a prefix of your own, the server's permissions can keep other users from reading the answers. The workers'
    settings need the same prefix. A connected nats-py client that you pass uses its own prefix.
    """
    access: Access = Access()
    """Files with credentials and certificates for the server."""


class WorkerSettings(Frozen):
    """Limits and intervals of a Worker. All times are in seconds.

    >>> from sabir_runtime.distributed import WorkerSettings
    >>> WorkerSettings(concurrency=4).waiting
    256
    """

    concurrency: int = Field(default=32, ge=1)
    """The maximum number of requests that run at the same time."""
    waiting: int = Field(default=256, ge=0)
    """The maximum number of requests in the queue of the worker, in addition to the running requests.

    If the queue is full, callers send their requests again later.
    """
    accept_after: Seconds = Field(default=0.05, ge=0)
    """The time after which the worker tells the caller that it has accepted a request, if there is no answer yet."""
    beat: Seconds = Field(default=1.0, gt=0)
    """The time between two reports to callers that their requests are still in work."""
    drain: Seconds = Field(default=30.0, ge=0)
    """How long running requests may continue after `stop`. Then they are cancelled, and callers ask other workers."""
    patience: Seconds = Field(default=60.0, ge=0)
    """How long the worker waits for a server that cannot be reached. After that, `run` raises NoServer."""
    compress_above: int = Field(default=256 * 1024, ge=0)
    """The size in bytes above which an answer is compressed if that helps, or `max_payload` of the server if less."""
    largest: int = Field(default=LARGEST, ge=1)
    """The maximum size of a request in bytes, decompressed. The caller of a larger request gets EnvelopeInvalid."""
    held: int = Field(default=8 * LARGEST, ge=1)
    """The maximum total size in bytes of running and queued requests. A single request may be larger.

    If the limit is reached, callers send their requests again later.
    """
    longest: Seconds = Field(default=86_400.0, gt=0, allow_inf_nan=False)
    """The maximum time of one request, even if the caller's timeout is longer.

    A request that takes longer after its arrival is stopped, and its call raises RequestTimedOut.
    """
    inbox: Inbox = INBOXES
    """The prefix of callers' inboxes. The worker answers only to subjects with this prefix or with `_INBOX`."""
    access: Access = Access()
    """Files with credentials and certificates for the server."""
