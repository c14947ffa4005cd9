"""Storage of a conversation: a session, in memory or with a journal in a store, and the claim on the journal.

A claim is the right of this process to write to the journal.

    keep="chats.db", name="trip" ──▶ store ──claim──▶ journal "trip" ──▶ session ──▶ the current evaluation
                                       ├── rewind: removes or replaces the last turn
                                       └── fork: a journal that begins with the same records

A question is one record, so a crash cannot separate its messages. After an error, the state is read from the records.
"""

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from itertools import islice
from pathlib import Path

from sabir import Message

from sabir_session.errors import ConversationBusy, RecordingFailed, StoreError
from sabir_session.evaluation.evaluations import Evaluation, begin_evaluation, evaluation_of, heading_of, turn_position
from sabir_session.evaluation.prompts import ConversationNotFound, Prompt
from sabir_session.record_log import enable_inner_message_recording, get_inner_messages, without_statuses
from sabir_session.records import (
    SYSTEM,
    InnerMessage,
    InstructionsMark,
    RecordWriter,
    SpentReply,
    find_spent_replies,
    messages_of,
)
from sabir_session.state.codec import Codec
from sabir_session.state.session import Session
from sabir_session.stores.claims import Claim, claim_journal
from sabir_session.stores.engines import open_store
from sabir_session.stores.journal import StoredJournal
from sabir_session.stores.store import Store


class SharedStore:
    """A store, and the number of conversations that use it.

    If this object opened the store, the store is closed when the last conversation leaves.
    """

    def __init__(self, keep: str | Path | Store) -> None:
        self.store = keep if isinstance(keep, Store) else open_store(keep)
        self.is_own = self.store is not keep
        self.users = 0

    def release(self) -> None:
        """Count one conversation less. Close the store after the last one, if this object opened the store."""
        self.users -= 1
        if self.is_own and self.users <= 0:
            self.store.close()


class DraftJournal:
    """A journal in memory: the first records of a stored journal, and records that may be stored later."""

    def __init__(self, records: Iterable[tuple[str, str]]) -> None:
        self.records = [*records]

    def __len__(self) -> int:
        """Return the number of records."""
        return len(self.records)

    def append(self, kind: str, body: str) -> None:
        """Add one record."""
        self.records.append((kind, body))

    def read(self) -> Iterator[tuple[str, str]]:
        """Return an iterator over the records in order, each as (kind, body)."""
        return iter(self.records)


