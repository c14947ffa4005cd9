"""Stores of named journals in an SQL database: open, fork, list and delete journals.

    store.journal("a")        a: 0 1 2 3 4 …
    store.fork("a", "b", 3)   b:       └ 3 4 …     one row: b shares the first three records of a

    sabir_session_schema    version
    sabir_journals          id · name (NULL: deleted, needed by its forks) · parent · length (of the parent's part)
    sabir_session_records   id = journal · 2³² + position · kind · body

Each record is one row. The key of the row contains the position, so two writers of the same position conflict in the
key. A fork is a row with its parent and the number of records that it shares with the parent. An engine (SQLite,
Postgres) executes the statements.
"""

from abc import abstractmethod
from collections.abc import Hashable, Mapping, Sequence

from sabir.authoring import DatabaseFailure, SyncClosing, one_line

from sabir_session import errors
from sabir_session.stores.claims import Claim
from sabir_session.stores.database import POSITIONS, Database, JournalLocation
from sabir_session.stores.journal import StoredJournal
from sabir_session.stores.layouts import VERSION
from sabir_session.stores.names import check_name

READ_VERSION = "SELECT version FROM sabir_session_schema"
WRITE_VERSION = "UPDATE sabir_session_schema SET version = ?"

DELETE_RECORDS = "DELETE FROM sabir_session_records WHERE id >= ? AND id < ?"

INSERT_JOURNAL = "INSERT INTO sabir_journals (name) VALUES (?) ON CONFLICT (name) DO NOTHING"
INSERT_FORK = "INSERT INTO sabir_journals (name, parent, length) VALUES (?, ?, ?) ON CONFLICT (name) DO NOTHING"
SELECT_NAMES = "SELECT name FROM sabir_journals WHERE name IS NOT NULL"
LONGEST_FORK = "SELECT max(length) FROM sabir_journals WHERE parent = ?"
REMOVE_NAME = "UPDATE sabir_journals SET name = NULL WHERE id = ?"
DELETE_JOURNAL = "DELETE FROM sabir_journals WHERE id = ?"


