"""What tests of threads share: a store of their own, and systems that look at it many times a second."""

from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from sabir_session import SQLiteStore

from tests.actors.support import Processes


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SQLiteStore]:
    with SQLiteStore(tmp_path / "threads.db") as opened:
        yield opened


@pytest.fixture
def other(store: SQLiteStore, tmp_path: Path) -> Iterator[SQLiteStore]:
    with SQLiteStore(tmp_path / "threads.db") as opened:
        yield opened


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sabir_actors.thread_runs.LOOK", 0.01)
    monkeypatch.setattr("sabir_actors.thread_runs.SWEEP", 1)


@pytest.fixture
async def processes(store: SQLiteStore) -> AsyncIterator[Processes]:
    async with AsyncExitStack() as stack:
        yield Processes(store, stack)
