"""Thread, ThreadJournal and KnownThreads: threads with their journals, as one process knows them.

    journal `thread:<id>` ── ThreadEvent, ThreadEvent, InnerMessage … ─▶ ThreadView
                                                            record(): the journal first, then the view

The journal decides which process runs a thread. The process that runs a thread appends its records after the records of
other processes, for example "paused". Once the thread has ended, or another process runs it, writing raises
PositionTaken.
"""

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar
from weakref import WeakValueDictionary

from sabir.authoring import one_line
from sabir_session import (
    JournalInvalid,
    PositionTaken,
    RecordingFailed,
    Session,
    SessionError,
    Store,
    StoreError,
    append_item,
    enable_inner_message_recording,
)
from sabir_session.state.codec import Codec, names_of, now

from sabir_actors.actor import Actor
from sabir_actors.agents import AgentManagerActor
from sabir_actors.errors import ActorError, ErrorCode
from sabir_actors.observers import logger
from sabir_actors.protocol import Message, Response, deserialize_message
from sabir_actors.state import EventKind, ThreadEvent, ThreadView
from sabir_actors.store_thread import StoreThread

StepResult = TypeVar("StepResult")
JOURNAL = "thread:"
"""The prefix of the names of threads' journals in a store."""
APPENDED: frozenset[EventKind] = frozenset({"phase_done", "failed"})
"""Kinds of events that the process running a thread may record even if another process wrote a record in the meantime.
All other events depend on the thread's state, so writing them fails then, and the state is read again.
"""
_EVENT_NAMES, _EVENT_CODEC = names_of(ThreadEvent).all, Codec(ThreadEvent)
"""The names of ThreadEvent in journals, and its codec."""


class Thread:
    """One thread as this process knows it: its session, its state (`view`) and its running task (`run`).

    `runner` is the id of this process in the records of threads. Without a store, the thread is in memory only.
    """

    def __init__(self, thread_id: str, store: Store | None = None, runner: str = "") -> None:
        self.thread_id, self.store, self.runner = thread_id, store, runner
        self.run: asyncio.Task[None] | None = None
        self.agents: AgentManagerActor | None = None
        self.actors: list[Actor] = []
        """The actors that were created for the running thread: the present phase's actor and the agents."""
        self.read()

    @property
    def is_mine(self) -> bool:
        """Whether this process runs or last ran the thread, and the thread has not ended, by the records read so
        far.
        """
        return self.view.runner == self.runner and not self.view.is_over

    @property
    def is_behind(self) -> bool:
        """Whether the journal has records that were not read yet, or cannot be read. False without a store."""
        try:
            return self.journal is not None and self.journal.length() != self.journal.position
        except SessionError:
            return True

    def read(self) -> None:
        """Read the thread's complete state from its journal. Creates the journal if there is none."""
        journal = None if self.store is None else ThreadJournal(self, self.store)
        session, view = Session(journal=journal), ThreadView()
        session.mutate(ThreadEvent).register(ThreadEvent, append_item)
        for event in session.select_all(ThreadEvent):
            view.apply(event)
        self.journal, self.session, self.view = journal, session, view

    def refresh(self) -> None:
        """Read the records that other processes wrote. Raises ActorError (UNKNOWN_THREAD) if the journal was
        deleted.
        """
        if self.journal is None:
            return
        length = self.journal.length()
        if length is None:
            raise unknown_thread_error(self.thread_id)
        if length != self.journal.position and not (self.is_mine and self.journal.catch_up()):
            self.read()

    def record(
        self, what: EventKind, fields: dict[str, Any], message: Message | None = None, response: Response | None = None
    ) -> None:
        """Write one event, with the response to `message`, to the journal, and then apply it to `view`. `fields` is its
        data.

        Raises RecordingFailed if the journal cannot be written, and PositionTaken (a RecordingFailed) if another
        process wrote to it and the event is not in APPENDED, or another process runs the thread now.
        """
        event = ThreadEvent(
            what=what,
            at=now(),
            data=fields,
            message_id=message.id if message else None,
            response=response.model_dump(mode="json") if response else None,
        )
        try:
            self.session.mutate(ThreadEvent).append(event)
        except PositionTaken:
            if what not in APPENDED or self.journal is None or not self.journal.catch_up():
                raise
            return self.record(what, fields, message, response)
        self.view = self.view.after(event)

    def agents_session(self) -> Session:
        """Return the session for the agents' records: a new session over the journal. Use the session in the event loop
        only. Without a store, return the thread's own session.
        """
        if self.journal is None:
            return self.session
        session = Session(journal=self.journal)
        enable_inner_message_recording(session)
        return session

    def answer_to(self, message: Message) -> Response | None:
        """Return the response to a message that any process recorded; None if there is none."""
        stored_response = self.view.answers.get(message.id)
        if stored_response is None:
            return None
        response = deserialize_message(json.dumps(stored_response))
        assert isinstance(response, Response)
        return response


