"""One run in this process: calls are performed, except the calls that the ledger already contains.

    ctx.llm(…) ─▶ path ─▶ the ledger contains
                           ├ nothing     ▶ begin ▶ the policy chooses ▶ batch written ▶ calls answered ▶ result written
                           ├ started     ▶         the policy chooses ▶ …        again, because no batch is stored
                           ├ a batch     ▶                                        calls answered ▶ …
                           ├ a result    ▶ returned, the policy is not run
                           └ a failure   ▶ raised

A call raises the same error at its first failure and when the failure is read from the ledger, so that the calling
policy reacts alike. A fault of the run itself, such as a mismatch with its records, stops the run, even if a policy
catches the error.

A call may wait for a person's decision, even for days and across restarts:

    self.approve = self._bind(human_policy(decision))        in the context
    await runner.decide("order-7", path, "yes")              from any process; or `sabir runs decide order-7 PATH yes`

`sabir runs list --state waiting` lists the waiting runs, and `show` names the path of the call.
"""

import asyncio
import json
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import AbstractContextManager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from typing import NoReturn, ParamSpec, Protocol, TypeVar

from sabir import Message, ToolContext, dumps, loads, unanswered
from sabir.authoring import continue_work, set_during, work_headers

from sabir_runtime import Question, paths
from sabir_runtime.contexts import BoundCall
from sabir_runtime.durable.errors import DurableFault
from sabir_runtime.durable.ledger import OPEN, Hold, Ledger
from sabir_runtime.durable.tables import CallRequest, CallRow, answer_request, difference, encode_failure, request_of
from sabir_runtime.failures import PolicyFailed, ReplayMismatch, is_cancelled
from sabir_runtime.policies import Batch, answer_batch, lanes_of

Parameters = ParamSpec("Parameters")
Returned = TypeVar("Returned")


class ExecutionWorker(Protocol):
    """The part of a worker that an execution uses."""

    ledger: Ledger

    async def store(
        self, work: Callable[Parameters, Returned], *arguments: Parameters.args, **named: Parameters.kwargs
    ) -> Returned:
        """Call a function of the ledger in a thread, and return its value."""

    async def decision(self, run: str, path: str) -> str:
        """Wait for a person's decision on a call, and return the batch as JSON."""


