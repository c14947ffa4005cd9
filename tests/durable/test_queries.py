"""What is asked at each beat, and to list runs, is found by an index: many runs cost as little as few."""

import asyncio
import re
from collections.abc import Callable
from typing import Any

from sabir_runtime import Batch, human_policy
from sabir_runtime.durable import Runs, decision
from sabir_runtime.durable.statuses import WorkerList
from sqlalchemy import event

from tests.durable.assistant import Names
from tests.durable.support import Program, saying, working

ASKED: dict[str, Callable[[Runs], object]] = {
    "what was decided": lambda runs: runs.ledger.find_decided([("r", "0:main"), ("s", "0:main/0:llm")]),
    "who has the runs": lambda runs: runs.ledger.epochs(["r", "s"]),
    "what a worker left": lambda runs: runs.statuses.left_by("worker"),
    "who was not seen": lambda runs: WorkerList(runs.engine).find_unseen(1.0),
    "the newest runs": lambda runs: runs.list(limit=20),
    "those that wait": lambda runs: runs.list(state="waiting", limit=20),
    "one run": lambda runs: runs.show("r"),
}


async def test_no_query_looks_through_all_runs_or_calls(sqlite: str) -> None:
    """By SQLite's own plan: a SCAN of a table of which there is a row for each run is one in the order of an index."""
    async with working(sqlite, main=saying("hello")) as (runner, program):
        await runner.run(program.main, "Hi.", run_id="r")
    with Runs(sqlite) as runs:
        plans = {name: explained(runs, ask) for name, ask in ASKED.items()}

    assert all(plans.values())
    whole = [step for steps in plans.values() for step in steps if re.match("SCAN sabir_(runs|calls)", step)]
    assert [step for step in whole if "USING INDEX sabir_runs_newest" not in step] == []


def explained(runs: Runs, ask: Callable[[Runs], object]) -> list[str]:
    asked: list[tuple[str, Any]] = []

    def note(connection: Any, cursor: Any, statement: str, parameters: Any, *_: object) -> None:
        asked.append((statement, parameters))

    event.listen(runs.engine, "before_cursor_execute", note)
    ask(runs)
    event.remove(runs.engine, "before_cursor_execute", note)
    with runs.engine.connect() as connection:
        return [
            row[-1]
            for statement, parameters in asked
            for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters)
        ]


async def test_many_calls_wait_at_once(store: str) -> None:
    """More than are looked up in one query; each gets its own word."""
    people = 450

    async def main(ctx: Program, observations: Batch, options: Names = None) -> Batch:
        given = await asyncio.gather(*(ctx.person(observations) for _ in range(people)))
        return [message for batch in given for message in batch]

    async with working(store, main=main, person=human_policy(decision)) as (runner, program):
        await runner.start(program.main, "Well?", run_id="r")
        while len(paths := await asyncio.to_thread(open_paths, runner.runs)) < people:
            await asyncio.sleep(0)
        for path in paths:
            await asyncio.to_thread(runner.runs.decide, "r", path, path)
        messages = await runner.result("r")

    assert [message.text for message in messages] == [f"0:main/{index}:person" for index in range(people)]


def open_paths(runs: Runs) -> list[str]:
    return [call.path for call in runs.ledger.calls("r") if call.state == "waiting"]
