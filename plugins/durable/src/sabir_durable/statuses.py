"""Looking at runs: what the tables here say of them, joined with the engine's own, which is only read.

    sabir_runs ─┬─ workflow_status   the engine's row of the run: its status, since when, at which worker
                ├─ sabir_calls       whether one of its calls waits for a person
                └─ sabir_workers     whether somebody is there who can take it

No engine is imported for this. What changes the status of a run goes through the engine (`runs`).
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sqlalchemy import (
    BigInteger,
    Column,
    ColumnElement,
    Connection,
    Engine,
    MetaData,
    Select,
    Table,
    Text,
    and_,
    case,
    exists,
    func,
    inspect,
    literal_column,
    not_,
    or_,
    select,
)

from sabir_durable.ledger import HELD, Run
from sabir_durable.roster import Roster
from sabir_durable.tables import calls, check_tables, no_runs, runs
from sabir_durable.views import RunState, RunSummary

ENDED: tuple[RunState, ...] = ("done", "failed", "cancelled")
"""States of runs that nothing more becomes of, unless somebody resumes a cancelled one."""
LIVE_SECONDS = 60.0
"""A worker that was not seen for so long is not counted on: what only it can take is shown as waiting for one."""

_QUEUED = ("ENQUEUED", "DELAYED")
_IS_NEW = runs.c.epoch == literal_column("0")  # as the index has it
_COLUMNS = [column for column in runs.columns if column is not runs.c.request]
"""What is shown of many runs at once; a request can be long."""


def _engine_table(schema: str | None) -> Table:
    return Table(
        "workflow_status",
        MetaData(schema=schema),
        Column("workflow_uuid", Text, primary_key=True),
        Column("status", Text),
        Column("executor_id", Text),
        Column("updated_at", BigInteger),
    )


_TABLES = {"sqlite": _engine_table(None), "postgresql": _engine_table("dbos")}


def check_store(engine: Engine) -> None:
    """StoreInvalid where the tables of runs, or the engine's, are missing or of a newer version."""
    check_tables(engine)
    table = _TABLES[engine.dialect.name]
    if not inspect(engine).has_table(table.name, schema=table.schema):
        raise no_runs(engine)