class Execution:
    """A run that this worker has claimed and performs. `known` are the calls stored before the claim.

    `headers` are the stored headers of the run's trace as JSON, or None. With them, a run that continues in another
    process has the same trace.
    """

    def __init__(
        self, worker: ExecutionWorker, hold: Hold, known: dict[str, CallRow], headers: str | None = None
    ) -> None:
        self.hold = hold
        self.loop = asyncio.get_running_loop()
        self._worker, self._ledger, self._known, self._headers = worker, worker.ledger, known, headers
        self._numbers = max((call.number for call in known.values()), default=-1) + 1
        self._stopped: Exception | None = None
        self._task: asyncio.Task[Batch] | None = None
        self._active_calls = 0
        self._is_idle = asyncio.Event()
        self.ended: Future[None] = Future()
        self.ended.set_running_or_notify_cancel()  # so a cancelled caller cannot cancel the future
        """A future that is done when `perform` has ended and the worker has released the run."""

    async def perform(self, call: BoundCall) -> Batch:
        """Perform the run's first call and return its batch. If the run is cancelled, wait until all its parts have
        stopped, and raise the error of `stop`, or else CancelledError.
        """
        with continue_work(json.loads(self._headers or "{}")):
            self._task = asyncio.create_task(self.record(f"0:{call.name}", call))
        try:
            return await self._task
        except asyncio.CancelledError:
            self._task.cancel()
            while self._active_calls:  # tasks of a policy may still run after the policy was cancelled
                self._is_idle.clear()
                await self._is_idle.wait()
            self.check()
            raise

    def stop(self, reason: Exception) -> None:
        """Stop the run with an error. If it is stopped twice, the first error counts.

        Call this in the thread of the run's event loop.
        """
        self._stopped = self._stopped or reason
        if self._task is not None:
            self._task.cancel()

    async def is_held(self) -> bool:
        """Read the store, and return whether this worker still has the run. False after a stop or another claim."""
        epochs = await self._store(self._ledger.epochs, [self.hold.run])
        return self._stopped is None and epochs.get(self.hold.run) == self.hold.epoch

    def check(self) -> None:
        """If the run was stopped, raise the reason."""
        if self._stopped is not None:
            raise self._stopped

    async def record(self, path: str, call: BoundCall) -> Batch:
        """Return the batch of the bound call at a path, from the ledger. If it is not there, perform and store it.

        Raises PolicyFailed if the policy failed, now or when the failure was stored, and the run's fault if it stopped.
        """
        self._active_calls += 1
        try:
            return await self._record_call(path, call)
        finally:
            self._active_calls -= 1
            if not self._active_calls:
                self._is_idle.set()

    async def _record_call(self, path: str, call: BoundCall) -> Batch:
        self.check()
        request = request_of(call)
        row = self._known.get(path)
        if row is None or row.state in OPEN:
            row = await self._store(self._ledger.begin, self.hold, path, self._next_number(), request)
        if row is not None:
            self._check_unchanged(row, request)
        return await self._continue_call(row, path, call)

    async def wait(self, path: str) -> list[Message]:
        """Wait for a person's decision for the call at a path, and return its messages."""
        row = await self._store(self._ledger.wait, self.hold, path)
        return loads(row.batch or await self._worker.decision(self.hold.run, path))

    async def _continue_call(self, row: CallRow | None, path: str, call: BoundCall) -> Batch:
        """Continue a call from its row in the ledger. If another writer stored a value first, use that value."""
        if row is not None and row.state not in OPEN:
            return row.outcome()
        stored_batch = row.batch if row else None
        try:
            with paths.enter(path), _enter_call(self, path), call.announced(self.hold.run):
                await self._store_headers()
                batch = loads(stored_batch) if stored_batch else await call.decide()
                self.check()
                text = stored_batch or dumps(batch)
                calls = unanswered(batch)
                existing = (
                    await self._store(self._ledger.decide, self.hold, path, text)
                    if calls and not stored_batch
                    else None
                )
                if existing is None:
                    result = await answer_batch(batch, partial(self._answer_call, _result_paths(path, calls), call))
                    self.check()
                    written = dumps(result) if calls else None
                    existing = await self._store(self._ledger.finish, self.hold, path, text, written)
                    if existing is None:
                        return result
        except (Exception, asyncio.CancelledError) as error:
            if isinstance(error, asyncio.CancelledError) and is_cancelled():
                raise
            self.check()
            failure = PolicyFailed.from_exception(error)
            existing = await self._store(self._ledger.fail, self.hold, path, stored_batch, encode_failure(failure))
            if existing is None:
                raise failure from failure.__cause__
        return await self._continue_call(existing, path, call)

    async def _store_headers(self) -> None:
        """Store the headers of the run's first span, unless the run has headers or there is no telemetry plugin."""
        if self._headers is None and (headers := work_headers()):
            self._headers = json.dumps(headers)
            await self._store(self._ledger.set_headers, self.hold, self._headers)

    async def _answer_call(self, paths_by_id: dict[int, str], call: BoundCall, message: Message) -> Message:
        """Return the stored result of an option call. If there is none, run the option and store its result."""
        path, request = paths_by_id[id(message)], answer_request(message)
        row = self._known.get(path)
        if row is None:
            started = time.time()
            result = await call.answer(message, self._make_tool_context(path, message))
            self.check()
            row = await self._store(
                self._ledger.answer, self.hold, path, self._next_number(), request, dumps([result]), started
            )
            if row is None:
                return result
        self._check_unchanged(row, request)
        return row.outcome()[0]

    def _make_tool_context(self, path: str, message: Message) -> ToolContext:
        """Return the option's ToolContext. `is_resume` is True if a call made by the option was stored before."""
        call_id = message.call.invocation_id if message.call else ""
        has_begun = any(known.startswith(f"{path}/") for known in self._known)
        return ToolContext(call_id, has_begun, f"{message.id}/{call_id}")

    def _check_unchanged(self, row: CallRow, request: CallRequest) -> None:
        if (row.name, row.digest) != (request.name, request.digest):
            remedy = f"run the code that began it, or `sabir runs fork {row.run} --at '{row.path}'`"
            change = difference(row.request, request.readable)
            self._stop_with(
                ReplayMismatch(f"run {row.run!r} differs from its records at {row.path!r}: {change}; {remedy}")
            )

    async def _store(
        self, work: Callable[Parameters, Returned], *arguments: Parameters.args, **named: Parameters.kwargs
    ) -> Returned:
        try:
            return await self._worker.store(work, *arguments, **named)
        except DurableFault as error:
            self._stop_with(error)

    def _stop_with(self, error: Exception) -> NoReturn:
        self._stopped = self._stopped or error
        raise self._stopped

    def _next_number(self) -> int:
        self._numbers += 1
        return self._numbers - 1


@dataclass(frozen=True)
class CurrentCall:
    """The execution of the current run, and the path of the call that is being performed."""

    execution: Execution
    path: str


current_call: ContextVar[CurrentCall | None] = ContextVar("sabir_runtime.durable.place", default=None)


async def holds_run() -> bool:
    """Return whether this process still performs the run of the current policy or option. Reads the store.

    False means that the run was stopped, or that a worker has taken it again. If a process is suspended, another
    worker may take its run. The store then refuses the process's records, but cannot prevent other effects, such as a
    payment. Call this before such an effect, in a policy or an option. Raises DurableFault outside of a durable run.
    """
    call = current_call.get()
    if call is None:
        raise DurableFault("holds_run() works only in a run of a DurableRunner; call it in a policy or an option")
    return await call.execution.is_held()


def _enter_call(execution: Execution, path: str) -> AbstractContextManager[None]:
    return set_during(current_call, CurrentCall(execution, path))


def _result_paths(path: str, calls: list[Message]) -> dict[int, str]:
    """Return a mapping from `id(call)` to the path of the call's result."""
    return {id(message): f"{path}/[{lane}]" for message, lane in zip(calls, lanes_of(calls), strict=True)}


async def decision(question: Question) -> list[Message]:
    """Wait for a person's decision, and return its messages. Pass this function to `human_policy` as `ask`.

        self.approve = self._bind(human_policy(decision))

    The run waits, for days and across restarts, until `DurableRunner.decide`, `Runs.decide` or `sabir runs decide`
    stores a decision for the call. `question` is not used, because the store already contains the call. Raises
    DurableFault outside of a durable run.
    """
    call = current_call.get()
    if call is None:
        raise DurableFault("`decision` works only in a run of a DurableRunner; pass another function to human_policy")
    return await call.execution.wait(call.path)
