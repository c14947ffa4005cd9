"""Processes that evaluate and are killed on the way.

    test ──{"die_at": 7, …}──▶ `python -m tests.session.crash.child` (imports once) ──fork──▶ child
    test ◀──[exit code, words]── parent ◀── point 1 ─ journal write ─ point 2 ─ … ─ point n

A child sends itself SIGKILL at the point that it is told. Points stand before and after each journal write, each
provider call and each option. A child that ends prints the names of all that it passed. It resumes what the journal
holds, and begins where there is nothing to resume.
"""

import asyncio
import json
import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import psycopg  # noqa: F401 - imported once, for all children
import sabir
from sabir import ToolContext
from sabir.authoring import InProcessResponse, WireRequest
from sabir_session import (
    ConversationNotFound,
    Journal,
    Prompt,
    Session,
    evaluate,
    evaluate_sync,
)

from tests.session.crash import wires
from tests.session.support import opener

PROMPT: Prompt[None] = Prompt(ns="trips", key="book", system="Be brief.", messages=[sabir.user("Two seats to Oslo.")])
LONGEST_RUN = 240
"""Seconds after which a child that hangs is ended."""


class Fuse:
    """Counts points, and kills the process at one of them."""

    def __init__(self, die_at: int) -> None:
        self.passed: list[str] = []
        self._die_at = die_at

    def point(self, name: str) -> None:
        self.passed.append(name)
        if len(self.passed) == self._die_at:
            os.kill(os.getpid(), signal.SIGKILL)


class DyingJournal:
    """A journal with a point before and after each write."""

    def __init__(self, journal: Journal, fuse: Fuse) -> None:
        self._journal = journal
        self._fuse = fuse

    def append(self, kind: str, body: str) -> None:
        self._fuse.point("before write")
        self._journal.append(kind, body)
        self._fuse.point("after write")

    def read(self) -> Iterable[tuple[str, str]]:
        return self._journal.read()


def answering(dialect: str, fuse: Fuse) -> Callable[[WireRequest], InProcessResponse]:
    """A provider that remembers nothing, with a point before and after each request."""

    def serve(request: WireRequest) -> InProcessResponse:
        fuse.point("before call")
        served = InProcessResponse(200, [wires.answer(dialect, request.body)])
        fuse.point("after call")
        return served

    return serve


def options(log: Path, fuse: Fuse, *, is_awaited: bool) -> list[sabir.Option]:
    """Two options, each of which notes its runs in a file, with a point before and after that."""

    def noted(name: str, text: str) -> str:
        run = ToolContext.current()
        fuse.point(f"before {name}")
        line = json.dumps([name, run.call_id, run.idempotency_key, run.is_resume]) + "\n"
        with log.open("a") as file:
            file.write(line)
        fuse.point(f"after {name}")
        return text

    def look_up(city: str) -> str:
        return noted("look_up", f"{city} is open")

    def book(city: str, seats: int) -> dict[str, Any]:
        return {"booked": noted("book", city), "seats": seats}

    async def look_up_later(city: str) -> str:
        return look_up(city)

    async def book_later(city: str, seats: int) -> dict[str, Any]:
        return book(city, seats)

    chosen = (look_up_later, book_later) if is_awaited else (look_up, book)
    return [sabir.option(name=name)(function) for name, function in zip(("look_up", "book"), chosen, strict=True)]


def run(told: dict[str, Any]) -> list[str]:
    """Resume, or begin; the points that were passed."""
    fuse = Fuse(told["die_at"])
    llm = wires.adapter(told["dialect"], answering(told["dialect"], fuse))
    offered = options(Path(told["log"]), fuse, is_awaited=told["is_awaited"])
    with opener(told["store"])() as opened:
        session = Session(journal=DyingJournal(opened.journal(told["journal"]), fuse))
        try:
            go_on(llm, session, offered, resume=True, is_awaited=told["is_awaited"])
        except ConversationNotFound:
            go_on(llm, session, offered, resume=False, is_awaited=told["is_awaited"])
    return fuse.passed


def go_on(llm: sabir.Adapter, session: Session, offered: list[sabir.Option], *, resume: bool, is_awaited: bool) -> None:
    """Evaluate, waiting or in a loop."""
    if not is_awaited:
        evaluate_sync(llm, PROMPT, session=session, options=offered, resume=resume)
        return
    asyncio.run(evaluate(llm, PROMPT, session=session, options=offered, resume=resume))


def serve() -> None:
    """Fork a child for each line of standard input, and answer with its exit code and what it printed."""
    for line in sys.stdin:
        reading, writing = os.pipe()
        child = os.fork()
        if not child:
            os.close(reading)
            _be_a_child(json.loads(line), writing)
        os.close(writing)
        with open(reading) as printed:
            words = printed.read()
        print(json.dumps([os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), words]), flush=True)


def _be_a_child(told: dict[str, Any], output: int) -> None:
    """Run, print to that descriptor, and end the process."""
    signal.alarm(LONGEST_RUN)
    for stream in (sys.stdout, sys.stderr):
        os.dup2(output, stream.fileno())
    exit_code = 1
    try:
        print(json.dumps(run(told)), flush=True)
        exit_code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(exit_code)


if __name__ == "__main__":
    wires.import_all()
    serve()
