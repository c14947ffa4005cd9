"""The rows of journals: the statements of every engine, and the checks of each row. Damaged rows raise JournalInvalid.

    name ──▶ Located(number, length) ──▶ Past(parent, length, name) ──▶ … ──▶ Stretch(journal, first, end) ──▶ records

Law: a parent is older than its forks, and no journal ends before its own records begin. A row that breaks this, or is
of another type, was not written by a store.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from threading import RLock
from typing import Any, NamedTuple, Protocol

from sabir.authoring import DatabaseFailure, one_line

from sabir_session import errors

POSITIONS = 1 << 32
"""Positions of one journal; journal n's records have keys from n · POSITIONS."""
JOURNALS = 1 << 31
"""Journals of one store: their records' keys must fit into 64 bits."""

_TO_RECORDS = "INSERT INTO sabir_session_records (id, kind, body)"
APPEND = f"{_TO_RECORDS} SELECT ?, ?, ? FROM sabir_journals WHERE id = ? AND name IS NOT NULL"
RECORDS = "SELECT id, kind, body FROM sabir_session_records WHERE id >= ? AND id < ? ORDER BY id"
FIND = (
    "SELECT id, length, (SELECT max(id) FROM sabir_session_records"
    " WHERE id >= journal.id * 4294967296 AND id < (journal.id + 1) * 4294967296)"
    " FROM sabir_journals AS journal WHERE name = ?"
)
"""One statement for the number of a journal, its length and its last record: no other writer comes in between."""
PAST = "SELECT parent, length, name FROM sabir_journals WHERE id = ?"

Row = tuple[Any, ...]


class Executed(Protocol):
    """An engine's result of a statement."""

    @property
    def rowcount(self) -> int:
        """The number of changed rows."""

    def fetchall(self) -> list[Row]:
        """Return all rows of the result."""


class Located(NamedTuple):
    """The number of a journal, and the number of its records."""

    number: int
    length: int


class Past(NamedTuple):
    """The row of a journal: its parent, the number of records shared with it, and the name (None if deleted)."""

    parent: int | None
    length: int
    name: str | None


class Stretch(NamedTuple):
    """Consecutive records of one journal: positions from `first`, `end` exclusive."""

    journal: int
    first: int
    end: int


class Database(ABC):
    """A database with the tables of a store: statements, transactions, and the records of a journal."""

    _described: str
    """The database's name in errors: its path, or its address without a password."""
    _failures: type[Exception]
    _taken: type[Exception]
    """The engine's error for a key that already exists."""
    _append = APPEND

    def __init__(self) -> None:
        self._lock = RLock()

    @abstractmethod
    def _execute(self, statement: str, values: Row = ()) -> Executed:
        """Execute a statement."""

    def _rows(self, statement: str, values: Row = ()) -> list[Row]:
        return self._execute(statement, values).fetchall()

    @abstractmethod
    def _transaction(self) -> AbstractContextManager[object]:
        """A transaction: all or nothing, without others' writes between its reads and its writes."""

    def _snapshot(self) -> AbstractContextManager[object]:
        """A transaction that only reads: all its statements see the database as it is at the first of them."""
        return self._transaction()

    def _check_place(self) -> None:  # noqa: B027 - only files can be lost
        """Raise StoreLost if what is written here would be lost; a server needs no check."""

    def _locate(self, name: str) -> Located | None:
        rows = self._rows(FIND, (name,))
        if not rows:
            return None
        number, length, last = rows[0]
        journal = self._number(number, f"the journal {name!r}", least=1, limit=JOURNALS)
        past = self._number(length, f"the journal {name!r}")
        end = past if last is None else last - journal * POSITIONS + 1
        if end < past:
            raise self._damaged(
                f"the journal {name!r} shares {past} records with another journal, but has only {end} records"
            )
        return Located(journal, end)

    def _past(self, journal: int) -> Past:
        """Read a journal's row; raise JournalInvalid if it is missing or cannot be right.

        A parent is older than its forks, so its number is smaller: a chain of parents ends.
        """
        rows = self._rows(PAST, (journal,))
        if not rows:
            raise self._damaged(f"the journal number {journal} is missing, whose records another journal shares")
        parent, length, name = rows[0]
        journal_text = f"the journal number {journal}"
        if parent is not None:
            parent = self._number(parent, f"{journal_text} as its parent", least=1, limit=journal)
        length = self._number(length, journal_text)
        if parent is None and length:
            raise self._damaged(f"{journal_text} shares {length} records with another journal, which it does not name")
        return Past(parent, length, name)

    def _number(self, value: object, owner: str, *, least: int = 0, limit: int = POSITIONS) -> int:
        """Return a number from a row; raise JournalInvalid if it is not a whole number from `least` to `limit`."""
        if type(value) is not int or not least <= value < limit:
            raise self._damaged(f"{owner} has the invalid number {one_line(repr(value), 60)}")
        return value

    def _stretches(self, journal: int, end: int) -> list[Stretch]:
        """Return the stretches with the first `end` records of a journal, in order."""
        stretches: list[Stretch] = []
        following: int | None = journal
        while following is not None and end > 0:
            past = self._past(following)
            if end > past.length:
                stretches.append(Stretch(following, past.length, end))
            following, end = past.parent, min(end, past.length)
        return stretches[::-1]

    def _records(self, journal: int, first: int, end: int) -> list[tuple[str, str]]:
        """Read the records of a journal from position `first` to `end`, exclusive; call it within a snapshot.

        Raises JournalInvalid if a record is missing or is not text.
        """
        records: list[tuple[str, str]] = []
        for stretch in self._stretches(journal, end):
            start = stretch.journal * POSITIONS
            key, last = (start + max(each, first) for each in (stretch.first, stretch.end))
            rows = self._rows(RECORDS, (key, last)) if key < last else []
            for number, kind, body in rows:
                if number != key:
                    break
                if not isinstance(kind, str) or not isinstance(body, str):
                    raise self._damaged(f"record {key - start} of journal number {stretch.journal} is not text")
                records.append((kind, body))
                key += 1
            if key < last:
                raise self._damaged(f"record {key - start} of journal number {stretch.journal} is missing")
        return records

    @contextmanager
    def _working(self, task: str) -> Iterator[None]:
        """Convert the driver's errors in the `with` block to StoreErrors that name the task."""
        with self._lock:
            self._check_place()
            try:
                yield
            except self._failures as error:
                raise errors.StoreError(f"{self._described} could not {task}: {DatabaseFailure(error)}") from error

    def _damaged(self, fault: str) -> errors.JournalInvalid:
        """Return the error for a row that no version writes."""
        return errors.JournalInvalid(f"{self._described}: {fault}; {DatabaseFailure.DAMAGE}")
