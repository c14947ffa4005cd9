"""The requests of a worker: running and queued requests, their answers, and the memory of recent answers.

    request ──a place is free──────────▶ running ──done──▶ the oldest queued request begins
         ├─ first sending ──▶ Busy: another worker may have a free place
         └─ later sending ──▶ queued, the oldest first ──no place during one beat──▶ Busy: another may have one now
                        └ the queue is full ──▶ Busy to the youngest

    running ──arguments, options──▶ bound policy ──batch──▶ Answered
                  └ wrong                └ raises ────────▶ Failed: raised_by worker, or policy

While requests are queued, no place is free, so a new request cannot overtake them. Requests are queued here and not at
their callers, because this queue sees the callers of all processes. A request contains its age, so a request that is
sent again keeps its position, and a full queue accepts it if a younger request is queued. So requests of equal age wait
about equally long.

Answers are remembered with their askers (callers), so that a repeated request does not run again, but receives the same
answer, and a request that arrives after its cancellation is dropped. The oldest answers are removed first. A request
that is repeated after its answer was removed runs again: a policy runs at least once.
"""

import asyncio
import inspect
from bisect import insort
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from sabir.authoring import CallDepth, continue_work

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
from sabir_runtime.distributed.envelopes import SCHEMA, Answered, Failed, Fault, Request, encode, pack
from sabir_runtime.distributed.errors import EnvelopeInvalid
from sabir_runtime.distributed.settings import WorkerSettings
from sabir_runtime.distributed.subjects import asker_of, requests_for, requests_of
from sabir_runtime.failures import MOST_CHARACTERS, failure_of

MOST_REQUESTS = 10_000
MOST_BYTES = 32 * 1024 * 1024
NOTHING = b""
"""The remembered answer to a cancelled request. It is not sent."""


class CachedAnswer(NamedTuple):
    """The remembered answer to one request."""

    answer: bytes
    asker: str
    """The caller and policy of the request, from `asker_of`; "" if unknown."""


class Memory:
    """Stores the answers to the most recent requests by request id: at most `requests`, and `size` bytes in all."""

    def __init__(self, *, requests: int = MOST_REQUESTS, size: int = MOST_BYTES) -> None:
        self._requests = requests
        self._size = size
        self._total_size = 0
        self._answers: OrderedDict[str, CachedAnswer] = OrderedDict()

    def add(self, id: str, answer: bytes, asker: str = "") -> None:
        """Store an answer and its asker, and remove the oldest answers beyond the limits."""
        self._total_size += sum(map(len, (answer, asker))) - sum(map(len, self._answers.pop(id, ())))
        self._answers[id] = CachedAnswer(answer, asker)
        while len(self._answers) > self._requests or self._total_size > self._size:
            _, removed = self._answers.popitem(last=False)
            self._total_size -= sum(map(len, removed))

    def find(self, id: str) -> CachedAnswer | None:
        """Return a request's answer and asker, or None for an unknown request. `NOTHING` means a cancelled request."""
        return self._answers.get(id)


@dataclass(slots=True, eq=False)
class Work:
    """A running or queued request of a worker."""

    request: Request
    reply: str
    """The NATS subject for the reply to the latest sending of the request."""
    ends: float
    """The time at which the caller or the worker gives the request up, on the event loop's clock."""
    since: float
    """The time at which the call began, on the same clock; at most `longest` seconds before the request arrived."""
    size: int = 0
    """The size of the request in bytes."""
    task: "asyncio.Task[None] | None" = None
    """The task that performs the request; None before it begins."""
    timer: asyncio.TimerHandle = field(init=False)
    is_accepted: bool = False
    is_stopped: bool = False
    """True if this worker cancelled the policy: after the caller's notice, after too long, or when it stops itself."""
    is_released: bool = False
    """True if this worker is stopping and cancelled the policy, so that another worker performs the request."""
    is_overdue: bool = False
    """True if the request was already queued at the last beat."""

    @property
    def asker(self) -> str:
        """A text that identifies the request's caller and policy, equal for all sendings of the request."""
        return asker_of(self.request.policy, self.reply)

    def stop(self) -> None:
        """Cancel the running policy."""
        assert self.task is not None
        self.is_stopped = True
        self.task.cancel()


_REMEDY = "give a class derived from BaseContext, whose __init__ requires only a runner"


class WorkerRunner(InMemoryRunner):
    """Performs calls at a worker. An exception such as SystemExit ends only its policy, not the worker."""

    async def perform(self, call: BoundCall) -> Batch:
        """Return the batch of a call's policy, followed by the results of its option calls. Raises PolicyFailed."""
        try:
            return await super().perform(call)
        except (Exception, asyncio.CancelledError, GeneratorExit):
            raise
        except BaseException as error:
            failure = PolicyFailed.from_exception(error)
            raise failure from failure.__cause__


def make_context(context: Callable[[InMemoryRunner], BaseContext]) -> BaseContext:
    """Create a worker's context: call `context`, a class or function, with a runner of this process.

    Raises RuntimeFault if `context` does not return a BaseContext, is async, or requires other arguments.
    """
    runner = WorkerRunner()
    context_name = getattr(context, "__qualname__", type(context).__name__)
    if isinstance(context, type) and not issubclass(context, BaseContext):
        raise RuntimeFault(f"a worker serves contexts, not the class {context_name!r}; {_REMEDY}")
    if inspect.iscoroutinefunction(context):
        raise RuntimeFault(f"a worker serves contexts, not the async function {context_name!r}; {_REMEDY}")
    try:
        inspect.signature(context).bind(runner)
    except TypeError as error:
        raise RuntimeFault(f"a worker cannot call {context_name!r} with only a runner: {error}; {_REMEDY}") from None
    except ValueError:
        pass  # some builtin functions have no signature
    new_context: object = context(runner)
    if not isinstance(new_context, BaseContext):
        raise RuntimeFault(f"{context_name!r} returned a {type(new_context).__name__}, not a context; {_REMEDY}")
    return new_context


