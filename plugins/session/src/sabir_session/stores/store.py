"""Named journals in a database: opened, forked, listed, deleted. One logic for every database that speaks SQL.

    store.journal("a")        a: 0 1 2 3 4 …
    store.fork("a", "b", 3)   b:       └ 3 4 …     one row: a's first three are b's past

An engine (SQLite, Postgres) runs statements; their meaning is defined here.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from threading import RLock
from typing import Any, NamedTuple, Protocol

from sabir.authoring import DatabaseFailure, SyncClosing, one_line

from sabir_session.errors import (
    JournalExists,
    JournalInvalid,
    JournalMissing,
    PositionTaken,
    RecordingFailed,
    StoreError,
    StoreTooNew,
)
from sabir_session.stores import layout
from sabir_session.stores.layout import POSITIONS

BATCH = 64
"""Records that are read at once."""

Row = tuple[Any, ...]

_SCHEME = re.compile(r"([a-z][a-z0-9+.-]*)://")


def scheme_of(address: str) -> str:
    """The scheme of a URL; "" for a text that is not a URL. Errors do not show the rest: it may hold a password."""
    found = _SCHEME.match(address)
    return found[1] if found else ""


class Executed(Protocol):
    """An engine's result of a statement."""

    @property
    def rowcount(self) -> int:
        """How many rows it changed."""

    def fetchall(self) -> list[Row]:
        """The rows that it gives."""


class Stretch(NamedTuple):
    """Consecutive records of one journal: positions from `first`, `end` exclusive."""

    journal: int
    first: int
    end: int


class Store(SyncClosing, ABC):
    """Named journals in one database; a context manager, usable from any thread.

    Its methods raise StoreError if the database fails.
    """

    _described: str
    """The database's name in errors: its path, or its address without a password."""
    _failures: type[Exception]
    _taken: type[Exception]
    """The engine's error for a key that already exists."""
    _append = layout.APPEND
    _find_tables: str
    """The statement that returns a row if the tables exist."""
    _tables: tuple[str, ...]

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

    def journal(self, name: str) -> "StoredJournal":
        """Open the journal of that name; it is made if it does not exist.

        It holds its present records. If another writer appends to it from now on, its next append fails: two writers
        never interleave.
        """
        if not name:
            raise StoreError("a journal has a name of at least one character; give one")
        with self._working(f"open the journal {name!r}"):
            found = self._rows(layout.FIND, (name,))
            if not found:
                self._execute(layout.MAKE, (name,))
                found = self._rows(layout.FIND, (name,))
            identity: int = found[0][0]
            return StoredJournal(self, name, identity, self._length(identity))

    def fork(self, name: str, other: str, at: int | None = None) -> None:
        """Make a journal that begins with the first `at` records of another one; with all its records by default.

        One row is written, however many records there are; neither journal sees later appends to the other. Raises
        JournalMissing, JournalExists, and StoreError for an `at` that is not between 0 and the journal's length.
        """
        if not other:
            raise StoreError("a journal has a name of at least one character; give one")
        with self._working(f"fork the journal {name!r}"), self._transaction():
            identity = self._found(name)
            length = self._length(identity)
            at = length if at is None else at
            if not 0 <= at <= length:
                raise StoreError(f"the journal {name!r} has {length} records; it cannot be forked at {at}")
            parent: int | None = None
            if at:  # the parent is the journal that holds the last of these records, so chains stay short
                parent = self._stretches(identity, at)[-1].journal
            if not self._execute(layout.FORK, (other, parent, at)).rowcount:
                raise JournalExists(
                    f"{self._described} holds a journal {other!r} already; delete it, or fork to another name"
                )

    def names(self) -> tuple[str, ...]:
        """The names of the journals, sorted."""
        with self._working("list the journals"):
            return tuple(sorted(row[0] for row in self._rows(layout.NAMES)))

    def length(self, name: str) -> int | None:
        """How many records the journal of that name holds; None if there is none; does not make one."""
        with self._working(f"look for the journal {name!r}"):
            found = self._rows(layout.FIND, (name,))
            return self._length(found[0][0]) if found else None

    def delete(self, name: str) -> None:
        """Delete a journal; records that a fork shares stay until the fork is deleted too.

        Raises JournalMissing.
        """
        with self._working(f"delete the journal {name!r}"), self._transaction():
            identity = self._found(name)
            self._execute(layout.HIDE, (identity,))
            self._sweep(identity)

    def _sweep(self, journal: int | None) -> None:
        """Delete the records of a nameless journal that no fork shares, and the journal itself if it has no forks."""
        while journal is not None:
            ((parent, _, name),) = self._rows(layout.PAST, (journal,))
            ((longest,),) = self._rows(layout.LONGEST_FORK, (journal,))
            if name is not None:
                return
            first = journal * POSITIONS
            self._execute(layout.DROP_RECORDS, (first + (longest or 0), first + POSITIONS))
            if longest is not None:
                return
            self._execute(layout.DROP, (journal,))
            journal = parent

    def _found(self, name: str) -> int:
        found = self._rows(layout.FIND, (name,))
        if not found:
            known = one_line(", ".join(repr(each) for each in self.names()), 200) or "none"
            raise JournalMissing(f"{self._described} holds no journal {name!r}; it holds {known}")
        identity: int = found[0][0]
        return identity

    def _length(self, journal: int) -> int:
        first = journal * POSITIONS
        ((last,),) = self._rows(layout.LAST_KEY, (first, first + POSITIONS))
        if last is not None:
            return int(last) - first + 1
        ((_, length, _),) = self._rows(layout.PAST, (journal,))
        return int(length)

    def _stretches(self, journal: int, end: int) -> list[Stretch]:
        """The stretches with the first `end` records of a journal, in order."""
        found: list[Stretch] = []
        following: int | None = journal
        while following is not None and end > 0:
            past = self._rows(layout.PAST, (following,))
            if not past:
                gone = f"the journal number {following} is gone, on which another builds"
                raise JournalInvalid(f"{self._described}: {gone}; {DatabaseFailure.DAMAGE}")
            parent, length, _ = past[0]
            if end > length:
                found.append(Stretch(following, length, end))
            following, end = parent, min(end, length)
        return found[::-1]

    def _read(self, journal: int, first: int, end: int) -> Iterator[tuple[str, str]]:
        with self._working("read a journal"):
            stretches = self._stretches(journal, end)
        for stretch in stretches:
            key, last = (stretch.journal * POSITIONS + max(each, first) for each in (stretch.first, stretch.end))
            while key < last:
                with self._working("read a journal"):
                    rows = self._rows(layout.RECORDS, (key, last, BATCH))
                for found, kind, body in rows or [(None, "", "")]:
                    if found != key:
                        gone = f"record {key % POSITIONS} of journal number {stretch.journal} is gone"
                        raise JournalInvalid(f"{self._described}: {gone}; {DatabaseFailure.DAMAGE}")
                    yield kind, body
                    key += 1

    def _open(self) -> None:
        """Make the tables, or upgrade older ones to this version's layout; raises StoreTooNew for newer ones."""
        with self._working("be opened"), self._transaction():
            if not self._rows(self._find_tables):
                for statement in self._tables:
                    self._execute(statement)
                return
            version = self._version()
            for older in range(version, layout.VERSION):
                for statement in layout.UPGRADES[older]:
                    self._execute(statement)
            if version != layout.VERSION:
                self._execute(layout.WRITE_VERSION, (layout.VERSION,))

    def _version(self) -> int:
        """The layout of the tables."""
        found = [row[0] for row in self._rows(layout.READ_VERSION)]
        version = found[0] if len(found) == 1 and type(found[0]) is int else None
        if version is not None and version > layout.VERSION:
            raise StoreTooNew(
                f"{self._described} has layout {version}, newer than {layout.VERSION}; upgrade sabir-session"
            )
        if version is None or any(older not in layout.UPGRADES for older in range(version, layout.VERSION)):
            held = one_line(repr(found), 80)
            raise StoreError(f"{self._described} is damaged: its layout is {held}; {DatabaseFailure.DAMAGE}")
        return version

    @contextmanager
    def _working(self, task: str) -> Iterator[None]:
        with self._lock:
            try:
                yield
            except self._failures as error:
                raise StoreError(f"{self._described} could not {task}: {DatabaseFailure(error)}") from error


