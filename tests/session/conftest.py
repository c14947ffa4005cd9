"""Both stores, each with a database of its own for every test."""

from pathlib import Path

import pytest

from tests.servers.postgres import database, postgres
from tests.session.support import Opener, opener

__all__ = ["address", "database", "open_store", "postgres"]


@pytest.fixture(params=["sqlite", "postgres"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where a store's database is: a path, or a URL."""
    if request.param == "sqlite":
        return str(tmp_path / "chats.db")
    url: str = request.getfixturevalue("database")
    return url


@pytest.fixture
def open_store(address: str) -> Opener:
    """Opens the store once more, as another process would."""
    return opener(address)
