"""Processes that perform a run, and are killed in it.

    forkserver (imports once) ──▶ child: point 0 · 1 · 2 · … ──▶ SIGKILL at the point that the test names
                                        └ before and after: each write of the ledger, the engine's start and end of a
                                          run, each call of the provider, each option

`perform` in a child without a point goes to the end, and says how many points it passed.
"""

import asyncio
import functools
import json
import multiprocessing
import os
import signal
import threading
import traceback
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import sabir
from dbos._sys_db import SystemDatabase
from sabir import Message
from sabir.vocabulary.history import dumps, loads
from sabir_runtime import BaseRunner
from sabir_runtime.durable import DurableRunner
from sabir_runtime.durable.ledger import Ledger

from tests import processes
from tests.durable import assistant
from tests.durable.assistant import Assistant, Branches, Journal

BEAT, POLL = 0.05, 0.02
"""How often workers of tests look around, in seconds."""

PROGRAMS: dict[str, Callable[[BaseRunner, Journal], Any]] = {"assistant": Assistant, "branches": Branches}

_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload(
    ["tests.durable.children", "sabir_runtime.durable.worker", "sabir_runtime.durable.runs"]
)


@dataclass
class Finished:
    """How a child ended."""

    exit_code: int
    points: list[str]
    messages: list[Message]

    @property
    def was_killed(self) -> bool:
        return self.exit_code == -signal.SIGKILL


class Points:
    """Counts what a child passes, and kills it at one of these."""

    def __init__(self, last: int | None) -> None:
        self.last, self.passed = last, list[str]()

    def pass_by(self, name: str) -> None:
        self.passed.append(name)
        if self.last is not None and len(self.passed) > self.last:
            os.kill(os.getpid(), signal.SIGKILL)

    def around(self, owner: Any, *names: str) -> None:
        """Points before and after each call of these functions."""
        for name in names:
            setattr(owner, name, self._wrapped(name, getattr(owner, name)))

    def _wrapped(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def passed_by(*arguments: Any, **named: Any) -> Any:
            self.pass_by(f"before {name}")
            given = function(*arguments, **named)
            self.pass_by(f"after {name}")
            return given

        return passed_by


def perform(store: str, folder: Path, *, until: int | None = None, program: str = "assistant") -> Finished:
    """Perform the run in a process of its own, to its end or to that point; application and run go by the folder."""
    outcome = folder / "outcome.json"
    outcome.unlink(missing_ok=True)
    child = _context.Process(target=_child, args=(store, folder, until, program))
    processes.start(child)
    exit_code = processes.exit_code_of(child, 60)
    if exit_code is None:
        processes.kill(child)
        raise AssertionError(f"the child hangs: {(folder / 'trace.txt').read_text()}")
    if not outcome.exists():
        told = (folder / "trace.txt").read_text() if (folder / "trace.txt").exists() else ""
        assert exit_code == -signal.SIGKILL, f"exit code {exit_code}: {told}"
        return Finished(exit_code, [], [])
    told = json.loads(outcome.read_text())
    return Finished(exit_code, told["points"], loads(told["messages"]))


def two_at_once(work: Callable[[int], None], numbers: Iterable[int]) -> None:
    """Do it for all numbers, two at once; what fails is raised."""
    with ThreadPoolExecutor(2) as pool:
        for _ in pool.map(work, numbers):
            pass


@contextmanager
def hanging_worker(store: str, folder: Path, line: str) -> Iterator[BaseProcess]:
    """A worker that performs the run, and hangs in an option: its event loop with it, for good."""
    child = _context.Process(target=_hang, args=(store, folder, line))
    processes.start(child)
    try:
        yield child
    finally:
        processes.kill(child)


def _hang(store: str, folder: Path, line: str) -> None:
    work = assistant.work

    def hang(journal: Journal, what: str) -> None:
        work(journal, what)
        if what == line:
            threading.Event().wait()

    assistant.work = hang
    asyncio.run(_run(store, folder, "assistant"))


def _child(store: str, folder: Path, until: int | None, program: str) -> None:
    points = Points(until)
    points.around(Ledger, "create", "claim", "begin", "decide", "answer", "finish", "release")
    points.around(SystemDatabase, "init_workflow", "update_workflow_outcome")
    points.around(assistant, "ask", "work")
    try:
        messages = asyncio.run(_run(store, folder, program))
    except BaseException:
        (folder / "trace.txt").write_text(traceback.format_exc())
        raise
    (folder / "outcome.json").write_text(json.dumps({"points": points.passed, "messages": dumps(messages)}))


async def _run(store: str, folder: Path, program: str) -> list[Message]:
    async with DurableRunner(store, application=folder.name, beat=BEAT, poll=POLL) as runner:
        context = PROGRAMS[program](runner, Journal(folder / "journal"))
        return await runner.run(context.main, [sabir.user("Add and shout.")], run_id=folder.name)
