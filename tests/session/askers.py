"""Objects of one process that ask one conversation at the same time, and other processes that do the same.

    parent ──{"address", "name", "asks", "objects", "log"}──▶ child: opens its conversations ──"ready"──▶ parent
    parent ──"go"──▶ child: asks all at once ──{seat: outcome}──▶ parent

Each question books one seat through an option, which writes a line to the log when it begins and when it ends.
`python -m tests.session.askers` is a child; it serves one plan after another.
"""

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from threading import Barrier
from typing import Any, NamedTuple

from sabir_session import Conversation, ConversationBusy, PostgresStore, SQLiteStore, Store
from sabir_session.stores.claims import Claim
from sabir_testing.scripted import ScriptedAdapter, calls

BUSY, ANSWERED = "busy", "answered"
UNFINISHED = "unfinished"
"""The seat of the question that was interrupted before the askers came."""
Outcomes = dict[str, str]


class OwnStore(SQLiteStore):
    """A user's store, which excludes neither other processes nor other objects."""

    def claim(self, name: str) -> Claim:
        return Claim(name)


STORES: dict[str, Callable[[str], Any]] = {
    "path": lambda address: address,
    "file": SQLiteStore,
    "memory": lambda address: SQLiteStore(":memory:"),
    "own": OwnStore,
    "postgres": PostgresStore,
    "url": lambda address: address,
}
"""Kind of store → what a process gives to all its conversations as `keep`."""


class Ask(NamedTuple):
    """One question: asked by a task or by a thread, of one of the process's objects."""

    by: str
    seat: str


class Plan(NamedTuple):
    """The questions of one process, and the number of objects that it asks."""

    asks: Sequence[Ask]
    objects: int


def model() -> ScriptedAdapter:
    """A model that books the seat that it was asked for, and then says so."""

    def answer(sent: Any) -> Any:
        last = sent.messages[-1]
        return "Booked." if last.result is not None else calls(book={"seat": last.text})

    return ScriptedAdapter(*[answer] * 8)


def booking(log: Path) -> Callable[[str], str]:
    """The option; two of them that overlap leave two beginnings in a row."""

    def book(seat: str) -> str:
        for step in ("begin", "end"):
            with log.open("a") as file:
                file.write(f"{step} {seat}\n")
            time.sleep(0.003)
        return "booked"

    return book


def open_conversation(keep: str | Store, name: str, log: Path) -> Conversation[None]:
    """One object of the conversation."""
    return Conversation(model(), options=[booking(log)], keep=keep, name=name)


class Askers:
    """The objects of this process, opened; those that are refused answer every question with BUSY."""

    def __init__(self, keep: str | Store, name: str, plan: Plan, log: Path) -> None:
        self.plan = plan
        self.chats: list[Conversation[None] | None] = []
        for _ in range(plan.objects):
            try:
                self.chats.append(open_conversation(keep, name, log))
            except ConversationBusy:
                self.chats.append(None)

    def ask(self) -> Outcomes:
        """Ask all questions at once; return the outcome of each."""
        asks = [(ask, self.chats[index % len(self.chats)]) for index, ask in enumerate(self.plan.asks)]
        tasks = [(ask, chat) for ask, chat in asks if ask.by == "task"]
        threads = [(ask, chat) for ask, chat in asks if ask.by == "thread"]
        barrier = Barrier(len(threads) + 1)

        async def ask_in_task(ask: Ask, chat: Conversation[None] | None) -> tuple[str, str]:
            try:
                if chat is not None:
                    await chat.ask(ask.seat)
            except ConversationBusy:
                return ask.seat, BUSY
            return ask.seat, BUSY if chat is None else ANSWERED

        def ask_in_thread(ask: Ask, chat: Conversation[None] | None) -> tuple[str, str]:
            barrier.wait()
            try:
                if chat is not None:
                    chat.ask_sync(ask.seat)
            except ConversationBusy:
                return ask.seat, BUSY
            return ask.seat, BUSY if chat is None else ANSWERED

        async def ask_in_tasks() -> list[tuple[str, str]]:
            barrier.wait()
            return [*await asyncio.gather(*(ask_in_task(*each) for each in tasks))]

        with ThreadPoolExecutor(len(threads) + 1) as pool:
            running = [pool.submit(ask_in_thread, *each) for each in threads]
            outcomes = asyncio.run(ask_in_tasks())
            return dict([*outcomes, *(each.result() for each in running)])

    def close(self) -> None:
        for chat in self.chats:
            if chat is not None:
                chat.close()


class Child:
    """A process that serves plans."""

    def __init__(self) -> None:
        command = [sys.executable, "-m", "tests.session.askers"]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def open(self, kind: str, address: str, name: str, plan: Plan, log: Path) -> None:
        """Open the conversations of a plan in the child."""
        self._send([kind, address, name, plan, str(log)])
        assert self._receive() == "ready"

    def go(self) -> None:
        self._send("go")

    def outcomes(self) -> Outcomes:
        return dict(self._receive())

    def let_go(self) -> None:
        self._send("close")
        assert self._receive() == "closed"

    def end(self) -> None:
        self._process.communicate(timeout=30)

    def _send(self, command: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(command) + "\n")
        self._process.stdin.flush()

    def _receive(self) -> Any:
        assert self._process.stdout is not None
        return json.loads(self._process.stdout.readline())


def serve() -> None:
    """Serve plans from standard input until it ends."""
    for line in sys.stdin:
        kind, address, name, (asks, objects), log = json.loads(line)
        with ExitStack() as stack:
            keep = STORES[kind](address)
            if isinstance(keep, Store):
                stack.enter_context(keep)
            askers = Askers(keep, name, Plan([Ask(*each) for each in asks], objects), Path(log))
            _answer("ready")
            sys.stdin.readline()
            _answer(askers.ask())
            sys.stdin.readline()
            askers.close()
        _answer("closed")


def _answer(value: object) -> None:
    print(json.dumps(value), flush=True)


if __name__ == "__main__":
    serve()