def check_subject(subject: str, request: Request, worker: str) -> None:
    """Raise EnvelopeInvalid if a request came to another policy's subject, because permissions apply to subjects."""
    address = request.context, request.policy
    if subject not in (requests_of(*address), requests_for(worker, *address)):
        reason = f"the request is for {request.policy!r} of {request.context!r}, but came to the subject {subject!r}"
        raise EnvelopeInvalid(f"{reason}; send it to the policy's own subject")


def check_asker(request: Request, reply: str, known: CachedAnswer | Work | None) -> None:
    """Raise EnvelopeInvalid if another caller used the request's id before, because the answer is for that caller.

    `known` is the earlier request of this id, or its answer; None if there is none.
    """
    if known is not None and known.asker not in ("", asker_of(request.policy, reply)):
        reason = f"the request id {request.id!r} was used before, for another policy or caller"
        raise EnvelopeInvalid(f"{reason}; give each request its own id")


async def perform_request(work: Work, bound: BoundPolicy, worker: str, limits: tuple[int, int]) -> bytes:
    """Perform a request, and return the encoded answer: the policy's batch, or the error.

    `worker` is the worker's id. `limits` are the server's maximum message size, and the size above which an answer is
    compressed, in bytes. Raises CancelledError only if the request was stopped.
    """
    request, (largest, compress_above) = work.request, limits
    try:
        body = encode(await _perform_bound(work, bound, worker))
        what = f"answer of policy {request.policy!r} of {request.context!r}"
        return pack(body, what, largest=largest, compress_above=compress_above)
    except BaseException as error:  # any error: the caller waits for an answer
        if work.is_stopped and isinstance(error, asyncio.CancelledError):
            raise
        return encode(Failed(id=request.id, worker=worker, error=refusal_of(error)))


async def _perform_bound(work: Work, bound: BoundPolicy, worker: str) -> Answered | Failed:
    request = work.request
    try:
        arguments = bound.signature.decode(request.arguments)
        performed = bound.perform(request.observations, request.options, arguments)
    except Exception as error:  # the caller's arguments are wrong
        return Failed(id=request.id, worker=worker, error=refusal_of(error, PolicyInvalid))
    try:
        with CallDepth(request.depth).set(), continue_work(request.headers):
            batch: Batch = await performed
    except BaseException as error:
        if work.is_stopped and isinstance(error, asyncio.CancelledError):
            raise
        return Failed(id=request.id, worker=worker, error=Fault(**dict(failure_of(error)), raised_by="policy"))
    answered = {"schema_number": SCHEMA, "kind": "answered", "id": request.id, "worker": worker, "result": tuple(batch)}
    return Answered.construct_unchecked(
        answered, set(answered)
    )  # unchecked, because a bound call returns only valid messages


def refusal_of(error: BaseException, kind: type[RuntimeFault] = EnvelopeInvalid) -> Fault:
    """Return the Fault that tells the caller why a request was refused.

    `kind` is the class that the caller gets for an error that is not a RuntimeFault.
    """
    if not isinstance(error, RuntimeFault):
        error = kind(f"the request cannot be read, run or answered: {type(error).__name__}")
    sendable = str(error)[:MOST_CHARACTERS].encode(errors="replace").decode()  # JSON cannot encode lone surrogates
    return Fault(type=type(error).__name__, message=sendable, raised_by="worker")


class WorkQueue:
    """The running requests of a worker, at most `concurrency`, and its queued requests, at most `waiting`."""

    def __init__(self, settings: WorkerSettings) -> None:
        self._settings = settings
        self.begun: dict[str, Work] = {}
        self.waiting: list[Work] = []
        """The queued requests, the oldest first."""

    @property
    def has_place(self) -> bool:
        """True if one more request can begin."""
        return len(self.begun) < self._settings.concurrency

    def can_hold(self, size: int) -> bool:
        """Return whether a request of `size` bytes fits into the limit `held`. Without other requests, any fits."""
        works = self.all()
        return not works or size + sum(work.size for work in works) <= self._settings.held

    def all(self) -> list[Work]:
        """Return all requests, running ones first."""
        return [*self.begun.values(), *self.waiting]

    def find(self, id: str) -> Work | None:
        """Return the running or queued request with this id; None if unknown."""
        begun = self.begun.get(id)
        return begun or next((work for work in self.waiting if work.request.id == id), None)

    def begin(self, work: Work) -> None:
        """Add a request to the running ones."""
        self.begun[work.request.id] = work

    def wait(self, work: Work) -> Work | None:
        """Queue a request by its age. If the queue is too long, remove and return the youngest request."""
        insort(self.waiting, work, key=lambda each: each.since)
        return self.waiting.pop() if len(self.waiting) > self._settings.waiting else None

    def remove(self, work: Work) -> Work | None:
        """Remove a request. If a queued request now counts as running, return it, so that its task can be started."""
        if self.begun.pop(work.request.id, None) is None:
            self.waiting.remove(work)
        elif self.waiting and self.has_place:
            following = self.waiting.pop(0)
            self.begin(following)
            return following
        return None

    def remove_overdue(self) -> list[Work]:
        """Remove and return the requests that were already queued at the last call of this method."""
        overdue = [work for work in self.waiting if work.is_overdue]
        self.waiting = [work for work in self.waiting if not work.is_overdue]
        for work in self.waiting:
            work.is_overdue = True
        return overdue

    def remove_waiting(self) -> list[Work]:
        """Remove and return all queued requests."""
        waiting, self.waiting = self.waiting, []
        return waiting
