"""The file in which conversations are saved, each under a name.

    home/chats.db   a store of sabir-session, with a journal for each conversation
    home/history    the messages that the user typed, for the editor's upward key

    -c ──▶ the last conversation      --name N ──▶ the conversation N, new or saved      neither ──▶ the next number

The file is opened for writing before anything is sent to a model, so that no answer is lost.
"""

import itertools
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TypeAlias

import sabir
import sabir_session
from sabir.authoring import SyncClosing, did_you_mean, one_line
from sabir_session import InnerMessage, SQLiteStore

from sabir_cli.chat.summaries import LONGEST_NAME, STORE_FILE, WAIT, Summary, is_locked, read_summaries
from sabir_cli.facts import open_adapter
from sabir_cli.inputs import choose_model
from sabir_cli.output import Output, UsageError

SYSTEM = "system"
"""The policy of messages with instructions to the model."""
AnyConversation: TypeAlias = "sabir_session.Conversation[Any]"  # Any: the type of its output


def last_origin(records: Sequence[InnerMessage]) -> sabir.Origin | None:
    """Return the origin of the last reply; None without a reply. Only messages of replies have an origin."""
    origins = (message.origin for record in reversed(records) for message in record.messages)
    return next(filter(None, origins), None)


SET_HOME = "set SABIR_HOME to a folder that you may write"


class Home(SyncClosing):
    """The file with all conversations, created if it does not exist.

    Raises UsageError if the file cannot be opened for writing. `remedy` is appended to the error's text.
    """

    def __init__(self, folder: Path, remedy: str = "") -> None:
        self.folder = folder
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.store = SQLiteStore(folder / STORE_FILE)
        except (OSError, sabir_session.StoreError) as error:
            locked = is_locked(error.__cause__)
            reason = "the file is locked" if locked else error.strerror if isinstance(error, OSError) else error
            remedy = f"{WAIT if locked else SET_HOME}{remedy}"
            raise UsageError(f"conversations cannot be saved in {str(folder)!r}: {reason}; {remedy}") from None

    def close(self) -> None:
        """Close the file."""
        self.store.close()

    def summaries(self) -> list[Summary]:
        """Return a summary of each conversation that has a message of the user, the latest first."""
        return read_summaries(self.folder / STORE_FILE)

    def messages(self, name: str) -> list[sabir.Message]:
        """Return all recorded messages of a conversation. Raises UsageError for an unknown name."""
        self._check_name(name)
        return [message for record in self.records(name) for message in record.messages]

    def sent_messages(self, name: str) -> list[sabir.Message]:
        """Return the messages that the next request would send: all messages except replaced instructions.

        Raises UsageError for an unknown name.
        """
        self._check_name(name)
        return [*sabir_session.current_messages(self.records(name))]

    def delete(self, name: str) -> None:
        """Delete a conversation.

        Raises UsageError for an unknown name, and ConversationBusy while another process uses the conversation.
        """
        self._check_name(name)
        claim = self.store.claim(name)
        try:
            self.store.delete(name)
        finally:
            claim.release()

    def records(self, name: str) -> tuple[InnerMessage, ...]:
        """Return a conversation's records in order; () for an unknown name."""
        if self.store.length(name) is None:
            return ()
        session = sabir_session.Session(journal=self.store.journal(name))
        sabir_session.enable_inner_message_recording(session)
        return tuple(sabir_session.get_inner_messages(session))

    def _check_name(self, name: str) -> None:
        known = self.store.names()
        if name not in known:
            hint = did_you_mean(name, known, "`sabir chats` lists them")
            raise UsageError(f"no conversation {name!r} is saved in {str(self.folder)!r}; {hint}")


