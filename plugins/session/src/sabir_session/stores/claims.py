"""Claims on journals: one process at a time uses a conversation, and one of its objects answers a question.

    claim_journal(store, name) ─▶ store.claim(name)                other processes: ConversationBusy until its release
                               └▶ the QuestionLock of (store, name)    a lock that other objects of this process share

Law: of all claims on one journal, at most one is between `acquire()` and `question.release()`.

Each engine excludes other processes in its own way. A file is claimed by a lock file next to it, `chats.db.locks/…`.
The operating system releases the lock when the process dies, and the last claim of a process removes the file. A
Postgres database is claimed by an advisory lock (https://www.postgresql.org/docs/current/explicit-locking.html), which
the server releases with the connection: another process may then continue, as after a crash.

Objects of one process exclude each other here, in the same way for every store. Several objects may have a conversation
open, as in a notebook whose cell runs again, but only one may answer a question. Stores of the same `Store.location`
are one database. Two PostgresStores have different locations; their connections exclude each other.
"""

import os
from collections.abc import Callable, Hashable
from contextlib import suppress
from functools import partial
from hashlib import sha256
from pathlib import Path
from threading import Lock, RLock
from typing import Protocol
from weakref import WeakValueDictionary, finalize

from filelock import FileLock, Timeout

from sabir_session.errors import ConversationBusy, StoreError
from sabir_session.stores.files import find_identity


class QuestionLock:
    """A lock that is locked while a question of a conversation is being answered."""

    def __init__(self) -> None:
        self._lock = Lock()

    def acquire(self, journal: str) -> None:
        """Lock. Raises ConversationBusy if it is locked already."""
        if not self._lock.acquire(blocking=False):
            reason = f"the conversation {journal!r} is already answering a question"
            raise ConversationBusy(f"{reason}; wait for the answer, or close its stream")

    def release(self) -> None:
        """Unlock."""
        self._lock.release()


class Claim:
    """The right of this process to write to one journal. `Store.claim` returns it.

    `holds` returns whether the database still excludes other processes, and may claim the journal again. `release`
    admits other processes. `release_later` is called instead of `release` when the claim is garbage collected, possibly
    in the middle of a statement; None means `release`.
    """

    def __init__(
        self,
        journal: str,
        holds: Callable[[], bool] = lambda: True,
        release: Callable[[], None] | None = None,
        release_later: Callable[[], None] | None = None,
    ) -> None:
        self.question = QuestionLock()
        self._journal = journal
        self._process = os.getpid()
        self._holds = holds
        self._release = release or (lambda: None)
        self._finalizer = finalize(self, release_later or release) if release is not None else None

    def acquire(self) -> None:
        """Reserve the journal for one question. The caller must call `question.release()` after the question.

        Raises ConversationBusy if a question is being answered in this process, if another process has claimed the
        journal, and in a forked child, whose parent has claimed the journal. Raises StoreError if the database fails.
        """
        if self._process != os.getpid():
            raise busy_error(self._journal)
        self.question.acquire(self._journal)
        try:
            if not self._holds():
                raise busy_error(self._journal)
        except BaseException:
            self.question.release()
            raise

    def release(self) -> None:
        """End this claim. Other processes can claim the journal when all claims of this process have ended.

        A second call has no effect.
        """
        if self._finalizer is not None and self._finalizer.detach():
            self._release()


class Claimable(Protocol):
    """The part of a store that claims need."""

    @property
    def location(self) -> Hashable:
        """The identity of the database: stores of equal locations are the same database."""

    def claim(self, name: str) -> Claim:
        """Claim the journal of this name for this process."""


_question_locks: WeakValueDictionary[tuple[Hashable, str], QuestionLock] = WeakValueDictionary()
"""(location of a store, name of a journal) → the lock that all claims of this process on the journal share."""
_registry = RLock()  # reentrant: garbage collection may release a claim while the lock is held


def claim_journal(store: Claimable, name: str) -> Claim:
    """Claim a journal for this process, and share the lock of its questions with this process's other claims on it.

    Raises the errors of `Store.claim`: ConversationBusy if another process has claimed the journal, and StoreError.
    """
    claim = store.claim(name)
    with _registry:
        claim.question = _question_locks.setdefault((store.location, name), claim.question)
    return claim


def busy_error(journal: str, holder: str = "another process") -> ConversationBusy:
    """Return the error for a conversation that `holder` has claimed."""
    return ConversationBusy(f"{holder} has the conversation {journal!r} open; close it there, or pass another name=")


class _LockFile:
    """A locked file, and the number of claims of this process that need it.

    The file exists while it is locked. The process that locked the file removes it before unlocking it, so another
    process either finds the locked file, or creates a new file. FileLock refuses a file that was removed after it was
    opened, so locking is tried several times.
    """

    def __init__(self, path: Path, journal: str) -> None:
        folder = path.with_name(f"{path.name}.locks")
        self.process, self.count = os.getpid(), 0
        self._path = folder / f"{sha256(journal.encode(errors='surrogatepass')).hexdigest()[:16]}.lock"
        self._file = FileLock(self._path, thread_local=False)
        try:
            for attempt in range(_ATTEMPTS):
                folder.mkdir(mode=0o700, exist_ok=True)
                with suppress(*() if attempt + 1 == _ATTEMPTS else (Timeout, FileNotFoundError)):
                    self._file.acquire(blocking=False)
                    break
        except Timeout:
            raise busy_error(journal) from None
        except OSError as error:
            reason = f"{str(folder)!r} could not be locked: {error.strerror}"
            raise StoreError(f"{reason}; make the folder writable") from error
        self._identity = find_identity(self._path)

    @property
    def is_in_place(self) -> bool:
        """Whether the file still exists, so that other processes find it."""
        return self._identity is not None and find_identity(self._path) == self._identity

    def release(self) -> None:
        """Remove the file, unless it was replaced by another file, and unlock it."""
        if self.is_in_place:
            with suppress(OSError):  # Windows removes no open file: FileLock does it there
                self._path.unlink()
        self._file.release()


_ATTEMPTS = 4
_lock_files: dict[tuple[Path, str], _LockFile] = {}
"""(path of a database, name of a journal) → the file that this process has locked."""


def claim_file(path: Path, journal: str) -> Claim:
    """Claim a journal of a database file by a lock file.

    Raises ConversationBusy if another process has claimed the journal, and StoreError if the file cannot be locked.
    """
    key = (path, journal)
    with _registry:
        lock_file = _lock_files.get(key)
        if lock_file is not None:
            lock_file.count += 1  # now, because the garbage collection of an older claim may release the file
        if lock_file is None or lock_file.process != os.getpid() or not lock_file.is_in_place:
            lock_file = _lock_files[key] = _LockFile(*key)
            lock_file.count = 1
    return Claim(journal, release=partial(_release_file, key, lock_file))


def remove_lock_file(path: Path, journal: str) -> None:
    """Remove the lock file that a dead process left. If this or another process has claimed the journal, do nothing."""
    with suppress(ConversationBusy, StoreError):
        claim_file(path, journal).release()


def _release_file(key: tuple[Path, str], lock_file: _LockFile) -> None:
    """Unlock the file after its last claim. A forked child does not unlock the file of its parent."""
    with _registry:
        lock_file.count -= 1
        if not lock_file.count and lock_file.process == os.getpid():
            if _lock_files.get(key) is lock_file:
                del _lock_files[key]
            lock_file.release()
