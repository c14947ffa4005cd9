"""The workers of a store, and when each was last seen. A worker's lock shows whether it lives (`leases`)."""

from contextlib import suppress

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from sabir_durable.tables import workers

_SECONDS = {
    "sqlite": "(julianday('now') - 2440587.5) * 86400.0",
    "postgresql": "CAST(extract(epoch FROM clock_timestamp()) AS double precision)",
}
"""Seconds since 1970, by the clock of the store."""


class WorkerList:
    """The workers of a store."""

    def __init__(self, engine: sa.Engine) -> None:
        self._engine = engine
        # The store's clock, so that the clocks of the workers' machines need not agree.
        self._now: sa.ColumnElement[float] = sa.literal_column(_SECONDS[engine.dialect.name], sa.Float())

    def add(self, worker: str, application: str, version: str, host: str, process: int) -> None:
        """Record a worker, which already has its lock."""
        row = {"worker": worker, "application": application, "version": version, "host": host, "process": process}
        with self._engine.begin() as connection, suppress(IntegrityError):
            connection.execute(sa.insert(workers).values(**row, started_at=self._now, seen_at=self._now))

    def seen(self, worker: str) -> bool:
        """Record that a worker has its lock now; False if another worker took it for dead since."""
        with self._engine.begin() as connection:
            changed = connection.execute(sa.update(workers).where(workers.c.worker == worker).values(seen_at=self._now))
            return bool(changed.rowcount)

    def remove(self, worker: str) -> None:
        """Forget a worker, which holds no run from then on."""
        with self._engine.begin() as connection:
            connection.execute(sa.delete(workers).where(workers.c.worker == worker))

    def unseen(self, seconds: float) -> list[str]:
        """The workers that were not seen for that many seconds."""
        with self._engine.connect() as connection:
            age = self._now - workers.c.seen_at
            return list(connection.execute(sa.select(workers.c.worker).where(age >= sa.literal(seconds))).scalars())

    def live(self, seconds: float) -> frozenset[tuple[str, str | None]]:
        """The applications and versions of the workers that were seen within that many seconds."""
        with self._engine.connect() as connection:
            age = self._now - workers.c.seen_at
            found = connection.execute(
                sa.select(workers.c.application, workers.c.version).where(age < sa.literal(seconds))
            )
            return frozenset((application, version) for application, version in found)
