"""Named journals in a database: opened, forked, listed, deleted. One logic for every database that speaks SQL.

    store.journal("a")        a: 0 1 2 3 4 …
    store.fork("a", "b", 3)   b:       └ 3 4 …     one row: a's first three are b's past

    sabir_session_schema    version
    sabir_journals          id · name (none: deleted, kept for its forks) · parent · length (of the parent's part)
    sabir_session_records   id = journal · 2³² + position · kind · body

One row for each append, in one tree: a row's key is its place, so two writers of one place conflict in the key. A fork
is a row that names its parent and how much of the parent is its past: its own records begin at that position. An engine
(SQLite, Postgres) runs the statements.
"""

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from threading import RLock
from typing import Any, NamedTuple, Protocol

from sabir.authoring import DatabaseFailure, SyncClosing, one_line

from sabir_session import errors
from sabir_session.stores.claims import Claim
from sabir_session.stores.layouts import VERSION

POSITIONS = 1 << 32
"""Positions of one journal; journal n's records have keys from n · POSITIONS."""

READ_VERSION = "SELECT version FROM sabir_session_schema"
WRITE_VERSION = "UPDATE sabir_session_schema SET version = ?"

_TO_RECORDS = "INSERT INTO sabir_session_records (id, kind, body)"
APPEND = f"{_TO_RECORDS} SELECT ?, ?, ? FROM sabir_journals WHERE id = ? AND name IS NOT NULL"
RECORDS = "SELECT id, kind, body FROM sabir_session_records WHERE id >= ? AND id < ? ORDER BY id LIMIT ?"
LAST_KEY = "SELECT max(id) FROM sabir_session_records WHERE id >= ? AND id < ?"
DROP_RECORDS = "DELETE FROM sabir_session_records WHERE id >= ? AND id < ?"

MAKE = "INSERT INTO sabir_journals (name) VALUES (?) ON CONFLICT (name) DO NOTHING"
FORK = "INSERT INTO sabir_journals (name, parent, length) VALUES (?, ?, ?) ON CONFLICT (name) DO NOTHING"
FIND = "SELECT id FROM sabir_journals WHERE name = ?"
PAST = "SELECT parent, length, name FROM sabir_journals WHERE id = ?"
NAMES = "SELECT name FROM sabir_journals WHERE name IS NOT NULL"
LONGEST_FORK = "SELECT max(length) FROM sabir_journals WHERE parent = ?"
HIDE = "UPDATE sabir_journals SET name = NULL WHERE id = ?"
DROP = "DELETE FROM sabir_journals WHERE id = ?"

BATCH = 64
"""Records that are read at once."""

