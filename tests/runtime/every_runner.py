"""The four runners that a policy may run under, each made for one test.

in memory · durable on SQLite · durable on Postgres · distributed over NATS
"""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest
from sabir_runtime import BaseContext, BaseRunner, InMemoryRunner
from sabir_runtime.distributed import DistributedRunner, Worker
from sabir_runtime.durable import DurableRunner

from tests.servers.postgres import new_database

MakeContext = Callable[[BaseRunner], BaseContext]


@asynccontextmanager
async def in_memory(request: pytest.FixtureRequest, context: MakeContext) -> AsyncIterator[BaseRunner]:
    """Here."""
    yield InMemoryRunner()


@asynccontextmanager
async def on_sqlite(request: pytest.FixtureRequest, context: MakeContext) -> AsyncIterator[BaseRunner]:
    """In a file."""
    folder: Path = request.getfixturevalue("tmp_path")
    async with DurableRunner(f"sqlite:///{folder}/runs.db") as runner:
        yield runner


@asynccontextmanager
async def on_postgres(request: pytest.FixtureRequest, context: MakeContext) -> AsyncIterator[BaseRunner]:
    """In a database."""
    async with DurableRunner(new_database(request.getfixturevalue("postgres"))) as runner:
        yield runner


@asynccontextmanager
async def at_a_worker(request: pytest.FixtureRequest, context: MakeContext) -> AsyncIterator[BaseRunner]:
    """At a worker, here in this process; `tests/distributed` has them in others."""
    url = request.getfixturevalue("nats")
    async with Worker(context, url), DistributedRunner(url) as runner:
        yield runner


RUNNERS: dict[str, Callable[[pytest.FixtureRequest, MakeContext], AbstractAsyncContextManager[BaseRunner]]] = {
    "memory": in_memory, "SQLite": on_sqlite, "Postgres": on_postgres, "NATS": at_a_worker,
}  # fmt: skip
