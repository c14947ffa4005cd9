"""Queries of runs: this package's tables joined with the engine's tables, which are only read.

    sabir_runs ─┬─ workflow_status   the engine's row of the run: its status, since when, at which worker
                ├─ sabir_calls       whether one of the run's calls waits for a person
                └─ sabir_workers     whether a worker exists that can take the run

No engine is imported for this. Changes of a run's status go through the engine (`runs`).

A worker is listed with the time when it was last seen; its lock shows whether it lives (`stores`).
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from sabir_runtime.durable.layouts import check_tables, missing_tables_error
from sabir_runtime.durable.ledger import HAS_LISTED_HOLDER
from sabir_runtime.durable.tables import RunRow, calls, runs, workers
from sabir_runtime.durable.views import RunState, RunSummary

_SECONDS = {
    "sqlite": "(julianday('now') - 2440587.5) * 86400.0",
    "postgresql": "CAST(extract(epoch FROM clock_timestamp()) AS double precision)",
}
"""SQL for the seconds since 1970 by the clock of the database server, or of this machine for SQLite."""


class WorkerList:
    """Reads and writes the list of a store's workers."""

    def __init__(self, engine: sa.Engine) -> None:
        self._engine = engine
        # The store's clock, so that the clocks of the workers' machines need not agree.
        self._now: sa.ColumnElement[float] = sa.literal_column(_SECONDS[engine.dialect.name], sa.Float())

    def add(self, worker: str, application: str, version: str, host: str, process: int) -> None:
        """Add a worker, which already has its lock, to the list. If the worker is in the list, change nothing."""
        row = {"worker": worker, "application": application, "version": version, "host": host, "process": process}
        with self._engine.begin() as connection, suppress(IntegrityError):
            connection.execute(sa.insert(workers).values(**row, started_at=self._now, seen_at=self._now))

    def mark_seen(self, worker: str) -> bool:
        """Record that a worker has its lock now. Return False if it is not in the list: it was removed as dead."""
        with self._engine.begin() as connection:
            changed = connection.execute(sa.update(workers).where(workers.c.worker == worker).values(seen_at=self._now))
            return bool(changed.rowcount)

    def remove(self, worker: str) -> None:
        """Remove a worker from the list."""
        with self._engine.begin() as connection:
            connection.execute(sa.delete(workers).where(workers.c.worker == worker))

    def find_unseen(self, seconds: float) -> list[str]:
        """Return the ids of the workers that were last seen at least `seconds` ago."""
        with self._engine.connect() as connection:
            age = self._now - workers.c.seen_at
            return list(connection.execute(sa.select(workers.c.worker).where(age >= sa.literal(seconds))).scalars())

    def live(self, seconds: float) -> frozenset[tuple[str, str | None]]:
        """Return the application and version of each worker that was seen less than `seconds` ago."""
        with self._engine.connect() as connection:
            age = self._now - workers.c.seen_at
            rows = connection.execute(
                sa.select(workers.c.application, workers.c.version).where(age < sa.literal(seconds))
            )
            return frozenset((application, version) for application, version in rows)


ENDED: tuple[RunState, ...] = ("done", "failed", "cancelled")
"""The states of runs that have ended. Of these runs, only cancelled runs can be resumed."""
LIVE_SECONDS = 60.0
"""The number of seconds after which an unseen worker no longer counts as a worker that serves its version."""

_QUEUED = ("ENQUEUED", "DELAYED")
_IS_NEW = runs.c.epoch == sa.literal_column(
    "0"
)  # must be written exactly like the condition of the index sabir_runs_new
_COLUMNS = [column for column in runs.columns if column is not runs.c.request]
"""The columns for lists of runs, without the request, which can be long."""


def _engine_table(schema: str | None) -> sa.Table:
    return sa.Table(
        "workflow_status",
        sa.MetaData(schema=schema),
        sa.Column("workflow_uuid", sa.Text, primary_key=True),
        sa.Column("status", sa.Text),
        sa.Column("executor_id", sa.Text),
        sa.Column("updated_at", sa.BigInteger),
    )


