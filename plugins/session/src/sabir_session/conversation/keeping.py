"""Storage of a conversation: a session, in memory or with a journal in a store, and the claim on the journal.

A claim is the right of this process to write to the journal.

    keep="chats.db", name="trip" ──▶ store ──claim──▶ journal "trip" ──▶ session ──▶ the current evaluation
                                       ├── rewind: removes or replaces the last turn
                                       └── fork: a journal that begins with the same records

A question is one record, so a crash cannot separate its messages. After an error, the state is read from the records.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path

from sabir import Message

from sabir_session.errors import ConversationBusy, RecordingFailed, StoreError
from sabir_session.evaluation.evaluations import Evaluation, begin, heading_of, resumed, turn_start
from sabir_session.evaluation.prompts import ConversationNotFound, Prompt
from sabir_session.evaluation.writing import SYSTEM, RecordWriter, messages_of, spent_in
from sabir_session.records import (
    InnerMessage,
    InstructionsMark,
    SpentReply,
    as_recorded,
    enable_inner_message_recording,
    get_inner_messages,
)
from sabir_session.state.codec import Codec
from sabir_session.state.session import Session
from sabir_session.stores.claims import Claim, claim_journal
from sabir_session.stores.engines import open_store
from sabir_session.stores.journal import StoredJournal
from sabir_session.stores.store import Store


class Opened:
    """A store, and the number of conversations that use it.

    If this object opened the store, the store is closed when the last conversation leaves.
    """

    def __init__(self, keep: str | Path | Store) -> None:
        self.store = keep if isinstance(keep, Store) else open_store(keep)
        self.is_own = self.store is not keep
        self.users = 0

    def leave(self) -> None:
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


class Kept:
    """The storage of one conversation. `keep` is None for memory, or a path, a URL or a store.

    `session` contains the records of a conversation in memory; None means a new session. Raises StoreError if the store
    cannot be opened, and ConversationBusy if another process has the conversation open.
    """

    def __init__(self, keep: str | Path | Store | Opened | None, name: str, session: Session | None = None) -> None:
        self.name = name
        self._opened = keep if isinstance(keep, Opened) or keep is None else Opened(keep)
        self._journal: StoredJournal | None = None
        self._claim: Claim | None = None
        self.evaluation: Evaluation | None = None
        if self._opened is not None:
            self._opened.users += 1
        try:
            self._claim = Claim(name) if self._opened is None else claim_journal(self._opened.store, name)
            self._open(session)
        except BaseException:
            self.close()
            raise

    def _open(self, session: Session | None = None) -> None:
        if session is None:
            self._journal = None if self._opened is None else self._opened.store.journal(self.name)
            session = Session(journal=self._journal)
        enable_inner_message_recording(session)
        self.session, self.evaluation = session, None
        self._reload()

    def _reload(self) -> None:
        """Rebuild the evaluation from its records, for example after an error in the middle of a question.

        A journal may contain several evaluations. The first time, the evaluation of the last record is used, by the
        order of the records, because clocks may have been set back.
        """
        name = None if self.evaluation is None else self.evaluation.heading.evaluation_id
        if name is None:
            last = self.session.select_last(InnerMessage)
            name = None if last is None else last.evaluation_id
        records = () if name is None else get_inner_messages(self.session, name)
        self.evaluation = resumed(records) if records else None

    @contextmanager
    def asking(self) -> Iterator[None]:
        """Reserve the conversation for one question in the `with` block. After an error, reload the recorded state.

        Raises ConversationBusy if a question is being answered, or if another object has continued the conversation,
        and StoreError if the conversation is closed.
        """
        if self._claim is None:
            raise StoreError(f"the conversation {self.name!r} is closed; open it again with Conversation(…)")
        with self._claim.asking():
            if self._journal is not None and not self._journal.is_latest:
                reason = f"the conversation {self.name!r} was continued through another object"
                raise ConversationBusy(f"{reason}; use that object, or open the conversation again")
            try:
                yield
            except BaseException:
                self._reload()
                raise

    @property
    def messages(self) -> tuple[Message, ...]:
        """All recorded messages, with every version of the instructions."""
        return () if self.evaluation is None else tuple(self.evaluation.messages)

    @property
    def instructions(self) -> Message | None:
        """The current recorded instructions, or None."""
        return None if self.evaluation is None else self.evaluation.instructions

    def sent_with(self, question: tuple[Message, ...], instructions: InstructionsMark) -> list[Message]:
        """Return the messages of the request for a question, without recording the question."""
        if self.evaluation is None:
            return [*question]
        return self.evaluation.sent_with(question, instructions)

    @contextmanager
    def lent_with(self, question: tuple[Message, ...], instructions: InstructionsMark) -> Iterator[list[Message]]:
        """Yield the list of `sent_with` for the `with` block. The caller must copy what it needs."""
        if self.evaluation is None:
            yield [*question]
            return
        with self.evaluation.lent_with(question, instructions) as messages:
            yield messages

    @property
    def is_unfinished(self) -> bool:
        """Whether the last question has no answer yet. Instructions alone are not a question."""
        if self.evaluation is None or self.evaluation.is_over:
            return False
        return any(message.policy != SYSTEM for message in self.evaluation.last_turn.messages)

    def say(self, question: tuple[Message, ...], speaks_as: str, instructions: InstructionsMark) -> None:
        """Record a question. `instructions` says whether its first message replaces the instructions ("new").

        "none" removes the instructions, and "same" leaves them unchanged.
        """
        if self.evaluation is None:
            self.evaluation = begin(Prompt(), speaks_as)
        evaluation = self.evaluation
        for record in (*evaluation.unrecorded, evaluation.follow(*question, instructions=instructions)):
            self.session.mutate(InnerMessage).append(record)
        evaluation.unrecorded = ()

    def drop_last(self) -> tuple[Message, ...]:
        """Remove the last turn (a question and all messages after it), and return its messages.

        Raises ConversationNotFound if nothing was asked, and StoreError if records of something else follow the turn.
        """
        with self.asking():
            records, start, dropped = self._last_turn()
            stored = None if self._journal is None else self._place_in(self._journal, records, start)
            spent = _record_of_spent(records, start)
            if stored is None or self._opened is None:
                self._open(self._without(records, start, spent))
            else:
                codec = Codec(InnerMessage)
                bodies = [(InnerMessage.stored_as, codec.encode(record)) for record in spent]
                self._opened.store.rewind(self.name, *stored, bodies)
                self._open()
            return dropped

    @contextmanager
    def replacing_last(self) -> Iterator[tuple[Message, ...]]:
        """Replace the last turn with the turn of the `with` block. Yields the messages of the old turn.

        In the block, the conversation is in memory only. If the block ends without an exception and the last question
        is answered, one transaction replaces the old turn in the store. Otherwise the old turn is restored.
        """
        with self.asking():
            records, start, dropped = self._last_turn()
            journal, opened = self._journal, self._opened
            stored = None if journal is None else self._place_in(journal, records, start)
            draft = DraftJournal(islice(journal.read(), stored[0])) if journal and stored else None
            spent = _record_of_spent(records, start)
        state = self.session, self.evaluation, journal
        draft_session = self.session
        try:
            self._journal = None
            self._open(self._without(records, start) if draft is None else Session(journal=draft))
            draft_session = self.session
            for record in spent:
                self.session.mutate(InnerMessage).append(record)
            self._reload()
            yield dropped
            if self._is_answered(start + len(spent)):
                if opened is None or draft is None or stored is None:
                    state = self.session, self.evaluation, None
                else:
                    opened.store.rewind(self.name, *stored, draft.records[stored[0] :])
        finally:
            attempt = self._spent_since(start + len(spent))
            self.session, self.evaluation, self._journal = state
            if self._claim is not None and journal is not None and not journal.is_latest:
                self._open()
            elif attempt and self._claim is not None and self.session is not draft_session:
                self._note_spent(attempt)

    def _spent_since(self, start: int) -> tuple[SpentReply, ...]:
        """Return the numbers of the replies from record `start` of the evaluation on, for the budget."""
        if self.evaluation is None:
            return ()
        return spent_in(get_inner_messages(self.session, self.evaluation.heading.evaluation_id)[start:])

    def _note_spent(self, spent: tuple[SpentReply, ...]) -> None:
        """Record the numbers of the replies of an attempt whose turn was discarded, so that a budget counts them."""
        assert self.evaluation is not None
        with suppress(RecordingFailed):  # the attempt's own error is raised
            self.session.mutate(InnerMessage).append(self.evaluation.writer.dropped(spent))
        self._reload()

    def _is_answered(self, start: int) -> bool:
        """Return whether the last question is answered and is not one of the first `start` records."""
        evaluation = self.evaluation
        if evaluation is None or not evaluation.is_over:
            return False
        return len(get_inner_messages(self.session, evaluation.heading.evaluation_id)) > start

    def _last_turn(self) -> tuple[tuple[InnerMessage, ...], int, tuple[Message, ...]]:
        """Return the records, the position among them at which the last turn begins, and the messages of that turn.

        Raises ConversationNotFound if nothing was asked.
        """
        name = None if self.evaluation is None else self.evaluation.heading.evaluation_id
        records = () if name is None else get_inner_messages(self.session, name)
        start = turn_start(records)
        messages = tuple(message for record in records[start:] for message in messages_of(record))
        if not messages:
            shown = f"the conversation {self.name!r} has no question yet"
            raise ConversationNotFound(f"{shown}, so there is no question to remove; ask one first")
        return records, start, messages

    def _place_in(self, journal: StoredJournal, records: tuple[InnerMessage, ...], start: int) -> tuple[int, int]:
        """Return the position in the journal at which the last turn begins, and the journal's length.

        Raises StoreError if other records follow the turn.
        """
        bodies = [body for _, body in journal.read()]
        at = next(at for at, body in enumerate(bodies) if str(records[start].message_id) in body)
        if len(bodies) - at != len(records) - start:
            shown = f"other records follow the last turn of the conversation {self.name!r}"
            raise StoreError(f"{shown}; use Store.rewind, which removes them too")
        return at, len(bodies)

    def _without(self, records: tuple[InnerMessage, ...], start: int, added: Iterable[InnerMessage] = ()) -> Session:
        """Return a session in memory with the records before `start` and the records `added`."""
        session = Session()
        enable_inner_message_recording(session)
        for record in (*as_recorded(records)[:start], *added):
            session.mutate(InnerMessage).append(record)
        return session

    def fork(self, name: str) -> "Kept":
        """Return the storage of a new conversation with the same records. Raises JournalExists for a used name."""
        with self.asking():
            if self._opened is None:
                return Kept(None, name, self.session.clone())
            self._opened.store.fork(self.name, name)
            return Kept(self._opened, name)

    def close(self) -> None:
        """Release the claim. Close the store, unless the caller opened it or a fork still uses it. A second call has no
        effect.
        """
        claim, opened = self._claim, self._opened
        self._claim = None
        try:
            if claim is not None:
                claim.release()
        finally:
            self._opened = None
            if opened is not None:
                opened.leave()


def _record_of_spent(records: tuple[InnerMessage, ...], start: int) -> tuple[InnerMessage, ...]:
    """Return the record of the replies from `start` on, for when they are removed; () without replies."""
    spent = spent_in(records[start:])
    if not spent:
        return ()
    heading = heading_of(records[0])
    earlier = records[:start]
    sequence = 1 + max((record.sequence for record in earlier), default=-1)
    writer = RecordWriter(heading, sequence, max((record.turn for record in earlier), default=0))
    return (writer.dropped(spent),)
