"""Where a conversation is kept: a session, in memory or on a journal of a store, and the claim on that journal.

    keep="chats.db", name="trip" ──▶ store ──claim──▶ journal "trip" ──▶ session ──▶ the evaluation that goes on
                                       ├── rewind: the last turn is taken back
                                       └── fork: a journal that begins with all of this one

A question is one record, so that no crash divides it. After an error, the records say where the conversation stands.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sabir import Message

from sabir_session.errors import ConversationBusy, StoreError
from sabir_session.evaluation.evaluations import Evaluation, begin, resumed, turn_start
from sabir_session.evaluation.prompts import ConversationNotFound, Prompt
from sabir_session.evaluation.writing import SYSTEM, messages_of
from sabir_session.records import (
    InnerMessage,
    as_recorded,
    enable_inner_message_recording,
    get_inner_messages,
)
from sabir_session.state.session import Session
from sabir_session.stores.claims import Claim, claim_journal
from sabir_session.stores.engines import open_store
from sabir_session.stores.journal import StoredJournal
from sabir_session.stores.store import Store


class Opened:
    """A store, and how many conversations use it; one that was opened here is closed after the last of them."""

    def __init__(self, keep: str | Path | Store) -> None:
        self.store = keep if isinstance(keep, Store) else open_store(keep)
        self.is_own = self.store is not keep
        self.users = 0

    def leave(self) -> None:
        """One conversation uses it no more."""
        self.users -= 1
        if self.is_own and self.users <= 0:
            self.store.close()


class Kept:
    """One conversation's records. `keep` is None for memory, a path, a URL or a store; raises StoreError.

    Raises ConversationBusy if another process holds the conversation.
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
        """Rebuild the evaluation from its records, as after an error in the middle of a question.

        A journal may hold several evaluations. The first time, the one that recorded last is chosen: by the order of
        the records, because clocks may have been set back.
        """
        name = None if self.evaluation is None else self.evaluation.heading.evaluation_id
        if name is None:
            last = self.session.select_last(InnerMessage)
            name = None if last is None else last.evaluation_id
        records = () if name is None else get_inner_messages(self.session, name)
        self.evaluation = resumed(records) if records else None

    @contextmanager
    def asking(self) -> Iterator[None]:
        """Answer one question in the `with` block; after an error, reload the state from the records.

        Raises ConversationBusy if a question is being answered, here or elsewhere, or if another object has continued
        the conversation; StoreError if the conversation is closed.
        """
        if self._claim is None:
            raise StoreError(f"the conversation {self.name!r} is closed; open it again")
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
        """All messages, the instructions first."""
        return () if self.evaluation is None else tuple(self.evaluation.messages)

    @property
    def is_unfinished(self) -> bool:
        """Whether the last question has no answer yet; instructions alone ask nothing."""
        if self.evaluation is None or self.evaluation.is_over:
            return False
        return any(message.policy != SYSTEM for message in self.evaluation.last_turn.messages)

    def say(self, question: tuple[Message, ...], speaks_as: str) -> None:
        """Record a question."""
        if self.evaluation is None:
            self.evaluation = begin(Prompt(), speaks_as)
        evaluation = self.evaluation
        for record in (*evaluation.unrecorded, evaluation.follow(*question)):
            self.session.mutate(InnerMessage).append(record)
        evaluation.unrecorded = ()

    def drop_last(self) -> tuple[Message, ...]:
        """Take back the last turn; return its messages. Raises ConversationNotFound if nothing was asked."""
        with self.asking():
            name = None if self.evaluation is None else self.evaluation.heading.evaluation_id
            records = () if name is None else get_inner_messages(self.session, name)
            start = turn_start(records)
            dropped = tuple(message for record in records[start:] for message in messages_of(record))
            if not dropped:
                shown = f"nothing was said in the conversation {self.name!r}"
                raise ConversationNotFound(f"{shown}; there is nothing to take back")
            self._open(self._without(records, start))
            return dropped

    def _without(self, records: tuple[InnerMessage, ...], start: int) -> Session | None:
        """The session without the records from `start` on; None if the journal has to be opened again."""
        if self._opened is not None and self._journal is not None:
            bodies = [body for _, body in self._journal.read()]
            first = str(records[start].message_id)
            at = next((at for at, body in enumerate(bodies) if first in body), None)
            if at is None or len(bodies) - at != len(records) - start:
                shown = f"other records follow the last turn of the conversation {self.name!r}"
                raise StoreError(f"{shown}; take it back with Store.rewind, which takes these too")
            self._opened.store.rewind(self.name, at, len(bodies))
            return None
        session = Session()
        enable_inner_message_recording(session)
        for record in as_recorded(records)[:start]:
            session.mutate(InnerMessage).append(record)
        return session

    def fork(self, name: str) -> "Kept":
        """Another conversation that begins with all of this one; raises JournalExists if the name is taken."""
        with self.asking():
            if self._opened is None:
                return Kept(None, name, self.session.clone())
            self._opened.store.fork(self.name, name)
            return Kept(self._opened, name)

    def close(self) -> None:
        """Give the claim up, and the store; doing so twice is harmless."""
        claim, opened = self._claim, self._opened
        self._claim = None
        try:
            if claim is not None:
                claim.release()
        finally:
            self._opened = None
            if opened is not None:
                opened.leave()
