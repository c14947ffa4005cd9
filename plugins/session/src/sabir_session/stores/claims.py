"""Who holds a journal: one process at a time, so that no call of a conversation runs in two processes.

    store.claim(name) ──▶ Claim ── held by another process ──▶ ConversationBusy
                            └── held until it is released or forgotten, or the process ends

A file is claimed by a lock file beside it, `chats.db.locks/…`, which the operating system gives up when a process dies;
a Postgres database by an advisory lock of its session (https://www.postgresql.org/docs/current/explicit-locking.html),
which is lost with the connection: another process may then go on, as after a crash.
Objects of one process share a file's claim: the latest one writes, because the journal itself refuses the others.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from hashlib import sha256
from pathlib import Path
from threading import Lock, RLock
from weakref import finalize

from filelock import FileLock, Timeout

from sabir_session.errors import ConversationBusy, StoreError


class Claim:
    """The right to write to one journal. `holds` says whether it is still held, `release` gives it up.

    `forget` is called instead where the claim is collected, at whatever moment that is; one in memory has nothing to
    give up, and is collected without a call. `lock` is held while a question is answered; the claims of one process on
    one file share it.
    """

    def __init__(
        self,
        journal: str,
        holds: Callable[[], bool] = lambda: True,
        release: Callable[[], None] | None = None,
        forget: Callable[[], None] | None = None,
        lock: "Lock | None" = None,
    ) -> None:
        self._journal = journal
        self._holds = holds
        self._asking = lock or Lock()
        self._release = release or (lambda: None)
        self._forget = finalize(self, forget or release) if release is not None else None

    @contextmanager
    def asking(self) -> Iterator[None]:
        """Answer one question at a time; raises ConversationBusy where another one is being answered."""
        if not self._holds():
            raise busy(self._journal)
        if not self._asking.acquire(blocking=False):
            remedy = "wait for its answer, or leave the block of its stream"
            raise ConversationBusy(f"a question of the conversation {self._journal!r} is being answered; {remedy}")
        try:
            yield
        finally:
            self._asking.release()

    def release(self) -> None:
        """Give it up; doing so twice is harmless."""
        if self._forget is not None and self._forget.detach():
            self._release()


def busy(journal: str) -> ConversationBusy:
    """The error for a conversation that another process holds."""
    remedy = "close it there, or give another name="
    return ConversationBusy(f"another process holds the conversation {journal!r}; {remedy}")


class _Held:
    """A lock file, and how many claims of this process share it."""

    def __init__(self, path: Path, journal: str) -> None:
        folder = path.with_name(f"{path.name}.locks")
        self.process, self.count, self.asking = os.getpid(), 0, Lock()
        try:
            folder.mkdir(mode=0o700, exist_ok=True)
            name = sha256(journal.encode(errors="surrogatepass")).hexdigest()[:16]
            self.file = FileLock(folder / f"{name}.lock", thread_local=False)
            self.file.acquire(blocking=False)
        except Timeout:
            raise busy(journal) from None
        except OSError as error:
            shown = f"{str(folder)!r} could not be locked: {error.strerror}"
            raise StoreError(f"{shown}; make it a folder that can be written to") from error


_held: dict[tuple[Path, str], _Held] = {}
"""The lock files that this process holds."""
_counting = RLock()  # a forgotten claim may be given up in the middle of counting


def file_claim(path: Path, journal: str) -> Claim:
    """This process's claim on a journal in a file; raises ConversationBusy if another process has it."""
    key = (path.resolve(), journal)
    with _counting:
        held = _held.get(key)
        if held is not None:
            held.count += 1  # at once: collecting an older claim gives that one up
        if held is None or held.process != os.getpid():
            held = _held[key] = _Held(*key)
            held.count = 1
    return Claim(journal, partial(_is_here, held), partial(_give_up, key, held), lock=held.asking)


def _is_here(held: _Held) -> bool:
    """Whether this is the process that took the lock, and no child of it."""
    return held.process == os.getpid()


def _give_up(key: tuple[Path, str], held: _Held) -> None:
    with _counting:
        held.count -= 1
        if not held.count and _is_here(held):
            _held.pop(key, None)
            held.file.release()
