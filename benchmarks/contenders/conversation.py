"""sabir's Conversation: a question to a long conversation in a SQLite store, under a budget, and to short ones.

    question ──▶ Conversation ──▶ adapter.render ──▶ records ──▶ adapter.send ──▶ record ──▶ answer
                     beyond           render          beyond          send          beyond

Two methods of the adapter are timed where the conversation calls them: what is left of the question is the
conversation's own. Rendering and sending copy and compare the messages and bytes of the whole request each time.
"""

import sqlite3
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import sabir
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


WIRE, INSTRUCTIONS = "openai.chat", "Be brief."


class Short:
    """Asks ten questions a run in each of four ways, in turn; its figures are differences of the least of the ten.

    `complete` with a list, a conversation in memory, one in a SQLite store, and one in memory with two rows beside it,
    which are those of the stored one.
    """

    units = QUESTIONS

    def __init__(self, given: Given) -> None:
        caller = Sabir(given._replace(wire=WIRE))
        caller.in_process(answers.reply(WIRE))
        self.adapter, self.number = caller.adapter, 0
        self.is_stored = given.wire == "SQLite"
        self.folder = tempfile.TemporaryDirectory()
        self.store = SQLiteStore(Path(self.folder.name, "chats.db"))
        self.rows = sqlite3.connect(Path(self.folder.name, "rows.db"), isolation_level=None)
        self.rows.execute("PRAGMA journal_mode = WAL")
        self.rows.execute("PRAGMA synchronous = NORMAL")
        self.rows.execute("CREATE TABLE records (id INTEGER PRIMARY KEY, kind TEXT, body TEXT)")

    def renew(self) -> None:
        """New conversations, each with one question, and what the stored one wrote for it."""
        self.number, self.history = self.number + 1, [sabir.system(INSTRUCTIONS)]
        name = f"chat {self.number}"
        self.plain, self.beside, self.stored = (
            Conversation(self.adapter, instructions=INSTRUCTIONS, keep=keep, name=name)
            for keep in (None, None, self.store)
        )
        for ask in (self.complete, self.plain.ask_sync, self.beside.ask_sync, self.stored.ask_sync):
            ask(work.said(0))
        self.written = list(self.store.journal(name).read())[-2:]

    def complete(self, question: str) -> sabir.Reply:
        """Ask with a list alone."""
        self.history.append(sabir.user(question))
        reply = self.adapter.complete_sync(self.history)
        self.history.extend(reply.messages)
        return reply

    def ask_and_write(self, question: str) -> Any:
        """Ask, and insert two rows by hand, each committed by itself."""
        answer = self.beside.ask_sync(question)
        for row in self.written:
            self.rows.execute("INSERT INTO records (kind, body) VALUES (?, ?)", row)
        return answer

    def __call__(self) -> dict[str, Any]:
        ways = {"complete": self.complete, "plain": self.plain.ask_sync}
        if self.is_stored:
            ways = {"plain": self.plain.ask_sync, "stored": self.stored.ask_sync, "rows": self.ask_and_write}
        least, texts = dict.fromkeys(ways, 10**12), []
        for number in range(QUESTIONS):
            for name, ask in ways.items():
                begun = time.process_time_ns()
                answer = ask(work.said(number))
                least[name] = min(least[name], time.process_time_ns() - begun)
                texts.append(answer.text)
        for chat in (self.plain, self.beside, self.stored):
            chat.close()
        if not self.is_stored:
            return {"text": texts, "figures": {"beyond": least["plain"] - least["complete"]}}
        beyond, rows = (least[name] - least["plain"] for name in ("stored", "rows"))
        return {"text": texts, "figures": {"beyond": beyond, "rows": rows}}

    def close(self) -> None:
        self.store.close()
        self.rows.close()
        self.folder.cleanup()


def evidence(given: Given, found: dict[str, Any]) -> object:
    return {"text": found["text"]}


TASKS: dict[str, Callable[[Given], Callable[[], Any]]] = {"conversation": Asking, "ask": Short}
CONTENDERS = {"sabir_conversation": Contender(TASKS, dict.fromkeys(TASKS, evidence))}
