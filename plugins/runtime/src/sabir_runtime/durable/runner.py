"""DurableRunner stores the calls of policies, so that another process can continue where one was killed.

    async with DurableRunner("sqlite:///runs.db") as runner:
        ctx = Assistant(runner)
        messages = await runner.run(ctx.main, [user("…")], run_id="order-7")     # the same run_id: the same run
        messages = await ctx.main([user("…")])                                   # a new run

Unfinished runs of a dead process continue when a process with the same contexts, application and version launches its
runner.
"""

import asyncio
import json
import logging
import re
from collections.abc import Awaitable, Callable, Sequence
from threading import Lock
from typing import TYPE_CHECKING, Any

from sabir import Message
from sabir.authoring import AsyncClosing, work_headers
from sabir.errors import SettingsInvalid
from sqlalchemy.exc import DBAPIError

from sabir_runtime import paths
from sabir_runtime.contexts import BoundCall, BoundPolicy, Runner
from sabir_runtime.durable.context_names import check_one_class, stored_names
from sabir_runtime.durable.errors import (
    DurableFault,
    RowRefused,
    RunCancelled,
    RunConflict,
    RunnerInUse,
    RunPaused,
    RunTaken,
    StoreInvalid,
)
from sabir_runtime.durable.execution import current_call
from sabir_runtime.durable.ledger import OPEN, name_of
from sabir_runtime.durable.stored_faults import parse_fault
from sabir_runtime.durable.stores import (
    Durability,
    RunnerSettings,
    close_store,
    display_url,
    open_store,
    parse_store,
    store_error,
)
from sabir_runtime.durable.tables import RunRow, difference, request_of, whole_request
from sabir_runtime.failures import ReplayMismatch
from sabir_runtime.policies import Batch

if TYPE_CHECKING:
    from dbos import WorkflowHandleAsync

    from sabir_runtime.contexts import BaseContext
    from sabir_runtime.durable.runs import Runs
    from sabir_runtime.durable.worker import DurableWorker

log = logging.getLogger("sabir.durable")


