"""Where a conversation is stored and under which name: every value that cannot be right is a StoreError."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from sabir_session import Conversation, PostgresStore, SQLiteStore, Store, StoreError

from tests.session.support import Opener


class OddPath:
    """A path of bytes."""

    def __fspath__(self) -> bytes:
        return b"chats.db"


PLACES: list[Any] = [
    *("", " ", b"chats.db", 7, 1.5, True, [], {}, ..., OddPath(), SQLiteStore),
    *("a\0b.db", "\ud800.db", "sqlite:///a\0b", "x" * 300, "x/" * 3000 + "a", Path("."), ".", "/", "/dev/null"),
    *("no/such/folder.db", "text/a.db", "text", "loop", "loop/a.db", "/proc/a.db"),
    *("mysql://a/b", "MYSQL://a/b", "http://x/y", "https:x", "file:x", "sqlite:x.db", "sqlite://x.db", "sqlite:///"),
    *("postgresql:", "postgres:x", "postgresql+psycopg://h/d", "postgresql://\ud800@h/d", "postgresql://a\0b/c"),
    *("postgresql://h:99999999/d", "postgresql://h/d?connect_timeout=abc", "POSTGRESQL://h/d", "SQLITE:///x.db"),
]
NAMES: list[Any] = ["", None, 7, b"x", True, [], ..., "a\0b", "\ud800", "x" * 4001, "\N{GRINNING FACE}" * 1001]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with a text file and a link to itself; nothing else may be created in it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text").write_text("These are notes. " * 300, "utf-8")
    (tmp_path / "loop").symlink_to("loop")
    return tmp_path


@pytest.mark.parametrize("keep", PLACES, ids=lambda keep: repr(keep)[:30])
def test_an_invalid_place_is_refused_and_creates_nothing(folder: Path, keep: Any) -> None:
    with pytest.raises(StoreError, match=";"):
        Conversation("echo:m", keep=keep)

    assert sorted(path.name for path in folder.iterdir()) == ["loop", "text"]


@pytest.mark.parametrize("kind", [SQLiteStore, PostgresStore])
@pytest.mark.parametrize("address", [None, 7, b"x", ..., "", "a\0b"], ids=repr)
def test_a_store_refuses_what_is_no_address(kind: Any, address: Any) -> None:
    with pytest.raises(StoreError):
        kind(address)


@pytest.mark.parametrize(
    "options",
    [{"durability": []}, {"durability": "x"}, *({"timeout": each} for each in ("x", None, -1, float("nan"), 1e20))],
)
def test_a_store_refuses_options_that_sqlite_does_not_take(options: Any) -> None:
    with pytest.raises(StoreError, match="expected"):
        SQLiteStore("a.db", **options)


@pytest.mark.parametrize("name", NAMES, ids=lambda name: repr(name)[:30])
def test_an_invalid_name_is_refused_in_memory_and_in_a_file(folder: Path, name: Any) -> None:
    """A name that one place refuses is refused by all, so that a conversation can move."""
    for place in ({}, {"keep": "chats.db"}):
        with pytest.raises(StoreError, match="expected a text of at least one character"):
            Conversation("echo:m", name=name, **place)
    with Conversation("echo:m") as chat, pytest.raises(StoreError, match="expected a text"):
        chat.fork(name)

    async def opened() -> None:
        async with Conversation("echo:m", keep="chats.db", name=name):
            raise AssertionError("it was opened")

    with pytest.raises(StoreError, match="expected a text"):
        asyncio.run(opened())
    assert not (folder / "chats.db").exists()


def test_every_method_of_a_store_refuses_an_invalid_name(open_store: Opener) -> None:
    def uses(store: Store, name: Any) -> list[Any]:
        return [
            lambda: store.journal(name),
            lambda: store.length(name),
            lambda: store.fork(name, "a"),
            lambda: store.fork("a", name),
            lambda: store.rewind(name, 0, 0),
            lambda: store.delete(name),
            lambda: store.claim(name),
        ]

    with open_store() as store:
        store.journal("a")
        for use in [use for name in NAMES for use in uses(store, name)]:
            with pytest.raises(StoreError, match="expected a text of at least one character"):
                use()


def test_any_other_name_is_a_name(address: str) -> None:
    for name in ("x" * 4000, "\N{GRINNING FACE}" * 250, "a\nb", "..", "/", "'\"%s ?", " "):
        with Conversation("echo:m", keep=address, name=name) as chat:
            chat.ask_sync("Hi")
        with Conversation("echo:m", keep=address, name=name) as chat:
            assert (chat.name, len(chat.messages)) == (name, 2)