class StoredJournal:
    """One journal of a store: the records from when it was opened, and those appended through it since."""

    def __init__(self, store: Store, name: str, identity: int, length: int) -> None:
        self.name = name
        self._store = store
        self._identity = identity
        self._key = identity * POSITIONS + length
        self._lock, self._execute, self._statement = store._lock, store._execute, store._append

    def __len__(self) -> int:
        """How many records it holds."""
        return self._key - self._identity * POSITIONS

    def append(self, kind: str, body: str) -> None:
        """Write one record; once this has returned, it survives the death of the process.

        Raises RecordingFailed, and writes nothing, if the database fails or the journal was deleted; raises its
        subclass PositionTaken if another writer has taken the position since this journal was opened.
        """
        store = self._store
        with self._lock:
            try:
                written = self._execute(self._statement, (self._key, kind, body, self._identity)).rowcount
            except store._taken:
                reason = "was written by another since this one opened it; open the journal again"
                raise PositionTaken(f"position {len(self)} of the journal {self.name!r} {reason}") from None
            except store._failures as error:
                raise RecordingFailed(
                    f"{store._described} did not take position {len(self)} of {self.name!r}: {DatabaseFailure(error)}"
                ) from error
            if not written:
                raise RecordingFailed(
                    f"the journal {self.name!r} was deleted from {store._described}; open another one"
                )
            self._key += 1

    def read(self, first: int = 0) -> Iterator[tuple[str, str]]:
        """The records from that position on, as (kind, body), in order; raises JournalInvalid if one is missing."""
        return self._store._read(self._identity, first, len(self))
