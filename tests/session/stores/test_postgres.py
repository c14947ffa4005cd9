"""The store in Postgres: the extra that it needs, what it shows, and connections that break."""

import subprocess
import sys
import traceback
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from sabir_session import PostgresStore, RecordingFailed, StoreError

LOADED = "import sys, sabir_session; print(*sorted({'psycopg', 'sqlalchemy'} & set(sys.modules)))"


def execute(url: str, statement: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(statement)  # type: ignore[call-overload]


def test_the_driver_is_loaded_by_the_store_alone() -> None:
    """CD-02: who keeps conversations in SQLite needs nothing but core."""
    assert subprocess.check_output([sys.executable, "-I", "-c", LOADED], text=True).strip() == ""


def test_a_missing_driver_is_named_with_the_extra_that_brings_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """UP-30: an error says what to install."""
    monkeypatch.setitem(sys.modules, "psycopg", None)

    with pytest.raises(StoreError, match=r"install sabir-session\[postgres\]"):
        PostgresStore("postgresql://localhost/chats")


UNREADABLE = r"the address cannot be read; expected postgresql://.*write / as %2F"
NO_URL = "expected postgresql://user@host:port/database; "


@pytest.mark.parametrize(
    ("address", "told"),
    [
        ("postgresql://ada:s3krt@127.0.0.1:1/chats?connect_timeout=2", "could not be reached"),
        ("ada:s3krt@127.0.0.1/chats", NO_URL),
        ("mysql://ada:s3krt@localhost/chats", f"{NO_URL}pass a URL of this form"),
        ("sqlite:///chats.db", rf"{NO_URL}use SQLiteStore\(path\) for a file"),
        ("chats.db", rf"{NO_URL}use SQLiteStore\(path\) for a file"),
        ("postgresql://ada:s3krt@[::1/chats", UNREADABLE),
        ("postgresql://ada:s3krt@localhost:port/chats", UNREADABLE),
        ("postgresql://ada:s3%zzkrt@localhost/chats", UNREADABLE),
        ("postgresql://ada:s3/krt@localhost/chats", UNREADABLE),
        ("postgresql://ada:s3@krt@localhost/chats", UNREADABLE),
        ("postgresql://ada@localhost/chats?s3krt", UNREADABLE),
        *(
            (
                f"postgresql://ada:{written}@127.0.0.1:1/chats?sslmode={written}",
                r'invalid sslmode value: "\*\*\*"; check',
            )
            for written in ("s3krt", "s3%20krt")
        ),
    ],
)
def test_an_address_that_cannot_be_opened_is_an_error_without_the_password(address: str, told: str) -> None:
    """A password may stand anywhere in it; it is in no error, nor in what the error was raised from."""
    with pytest.raises(StoreError, match=told) as caught:
        PostgresStore(address)

    assert not [part for part in ("s3", "krt") if part in "".join(traceback.format_exception(caught.value))]


def test_a_store_shows_its_database_and_neither_user_nor_password(database: str) -> None:
    """UP-30: errors and reprs end in logs."""
    with PostgresStore(database) as store:
        assert (
            repr(store) == f"PostgresStore(the Postgres database {database.rpartition('/')[2]!r} at {server(database)})"
        )


def server(url: str) -> str:
    return url.rpartition("/")[0].rpartition("@")[2]


def test_stores_that_open_an_empty_database_at_once_all_find_it_made(database: str) -> None:
    with ThreadPoolExecutor(8) as pool:
        for store in pool.map(lambda _: PostgresStore(database), range(8)):
            store.journal("a")
            store.close()


def test_a_connection_that_broke_fails_one_append_and_is_made_again(database: str) -> None:
    """UP-30: the failure is told, nothing is written twice, and the next append goes through."""
    with PostgresStore(database) as store:
        journal = store.journal("a")
        journal.append("k", "0")
        others = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
        execute(database, f"{others} AND datname = current_database()")
        with pytest.raises(RecordingFailed, match="could not store record 1 of the journal 'a'"):
            journal.append("k", "1")
        journal.append("k", "1")

        assert [body for _, body in journal.read()] == ["0", "1"]
