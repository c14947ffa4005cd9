"""The durable worker: the part of a process that performs runs, and recovers the runs of dead workers.

    event loop      executions of runs, each a task
    threads         the ledger, so that a database does not block the loop
    one thread      the beat, a check every `beat` seconds: keep the lock · stop runs that another worker took
                    · deliver people's decisions · requeue runs of dead workers

A process has at most one worker and one engine. Runners with equal settings share the worker.
"""

import asyncio
import logging
import os
import socket
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, ParamSpec, TypeVar
from uuid import uuid4

from dbos import error as engine_errors
from sabir.authoring import create_private_file
from sqlalchemy import URL, Engine
from sqlalchemy.exc import DBAPIError

from sabir_runtime.contexts import BoundCall, BoundPolicy
from sabir_runtime.durable import engine
from sabir_runtime.durable.context_names import check_one_class, stored_names
from sabir_runtime.durable.errors import DurableFault, RowRefused, RunStopped, RunTaken, StoreInvalid
from sabir_runtime.durable.execution import Execution
from sabir_runtime.durable.layouts import make_tables
from sabir_runtime.durable.ledger import Ledger
from sabir_runtime.durable.runs import Runs, patience_of, queue_of, recover
from sabir_runtime.durable.statuses import WorkerList
from sabir_runtime.durable.stored_faults import fault_text
from sabir_runtime.durable.stores import (
    RunnerSettings,
    bounds_of,
    close_store,
    is_sqlite,
    make_lease,
    open_store,
    reach_store,
    store_error,
)
from sabir_runtime.durable.tables import RunRow, unpack_request
from sabir_runtime.failures import PolicyFailed, PolicyInvalid, ReplayMismatch

if TYPE_CHECKING:
    from sabir_runtime.contexts import BaseContext

Parameters = ParamSpec("Parameters")
Returned = TypeVar("Returned")
log = logging.getLogger("sabir.durable")

CLOSING = 20.0
"""The maximum number of seconds that a closing worker waits for its runs to stop, and then again for its beat."""


def make_store(database: Engine, url: URL) -> None:
    """Connect to a store, and create or upgrade the tables of runs and of the engine."""
    if is_sqlite(url):
        with suppress(OSError):  # if the file cannot be created, SQLite's error below says why
            create_private_file(str(url.database))
    reach_store(database)
    make_tables(database)
    url = url.set(drivername=database.dialect.name)
    bounds = {} if is_sqlite(url) else {name: str(bound) for name, bound in bounds_of(url).items()}
    engine.migrate(url.update_query_dict(bounds).render_as_string(hide_password=False))


