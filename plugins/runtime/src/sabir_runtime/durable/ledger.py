"""The ledger: stores the batch and the result of every bound call of a run, before the run uses them.

    begin ─▶ started ──decide──▶ batch written ──answer…──▶ ──finish──▶ done         one row a call, by run and path
                │  └─wait─▶ waiting ──decide by a person──▶ …
                └──fail──▶ failed

The first result wins: a batch, result or failure in a row is never replaced, and a later writer receives the row. The
epoch of a run is a number that grows when a worker takes the run, and when the run is stopped or requeued. Every write
of a worker names the epoch in which the worker took the run, and a write is refused if the epoch has changed. All
functions block; `execution` calls them in threads.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal
from uuid import uuid4

import sqlalchemy as sa

from sabir_runtime.durable.errors import RunConflict, RunNotFound, RunTaken
from sabir_runtime.durable.tables import CallRequest, CallRow, RunRow, calls, runs, workers
from sabir_runtime.durable.views import CallState

OPEN = ("started", "waiting")
"""The states of a call that has not ended."""
MOST_DEATHS = 20
"""A run is paused after this many workers died while they performed the run, without a new record in between. The run
may be the cause of the deaths."""


def name_of(run: str | None) -> str:
    """Return the name of a new run: `run`, or a random name for None. Raises RunConflict for an invalid name."""
    if run is None:
        return uuid4().hex
    if not (run.strip() and len(run) <= 200 and run.isprintable()):
        raise RunConflict(
            f"{run[:20]!r} is not a valid name for a run; use 1 to 200 printable characters, not only spaces"
        )
    return run


def run_not_found(run: str) -> RunNotFound:
    """Return the RunNotFound error for a name without a run."""
    return RunNotFound(f"no run is named {run!r}; `sabir runs list` shows the names")


@dataclass(frozen=True)
class Hold:
    """A worker's right to write to a run, from `Ledger.claim`. Valid while the run's epoch in the store is `epoch`."""

    run: str
    epoch: int
    worker: str


HAS_LISTED_HOLDER = sa.exists().where(workers.c.worker == runs.c.holder)
"""SQL condition: the worker that executes a part of the run is in the list of workers."""
_COLUMNS = tuple(column.name for column in calls.columns)
_same_epoch = sa.exists(
    sa.select(runs.c.run).where(runs.c.run == sa.bindparam("of_run"), runs.c.epoch == sa.bindparam("in_epoch"))
)
_same_call = sa.and_(calls.c.run == sa.bindparam("of_run"), calls.c.path == sa.bindparam("at_path"))
_same_batch = sa.or_(calls.c.batch.is_(None), calls.c.batch == sa.bindparam("new_batch"))
_values = [sa.bindparam(column.name, type_=column.type).label(column.name) for column in calls.columns]
_READ = sa.select(calls).where(_same_call)
_DECIDE = (
    sa.update(calls)
    .where(_same_call, calls.c.state.in_(OPEN), calls.c.batch.is_(None))
    .values(batch=sa.bindparam("new_batch"))
)
_CLOSE = (
    sa.update(calls)
    .where(_same_call, calls.c.state.in_(OPEN), _same_batch, _same_epoch)
    .values(
        state=sa.bindparam("to"),
        batch=sa.func.coalesce(calls.c.batch, sa.bindparam("new_batch")),
        result=sa.bindparam("outcome"),
        failure=sa.bindparam("failed"),
        worker=sa.bindparam("by"),
        ended_at=sa.bindparam("at"),
    )
    .returning(calls.c.path)
)
_WAIT = (
    sa.update(calls)
    .where(_same_call, calls.c.state == "started", _same_epoch)
    .values(state="waiting", worker=sa.bindparam("by"))
)
_DECIDE_HELD = _DECIDE.where(_same_epoch).values(worker=sa.bindparam("by")).returning(calls.c.path)
_AT_ONCE = 400
"""How many calls one query looks up. Each needs two parameters, and SQLite may accept only 999 in a query."""


class Ledger:
    """Reads and writes the runs and their calls in one database.

    Methods with a parameter `hold` raise RunTaken if the run was stopped or another worker has claimed it.
    """

    def __init__(self, engine: sa.Engine) -> None:
        self._engine = engine
        # Only the dialect that the engine has loaded, because loading the other dialect takes a tenth of a second.
        insert = import_module(f"sqlalchemy.dialects.{engine.dialect.name}").insert
        begun = insert(calls).from_select(_COLUMNS, sa.select(*_values).where(_same_epoch))
        self._insert_call = begun.on_conflict_do_nothing().returning(calls.c.path)
        self._insert_run = insert(runs).on_conflict_do_nothing().returning(runs.c.run)

    def create(
        self, run: RunRow, then: Callable[[sa.Connection], object] | None = None, copies: Sequence[CallRow] = ()
    ) -> RunRow:
        """Store a run and the calls `copies` as calls of this run, and return its row.

        If a run of this name exists, store nothing and return the existing row. `then` is called in the same
        transaction if the run is new.
        """
        with self._engine.begin() as connection:
            if connection.execute(self._insert_run, vars(run) | {"created_at": time.time()}).first():
                if copies:
                    connection.execute(calls.insert(), [vars(call) | {"run": run.run} for call in copies])
                if then is not None:
                    then(connection)
            return self._read_run(connection, run.run)

    def run(self, run: str) -> RunRow:
        """Return a run's row. Raises RunNotFound for an unknown name."""
        with self._engine.connect() as connection:
            return self._read_run(connection, run)

    def claim(self, run: str, worker: str) -> tuple[RunRow, Hold, dict[str, CallRow]] | None:
        """Take a run for a worker, so that writes of earlier workers are refused.

        Returns the run's row, the worker's right to write, and the calls so far by path. Returns None while another
        worker still performs a part of the run, which may still have effects. Raises RunTaken if the run is paused
        or cancelled.
        """
        with self._engine.begin() as connection:
            is_free = sa.or_(runs.c.holder.is_(None), runs.c.holder == worker, sa.not_(HAS_LISTED_HOLDER))
            changed = connection.execute(
                sa.update(runs)
                .where(runs.c.run == run, runs.c.wish == "run", is_free)
                .values(epoch=runs.c.epoch + 1, worker=worker, holder=worker, fault=None)
            )
            row = self._read_run(connection, run)
            if not changed.rowcount:
                if row.wish == "run":
                    return None
                raise RunTaken(f"run {run!r} was stopped before a worker began it; resume the run again")
            is_new = row.epoch == 1 and row.forked_from is None
            known = {} if is_new else {call.path: call for call in self._read_calls(connection, run)}
        return row, Hold(run, row.epoch, worker), known

    def set_headers(self, hold: Hold, headers: str) -> None:
        """Store the headers of a run's trace, unless the run has headers. No effect if another worker has the run."""
        is_first = sa.and_(runs.c.run == hold.run, runs.c.epoch == hold.epoch, runs.c.headers.is_(None))
        with self._engine.begin() as connection:
            connection.execute(sa.update(runs).where(is_first).values(headers=headers))

    def release(self, run: str, worker: str) -> None:
        """Record that a worker executes no part of a run any more. No effect if another worker holds the run."""
        with self._engine.begin() as connection:
            connection.execute(sa.update(runs).where(runs.c.run == run, runs.c.holder == worker).values(holder=None))

    def calls(self, run: str) -> list[CallRow]:
        """Return all calls of a run, in the order of their numbers."""
        with self._engine.connect() as connection:
            return self._read_calls(connection, run)

    def call(self, run: str, path: str) -> CallRow:
        """Return the call at a path. Raises RunNotFound if the run has no such call."""
        call = self.find(run, path)
        if call is None:
            raise RunNotFound(f"run {run!r} has no call at {path!r}; `sabir runs show {run}` lists its calls")
        return call

    def find(self, run: str, path: str) -> CallRow | None:
        """Return the call at a path; None if the run has no such call."""
        with self._engine.connect() as connection:
            return self._read_call(connection, _call_key(run, path))

    def begin(self, hold: Hold, path: str, number: int, request: CallRequest) -> CallRow | None:
        """Record that a call starts, and return None. If its path has a row already, return this row instead."""
        return self._execute_write(
            self._insert_call, hold, path, **self._make_row(hold, path, number, request, "call", "started")
        )

    def decide(self, hold: Hold, path: str, batch: str) -> CallRow | None:
        """Store a policy's batch before its calls are answered, and return None.

        If the call has a batch, a result or a failure already, return its row instead.
        """
        return self._execute_write(_DECIDE_HELD, hold, path, new_batch=batch)

    def wait(self, hold: Hold, path: str) -> CallRow:
        """Record that a call waits for a person's decision, and return its row. The row may have a decision already."""
        with self._engine.begin() as connection:
            connection.execute(_WAIT, _write_key(hold, path))
            return self._blocking_row(connection, hold, path)

    def answer(
        self, hold: Hold, path: str, number: int, request: CallRequest, result: str, started_at: float
    ) -> CallRow | None:
        """Store the result of an option call, and return None. If a result is stored already, return the stored row."""
        row = self._make_row(hold, path, number, request, "answer", "done")
        written = {"result": result, "started_at": started_at, "ended_at": time.time()}
        return self._execute_write(self._insert_call, hold, path, **row | written)

    def finish(self, hold: Hold, path: str, batch: str, result: str | None) -> CallRow | None:
        """Store the end of a call, and return None.

        `batch` is the policy's batch. `result` is the batch with the results of its option calls, or None if there are
        no option calls. If the call has already ended, or has a batch other than `batch`, return its row instead.
        """
        at = time.time()
        return self._execute_write(_CLOSE, hold, path, to="done", new_batch=batch, outcome=result, failed=None, at=at)

    def fail(self, hold: Hold, path: str, batch: str | None, failure: str) -> CallRow | None:
        """Store a call's failure, and return None.

        If the call has already ended, or has a batch other than `batch`, store nothing and return its row instead.
        """
        at = time.time()
        return self._execute_write(
            _CLOSE, hold, path, to="failed", new_batch=batch, outcome=None, failed=failure, at=at
        )

    def decide_for(self, run: str, path: str, batch: str) -> bool:
        """Store a person's decision. Return False, and store nothing, unless the call waits and has no decision yet."""
        waiting = _DECIDE.where(calls.c.state == "waiting")
        with self._engine.begin() as connection:
            return bool(connection.execute(waiting, _call_key(run, path) | {"new_batch": batch}).rowcount)

    def find_decided(self, waiting: list[tuple[str, str]]) -> list[CallRow]:
        """Return the calls among `waiting`, pairs of run and path, that have a decision or an end now.

        May include other calls of the same runs.
        """
        decided_calls: list[CallRow] = []
        with self._engine.connect() as connection:
            for start in range(0, len(waiting), _AT_ONCE):
                names, at = zip(*waiting[start : start + _AT_ONCE], strict=True)
                decided = sa.or_(calls.c.batch.is_not(None), calls.c.state.not_in(OPEN))
                these = sa.select(calls).where(calls.c.run.in_(names), calls.c.path.in_(at), decided)
                decided_calls += [CallRow(**row) for row in connection.execute(these).mappings()]
        return decided_calls

    def has_written(self, worker: str, run: str) -> bool:
        """Return whether the store has a call of a run that this worker wrote last."""
        written = sa.select(calls.c.path).where(calls.c.run == run, calls.c.worker == worker).limit(1)
        with self._engine.connect() as connection:
            return connection.execute(written).first() is not None

    def epochs(self, names: list[str]) -> dict[str, int]:
        """Return a mapping from these runs to their epochs, without unknown runs."""
        with self._engine.connect() as connection:
            rows = connection.execute(sa.select(runs.c.run, runs.c.epoch).where(runs.c.run.in_(names)))
            return {run: epoch for run, epoch in rows}

    def fence(self, run: str, **changed: Any) -> None:
        """Increase the epoch of a run, so that writes of all present workers are refused.

        `changed` sets further columns of the run: wish, fault, deaths, worker.
        """
        with self._engine.begin() as connection:
            connection.execute(sa.update(runs).where(runs.c.run == run).values(epoch=runs.c.epoch + 1, **changed))

    def mark_cancelled(self, over: sa.Select[tuple[str]]) -> list[str]:
        """Mark the runs of the query `over` as cancelled, so that no worker takes them. Return their names."""
        with self._engine.begin() as connection:
            marked = sa.update(runs).where(runs.c.run.in_(over)).values(epoch=runs.c.epoch + 1, wish="cancel")
            return [*connection.execute(marked.returning(runs.c.run)).scalars()]

    def delete_runs(self, names: Sequence[str]) -> None:
        """Delete runs and their calls."""
        with self._engine.begin() as connection:
            connection.execute(sa.delete(calls).where(calls.c.run.in_(names)))
            connection.execute(sa.delete(runs).where(runs.c.run.in_(names)))

    def _execute_write(self, statement: sa.Executable, hold: Hold, path: str, /, **values: Any) -> CallRow | None:
        """Execute a write. Return None if it changed a row, else the row that prevented the write.

        Raises RunTaken if the run's epoch has changed.
        """
        with self._engine.begin() as connection:
            if connection.execute(statement, _write_key(hold, path) | values).first():
                return None
            return self._blocking_row(connection, hold, path)

    def _blocking_row(self, connection: sa.Connection, hold: Hold, path: str) -> CallRow:
        """Return the row that prevented a write. Raises RunTaken if the run's epoch has changed."""
        if self._read_run(connection, hold.run).epoch == hold.epoch:
            row = self._read_call(connection, _call_key(hold.run, path))
            if row is not None:
                return row
        raise RunTaken(f"run {hold.run!r} was stopped, or given to another worker; see `sabir runs show {hold.run}`")

    def _make_row(
        self,
        hold: Hold,
        path: str,
        number: int,
        request: CallRequest,
        kind: Literal["call", "answer"],
        state: CallState,
    ) -> dict[str, Any]:
        row = CallRow(
            hold.run, path, number, kind, request.name, request.digest, request.readable, state,
            worker=hold.worker, started_at=time.time(),
        )  # fmt: skip
        return vars(row)

    def _read_run(self, connection: sa.Connection, run: str) -> RunRow:
        row = connection.execute(sa.select(runs).where(runs.c.run == run)).mappings().one_or_none()
        if row is None:
            raise run_not_found(run)
        return RunRow(**row)

    def _read_call(self, connection: sa.Connection, key: dict[str, Any]) -> CallRow | None:
        row = connection.execute(_READ, key).mappings().one_or_none()
        return None if row is None else CallRow(**row)

    def _read_calls(self, connection: sa.Connection, run: str) -> list[CallRow]:
        rows = connection.execute(sa.select(calls).where(calls.c.run == run).order_by(calls.c.number))
        return [CallRow(**row) for row in rows.mappings()]


def _write_key(hold: Hold, path: str) -> dict[str, Any]:
    return {"of_run": hold.run, "at_path": path, "in_epoch": hold.epoch, "by": hold.worker}


def _call_key(run: str, path: str) -> dict[str, Any]:
    return {"of_run": run, "at_path": path}
