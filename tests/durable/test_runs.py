"""Runs are looked at and steered from any process, whether a worker is there or not."""

import asyncio
import json
import sqlite3
from pathlib import Path

import pytest
import sabir
from sabir_runtime import Batch, InMemoryRunner, Question, human_policy
from sabir_runtime.durable import (
    DurableRunner,
    RunCancelled,
    RunConflict,
    RunNotFound,
    RunPaused,
    Runs,
    StoreInvalid,
    decision,
)

from tests.durable.assistant import Assistant, Journal, Names
from tests.durable.children import BEAT, POLL
from tests.durable.support import Gate, Program, choosing, saying, working


async def test_runs_are_listed_the_newest_first(store: str) -> None:
    async with working(store, main=saying("hello"), bad=failing) as (runner, program):
        await runner.run(program.main, "Hi.", run_id="first")
        with pytest.raises(Exception, match="no luck"):
            await runner.run(program.bad, "Hi.", run_id="second")
    with Runs(store) as runs:
        listed = runs.list()
        failed = runs.list(state="failed")

    assert [(each.run, each.state, each.context, each.name, each.application, each.version) for each in listed] == [
        ("second", "failed", "Program", "bad", "sabir", "1"),
        ("first", "done", "Program", "main", "sabir", "1"),
    ]
    assert [each.run for each in failed] == ["second"]


async def failing(ctx: Program, observations: Batch, options: Names = None) -> Batch:
    raise ValueError("no luck")


async def test_a_run_is_shown_as_a_tree_of_its_calls(sqlite: str, tmp_path: Path) -> None:
    """Each call under the one that made it, at 80 columns; a line says what no line above says of its path."""
    async with DurableRunner(sqlite) as runner:
        await runner.run(Assistant(runner, Journal(tmp_path / "journal")).main, "Go.", run_id="r")
    with Runs(sqlite) as runs:
        details = runs.show("r")

    lines = details.tree().splitlines()
    assert all(len(line) <= 80 for line in lines)
    assert len(lines) == len(details.calls) == 12
    assert [line.partition(" done")[0] for line in lines][:6] == [
        "0:main", "  0:model", "    [add-0]", "    [shout-0]", "    ~0/[add-0]/0:add", "    ~1/[shout-0]/0:shout",
    ]  # fmt: skip
    assert lines[2].endswith(' s  ← "4"')
    assert sabir.Message.model_validate_json(json.dumps(json.loads(details.request)["observations"][0])).text == "Go."


async def test_a_cancelled_run_stops_within_a_beat_and_can_be_resumed(store: str) -> None:
    gate = Gate()
    async with working(store, main=gate) as (runner, program):
        performing = asyncio.ensure_future(runner.run(program.main, "Hi.", run_id="r"))
        await gate.reached.wait()
        await asyncio.to_thread(runner.runs.cancel, "r")
        with pytest.raises(RunCancelled, match=r"'r' was cancelled; `sabir runs resume r` continues the run"):
            await performing
        with pytest.raises(RunCancelled):
            await runner.run(program.main, "Hi.", run_id="r")
        gate.opened.set()
        await asyncio.to_thread(runner.runs.resume, "r")
        assert [message.text for message in await runner.result("r")] == ["through"]
        with pytest.raises(RunConflict, match="is already done; fork it to run it again"):
            await asyncio.to_thread(runner.runs.cancel, "r")
        with pytest.raises(RunConflict, match="cannot be resumed; only paused or cancelled runs can"):
            await asyncio.to_thread(runner.runs.resume, "r")


async def test_a_paused_run_waits_over_a_restart(store: str) -> None:
    gate = Gate()
    async with working(store, main=gate) as (runner, program):
        performing = asyncio.ensure_future(runner.run(program.main, "Hi.", run_id="r"))
        await gate.reached.wait()
        await asyncio.to_thread(lambda: runner.runs.pause("r", reason="lunch"))
        with pytest.raises(RunPaused, match=r"'r' is paused: lunch; `sabir runs resume r` continues the run"):
            await performing
    async with working(store, main=saying("hello")) as (runner, _):
        assert await runner.recover() == []
        with pytest.raises(RunPaused):
            await runner.result("r")
        await asyncio.to_thread(runner.runs.resume, "r")
        assert [message.text for message in await runner.result("r")] == ["hello"]


