"""Timeouts and limits; all times are in seconds.

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
"""A duration on a clock that only moves forward; clocks of two machines are never compared."""


class CallSettings(Frozen):
    """A caller's timeouts, and when it gives a request to another worker."""

    timeout: Seconds = Field(default=300.0, gt=0, allow_inf_nan=False)
    """How long one call may take, with all pauses and attempts."""
    acceptance: Seconds = Field(default=5.0, gt=0)
    """How long no worker may answer or accept a request before it counts as lost."""
    silence: Seconds = Field(default=5.0, gt=0)
    """How long a worker that accepted may be silent before it counts as dead; at least three of its beats."""
    attempts: int = Field(default=3, ge=1)
    """How many workers a request is given to, one after the other."""
    patience: Seconds = Field(default=10.0, ge=0)
    """How long workers, or the server, may be missing altogether."""
    in_flight: int = Field(default=256, ge=1)
    """How many requests of this runner may be under way at once; further calls wait for a place."""
    compress_above: int = Field(default=256 * 1024, ge=0)
    """Bytes beyond which a request is compressed."""
    largest: int = Field(default=LARGEST, ge=1)
    """Bytes that an answer may have, unpacked."""
    inbox: Inbox = INBOXES
    """The prefix of its inbox; with an own prefix, permissions can keep others from listening."""
    access: Access = Access()
    """Credentials and certificates for the server."""


class WorkerSettings(Frozen):
    """A worker's limits, and how often it reports."""

    concurrency: int = Field(default=32, ge=1)
    """How many requests it works on at once."""
    waiting: int = Field(default=256, ge=0)
    """How many more wait, the oldest first; further ones get Busy."""
    accept_after: Seconds = Field(default=0.05, ge=0)
    """After how long it accepts a request that it has not answered yet: short calls need no acceptance."""
    beat: Seconds = Field(default=1.0, gt=0)
    """How often it tells callers that it still works on accepted requests."""
    drain: Seconds = Field(default=30.0, ge=0)
    """How long it finishes its work when it is told to stop; the rest is given back to the callers."""
    patience: Seconds = Field(default=60.0, ge=0)
    """How long the server may be missing."""
    compress_above: int = Field(default=256 * 1024, ge=0)
    """Bytes beyond which an answer is compressed."""
    largest: int = Field(default=LARGEST, ge=1)
    """Bytes that a request may have, unpacked."""
    held: int = Field(default=8 * LARGEST, ge=1)
    """Total bytes of the requests that it holds; further ones get Busy."""
    longest: Seconds = Field(default=86_400.0, gt=0, allow_inf_nan=False)
    """The most time for a request, however long its caller would wait."""
    inbox: Inbox = INBOXES
    """The prefix of its callers' inboxes, besides `_INBOX.`: it answers only to inboxes."""
    access: Access = Access()
    """Credentials and certificates for the server."""