class Statuses:
    """The runs of a store and the states that they are in."""

    def __init__(self, engine: Engine) -> None:
        self._engine, self._roster = engine, Roster(engine)
        self._table = _TABLES[engine.dialect.name]
        self._joined = runs.outerjoin(self._table, self._table.c.workflow_uuid == runs.c.run)
        self._states = _states(self._table.c.status)

    def newest(self, state: RunState | None, limit: int) -> list[RunSummary]:
        """Runs, the newest first; those in one state if that is given."""
        newest_first = self._select().order_by(runs.c.created_at.desc(), runs.c.run).limit(limit)
        return self._summaries(newest_first if state is None else newest_first.where(self._is(state)))

    def find(self, names: Sequence[str]) -> list[RunSummary]:
        """Those of these runs that there are."""
        return self._summaries(self._select().where(runs.c.run.in_(names)))

    def unfinished(self, application: str) -> list[str]:
        """The names of an application's runs that are queued, running or waiting; the oldest first."""
        is_open = or_(self._states["queued"], self._states["running"])
        oldest_first = select(runs.c.run).select_from(self._joined).order_by(runs.c.created_at, runs.c.run)
        with self._engine.connect() as connection:
            return [*connection.execute(oldest_first.where(runs.c.application == application, is_open)).scalars()]

    def left_by(self, worker: str) -> list[Run]:
        """The runs that a worker has, and those that it wrote down and did not come to start."""
        status = self._table.c
        has = and_(status.executor_id == worker, status.status == "PENDING")
        wrote = and_(runs.c.worker == worker, _IS_NEW, status.status.is_(None))
        with self._engine.connect() as connection:
            return [run for where in (has, wrote) for run in self._runs(connection, where)]

    def ended_before(self, moment: float) -> list[str]:
        """The names of runs that ended before that time, and that nobody is still at."""
        at = func.coalesce(self._table.c.updated_at / 1000.0, runs.c.created_at)
        with self._engine.connect() as connection:
            return [*connection.execute(self._over().where(at < moment)).scalars()]

    def over(self, names: Sequence[str]) -> Select[tuple[str]]:
        """Selects those of these runs that have ended, and that nobody is still at."""
        return self._over().where(runs.c.run.in_(names)).correlate(None)

    def stranded(self, application: str) -> Mapping[str, int]:
        """How many queued runs of an application wait for a version of which no worker is there: version → number."""
        queued = (
            select(runs.c.version, func.count())
            .join(self._table, self._table.c.workflow_uuid == runs.c.run)
            .where(runs.c.application == application, self._table.c.status.in_(_QUEUED))
            .group_by(runs.c.version)
            .order_by(runs.c.version)
        )
        live = self._roster.live(LIVE_SECONDS)
        with self._engine.connect() as connection:
            return {
                version: number
                for version, number in connection.execute(queued)
                if not _is_served(live, application, version)
            }

    def is_known(self, run: str) -> bool:
        """Whether the engine knows a run."""
        with self._engine.connect() as connection:
            found = select(self._table.c.workflow_uuid).where(self._table.c.workflow_uuid == run)
            return connection.execute(found).first() is not None

    def _over(self) -> Select[tuple[str]]:
        ended = or_(*(self._states[state] for state in ENDED))
        return select(runs.c.run).select_from(self._joined).where(ended, not_(HELD))

    def _is(self, state: RunState) -> ColumnElement[bool]:
        """The condition of a state; a run that waits for a person is running as far as the engine knows."""
        asks = exists().where(calls.c.run == runs.c.run, calls.c.state == "waiting")
        if state == "waiting":
            return and_(self._states["running"], asks)
        return and_(self._states["running"], not_(asks)) if state == "running" else self._states[state]

    def _select(self) -> Select[Any]:
        state = case(*((when, name) for name, when in self._states.items())).label("state")
        status = (self._table.c.updated_at, self._table.c.executor_id)
        return select(*_COLUMNS, HELD.label("is_held"), state, *status).select_from(self._joined)

    def _summaries(self, query: Select[Any]) -> list[RunSummary]:
        with self._engine.connect() as connection:
            rows = connection.execute(query).mappings().all()
            running = [row["run"] for row in rows if row["state"] == "running"]
            # Not in the query itself: Postgres would look through all calls of the store for it.
            asks = select(calls.c.run).where(calls.c.run.in_(running), calls.c.state == "waiting").distinct()
            waiting = frozenset(connection.execute(asks).scalars() if running else ())
        live = self._roster.live(LIVE_SECONDS) if any(row["state"] == "queued" for row in rows) else frozenset()
        return [_summary(row, "waiting" if row["run"] in waiting else row["state"], live) for row in rows]

    def _runs(self, connection: Connection, where: ColumnElement[bool]) -> Iterator[Run]:
        for row in connection.execute(select(runs).select_from(self._joined).where(where)).mappings():
            yield Run(**row)


def _states(status: ColumnElement[str | None]) -> dict[RunState, ColumnElement[bool]]:
    """When a run is in which state, of which exactly one fits; `waiting` is `running` here."""
    is_unknown, is_cancelled = status.is_(None), runs.c.wish == "cancel"  # unknown to the engine: not begun yet
    is_stopped = status.in_(("CANCELLED", "MAX_RECOVERY_ATTEMPTS_EXCEEDED"))
    return {
        "queued": or_(status.in_(_QUEUED), and_(is_unknown, runs.c.wish == "run")),
        "running": status == "PENDING",
        "paused": or_(and_(is_stopped, not_(is_cancelled)), and_(is_unknown, runs.c.wish == "pause")),
        "cancelled": and_(or_(is_stopped, is_unknown), is_cancelled),
        "done": status == "SUCCESS",
        "failed": status == "ERROR",
    }


def _summary(row: Mapping[Any, Any], state: RunState, live: frozenset[tuple[str, str | None]]) -> RunSummary:
    waits_for = None
    if state == "queued" and not _is_served(live, row["application"], row["version"]):
        waits_for = f"a worker of version {row['version']!r}, of which none is there"
    elif state in ("queued", "running", "waiting") and row["is_held"] and row["executor_id"] != row["holder"]:
        waits_for = f"worker {row['holder']}, which has not let go of it yet"
    updated = row["updated_at"]
    return RunSummary(
        run=row["run"], state=state, application=row["application"], version=row["version"],
        context=row["context"], name=row["name"], worker=row["worker"], fault=row["fault"], waits_for=waits_for,
        forked_from=row["forked_from"], created_at=row["created_at"],
        updated_at=updated / 1000 if updated else row["created_at"],
    )  # fmt: skip


def _is_served(live: frozenset[tuple[str, str | None]], application: str, version: str) -> bool:
    """Whether a worker is there that takes such runs; one of before workers said their version may be."""
    return (application, version) in live or (application, None) in live
