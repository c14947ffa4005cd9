"""sabir's sessions and runners, in an environment of their own: importing sabir alone is measured without them."""

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import sabir
from sabir_runtime import BaseContext, BaseRunner, InMemoryRunner
from sabir_session import InnerMessage, Session, SQLiteStore, enable_inner_message_recording

from tests.benchmarks import work
from tests.benchmarks.contenders.doing import OPTIONS_OFFERED, awaiting, choose
from tests.benchmarks.contenders.messages import messages_of
from tests.benchmarks.contenders.recording import BATCH, KEPT, Append, Appending
from tests.benchmarks.work import Given

REQUIREMENTS = ("{core}", "{session}", "{runtime}")


class Choosing(BaseContext):
    """A context whose policies choose what it holds."""

    def __init__(self, runner: BaseRunner) -> None:
        super().__init__(runner)
        self.batch = [sabir.assistant(work.reply_text())]
        for name in ("llm", *OPTIONS_OFFERED["three options"]):
            setattr(self, name, self._bind(choose))


def policy(given: Given) -> Callable[[], Any]:
    """A bound policy, called."""
    ctx: Any = Choosing(InMemoryRunner())
    observations, options = messages_of(given.size), OPTIONS_OFFERED[given.wire]
    return awaiting(lambda: ctx.llm(observations, options))


class Recording(Appending):
    """A session with a journal in an SQLite file, which holds earlier conversations too."""

    def __init__(self, given: Given) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.store = SQLiteStore(Path(self.folder.name, "sessions.db"))
        self.conversations = 0
        super().__init__(given.size, self.appender, lambda record: record)

    def appender(self) -> Append:
        """A session of a new conversation, appended to as programs do."""
        self.conversations += 1
        self.journal = self.store.journal(f"conversation {self.conversations}")
        session = Session(journal=self.journal)
        enable_inner_message_recording(session)
        return lambda record: session.mutate(InnerMessage).append(record)

    def pages(self) -> int:
        """Bytes of the database."""
        return int(self.store._rows("PRAGMA page_count")[0][0]) * 4096

    def close(self) -> None:
        """Delete it."""
        self.store.close()
        self.folder.cleanup()


def recorded(given: Given, recording: Recording) -> dict[str, Any]:
    """The last records as the journal gives them back, and what a record takes."""
    bodies = [body for _, body in recording.journal.read()]
    return {"count": len(bodies), "bodies": bodies[-BATCH:], **recording.taken(KEPT, recording.pages)}


TASKS: dict[str, Callable[[Given], Callable[[], Any]]] = {"policy": policy, "checkpoint": Recording}
EVIDENCE = {"policy": lambda given, batch: batch[-1].text, "checkpoint": recorded}
