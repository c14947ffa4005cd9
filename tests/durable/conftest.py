"""Stores for the durable tests: SQLite in a folder of the test's own, and Postgres where a server can be had."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.servers.postgres import database, new_database, postgres

__all__ = ["database", "postgres"]


@pytest.fixture
def sqlite(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'runs.db'}"


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Each test that takes it runs on both."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'runs.db'}"
    else:
        yield new_database(request.getfixturevalue("postgres"))