class DurableRunner(Runner, AsyncClosing):
    """Performs the calls of a context's policies as stored runs, which another process continues after a crash.

    A run is one call from outside, with all calls that its policies make. Each batch and result is stored before the
    run uses it, and a repeated run reads the stored batches and results instead of calling the policies again.

    `store` is `sqlite:///file.db`, or `postgresql://user@host/database` for several machines. Only workers with
    the same `application` and `version` continue a run: change `version` when new code cannot repeat old runs. Every
    `beat` seconds a worker looks for cancelled runs, decisions and dead workers, and every `poll` seconds for queued
    runs. `at_once` is the maximum number of queued runs of one context that one worker performs at the same time; None
    means no limit. The worker that was launched last sets `at_once` and `poll` for all workers of a queue. With
    `durability="power"`, SQLite's writes also survive a power cut.

    Raises StoreInvalid for a wrong store URL or application name, and SettingsInvalid for wrong numbers. All
    launched runners of a process must have equal settings, otherwise `launch` raises RunnerInUse.

    >>> import asyncio
    >>> from sabir_runtime import BaseContext, llm_policy
    >>> from sabir_runtime.durable import DurableRunner
    >>> class Desk(BaseContext):
    ...     def __init__(self, runner):
    ...         super().__init__(runner)
    ...         self.llm = self._bind(llm_policy("echo:m"))
    >>> async def main():
    ...     async with DurableRunner("sqlite:///runs.db") as runner:
    ...         batch = await runner.run(Desk(runner).llm, "Hello!", run_id="order-7")
    ...         return batch[0].text, runner.runs.summary("order-7").state
    >>> asyncio.run(main())
    ('Hello!', 'done')
    """

    def __init__(
        self,
        store: str,
        *,
        application: str = "sabir",
        version: str = "1",
        durability: Durability = "process",
        beat: float = 1.0,
        poll: float = 0.2,
        at_once: int | None = None,
    ) -> None:
        if not re.fullmatch(r"[a-z0-9_-]{3,200}", application):
            raise StoreInvalid(f"application={application!r} is not a valid name; use 3 to 200 of a-z, 0-9, - and _")
        for name, seconds in {"beat": beat, "poll": poll}.items():
            if not 0 < seconds < float("inf"):
                raise SettingsInvalid(f"{name}={seconds} is not a valid interval; give a number of seconds above 0")
        if at_once is not None and at_once < 1:
            raise SettingsInvalid(f"at_once={at_once} is not a valid limit; give 1 or more, or None for no limit")
        self._settings = RunnerSettings(parse_store(store), application, version, durability, beat, poll, at_once)
        self._contexts: dict[str, BaseContext] = {}
        self._worker: DurableWorker | None = None
        self._launching: asyncio.Lock | None = None
        self._submitting: Runs | None = None
        self._opening = Lock()

    def create_bind_function(self, ctx: "BaseContext") -> Callable[..., BoundPolicy]:
        """Return the function that binds policies to a context. Called by `BaseContext.__init__`.

        The context performs the stored runs of its class once this runner is launched, or is used again after that. Of
        several contexts of a class, the one created last does.
        Raises DurableFault if this runner has a context of another class with the same stored name, because the runs of
        both classes would be mixed up.
        """
        names = stored_names(ctx)
        for name in names:
            check_one_class(self._contexts.get(name), ctx)
        self._contexts.update(dict.fromkeys(names, ctx))
        return super().create_bind_function(ctx)

    def perform(self, call: BoundCall) -> Awaitable[Batch]:
        """Perform a bound call and return its batch. Raises the errors of `run`.

        A call inside a run is stored as a part of this run. Any other call starts a new run with a random name.
        """
        outer = current_call.get()
        if outer is not None:
            return outer.execution.record(paths.next_path(call.name), call)
        return self._perform_run(call, name_of(None))

    # Each policy has keyword parameters of its own, hence Any.
    async def run(
        self,
        bound: BoundPolicy,
        observations: str | Message | Sequence[Message],
        options: Sequence[str] | None = None,
        *,
        run_id: str | None = None,
        **arguments: Any,
    ) -> Batch:
        """Call a bound policy as a run in this process, and return its batch with the results of option calls.

        `run_id` names the run; by default the name is random. If the store already has a run of this name, no second
        run is started: the call waits for the stored run and returns its result. `arguments` are the policy's own.
        Cancelling the caller does not stop the run; use `runs.cancel`.

        Raises PolicyFailed if the policy failed, RunPaused or RunCancelled if the run was stopped, and RunTaken if the
        runner was closed. Raises ReplayMismatch if the stored run has another request or the code has changed. Raises
        RunConflict inside another run, for an invalid `run_id`, if the name belongs to another application, if no
        worker serves the stored run's version, and if the run ended without a result. Raises StoreInvalid if the store
        cannot be used, RunnerInUse as `launch` does, PolicyInvalid for wrong arguments, and UnknownOption for unknown
        options.
        """
        if current_call.get() is not None:
            raise RunConflict(f"a run cannot start another run; call {bound.name!r} through its context instead")
        call = BoundCall(bound, observations, options, bound.signature.check(arguments))
        return await self._perform_run(call, name_of(run_id))

    async def start(
        self,
        bound: BoundPolicy,
        observations: str | Message | Sequence[Message],
        options: Sequence[str] | None = None,
        *,
        run_id: str | None = None,
        **arguments: Any,
    ) -> str:
        """Put a run into the queue of the store's workers, this process included, and return the run's name.

        Does not wait for the run; `result` does. `run_id` and `arguments` are the same as in `run`. If the store
        already has an equal run of this name, nothing is queued. Launches the worker of this process.

        Raises PolicyInvalid and UnknownOption as `run` does, ReplayMismatch or RunConflict if the name belongs to a
        different run, RunConflict for an invalid name and if no worker serves the stored run's version, and
        StoreInvalid and RunnerInUse as `launch` does.
        """
        call = BoundCall(bound, observations, options, bound.signature.check(arguments))
        worker = await self.launch()
        new_run = self._make_run(call, name_of(run_id))
        stored = await worker.store(worker.runs.enqueue, new_run)
        self._check_same(stored, new_run)
        await self._check_served(worker, stored)
        return new_run.run

    async def submit(
        self,
        bound: BoundPolicy,
        observations: str | Message | Sequence[Message],
        options: Sequence[str] | None = None,
        *,
        run_id: str | None = None,
        **arguments: Any,
    ) -> str:
        """Put a run into the queue of the store's workers, and return the run's name without waiting for the run.

        `run_id` and `arguments` are the same as in `run`. Unlike `start`, this does not launch a worker in this
        process. The run waits until a worker takes it. If the store already has an equal run of this name, nothing is
        queued. Raises PolicyInvalid and UnknownOption as `run` does, ReplayMismatch or RunConflict if the name
        belongs to a different run, RunConflict for an invalid name, and StoreInvalid if the store cannot be used.
        """
        call = BoundCall(bound, observations, options, bound.signature.check(arguments))
        new_run = self._make_run(call, name_of(run_id))
        stored = await asyncio.to_thread(self._store_queued, new_run)
        self._check_same(stored, new_run)
        return new_run.run

    def _store_queued(self, new_run: RunRow) -> RunRow:
        from sabir_runtime.durable.runs import Runs
        from sabir_runtime.durable.worker import make_store

        url = self._settings.url
        try:
            with self._opening:
                if self._submitting is None:
                    runs = Runs(open_store(url, self._settings.durability))
                    make_store(runs.engine, url)
                    self._submitting = runs
            return self._submitting.enqueue(new_run)
        except DBAPIError as error:
            raise store_error(url, error.orig or error, "used") from None

    async def result(self, run_id: str) -> Batch:
        """Wait for a run that any process performs, and return its batch.

        Launches the worker of this process. If no worker serves the run's version, a warning is logged, and the call
        waits for such a worker. Raises RunNotFound for an unknown name, RunConflict if the run ended without a result,
        and PolicyFailed, RunPaused, RunCancelled, RunTaken, ReplayMismatch, RunnerInUse and StoreInvalid as `run` does.
        """
        from sabir_runtime.durable import engine

        worker = await self.launch()
        stored = await worker.store(worker.ledger.run, run_id)
        try:
            await self._check_served(worker, stored)
        except RunConflict as unserved:
            log.warning("%s", unserved)
        while stored.wish == "run" and not await worker.store(worker.runs.statuses.is_known, run_id):
            await asyncio.sleep(worker.settings.poll)  # the run is recorded, but the engine does not know it yet
            stored = await worker.store(worker.ledger.run, run_id)
        return await self._wait_for_batch(worker, run_id, engine.find(run_id))

    async def recover(self, *contexts: "BaseContext") -> list[str]:
        """Launch the worker, so that unfinished runs continue, and return the names of all unfinished runs.

        Unfinished runs are the queued, running and waiting runs of this runner's application, the oldest first.
        `contexts` are further contexts whose runs this worker performs. Contexts created with this runner need not be
        passed. Does not wait for the runs.
        """
        worker = await self.launch()
        for context in contexts:
            await worker.add(context)
        return await worker.store(worker.runs.unfinished, self._settings.application)

    async def decide(self, run_id: str, path: str, messages: str | Message | Sequence[Message]) -> None:
        """Store a person's decision for the call at `path` that waits for a decision. Launches the worker.

        `messages` is a text, a message or messages. Raises RunNotFound if the run has no such call, and RunConflict if
        the call does not wait, or already has a decision. `Runs.decide` does the same without a worker.
        """
        worker = await self.launch()
        await worker.store(worker.runs.decide, run_id, path, messages)

    async def launch(self) -> "DurableWorker":
        """Start the worker of this process, unless it is running, and return it. Requeues the runs of dead workers.

        Calls of policies, and the methods that need the worker, launch it; `async with` does not. Creates or upgrades
        the tables of the store. Raises RunnerInUse if this process has an open runner with other settings, or if other
        code has started DBOS, and StoreInvalid if the store cannot be used.
        """
        self._launching = self._launching or asyncio.Lock()
        async with self._launching:
            if self._worker is None:
                self._worker = await _acquire_worker(self._settings, list(self._contexts.values()))
        for name, context in self._contexts.items():
            if self._worker.contexts.get(name) is not context:
                await self._worker.add(context)
        return self._worker

    @property
    def runs(self) -> "Runs":
        """The `Runs` object of the store, to list and control runs. Its methods block the thread.

        Raises DurableFault before `launch`, and after `aclose`.
        """
        if self._worker is None:
            raise DurableFault("the runner is not launched; await runner.launch() first")
        return self._worker.runs

    async def aclose(self) -> None:
        """Close this runner. When the last open runner of the process is closed, the worker stops.

        Unfinished runs then stay in the store, and callers who await them receive RunTaken. Another worker, or the next
        launch, continues the runs.
        """
        worker, self._worker = self._worker, None
        runs, self._submitting = self._submitting, None
        if runs is not None:
            await asyncio.to_thread(_close_runs, runs)
        if worker is not None:
            await _release_worker(worker)

    async def _perform_run(self, call: BoundCall, name: str) -> Batch:
        worker = await self.launch()
        new_run = self._make_run(call, name, worker.name)
        worker.live[name] = call.bound
        try:
            starting = await asyncio.shield(asyncio.ensure_future(self._start_run(worker, new_run)))
            return await self._wait_for_batch(worker, name, asyncio.shield(starting))
        finally:
            worker.live.pop(name, None)

    async def _start_run(self, worker: "DurableWorker", new_run: RunRow) -> "asyncio.Task[WorkflowHandleAsync[None]]":
        """Store a run and start it. Runs in its own task, so that a run is started even if the caller is cancelled."""
        from sabir_runtime.durable import engine

        stored = await worker.store(worker.ledger.create, new_run)
        self._check_same(stored, new_run)
        await self._check_served(worker, stored)
        return asyncio.ensure_future(engine.start(new_run.run))

    async def _wait_for_batch(
        self, worker: "DurableWorker", name: str, handle: "Awaitable[WorkflowHandleAsync[None]]"
    ) -> Batch:
        ended: Exception | None = None
        try:
            await (await handle).get_result(polling_interval_sec=worker.settings.poll)
        except asyncio.CancelledError:
            if worker.is_closed:
                raise _unfinished_error(name) from None
            raise
        except RowRefused as refused:
            raise RowRefused(refused.detail, refused.run or name) from None
        except StoreInvalid:  # the store could not record a result or a failure
            raise
        except Exception as error:  # the ledger contains the policy's error
            if worker.is_closed:
                raise _unfinished_error(name) from error
            ended = error
        run = await worker.store(worker.ledger.run, name)
        recorded = await worker.store(worker.ledger.find, name, f"0:{run.name}")
        if recorded is None or recorded.state in OPEN:
            raise _stopped_error(run) from ended
        return recorded.outcome()

    async def _check_served(self, worker: "DurableWorker", stored: RunRow) -> None:
        """Raise RunConflict if a queued run needs another version that no worker serves."""
        version = self._settings.version
        if stored.version == version:
            return
        summary = await worker.store(worker.runs.summary, stored.run)
        if summary.state == "queued" and summary.waits_for:
            remedy = f"start one, or `sabir runs fork {stored.run} --for-version {version}`, or cancel it"
            raise RunConflict(
                f"run {stored.run!r} waits for {summary.waits_for}, but this runner has version {version!r}; {remedy}"
            )

    def _check_same(self, stored: RunRow, new_run: RunRow) -> None:
        """Raise RunConflict or ReplayMismatch if the stored run with this name has a different request."""
        if stored.application != new_run.application:
            reason = f"run {new_run.run!r} belongs to application {stored.application!r}"
            raise RunConflict(f"{reason}, but this runner has {new_run.application!r}; use another run_id")
        context = self._contexts.get(stored.context)  # also under an earlier name
        is_same_context = stored.context == new_run.context or (
            context is not None and context is self._contexts.get(new_run.context)
        )
        if is_same_context and (stored.name, stored.digest) == (new_run.name, new_run.digest):
            return
        was, now = f"{stored.context}.{stored.name}", f"{new_run.context}.{new_run.name}"
        differs = f"{was}, not of {now}"
        if is_same_context and stored.name == new_run.name:
            differs = (
                f"{was} with other observations, options or arguments: {difference(stored.request, new_run.request)}"
            )
        raise ReplayMismatch(f"run {new_run.run!r} is a call of {differs}; repeat that call, or use another run_id")

    def _make_run(self, call: BoundCall, name: str, worker: str | None = None) -> RunRow:
        """Return the row of a requested run."""
        settings, context = self._settings, stored_names(call.bound.context)[0]
        digest, request = request_of(call).digest, whole_request(call)
        headers = work_headers()
        return RunRow(
            name, settings.application, settings.version, context, call.name, digest, request,
            worker=worker, headers=json.dumps(headers) if headers else None,
        )  # fmt: skip


