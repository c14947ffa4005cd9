"""All runs of a store, from any process: to look at them, and to say what shall become of them.

    Runs("sqlite:///runs.db") ─┬─ list, show                   nothing is changed
                               ├─ cancel, pause, resume        whoever has the run loses its hold, and stops
                               ├─ fork                         a run that begins with what another one recorded
                               ├─ decide                       a person's answer for a call that waits for it
                               └─ recover                      runs of dead workers go back to the queue

The engine need not run here: workers see what was asked for within a beat.
"""

import builtins
import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from uuid import uuid4

import sabir
from dbos import DBOSClient, EnqueueOptions, WorkflowStatus
from sabir import Message
from sabir.closing import SyncClosing
from sabir.constructors import as_messages
from sqlalchemy import Connection, Engine, select

from sabir_durable.engine import WORKFLOW, ReadableJSON
from sabir_durable.errors import RunConflict
from sabir_durable.ledger import OPEN, Call, Ledger, Run
from sabir_durable.records import encode_batch
from sabir_durable.stores import close_store, open_store, parse_store
from sabir_durable.tables import calls, check_tables, runs
from sabir_durable.views import CallRecord, RunDetails, RunState, RunSummary

_STATES: dict[str, RunState] = {
    "PENDING": "running",
    "ENQUEUED": "queued",
    "DELAYED": "queued",
    "SUCCESS": "done",
    "ERROR": "failed",
    "CANCELLED": "cancelled",
    "MAX_RECOVERY_ATTEMPTS_EXCEEDED": "cancelled",
}
_OPEN = ["PENDING", "ENQUEUED", "DELAYED"]
_ENDED = ("done", "failed")
PAGE = 200


def queue_of(application: str, context: str) -> str:
    """The queue of the runs of one context's class: a worker takes from those whose code it has."""
    return f"{application}.{context}"


def version_of(application: str, version: str) -> str:
    """A version as the engine knows it: there it belongs to one application of a store."""
    return f"{application}.{version}"


