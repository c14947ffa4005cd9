"""The layout number of the tables in a store, and the statements that migrate each layout to the next.

    a new store      ─▶ the tables of LAYOUT are created
    an older layout  ─▶ STEPS[n + 1] ─▶ … ─▶ STEPS[LAYOUT]      in one transaction, under a lock, when it is opened
    a newer layout   ─▶ StoreInvalid: upgrade sabir-runtime     nothing is changed

A change of `tables` needs a new step here. Steps are never edited, because existing stores have executed them.
"""

from pathlib import Path

import sqlalchemy as sa
from sabir.authoring import DatabaseFailure, one_line

from sabir_runtime.durable.errors import StoreInvalid
from sabir_runtime.durable.stores import display_url, reach_store
from sabir_runtime.durable.tables import metadata, runs, versions

STEPS: dict[int, tuple[str, ...]] = {
    2: (
        "ALTER TABLE sabir_runs ADD COLUMN holder TEXT",
        "ALTER TABLE sabir_workers ADD COLUMN version TEXT",
        "CREATE INDEX sabir_runs_newest ON sabir_runs (created_at)",
        "CREATE INDEX sabir_runs_new ON sabir_runs (worker) WHERE epoch = 0",
    ),
    3: ("ALTER TABLE sabir_runs ADD COLUMN headers TEXT",),
}
"""The number of a layout → the statements that create this layout from the layout before."""
NEW_COLUMNS = {3: "headers", 2: "holder"}
"""The number of a layout → a column of `sabir_runs` that older layouts do not have."""
LAYOUT = max(STEPS)
"""The number of the layout that this version writes."""
SETUP_LOCK = 0x5AB1_D0AB
"""The number of the advisory lock under which tables are created on Postgres. Two workers may start at once."""


def make_tables(engine: sa.Engine) -> None:
    """Create missing tables and migrate older ones, in one transaction.

    Raises StoreInvalid for a store with a newer or invalid layout number.
    """
    with engine.begin() as connection:
        if engine.dialect.name == "postgresql":
            connection.execute(sa.text("SELECT pg_advisory_xact_lock(:key)"), {"key": SETUP_LOCK})
        else:
            connection.execute(sa.text("BEGIN IMMEDIATE"))
        is_numbered = sa.inspect(connection).has_table(versions.name)
        layout = _numbered_layout(connection) if is_numbered else _unnumbered_layout(connection)
        metadata.create_all(connection)
        if not is_numbered:
            connection.execute(versions.insert(), {"version": layout})
        for number in range(layout + 1, LAYOUT + 1):
            for statement in STEPS[number]:
                connection.execute(sa.text(statement))
            connection.execute(versions.update(), {"version": number})


def check_tables(engine: sa.Engine) -> None:
    """Migrate older tables, but do not create a new store.

    Raises StoreInvalid if the store cannot be opened, has no tables of runs, or has a newer or invalid layout number.
    """
    path = engine.url.database or ""
    is_missing = engine.dialect.name == "sqlite" and not Path(path).exists()  # connecting would create the file
    if not is_missing:
        reach_store(engine)
    if is_missing or not sa.inspect(engine).has_table(runs.name):
        raise missing_tables_error(engine)
    with engine.connect() as connection:
        is_numbered = sa.inspect(connection).has_table(versions.name)
        is_current = is_numbered and _numbered_layout(connection) == LAYOUT
    if not is_current:
        make_tables(engine)


def missing_tables_error(engine: sa.Engine) -> StoreInvalid:
    """Return the error for a database without tables of runs, or without the engine's tables."""
    return StoreInvalid(
        f"{display_url(engine.url)} has no tables of runs; give the store URL that a DurableRunner uses"
    )


def _numbered_layout(connection: sa.Connection) -> int:
    """Return the layout number in the store. Raises StoreInvalid if it is higher than LAYOUT or not a number."""
    url = display_url(connection.engine.url)
    numbers = connection.execute(sa.select(versions.c.version)).scalars().all()
    layout = numbers[0] if len(numbers) == 1 and type(numbers[0]) is int and numbers[0] > 0 else None
    if layout is None:
        damage = f"{url} is damaged: its layout numbers are {one_line(repr(numbers), 80)}, not one number above 0"
        raise StoreInvalid(f"{damage}; {DatabaseFailure.DAMAGE}")
    if layout > LAYOUT:
        raise StoreInvalid(f"{url} has layout {layout}, newer than this version's {LAYOUT}; upgrade sabir-runtime")
    return layout


def _unnumbered_layout(connection: sa.Connection) -> int:
    """Return the layout number of a store that has none, by its columns. A store without tables has the newest."""
    tables = sa.inspect(connection)
    if not tables.has_table(runs.name):
        return LAYOUT
    names = {column["name"] for column in tables.get_columns(runs.name)}
    return next((layout for layout, name in NEW_COLUMNS.items() if name in names), 1)