class ConversationStorage:
    """The storage of one conversation. `keep` is None for memory, or a path, a URL or a store.

    `session` contains the records of a conversation in memory; None means a new session. Raises StoreError if the store
    cannot be opened, and ConversationBusy if another process has the conversation open.
    """

    def __init__(
        self, keep: str | Path | Store | SharedStore | None, name: str, session: Session | None = None
    ) -> None:
        self.name = name
        self._shared_store = keep if isinstance(keep, SharedStore) or keep is None else SharedStore(keep)
        self._journal: StoredJournal | None = None
        self._claim: Claim | None = None
        self.evaluation: Evaluation | None = None
        if self._shared_store is not None:
            self._shared_store.users += 1
        try:
            self._claim = Claim(name) if self._shared_store is None else claim_journal(self._shared_store.store, name)
            self._open_session(session)
        except BaseException:
            self.close()
            raise

    @property
    def conversation_id(self) -> str:
        """The conversation's id in traces: its name in a store. "" without a store, because the name is not unique."""
        return "" if self._shared_store is None else self.name

    def _open_session(self, session: Session | None = None) -> None:
        if session is None:
            self._journal = None if self._shared_store is None else self._shared_store.store.journal(self.name)
            session = Session(journal=self._journal)
        enable_inner_message_recording(session)
        self.session, self.evaluation = session, None
        self._reload()

    def _reload(self) -> None:
        """Rebuild the evaluation from its records, for example after an error in the middle of a question.

        A journal may contain several evaluations. The first time, the evaluation of the last record is used, by the
        order of the records, because clocks may have been set back.
        """
        last = self.session.select_last(InnerMessage)
        if self.evaluation is None and last is not None:
            self.evaluation = evaluation_of(get_inner_messages(self.session, last.evaluation_id))
        else:
            records = self._records()
            self.evaluation = evaluation_of(records) if records else None

    def _records(self) -> tuple[InnerMessage, ...]:
        """Return the records of the evaluation."""
        if self.evaluation is None:
            return ()
        return get_inner_messages(self.session, self.evaluation.heading.evaluation_id)

    @contextmanager
    def reserve(self) -> Iterator[None]:
        """Reserve the conversation for one question in the `with` block. After an error, reload the recorded state.

        Raises ConversationBusy if a question is being answered, and StoreError if the conversation is closed.
        """
        claim = self._claim
        if claim is None:
            raise StoreError(f"the conversation {self.name!r} is closed; open it again with Conversation(…)")
        claim.acquire()
        try:
            yield
        except BaseException:
            self._reload()
            raise
        finally:
            claim.question.release()

    def check_latest(self) -> None:
        """Raise ConversationBusy if the conversation was continued elsewhere or deleted."""
        if self._journal is not None and not self._journal.is_latest:
            reason = f"the conversation {self.name!r} was continued through another object, or deleted"
            raise ConversationBusy(f"{reason}; use the other object, or open the conversation again")

    @property
    def messages(self) -> tuple[Message, ...]:
        """All recorded messages, with every version of the instructions."""
        return () if self.evaluation is None else tuple(self.evaluation.messages)

    @property
    def instructions(self) -> Message | None:
        """The current recorded instructions, or None."""
        return None if self.evaluation is None else self.evaluation.instructions

    def messages_with(self, question: tuple[Message, ...], instructions: InstructionsMark) -> list[Message]:
        """Return the messages of the request for a question, without recording the question."""
        if self.evaluation is None:
            return [*question]
        return self.evaluation.messages_with(question, instructions)

    def lend_messages(
        self, question: tuple[Message, ...], instructions: InstructionsMark
    ) -> AbstractContextManager[list[Message]]:
        """Return a context manager that yields the list of `messages_with`. The caller must copy what it needs."""
        evaluation = self.evaluation
        return nullcontext([*question]) if evaluation is None else evaluation.lend_messages(question, instructions)

    @property
    def is_unfinished(self) -> bool:
        """Whether the last question has no answer yet. Instructions alone are not a question."""
        if self.evaluation is None or self.evaluation.is_over:
            return False
        return any(message.policy != SYSTEM for message in self.evaluation.last_turn.messages)

    def record_question(self, question: tuple[Message, ...], speaks_as: str, instructions: InstructionsMark) -> None:
        """Record a question. `instructions` says whether its first message replaces the instructions ("new").

        "none" removes the instructions, and "same" leaves them unchanged. Raises the errors of `check_latest`, which is
        called only if the question cannot be recorded, because the journal accepts no record after those of others.
        """
        if self.evaluation is None:
            self.evaluation = begin_evaluation(Prompt(), speaks_as)
        evaluation = self.evaluation
        try:
            for record in (*evaluation.unrecorded, evaluation.add_messages(*question, instructions=instructions)):
                self.session.mutate(InnerMessage).append(record)
        except RecordingFailed:
            self.check_latest()
            raise
        evaluation.unrecorded = ()

    def drop_last(self) -> tuple[Message, ...]:
        """Remove the last turn (a question and all messages after it), and return its messages.

        Raises ConversationNotFound if nothing was asked, and StoreError if records of something else follow the turn.
        """
        with self.reserve():
            self.check_latest()
            records, start, dropped = self._last_turn()
            positions = None if self._journal is None else self._find_turn(self._journal, records, start)
            spent = _spent_records(records, start)
            if positions is None or self._shared_store is None:
                self._open_session(self._copy_session(records, start, spent))
            else:
                codec = Codec(InnerMessage)
                bodies = [(InnerMessage.stored_as, codec.encode(record)) for record in spent]
                self._shared_store.store.rewind(self.name, *positions, bodies)
                self._open_session()
            return dropped

    @contextmanager
    def replacing_last(self) -> Iterator[tuple[Message, ...]]:
        """Replace the last turn with the turn of the `with` block. Yields the messages of the old turn.

        In the block, the conversation is in memory only. If the block ends without an exception and the last question
        is answered, one transaction replaces the old turn in the store. Otherwise the old turn is restored.
        """
        with self.reserve():
            self.check_latest()
            records, start, dropped = self._last_turn()
            journal, shared_store = self._journal, self._shared_store
            positions = None if journal is None else self._find_turn(journal, records, start)
            draft = DraftJournal(islice(journal.read(), positions[0])) if journal and positions else None
            spent = _spent_records(records, start)
        state = self.session, self.evaluation, journal
        draft_session = self.session
        try:
            self._journal = None
            self._open_session(self._copy_session(records, start) if draft is None else Session(journal=draft))
            draft_session = self.session
            for record in spent:
                self.session.mutate(InnerMessage).append(record)
            self._reload()
            yield dropped
            if self._is_answered(start + len(spent)):
                if shared_store is None or draft is None or positions is None:
                    state = self.session, self.evaluation, None
                else:
                    shared_store.store.rewind(self.name, *positions, draft.records[positions[0] :])
        finally:
            attempt_spent = self._spent_since(start + len(spent))
            self.session, self.evaluation, self._journal = state
            if self._claim is not None and journal is not None and not journal.is_latest:
                self._open_session()
            elif attempt_spent and self._claim is not None and self.session is not draft_session:
                self._record_spent(attempt_spent)

    def _spent_since(self, start: int) -> tuple[SpentReply, ...]:
        """Return the numbers of the replies from record `start` of the evaluation on, for the budget."""
        return find_spent_replies(self._records()[start:])

    def _record_spent(self, spent: tuple[SpentReply, ...]) -> None:
        """Record the numbers of the replies of an attempt whose turn was discarded, so that a budget counts them."""
        assert self.evaluation is not None
        with suppress(RecordingFailed):  # the attempt's own error is raised
            self.session.mutate(InnerMessage).append(self.evaluation.writer.dropped_record(spent))
        self._reload()

    def _is_answered(self, start: int) -> bool:
        """Return whether the last question is answered and is not one of the first `start` records."""
        return self.evaluation is not None and self.evaluation.is_over and len(self._records()) > start

    def _last_turn(self) -> tuple[tuple[InnerMessage, ...], int, tuple[Message, ...]]:
        """Return the records, the position among them at which the last turn begins, and the messages of that turn.

        Raises ConversationNotFound if nothing was asked.
        """
        records = self._records()
        start = turn_position(records)
        messages = tuple(message for record in records[start:] for message in messages_of(record))
        if not messages:
            reason = f"the conversation {self.name!r} has no question yet"
            raise ConversationNotFound(f"{reason}, so there is no question to remove; ask one first")
        return records, start, messages

    def _find_turn(self, journal: StoredJournal, records: tuple[InnerMessage, ...], start: int) -> tuple[int, int]:
        """Return the position in the journal at which the last turn begins, and the journal's length.

        Raises StoreError if other records follow the turn.
        """
        bodies = [body for _, body in journal.read()]
        at = next(at for at, body in enumerate(bodies) if str(records[start].message_id) in body)
        if len(bodies) - at != len(records) - start:
            reason = f"other records follow the last turn of the conversation {self.name!r}"
            raise StoreError(f"{reason}; use Store.rewind, which removes them too")
        return at, len(bodies)

    def _copy_session(
        self, records: tuple[InnerMessage, ...], start: int, added: Iterable[InnerMessage] = ()
    ) -> Session:
        """Return a session in memory with the records before `start` and the records `added`."""
        session = Session()
        enable_inner_message_recording(session)
        for record in (*without_statuses(records)[:start], *added):
            session.mutate(InnerMessage).append(record)
        return session

    def fork(self, name: str) -> "ConversationStorage":
        """Return the storage of a new conversation with the same records. Raises JournalExists for a used name."""
        with self.reserve():
            self.check_latest()
            if self._shared_store is None:
                return ConversationStorage(None, name, self.session.clone())
            self._shared_store.store.fork(self.name, name)
            return ConversationStorage(self._shared_store, name)

    def close(self) -> None:
        """Release the claim. Close the store, unless the caller opened it or a fork still uses it. A second call has no
        effect.
        """
        claim, shared_store = self._claim, self._shared_store
        self._claim = None
        try:
            if claim is not None:
                claim.release()
        finally:
            self._shared_store = None
            if shared_store is not None:
                shared_store.release()


def _spent_records(records: tuple[InnerMessage, ...], start: int) -> tuple[InnerMessage, ...]:
    """Return the record of the replies from `start` on, for when they are removed; () without replies."""
    spent = find_spent_replies(records[start:])
    if not spent:
        return ()
    heading = heading_of(records[0])
    earlier = records[:start]
    sequence = 1 + max((record.sequence for record in earlier), default=-1)
    writer = RecordWriter(heading, sequence, max((record.turn for record in earlier), default=0))
    return (writer.dropped_record(spent),)
