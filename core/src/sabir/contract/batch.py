"""Batches: many requests that a vendor answers within hours, usually at half price. The types of their operations.

    BatchOrder ──batches.upload──▶ file ──batches.create──▶ BatchStatus ◀──batches.status, batches.cancel── id
                                                                └ results ──batches.results──▶ BatchAnswer, …

    batches.upload    BatchOrder → the file's id         if the vendor reads the requests from a file
    batches.create    BatchOrder → BatchStatus           `limits`: requests, bytes; inline_bytes are sent without a file
    batches.list      cursor, at first "" → BatchPage    if the vendor stores the name of a batch
    batches.status    the batch's id → BatchStatus
    batches.cancel    the batch's id → BatchStatus, or None if the response does not have it
    others            the id of results → a tuple of BatchAnswers, or one for each line

A provider's `operations` has these names. The bodies of requests and answers are those of a dialect.
"""

from collections.abc import Mapping
from typing import Literal, NamedTuple, TypeAlias

BatchPhase: TypeAlias = Literal["running", "cancelling", "ended", "cancelled", "expired", "failed"]
"""Where a batch is. "ended", "cancelled", "expired" and "failed" are final: nothing more is answered or charged."""


class BatchRequest(NamedTuple):
    """One request of a batch: an adapter's rendering under a key. `path` is the path below the endpoint."""

    key: str
    path: str
    body: bytes
    headers: Mapping[str, str] = {}


class BatchOrder(NamedTuple):
    """A batch to create. `name` identifies it at the vendor ("" for none), `digest` identifies its requests, and `file`
    is the id of the uploaded file, or "".
    """

    requests: tuple[BatchRequest, ...]
    name: str = ""
    digest: str = ""
    file: str = ""


class BatchResults(NamedTuple):
    """Results of a batch that can be read: the name of the operation that reads them, and their id."""

    operation: str
    id: str


class BatchStatus(NamedTuple):
    """The state of a batch. A number is None if the vendor does not report it yet, or never does."""

    id: str
    phase: BatchPhase
    total: int | None = None
    """The number of requests."""
    succeeded: int | None = None
    """The number of requests with a reply."""
    failed: int | None = None
    """The number of requests without a reply: refused, cancelled or expired."""
    results: tuple[BatchResults, ...] = ()
    """The results, after the end of the batch."""
    error: str | None = None
    """Why a "failed" batch failed as a whole."""
    name: str = ""
    """The name that the batch was created with, or ""."""
    digest: str = ""
    """The digest that the batch was created with, or ""."""

    @property
    def is_final(self) -> bool:
        """Whether the batch is over, so that its results can be collected."""
        return self.phase not in ("running", "cancelling")


class BatchPage(NamedTuple):
    """A part of the list of batches, the newest first. `cursor` is the argument for the next page, "" at the end."""

    batches: tuple[BatchStatus, ...]
    cursor: str = ""


class BatchAnswer(NamedTuple):
    """The answer to one request: a JSON body as `Dialect.decode` reads it, or with a `status` of 400 or above as
    `Dialect.decode_error` does. The body of an expired or cancelled request is empty.
    """

    key: str
    body: bytes = b""
    status: int = 200
    request_id: str | None = None
    unanswered: Literal["", "expired", "cancelled"] = ""
