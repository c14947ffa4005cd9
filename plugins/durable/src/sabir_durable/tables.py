"""The tables beside the engine's own: runs, their calls, and the workers.

    sabir_runs      one row a run       what was asked; the epoch that fences off who lost it; its holder, who has not
                                        let go of it yet; what somebody wishes
    sabir_calls     one row a call      path, digest, request, state, batch, result or failure: JSON, readable
    sabir_workers   one row a worker    when it was last seen; its lock says whether it lives

Everything is plain text and numbers, so that a database shell shows it. Times are seconds since 1970.
"""

from pathlib import Path

from sabir.authoring.databases import REMEDY_OF_DAMAGE
from sabir.base.errors import one_line
from sqlalchemy import (
    Column,
    Connection,
    Engine,
    Float,
    Index,
    Integer,
    MetaData,
    PrimaryKeyConstraint,
    Table,
    Text,
    inspect,
    select,
    text,
)

from sabir_durable.errors import StoreInvalid
from sabir_durable.stores import reach_store, shown

SCHEMA = 2
"""The number of the layout that this version writes."""
_SINCE = {
    2: (
        "ALTER TABLE sabir_runs ADD COLUMN holder TEXT",
        "ALTER TABLE sabir_workers ADD COLUMN version TEXT",
        "CREATE INDEX sabir_runs_newest ON sabir_runs (created_at)",
        "CREATE INDEX sabir_runs_new ON sabir_runs (worker) WHERE epoch = 0",
    ),
}
"""What each layout added to the one before it; a store of an older one is brought up when it is opened."""
SETUP_LOCK = 0x5AB1_D0AB
"""The advisory lock under which Postgres tables are made: two workers may start at once."""

metadata = MetaData()

versions = Table("sabir_durable_schema", metadata, Column("version", Integer, primary_key=True))

runs = Table(
    "sabir_runs",
    metadata,
    Column("run", Text, primary_key=True),
    Column("application", Text, nullable=False),
    Column("version", Text, nullable=False),
    Column("context", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("digest", Text, nullable=False),
    Column("request", Text, nullable=False),
    Column("epoch", Integer, nullable=False),
    Column("deaths", Integer, nullable=False),
    Column("wish", Text, nullable=False),
    Column("fault", Text),
    Column("worker", Text),
    Column("holder", Text),
    Column("forked_from", Text),
    Column("created_at", Float, nullable=False),
    Index("sabir_runs_newest", "created_at"),
    Index("sabir_runs_new", "worker", sqlite_where=text("epoch = 0"), postgresql_where=text("epoch = 0")),
)

calls = Table(
    "sabir_calls",
    metadata,
    Column("run", Text, nullable=False),
    Column("path", Text, nullable=False),
    Column("number", Integer, nullable=False),
    Column("kind", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("digest", Text, nullable=False),
    Column("request", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("batch", Text),
    Column("result", Text),
    Column("failure", Text),
    Column("worker", Text),
    Column("started_at", Float, nullable=False),
    Column("ended_at", Float),
    PrimaryKeyConstraint("run", "path"),
)

workers = Table(
    "sabir_workers",
    metadata,
    Column("worker", Text, primary_key=True),
    Column("application", Text, nullable=False),
    Column("version", Text),
    Column("host", Text, nullable=False),
    Column("process", Integer, nullable=False),
    Column("started_at", Float, nullable=False),
    Column("seen_at", Float, nullable=False),
)


def make_tables(engine: Engine) -> None:
    """Make the tables that are missing, and bring older ones up; StoreInvalid for a store of a newer version."""
    with engine.begin() as connection:
        if engine.dialect.name == "postgresql":
            connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": SETUP_LOCK})
        else:
            connection.execute(text("BEGIN IMMEDIATE"))
        is_new = not inspect(connection).has_table(versions.name)
        metadata.create_all(connection)
        if is_new:
            connection.execute(versions.insert(), {"version": SCHEMA})
            return
        for layout in range(_layout(connection) + 1, SCHEMA + 1):
            for statement in _SINCE[layout]:
                connection.execute(text(statement))
            connection.execute(versions.update(), {"version": layout})


def check_tables(engine: Engine) -> None:
    """Bring older tables up, make none; StoreInvalid where they are missing or of a newer version."""
    path = engine.url.database or ""
    is_missing = engine.dialect.name == "sqlite" and not Path(path).exists()  # SQLite would make the file
    if not is_missing:
        reach_store(engine)
    if is_missing or not inspect(engine).has_table(versions.name):
        raise no_runs(engine)
    with engine.connect() as connection:
        is_older = _layout(connection) < SCHEMA
    if is_older:
        make_tables(engine)


def no_runs(engine: Engine) -> StoreInvalid:
    """What says that a store was made by something else."""
    return StoreInvalid(f"{shown(engine.url)} holds no runs; give the store that a DurableRunner was made with")


def _layout(connection: Connection) -> int:
    """The layout of a store's tables, which this version knows; StoreInvalid for any other."""
    found = connection.execute(select(versions.c.version)).scalars().all()
    written = found[0] if len(found) == 1 and type(found[0]) is int and found[0] > 0 else None
    if written is None:
        held = f"{shown(connection.engine.url)} is damaged: its layout is {one_line(repr(found), 80)}"
        raise StoreInvalid(f"{held}; {REMEDY_OF_DAMAGE}")
    if written > SCHEMA:
        raise StoreInvalid(f"the store has layout {written}, this version reads up to {SCHEMA}; install a newer one")
    return written