_shared: "DurableWorker | None" = None
"""The worker of this process, or None. All open runners share it."""


async def _acquire_worker(settings: RunnerSettings, contexts: "list[BaseContext]") -> "DurableWorker":
    global _shared  # noqa: PLW0603  # one engine in each process
    from sabir_runtime.durable.worker import DurableWorker

    worker = _shared
    if worker is None:
        worker = _shared = DurableWorker(settings)
        try:
            await worker.launch(contexts)
        except BaseException:
            _shared = None
            raise
    if worker.settings != settings:
        store = display_url(worker.settings.url)
        remedy = "close it first, or use equal settings"
        raise RunnerInUse(f"this process already has an open DurableRunner of {store} with other settings; {remedy}")
    worker.holders += 1
    return worker


async def _release_worker(worker: "DurableWorker") -> None:
    global _shared  # noqa: PLW0603
    worker.holders -= 1
    if _shared is worker and not worker.holders:
        _shared = None
        await worker.close()


def _close_runs(runs: "Runs") -> None:
    runs.close()
    close_store(runs.engine)


def _unfinished_error(name: str) -> RunTaken:
    return RunTaken(f"run {name!r} is unfinished, because its runner was closed; launch a runner to continue the run")


def _stopped_error(run: RunRow) -> Exception:
    """Return the error for the caller of a run that stopped without a result."""
    fault = parse_fault(run.fault)
    if fault is not None:
        return fault
    if run.wish == "pause":
        why = f": {run.fault}" if run.fault else ""
        return RunPaused(f"run {run.run!r} is paused{why}; `sabir runs resume {run.run}` continues the run")
    if run.wish == "cancel":
        return RunCancelled(f"run {run.run!r} was cancelled; `sabir runs resume {run.run}` continues the run")
    return RunConflict(f"run {run.run!r} ended without a result; `sabir runs show {run.run}` shows where")
