"""List and control the runs of a store, from any process.

    Runs("sqlite:///runs.db") ─┬─ list, show                   read only
                               ├─ cancel, pause, resume        the run's worker stops, or a worker continues the run
                               ├─ fork                         a new run that begins with the records of another run
                               ├─ delete, delete_ended         remove ended runs and their records
                               ├─ decide                       store a person's answer for a waiting call
                               └─ recover                      put the runs of dead workers back into the queue

This process needs no worker. The workers see stops and decisions at their next beat, a periodic check of the store.

`recover` puts only runs of dead workers back into the queue. A process that can take a worker's lock knows that the
worker is dead.

    workers that were not seen lately ─▶ is the lock free? ─ no ─▶ the worker lives: change nothing
                                                └ yes ─▶ for each of its runs: new epoch, requeue ─▶ remove the worker

A worker that is closed releases its runs first, so its end does not count as a death during these runs.
"""

import builtins
import logging
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

import sabir
from sabir import Message, dumps, loads
from sabir.authoring import SyncClosing, as_messages
from sabir.errors import SettingsInvalid
from sqlalchemy import URL, Connection, Engine

from sabir_runtime.durable.errors import RunConflict
from sabir_runtime.durable.ledger import MOST_DEATHS, OPEN, Ledger, name_of, run_not_found
from sabir_runtime.durable.statuses import ENDED, Statuses, WorkerList, check_store
from sabir_runtime.durable.stores import Lease, close_store, is_sqlite, make_lease, open_store, parse_store, version_of
from sabir_runtime.durable.tables import CallRow, RunRow
from sabir_runtime.durable.views import CallRecord, RunDetails, RunState, RunSummary

if TYPE_CHECKING:
    from dbos import DBOSClient, EnqueueOptions

BATCH = 200
"""The maximum number of runs deleted in one transaction."""


def queue_of(application: str, context: str) -> str:
    """Return the name of the queue for the runs of a context. Workers read the queues of their contexts."""
    return f"{application}.{context}"


