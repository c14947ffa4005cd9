"""One journal of a store: opened with the records of a moment, read, and extended by one writer.

    store.journal("a") ──▶ StoredJournal ── read() ──▶ all records of that moment, in one snapshot
                                         └─ append() ─▶ PositionTaken if another writer was first

A writer may remove records between the opening and the first read. The journal then has the records of the first read,
because nothing was read or written here that depends on the removed records.
"""

from collections.abc import Iterator

from sabir.authoring import DatabaseFailure

from sabir_session import errors
from sabir_session.stores.database import POSITIONS, Database


class StoredJournal:
    """One journal of a store, with the records from when it was opened and the records that this object appended.

    `Store.journal` creates it. Pass it to `Session(journal=…)`.
    """

    def __init__(self, store: Database, name: str, identity: int, length: int) -> None:
        self.name = name
        self._store = store
        self._lock, self._run_statement, self._statement = store._lock, store._run_statement, store._insert_record
        self._has_seen_records = False
        self._identity = identity
        self._key = identity * POSITIONS + length

    @property
    def is_latest(self) -> bool:
        """Whether no other writer has changed or deleted the journal since this object was opened."""
        with self._store._converting_errors(f"look for the journal {self.name!r}"):
            return self._store._locate(self.name) == (self._identity, len(self))

    def __len__(self) -> int:
        """Return the number of records."""
        return self._key - self._identity * POSITIONS

    def append(self, kind: str, body: str) -> None:
        """Write one record: the stored name of its type, and its text.

        Unless the store is in memory, the record survives a crash of the process. Raises RecordingFailed if the
        database fails, or if the journal was deleted or records were removed. Raises its subclasses PositionTaken if
        another writer has appended a record since this object was opened, and StoreLost if the database file was
        deleted or replaced. Nothing was written then, unless a connection to Postgres broke during the write.
        """
        store = self._store
        with self._lock:
            store._check_file()  # a record must not go into the log of a new file with this name
            try:
                written = self._run_statement(self._statement, (self._key, kind, body, self._identity)).rowcount
            except store._duplicate_key_error:
                reason = "was written by another writer since this object opened the journal; open the journal again"
                raise errors.PositionTaken(f"position {len(self)} of the journal {self.name!r} {reason}") from None
            except store._failures as error:
                reason = f"{store._description} could not store record {len(self)} of the journal {self.name!r}"
                raise errors.RecordingFailed(f"{reason}: {DatabaseFailure(error)}") from error
            store._check_file()  # the file may have been deleted since, before the record was in it
            if not written:
                reason = f"the journal {self.name!r} was deleted, or records were removed, in {store._description}"
                raise errors.RecordingFailed(f"{reason}; open the journal again")
            self._key += 1
            self._has_seen_records = True

    def read(self, first: int = 0) -> Iterator[tuple[str, str]]:
        """Return an iterator over the records from position `first` on, each as (kind, body), in order.

        All records are read before the method returns. Raises JournalInvalid if a record is missing or unreadable, and
        StoreError if the database fails, or if records are gone because another writer has deleted the journal or
        removed records. If records were removed before this object read or appended any, read() without `first` returns
        the current records.
        """
        store = self._store
        with store._converting_errors(f"read the journal {self.name!r}"), store._snapshot():
            try:
                records = store._read_records(self._identity, first, len(self))
            except errors.JournalInvalid:
                located = store._locate(self.name)
                if located is not None and located.number == self._identity:
                    raise  # it is still the journal of that name, so the record was not taken back
                if located is None or first or self._has_seen_records:
                    reason = f"another writer has removed records of the journal {self.name!r}"
                    raise errors.StoreError(f"{reason}; open the journal again") from None
                records = store._read_records(located.number, first, located.length)
                self._identity, self._key = located.number, located.number * POSITIONS + located.length
            self._has_seen_records = True
            return iter(records)
