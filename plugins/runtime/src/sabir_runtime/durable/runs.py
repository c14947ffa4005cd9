"""All runs of a store, from any process: to inspect and control them.

    Runs("sqlite:///runs.db") ─┬─ list, show                   nothing is changed
                               ├─ cancel, pause, resume        the run's worker loses its hold, and stops
                               ├─ fork                         a run that begins with what another one recorded
                               ├─ delete, delete_ended         ended runs are forgotten
                               ├─ decide                       a person's answer for a call that waits for it
                               └─ recover                      runs of dead workers go back to the queue

The engine need not run here: workers see a request within a beat.

Only runs of dead workers go back to the queue: the process that can take a worker's lock knows that it is dead.

    workers that were not seen lately ─▶ is its lock free? ─ no ─▶ it lives: nothing is done
                                                └ yes ─▶ for each of its runs: fence off, requeue ─▶ forget the worker

A worker that is closed releases its runs first, so it did not die while it held them.
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
from sabir_runtime.durable.ledger import MOST_DEATHS, OPEN, Ledger, name_of, no_run
from sabir_runtime.durable.statuses import ENDED, Statuses, WorkerList, check_store
from sabir_runtime.durable.stores import Lease, close_store, is_sqlite, make_lease, open_store, parse_store, version_of
from sabir_runtime.durable.tables import Call, Run
from sabir_runtime.durable.views import CallRecord, RunDetails, RunState, RunSummary

if TYPE_CHECKING:
    from dbos import DBOSClient, EnqueueOptions

BATCH = 200
"""How many runs are deleted at once."""


def queue_of(application: str, context: str) -> str:
    """Return the queue of runs with this stored name of a context: workers take the runs whose code they have."""
    return f"{application}.{context}"


class Runs(SyncClosing):
    """The runs in a store. `with Runs(…) as runs` closes its connections at the end."""

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
        """The client that changes runs at the engine, which takes a second to import."""
        from sabir_runtime.durable.engine import make_client

        return make_client(self.engine)

    def close(self) -> None:
        """Close the connections, if this object opened them."""
        if "_client" in vars(self):
            self._client.destroy()
        if self._owned:
            close_store(self.engine)

    def list(self, *, state: RunState | None = None, limit: int = 100) -> tuple[RunSummary, ...]:
        """Runs, the newest first; those in one state if that is given."""
        if limit < 1:
            raise SettingsInvalid(f"limit is {limit}; give the number of runs to list, 1 or more")
        return tuple(self.statuses.newest(state, limit))

    def unfinished(self, application: str) -> "builtins.list[str]":
        """The names of an application's runs that are queued, running or waiting; the oldest first."""
        return self.statuses.unfinished(application)

    def summary(self, run: str) -> RunSummary:
        """A run without its calls; RunNotFound if there is none of that name."""
        for found in self.statuses.find([run]):
            return found
        raise no_run(run)

    def show(self, run: str) -> RunDetails:
        """A run and its calls; RunNotFound if there is none of that name."""
        recorded = tuple(map(_shown, self.ledger.calls(run)))
        return RunDetails(summary=self.summary(run), request=self.ledger.run(run).request, calls=recorded)

    def cancel(self, run: str) -> None:
        """End a run without a result; its worker stops within a beat. RunConflict if it has ended."""
        self._end(run, "cancel")

    def pause(self, run: str, *, reason: str | None = None) -> None:
        """Stop a run until it is resumed; its calls' results are kept. Raises RunConflict if it has ended."""
        self._end(run, "pause", reason)

    def resume(self, run: str) -> None:
        """Continue a paused or cancelled run on any worker that has its code; raises RunConflict for another state.

        A worker that still runs it, because it has not seen the stop yet, releases it first.
        """
        summary = self.summary(run)
        if summary.state not in ("paused", "cancelled"):
            raise RunConflict(
                f"run {run!r} is {summary.state}: there is nothing to resume; only paused runs wait for it"
            )
        self.ledger.fence(run, wish="run", fault=None, deaths=0)
        self.requeue(self.ledger.run(run))

    def delete(self, *names: str) -> None:
        """Delete ended runs with all their records; deletes none if one of them has not ended.

        A fork has its own copy of its beginning, and stays complete when its origin is deleted. A deleted name can be
        used again for a new run. Raises RunNotFound for an unknown name, and RunConflict for a run that is not done,
        failed or cancelled, or that a worker has not released yet.
        """
        for name in names:
            state = self.summary(name).state
            if state not in ENDED:
                raise RunConflict(f"run {name!r} is {state}, and is kept; cancel it before it is deleted")
        for start in range(0, len(names), BATCH):
            these = names[start : start + BATCH]
            gone = self._delete(these)
            kept = [name for name in these if name not in gone]
            if kept:
                remedy = "delete it in a moment, or after `sabir runs recover` if its worker is gone"
                raise RunConflict(f"run {kept[0]!r} is kept, for a worker is still at it; {remedy}")

    def delete_ended(self, seconds: float) -> int:
        """Delete all runs that ended so many seconds ago or earlier; returns their number. See `delete`."""
        if not 0 <= seconds < float("inf"):
            raise SettingsInvalid(f"{seconds} is no age of runs; give seconds, 0 or more")
        names = self.statuses.ended_before(time.time() - seconds)
        return sum(len(self._delete(names[start : start + BATCH])) for start in range(0, len(names), BATCH))

    def fork(self, run: str, *, at: str | None = None, name: str | None = None, version: str | None = None) -> str:
        """Begin a new run of the same request, for workers of the same version by default; returns its name.

        It gets the other run's records from before the call at the path `at`, so that this call and everything that
        depends on it are performed again; without a path, it gets none. Raises RunNotFound for an unknown run or path.
        """
        origin = self.ledger.run(run)
        kept = _before(at, self.ledger.calls(run)) if at is not None else []
        if at is not None:
            self.ledger.call(run, at)
        forked = replace(
            origin, run=name_of(name), version=version or origin.version,
            epoch=0, deaths=0, wish="run", fault=None, worker=None, holder=None,
            forked_from=f"{run} at {at}" if at else run,
        )  # fmt: skip
        made = self.enqueue(forked, kept)
        if made.forked_from != forked.forked_from:
            raise RunConflict(f"there is a run {forked.run!r} already; give the fork another name")
        return forked.run

    def decide(self, run: str, path: str, messages: str | Message | Sequence[Message]) -> None:
        """Record a person's choice for the waiting call at a path; a text becomes a message of "human".

        A run that was paused because its workers died continues: it waited for this. Raises RunNotFound if the run has
        no such call, RunConflict if the call does not wait, or already has a choice.
        """
        said = [sabir.assistant(messages, policy="human")] if isinstance(messages, str) else as_messages(messages)
        if not self.ledger.decide_for(run, path, dumps(said)):
            call = self.ledger.call(run, path)
            if call.state == "started" and call.batch is None:
                remedy = f"`sabir runs show {run}` says which call waits"
                raise RunConflict(f"run {run!r} at {path!r} waits for nobody; {remedy}")
            raise RunConflict(
                f"run {run!r} at {path!r} is decided already: it is {call.state}; fork the run to change it"
            )
        if self.ledger.run(run).deaths >= MOST_DEATHS:
            self.resume(run)

    def enqueue(self, run: Run, kept: Sequence[Call] = ()) -> Run:
        """Record a run for any worker that has its code; returns the existing run if there is one of that name."""
        return self.ledger.create(run, lambda connection: self._enqueue(run, connection), kept)

    def requeue(self, run: Run) -> None:
        """Give a run without a worker to any worker that has its code."""
        from dbos import error

        try:
            self._client.resume_workflow(run.run, queue_name=queue_of(run.application, run.context))
        except error.DBOSNonExistentWorkflowError:  # its worker died before it told the engine
            self._enqueue(run)

    def park(self, run: str, reason: str, *, deaths: int = 0) -> None:
        """Pause a run that cannot go on, and say why."""
        self.ledger.fence(run, wish="pause", fault=reason, deaths=deaths)
        self._client.cancel_workflow(run)

    def stay_stopped(self, run: str) -> None:
        """Report to the engine a run that was stopped before the engine knew it."""
        if self.ledger.run(run).wish != "run":
            self._client.cancel_workflow(run)

    def open_queues(self, queues: Iterable[str], poll: float, at_once: int | None) -> None:
        """Make the queues that are missing; their workers look every `poll` seconds, and take so many runs at once."""
        for queue in queues:
            self._client.register_queue(queue, polling_interval_sec=poll, worker_concurrency=at_once)

    def _end(self, run: str, wish: str, reason: str | None = None) -> None:
        state = self.summary(run).state
        if state in ("done", "failed"):
            raise RunConflict(f"run {run!r} is {state}, and cannot be ended; fork it to run it again")
        self.ledger.fence(run, wish=wish, fault=reason, deaths=0)
        self._client.cancel_workflow(run)

    def _enqueue(self, run: Run, connection: Connection | None = None) -> None:
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

    def _delete(self, names: Sequence[str]) -> "builtins.list[str]":
        """Delete ended runs: mark them, delete them at the engine, then here.

        If this process ends in between, a cancelled run is left, which can be deleted.
        """
        over = self.ledger.condemn(self.statuses.over(names))
        if over:
            self._client.delete_workflows(over)
            self.ledger.forget(over)
        return over