_TABLES = {"sqlite": _engine_table(None), "postgresql": _engine_table("dbos")}


def check_store(engine: sa.Engine) -> None:
    """Raise StoreInvalid if the store cannot be opened, tables are missing, or their layout is newer or invalid.

    Upgrades older tables of runs.
    """
    check_tables(engine)
    table = _TABLES[engine.dialect.name]
    if not sa.inspect(engine).has_table(table.name, schema=table.schema):
        raise missing_tables_error(engine)


class Statuses:
    """Queries for the runs of a store and their states."""

    def __init__(self, engine: sa.Engine) -> None:
        self._engine, self._workers = engine, WorkerList(engine)
        self._table = _TABLES[engine.dialect.name]
        self._joined = runs.outerjoin(self._table, self._table.c.workflow_uuid == runs.c.run)
        self._states = _state_conditions(self._table.c.status)

    def newest(self, state: RunState | None, limit: int) -> list[RunSummary]:
        """Return at most `limit` runs, the newest first. With `state`, return only runs in this state."""
        newest_first = self._select_runs().order_by(runs.c.created_at.desc(), runs.c.run).limit(limit)
        return self._fetch_summaries(
            newest_first if state is None else newest_first.where(self._state_condition(state))
        )

    def find(self, names: Sequence[str]) -> list[RunSummary]:
        """Return the runs with these names, in any order. Unknown names are left out."""
        return self._fetch_summaries(self._select_runs().where(runs.c.run.in_(names)))

    def unfinished(self, application: str) -> list[str]:
        """Return the names of an application's queued, running and waiting runs, the oldest first."""
        is_open = sa.or_(self._states["queued"], self._states["running"])
        oldest_first = sa.select(runs.c.run).select_from(self._joined).order_by(runs.c.created_at, runs.c.run)
        with self._engine.connect() as connection:
            return [*connection.execute(oldest_first.where(runs.c.application == application, is_open)).scalars()]

    def left_by(self, worker: str) -> list[RunRow]:
        """Return the unfinished runs that a worker took, and the runs that it stored but did not start."""
        status = self._table.c
        has = sa.and_(status.executor_id == worker, status.status == "PENDING")
        wrote = sa.and_(runs.c.worker == worker, _IS_NEW, status.status.is_(None))
        with self._engine.connect() as connection:
            queries = (sa.select(runs).select_from(self._joined).where(where) for where in (has, wrote))
            return [RunRow(**row) for query in queries for row in connection.execute(query).mappings()]

    def ended_before(self, moment: float) -> list[str]:
        """Return the names of runs that ended before `moment` (seconds since 1970) and that no worker executes."""
        at = sa.func.coalesce(self._table.c.updated_at / 1000.0, runs.c.created_at)
        with self._engine.connect() as connection:
            return [*connection.execute(self._select_ended().where(at < moment)).scalars()]

    def ended_among(self, names: Sequence[str]) -> sa.Select[tuple[str]]:
        """Return a query for the names among `names` whose runs have ended and are executed by no worker."""
        return self._select_ended().where(runs.c.run.in_(names)).correlate(None)

    def stranded(self, application: str) -> Mapping[str, int]:
        """Return the number of an application's queued runs by version, for versions that no worker serves."""
        queued = (
            sa.select(runs.c.version, sa.func.count())
            .join(self._table, self._table.c.workflow_uuid == runs.c.run)
            .where(runs.c.application == application, self._table.c.status.in_(_QUEUED))
            .group_by(runs.c.version)
            .order_by(runs.c.version)
        )
        live = self._workers.live(LIVE_SECONDS)
        with self._engine.connect() as connection:
            return {
                version: number
                for version, number in connection.execute(queued)
                if not _is_served(live, application, version)
            }

    def is_known(self, run: str) -> bool:
        """Return whether the engine has a row for a run."""
        with self._engine.connect() as connection:
            query = sa.select(self._table.c.workflow_uuid).where(self._table.c.workflow_uuid == run)
            return connection.execute(query).first() is not None

    def _select_ended(self) -> sa.Select[tuple[str]]:
        ended = sa.or_(*(self._states[state] for state in ENDED))
        return sa.select(runs.c.run).select_from(self._joined).where(ended, sa.not_(HAS_LISTED_HOLDER))

    def _state_condition(self, state: RunState) -> sa.ColumnElement[bool]:
        """Return the SQL condition of a state. Runs that wait for a person are "waiting" here, and not "running"."""
        asks = sa.exists().where(calls.c.run == runs.c.run, calls.c.state == "waiting")
        if state == "waiting":
            return sa.and_(self._states["running"], asks)
        return sa.and_(self._states["running"], sa.not_(asks)) if state == "running" else self._states[state]

    def _select_runs(self) -> sa.Select[Any]:
        state = sa.case(*((when, name) for name, when in self._states.items())).label("state")
        status = (self._table.c.updated_at, self._table.c.executor_id)
        return sa.select(*_COLUMNS, HAS_LISTED_HOLDER.label("is_held"), state, *status).select_from(self._joined)

    def _fetch_summaries(self, query: sa.Select[Any]) -> list[RunSummary]:
        with self._engine.connect() as connection:
            rows = connection.execute(query).mappings().all()
            running = [row["run"] for row in rows if row["state"] == "running"]
            # Not in the query itself, because Postgres would then read all calls of the store.
            asks = sa.select(calls.c.run).where(calls.c.run.in_(running), calls.c.state == "waiting").distinct()
            waiting = frozenset(connection.execute(asks).scalars() if running else ())
        live = self._workers.live(LIVE_SECONDS) if any(row["state"] == "queued" for row in rows) else frozenset()
        return [_make_summary(row, "waiting" if row["run"] in waiting else row["state"], live) for row in rows]