class ChatLocation(ExitStack):
    """Where one conversation is stored: in the home under a name, or, without a home, only in memory. A context
    manager, which closes the conversation and the home.
    """

    def __init__(self, home: Home | None = None, name: str | None = None) -> None:
        super().__init__()
        self.name = name
        self._home = None if home is None else self.enter_context(home)
        self.origin = last_origin(home.records(name)) if home and name else None
        """The origin of the last answer in a saved conversation; None for a new conversation."""

    @classmethod
    def of(cls, folder: Path, name: str | None, *, continues_last: bool, is_saved: bool) -> "ChatLocation":
        """Return the location for the flags: `name` is --name, `continues_last` is -c, and `is_saved` is False for
        --no-keep.

        Raises UsageError for an invalid name, for a file that is not writable, and for -c without a saved conversation.
        """
        if not is_saved:
            return cls()
        if name is not None and not name.strip():
            raise UsageError("--name is empty; write a name after it, or remove --name")
        if name is not None and (not name.isprintable() or len(name) > LONGEST_NAME):
            excerpt = one_line(ascii(name), 60)
            raise UsageError(
                f"--name {excerpt} is not a valid name; use one line of at most {LONGEST_NAME} printable characters"
            )
        home = Home(folder, ", or add --no-keep")
        if continues_last:
            summaries = home.summaries()
            if not summaries:
                home.close()
                raise UsageError("-c: no conversation is saved yet; remove -c to begin a conversation")
            name = summaries[0].name
        return cls(home, name)

    def adapter(self, model: str | None, base_url: str | None, output: Output) -> sabir.ModelAdapter:
        """Return the adapter for `model`; with None, for the model of the last answer, else for the default model.

        Without `model`, a conversation continues in the dialect of its last answer, and a note is printed if
        `provider:model` means another dialect today. A note is also printed if the last answer came from another
        endpoint and there is neither `model` nor `base_url`.
        """
        last = f"{self.origin.provider}:{self.origin.model}" if self.origin else ""
        continued = sabir_session.continued_model(last, [self.origin]) if self.origin else ""
        llm = open_adapter(model or continued or choose_model(None), base_url)
        if continued != last and not model:
            reason = f"continuing with {continued}, the model and dialect of the last answer"
            output.note(f"{reason}; to use the dialect that {last} means today, add -m {last}")
        if self.origin and not (model or base_url) and llm.target.endpoint != self.origin.endpoint:
            endpoint = self.origin.endpoint
            output.note(f"the last answer came from {endpoint}; to continue there, add --base-url {endpoint}", "yellow")
        return llm

    def open(
        self, model: sabir.ModelAdapter, instructions: str | None, default: str | None, **arguments: Any
    ) -> AnyConversation:
        """Return the conversation, which is closed at the end of the `with` block.

        `instructions`, if not None, replaces the instructions of a continued conversation. Without `instructions`, a
        new conversation gets `default`. Raises ConversationBusy while another process uses the conversation.
        """
        conversation = self._open_conversation(model=model, **arguments)
        if instructions is not None:
            conversation.instructions = instructions
        elif not conversation.messages:
            conversation.instructions = default or ""
        return conversation

    def _open_conversation(self, **arguments: Any) -> AnyConversation:  # the arguments of Conversation
        if self._home is None:
            return self.enter_context(sabir_session.Conversation(**arguments))
        if self.name is not None:
            return self._close_at_exit(sabir_session.Conversation(**arguments, keep=self._home.store, name=self.name))
        for name in self._numbers():
            try:
                conversation = sabir_session.Conversation(**arguments, keep=self._home.store, name=name)
            except sabir_session.ConversationBusy:
                continue
            if not conversation.messages:
                self.name = name
                return self._close_at_exit(conversation)
            conversation.close()
        raise AssertionError("numbers have no end")

    def _numbers(self) -> Iterator[str]:
        assert self._home is not None
        numbers = [int(name) for name in self._home.store.names() if name.isdecimal()]
        yield from map(str, itertools.count(max(numbers, default=0) + 1))

    def _close_at_exit(self, conversation: AnyConversation) -> AnyConversation:
        self.callback(self._close_conversation, conversation)
        return conversation

    def _close_conversation(self, conversation: AnyConversation) -> None:
        """Close the conversation, and delete it if it has no messages."""
        if not conversation.messages and self._home is not None and self.name is not None:
            self._home.store.delete(self.name)
        conversation.close()
