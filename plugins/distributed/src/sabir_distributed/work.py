"""One request of a worker, and how it becomes an answer.

Request ──arguments, options──▶ bound policy ──batch──▶ Answered
                  └ do not fit         └ raises ──────▶ Failed: raised_by worker, or policy
"""

import asyncio
import inspect
from collections.abc import Callable
from dataclasses import dataclass, field

from sabir.authoring import Depth
from sabir_runtime import (
    BaseContext,
    Batch,
    BoundCall,
    BoundPolicy,
    InMemoryRunner,
    PolicyFailed,
    PolicyInvalid,
    RuntimeFault,
)
from sabir_runtime.failures import MOST_CHARACTERS, failure_of

from sabir_distributed.envelopes import SCHEMA, Answered, Failed, Fault, Request, encode
from sabir_distributed.errors import EnvelopeInvalid
from sabir_distributed.memory import Kept
from sabir_distributed.packing import pack
from sabir_distributed.subjects import asker_of, requests_for, requests_of


@dataclass(slots=True, eq=False)
class Work:
    """A request that a worker has taken; it begins at once or when a place is free."""

    request: Request
    reply: str
    """The reply subject of its latest sending."""
    ends: float
    """The end of its caller's wait, on the event loop's clock."""
    since: float
    """The time of its first sending, on the same clock."""
    size: int = 0
    """Bytes of its request."""
    task: "asyncio.Task[None] | None" = None
    """The task that performs it, once it has begun."""
    timer: asyncio.TimerHandle = field(init=False)
    is_accepted: bool = False
    is_stopped: bool = False
    """Whether nobody waits for this worker's answer any more."""
    is_released: bool = False
    """Whether it was stopped so that another worker takes it."""
    is_overdue: bool = False
    """Whether it waited already at the last beat."""

    @property
    def asker(self) -> str:
        """Its asker, the same for all its sendings."""
        return asker_of(self.request.policy, self.reply)

    def stop(self) -> None:
        """Cancel the policy that has begun."""
        assert self.task is not None
        self.is_stopped = True
        self.task.cancel()


_REMEDY = "give it a class derived from BaseContext, whose __init__ needs a runner alone"


class WorkerRunner(InMemoryRunner):
    """Performs calls at a worker: an exception that would end a process ends only its policy."""

    async def perform(self, call: BoundCall) -> Batch:
        """The batch of a call's policy, its option calls answered; PolicyFailed for whatever it raises."""
        try:
            return await super().perform(call)
        except (Exception, asyncio.CancelledError, GeneratorExit):
            raise
        except BaseException as error:
            failure = PolicyFailed.of(error)
            raise failure from failure.__cause__


def make_context(context: Callable[[InMemoryRunner], BaseContext]) -> BaseContext:
    """The context, made with a runner of this process.

    Raises RuntimeFault if it is no context or needs other arguments.
    """
    runner = WorkerRunner()
    called = getattr(context, "__qualname__", type(context).__name__)
    if isinstance(context, type) and not issubclass(context, BaseContext):
        raise RuntimeFault(f"a worker serves contexts, not the class {called!r}; {_REMEDY}")
    if inspect.iscoroutinefunction(context):
        raise RuntimeFault(f"a worker serves contexts, not the async function {called!r}; {_REMEDY}")
    try:
        inspect.signature(context).bind(runner)
    except TypeError as error:
        raise RuntimeFault(f"a worker cannot make {called!r} with a runner alone: {error}; {_REMEDY}") from None
    except ValueError:
        pass  # a builtin may have no signature
    made: object = context(runner)
    if not isinstance(made, BaseContext):
        raise RuntimeFault(f"a worker serves contexts, not a {type(made).__name__}; {_REMEDY}")
    return made


def check_subject(subject: str, request: Request, worker: str) -> None:
    """Raise EnvelopeInvalid if a request's subject is not its policy's: permissions apply to subjects."""
    meant = request.context, request.policy
    if subject not in (requests_of(*meant), requests_for(worker, *meant)):
        told = f"request is for {request.policy!r} of {request.context!r}, and came to {subject!r}"
        raise EnvelopeInvalid(f"{told}; send it to its policy's own subject")


def check_asker(request: Request, reply: str, known: Kept | Work | None) -> None:
    """Raise EnvelopeInvalid if a known request with this id has another asker: only that one may get its answer."""
    if known is not None and known.asker not in ("", asker_of(request.policy, reply)):
        told = f"request {request.id!r} was sent before, for another policy or inbox"
        raise EnvelopeInvalid(f"{told}; give each request an id of its own")


async def answer_of(work: Work, bound: BoundPolicy, worker: str, limits: tuple[int, int]) -> bytes:
    """The answer to a request, ready to be sent: the policy's batch, or the reason for a failure.

    `limits` are the bytes that the server carries, and those beyond which an answer is compressed.
    """
    request = work.request
    largest, compress_above = limits
    what = f"answer of policy {request.policy!r} of {request.context!r}"
    try:
        outcome = await _outcome_of(work, bound, worker)
        return pack(encode(outcome), what, largest=largest, compress_above=compress_above)
    except BaseException as error:  # for any error, its caller waits for an answer
        if work.is_stopped and isinstance(error, asyncio.CancelledError):
            raise
        return encode(Failed(id=request.id, worker=worker, error=refusal_of(error)))


async def _outcome_of(work: Work, bound: BoundPolicy, worker: str) -> Answered | Failed:
    request = work.request
    try:
        arguments = bound.signature.decode(request.arguments)
        performed = bound.perform(request.observations, request.options, arguments)
    except Exception as error:  # an error from the caller's arguments
        return Failed(id=request.id, worker=worker, error=refusal_of(error, PolicyInvalid))
    try:
        with Depth(request.depth).entered():
            batch: Batch = await performed
    except BaseException as error:
        if work.is_stopped and isinstance(error, asyncio.CancelledError):
            raise
        return Failed(id=request.id, worker=worker, error=Fault(**dict(failure_of(error)), raised_by="policy"))
    answered = {"schema_number": SCHEMA, "kind": "answered", "id": request.id, "worker": worker, "result": tuple(batch)}
    return Answered.assembled(answered, set(answered))  # of messages, as bound calls give them


def refusal_of(error: BaseException, kind: type[RuntimeFault] = EnvelopeInvalid) -> Fault:
    """The reason why the worker could not run a request; `kind` is the class for another library's error."""
    if not isinstance(error, RuntimeFault):
        error = kind(f"it cannot be read, run or answered: {type(error).__name__}")
    return Fault(type=type(error).__name__, message=_sendable(str(error)), raised_by="worker")


def _sendable(text: str) -> str:
    """A text in a form that JSON can hold and a server can carry."""
    return text[:MOST_CHARACTERS].encode(errors="replace").decode()
