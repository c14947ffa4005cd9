"""Where a conversation of `sabir chat` is kept: nowhere, in a history file, or in a session that survives a crash.

Kept ── turn(message) ──▶ Turn
├── History     --history FILE   saved after each turn; a failed turn leaves it as it was
└── Recorded    --session FILE   each message the moment it is there; --resume finishes what was interrupted
"""

from abc import ABC, abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING

import sabir
from sabir.closing import SyncClosing
from sabir_runtime import follow_up
from sabir_runtime.conversation import restore
from sabir_runtime.prompt import Prompt
from sabir_session import Session, SQLiteStore, enable_inner_message_recording, get_inner_messages

from sabir_cli.exits import UsageError
from sabir_cli.turns import Turn, take_turn

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sabir_cli.output import Output

JOURNAL = "chat"
"""The name of the one conversation in a session's file."""


class Kept(SyncClosing, ABC):
    """A conversation with a model."""

    FORGOTTEN = "this turn is forgotten"
    """What becomes of a turn that failed."""
    is_resumable = False
    """Whether a turn that was interrupted can be finished later."""

    def __init__(self, llm: sabir.ModelAdapter, options: "Sequence[sabir.Option]", output: "Output") -> None:
        self.llm = llm
        self.options = options
        self.output = output

    @property
    @abstractmethod
    def is_begun(self) -> bool:
        """Whether anything was said."""

    @property
    def is_interrupted(self) -> bool:
        """Whether the last turn has no end yet; only what is recorded can tell."""
        return False

    @abstractmethod
    def turn(self, *said: sabir.Message) -> Turn:
        """Say something and hear all of the answer."""

    def close(self) -> None:
        """Nothing is open."""


class History(Kept):
    """A conversation in memory, and in a file where one is given."""

    def __init__(
        self, llm: sabir.ModelAdapter, options: "Sequence[sabir.Option]", output: "Output", file: Path | None
    ) -> None:
        super().__init__(llm, options, output)
        self.file = file
        self.messages = [] if file is None else _read(file)

    @property
    def is_begun(self) -> bool:
        """Whether anything was said."""
        return bool(self.messages)

    def turn(self, *said: sabir.Message) -> Turn:
        """Say something and hear all of the answer; what fails leaves the conversation as it was."""
        turn = take_turn(self.llm, [*self.messages, *said], self.options, self.output)
        self.messages = list(turn.messages)
        if self.file is not None:
            sabir.save(self.file, self.messages)
        return turn


class Recorded(Kept):
    """A conversation in a session's file: nothing of it is lost, and nothing that was finished is run again."""

    FORGOTTEN = "what was said is kept; --resume answers it"
    is_resumable = True

    def __init__(
        self, llm: sabir.ModelAdapter, options: "Sequence[sabir.Option]", output: "Output", file: Path
    ) -> None:
        super().__init__(llm, options, output)
        if not file.absolute().parent.is_dir():
            raise UsageError(f"--session {str(file)!r}: there is no folder {str(file.parent)!r}; make it first")
        self.store = SQLiteStore(file)
        self.session = Session(journal=self.store.journal(JOURNAL))
        enable_inner_message_recording(self.session)

    @property
    def is_begun(self) -> bool:
        """Whether anything was said; a process that dies before the first message is recorded leaves instructions."""
        return any(record.role != "system" for record in get_inner_messages(self.session))

    @property
    def is_interrupted(self) -> bool:
        """Whether the last turn has no end yet."""
        return self.is_begun and not restore(self.session, Prompt(), self.llm.speaks_as).is_over

    def turn(self, *said: sabir.Message) -> Turn:
        """Say something and hear all of the answer; without anything to say, finish the last turn."""
        if said and self.is_begun:
            follow_up(self.session, *said)
            said = ()
        return take_turn(self.llm, said, self.options, self.output, self.session)

    def close(self) -> None:
        """Close the file."""
        self.store.close()


def _read(history: Path) -> list[sabir.Message]:
    if history.exists():
        return sabir.load(history)
    if not history.parent.is_dir():
        raise UsageError(f"--history {str(history)!r}: there is no folder {str(history.parent)!r}; make it first")
    return []