class Runs(SyncClosing):
    """Lists and controls the runs of a store, from any process. All methods block the thread.

    `store` is a URL as `DurableRunner` accepts it, or an SQLAlchemy engine. Use the object in a `with` block, which
    closes the connections that the object opened. For a URL, upgrades older tables, and raises StoreInvalid if the
    store cannot be used, or if no runner has used the store yet.

    >>> import asyncio
    >>> from sabir_runtime import BaseContext, llm_policy
    >>> from sabir_runtime.durable import DurableRunner, Runs
    >>> class Desk(BaseContext):
    ...     def __init__(self, runner):
    ...         super().__init__(runner)
    ...         self.llm = self._bind(llm_policy("echo:m"))
    >>> async def main():
    ...     async with DurableRunner("sqlite:///runs.db") as runner:
    ...         await runner.run(Desk(runner).llm, "Hello!", run_id="order-7")
    >>> asyncio.run(main())
    >>> with Runs("sqlite:///runs.db") as runs:
    ...     print([(run.run, run.state) for run in runs.list()])
    [('order-7', 'done')]
    """

    def __init__(self, store: str | Engine) -> None:
        self._owned = isinstance(store, str)
        self.engine = open_store(parse_store(store)) if isinstance(store, str) else store
        if self._owned:
            try:
                check_store(self.engine)
            except BaseException:
                close_store(self.engine)
                raise
        self.ledger, self.statuses = Ledger(self.engine), Statuses(self.engine)

    @cached_property
    def _client(self) -> "DBOSClient":
        """The engine's client, which changes runs. Created late, because the import takes a second."""
        from sabir_runtime.durable.engine import make_client

        return make_client(self.engine)

    def close(self) -> None:
        """Close the connections that this object opened. A passed SQLAlchemy engine stays open."""
        if "_client" in vars(self):
            self._client.destroy()
        if self._owned:
            close_store(self.engine)

    def list(self, *, state: RunState | None = None, limit: int = 100) -> tuple[RunSummary, ...]:
        """Return at most `limit` runs, the newest first. With `state`, return only runs in this state.

        Raises SettingsInvalid for a `limit` below 1.
        """
        if limit < 1:
            raise SettingsInvalid(f"limit={limit} is too low; give the number of runs to list, 1 or more")
        return tuple(self.statuses.newest(state, limit))

    def unfinished(self, application: str) -> "builtins.list[str]":
        """Return the names of an application's queued, running and waiting runs, the oldest first.

        Paused runs are not included.
        """
        return self.statuses.unfinished(application)

    def summary(self, run: str) -> RunSummary:
        """Return a run's state and other facts, without its calls. Raises RunNotFound for an unknown name."""
        for summary in self.statuses.find([run]):
            return summary
        raise run_not_found(run)

    def show(self, run: str) -> RunDetails:
        """Return a run with its request and all its calls. Raises RunNotFound for an unknown name."""
        recorded = tuple(map(_record_of, self.ledger.calls(run)))
        return RunDetails(summary=self.summary(run), request=self.ledger.run(run).request, calls=recorded)

    def cancel(self, run: str) -> None:
        """Cancel a run. Its worker cancels the run's policies at its next check, every `beat` seconds.

        Callers who await the run receive RunCancelled. The results of its calls stay stored, and `resume` continues the
        run. Raises RunNotFound for an unknown name, and RunConflict if the run is done or failed.
        """
        self._stop_run(run, "cancel")

    def pause(self, run: str, *, reason: str | None = None) -> None:
        """Stop a run until `resume`. Callers who await the run receive RunPaused. The results of its calls stay stored.

        Its worker cancels the run's policies at its next check, every `beat` seconds. `reason` is stored as the run's
        `fault`. Raises RunNotFound for an unknown name, and RunConflict if the run is done or failed.
        """
        self._stop_run(run, "pause", reason)

    def resume(self, run: str) -> None:
        """Put a paused or cancelled run back into the queue of the workers with its application, version and context.

        Calls with stored results are not repeated. A worker that has not seen the stop yet stops first. Raises
        RunNotFound for an unknown name, and RunConflict for a run in another state.
        """
        summary = self.summary(run)
        if summary.state not in ("paused", "cancelled"):
            raise RunConflict(
                f"run {run!r} is {summary.state}, so it cannot be resumed; only paused or cancelled runs can"
            )
        self.ledger.fence(run, wish="run", fault=None, deaths=0)
        self.requeue(self.ledger.run(run))

    def delete(self, *names: str) -> None:
        """Delete ended runs with all their records. If one of the runs has not ended, delete none.

        Forks of a deleted run stay complete, because a fork has its own copies of records. The name of a deleted run
        can be used for a new run. Raises RunNotFound for an unknown name, and RunConflict for a run that is not done,
        failed or cancelled, or that a worker has not released yet. In the latter case, other runs may be deleted.
        """
        for name in names:
            state = self.summary(name).state
            if state not in ENDED:
                raise RunConflict(f"run {name!r} is {state} and was not deleted; cancel it first")
        for start in range(0, len(names), BATCH):
            these = names[start : start + BATCH]
            deleted = self._delete_ended(these)
            undeleted = [name for name in these if name not in deleted]
            if undeleted:
                remedy = "try again in a moment; if the worker is dead, run `sabir runs recover` first"
                raise RunConflict(f"run {undeleted[0]!r} was not deleted: a worker still performs it; {remedy}")

    def delete_ended(self, seconds: float) -> int:
        """Delete all done, failed or cancelled runs that ended at least `seconds` ago. Return how many were deleted.

        Runs that a worker has not released yet stay. Raises SettingsInvalid for a negative or infinite number.
        """
        if not 0 <= seconds < float("inf"):
            raise SettingsInvalid(f"{seconds} is not a valid age of runs; give a number of seconds, 0 or more")
        names = self.statuses.ended_before(time.time() - seconds)
        return sum(len(self._delete_ended(names[start : start + BATCH])) for start in range(0, len(names), BATCH))

    def fork(self, run: str, *, at: str | None = None, name: str | None = None, version: str | None = None) -> str:
        """Put a new run with the request of another run into the queue, and return the new run's name.

        The new run copies the records of the calls that began before the call at the path `at` and have ended, without
        the calls that contain it. All other calls are performed again; without `at`, all calls. `name` None means a
        random name, and `version` None means the other run's version. Raises RunNotFound for an unknown run or path,
        and RunConflict if the name is invalid or used already. If a fork of the same run at the same path has the name,
        that fork is not changed, and its name is returned.
        """
        origin = self.ledger.run(run)
        copies = _calls_before(at, self.ledger.calls(run)) if at is not None else []
        if at is not None:
            self.ledger.call(run, at)
        forked = replace(
            origin, run=name_of(name), version=version or origin.version,
            epoch=0, deaths=0, wish="run", fault=None, worker=None, holder=None, headers=None,
            forked_from=f"{run} at {at}" if at else run,
        )  # fmt: skip
        stored = self.enqueue(forked, copies)
        if stored.forked_from != forked.forked_from:
            raise RunConflict(f"a run {forked.run!r} already exists; give the fork another name")
        return forked.run

    def decide(self, run: str, path: str, messages: str | Message | Sequence[Message]) -> None:
        """Store a person's decision for the waiting call at `path`. `show` lists the paths of a run's calls.

        `messages` is a text, which becomes a message of the policy "human", or a message or messages, which may contain
        option calls. A run that was paused because its workers died is resumed. Raises RunNotFound if there is no
        such run or call, and RunConflict if the call does not wait, or already has a decision, a result or a failure.
        """
        decision = [sabir.assistant(messages, policy="human")] if isinstance(messages, str) else as_messages(messages)
        if not self.ledger.decide_for(run, path, dumps(decision)):
            call = self.ledger.call(run, path)
            if call.state == "started" and call.batch is None:
                remedy = f"`sabir runs show {run}` shows which call waits"
                raise RunConflict(f"the call {path!r} of run {run!r} does not wait for a decision; {remedy}")
            raise RunConflict(
                f"the call {path!r} of run {run!r} already has a decision or a result; fork the run to change it"
            )
        if self.ledger.run(run).deaths >= MOST_DEATHS:
            self.resume(run)

    def enqueue(self, run: RunRow, copies: Sequence[CallRow] = ()) -> RunRow:
        """Store a run with the calls `copies`, and put it into the queue for its context. Return its row.

        If a run of this name exists, change nothing, and return the row of the existing run.
        """
        return self.ledger.create(run, lambda connection: self._enqueue(run, connection), copies)

    def requeue(self, run: RunRow) -> None:
        """Put a stored run that no worker performs back into the queue."""
        from dbos import error

        try:
            self._client.resume_workflow(run.run, queue_name=queue_of(run.application, run.context))
        except error.DBOSNonExistentWorkflowError:  # its worker died before the engine knew the run
            self._enqueue(run)

    def park(self, run: str, reason: str, *, deaths: int = 0) -> None:
        """Pause a run that cannot continue. Store the reason as its `fault`, and how many workers died as `deaths`."""
        self.ledger.fence(run, wish="pause", fault=reason, deaths=deaths)
        self._client.cancel_workflow(run)

    def stay_stopped(self, run: str) -> None:
        """Cancel a run at the engine if the run was paused or cancelled before the engine knew the run."""
        if self.ledger.run(run).wish != "run":
            self._client.cancel_workflow(run)

    def open_queues(self, queues: Iterable[str], poll: float, at_once: int | None) -> None:
        """Register queues at the engine, with settings that apply to all workers of the queues.

        Workers look for runs every `poll` seconds. Each worker performs at most `at_once` runs of a queue at the same
        time; None means no limit.
        """
        for queue in queues:
            self._client.register_queue(queue, polling_interval_sec=poll, worker_concurrency=at_once)

    def _stop_run(self, run: str, wish: str, reason: str | None = None) -> None:
        state = self.summary(run).state
        if state in ("done", "failed"):
            raise RunConflict(f"run {run!r} is already {state}; fork it to run it again")
        self.ledger.fence(run, wish=wish, fault=reason, deaths=0)
        self._client.cancel_workflow(run)

    def _enqueue(self, run: RunRow, connection: Connection | None = None) -> None:
        from sabir_runtime.durable.engine import WORKFLOW

        options: EnqueueOptions = {
            "workflow_name": WORKFLOW,
            "queue_name": queue_of(run.application, run.context),
            "workflow_id": run.run,
            "app_version": version_of(run.application, run.version),
            "application_name": run.application,
        }
        if connection is None:
            self._client.enqueue(options)
        else:
            self._client.enqueue_in_transaction(connection, options)

    def _delete_ended(self, names: Sequence[str]) -> "builtins.list[str]":
        """Delete the runs among `names` that have ended and that no worker executes. Return the deleted names.

        The runs are first marked as cancelled, then deleted at the engine, then in the ledger. If this process dies in
        between, the runs remain as cancelled runs that can be deleted.
        """
        over = self.ledger.mark_cancelled(self.statuses.ended_among(names))
        if over:
            self._client.delete_workflows(over)
            self.ledger.delete_runs(over)
        return over


