"""Only runs of dead workers go back to the queue: the process that can take a worker's lock knows that it is dead.

workers that were not seen lately ─▶ is its lock free? ─ no ─▶ it lives: nothing is done
                                            └ yes ─▶ for each of its runs: fence off, requeue ─▶ forget the worker

A worker that is closed releases its runs first, so it did not die while it held them.
"""

import logging

from sqlalchemy import URL

from sabir_durable.leases import Lease, make_lease
from sabir_durable.ledger import MOST_DEATHS
from sabir_durable.runs import Runs
from sabir_durable.stores import is_sqlite, parse_store
from sabir_durable.tables import Run
from sabir_durable.workers import WorkerList

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
