"""The requests of a worker: which have begun, which wait, how one becomes an answer, and what is remembered of it.

    request ──a place is free──────────▶ begun ──done──▶ the first of those that wait begins
         ├─ the first time that it is sent ──▶ Busy: another worker may have a place
         └─ later ──▶ waits, the longest on its way first ──no place for a whole beat──▶ Busy: another may have one now
                        └ too many wait ──▶ Busy to the youngest

    begun ──arguments, options──▶ bound policy ──batch──▶ Answered
                  └ do not fit         └ raises ────────▶ Failed: raised_by worker, or policy

While any request waits, no place is free, so no new request overtakes it. They wait here and not at their callers
because this queue sees the callers of all processes. A request carries its age: asking again does not cost its place,
and a full queue takes it as soon as it has a younger one. So no request waits much longer than others of its age.

Ended requests are remembered with who asked, so that none runs twice: a repeated one gets the answer as it was sent,
one that comes after its cancellation is dropped. The oldest are forgotten first; a request that is repeated later than
that runs again: at least once is the promise.
"""

import asyncio
import inspect
from bisect import insort
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from sabir.authoring import CallDepth

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
"""Stands for a cancelled request: there is nothing to answer."""


class Kept(NamedTuple):
    """What is remembered of one request."""

    answer: bytes
    asker: str
    """The result of `asker_of`; empty if it is not known."""


class Memory:
    """Request id → answer, for the most recent requests."""

    def __init__(self, *, requests: int = MOST_REQUESTS, size: int = MOST_BYTES) -> None:
        self._requests = requests
        self._size = size
        self._held = 0
        self._answers: OrderedDict[str, Kept] = OrderedDict()

    def keep(self, id: str, answer: bytes, asker: str = "") -> None:
        """Remember an answer and who asked, and forget the oldest beyond the bounds."""
        self._held += sum(map(len, (answer, asker))) - sum(map(len, self._answers.pop(id, ())))
        self._answers[id] = Kept(answer, asker)
        while len(self._answers) > self._requests or self._held > self._size:
            _, forgotten = self._answers.popitem(last=False)
            self._held -= sum(map(len, forgotten))

    def recall(self, id: str) -> Kept | None:
        """The answer and its asker; `NOTHING` for a cancelled request, None for an unknown one."""
        return self._answers.get(id)


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
            failure = PolicyFailed.from_exception(error)
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
    request, (largest, compress_above) = work.request, limits
    try:
        body = encode(await _outcome_of(work, bound, worker))
        what = f"answer of policy {request.policy!r} of {request.context!r}"
        return pack(body, what, largest=largest, compress_above=compress_above)
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
        with CallDepth(request.depth).set():
            batch: Batch = await performed
    except BaseException as error:
        if work.is_stopped and isinstance(error, asyncio.CancelledError):
            raise
        return Failed(id=request.id, worker=worker, error=Fault(**dict(failure_of(error)), raised_by="policy"))
    answered = {"schema_number": SCHEMA, "kind": "answered", "id": request.id, "worker": worker, "result": tuple(batch)}
    return Answered.construct_unchecked(answered, set(answered))  # of messages, as bound calls give them


def refusal_of(error: BaseException, kind: type[RuntimeFault] = EnvelopeInvalid) -> Fault:
    """The reason why the worker could not run a request; `kind` is the class for another library's error."""
    if not isinstance(error, RuntimeFault):
        error = kind(f"it cannot be read, run or answered: {type(error).__name__}")
    sendable = str(error)[:MOST_CHARACTERS].encode(errors="replace").decode()  # no lone surrogate, and not too long
    return Fault(type=type(error).__name__, message=sendable, raised_by="worker")


class WorkQueue:
    """The requests of a worker, by their ids: so many begun, so many that wait."""

    def __init__(self, settings: WorkerSettings) -> None:
        self._settings = settings
        self.begun: dict[str, Work] = {}
        self.waiting: list[Work] = []
        """The oldest first."""

    @property
    def has_place(self) -> bool:
        """Whether one more can begin."""
        return len(self.begun) < self._settings.concurrency

    def can_hold(self, size: int) -> bool:
        """Whether a request of so many bytes may be added, to begin or to wait; a single one always may."""
        works = self.all()
        return not works or size + sum(work.size for work in works) <= self._settings.held

    def all(self) -> list[Work]:
        """All of them, those that began first."""
        return [*self.begun.values(), *self.waiting]

    def find(self, id: str) -> Work | None:
        """The request of this id, begun or waiting."""
        begun = self.begun.get(id)
        return begun or next((work for work in self.waiting if work.request.id == id), None)

    def begin(self, work: Work) -> None:
        """Give it a place."""
        self.begun[work.request.id] = work

    def wait(self, work: Work) -> Work | None:
        """Let it wait in the order of ages; returns the request that has no room then: the youngest, perhaps itself."""
        insort(self.waiting, work, key=lambda each: each.since)
        return self.waiting.pop() if len(self.waiting) > self._settings.waiting else None

    def remove(self, work: Work) -> Work | None:
        """Remove it; returns the request that now gets its place and must begin, if any."""
        if self.begun.pop(work.request.id, None) is None:
            self.waiting.remove(work)
        elif self.waiting and self.has_place:
            following = self.waiting.pop(0)
            self.begin(following)
            return following
        return None

    def remove_overdue(self) -> list[Work]:
        """Remove and return those that have waited since this was called last."""
        overdue = [work for work in self.waiting if work.is_overdue]
        self.waiting = [work for work in self.waiting if not work.is_overdue]
        for work in self.waiting:
            work.is_overdue = True
        return overdue

    def remove_waiting(self) -> list[Work]:
        """Remove and return all that wait."""
        waiting, self.waiting = self.waiting, []
        return waiting
