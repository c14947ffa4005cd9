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

from abc import abstractmethod
from collections.abc import Hashable, Mapping, Sequence

from sabir.authoring import DatabaseFailure, SyncClosing, one_line

from sabir_session import errors
from sabir_session.stores.claims import Claim
from sabir_session.stores.database import POSITIONS, Database, Located
from sabir_session.stores.journal import StoredJournal
from sabir_session.stores.layouts import VERSION
from sabir_session.stores.names import check_name

READ_VERSION = "SELECT version FROM sabir_session_schema"
WRITE_VERSION = "UPDATE sabir_session_schema SET version = ?"

DROP_RECORDS = "DELETE FROM sabir_session_records WHERE id >= ? AND id < ?"

MAKE = "INSERT INTO sabir_journals (name) VALUES (?) ON CONFLICT (name) DO NOTHING"
FORK = "INSERT INTO sabir_journals (name, parent, length) VALUES (?, ?, ?) ON CONFLICT (name) DO NOTHING"
NAMES = "SELECT name FROM sabir_journals WHERE name IS NOT NULL"
LONGEST_FORK = "SELECT max(length) FROM sabir_journals WHERE parent = ?"
HIDE = "UPDATE sabir_journals SET name = NULL WHERE id = ?"
DROP = "DELETE FROM sabir_journals WHERE id = ?"


class Store(SyncClosing, Database):
    """Named journals in one database; a context manager, usable from any thread.

    Its methods raise StoreError if the database fails.
    """

    _find_tables: str
    """The statement that returns a row if the tables exist."""
    _tables: tuple[str, ...]
    """The statements that make the tables of this version."""
    _upgrades: Mapping[int, tuple[str, ...]]
    """Layout → the statements that upgrade it to the next one."""

    def journal(self, name: str) -> StoredJournal:
        """Open the journal of that name; create it if it does not exist.

        The journal has the records of this moment. If another writer appends to it later, the next append here fails,
        so two writers never interleave. Raises StoreError for a name that cannot be stored.
        """
        check_name(name)
        with self._working(f"open the journal {name!r}"):
            located = self._locate(name)
            if located is None:
                with self._transaction():
                    self._execute(MAKE, (name,))
                    located = self._found(name)
            return StoredJournal(self, name, *located)

    def fork(self, name: str, other: str, at: int | None = None) -> None:
        """Create a journal that begins with the first `at` records of another one; with all its records by default.

        One row is written, however many records there are; neither journal sees later appends to the other. Raises
        JournalMissing, JournalExists, and StoreError for a name that cannot be stored and for an `at` that is not
        between 0 and the journal's length.
        """
        check_name(name)
        check_name(other)
        with self._working(f"fork the journal {name!r}"), self._transaction():
            self._fork(self._found(name), name, other, at)

    def _fork(self, source: Located, name: str, other: str, at: int | None) -> None:
        at = source.length if at is None else at
        if not 0 <= at <= source.length:
            raise errors.StoreError(f"the journal {name!r} has {source.length} records; it cannot be forked at {at}")
        parent: int | None = None
        if at:  # the parent is the journal that holds the last of these records, so chains stay short
            parent = self._stretches(source.number, at)[-1].journal
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
        check_name(name)
        with self._working(f"take back records of the journal {name!r}"), self._transaction():
            source = self._found(name)
            if source.length != length:
                shown = f"the journal {name!r} has {source.length} records, not {length}: another has written to it"
                raise errors.PositionTaken(f"{shown}; open the journal again")
            self._execute(HIDE, (source.number,))
            self._fork(source, name, name, at)
            self._sweep(source.number)
            successor = self._found(name)
            for position, (kind, body) in enumerate(records, start=at):
                self._execute(self._append, (successor.number * POSITIONS + position, kind, body, successor.number))

    def names(self) -> tuple[str, ...]:
        """Return the names of the journals, sorted."""
        with self._working("list the journals"):
            names = [row[0] for row in self._rows(NAMES)]
        for name in names:
            if not isinstance(name, str):
                raise self._damaged(f"the name of a journal is {one_line(repr(name), 60)}")
        return tuple(sorted(names))

    def length(self, name: str) -> int | None:
        """Return how many records the journal of that name holds; None if there is none. It creates no journal."""
        check_name(name)
        with self._working(f"look for the journal {name!r}"):
            located = self._locate(name)
            return None if located is None else located.length

    def delete(self, name: str) -> None:
        """Delete a journal; records that a fork shares stay until the fork is deleted too.

        Raises JournalMissing.
        """
        check_name(name)
        with self._working(f"delete the journal {name!r}"), self._transaction():
            number = self._found(name).number
            self._execute(HIDE, (number,))
            self._sweep(number)

    def _sweep(self, journal: int | None) -> None:
        """Delete the records of a nameless journal that no fork shares, and the journal itself if it has no forks."""
        while journal is not None:
            past = self._past(journal)
            ((longest,),) = self._rows(LONGEST_FORK, (journal,))
            if past.name is not None:
                return
            first = journal * POSITIONS
            shared = 0 if longest is None else self._number(longest, f"the fork of journal number {journal}")
            self._execute(DROP_RECORDS, (first + shared, first + POSITIONS))
            if longest is not None:
                return
            self._execute(DROP, (journal,))
            journal = past.parent

    def _found(self, name: str) -> Located:
        located = self._locate(name)
        if located is None:
            known = one_line(", ".join(repr(each) for each in self.names()), 200) or "none"
            raise errors.JournalMissing(f"{self._described} holds no journal {name!r}; it holds {known}")
        return located

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