Row = tuple[Any, ...]


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
    _append = APPEND
    _find_tables: str
    """The statement that returns a row if the tables exist."""
    _tables: tuple[str, ...]
    """The statements that make the tables of this version."""
    _upgrades: Mapping[int, tuple[str, ...]]
    """Layout → the statements that upgrade it to the next one."""

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
            raise errors.StoreError("a journal has a name of at least one character; give one")
        with self._working(f"open the journal {name!r}"):
            if not self._rows(FIND, (name,)):
                self._execute(MAKE, (name,))
            identity = self._found(name)
            return StoredJournal(self, name, identity, self._length(identity))

    def fork(self, name: str, other: str, at: int | None = None) -> None:
        """Make a journal that begins with the first `at` records of another one; with all its records by default.

        One row is written, however many records there are; neither journal sees later appends to the other. Raises
        JournalMissing, JournalExists, and StoreError for an `at` that is not between 0 and the journal's length.
        """
        if not other:
            raise errors.StoreError("a journal has a name of at least one character; give one")
        with self._working(f"fork the journal {name!r}"), self._transaction():
            self._fork(self._found(name), name, other, at)

    def _fork(self, identity: int, name: str, other: str, at: int | None) -> None:
        length = self._length(identity)
        at = length if at is None else at
        if not 0 <= at <= length:
            raise errors.StoreError(f"the journal {name!r} has {length} records; it cannot be forked at {at}")
        parent: int | None = None
        if at:  # the parent is the journal that holds the last of these records, so chains stay short
            parent = self._stretches(identity, at)[-1].journal
        if not self._execute(FORK, (other, parent, at)).rowcount:
            shown = f"{self._described} holds a journal {other!r} already"
            raise errors.JournalExists(f"{shown}; delete it, or fork to another name")

    @property
    def location(self) -> Hashable:
        """The identity of the database among the stores of this process; stores of one database return equal values.

        By default the store itself. Conversations of one process use it to answer one question at a time.
        """
        return self

    @abstractmethod
    def claim(self, name: str) -> Claim:
        """Exclude other processes from the journal of that name; raise ConversationBusy if one of them has it.

        Objects of this process are excluded by `sabir_session.stores.claims`, whatever this returns.
        """

    def rewind(self, name: str, at: int, length: int, records: Sequence[tuple[str, str]] = ()) -> None:
        """Remove the records of a journal of that length from position `at` on; forks that share them keep them.

        `records`, each a kind and a body, are written in their place, in the same transaction: after a crash the
        journal holds either the old records or these. Journals that were opened before can write no more. Raises
        JournalMissing, PositionTaken if the journal has another length, and StoreError for an `at` beyond it.
        """
        with self._working(f"take back records of the journal {name!r}"), self._transaction():
            identity = self._found(name)
            if (found := self._length(identity)) != length:
                shown = f"the journal {name!r} has {found} records, not {length}: another has written to it"
                raise errors.PositionTaken(f"{shown}; open the journal again")
            self._execute(HIDE, (identity,))
            self._fork(identity, name, name, at)
            self._sweep(identity)
            successor = self._found(name)
            for position, (kind, body) in enumerate(records, start=at):
                self._execute(self._append, (successor * POSITIONS + position, kind, body, successor))

    def names(self) -> tuple[str, ...]:
        """The names of the journals, sorted."""
        with self._working("list the journals"):
            return tuple(sorted(row[0] for row in self._rows(NAMES)))

    def length(self, name: str) -> int | None:
        """How many records the journal of that name holds; None if there is none; does not make one."""
        with self._working(f"look for the journal {name!r}"):
            found = self._rows(FIND, (name,))
            return self._length(found[0][0]) if found else None

    def delete(self, name: str) -> None:
        """Delete a journal; records that a fork shares stay until the fork is deleted too.

        Raises JournalMissing.
        """
        with self._working(f"delete the journal {name!r}"), self._transaction():
            identity = self._found(name)
            self._execute(HIDE, (identity,))
            self._sweep(identity)

    def _sweep(self, journal: int | None) -> None:
        """Delete the records of a nameless journal that no fork shares, and the journal itself if it has no forks."""
        while journal is not None:
            ((parent, _, name),) = self._rows(PAST, (journal,))
            ((longest,),) = self._rows(LONGEST_FORK, (journal,))
            if name is not None:
                return
            first = journal * POSITIONS
            self._execute(DROP_RECORDS, (first + (longest or 0), first + POSITIONS))
            if longest is not None:
                return
            self._execute(DROP, (journal,))
            journal = parent

    def _found(self, name: str) -> int:
        found = self._rows(FIND, (name,))
        if not found:
            known = one_line(", ".join(repr(each) for each in self.names()), 200) or "none"
            raise errors.JournalMissing(f"{self._described} holds no journal {name!r}; it holds {known}")
        identity: int = found[0][0]
        return identity

    def _length(self, journal: int) -> int:
        first = journal * POSITIONS
        ((last,),) = self._rows(LAST_KEY, (first, first + POSITIONS))
        if last is not None:
            return int(last) - first + 1
        ((_, length, _),) = self._rows(PAST, (journal,))
        return int(length)

    def _stretches(self, journal: int, end: int) -> list[Stretch]:
        """The stretches with the first `end` records of a journal, in order."""
        found: list[Stretch] = []
        following: int | None = journal
        while following is not None and end > 0:
            past = self._rows(PAST, (following,))
            if not past:
                gone = f"the journal number {following} is gone, on which another builds"
                raise errors.JournalInvalid(f"{self._described}: {gone}; {DatabaseFailure.DAMAGE}")
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
                    rows = self._rows(RECORDS, (key, last, BATCH))
                for found, kind, body in rows or [(None, "", "")]:
                    if found != key:
                        gone = f"record {key % POSITIONS} of journal number {stretch.journal} is gone"
                        raise errors.JournalInvalid(f"{self._described}: {gone}; {DatabaseFailure.DAMAGE}")
                    yield kind, body
                    key += 1

    def _open(self) -> None:
        """Make the tables, or upgrade those of an older layout, in one transaction.

        Raises StoreTooNew for a newer layout.
        """
        with self._working("be opened"), self._transaction():
            if not self._rows(self._find_tables):
                for statement in self._tables:
                    self._execute(statement)
                return
            for older in range(self._version(), VERSION):
                for statement in self._upgrades[older]:
                    self._execute(statement)
                self._execute(WRITE_VERSION, (older + 1,))

    def _version(self) -> int:
        """Read the layout of the tables; raise StoreTooNew for a newer one, StoreError for an unknown one."""
        versions = [row[0] for row in self._rows(READ_VERSION)]
        version = versions[0] if len(versions) == 1 and type(versions[0]) is int else None
        if version is not None and version > VERSION:
            reason = f"{self._described} has layout {version}, newer than {VERSION}"
            raise errors.StoreTooNew(f"{reason}; upgrade sabir-session")
        if version is None or any(older not in self._upgrades for older in range(version, VERSION)):
            shown = one_line(repr(versions), 80)
            raise errors.StoreError(f"{self._described} is damaged: its layout is {shown}; {DatabaseFailure.DAMAGE}")
        return version

    @contextmanager
    def _working(self, task: str) -> Iterator[None]:
        with self._lock:
            try:
                yield
            except self._failures as error:
                raise errors.StoreError(f"{self._described} could not {task}: {DatabaseFailure(error)}") from error


class StoredJournal:
    """One journal of a store: the records from when it was opened, and those appended through it since."""

    def __init__(self, store: Store, name: str, identity: int, length: int) -> None:
        self.name = name
        self._store = store
        self._identity = identity
        self._key = identity * POSITIONS + length
        self._lock, self._execute, self._statement = store._lock, store._execute, store._append

    @property
    def is_latest(self) -> bool:
        """Whether it is all that the store holds under its name: nobody else wrote to it, or took it back."""
        with self._store._working(f"look for the journal {self.name!r}"):
            found = self._store._rows(FIND, (self.name,))
            return found == [(self._identity,)] and self._store._length(self._identity) == len(self)

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
                raise errors.PositionTaken(f"position {len(self)} of the journal {self.name!r} {reason}") from None
            except store._failures as error:
                shown = f"{store._described} did not take position {len(self)} of {self.name!r}"
                raise errors.RecordingFailed(f"{shown}: {DatabaseFailure(error)}") from error
            if not written:
                shown = f"the journal {self.name!r} was deleted from {store._described}"
                raise errors.RecordingFailed(f"{shown}; open another one")
            self._key += 1

    def read(self, first: int = 0) -> Iterator[tuple[str, str]]:
        """The records from that position on, as (kind, body), in order; raises JournalInvalid if one is missing."""
        return self._store._read(self._identity, first, len(self))
