"""DurableRunner records the calls of policies, so that another process continues where one was killed.

    async with DurableRunner("sqlite:///runs.db") as runner:
        ctx = Assistant(runner)
        messages = await runner.run(ctx.main, [user("…")], run_id="order-7")     # the same name again: the same run
        messages = await ctx.main([user("…")])                                   # a run of its own

Unfinished runs of an ended process continue as soon as a process with the same contexts is launched.
"""

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Sequence
from threading import Lock
from typing import TYPE_CHECKING, Any

from sabir import Message
from sabir.authoring import AsyncClosing
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
from sabir_runtime.durable.execution import place
from sabir_runtime.durable.faults import parse_fault
from sabir_runtime.durable.ledger import OPEN, name_of
from sabir_runtime.durable.stores import Durability, Settings, close_store, open_store, parse_store, shown, unusable
from sabir_runtime.durable.tables import Run, difference, request_of, whole_request
from sabir_runtime.failures import ReplayMismatch
from sabir_runtime.policies import Batch

if TYPE_CHECKING:
    from dbos import WorkflowHandleAsync

    from sabir_runtime.contexts import BaseContext
    from sabir_runtime.durable.runs import Runs
    from sabir_runtime.durable.worker import Worker

log = logging.getLogger("sabir.durable")


class DurableRunner(Runner, AsyncClosing):
    """Performs bound calls in runs that survive their process.

    `store` is `sqlite:///file.db`, which needs nothing else, or `postgresql://…`, which many machines can share.
    `application` and `version` name the runs' owner: only workers of the same version continue a run, so raise it when
    a change of code makes old runs unrepeatable. `beat`: seconds between two checks for cancelled runs, decisions and
    dead workers; `poll`: seconds between two checks of the queue. `at_once` limits the runs that a worker takes from a
    queue at once, so that others get some too: use one number for all workers of a queue, since the one launched last
    sets it for all. `durability="power"` makes SQLite's writes survive a power cut too.

    The engine, DBOS, is one in each process: runners of equal settings share it, others raise RunnerInUse.
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
            raise StoreInvalid(f"application {application!r} is no name; use 3 or more of a-z, 0-9, - and _")
        for name, seconds in {"beat": beat, "poll": poll}.items():
            if not 0 < seconds < float("inf"):
                raise SettingsInvalid(f"{name}={seconds} is no time between two looks; give seconds, more than 0")
        if at_once is not None and at_once < 1:
            raise SettingsInvalid(f"at_once={at_once} is no number of runs; give 1 or more, or None for no bound")
        self._settings = Settings(parse_store(store), application, version, durability, beat, poll, at_once)
        self._contexts: dict[str, BaseContext] = {}
        self._worker: Worker | None = None
        self._launching: asyncio.Lock | None = None
        self._submitting: Runs | None = None
        self._opening = Lock()

    def create_bind_function(self, ctx: "BaseContext") -> Callable[..., BoundPolicy]:
        """Return the function that binds policies to the context, which performs the runs of its class from now on.

        Raises DurableFault if another class has one of its stored names, because their runs would be mixed up.
        """
        names = stored_names(ctx)
        for name in names:
            check_one_class(self._contexts.get(name), ctx)
        self._contexts.update(dict.fromkeys(names, ctx))
        return super().create_bind_function(ctx)

    def perform(self, call: BoundCall) -> Awaitable[Batch]:
        """The batch of a call: within a run, recorded at its path; outside, performed as a new run."""
        where = place.get()
        if where is not None:
            return where.execution.record(paths.next_path(call.name), call)
        return self._run(call, name_of(None))

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
        """Perform a run here, and return its batch. A run of that name is not performed twice: its result is returned.

        Raises PolicyFailed if the policy failed, RunPaused or RunCancelled if the run was stopped, ReplayMismatch if a
        run of that name had another request, or its code behaves differently, RunConflict if it waits for another
        version without a worker, and StoreInvalid if the store cannot be written. A caller that stops waiting does not
        stop the run: it continues until `runs.cancel`.
        """
        if place.get() is not None:
            raise RunConflict(f"a run within a run: call {bound.name!r} through its context instead")
        call = BoundCall(bound, observations, options, bound.signature.check(arguments))
        return await self._run(call, name_of(run_id))

    async def start(
        self,
        bound: BoundPolicy,
        observations: str | Message | Sequence[Message],
        options: Sequence[str] | None = None,
        *,
        run_id: str | None = None,
        **arguments: Any,
    ) -> str:
        """Give a run to any free worker, this one included; returns its name, for `result`."""
        call = BoundCall(bound, observations, options, bound.signature.check(arguments))
        worker = await self.launch()
        asked = self._asked(call, name_of(run_id))
        stored = await worker.store(worker.runs.enqueue, asked)
        self._check_same(stored, asked)
        await self._check_served(worker, stored)
        return asked.run

    async def submit(
        self,
        bound: BoundPolicy,
        observations: str | Message | Sequence[Message],
        options: Sequence[str] | None = None,
        *,
        run_id: str | None = None,
        **arguments: Any,
    ) -> str:
        """Give a run to the workers of the store; this process need not be a worker. Returns its name.

        As `start`, but nothing is launched here: if there is no worker, the run waits for one.
        """
        call = BoundCall(bound, observations, options, bound.signature.check(arguments))
        asked = self._asked(call, name_of(run_id))
        stored = await asyncio.to_thread(self._submit, asked)
        self._check_same(stored, asked)
        return asked.run

    def _submit(self, asked: Run) -> Run:
        from sabir_runtime.durable.runs import Runs
        from sabir_runtime.durable.worker import make_store

        url = self._settings.url
        try:
            with self._opening:
                if self._submitting is None:
                    runs = Runs(open_store(url, self._settings.durability))
                    make_store(runs.engine, url)
                    self._submitting = runs
            return self._submitting.enqueue(asked)
        except DBAPIError as error:
            raise unusable(url, error.orig or error, "used") from None

    async def result(self, run_id: str) -> Batch:
        """Wait for a run, wherever it is performed, and return its batch; raises as `run` does.

        If no worker of the run's version exists, this waits too, with a warning in the log.
        """
        from sabir_runtime.durable import engine

        worker = await self.launch()
        stored = await worker.store(worker.ledger.run, run_id)
        try:
            await self._check_served(worker, stored)
        except RunConflict as unserved:
            log.warning("%s", unserved)
        while stored.wish == "run" and not await worker.store(worker.runs.statuses.is_known, run_id):
            await asyncio.sleep(worker.settings.poll)  # it is recorded, but the engine does not know it yet
            stored = await worker.store(worker.ledger.run, run_id)
        return await self._result(worker, run_id, engine.find(run_id))

    async def recover(self, *contexts: "BaseContext") -> list[str]:
        """Launch, and continue unfinished runs; returns the names of the runs that are queued, running or waiting.

        `contexts` are optional: the runner knows the contexts that were made with it.
        """
        worker = await self.launch()
        for context in contexts:
            await worker.add(context)
        return await worker.store(worker.runs.unfinished, self._settings.application)

    async def decide(self, run_id: str, path: str, messages: str | Message | Sequence[Message]) -> None:
        """Record a person's choice for a call that waits for it; see Runs.decide, which needs no runner."""
        worker = await self.launch()
        await worker.store(worker.runs.decide, run_id, path, messages)

    async def launch(self) -> "Worker":
        """Start the worker, if it does not run yet: runs of dead workers continue here."""
        self._launching = self._launching or asyncio.Lock()
        async with self._launching:
            if self._worker is None:
                self._worker = await _acquire(self._settings, list(self._contexts.values()))
        for name, context in self._contexts.items():
            if self._worker.contexts.get(name) is not context:
                await self._worker.add(context)
        return self._worker

    @property
    def runs(self) -> "Runs":
        """All runs of the store, to inspect and control; its methods block. Raises DurableFault before the launch."""
        if self._worker is None:
            raise DurableFault("the runner is not launched yet; await runner.launch() first")
        return self._worker.runs

    async def aclose(self) -> None:
        """Stop the worker. Unfinished runs stay for another worker or the next launch."""
        worker, self._worker = self._worker, None
        runs, self._submitting = self._submitting, None
        if runs is not None:
            await asyncio.to_thread(_close, runs)
        if worker is not None:
            await _release(worker)

    async def _run(self, call: BoundCall, name: str) -> Batch:
        worker = await self.launch()
        asked = self._asked(call, name, worker.name)
        worker.live[name] = call.bound
        try:
            starting = await asyncio.shield(asyncio.ensure_future(self._begin(worker, asked)))
            return await self._result(worker, name, asyncio.shield(starting))
        finally:
            worker.live.pop(name, None)

    async def _begin(self, worker: "Worker", asked: Run) -> "asyncio.Task[WorkflowHandleAsync[None]]":
        """Record a run and start it, as a task: a caller cancelled in between must not leave a run without a worker."""
        from sabir_runtime.durable import engine

        stored = await worker.store(worker.ledger.create, asked)
        self._check_same(stored, asked)
        await self._check_served(worker, stored)
        return asyncio.ensure_future(engine.start(asked.run))

    async def _result(self, worker: "Worker", name: str, handle: "Awaitable[WorkflowHandleAsync[None]]") -> Batch:
        ended: Exception | None = None
        try:
            await (await handle).get_result(polling_interval_sec=worker.settings.poll)
        except asyncio.CancelledError:
            if worker.is_closed:
                raise _left(name) from None
            raise
        except RowRefused as refused:
            raise RowRefused(refused.detail, refused.run or name) from None
        except StoreInvalid:  # nothing of it could be recorded
            raise
        except Exception as error:  # the ledger has the error
            if worker.is_closed:
                raise _left(name) from error
            ended = error
        run = await worker.store(worker.ledger.run, name)
        recorded = await worker.store(worker.ledger.find, name, f"0:{run.name}")
        if recorded is None or recorded.state in OPEN:
            raise _stopped(run) from ended
        return recorded.outcome()

    async def _check_served(self, worker: "Worker", stored: Run) -> None:
        """Raise RunConflict for a run that waits for another version without a worker: it may wait forever."""
        version = self._settings.version
        if stored.version == version:
            return
        summary = await worker.store(worker.runs.summary, stored.run)
        if summary.state == "queued" and summary.waits_for:
            remedy = f"start one, or `sabir runs fork {stored.run} --for-version {version}`, or cancel it"
            raise RunConflict(
                f"run {stored.run!r} waits for {summary.waits_for}, and this is version {version!r}; {remedy}"
            )

    def _check_same(self, stored: Run, asked: Run) -> None:
        """Raise RunConflict or ReplayMismatch if a stored run of that name is not the run that is asked for."""
        if stored.application != asked.application:
            owner = f"application {stored.application!r}, and this is {asked.application!r}"
            raise RunConflict(f"run {asked.run!r} belongs to {owner}; give another run_id")
        context = self._contexts.get(stored.context)  # also under an earlier name
        is_same_context = stored.context == asked.context or (
            context is not None and context is self._contexts.get(asked.context)
        )
        if is_same_context and (stored.name, stored.digest) == (asked.name, asked.digest):
            return
        was, now = f"{stored.context}.{stored.name}", f"{asked.context}.{asked.name}"
        differs = f"{was}, and is now asked of {now}"
        if is_same_context and stored.name == asked.name:
            differs = f"{was} with other observations or arguments: {difference(stored.request, asked.request)}"
        raise ReplayMismatch(f"run {asked.run!r} was asked of {differs}; give what it was given, or another run_id")

    def _asked(self, call: BoundCall, name: str, worker: str | None = None) -> Run:
        """Make the row of a run that is asked for."""
        settings, context = self._settings, stored_names(call.bound.context)[0]
        digest, request = request_of(call).digest, whole_request(call)
        return Run(name, settings.application, settings.version, context, call.name, digest, request, worker=worker)


