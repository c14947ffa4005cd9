"""Who holds a journal: one process at a time, so that no call of a conversation runs in two processes.

    store.claim(name) ──▶ Claim ── held by another ──▶ ConversationBusy
                            └── held until it is forgotten, or the process ends

A file is claimed by a lock file beside it, `chats.db.locks/…`, which the operating system gives up when a process dies;
a Postgres database by an advisory lock of its session (https://www.postgresql.org/docs/current/explicit-locking.html).
Objects of one process share a file's claim: the latest one writes, because the journal itself refuses the others.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from threading import Lock
from weakref import WeakValueDictionary

from filelock import FileLock, Timeout

from sabir_session.errors import ConversationBusy, StoreError


class Claim:
    """The right to write to one journal. `holds` says whether it is still held, `release` gives it up."""

    def __init__(
        self, journal: str, holds: Callable[[], bool] = lambda: True, release: Callable[[], None] = lambda: None
    ) -> None:
        self.journal = journal
        self.release = release
        self._holds = holds
        self._process = os.getpid()
        self._asking = Lock()

    @contextmanager
    def asking(self) -> Iterator[None]:
        """Answer one question at a time; raises ConversationBusy where another one is being answered."""
        if os.getpid() != self._process or not self._holds():
            raise busy(self.journal)
        if not self._asking.acquire(blocking=False):
            remedy = "wait for its answer, or leave its stream"
            raise ConversationBusy(f"a question of the conversation {self.journal!r} is being answered; {remedy}")
        try:
            yield
        finally:
            self._asking.release()


def busy(journal: str) -> ConversationBusy:
    """The error for a conversation that another process holds."""
    return ConversationBusy(
        f"another process holds the conversation {journal!r}; close it there, or give another name="
    )


class FileClaim(Claim):
    """A claim on a journal in a file."""

    def __init__(self, path: Path, journal: str) -> None:
        super().__init__(journal)
        folder = path.with_name(f"{path.name}.locks")
        try:
            folder.mkdir(mode=0o700, exist_ok=True)
            name = sha256(journal.encode(errors="surrogatepass")).hexdigest()[:16]
            self._file = FileLock(folder / f"{name}.lock", thread_local=False)
            self._file.acquire(blocking=False)
        except Timeout:
            raise busy(journal) from None
        except OSError as error:
            raise StoreError(
                f"{str(path)!r} could not be locked: {error.strerror}; make its folder writable"
            ) from error


_claims: "WeakValueDictionary[tuple[Path, str], FileClaim]" = WeakValueDictionary()
"""The claims of this process."""
_making = Lock()


def file_claim(path: Path, journal: str) -> Claim:
    """This process's claim on a journal in a file; raises ConversationBusy if another process has it."""
    key = (path.resolve(), journal)
    with _making:
        claim = _claims.get(key)
        if claim is None or claim._process != os.getpid():
            claim = _claims[key] = FileClaim(*key)
        return claim
