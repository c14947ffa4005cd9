"""Copies of frozen stores, one for each test: a file of its own, or a database of its own on a server of the tests."""

import asyncio
import functools
import gzip
import shutil
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.frozen import readable
from tests.servers.postgres import new_database, postgres

__all__ = ["postgres"]

FOLDERS = sorted(path for path in Path(__file__).parent.iterdir() if (path / "expected").is_dir())
"""The folders of frozen data, one for each version that wrote some."""
SECONDS = 120
"""How long a test may wait for a worker or a thread, which never ends where frozen data cannot be continued."""


def bounded(test: Callable[..., Awaitable[None]]) -> Callable[..., Awaitable[None]]:
    """Let a test fail instead of waiting for good."""

    @functools.wraps(test)
    async def ends(*arguments: Any, **named: Any) -> None:
        async with asyncio.timeout(SECONDS):
            await test(*arguments, **named)

    return ends


@dataclass(frozen=True)
class Frozen:
    """Frozen data as one version wrote it, with its stores in one kind of database."""

    folder: Path
    kind: str
    address: Callable[[str], str]
    """Name of a session store → a path or URL of a copy, the same copy each time."""

    def url(self, name: str) -> str:
        """The URL of a copy of a durable store."""
        address = self.address(name)
        return address if self.kind == "postgres" else f"sqlite:///{address}"

    def expected(self, name: str) -> Any:
        return readable.read_json(self.folder / "expected" / self.kind / f"{name}.json.gz")


@pytest.fixture(params=FOLDERS, ids=lambda path: path.name)
def folder(request: pytest.FixtureRequest) -> Path:
    """A folder of frozen data."""
    path: Path = request.param
    return path


@pytest.fixture(params=["sqlite", "postgres"])
def frozen(request: pytest.FixtureRequest, folder: Path, tmp_path: Path) -> Frozen:
    """Copies of a folder's stores."""
    copies: dict[str, str] = {}

    def address(name: str) -> str:
        if name not in copies:
            copies[name] = copy(name)
        return copies[name]

    def copy_file(name: str) -> str:
        path = tmp_path / f"{name}.db"
        with gzip.open(folder / "sqlite" / f"{name}.db.gz") as packed, path.open("wb") as file:
            shutil.copyfileobj(packed, file)
        return str(path)

    def copy_database(name: str) -> str:
        database = new_database(request.getfixturevalue("postgres"))
        statements = gzip.decompress((folder / "postgres" / f"{name}.sql.gz").read_bytes())
        with psycopg.connect(database, autocommit=True) as connection:
            connection.execute(statements)
        return database

    copy = copy_file if request.param == "sqlite" else copy_database
    return Frozen(folder, request.param, address)
