"""sabir's Conversation: a question to a long conversation in a SQLite store, under a budget.

    question ──▶ Conversation ──▶ adapter.render ──▶ records ──▶ adapter.send ──▶ record ──▶ answer
                     beyond           render          beyond          send          beyond

Two methods of the adapter are timed where the conversation calls them: what is left of the question is the
conversation's own. Rendering and sending copy and compare the messages and bytes of the whole request each time.
"""

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sabir_session import Budget, Conversation, Session, SQLiteStore, enable_inner_message_recording
from sabir_session.records import InnerMessage

from benchmarks import answers, work
from benchmarks.contenders.doing import Contender
from benchmarks.contenders.runtime import record_of
from benchmarks.contenders.sabir import Sabir
from benchmarks.work import Given

REQUIREMENTS = ("{core}", "{openai}", "{anthropic}", "{google}", "{session}", "{runtime}")
QUESTIONS, MOST = 10, 50
"""Questions of one run, and those after which the conversation begins again at its size."""


class Asking:
    """Asks ten questions a run; its figures are the least of the ten, which other processes disturb least."""

    units = QUESTIONS

    def __init__(self, given: Given) -> None:
        caller = Sabir(given)
        caller.in_process(answers.reply(given.wire))
        self.adapter, self.options = caller.adapter, caller.options
        self.spent = {"render": 0, "send": 0}
        for name, method in (("render", self.adapter.render), ("send_sync", self.adapter.send_sync)):
            setattr(self.adapter, name, self.timed(name.partition("_")[0], method))
        self.folder = tempfile.TemporaryDirectory()
        self.store = SQLiteStore(Path(self.folder.name, "chats.db"))
        session = Session(journal=self.store.journal("base"))
        enable_inner_message_recording(session)
        for place, entry in enumerate(work.answered(given.size)):
            session.mutate(InnerMessage).append(record_of(entry, place))
        self.number, self.count, self.chat = 0, MOST, None

    def timed(self, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            begun = time.process_time_ns()
            try:
                return method(*arguments, **named)
            finally:
                self.spent[name] += time.process_time_ns() - begun

        return call

    def renew(self) -> None:
        """Where it has grown too far, open another fork of the stored conversation, and ask once."""
        self.count += QUESTIONS
        if self.count > MOST:
            self.end()
            self.number, self.count = self.number + 1, 0
            name = f"fork {self.number}"
            self.store.fork("base", name)
            self.chat = Conversation(
                self.adapter, options=self.options, budget=Budget(tokens=10**15), keep=self.store, name=name
            )
            self.chat.ask_sync(work.said(0))

    def __call__(self) -> dict[str, Any]:
        asked = [self.ask(number) for number in range(QUESTIONS)]
        figures = {name: min(each[name] for _, each in asked) for name in ("render", "send", "beyond")}
        return {"text": [text for text, _ in asked], "figures": figures}

    def ask(self, number: int) -> tuple[str, dict[str, int]]:
        """The answer to a question, and the nanoseconds that its parts took."""
        self.spent.update(render=0, send=0)
        begun = time.process_time_ns()
        answer = self.chat.ask_sync(work.said(number))
        beyond = time.process_time_ns() - begun - sum(self.spent.values())
        return answer.text, {**self.spent, "beyond": beyond}

    def end(self) -> None:
        if self.chat is not None:
            self.chat.close()
            self.store.delete(self.chat.name)
            self.chat = None

    def close(self) -> None:
        self.end()
        self.store.close()
        self.folder.cleanup()


def evidence(given: Given, found: dict[str, Any]) -> object:
    return {"text": found["text"]}


CONTENDERS = {"sabir_conversation": Contender({"conversation": Asking}, {"conversation": evidence})}