def _record_of(call: CallRow) -> CallRecord:
    """Return the CallRecord for a row of the ledger."""
    columns = {name: value for name, value in vars(call).items() if name in CallRecord.model_fields}
    return CallRecord(**columns, messages=tuple(loads(call.messages_json)))


def _calls_before(path: str, recorded: Sequence[CallRow]) -> Sequence[CallRow]:
    """Return the ended calls that began before the call at `path` and do not contain this call."""
    number = next((call.number for call in recorded if call.path == path), -1)
    return [
        call
        for call in recorded
        if call.number < number and call.state not in OPEN and not path.startswith(f"{call.path}/")
    ]


log = logging.getLogger("sabir.durable")

BEATS_UNSEEN = 3
"""How many beats (periodic checks) a worker on Postgres may miss before it can count as dead."""


def patience_of(url: URL, beat: float = 1.0) -> float:
    """Return for how many seconds an unseen worker still counts as alive, so that it can reconnect.

    This is 0 for SQLite. `beat` is the number of seconds between two checks of a worker.
    """
    return 0.0 if is_sqlite(url) else BEATS_UNSEEN * beat


def recover(runs: Runs, workers: WorkerList, lease: Lease, *, unseen: float, apart_from: str = "") -> list[str]:
    """Put the runs of dead workers back into the queue, and return the names of these runs.

    Workers that were seen in the last `unseen` seconds count as alive, so that a worker can reconnect to the store. The
    worker `apart_from` counts as alive, too. A run during which too many workers died is paused instead of queued. Its
    name is also returned.
    """
    moved: list[str] = []
    for worker in workers.find_unseen(unseen):
        if worker == apart_from:
            continue
        with lease.take(worker) as is_dead:
            if is_dead:
                moved += [_requeue_or_pause(runs, run, worker) for run in runs.statuses.left_by(worker)]
                workers.remove(worker)
    return moved


def recover_store(store: str, *, unseen: float | None = None) -> list[str]:
    """Put the runs of a store's dead workers back into the queue, and return the runs' names. Needs no worker here.

    `unseen` is the number of seconds after which an unseen worker may count as dead. None means 0 for SQLite, and 3 for
    Postgres. Raises StoreInvalid if the store cannot be used.
    """
    url = parse_store(store)
    patience = patience_of(url) if unseen is None else unseen
    with Runs(store) as runs:
        return recover(runs, WorkerList(runs.engine), make_lease(url, "nobody"), unseen=patience)


def _requeue_or_pause(runs: Runs, run: RunRow, worker: str) -> str:
    earlier = 0 if runs.ledger.has_written(worker, run.run) else run.deaths
    deaths = earlier + (run.holder == worker)
    if deaths >= MOST_DEATHS:
        reason = f"{deaths} workers died while they performed the run; fix the cause, then resume the run"
        log.warning("run %s is paused: %s", run.run, reason)
        runs.park(run.run, reason, deaths=deaths)
    else:
        log.debug("worker %s is dead: run %s goes back to the queue", worker, run.run)
        runs.ledger.fence(run.run, deaths=deaths)
        runs.requeue(run)
    return run.run