class ThreadJournal:
    """The journal of a thread, with this process's position in it.

    If another process wrote records in the meantime, the records of agents are appended after them.
    """

    def __init__(self, thread: Thread, store: Store) -> None:
        self._thread, self._store, self._name = thread, store, f"{JOURNAL}{thread.thread_id}"
        self._journal = store.journal(self._name)
        self._is_lost = False

    @property
    def position(self) -> int:
        """The number of records that this process has read or written."""
        return len(self._journal)

    def length(self) -> int | None:
        """Return the number of records in the store; None if the journal was deleted."""
        return self._store.length(self._name)

    def append(self, kind: str, body: str) -> None:
        """Write one record. Raises PositionTaken if the thread has ended, if another process runs it, or, for a
        ThreadEvent, if another process wrote a record that was not read yet.
        """
        while True:
            try:
                return self._journal.append(kind, body)
            except PositionTaken:
                if kind in _EVENT_NAMES or not self.catch_up():
                    raise

    def read(self) -> Iterator[tuple[str, str]]:
        """Return the records that this process has read or written, as (kind, body)."""
        return self._journal.read()

    def catch_up(self) -> bool:
        """Read and apply the records of other processes. Return False, also in later calls, if this process does not
        run the thread any more.

        Raises RecordingFailed if the records cannot be read now, and JournalInvalid for an invalid event.
        """
        try:
            journal = self._store.journal(self._name)
            new_records = list(journal.read(self.position))
        except StoreError as error:
            raise RecordingFailed(f"other processes' records in {self._name!r} cannot be read: {error}") from error
        try:
            events = [_EVENT_CODEC.decode(body) for kind, body in new_records if kind in _EVENT_NAMES]
        except ValueError as error:
            raise JournalInvalid(f"a record of {self._name!r} is not an event of a thread: {error}") from None
        if self._is_lost or len(events) < len(new_records) or self._thread.journal is not self:
            self._is_lost = True
            return False
        for event in events:
            self._thread.view = self._thread.view.after(event)
        self._is_lost = not self._thread.is_mine
        if not self._is_lost:
            self._journal = journal
        return not self._is_lost


