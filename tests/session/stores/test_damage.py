"""Stores in which one cell is damaged, and files that are deleted or replaced while a store has them open."""

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from sabir import SabirError
from sabir_session import (
    Conversation,
    JournalInvalid,
    RecordingFailed,
    Session,
    SQLiteStore,
    Store,
    StoreError,
    enable_inner_message_recording,
    get_latest_evaluation_id,
    unfinished_evaluations,
)
from sabir_testing.scripted import ScriptedAdapter, always, calls

from tests.session.layouts import connect, execute
from tests.session.support import ROME, Opener, opener, weather

TABLES = {
    "sabir_session_schema": ["version"],
    "sabir_journals": ["id", "name", "parent", "length"],
    "sabir_session_records": ["id", "kind", "body"],
}
ROWS = {"sabir_session_schema": 1, "sabir_journals": 2, "sabir_session_records": 9}
CELLS = st.sampled_from([(table, column) for table, columns in TABLES.items() for column in columns])
NOT_TEXT = (None, -1, 0, 1, 2, 7, 1 << 31, 1 << 40, (1 << 63) - 1, 1.5, b"", b"\xff\xfe", b"text")
TEXTS = ("", "text", "3", "{", "[]", "null", "{}", '"x"', "1e999", '{"role": "\\ud83d"}', "[" * 5000)
VALUES = st.sampled_from((*NOT_TEXT, *TEXTS))
FIELD_VALUES = st.sampled_from([None, -1, 1 << 70, 1.5, "", "x", True, [], {}, [None], {"a": 1}, "tool", "user"])


class Template(NamedTuple):
    """A store with a conversation and a fork of it: its rows, and the records of both journals."""

    rows: dict[str, list[tuple[Any, ...]]]
    records: dict[str, list[tuple[str, str]]]


def fill(store: Store) -> dict[str, list[tuple[str, str]]]:
    """Hold two conversations, with an option call; return their records."""
    model = ScriptedAdapter("Po.", calls(weather=ROME), "Rain.")
    with Conversation(model, instructions="Be brief.", options=[weather], keep=store, name="trip") as chat:
        chat.ask_sync("Name a river.")
        chat.ask_sync("Umbrella?")
    store.fork("trip", "east", 3)
    with Conversation(ScriptedAdapter("Elbe."), keep=store, name="east") as chat:
        chat.ask_sync("Go east.")
    return {name: list(store.journal(name).read()) for name in ("trip", "east")}


@pytest.fixture
def template(address: str, open_store: Opener) -> Template:
    """What the store at the address consists of."""
    with open_store() as store:
        records = fill(store)
    connection = connect(address)
    rows = {
        table: [tuple(row) for row in execute(connection, f"SELECT {', '.join(columns)} FROM {table} ORDER BY 1")]
        for table, columns in TABLES.items()
    }
    connection.close()
    assert {table: len(found) for table, found in rows.items()} == ROWS
    return Template(rows, records)


def write(address: str, rows: dict[str, list[tuple[Any, ...]]]) -> bool:
    """Replace all rows; return False if the database itself refuses one of them."""
    connection = connect(address)
    try:
        execute(connection, "BEGIN")
        for table, columns in TABLES.items():
            execute(connection, f"DELETE FROM {table}")
            overriding = "OVERRIDING SYSTEM VALUE " if address.startswith("postgresql:") else ""
            statement = f"INSERT INTO {table} ({', '.join(columns)}) {overriding}VALUES"
            for row in rows[table]:
                execute(connection, f"{statement} ({', '.join('?' * len(row))})", row)
        execute(connection, "COMMIT")
    except Exception:  # of the driver: the type, the size or the encoding of the value
        return False
    finally:
        connection.close()
    return True


def damaged(template: Template, table: str, column: str, row: int, value: object) -> dict[str, list[tuple[Any, ...]]]:
    """The rows with one other cell."""
    rows = list(template.rows[table])
    at = TABLES[table].index(column)
    rows[row] = (*rows[row][:at], value, *rows[row][at + 1 :])
    return {**template.rows, table: rows}


def uses(store: Store, name: str) -> Iterator[Callable[[], object]]:
    """What programs do with a journal."""

    def evaluate() -> None:
        session = Session(journal=store.journal(name))
        enable_inner_message_recording(session)
        get_latest_evaluation_id(session)
        unfinished_evaluations(session)
        session.snapshot()

    def converse() -> None:
        with Conversation(ScriptedAdapter(always("Oder.")), options=[weather], keep=store, name=name) as chat:
            assert chat.messages is not None
            chat.ask_sync("And then?")
            chat.drop_last()
            chat.fork(f"{name} 2").close()
            chat.drop_last()

    yield store.names
    yield lambda: store.length(name)
    yield evaluate
    yield converse
    yield lambda: store.fork(name, f"{name} 3", 2)
    yield lambda: store.rewind(name, 1, store.length(name) or 0)
    yield lambda: store.delete(name)