def _state_conditions(status: sa.ColumnElement[str | None]) -> dict[RunState, sa.ColumnElement[bool]]:
    """Return a mapping from each state to its SQL condition. For each run, exactly one condition is true.

    "waiting" has no condition: such runs are "running" here.
    """
    is_unknown, is_cancelled = status.is_(None), runs.c.wish == "cancel"  # without a status the run has not begun yet
    is_stopped = status.in_(("CANCELLED", "MAX_RECOVERY_ATTEMPTS_EXCEEDED"))
    return {
        "queued": sa.or_(status.in_(_QUEUED), sa.and_(is_unknown, runs.c.wish == "run")),
        "running": status == "PENDING",
        "paused": sa.or_(sa.and_(is_stopped, sa.not_(is_cancelled)), sa.and_(is_unknown, runs.c.wish == "pause")),
        "cancelled": sa.and_(sa.or_(is_stopped, is_unknown), is_cancelled),
        "done": status == "SUCCESS",
        "failed": status == "ERROR",
    }


def _make_summary(row: Mapping[Any, Any], state: RunState, live: frozenset[tuple[str, str | None]]) -> RunSummary:
    waits_for = None
    if state == "queued" and not _is_served(live, row["application"], row["version"]):
        waits_for = f"a worker of version {row['version']!r} (none is running)"
    elif state in ("queued", "running", "waiting") and row["is_held"] and row["executor_id"] != row["holder"]:
        waits_for = f"worker {row['holder']}, which has not released the run yet"
    updated_at = row["updated_at"] / 1000 if row["updated_at"] else row["created_at"]
    columns = {name: row[name] for name in RunSummary.model_fields if name in row}
    return RunSummary(**{**columns, "state": state, "waits_for": waits_for, "updated_at": updated_at})


def _is_served(live: frozenset[tuple[str, str | None]], application: str, version: str) -> bool:
    """Return whether a live worker performs runs of a version. Old workers without a version count for all versions."""
    return (application, version) in live or (application, None) in live
