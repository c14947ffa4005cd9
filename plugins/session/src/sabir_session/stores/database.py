"""The rows of journals: the statements of every engine, and the checks of each row. Damaged rows raise JournalInvalid.

    name ──▶ JournalLocation(number, length) ──▶ JournalRow(parent, length, name) of each ancestor
                                                     └▶ RecordRange(journal, first, end) of each ──▶ records

Law: a parent is older than its forks, and no journal ends before its own records begin. A row that breaks this law, or
has values of another type, was not written by a store.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from threading import RLock
from typing import Any, NamedTuple, Protocol

from sabir.authoring import DatabaseFailure, one_line

from sabir_session import errors

POSITIONS = 1 << 32
"""The largest number of records in one journal. The keys of the records of journal n begin at n · POSITIONS."""
JOURNALS = 1 << 31
"""The numbers of journals are below this number, so that the keys of their records fit into 64 bits."""

_TO_RECORDS = "INSERT INTO sabir_session_records (id, kind, body)"
INSERT_RECORD = f"{_TO_RECORDS} SELECT ?, ?, ? FROM sabir_journals WHERE id = ? AND name IS NOT NULL"
SELECT_RECORDS = "SELECT id, kind, body FROM sabir_session_records WHERE id >= ? AND id < ? ORDER BY id"
FIND_JOURNAL = (
    "SELECT id, length, (SELECT max(id) FROM sabir_session_records"
    " WHERE id >= journal.id * 4294967296 AND id < (journal.id + 1) * 4294967296)"
    " FROM sabir_journals AS journal WHERE name = ?"
)
"""Read the number of a journal, how many records it shares with its parent, and the key of its last own record. It is
one statement, so that no other writer can change the journal between the reads."""
READ_ROW = "SELECT parent, length, name FROM sabir_journals WHERE id = ?"

Row = tuple[Any, ...]


class StatementResult(Protocol):
    """An engine's result of a statement."""

    @property
    def rowcount(self) -> int:
        """The number of changed rows."""

    def fetchall(self) -> list[Row]:
        """Return all rows of the result."""


class JournalLocation(NamedTuple):
    """The id of a journal in the database (`number`), and how many records it has (`length`)."""

    number: int
    length: int


class JournalRow(NamedTuple):
    """The row of a journal: the id of its parent, or None; how many records both share; the name, None if deleted."""

    parent: int | None
    length: int
    name: str | None


class RecordRange(NamedTuple):
    """Consecutive records in the rows of one journal: from position `first` to `end`, exclusive."""

    journal: int
    first: int
    end: int


class Database(ABC):
    """A database with the tables of a store: statements, transactions, and the records of a journal."""

    _description: str
    """The database's name in errors: its path, or its address without a password."""
    _failures: type[Exception]
    _duplicate_key_error: type[Exception]
    """The engine's error for a key that already exists."""
    _insert_record = INSERT_RECORD

    def __init__(self) -> None:
        self._lock = RLock()

    @abstractmethod
    def _run_statement(self, statement: str, values: Row = ()) -> StatementResult:
        """Execute a statement."""

    def _query(self, statement: str, values: Row = ()) -> list[Row]:
        return self._run_statement(statement, values).fetchall()

    @abstractmethod
    def _transaction(self) -> AbstractContextManager[object]:
        """Return a context manager for a transaction: all writes of the `with` block are made, or none.

        No other writer can write between the reads and the writes of the block.
        """

    def _snapshot(self) -> AbstractContextManager[object]:
        """Return a context manager for reading: all statements of the `with` block see the database at one moment.

        By default an ordinary transaction. Engines may return one that does not keep other writers waiting.
        """
        return self._transaction()

    def _check_file(self) -> None:  # noqa: B027 - only files can be lost
        """Raise StoreLost if the database file was deleted or replaced. By default do nothing, as for a server."""

    def _locate(self, name: str) -> JournalLocation | None:
        rows = self._query(FIND_JOURNAL, (name,))
        if not rows:
            return None
        number, length, last = rows[0]
        journal = self._check_number(number, f"the journal {name!r}", least=1, limit=JOURNALS)
        past = self._check_number(length, f"the journal {name!r}")
        end = past if last is None else last - journal * POSITIONS + 1
        if end < past:
            raise self._damage_error(
                f"the journal {name!r} shares {past} records with another journal, but has only {end} records"
            )
        return JournalLocation(journal, end)

    def _read_row(self, journal: int) -> JournalRow:
        """Read the row of a journal. Raises JournalInvalid if the row is missing or has invalid values.

        A parent is older than its forks, so the number of the parent must be smaller. Every chain of parents ends.
        """
        rows = self._query(READ_ROW, (journal,))
        if not rows:
            raise self._damage_error(f"the journal number {journal} is missing, whose records another journal shares")
        parent, length, name = rows[0]
        journal_text = f"the journal number {journal}"
        if parent is not None:
            parent = self._check_number(parent, f"the parent of {journal_text}", least=1, limit=journal)
        length = self._check_number(length, journal_text)
        if parent is None and length:
            shared = f"{length} records with another journal, which it does not name"
            raise self._damage_error(f"{journal_text} shares {shared}")
        return JournalRow(parent, length, name)

    def _check_number(self, value: object, owner: str, *, least: int = 0, limit: int = POSITIONS) -> int:
        """Return a number from a row. Raises JournalInvalid unless it is an int of at least `least` and below `limit`.

        `owner` names the journal in the error.
        """
        if type(value) is not int or not least <= value < limit:
            raise self._damage_error(f"{owner} has the invalid number {one_line(repr(value), 60)}")
        return value

    def _record_ranges(self, journal: int, end: int) -> list[RecordRange]:
        """Return the ranges with the first `end` records of a journal, in order."""
        ranges: list[RecordRange] = []
        following: int | None = journal
        while following is not None and end > 0:
            row = self._read_row(following)
            if end > row.length:
                ranges.append(RecordRange(following, row.length, end))
            following, end = row.parent, min(end, row.length)
        return ranges[::-1]

    def _read_records(self, journal: int, first: int, end: int) -> list[tuple[str, str]]:
        """Read the records of a journal from position `first` to `end`, exclusive, each as (kind, body).

        Call it inside of `_snapshot`. Raises JournalInvalid if a record is missing or is not text.
        """
        records: list[tuple[str, str]] = []
        for stretch in self._record_ranges(journal, end):
            start = stretch.journal * POSITIONS
            key, last = (start + max(each, first) for each in (stretch.first, stretch.end))
            rows = self._query(SELECT_RECORDS, (key, last)) if key < last else []
            for number, kind, body in rows:
                if number != key:
                    break
                if not isinstance(kind, str) or not isinstance(body, str):
                    raise self._damage_error(f"record {key - start} of journal number {stretch.journal} is not text")
                records.append((kind, body))
                key += 1
            if key < last:
                raise self._damage_error(f"record {key - start} of journal number {stretch.journal} is missing")
        return records

    @contextmanager
    def _converting_errors(self, task: str) -> Iterator[None]:
        """Convert the database driver's errors in the `with` block to StoreErrors that name the task.

        The block runs under the store's lock. Raises StoreLost if the database file was deleted or replaced.
        """
        with self._lock:
            self._check_file()
            try:
                yield
            except self._failures as error:
                raise errors.StoreError(f"{self._description} could not {task}: {DatabaseFailure(error)}") from error

    def _damage_error(self, fault: str) -> errors.JournalInvalid:
        """Return the error for a row that no version of this library writes. `fault` describes the row."""
        return errors.JournalInvalid(f"{self._description}: {fault}; {DatabaseFailure.DAMAGE}")