def _shown(call: Call) -> CallRecord:
    """A row of the ledger for display."""
    columns = {name: value for name, value in vars(call).items() if name in CallRecord.model_fields}
    return CallRecord(**columns, messages=tuple(loads(call.given)))


def _before(path: str, recorded: Sequence[Call]) -> Sequence[Call]:
    """The ended calls that began before the call at that path: they cannot depend on it, unless they contain it."""
    number = next((call.number for call in recorded if call.path == path), -1)
    return [
        call
        for call in recorded
        if call.number < number and call.state not in OPEN and not path.startswith(f"{call.path}/")
    ]


log = logging.getLogger("sabir.durable")

BEATS_UNSEEN = 3
"""How many beats a worker on Postgres may miss, so that it can take its lock again after a lost connection."""


def patience_of(url: URL, beat: float = 1.0) -> float:
    """Seconds for which an unseen worker is left alone, so that a lost connection can come back."""
    return 0.0 if is_sqlite(url) else BEATS_UNSEEN * beat


def recover(runs: Runs, workers: WorkerList, lease: Lease, *, unseen: float, apart_from: str = "") -> list[str]:
    """Return the runs of dead workers to the queue; returns the names of those runs.

    Workers that were seen less than `unseen` seconds ago are left alone, so that one which lost its connection to the
    store can take its lock again.
    """
    moved: list[str] = []
    for worker in workers.unseen(unseen):
        if worker == apart_from:
            continue
        with lease.take(worker) as is_dead:
            if is_dead:
                moved += [_give_back(runs, run, worker) for run in runs.statuses.left_by(worker)]
                workers.remove(worker)
    return moved


def recover_store(store: str, *, unseen: float | None = None) -> list[str]:
    """Return the runs of a store's dead workers to the queue, from a process without a worker; returns their names."""
    url = parse_store(store)
    patience = patience_of(url) if unseen is None else unseen
    with Runs(store) as runs:
        return recover(runs, WorkerList(runs.engine), make_lease(url, "nobody"), unseen=patience)


def _give_back(runs: Runs, run: Run, worker: str) -> str:
    earlier = 0 if runs.ledger.has_written(worker, run.run) else run.deaths
    deaths = earlier + (run.holder == worker)
    if deaths >= MOST_DEATHS:
        reason = f"{deaths} workers died while they had it; resume it when it no longer ends them"
        log.warning("run %s is paused: %s", run.run, reason)
        runs.park(run.run, reason, deaths=deaths)
    else:
        log.debug("worker %s is gone: run %s goes back to the queue", worker, run.run)
        runs.ledger.fence(run.run, deaths=deaths)
        runs.requeue(run)
    return run.run
