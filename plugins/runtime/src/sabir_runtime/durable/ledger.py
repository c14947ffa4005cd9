"""The ledger: the batch and the result of every bound call of a run, written before anything uses them.

    begin ─▶ started ──decide──▶ batch written ──answer…──▶ ──finish──▶ done         one row a call, by run and path
                │  └─wait─▶ waiting ──decide by a person──▶ …
                └──fail──▶ failed

First result wins: a row that has a batch, a result or a failure keeps it, and a later writer gets the row. Every write
of a worker names the epoch in which it took the run, and is refused if another worker took the run since.
All of this blocks; `execution` calls it in threads.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal
from uuid import uuid4

import sqlalchemy as sa

from sabir_runtime.durable.errors import RunConflict, RunNotFound, RunTaken
from sabir_runtime.durable.tables import Call, Request, Run, calls, runs, workers
from sabir_runtime.durable.views import CallState

OPEN = ("started", "waiting")
"""States of a call that has neither result nor failure."""
MOST_DEATHS = 20
"""After this many workers died while they held a run, without a new record of it, the run is paused: it may be why."""


def name_of(run: str | None) -> str:
    """The name, or a new one for None; raises RunConflict for an invalid name: it must fit in a line of a list."""
    if run is None:
        return uuid4().hex
    if not (run.strip() and len(run) <= 200 and run.isprintable()):
        raise RunConflict(f"{run[:20]!r} is no name of a run; give 1 to 200 printable characters")
    return run


def no_run(run: str) -> RunNotFound:
    """The error that a store has no run of that name."""
    return RunNotFound(f"there is no run {run!r}; `sabir runs list` shows those that there are")


@dataclass(frozen=True)
class Hold:
    """A worker's hold on a run: valid until the epoch moves on."""

    run: str
    epoch: int
    worker: str


HELD = sa.exists().where(workers.c.worker == runs.c.holder)
"""Whether a run's holder is still in the list of workers: a removed one holds nothing."""
_COLUMNS = tuple(column.name for column in calls.columns)
_held = sa.exists(
    sa.select(runs.c.run).where(runs.c.run == sa.bindparam("of_run"), runs.c.epoch == sa.bindparam("in_epoch"))
)
_this = sa.and_(calls.c.run == sa.bindparam("of_run"), calls.c.path == sa.bindparam("at_path"))
_agreed = sa.or_(calls.c.batch.is_(None), calls.c.batch == sa.bindparam("given"))
_values = [sa.bindparam(column.name, type_=column.type).label(column.name) for column in calls.columns]
_READ = sa.select(calls).where(_this)
_DECIDE = (
    sa.update(calls).where(_this, calls.c.state.in_(OPEN), calls.c.batch.is_(None)).values(batch=sa.bindparam("given"))
)
_CLOSE = (
    sa.update(calls)
    .where(_this, calls.c.state.in_(OPEN), _agreed, _held)
    .values(
        state=sa.bindparam("to"),
        batch=sa.func.coalesce(calls.c.batch, sa.bindparam("given")),
        result=sa.bindparam("outcome"),
        failure=sa.bindparam("failed"),
        worker=sa.bindparam("by"),
        ended_at=sa.bindparam("at"),
    )
    .returning(calls.c.path)
)
_WAIT = (
    sa.update(calls).where(_this, calls.c.state == "started", _held).values(state="waiting", worker=sa.bindparam("by"))
)
_DECIDE_HELD = _DECIDE.where(_held).values(worker=sa.bindparam("by")).returning(calls.c.path)
_AT_ONCE = 400
"""The number of calls looked up in one query: each takes two of SQLite's parameters, at most 999."""


