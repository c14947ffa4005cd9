"""Where conversations are kept: one file in the user's folder of data, and a name for each.

    home/chats.db   a store of sabir-session, a conversation under each name        home/history   what was entered

    -c ──▶ the last one      --name N ──▶ N, made if it is not there      neither ──▶ the next number

Nothing is asked before the file could be opened and written.
"""

import difflib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TypeAlias

import sabir
import sabir_session
from sabir.authoring import SyncClosing, one_line
from sabir_session import InnerMessage, SQLiteStore

from sabir_cli.chat.summaries import FILE, LONGEST_NAME, WAIT, Summary, is_locked, read_summaries
from sabir_cli.facts import open_adapter
from sabir_cli.inputs import choose_model
from sabir_cli.output import Output, UsageError

SYSTEM = "system"
"""The policy of instructions."""


Conversation: TypeAlias = "sabir_session.Conversation[Any]"  # its output is of the type that the user named


def last_origin(records: Sequence[InnerMessage]) -> sabir.Origin | None:
    """Where the last reply came from; None where there is none."""
    origins = (message.origin for record in reversed(records) for message in record.messages)
    return next(filter(None, origins), None)


SET_HOME = "set SABIR_HOME to a folder that can be written"


class Home(SyncClosing):
    """The file of conversations, made if it is not there; raises UsageError where it cannot be written."""

    def __init__(self, folder: Path, remedy: str = "") -> None:
        self.folder = folder
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.store = SQLiteStore(folder / FILE)
        except (OSError, sabir_session.StoreError) as error:
            locked = is_locked(error.__cause__)
            reason = "the file is locked" if locked else error.strerror if isinstance(error, OSError) else error
            remedy = f"{WAIT if locked else SET_HOME}{remedy}"
            raise UsageError(f"conversations cannot be kept in {str(folder)!r}: {reason}; {remedy}") from None

    def close(self) -> None:
        """Close the file."""
        self.store.close()

    def summaries(self) -> list[Summary]:
        """Return all conversations in which something was asked, in short, the latest first."""
        return read_summaries(self.folder / FILE)

    def messages(self, name: str) -> list[sabir.Message]:
        """A conversation; raises UsageError for a name that is none."""
        self._check(name)
        return [message for record in self.records(name) for message in record.messages]

    def sent_messages(self, name: str) -> list[sabir.Message]:
        """Return a conversation as it is sent, without earlier instructions; raises UsageError for an unknown name."""
        self._check(name)
        return [*sabir_session.current_messages(self.records(name))]

    def delete(self, name: str) -> None:
        """Delete a conversation; raises UsageError for a name that is none, ConversationBusy for one that is held."""
        self._check(name)
        claim = self.store.claim(name)
        try:
            self.store.delete(name)
        finally:
            claim.release()

    def records(self, name: str) -> tuple[InnerMessage, ...]:
        """What a conversation consists of, in order; nothing for a name that is none."""
        if self.store.length(name) is None:
            return ()
        session = sabir_session.Session(journal=self.store.journal(name))
        sabir_session.enable_inner_message_recording(session)
        return tuple(sabir_session.get_inner_messages(session))

    def _check(self, name: str) -> None:
        known = self.store.names()
        if name not in known:
            near = difflib.get_close_matches(name, known, 1)
            hint = f"did you mean {near[0]!r}?" if near else "`sabir chats` lists them"
            raise UsageError(f"no conversation {name!r} is kept in {str(self.folder)!r}; {hint}")


class Place(ExitStack):
    """Where one conversation is kept: in the home under a name, or, without a home, in memory."""

    def __init__(self, home: Home | None = None, name: str | None = None) -> None:
        super().__init__()
        self.name = name
        self._home = None if home is None else self.enter_context(home)
        self.origin = last_origin(home.records(name)) if home and name else None
        """Where the last answer of the conversation that goes on came from."""

    @classmethod
    def of(cls, folder: Path, name: str | None, *, last: bool, kept: bool) -> "Place":
        """The place that a command line names; raises UsageError where there is none, or it cannot be written."""
        if not kept:
            return cls()
        if name is not None and not name.strip():
            raise UsageError("--name is empty; give a name, or leave it out")
        if name is not None and (not name.isprintable() or len(name) > LONGEST_NAME):
            shown = one_line(ascii(name), 60)
            raise UsageError(f"--name {shown} is no name: give one line of at most {LONGEST_NAME} printable characters")
        home = Home(folder, ", or give --no-keep")
        if last:
            found = home.summaries()
            if not found:
                home.close()
                raise UsageError("-c: there is no conversation to go on with yet; leave it out to begin one")
            name = found[0].name
        return cls(home, name)

    def adapter(self, model: str | None, base_url: str | None, output: Output) -> sabir.ModelAdapter:
        """Return the adapter of the model that was named, else of the one that answered last, else of the default.

        A conversation continues in the dialect of its last answer, whatever `provider:model` means today.
        """
        last = f"{self.origin.provider}:{self.origin.model}" if self.origin else ""
        continued = sabir_session.continued_model(last, [self.origin]) if self.origin else ""
        llm = open_adapter(model or continued or choose_model(None), base_url)
        if continued != last and not model:
            output.note(f"continues with {continued}, which answered last; -m {last} chooses what that means today")
        if self.origin and not (model or base_url) and llm.target.endpoint != self.origin.endpoint:
            output.note(f"the last answer came from {self.origin.endpoint}; --base-url continues there", "yellow")
        return llm

    def open(
        self, model: sabir.ModelAdapter, instructions: str | None, default: str | None, **how: Any
    ) -> Conversation:
        """The conversation, closed when the place is left; raises ConversationBusy for one that another process has.

        A conversation that goes on keeps its instructions, unless there are others; `default` is for one that begins.
        """
        chat = self._open(model=model, **how)
        if instructions is not None:
            chat.instructions = instructions
        elif not chat.messages:
            chat.instructions = default or ""
        return chat

    def _open(self, **how: Any) -> Conversation:  # as Conversation has its arguments
        if self._home is None:
            return self.enter_context(sabir_session.Conversation(**how))
        if self.name is not None:
            return self._held(sabir_session.Conversation(**how, keep=self._home.store, name=self.name))
        for name in self._numbers():
            try:
                conversation = sabir_session.Conversation(**how, keep=self._home.store, name=name)
            except sabir_session.ConversationBusy:
                continue
            if not conversation.messages:
                self.name = name
                return self._held(conversation)
            conversation.close()
        raise AssertionError("numbers have no end")

    def _numbers(self) -> Iterator[str]:
        assert self._home is not None
        numbers = [int(name) for name in self._home.store.names() if name.isdecimal()]
        following = max(numbers, default=0)
        while True:
            following += 1
            yield str(following)

    def _held(self, conversation: Conversation) -> Conversation:
        self.callback(self._leave, conversation)
        return conversation

    def _leave(self, conversation: Conversation) -> None:
        """Close it; one in which nothing was said leaves no trace."""
        if not conversation.messages and self._home is not None and self.name is not None:
            self._home.store.delete(self.name)
        conversation.close()