def check(address: str, template: Template) -> None:
    """Read and use both journals: the records are right but for the damaged cell, or there is an error of ours."""
    with suppress(StoreError), opener(address)() as store:
        for name, expected in template.records.items():
            with suppress(StoreError):
                records = list(store.journal(name).read())
                assert len(records) <= len(expected)
                assert sum(one != other for pair in zip(records, expected) for one, other in zip(*pair)) <= 1  # noqa: B905
        for name in template.records:
            for use in uses(store, name):
                with suppress(SabirError):
                    use()


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(cell=CELLS, row=st.integers(0, 8), value=VALUES)
def test_one_damaged_cell_is_an_error_of_ours_and_never_another_record(
    address: str, template: Template, cell: tuple[str, str], row: int, value: object
) -> None:
    """Of any column and any type that the database accepts there; for an id of NULL, SQLite makes up another one."""
    table, column = cell
    assume((column, value) != ("id", None))
    if write(address, damaged(template, table, column, row % ROWS[table], value)):
        check(address, template)


def paths(value: object, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths of all values in a JSON document."""
    yield path
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value if isinstance(value, list) else []):
        yield from paths(inner, (*path, key))


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(row=st.integers(0, 8), path=st.randoms(use_true_random=False), value=FIELD_VALUES)
def test_one_damaged_field_of_a_record_is_an_error_of_ours(
    address: str, template: Template, row: int, path: Any, value: object
) -> None:
    document = json.loads(template.rows["sabir_session_records"][row][2])
    *way, key = path.choice([each for each in paths(document) if each])
    inner = document
    for step in way:
        inner = inner[step]
    inner[key] = value
    body = json.dumps(document)
    if write(address, damaged(template, "sabir_session_records", "body", row, body)):
        check(address, template)


@pytest.mark.parametrize("parents", [(2, 1), (None, 2)], ids=["of two", "of one"])
def test_journals_that_are_their_own_parents_are_damaged(
    address: str, open_store: Opener, template: Template, parents: tuple[int | None, int]
) -> None:
    """Reading and deleting end, with an error that says what to do."""
    journals = zip(template.rows["sabir_journals"], parents, strict=True)
    rows = [(number, name, parent, 3) for (number, name, _, _), parent in journals]
    assert write(address, {**template.rows, "sabir_journals": rows})
    with open_store() as store:
        for use in (lambda: list(store.journal("east").read()), lambda: store.fork("east", "x", 1)):
            with pytest.raises(JournalInvalid, match="restore the store from a backup"):
                use()


def remove(path: Path) -> None:
    for file in path.parent.glob("chats.db*"):
        shutil.rmtree(file) if file.is_dir() else file.unlink()


def replace(path: Path) -> None:
    shutil.copy(path, path.with_name("copy"))
    path.with_name("copy").replace(path)


def remove_folder(path: Path) -> None:
    shutil.rmtree(path.parent)


def make_anew(path: Path) -> None:
    remove(path)
    SQLiteStore(path).close()


@pytest.mark.parametrize("lose", [Path.unlink, remove, replace, remove_folder, make_anew])
def test_what_is_written_to_a_lost_file_is_an_error(tmp_path: Path, lose: Callable[[Path], None]) -> None:
    """No question is answered and no record accepted that would be gone with the process."""
    path = tmp_path / "folder" / "chats.db"
    path.parent.mkdir()
    model = ScriptedAdapter("Po.", always("Oder."))
    chat = Conversation(model, keep=path)
    chat.ask_sync("Name a river.")
    store = SQLiteStore(path)
    journal = store.journal("conversation")
    lose(path)

    for write in (
        lambda: journal.append("k", "x"),
        lambda: store.journal("new"),
        lambda: store.fork("conversation", "x"),
    ):
        with pytest.raises(StoreError, match=r"was deleted or replaced while it was open.*open the store again"):
            write()
    with pytest.raises(RecordingFailed, match="was deleted or replaced while it was open"):
        chat.ask_sync("Another.")
    assert len(model.sent) == 1
    chat.close()
    store.close()


def test_a_file_that_is_lost_while_a_record_is_written_fails_that_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file is looked at after the write too."""
    with SQLiteStore(tmp_path / "chats.db") as store:
        journal = store.journal("a")
        write = journal._run_statement

        def losing(statement: str, values: Any = ()) -> Any:
            (tmp_path / "chats.db").unlink()
            return write(statement, values)

        monkeypatch.setattr(journal, "_run_statement", losing)
        with pytest.raises(StoreError, match="was deleted or replaced while it was open"):
            journal.append("k", "x")
        assert len(journal) == 0