class Ledger:
    """Runs and their calls in one database."""

    def __init__(self, engine: sa.Engine) -> None:
        self._engine = engine
        # The dialect that the engine has loaded: loading the others takes a tenth of a second.
        insert = import_module(f"sqlalchemy.dialects.{engine.dialect.name}").insert
        begun = insert(calls).from_select(_COLUMNS, sa.select(*_values).where(_held))
        self._begin = begun.on_conflict_do_nothing().returning(calls.c.path)
        self._create = insert(runs).on_conflict_do_nothing().returning(runs.c.run)

    def create(self, run: Run, then: Callable[[sa.Connection], object] | None = None, kept: Sequence[Call] = ()) -> Run:
        """Record a run with the calls that it begins with; returns the existing run if there is one of that name.

        `then` runs in the same transaction, if the run is new.
        """
        with self._engine.begin() as connection:
            if connection.execute(self._create, vars(run) | {"created_at": time.time()}).first():
                if kept:
                    connection.execute(calls.insert(), [vars(call) | {"run": run.run} for call in kept])
                if then is not None:
                    then(connection)
            return self._run(connection, run.run)

    def run(self, run: str) -> Run:
        """A run; RunNotFound if there is none of that name."""
        with self._engine.connect() as connection:
            return self._run(connection, run)

    def claim(self, run: str, worker: str) -> tuple[Run, Hold, dict[str, Call]] | None:
        """Take a run, so that its former holder is fenced off. Returns its calls so far, by path.

        None while another worker still runs it: work that was going on when the run was paused may still have an
        effect. Raises RunTaken if the run was stopped meanwhile.
        """
        with self._engine.begin() as connection:
            is_free = sa.or_(runs.c.holder.is_(None), runs.c.holder == worker, sa.not_(HELD))
            changed = connection.execute(
                sa.update(runs)
                .where(runs.c.run == run, runs.c.wish == "run", is_free)
                .values(epoch=runs.c.epoch + 1, worker=worker, holder=worker, fault=None)
            )
            taken = self._run(connection, run)
            if not changed.rowcount:
                if taken.wish == "run":
                    return None
                raise RunTaken(f"run {run!r} was stopped before it was taken up; resume it once more")
            is_new = taken.epoch == 1 and taken.forked_from is None
            known = {} if is_new else {call.path: call for call in self._calls(connection, run)}
        return taken, Hold(run, taken.epoch, worker), known

    def release(self, run: str, worker: str) -> None:
        """Release a run: no part of it runs at this worker any more."""
        with self._engine.begin() as connection:
            connection.execute(sa.update(runs).where(runs.c.run == run, runs.c.holder == worker).values(holder=None))

    def calls(self, run: str) -> list[Call]:
        """All calls of a run, in the order in which they began."""
        with self._engine.connect() as connection:
            return self._calls(connection, run)

    def call(self, run: str, path: str) -> Call:
        """One call; RunNotFound if the run has none at that path."""
        found = self.find(run, path)
        if found is None:
            raise RunNotFound(f"run {run!r} has no call at {path!r}; `sabir runs show {run}` lists its calls")
        return found

    def find(self, run: str, path: str) -> Call | None:
        """One call, if the run has one at that path."""
        with self._engine.connect() as connection:
            return self._call(connection, _at(run, path))

    def begin(self, hold: Hold, path: str, number: int, request: Request) -> Call | None:
        """Record that a call starts; None, or the row that is already at its path."""
        return self._write(self._begin, hold, path, **self._row(hold, path, number, request, "call", "started"))

    def decide(self, hold: Hold, path: str, batch: str) -> Call | None:
        """Record a policy's batch, before its calls are answered; None, or the row if another batch is there."""
        return self._write(_DECIDE_HELD, hold, path, given=batch)

    def wait(self, hold: Hold, path: str) -> Call:
        """Record that a call waits for a person; returns the row."""
        with self._engine.begin() as connection:
            connection.execute(_WAIT, _key(hold, path))
            return self._standing(connection, hold, path)

    def answer(
        self, hold: Hold, path: str, number: int, request: Request, result: str, started_at: float
    ) -> Call | None:
        """Record the result of an option call; None, or the row that is already there."""
        row = self._row(hold, path, number, request, "answer", "done")
        written = {"result": result, "started_at": started_at, "ended_at": time.time()}
        return self._write(self._begin, hold, path, **row | written)

    def finish(self, hold: Hold, path: str, batch: str, result: str | None) -> Call | None:
        """Record the end of a call: `result` if the batch's calls were answered, else the batch itself.

        None, or the row if another batch, a result or a failure is there.
        """
        at = time.time()
        return self._write(_CLOSE, hold, path, to="done", given=batch, outcome=result, failed=None, at=at)

    def fail(self, hold: Hold, path: str, batch: str | None, failure: str) -> Call | None:
        """Record a call's failure; None, or the row if another batch or a result is there."""
        at = time.time()
        return self._write(_CLOSE, hold, path, to="failed", given=batch, outcome=None, failed=failure, at=at)

    def decide_for(self, run: str, path: str, batch: str) -> bool:
        """Record a person's choice; returns whether the call waited for it and had no choice yet."""
        waiting = _DECIDE.where(calls.c.state == "waiting")
        with self._engine.begin() as connection:
            return bool(connection.execute(waiting, _at(run, path) | {"given": batch}).rowcount)

    def decided(self, waiting: list[tuple[str, str]]) -> list[Call]:
        """The waiting calls that have been decided; may include others of the same runs."""
        found: list[Call] = []
        with self._engine.connect() as connection:
            for start in range(0, len(waiting), _AT_ONCE):
                names, at = zip(*waiting[start : start + _AT_ONCE], strict=True)
                decided = sa.or_(calls.c.batch.is_not(None), calls.c.state.not_in(OPEN))
                these = sa.select(calls).where(calls.c.run.in_(names), calls.c.path.in_(at), decided)
                found += [Call(**row) for row in connection.execute(these).mappings()]
        return found

    def has_written(self, worker: str, run: str) -> bool:
        """Whether a worker recorded anything new of a run."""
        written = sa.select(calls.c.path).where(calls.c.run == run, calls.c.worker == worker).limit(1)
        with self._engine.connect() as connection:
            return connection.execute(written).first() is not None

    def epochs(self, names: list[str]) -> dict[str, int]:
        """The epoch of each of these runs."""
        with self._engine.connect() as connection:
            rows = connection.execute(sa.select(runs.c.run, runs.c.epoch).where(runs.c.run.in_(names)))
            return {run: epoch for run, epoch in rows}

    def fence(self, run: str, **changed: Any) -> None:
        """End any hold on a run; `changed` are further columns: wish, fault, deaths, worker."""
        with self._engine.begin() as connection:
            connection.execute(sa.update(runs).where(runs.c.run == run).values(epoch=runs.c.epoch + 1, **changed))

    def condemn(self, over: sa.Select[tuple[str]]) -> list[str]:
        """Mark the selected runs as cancelled, so that no worker takes them; returns their names."""
        with self._engine.begin() as connection:
            marked = sa.update(runs).where(runs.c.run.in_(over)).values(epoch=runs.c.epoch + 1, wish="cancel")
            return [*connection.execute(marked.returning(runs.c.run)).scalars()]

    def forget(self, names: Sequence[str]) -> None:
        """Delete runs and their calls."""
        with self._engine.begin() as connection:
            connection.execute(sa.delete(calls).where(calls.c.run.in_(names)))
            connection.execute(sa.delete(runs).where(runs.c.run.in_(names)))

    def _write(self, statement: sa.Executable, hold: Hold, path: str, /, **values: Any) -> Call | None:
        """None if the statement wrote a row, else the row that prevented it; raises RunTaken as `_standing` does."""
        with self._engine.begin() as connection:
            if connection.execute(statement, _key(hold, path) | values).first():
                return None
            return self._standing(connection, hold, path)

    def _standing(self, connection: sa.Connection, hold: Hold, path: str) -> Call:
        """The row that prevented a write; raises RunTaken if there is none, since then the epoch has changed."""
        if self._run(connection, hold.run).epoch == hold.epoch:
            row = self._call(connection, _at(hold.run, path))
            if row is not None:
                return row
        raise RunTaken(f"run {hold.run!r} was taken from this worker; whoever has it now carries it on")

    def _row(
        self, hold: Hold, path: str, number: int, request: Request, kind: Literal["call", "answer"], state: CallState
    ) -> dict[str, Any]:
        row = Call(
            hold.run, path, number, kind, request.name, request.digest, request.shown, state,
            worker=hold.worker, started_at=time.time(),
        )  # fmt: skip
        return vars(row)

    def _run(self, connection: sa.Connection, run: str) -> Run:
        row = connection.execute(sa.select(runs).where(runs.c.run == run)).mappings().one_or_none()
        if row is None:
            raise no_run(run)
        return Run(**row)

    def _call(self, connection: sa.Connection, key: dict[str, Any]) -> Call | None:
        row = connection.execute(_READ, key).mappings().one_or_none()
        return None if row is None else Call(**row)

    def _calls(self, connection: sa.Connection, run: str) -> list[Call]:
        found = connection.execute(sa.select(calls).where(calls.c.run == run).order_by(calls.c.number))
        return [Call(**row) for row in found.mappings()]


def _key(hold: Hold, path: str) -> dict[str, Any]:
    return {"of_run": hold.run, "at_path": path, "in_epoch": hold.epoch, "by": hold.worker}


def _at(run: str, path: str) -> dict[str, Any]:
    return {"of_run": run, "at_path": path}