_shared: "Worker | None" = None
"""The worker of this process."""


async def _acquire(settings: Settings, contexts: "list[BaseContext]") -> "Worker":
    global _shared  # noqa: PLW0603  # one engine in each process
    from sabir_runtime.durable.worker import Worker

    worker = _shared
    if worker is None:
        worker = _shared = Worker(settings)
        try:
            await worker.launch(contexts)
        except BaseException:
            _shared = None
            raise
    if worker.settings != settings:
        store = shown(worker.settings.url)
        raise RunnerInUse(f"a DurableRunner of {store} works in this process, and there can be one; close it first")
    worker.holders += 1
    return worker


async def _release(worker: "Worker") -> None:
    global _shared  # noqa: PLW0603
    worker.holders -= 1
    if _shared is worker and not worker.holders:
        _shared = None
        await worker.close()


def _close(runs: "Runs") -> None:
    runs.close()
    close_store(runs.engine)


def _left(name: str) -> RunTaken:
    return RunTaken(f"run {name!r} was left unfinished: its runner was closed; launch one to go on")


def _stopped(run: Run) -> Exception:
    """Make the error for a run that ended here without a result."""
    fault = parse_fault(run.fault)
    if fault is not None:
        return fault
    if run.wish == "pause":
        why = f": {run.fault}" if run.fault else ""
        return RunPaused(f"run {run.run!r} is paused{why}; `sabir runs resume {run.run}` carries it on")
    if run.wish == "cancel":
        return RunCancelled(f"run {run.run!r} was cancelled; `sabir runs resume {run.run}` carries it on after all")
    return RunConflict(f"run {run.run!r} ended without a result; `sabir runs show {run.run}` shows where")
