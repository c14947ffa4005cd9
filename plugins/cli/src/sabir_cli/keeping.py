"""Where a conversation of `sabir chat` is kept: nowhere, in a history file, or in a session that survives a crash.

Kept ── turn(message) ──▶ Turn           drop_last() takes the last one back
├── History     --history FILE   saved after each turn; a failed turn leaves it as it was
└── Recorded    --session FILE   each message the moment it is there; --resume finishes what was interrupted
                                 chat ─┬─ · ─ · ─ turn     a log is never erased: removed turns stay in it,
                                       └─ chat-2 ─ turn    and a fork from before them continues (one row)
"""

from abc import ABC, abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING

import sabir
from sabir.authoring import SyncClosing
from sabir_session import (
    Session,
    SQLiteStore,
    enable_inner_message_recording,
    follow_up,
    get_inner_messages,
    unfinished_evaluations,
)

from sabir_cli.exits import UsageError
from sabir_cli.turns import Turn, take_turn

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sabir_cli.output import Output

SYSTEM, USER = "system", "user"
"""The policies of instructions and of the user's messages."""
JOURNAL = "chat"
"""The name of the one conversation in a session's file; "chat-2" continues from before its removed turns."""


class Kept(SyncClosing, ABC):
    """A conversation with a model."""

    FORGOTTEN = "this turn is forgotten"
    """What happens to a failed turn, in words."""
    is_resumable = False
    """Whether a turn that was interrupted can be finished later."""

    def __init__(
        self, llm: sabir.ModelAdapter, options: "Sequence[sabir.Option]", output: "Output", file: Path | None = None
    ) -> None:
        self.llm, self.options, self.output = llm, options, output
        self._read(file)

    @abstractmethod
    def _read(self, file: Path | None) -> None:
        """Read the stored messages; raises UsageError for a file that cannot store any."""

    @property
    @abstractmethod
    def is_begun(self) -> bool:
        """Whether anything was said."""

    @property
    def is_interrupted(self) -> bool:
        """Whether the last turn is unfinished; only recorded conversations know."""
        return False

    @abstractmethod
    def turn(self, *said: sabir.Message) -> Turn:
        """Say something and hear all of the answer."""

    @abstractmethod
    def drop_last(self) -> str:
        """Remove the user's last message and everything after it.

        Returns its text. Raises UsageError if there is none.
        """

    def close(self) -> None:
        """Nothing to close."""


class History(Kept):
    """A conversation in memory, and in a file where one is given."""

    def _read(self, file: Path | None) -> None:
        self.file = file
        if file is not None:
            _check_folder("--history", file)
        self.messages = sabir.load(file) if file is not None and file.exists() else []

    @property
    def is_begun(self) -> bool:
        """Whether anything was said."""
        return bool(self.messages)

    def turn(self, *said: sabir.Message) -> Turn:
        """Say something and get the whole answer; a failure leaves the conversation as it was."""
        turn = take_turn(self.llm, [*self.messages, *said], self.options, self.output)
        self.messages = list(turn.messages)
        if self.file is not None:
            sabir.save(self.file, self.messages)
        return turn

    def drop_last(self) -> str:
        """Remove the user's last message and everything after it; the file is updated with the next turn."""
        said = [index for index, message in enumerate(self.messages) if message.policy == USER]
        if not said:
            raise _nothing_said()
        dropped, self.messages = self.messages[said[-1]], self.messages[: said[-1]]
        return dropped.text


class Recorded(Kept):
    """A conversation in a session's file: nothing is lost, and nothing finished runs again."""

    FORGOTTEN = "what was said is kept; --resume answers it, --drop-last or /drop takes it back"
    is_resumable = True

    def _read(self, file: Path | None) -> None:
        assert file is not None
        _check_folder("--session", file)
        self.store = SQLiteStore(file)
        self._open(max(map(_number, self.store.names()), default=1))

    def _open(self, number: int) -> None:
        self.number = number
        self.session = Session(journal=self.store.journal(_journal(number)))
        enable_inner_message_recording(self.session)

    @property
    def is_begun(self) -> bool:
        """Whether anything was said; a process that dies before the first message is recorded leaves instructions."""
        return self._evaluation is not None

    @property
    def _evaluation(self) -> str | None:
        """The id of the last evaluation with a user's message, which is the conversation."""
        said = [record for record in get_inner_messages(self.session) if record.role != SYSTEM]
        return said[-1].evaluation_id if said else None

    @property
    def is_interrupted(self) -> bool:
        """Whether the last turn is unfinished."""
        return self._evaluation in unfinished_evaluations(self.session)

    def turn(self, *said: sabir.Message) -> Turn:
        """Say something and get the whole answer; without a message, finish the last turn."""
        records = get_inner_messages(self.session)
        if said and records and (self.is_begun or said[0].policy != SYSTEM):
            follow_up(self.session, *said, evaluation_id=self._evaluation)
            said = ()
        return take_turn(self.llm, said, self.options, self.output, self.session, self._evaluation)

    def drop_last(self) -> str:
        """Remove the user's last message and everything after it: continue in a fork from before it."""
        said = [record for record in get_inner_messages(self.session) if record.role == "user"]
        if not said:
            raise _nothing_said()
        rows = self.store.journal(_journal(self.number)).read()
        at = next(at for at, (_, body) in enumerate(rows) if str(said[-1].message_id) in body)
        self.store.fork(_journal(self.number), _journal(self.number + 1), at)
        self._open(self.number + 1)
        return said[-1].content

    def close(self) -> None:
        """Close the file."""
        self.store.close()


def _journal(number: int) -> str:
    return JOURNAL if number == 1 else f"{JOURNAL}-{number}"


def _number(name: str) -> int:
    number = name.removeprefix(f"{JOURNAL}-")
    return int(number) if number.isdecimal() else 1


def _nothing_said() -> UsageError:
    return UsageError("nothing was said in this conversation yet; there is nothing to take back")


def _check_folder(flag: str, file: Path) -> None:
    if not file.absolute().parent.is_dir():
        raise UsageError(f"{flag} {str(file)!r}: there is no folder {str(file.parent)!r}; make it first")