async def test_a_fork_begins_with_what_was_recorded_before_a_call(store: str) -> None:
    """That call and all after it are performed anew; the other run stays as it is."""
    heard: list[str] = []

    async def main(ctx: Program, observations: Batch, options: Names = None) -> Batch:
        return [*await ctx.first(observations), *await ctx.second(observations), *await ctx.third(observations)]

    steps = {name: saying(name, heard) for name in ("first", "second", "third")}
    async with working(store, main=main, **steps) as (runner, program):
        original = await runner.run(program.main, "Hi.", run_id="r")
        name = await asyncio.to_thread(lambda: runner.runs.fork("r", at="0:main/1:second"))
        forked = await runner.result(name)
        whole = await asyncio.to_thread(lambda: runner.runs.fork("r", name="anew"))
        await runner.result(whole)
        assert await runner.result("r") == original
        for wrong in ("0:main/7:x", ""):
            with pytest.raises(RunNotFound, match="has no call at"):
                await asyncio.to_thread(runner.runs.fork, "r", at=wrong)
        with pytest.raises(RunConflict, match="a run 'r' already exists"):
            await asyncio.to_thread(lambda: runner.runs.fork("anew", name="r"))

    assert heard == ["first", "second", "third", "second", "third", "first", "second", "third"]
    assert forked[0] == original[0]
    assert forked[1] != original[1]
    assert whole == "anew"


async def test_a_fork_of_a_fork_keeps_all_that_came_before(sqlite: str) -> None:
    """What its origin was given counts as its own: a call that began before the fork is not performed again."""
    heard: list[str] = []

    async def main(ctx: Program, observations: Batch, options: Names = None) -> Batch:
        await ctx.wide(observations)
        await ctx.before(observations)
        return await ctx.last(observations)

    async def wide(ctx: Program, observations: Batch, options: Names = None) -> Batch:
        return [message for _ in range(3) for message in await ctx.tiny(observations)]

    policies = {name: saying(name, heard) for name in ("tiny", "before", "last")}
    async with working(sqlite, main=main, wide=wide, **policies) as (runner, program):
        await runner.run(program.main, "Hi.", run_id="r")
        heard.clear()
        for origin, name in (("r", "child"), ("child", "grandchild")):
            await asyncio.to_thread(runner.runs.fork, origin, at="0:main/2:last", name=name)
            await runner.result(name)

    assert heard == ["last", "last"]


async def test_a_call_that_does_not_wait_is_not_decided(store: str) -> None:
    """A wrong path would else make the person's word the result of whatever is at work there."""

    async def main(ctx: Program, observations: Batch, options: Names = None) -> Batch:
        return [sabir.assistant(f"heard {message.text}") for message in await ctx.person(observations)]

    async with working(store, main=main, person=human_policy(decision)) as (runner, program):
        await runner.start(program.main, "Well?", run_id="r")
        await waiting(runner, "r")
        told = "the call '0:main' of run 'r' does not wait for a decision; `sabir runs show r` shows which"
        with pytest.raises(RunConflict, match=told):
            await runner.decide("r", "0:main", "yes")
        await runner.decide("r", "0:main/0:person", "no")
        messages = await runner.result("r")

    assert [message.text for message in messages] == ["heard no"]


