"""Both stores, each with a database of its own for every test."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from sabir_session import Answer, Conversation

from tests.servers.postgres import database, postgres
from tests.session.support import Ask, Opener, opener

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


@pytest.fixture(params=["waiting", "awaited", "pulled", "streamed"])
def ask(request: pytest.FixtureRequest) -> Ask:
    """Each of the four ways to ask, to the end."""

    def pulled(chat: Conversation[Any], *content: Any, **how: Any) -> Answer[Any]:
        with chat.stream_sync(*content, **how) as stream:
            return stream.answer()

    async def streamed(chat: Conversation[Any], *content: Any, **how: Any) -> Answer[Any]:
        async with chat.stream(*content, **how) as stream:
            return await stream.answer()

    ways: dict[str, Ask] = {
        "waiting": lambda chat, *content, **how: chat.ask_sync(*content, **how),
        "awaited": lambda chat, *content, **how: asyncio.run(chat.ask(*content, **how)),
        "pulled": pulled,
        "streamed": lambda chat, *content, **how: asyncio.run(streamed(chat, *content, **how)),
    }
    return ways[request.param]


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, Any]:
    """The argument of a conversation that says where it is kept, if it is."""
    if request.param == "memory":
        return {}
    return {"keep": tmp_path / "c.db" if request.param == "sqlite" else request.getfixturevalue("database")}
