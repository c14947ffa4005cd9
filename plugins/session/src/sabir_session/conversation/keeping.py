"""Where a conversation is kept: a session, in memory or on a journal of a store, and the claim on that journal.

keep="chats.db", name="trip" ──▶ store ──claim──▶ journal "trip" ──▶ session ──▶ the evaluation that goes on
                                   ├── rewind: the last turn is taken back
                                   └── fork: a journal that begins with all of this one
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sabir import Message

from sabir_session.evaluation.evaluations import resumed, turn_start
from sabir_session.evaluation.prompts import ConversationNotFound
from sabir_session.evaluation.writing import SYSTEM, messages_of
from sabir_session.records import (
    InnerMessage,
    as_recorded,
    enable_inner_message_recording,
    get_inner_messages,
    get_latest_evaluation_id,
)
from sabir_session.state.session import Session
from sabir_session.stores.claims import Claim
from sabir_session.stores.engines import open_store
from sabir_session.stores.store import Store


class Kept:
    """One conversation's records. `keep` is None for memory, a path, a URL or a store; raises StoreError.

    Raises ConversationBusy if another process holds the conversation.
    """

    def __init__(self, keep: str | Path | Store | None, name: str, session: Session | None = None) -> None:
        self.name = name
        self._keep = keep
        self._store = keep if isinstance(keep, Store) or keep is None else open_store(keep)
        try:
            self._claim = Claim(name) if self._store is None else self._store.claim(name)
            self._open(session)
        except BaseException:
            self.close()
            raise

    def _open(self, session: Session | None) -> None:
        if session is None:
            session = Session(journal=None if self._store is None else self._store.journal(self.name))
        enable_inner_message_recording(session)
        self.session = session
        self.reload()

    def reload(self) -> None:
        """Make the evaluation from its records again, as after an error that left it half-way."""
        name = get_latest_evaluation_id(self.session)
        self.evaluation = None if name is None else resumed(get_inner_messages(self.session, name))
        self.is_restored = self.evaluation is not None

    @contextmanager
    def asking(self) -> Iterator[None]:
        """Answer one question; whatever is raised, the records say where the conversation stands."""
        with self._claim.asking():
            try:
                yield
                self.is_restored = False
            except BaseException:
                self.reload()
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

    def drop_last(self) -> tuple[Message, ...]:
        """Take back the last turn; return its messages. Raises ConversationNotFound if nothing was said."""
        name = None if self.evaluation is None else self.evaluation.heading.evaluation_id
        records = () if name is None else get_inner_messages(self.session, name)
        start = turn_start(records)
        dropped = tuple(message for record in records[start:] for message in messages_of(record))
        if not dropped:
            raise ConversationNotFound(
                f"nothing was said in the conversation {self.name!r}; there is nothing to take back"
            )
        with self._claim.asking():
            self._open(self._without(records, start))
        return dropped

    def _without(self, records: tuple[InnerMessage, ...], start: int) -> Session | None:
        if self._store is not None:
            rows = self._store.journal(self.name).read()
            first = str(records[start].message_id)
            self._store.rewind(self.name, next(at for at, (_, body) in enumerate(rows) if first in body))
            return None
        session = Session()
        enable_inner_message_recording(session)
        for record in as_recorded(records)[:start]:
            session.mutate(InnerMessage).append(record)
        return session

    def fork(self, name: str) -> "Kept":
        """Another conversation that begins with all of this one; raises JournalExists if the name is taken."""
        if self._store is None:
            return Kept(None, name, self.session.clone())
        self._store.fork(self.name, name)
        return Kept(self._keep, name)

    def close(self) -> None:
        """Give the claim up, and close the store if it was opened here."""
        claim, self._claim = getattr(self, "_claim", None), Claim(self.name)
        if claim is not None:
            claim.release()
        if self._store is not None and self._store is not self._keep:
            self._store.close()
