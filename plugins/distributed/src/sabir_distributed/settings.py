"""How long is waited for what; all times in seconds.

caller   send ──acceptance──▶ accepted ──silence──▶ beat ──silence──▶ … ──▶ answer          all within timeout
worker        ◀─accept_after─┘         └──beat────▶
"""

from typing import Annotated

from pydantic import AfterValidator, Field
from sabir.authoring import Frozen

from sabir_distributed.access import Access
from sabir_distributed.packing import LARGEST
from sabir_distributed.subjects import INBOXES, check_inbox

Inbox = Annotated[str, AfterValidator(check_inbox)]
Seconds = float
"""A duration on a clock that only moves forward; clocks of two machines are never compared."""


class CallSettings(Frozen):
    """What a caller waits for, and when it gives a request to another worker."""

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
    """What its inbox begins with; a name of its own lets permissions keep others from listening to it."""
    access: Access = Access()
    """Credentials and certificates for the server."""


class WorkerSettings(Frozen):
    """How much a worker takes on, and what it tells of it."""

    concurrency: int = Field(default=32, ge=1)
    """How many requests it works on at once."""
    waiting: int = Field(default=256, ge=0)
    """How many more wait, those first that are on their way the longest; to others it says that it is busy."""
    accept_after: Seconds = Field(default=0.05, ge=0)
    """After how long it accepts a request that it has not answered yet: short calls need no acceptance."""
    beat: Seconds = Field(default=1.0, gt=0)
    """How often it tells callers that it still works on what it accepted."""
    drain: Seconds = Field(default=30.0, ge=0)
    """How long it finishes its work when it is told to stop; what is left then is given back to the callers."""
    patience: Seconds = Field(default=60.0, ge=0)
    """How long the server may be missing."""
    compress_above: int = Field(default=256 * 1024, ge=0)
    """Bytes beyond which an answer is compressed."""
    largest: int = Field(default=LARGEST, ge=1)
    """Bytes that a request may have, unpacked."""
    held: int = Field(default=8 * LARGEST, ge=1)
    """Bytes of the requests that it has at once; to others it says that it is busy."""
    longest: Seconds = Field(default=86_400.0, gt=0, allow_inf_nan=False)
    """How long it gives a request at most, whatever its caller would wait."""
    inbox: Inbox = INBOXES
    """What its callers' inboxes begin with, besides `_INBOX.`: it answers to inboxes alone."""
    access: Access = Access()
    """Credentials and certificates for the server."""