class Store(SyncClosing, Database):
    """A database of named journals, each with the records of one conversation or session. Thread-safe.

    Create an SQLiteStore or a PostgresStore. A `with` block closes the store. The methods raise StoreError if the
    database fails, and for names that cannot be stored.

    >>> import sabir_session
    >>> with sabir_session.SQLiteStore("chats.db") as store:
    ...     chat = sabir_session.Conversation("echo:m", keep=store, name="monday")
    ...     answer = chat.ask_sync("Hello!")
    ...     store.fork("monday", "tuesday")
    ...     print(store.names(), store.length("tuesday"))
    ('monday', 'tuesday') 3
    """

    _find_tables: str
    """A statement that returns a row if the tables exist."""
    _tables: tuple[str, ...]
    """The statements that create the tables of this version."""
    _upgrades: Mapping[int, tuple[str, ...]]
    """Layout number of the tables → the statements that upgrade tables of this layout to the next layout."""

    def journal(self, name: str) -> StoredJournal:
        """Return the journal of this name, for `Session(journal=…)`. Create the journal if it does not exist.

        The returned object has the records of this moment. If another writer appends a record later, the next append to
        the returned object raises PositionTaken, so the records of two writers never mix. Raises JournalInvalid if the
        row of the journal is damaged; the records are checked when they are read.
        """
        check_name(name)
        with self._converting_errors(f"open the journal {name!r}"):
            located = self._locate(name)
            if located is None:
                with self._transaction():
                    self._run_statement(INSERT_JOURNAL, (name,))
                    located = self._locate_existing(name)
            return StoredJournal(self, name, *located)

    def fork(self, name: str, other: str, at: int | None = None) -> None:
        """Create the journal `other` with the first `at` records of the journal `name`; None means all records.

        No record is copied, and later records of one journal do not appear in the other. Raises JournalMissing if there
        is no journal `name`, JournalExists if there is a journal `other`, and StoreError if `at` is negative or larger
        than the number of records.
        """
        check_name(name)
        check_name(other)
        with self._converting_errors(f"fork the journal {name!r}"), self._transaction():
            self._insert_fork(self._locate_existing(name), name, other, at)

    def _insert_fork(self, source: JournalLocation, name: str, other: str, at: int | None) -> None:
        at = source.length if at is None else at
        if not 0 <= at <= source.length:
            raise errors.StoreError(
                f"the journal {name!r} has {source.length} records; at={at} must be from 0 to {source.length}"
            )
        parent: int | None = None
        if at:  # the parent is the journal whose rows contain the last shared record, so chains of parents stay short
            parent = self._record_ranges(source.number, at)[-1].journal
        if not self._run_statement(INSERT_FORK, (other, parent, at)).rowcount:
            reason = f"{self._description} already has a journal {other!r}"
            raise errors.JournalExists(f"{reason}; delete the journal, or use another name")

    @property
    def location(self) -> Hashable:
        """The identity of the database: two stores with equal locations have the same database.

        An SQLiteStore has the path of its file. By default, as in a PostgresStore, the location is the store object.
        Of the conversations of this process with equal locations and names, only one answers a question at a time. The
        others do not wait: they raise ConversationBusy.
        """
        return self

    @abstractmethod
    def claim(self, name: str) -> Claim:
        """Claim a journal for this process, so that no other process can open its conversation.

        The claim lasts at most until the returned claim is released or garbage collected. Conversation calls this
        method; programs need not. Raises ConversationBusy if another process has claimed the journal. A PostgresStore
        also excludes other store objects of this process, and an SQLiteStore in memory excludes nothing.
        """

    def rewind(self, name: str, at: int, length: int, records: Sequence[tuple[str, str]] = ()) -> None:
        """Remove the records of a journal from position `at` on, and write `records`, each (kind, body), instead.

        Both happen in one transaction. `length` is the number of records that the caller has seen. Forks that share the
        removed records keep them. Journal objects that have read or appended records before cannot append any more.
        Raises JournalMissing if there is no journal of this name, PositionTaken if the journal does not have exactly
        `length` records, and StoreError if `at` is not from 0 to `length`.
        """
        check_name(name)
        with self._converting_errors(f"remove records of the journal {name!r}"), self._transaction():
            source = self._locate_existing(name)
            if source.length != length:
                reason = f"the journal {name!r} has {source.length} records, not {length}; another writer changed it"
                raise errors.PositionTaken(f"{reason}, so open the journal again")
            self._run_statement(REMOVE_NAME, (source.number,))
            self._insert_fork(source, name, name, at)
            self._delete_unshared(source.number)
            successor = self._locate_existing(name)
            for position, (kind, body) in enumerate(records, start=at):
                self._run_statement(
                    self._insert_record, (successor.number * POSITIONS + position, kind, body, successor.number)
                )

    def names(self) -> tuple[str, ...]:
        """Return the names of the journals, sorted."""
        with self._converting_errors("list the journals"):
            names = [row[0] for row in self._query(SELECT_NAMES)]
        for name in names:
            if not isinstance(name, str):
                raise self._damage_error(f"the name of a journal is {one_line(repr(name), 60)}")
        return tuple(sorted(names))

    def length(self, name: str) -> int | None:
        """Return the number of records of a journal; None if there is no journal of this name."""
        check_name(name)
        with self._converting_errors(f"look for the journal {name!r}"):
            located = self._locate(name)
            return None if located is None else located.length

    def delete(self, name: str) -> None:
        """Delete a journal. Records that forks share stay until the last of these forks is deleted.

        Raises JournalMissing if there is no journal of this name.
        """
        check_name(name)
        with self._converting_errors(f"delete the journal {name!r}"), self._transaction():
            number = self._locate_existing(name).number
            self._run_statement(REMOVE_NAME, (number,))
            self._delete_unshared(number)

    def _delete_unshared(self, journal: int | None) -> None:
        """Delete the records of a deleted journal that no fork shares, and the journal's row if it has no forks.

        Then do the same for its parent, if the parent was deleted. None, or a journal that is not deleted, ends it.
        """
        while journal is not None:
            row = self._read_row(journal)
            ((longest,),) = self._query(LONGEST_FORK, (journal,))
            if row.name is not None:
                return
            first = journal * POSITIONS
            shared = 0 if longest is None else self._check_number(longest, f"the fork of journal number {journal}")
            self._run_statement(DELETE_RECORDS, (first + shared, first + POSITIONS))
            if longest is not None:
                return
            self._run_statement(DELETE_JOURNAL, (journal,))
            journal = row.parent

    def _locate_existing(self, name: str) -> JournalLocation:
        located = self._locate(name)
        if located is None:
            known = one_line(", ".join(repr(each) for each in self.names()), 200) or "none"
            raise errors.JournalMissing(f"{self._description} has no journal {name!r}; its journals are: {known}")
        return located

    def _prepare_tables(self) -> None:
        """Create the tables, or upgrade the tables of an older layout, in one transaction.

        Raises StoreTooNew for a newer layout.
        """
        with self._converting_errors("be opened"), self._transaction():
            if not self._query(self._find_tables):
                for statement in self._tables:
                    self._run_statement(statement)
                return
            for older in range(self._read_version(), VERSION):
                for statement in self._upgrades[older]:
                    self._run_statement(statement)
                self._run_statement(WRITE_VERSION, (older + 1,))

    def _read_version(self) -> int:
        """Return the layout number of the tables. Raises StoreTooNew for a newer layout, StoreError if damaged."""
        versions = [row[0] for row in self._query(READ_VERSION)]
        version = versions[0] if len(versions) == 1 and type(versions[0]) is int else None
        if version is not None and version > VERSION:
            reason = f"{self._description} has layout {version}, but this sabir-session reads layouts up to {VERSION}"
            raise errors.StoreTooNew(f"{reason}; upgrade sabir-session")
        if version is None or any(older not in self._upgrades for older in range(version, VERSION)):
            layout = one_line(repr(versions), 80)
            raise errors.StoreError(f"{self._description} is damaged: its layout is {layout}; {DatabaseFailure.DAMAGE}")
        return version
