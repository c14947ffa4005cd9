"""The outcome of one request of a batch, and the errors of batches."""

from dataclasses import dataclass

from sabir import CallError, Reply, SabirError
from sabir.authoring import BatchAnswer, BatchStatus, DecodeScope, Dialect, decode_answer
from sabir.errors import CallTimedOut

from sabir_calls.many.outcomes import ReplyOrError, is_failure


@dataclass(frozen=True)
class BatchOutcome(ReplyOrError):
    """The result of one request of a batch: a reply, or the error that it got instead. Exactly one of them is not None.

    A request that the vendor did not process before the batch expired has the error CallTimedOut. A request that was
    cancelled has a CallError with the code "cancelled". Neither is charged.
    """

    key: str
    """The key that the prompt was submitted with."""
    reply: Reply | None = None
    error: SabirError | None = None


class BatchError(SabirError):
    """Raised if a batch has no results to read: it is not over yet, or it failed as a whole. The message says why."""


def outcome_of(answer: BatchAnswer, dialect: Dialect, scope: DecodeScope) -> BatchOutcome:
    """Return the outcome for an answer, decoded by the dialect of the requests."""
    provider = scope.target.provider
    if answer.unanswered == "expired":
        expired = f"{provider} did not process the request before the batch expired; submit it again"
        return BatchOutcome(answer.key, error=CallTimedOut(expired, provider=provider, code="expired"))
    if answer.unanswered == "cancelled":
        cancelled = f"{provider} did not process the request before the batch was cancelled; submit it again"
        return BatchOutcome(answer.key, error=CallError(cancelled, provider=provider, code="cancelled"))
    try:
        reply = decode_answer(dialect, answer.body, scope, answer.status)
    except SabirError as error:
        if not is_failure(error):
            raise
        return BatchOutcome(answer.key, error=error)
    return BatchOutcome(answer.key, reply.model_copy(update={"is_batch": True}))


def check_results(status: BatchStatus) -> None:
    """Raise BatchError unless the batch has results that can be read."""
    if not status.is_final:
        raise BatchError(f"batch {status.id!r} is {describe_status(status)}; call wait() first, or collect it later")
    if status.phase == "failed":
        reason = status.error or "the vendor gives no reason"
        raise BatchError(f"batch {status.id!r} failed and nothing was charged: {reason}; correct the requests")


def describe_status(status: BatchStatus) -> str:
    """Return a status in words, for example "running, 12 of 200 succeeded, 1 failed"."""
    counts = (
        [f"{status.succeeded} of {status.total} succeeded"] if status.total and status.succeeded is not None else []
    )
    return ", ".join([status.phase, *counts, *([f"{status.failed} failed"] if status.failed else [])])
