"""Durable runs of older versions: read as they were written, and carried on by a worker of the checkout."""

import asyncio
from collections.abc import Mapping

import pytest
from sabir_runtime import PolicyFailed, ReplayMismatch
from sabir_runtime.durable import Runs

from tests.frozen import readable
from tests.frozen.conftest import Frozen, bounded
from tests.frozen.programs import OPTIONS, Journey, Places
from tests.frozen.writing.runs import POLL, runner_of

READY = "Ready for Rome."
CARRIED_ON: Mapping[str, tuple[str, list[str]]] = {
    "cut-in-model": (READY, ["model 0", "pack", "book", "model 1"]),
    "cut-in-option": (READY, ["book", "model 1"]),
    "cut-in-branch": ("c1", ["step b1"]),
    "ask-decided": ("as you wish: allowed", ["allowed"]),
    "queued": (READY, ["model 0", "pack", "book", "model 1"]),
}
"""Run that any worker carries on → its last text, and the places that it reaches now: none that it recorded before."""
ENDED = {"finished": READY, "option-failed": "Ready for Nowhere.", "branched": "c1"}
STOPPED = {"paused": ["book", "model 1"], "cancelled": ["model 1"]}
"""Run that a person resumes → the places that it reaches then."""


def reached(places: Places, run: str) -> list[str]:
    return [place.partition(": ")[2] for place in places.reached if place.startswith(f"{run}: ")]


@bounded
async def test_runs_read_as_they_were_written(frozen: Frozen) -> None:
    written, url = frozen.expected("runs"), frozen.url("runs")

    readable.check(written, await asyncio.to_thread(readable.of_runs, url))

    states = {name: each["summary"]["state"] for name, each in written.items()}
    assert set(states.values()) == {"queued", "running", "waiting", "paused", "cancelled", "done", "failed"}


@bounded
async def test_a_worker_carries_on_what_a_killed_one_left(frozen: Frozen) -> None:
    """Also what waited in the queue; each effect that was recorded is not repeated."""
    places = Places()
    async with runner_of(frozen.url("runs")) as runner:
        Journey(runner, places)
        await runner.recover()
        for run, (text, effects) in CARRIED_ON.items():
            messages = await runner.result(run)
            assert messages[-1].text == text, run
            assert sorted(reached(places, run)) == sorted(effects), run
        await runner.result("forked")
        assert reached(places, "finished") == ["model 1"]  # a fork asks what its origin asked


@bounded
async def test_ended_runs_give_their_results_again(frozen: Frozen) -> None:
    """The same messages, for the run's name and for the same request; another request is refused."""
    written, places = frozen.expected("runs"), Places()
    async with runner_of(frozen.url("runs")) as runner:
        ctx = Journey(runner, places)
        for run, text in ENDED.items():
            messages = await runner.result(run)
            assert messages[-1].text == text
            readable.check(written[run]["calls"][0]["messages"], messages)
        again = await runner.run(ctx.main, "finished to Rome", OPTIONS, run_id="finished")
        assert again == await runner.result("finished")
        with pytest.raises(ReplayMismatch):
            await runner.run(ctx.main, "finished to Oslo", OPTIONS, run_id="finished")
        with pytest.raises(PolicyFailed, match="the flight was cancelled") as failed:
            await runner.result("failed")
        assert isinstance(failed.value, ValueError) and failed.value.error_type == "ValueError"
    assert set(reached(places, "finished")) <= {"model 1"}  # by its frozen fork
    assert not {place.partition(":")[0] for place in places.reached} & {"option-failed", "branched", "failed"}


@bounded
async def test_a_person_resumes_decides_and_deletes(frozen: Frozen) -> None:
    places = Places()
    async with runner_of(frozen.url("runs")) as runner:
        Journey(runner, places)
        await runner.launch()
        for run, effects in STOPPED.items():
            await asyncio.to_thread(runner.runs.resume, run)
            assert (await runner.result(run))[-1].text == READY
            assert reached(places, run) == effects
        details = await asyncio.to_thread(runner.runs.show, "ask-open")
        (path,) = [call.path for call in details.calls if call.state == "waiting"]
        await runner.decide("ask-open", path, "denied")
        assert (await runner.result("ask-open"))[-1].text == "as you wish: denied"
        await asyncio.to_thread(runner.runs.delete, "finished", "failed")
        listed = await asyncio.to_thread(runner.runs.list)
    assert not {"finished", "failed"} & {each.run for each in listed}


@bounded
async def test_a_run_is_forked_from_frozen_records(frozen: Frozen) -> None:
    url, places = frozen.url("runs"), Places()
    with Runs(url) as runs:
        details = await asyncio.to_thread(runs.show, "finished")
        (path,) = [call.path for call in details.calls if call.path.endswith("1:llm")]
        await asyncio.to_thread(runs.fork, "finished", at=path, name="again")
    async with runner_of(url) as runner:
        Journey(runner, places)
        await runner.launch()
        for run in ("again", "forked"):
            assert (await runner.result(run))[-1].text == READY
    assert reached(places, "finished") == ["model 1", "model 1"]


@bounded
async def test_another_version_takes_its_own_runs_alone(frozen: Frozen) -> None:
    url, places = frozen.url("runs"), Places()
    async with runner_of(url, version="2") as runner:
        Journey(runner, places)
        await runner.launch()
        assert (await runner.result("other-version"))[-1].text == READY
        await asyncio.sleep(5 * POLL)
        queued = await asyncio.to_thread(runner.runs.summary, "queued")
    assert queued.state == "queued"
    assert {place.partition(":")[0] for place in places.reached} == {"other-version"}