class DurableWorker:
    """The worker of this process, which performs runs of one store. Returned by `DurableRunner.launch`.

    All open runners of the process share it. `name` is the worker's id in the store.
    """

    def __init__(self, settings: RunnerSettings) -> None:
        self.settings = settings
        self.name = f"{socket.gethostname()}-{os.getpid()}-{uuid4().hex[:8]}"
        self.engine = open_store(settings.url, settings.durability)
        self.ledger = Ledger(self.engine)
        self.runs = Runs(self.engine)
        self._threads = ThreadPoolExecutor(1 if is_sqlite(settings.url) else 8, "sabir-durable")
        self._lease, self._workers = make_lease(settings.url, self.name), WorkerList(self.engine)
        self.contexts: dict[str, BaseContext] = {}
        """Stored or earlier name of a context → the context that performs the runs with this name."""
        self.holders = 0
        """The number of open runners that share this worker."""
        self.live: dict[str, BoundPolicy] = {}
        """Run name → the bound policy to call, for runs that a caller in this process started and awaits."""
        self._executions: set[Execution] = set()
        self._performing: dict[Future[None], asyncio.AbstractEventLoop] = {}
        """A future for each run that the engine has started here → the event loop of the run.

        The future is done when this worker has released the run, or did not take it.
        """
        self._stranded: dict[str, int] = {}
        self._waiting: dict[asyncio.Future[str], tuple[str, str]] = {}
        self._ended = threading.Event()
        self._beating = threading.Thread(target=self._run_beats, name="sabir-durable-beat", daemon=True)

    async def launch(self, contexts: "list[BaseContext]") -> None:
        """Take the worker's lock, start the engine and the beat, and requeue the runs of dead workers.

        If a step fails, closes everything and raises the error.
        """
        settings = self.settings
        try:
            await self.store(self._prepare_store)
            for context in contexts:
                self._add_context(context)
            queues = [queue_of(settings.application, name) for name in self.contexts]
            await self.store(self.runs.open_queues, queues, settings.poll, settings.at_once)
            engine.launch(self.engine, settings, self.name, queues, self._execute_run)
            await self.store(self._recover)
            await self.store(self._warn_stranded)
            self._beating.start()
        except BaseException:
            self._ended.set()
            await engine.shut_down()
            self._close_store()
            raise

    async def add(self, context: "BaseContext") -> None:
        """Perform the runs of this context's class too. The context that was added last performs the runs of a class.

        Raises DurableFault if a context of another class has the same stored name.
        """
        new = [name for name in stored_names(context) if name not in self.contexts]
        self._add_context(context)
        queues = [queue_of(self.settings.application, name) for name in new]
        await self.store(self.runs.open_queues, queues, self.settings.poll, self.settings.at_once)
        for queue in queues:
            engine.listen(queue)

    @property
    def is_closed(self) -> bool:
        """True once the worker is closing or closed."""
        return self._ended.is_set()

    async def close(self) -> None:
        """Stop the unfinished runs here and release the lock. Other workers continue the runs.

        Waits at most `CLOSING` seconds for the runs to stop, and then at most `CLOSING` seconds for the beat to end.
        """
        self._ended.set()
        for execution in list(self._executions):
            self._stop_execution(execution, "is unfinished, because its runner was closed")
        ends = [asyncio.wrap_future(ended) for ended, loop in list(self._performing.items()) if loop.is_running()]
        if ends:
            _, late = await asyncio.wait(ends, timeout=CLOSING)
            if late:
                log.warning("worker %s ends while %d of its runs have not stopped", self.name, len(late))
        await asyncio.to_thread(self._beating.join, CLOSING)
        await engine.shut_down()
        await asyncio.to_thread(self._sign_off)

    async def store(
        self, work: Callable[Parameters, Returned], *arguments: Parameters.args, **named: Parameters.kwargs
    ) -> Returned:
        """Call a function that uses the store in a thread, and return its value.

        While the store cannot be reached or is locked, the call is repeated every `beat` seconds. A write may be
        repeated, because the first write of a value counts. Raises StoreInvalid for a lasting failure, and for any
        failure once the worker is closing.
        """
        loop = asyncio.get_running_loop()
        while True:
            try:
                return await loop.run_in_executor(self._threads, partial(work, *arguments, **named))
            except DBAPIError as error:
                refused = store_error(self.settings.url, error.orig or error, "used")
                if self.is_closed or not _may_succeed_later(error):
                    raise refused from None
                log.warning("using the store failed, trying again: %s", refused)
                await asyncio.sleep(self.settings.beat)

    async def decision(self, run: str, path: str) -> str:
        """Wait for a person's decision on a call, and return the batch as JSON."""
        future: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._waiting[future] = (run, path)
        try:
            return await future
        finally:
            del self._waiting[future]

    def _prepare_store(self) -> None:
        make_store(self.engine, self.settings.url)
        if not self._lease.hold():
            raise StoreInvalid("this worker cannot get its lock in the store; check that the store accepts connections")
        self._sign_on()

    def _sign_on(self) -> None:
        settings = self.settings
        self._workers.add(self.name, settings.application, settings.version, socket.gethostname(), os.getpid())

    def _sign_off(self) -> None:
        try:
            if not self.runs.statuses.left_by(self.name):
                self._workers.remove(self.name)
        except DBAPIError as error:  # when the store is back, another worker takes the lock and removes this worker
            refused = store_error(self.settings.url, error.orig or error, "used")
            log.warning("worker %s ends, but stays in the store's list of workers: %s", self.name, refused)
        finally:
            self._close_store()

    def _close_store(self) -> None:
        self._lease.release()
        self.runs.close()
        self._threads.shutdown()
        close_store(self.engine)

    async def _execute_run(self, name: str, refused: RowRefused | None = None) -> None:
        """Perform one run for the engine, until the run ends or this worker closes.

        With `refused`, pause the run and store the refusal as the reason.
        """
        ended: Future[None] = Future()
        ended.set_running_or_notify_cancel()  # so a cancelled caller cannot cancel the future
        self._performing[ended] = asyncio.get_running_loop()
        try:
            if self.is_closed:
                raise asyncio.CancelledError  # this worker has not taken the run, so another worker continues it
            await self._perform_run(name, refused)
        finally:
            del self._performing[ended]
            ended.set_result(None)

    async def _perform_run(self, name: str, refused: RowRefused | None) -> None:
        execution: Execution | None = None
        try:
            if refused is not None:
                raise refused
            run, execution = await self._claim_run(name)
            await execution.perform(self._make_call(run))
        except (RunStopped, asyncio.CancelledError) as stopped:
            if isinstance(stopped, asyncio.CancelledError) or self.is_closed:
                raise asyncio.CancelledError from None  # nothing is recorded, so another worker continues the run
            if execution is None:
                await self.store(self.runs.stay_stopped, name)
            # The engine then waits for the outcome that the run's present worker records.
            raise engine_errors.DBOSWorkflowCancelledError(str(stopped)) from None
        except (ReplayMismatch, PolicyInvalid, DurableFault) as fault:
            if isinstance(fault, PolicyFailed):
                raise  # the policy's own failure, which the ledger contains
            if self.is_closed:
                raise asyncio.CancelledError from None
            await self.store(self.runs.park, name, fault_text(fault))
            raise engine_errors.DBOSWorkflowCancelledError(str(fault)) from None
        finally:
            if execution is not None:
                await asyncio.shield(asyncio.ensure_future(self._release_run(execution)))

    async def _claim_run(self, name: str) -> tuple[RunRow, Execution]:
        """Claim a run as soon as no worker executes a part of it. Return its row and its execution.

        Raises RunTaken if this worker is closed meanwhile.
        """
        while True:
            await self._stop_earlier(name)
            claim = await self.store(self.ledger.claim, name, self.name)
            if claim is not None and not self._executions_here(name):
                break
            if self.is_closed:
                raise RunTaken(f"run {name!r} is unfinished, because its runner was closed")
            log.info("run %s waits for a worker that has not released it yet", name)
            await asyncio.sleep(self.settings.beat if claim is None else 0)
        run, hold, known = claim
        execution = Execution(self, hold, known, run.headers)
        self._executions.add(execution)
        if self.is_closed:
            execution.stop(RunTaken(f"run {name!r} is unfinished, because its runner was closed"))
        return run, execution

    def _executions_here(self, name: str) -> list[Execution]:
        """Return the executions of a run in this process whose event loops are still running."""
        return [each for each in list(self._executions) if each.hold.run == name and each.loop.is_running()]

    async def _stop_earlier(self, name: str) -> None:
        """Stop earlier executions of a run in this process, and wait for their ends.

        A run that is stopped and resumed within a beat may come back to the same worker.
        """
        for execution in self._executions_here(name):
            self._stop_execution(execution, "was started again")
            await asyncio.shield(asyncio.wrap_future(execution.ended))

    async def _release_run(self, execution: Execution) -> None:
        try:
            await self.store(self.ledger.release, execution.hold.run, self.name)
        except (DurableFault, RuntimeError) as fault:  # closed meanwhile; the free lock shows that the worker has ended
            log.warning("run %s could not be released: %s", execution.hold.run, fault)
        finally:
            self._executions.discard(execution)
            execution.ended.set_result(None)

    def _add_context(self, context: "BaseContext") -> None:
        names = stored_names(context)
        for name in names:
            check_one_class(self.contexts.get(name), context)
        self.contexts.update(dict.fromkeys(names, context))

    def _make_call(self, run: RunRow) -> BoundCall:
        context = self.contexts.get(run.context)
        bound: object = self.live.get(run.run) or (vars(context).get(run.name) if context is not None else None)
        if not isinstance(bound, BoundPolicy):
            remedy = "run the code that began the run"
            raise ReplayMismatch(f"run {run.run!r} calls {run.context}.{run.name}, which is not bound here; {remedy}")
        observations, options, arguments = unpack_request(run.request)
        return BoundCall(bound, observations, options, bound.signature.decode(arguments))

    def _run_beats(self) -> None:
        while not self._ended.wait(self.settings.beat):
            try:
                if self._lease.hold() and not self._workers.mark_seen(self.name):
                    self._sign_on()
                self._stop_lost_runs()
                self._deliver_decisions()
                if self._recover():
                    self._warn_stranded()
            except Exception:  # after any error, the lock is kept and the next beat tries again
                log.warning("a periodic check of worker %s failed; the next check follows", self.name, exc_info=True)

    def _recover(self) -> list[str]:
        unseen = patience_of(self.settings.url, self.settings.beat)
        return recover(self.runs, self._workers, self._lease, unseen=unseen, apart_from=self.name)

    def _warn_stranded(self) -> None:
        """Log a warning if queued runs wait for a version without a worker. Repeated only if their numbers change."""
        stranded = dict(self.runs.statuses.stranded(self.settings.application))
        if stranded and stranded != self._stranded:
            counts = ", ".join(f"{number} of version {version!r}" for version, number in stranded.items())
            fork = f"`sabir runs fork RUN --for-version {self.settings.version}`"
            remedy = f"start workers of those versions, or repeat these runs in this version ({fork}), or cancel them"
            log.warning("queued runs wait, because no worker of their version is running: %s; %s", counts, remedy)
        self._stranded = stranded

    def _stop_lost_runs(self) -> None:
        executions = list(self._executions)
        epochs = self.ledger.epochs([execution.hold.run for execution in executions]) if executions else {}
        for execution in executions:
            if epochs.get(execution.hold.run) != execution.hold.epoch:
                self._stop_execution(execution, "was stopped, or given to another worker")

    def _stop_execution(self, execution: Execution, why: str) -> None:
        reason = RunTaken(f"run {execution.hold.run!r} {why}")
        with suppress(RuntimeError):  # the execution's event loop is closed
            execution.loop.call_soon_threadsafe(execution.stop, reason)

    def _deliver_decisions(self) -> None:
        waiting = list(self._waiting.items())
        calls = self.ledger.find_decided([key for _, key in waiting]) if waiting else []
        decided = {(call.run, call.path): call.batch or call.messages_json for call in calls}
        for future, key in waiting:
            if key in decided:
                with suppress(RuntimeError):
                    future.get_loop().call_soon_threadsafe(_resolve, future, decided[key])


def _resolve(future: "asyncio.Future[str]", text: str) -> None:
    if not future.done():
        future.set_result(text)


def _may_succeed_later(error: DBAPIError) -> bool:
    """Return whether a call may succeed later: no connection, the server shuts down, or another writer has a lock."""
    state = getattr(error.orig, "sqlstate", None) or ""
    return (
        error.connection_invalidated
        or state.startswith(("08", "57P", "40"))
        or "locked" in str(error.orig)
        or "connection" in str(error.orig)
    )