class KnownThreads:
    """The threads that one process knows: in its memory and in its store."""

    def __init__(self, store: Store | None, runner: str, thread: StoreThread) -> None:
        self.store, self.runner = store, runner
        self.running: dict[str, Thread] = {}
        """The threads that run in this process; without a store, all threads."""
        self._store_thread = thread
        self._used: WeakValueDictionary[str, Thread] = WeakValueDictionary()
        """Id → the object of a thread that is in use. There is one object for each thread, so that all see its
        changes.
        """

    async def call_store(self, step: Callable[[], StepResult]) -> StepResult:
        """Call a function that may use the store, in the store's own OS thread, and return its result. Without a store,
        call it directly.
        """
        return step() if self.store is None else await self._store_thread(step)

    def open(self, thread_id: str) -> Thread:
        """Return a thread in its present state. Raises ActorError: UNKNOWN_THREAD for an unknown id, or
        RECORDING_FAILED if its journal cannot be read.
        """
        thread = self.running.get(thread_id) or self._used.get(thread_id)
        with _convert_store_errors(thread_id):
            if thread is not None:
                thread.refresh()
            elif self.store is not None and self.store.length(f"{JOURNAL}{thread_id}"):
                thread = self.open_or_create(thread_id)
        if thread is None or not thread.view.exists:
            raise unknown_thread_error(thread_id)
        return thread

    def open_or_create(self, thread_id: str) -> Thread:
        """Return the thread in memory, or else read its journal, which is created if there is none. Raises ActorError
        (RECORDING_FAILED) if the journal cannot be read.
        """
        thread = self.running.get(thread_id) or self._used.get(thread_id)
        if thread is None:
            with _convert_store_errors(thread_id):
                thread = Thread(thread_id, self.store, self.runner)
            self._used[thread_id] = thread
        elif self.store is not None:
            with _convert_store_errors(thread_id):
                thread.read() if thread.is_behind and not thread.is_mine else thread.refresh()
        return thread if self.store is not None else self.running.setdefault(thread_id, thread)

    def view(self, thread_id: str) -> ThreadView:
        """Return the state of a thread. May be called in any OS thread. Raises ActorError: UNKNOWN_THREAD for an
        unknown id, or RECORDING_FAILED if its journal cannot be read.
        """
        if self.store is None:
            return self.open(thread_id).view
        with _convert_store_errors(thread_id):
            has_records = self.store.length(f"{JOURNAL}{thread_id}")
            view = Thread(thread_id, self.store, self.runner).view if has_records else ThreadView()
        if not view.exists:
            raise unknown_thread_error(thread_id)
        return view

    def ids(self) -> list[str]:
        """Return the sorted ids of all threads in memory and in the store. An empty journal does not count as a
        thread.
        """
        stored = [name for name in self.names() if self.store is not None and self.store.length(f"{JOURNAL}{name}")]
        return sorted({*tuple(self.running), *stored})

    def names(self) -> list[str]:
        """Return the thread ids of all journals in the store, also of empty journals."""
        names = () if self.store is None else self.store.names()
        return [name.removeprefix(JOURNAL) for name in names if name.startswith(JOURNAL)]


@contextmanager
def _convert_store_errors(thread_id: str) -> Iterator[None]:
    """Convert a SessionError in the `with` block to ActorError (RECORDING_FAILED), which is retryable unless the
    journal is invalid.
    """
    try:
        yield
    except SessionError as error:
        is_damaged = isinstance(error, JournalInvalid)
        reason = f"thread {thread_id} cannot be read: {error}"
        raise ActorError(ErrorCode.RECORDING_FAILED, reason, retryable=not is_damaged) from error


def run_step(message: Message, thread: Thread, step: Callable[[Thread], Response]) -> Response:
    """Return the response of `step(thread)`. If it raises INVALID_STATE, record and return the ERROR, so that a
    repeated message gets the same response.
    """
    try:
        return step(thread)
    except ActorError as error:
        if error.code is not ErrorCode.INVALID_STATE:
            raise
        response = message.error(error)
        thread.record("refused", {}, message, response)
        return response


def fail(thread: Thread, error: BaseException) -> None:
    """Record that a thread failed with this error, unless it has ended. Raises RecordingFailed if the error is a
    failure of the journal, which does not end the thread.
    """
    if isinstance(error, RecordingFailed):
        raise error
    if not isinstance(error, ActorError):
        logger.error("thread %s failed", thread.thread_id, exc_info=error)
        error = ActorError(ErrorCode.FAILED, one_line(f"{type(error).__name__}: {error}"))
    if error.code is ErrorCode.RECORDING_FAILED:
        raise RecordingFailed(str(error)) from error
    if not thread.view.is_over:
        fields = {**error.details, "error_message": str(error), "error_code": error.code.value}
        thread.record("failed", fields)


def unknown_thread_error(thread_id: str) -> ActorError:
    """Return the ActorError (UNKNOWN_THREAD) for an unknown thread."""
    reason = f"no thread has the id {thread_id!r}; create the thread first, or look up the ids of all threads"
    return ActorError(ErrorCode.UNKNOWN_THREAD, reason, thread_id=thread_id)