class Runs(SyncClosing):
    """The runs in a store. `with Runs(…) as runs` closes its connections at the end."""

    def __init__(self, store: str | Engine) -> None:
        self._owned = isinstance(store, str)
        self.engine = open_store(parse_store(store)) if isinstance(store, str) else store
        if self._owned:
            try:
                check_tables(self.engine)
            except BaseException:
                close_store(self.engine)
                raise
        self.ledger = Ledger(self.engine)
        self._client = DBOSClient(system_database_engine=self.engine, serializer=ReadableJSON(), lazy=True)

    def close(self) -> None:
        """Close the connections, if they are its own."""
        self._client.destroy()
        if self._owned:
            close_store(self.engine)

    def list(self, *, state: RunState | None = None, limit: int = 100) -> tuple[RunSummary, ...]:
        """Runs, the newest first; those in one state if that is given."""
        with self.engine.connect() as connection:
            waiting = set(connection.execute(select(calls.c.run).where(calls.c.state == "waiting")).scalars())
        summaries: list[RunSummary] = []
        for page in self._pages(limit if state is None else PAGE):
            known = self._statuses([run.run for run in page])
            shown = (_summary(run, known.get(run.run), is_waiting=run.run in waiting) for run in page)
            summaries += [summary for summary in shown if state in (None, summary.state)]
            if len(summaries) >= limit:
                break
        return tuple(summaries[:limit])

    def unfinished(self, application: str) -> "builtins.list[str]":
        """The names of an application's runs that are queued, running or waiting; the oldest first."""
        found = self._client.list_workflows(
            name=WORKFLOW, status=_OPEN, application_name=application, load_input=False, load_output=False
        )
        return [status.workflow_id for status in found]

    def show(self, run: str) -> RunDetails:
        """A run and its calls; RunNotFound if there is none of that name."""
        stored, recorded = self.ledger.run(run), self.ledger.calls(run)
        is_waiting = any(call.state == "waiting" for call in recorded)
        summary = _summary(stored, self._statuses([run]).get(run), is_waiting=is_waiting)
        return RunDetails(
            summary=summary, request=stored.request, calls=tuple(CallRecord.of(each) for each in recorded)
        )

    def cancel(self, run: str) -> None:
        """End a run without a result; its worker stops within a beat. RunConflict if it has ended."""
        self._end(run, "cancel")

    def pause(self, run: str, *, reason: str | None = None) -> None:
        """Stop a run until it is resumed; what its calls gave is kept. RunConflict if it has ended."""
        self._end(run, "pause", reason)

    def resume(self, run: str) -> None:
        """Carry a paused or cancelled run on, on any worker that has its code; RunConflict if it is neither."""
        summary = self.show(run).summary
        if summary.state not in ("paused", "cancelled"):
            raise RunConflict(
                f"run {run!r} is {summary.state}: there is nothing to resume; only paused runs wait for it"
            )
        self.ledger.fence(run, wish="run", fault=None, deaths=0)
        self._client.resume_workflow(run, queue_name=queue_of(summary.application, summary.context))

    def fork(self, run: str, *, at: str | None = None, name: str | None = None) -> str:
        """Begin a new run of the same request; its name.

        It is given what the other one recorded before the call at the path `at` began, so that this call and all that
        depends on it are performed anew; without a path, nothing. RunNotFound for a run or a path that is not there.
        """
        origin = self.ledger.run(run)
        kept = _before(at, self.ledger.calls(run)) if at is not None else []
        if at is not None:
            self.ledger.call(run, at)
        forked = replace(
            origin, run=name or uuid4().hex, epoch=0, deaths=0, wish="run", fault=None, worker=None,
            forked_from=f"{run} at {at}" if at else run,
        )  # fmt: skip
        made = self.enqueue(forked, kept)
        if made.forked_from != forked.forked_from:
            raise RunConflict(f"there is a run {forked.run!r} already; give the fork another name")
        return forked.run

    def decide(self, run: str, path: str, messages: str | Message | Sequence[Message]) -> None:
        """Say what a person chose for the call at a path, which waits for it; a text is said by "human".

        RunNotFound if the run has no such call; RunConflict if it does not wait, or something was chosen there already.
        """
        said = [sabir.assistant(messages, policy="human")] if isinstance(messages, str) else as_messages(messages)
        if not self.ledger.decide_for(run, path, encode_batch(said)):
            call = self.ledger.call(run, path)
            if call.state == "started" and call.batch is None:
                remedy = f"`sabir runs show {run}` says which call waits"
                raise RunConflict(f"run {run!r} at {path!r} waits for nobody; {remedy}")
            raise RunConflict(
                f"run {run!r} at {path!r} is decided already: it is {call.state}; fork the run to change it"
            )

    def enqueue(self, run: Run, kept: Sequence[Call] = ()) -> Run:
        """Write a run down for any worker that has its code; the one that is there if there is one of that name."""
        return self.ledger.create(run, lambda connection: self._enqueue(run, connection), kept)

    def requeue(self, run: Run) -> None:
        """Give a run, which nobody works on, to any worker that has its code."""
        if run.epoch == 0 and not self._statuses([run.run]):
            self._enqueue(run)
        else:
            self._client.resume_workflow(run.run, queue_name=queue_of(run.application, run.context))

    def unfinished_of(self, worker: str) -> Sequence[Run]:
        """The runs that a worker has, and those that it wrote down and did not come to start."""
        held = self._client.list_workflows(
            executor_id=worker, status="PENDING", name=WORKFLOW, load_input=False, load_output=False
        )
        found = [self.ledger.run(status.workflow_id) for status in held]
        with self.engine.connect() as connection:
            begun = connection.execute(select(runs).where(runs.c.worker == worker, runs.c.epoch == 0)).mappings()
            written = [Run(**row) for row in begun]
        known = self._statuses([run.run for run in written])
        return [*found, *(run for run in written if run.run not in known)]

    def park(self, run: str, reason: str) -> None:
        """Pause a run that cannot go on, and say why."""
        self.ledger.fence(run, wish="pause", fault=reason)
        self._client.cancel_workflow(run)

    def open_queues(self, queues: Iterable[str], poll: float) -> None:
        """Make the queues that are missing; their workers look every `poll` seconds."""
        for queue in queues:
            self._client.register_queue(queue, polling_interval_sec=poll, on_conflict="always_update")

    def _end(self, run: str, wish: str, reason: str | None = None) -> None:
        state = self.show(run).summary.state
        if state in _ENDED:
            raise RunConflict(f"run {run!r} is {state}, and cannot be ended; fork it to run it again")
        self.ledger.fence(run, wish=wish, fault=reason)
        self._client.cancel_workflow(run)

    def _enqueue(self, run: Run, connection: Connection | None = None) -> None:
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

    def _pages(self, size: int) -> Iterator[Sequence[Run]]:
        """All runs, the newest first, so many at once."""
        newest_first = select(runs).order_by(runs.c.created_at.desc(), runs.c.run)
        for start in itertools.count(0, size):
            with self.engine.connect() as connection:
                page = [Run(**row) for row in connection.execute(newest_first.limit(size).offset(start)).mappings()]
            yield page
            if len(page) < size:
                return

    def _statuses(self, names: Iterable[str]) -> dict[str, WorkflowStatus]:
        wanted = list(names)
        if not wanted:
            return {}
        found = self._client.list_workflows(workflow_ids=wanted, load_input=False, load_output=False)
        return {status.workflow_id: status for status in found}


def _before(path: str, recorded: Sequence[Call]) -> Sequence[Call]:
    """What had ended, and began before the call at that path: it cannot depend on that call, unless it contains it."""
    number = next((call.number for call in recorded if call.path == path), -1)
    return [
        call
        for call in recorded
        if call.number < number and call.state not in OPEN and not path.startswith(f"{call.path}/")
    ]


def _summary(run: Run, status: WorkflowStatus | None, *, is_waiting: bool) -> RunSummary:
    state = _STATES[status.status] if status else "queued"
    if state == "cancelled" and run.wish != "cancel":
        state = "paused"
    if state == "running" and is_waiting:
        state = "waiting"
    updated = (status.updated_at or 0) / 1000 if status else run.created_at
    return RunSummary(
        run=run.run, state=state, application=run.application, version=run.version, context=run.context, name=run.name,
        worker=run.worker, fault=run.fault, forked_from=run.forked_from, created_at=run.created_at, updated_at=updated,
    )  # fmt: skip
