"""What tests of threads share: a store of their own, and systems that look at it many times a second."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from sabir_session import SQLiteStore


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SQLiteStore]:
    """A store."""
    with SQLiteStore(tmp_path / "threads.db") as opened:
        yield opened


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look at what others said many times a second."""
    monkeypatch.setattr("sabir_actors.running.LOOK", 0.01)
    monkeypatch.setattr("sabir_actors.running.LOST", 0.05)
    monkeypatch.setattr("sabir_actors.running.SWEEP", 1)
