"""The requests that submit or cancel a batch, as scripts without I/O, which yield steps and receive their outputs.

    submit_steps(order) ── list, to find the name ── upload ── create ──▶ BatchStatus

A crash before `create` has arrived at the vendor submits nothing. After a crash that hides whether it arrived, a named
batch is found in the vendor's list, so that the same requests are not charged twice.
"""

from collections.abc import Generator, Iterable, Mapping
from hashlib import sha256
from typing import Any, NamedTuple, TypeAlias, TypeVar

from sabir import SettingsInvalid
from sabir.authoring import BatchOrder, BatchPage, BatchRequest, BatchStatus, Operation

Result = TypeVar("Result")
LIST = "batches.list"
MOST_PAGES = 10
"""How many pages of the vendor's list are searched for a name."""


class OperationStep(NamedTuple):
    """One request: the name of an operation, and the call to encode."""

    operation: str
    call: Any


Steps: TypeAlias = Generator[OperationStep, Any, Result]
"""A script that yields steps, and is sent the output of each."""


def submit_steps(order: BatchOrder, operations: Mapping[str, Operation[Any, Any]]) -> Steps[BatchStatus]:
    """Submit a batch, or return the status of the batch with the same name that was submitted before.

    `operations` are the provider's operations by name. Raises SettingsInvalid if the provider cannot find batches by
    their names, and if the name was used for other requests.
    """
    if order.name:
        if LIST not in operations:
            raise SettingsInvalid("this vendor's batches have no names; leave name= out, and store the ticket")
        if (submitted := (yield from _find_steps(order))) is not None:
            return submitted
    inline = operations["batches.create"].limits.get("inline_bytes", 0)
    if "batches.upload" in operations and size_of(order.requests) > inline:
        order = order._replace(file=(yield OperationStep("batches.upload", order)))
    created: BatchStatus = yield OperationStep("batches.create", order)
    return created


def cancel_steps(batch_id: str) -> Steps[BatchStatus]:
    """Cancel a batch, and return its status."""
    status: BatchStatus | None = yield OperationStep("batches.cancel", batch_id)
    return status or (yield from status_steps(batch_id))


def status_steps(batch_id: str) -> Steps[BatchStatus]:
    """Return the status of a batch."""
    status: BatchStatus = yield OperationStep("batches.status", batch_id)
    return status


def size_of(requests: Iterable[BatchRequest]) -> int:
    """Return the number of bytes of all bodies."""
    return sum(len(each.body) for each in requests)


def _find_steps(order: BatchOrder) -> Steps[BatchStatus | None]:
    """Return the status of the batch with the order's name, or None. A batch that failed as a whole does not count."""
    cursor = ""
    for _ in range(MOST_PAGES):
        page: BatchPage = yield OperationStep(LIST, cursor)
        for status in page.batches:
            if status.name == order.name and status.phase != "failed":
                if status.digest != order.digest:
                    used = f"name={order.name!r} was used for batch {status.id!r} with other requests"
                    raise SettingsInvalid(f"{used}; choose another name")
                return status
        if not (cursor := page.cursor):
            break
    return None


def digest_of(requests: Iterable[BatchRequest]) -> str:
    """Return a text that is equal for equal requests, in any process."""
    digest = sha256()
    for request in requests:
        for part in (request.key.encode(), request.path.encode(), request.body):
            digest.update(b"%d:%b" % (len(part), part))
    return digest.hexdigest()[:32]