async def test_a_decision_reaches_a_run_that_was_paused_and_resumed_at_once(sqlite: str) -> None:
    """Between two beats: the work that was paused ends when the run is taken up again, and takes no wait with it."""
    began, ended = asyncio.Queue[str](), asyncio.Queue[str]()

    async def main(ctx: Program, observations: Batch, options: Names = None) -> Batch:
        began.put_nowait("began")
        try:
            return await decision(Question(tuple(observations)))
        finally:
            ended.put_nowait("ended")

    async with DurableRunner(sqlite, beat=2.0, poll=POLL) as runner:
        program = Program(runner, main=main)
        await runner.start(program.main, "Well?", run_id="r")
        await began.get()
        await waiting(runner, "r")
        await asyncio.to_thread(runner.runs.pause, "r")
        await asyncio.to_thread(runner.runs.resume, "r")
        await began.get()
        await ended.get()
        await waiting(runner, "r")
        await runner.decide("r", "0:main", "yes")
        async with asyncio.timeout(20):
            messages = await runner.result("r")

    assert [message.text for message in messages] == ["yes"]


async def test_a_person_decides_after_any_number_of_restarts(store: str) -> None:
    """What waits is listed as waiting; the decision counts as the policy's own, and its option calls are answered."""
    heard: list[str] = []
    policies = {"main": human_policy(decision), "pay": saying("paid", heard)}
    async with working(store, **policies) as (runner, program):
        performing = asyncio.ensure_future(runner.run(program.main, "Pay?", ["pay"], run_id="r"))
        await waiting(runner, "r")
        await runner.aclose()
        with pytest.raises(Exception, match="is unfinished"):
            await performing
    async with working(store, **policies) as (runner, _):
        await waiting(runner, "r")
        chosen = await choosing(("pay", "c1", {}))(None, [])
        await runner.decide("r", "0:main", chosen)
        messages = await runner.result("r")
        with pytest.raises(RunConflict, match="already has a decision or a result"):
            await runner.decide("r", "0:main", "no")
        with pytest.raises(RunNotFound, match="has no call at"):
            await runner.decide("r", "0:other", "no")
    with pytest.raises(Exception, match="works only in a run of a DurableRunner"):
        await Program(InMemoryRunner(), main=human_policy(decision)).main("Well?")

    assert [message.kind for message in messages] == ["option_call", "option_result"]
    assert heard == ["paid"]


async def waiting(runner: DurableRunner, run: str) -> None:
    await runner.launch()
    while run not in [each.run for each in await asyncio.to_thread(lambda: runner.runs.list(state="waiting"))]:
        await asyncio.sleep(POLL)


async def test_the_database_is_readable_json(sqlite: str, tmp_path: Path) -> None:
    """RN-29: nothing is pickled, neither by the ledger nor by the engine; failures are JSON too."""
    async with DurableRunner(sqlite, beat=BEAT, poll=POLL) as runner:
        await runner.run(Assistant(runner, Journal(tmp_path / "journal")).main, "Go.", run_id="r")
        with pytest.raises(Exception, match="no luck"):
            await runner.run(Program(runner, main=failing).main, "Go.", run_id="failed")
    connection = sqlite3.connect(tmp_path / "runs.db")
    found = {
        "calls": connection.execute("SELECT request, batch, result, failure FROM sabir_calls").fetchall(),
        "runs": connection.execute("SELECT request FROM sabir_runs").fetchall(),
        "inputs": connection.execute("SELECT inputs FROM workflow_input").fetchall(),
        "outputs": connection.execute("SELECT output, error FROM workflow_output").fetchall(),
    }
    connection.close()

    assert {name: len(rows) for name, rows in found.items()} == {"calls": 13, "runs": 2, "inputs": 2, "outputs": 2}
    for rows in found.values():
        for value in (value for row in rows for value in row if value is not None):
            json.loads(value)
    request = json.loads(found["calls"][1][0])
    assert request["name"] == "model"
    assert request["observations"]["count"] == 1
    assert request["observations"]["last"]["payload"]["parts"][0]["text"] == "Go."
    assert request["options"] == ["add", "shout"]


def test_a_store_without_runs_says_so_and_is_not_made(tmp_path: Path, postgres: str) -> None:
    path = tmp_path / "none.db"
    for store in (f"sqlite:///{path}", postgres):
        with pytest.raises(StoreInvalid, match="has no tables of runs; give the store URL that a DurableRunner uses"):
            Runs(store)

    assert not path.exists()
