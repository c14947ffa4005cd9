"""DurableRunner: what was recorded is given back, what was not is performed, and both give equal messages."""

import asyncio
import threading
from datetime import date
from typing import Any

import pytest
import sabir
from sabir_runtime import Batch, PolicyFailed, ReplayMismatch
from sabir_runtime.durable import DurableFault, DurableRunner, RunConflict, RunnerInUse, StoreInvalid

from tests.durable.assistant import Names
from tests.durable.children import BEAT, POLL
from tests.durable.support import Gate, Program, carried_on, choosing, end_at, left_at, saying, working


async def twice(ctx: Program, observations: Batch, options: Names = None) -> Batch:
    return [*await ctx.first(observations), *await ctx.second(observations)]


async def test_a_run_of_that_name_is_not_performed_again(store: str) -> None:
    """RN-25: its result is given, by the same runner and by the next one, ids of messages included."""
    heard: list[str] = []
    async with working(store, main=saying("hello", heard)) as (runner, program):
        first = await runner.run(program.main, "Hi.", run_id="greeting")
        again = await runner.run(program.main, "Hi.", run_id="greeting")
    async with working(store, main=saying("hello", heard)) as (runner, program):
        later = await runner.run(program.main, "Hi.", run_id="greeting")

    assert first == again == later
    assert heard == ["hello"]


async def test_unfinished_runs_go_on_as_soon_as_their_program_is_there_again(store: str) -> None:
    """`recover` launches, and names what is unfinished; a context that nobody runs here stays in the queue."""
    gate = Gate()
    await left_at(gate, store, main=gate)
    async with DurableRunner(store, beat=0.05, poll=0.02) as runner:
        assert await runner.recover() == ["r"]
        program = Program(runner, main=saying("hello"))
        await runner.recover(program)
        messages = await runner.result("r")

    assert [message.text for message in messages] == ["hello"]


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"options": ["first"]}, r"options null, found \[\"first\"\]"),
        ({"observations": "Other."}, r"observations.last.payload.parts\[0\].text .*Hi.*, found .*Other"),
    ],
)
async def test_another_request_at_the_same_place_is_a_mismatch(store: str, changed: dict[str, Any], told: str) -> None:
    """RN-27, D-11: options and observations take part; the error names run, path, both requests and the remedy."""
    gate = Gate()

    async def main(ctx: Program, observations: Batch, options: Names = None) -> Batch:
        await ctx.first(observations)
        return await ctx.second(observations)

    async def other(ctx: Program, observations: Batch, options: Names = None) -> Batch:
        given = {"observations": observations, **changed}
        await ctx.first(**given)
        return await ctx.second(observations)

    await left_at(gate, store, main=main, first=saying("one"), second=gate)
    async with working(store, main=other, first=saying("one"), second=saying("two")) as (runner, _):
        with pytest.raises(ReplayMismatch, match=f"'r' .*'0:main/0:first'.*{told}.*sabir runs fork r --at"):
            await runner.result("r")
        details = await asyncio.to_thread(runner.runs.show, "r")
        assert details.summary.state == "paused"
        assert "differs from its records" in (details.summary.fault or "")
    async with working(store, main=main, first=saying("one"), second=saying("two")) as (runner, _):
        await asyncio.to_thread(runner.runs.resume, "r")
        assert [message.text for message in await runner.result("r")] == ["two"]


async def test_a_mismatch_within_an_option_ends_in_no_result_for_the_model(store: str) -> None:
    """D-11: options turn failures into results for the model, but a run that does not repeat itself is stopped."""
    gate = Gate()

    async def option(ctx: Program, observations: Batch, options: Names = None) -> Batch:
        await ctx.first(observations)
        return await ctx.second(observations)

    async def changed(ctx: Program, observations: Batch, options: Names = None) -> Batch:
        await ctx.first("Something else.")
        return await ctx.second(observations)

    async def main(ctx: Program, observations: Batch, options: Names = None) -> Batch:
        return await ctx.choose(observations, ["option"])

    parts = {"main": main, "choose": choosing(("option", "c1", {})), "first": saying("one")}
    await left_at(gate, store, **parts, option=option, second=gate)
    async with working(store, **parts, option=changed, second=saying("two")) as (runner, _):
        with pytest.raises(ReplayMismatch, match=r"at '0:main/0:choose/\[c1\]/0:option/0:first'"):
            await runner.result("r")
        recorded = await asyncio.to_thread(runner.runs.ledger.calls, "r")
        assert [call.path for call in recorded if call.kind == "answer"] == []
    async with working(store, **parts, option=option, second=saying("two")) as (runner, _):
        await asyncio.to_thread(runner.runs.resume, "r")
        *_, result = await runner.result("r")
        assert result.result is not None and not result.result.is_error


async def test_a_run_of_that_name_with_another_question_is_refused(store: str) -> None:
    """RN-27: the message's id is no part of the question, its text is."""
    async with working(store, main=saying("a"), other=saying("b")) as (runner, program):
        await runner.run(program.main, [sabir.user("Hi.")], run_id="r")
        await runner.run(program.main, [sabir.user("Hi.")], run_id="r")
        with pytest.raises(ReplayMismatch, match=r"'r' is a call of Program.main with other observations"):
            await runner.run(program.main, "Ho.", run_id="r")
        with pytest.raises(ReplayMismatch, match=r"'r' is a call of Program.main, not of Program.other"):
            await runner.run(program.other, "Hi.", run_id="r")


async def test_a_failure_is_recorded_and_told_alike_each_time(store: str) -> None:
    """D-11: a failed policy is not run again; what its caller catches is the same before and after a restart."""
    heard: list[str] = []

    async def fails(ctx: Program, observations: Batch, options: Names = None) -> Batch:
        heard.append("fails")
        raise ValueError("no luck")

    caught: list[tuple[str, str, str]] = []

    async def main(ctx: Program, observations: Batch, options: Names = None) -> Batch:
        try:
            return await ctx.first(observations)
        except Exception as error:
            assert isinstance(error, PolicyFailed)
            caught.append((type(error).__name__, error.error_type, error.error_message))
        return await ctx.second(observations)

    gate = Gate()
    await left_at(gate, store, main=main, first=fails, second=gate)
    async with working(store, main=main, first=fails, second=saying("well")) as (runner, program):
        assert [message.text for message in await runner.result("r")] == ["well"]
        for _ in range(2):
            with pytest.raises(PolicyFailed, match="no luck"):
                await runner.run(program.first, "Hi.", run_id="failed")

    assert caught == [("ValueError", "ValueError", "no luck")] * 2
    assert heard == ["fails", "fails"]


async def test_a_run_whose_caller_is_cancelled_while_it_is_written_down_is_performed(
    sqlite: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To stop waiting is not to stop the run, at no moment: what is written down is started too."""
    written, go_on = threading.Event(), threading.Event()
    async with working(sqlite, main=saying("hello")) as (runner, program):
        ledger = (await runner.launch()).ledger
        create = ledger.create

        def slow(*arguments: Any) -> Any:
            made = create(*arguments)
            written.set()
            go_on.wait()
            return made

        monkeypatch.setattr(ledger, "create", slow)
        performing = asyncio.ensure_future(runner.run(program.main, "Hi.", run_id="r"))
        await asyncio.to_thread(written.wait)
        performing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await performing
        go_on.set()
        async with asyncio.timeout(20):
            messages = await runner.result("r")

    assert [message.text for message in messages] == ["hello"]


async def test_two_applications_of_one_store_do_not_share_a_run(store: str) -> None:
    """A name that the other one gave to the same question is refused; its result is not this one's."""
    async with DurableRunner(store, application="ours", beat=BEAT, poll=POLL) as runner:
        await runner.run(Program(runner, main=saying("ours")).main, "Hi.", run_id="r")
    async with DurableRunner(store, application="theirs", beat=BEAT, poll=POLL) as runner:
        told = "'r' belongs to application 'ours', but this runner has 'theirs'; use another"
        with pytest.raises(RunConflict, match=told):
            await runner.run(Program(runner, main=saying("theirs")).main, "Hi.", run_id="r")


async def test_arguments_of_any_type_reach_the_next_process_unchanged(store: str) -> None:
    """RN-29: typed by the policy's parameters, as JSON in the store; names of options pass through."""
    seen: list[object] = []
    gate = Gate()

    async def main(
        ctx: Program, observations: Batch, options: Names = None, *, day: date, sizes: tuple[int, ...]
    ) -> Batch:
        seen.append((day, sizes, options, observations[0]))
        return await ctx.second(observations)

    question = sabir.user("Hi.")
    given = {"day": date(2026, 1, 2), "sizes": (1, 2)}
    async with working(store, main=main, second=gate) as (runner, program):
        await end_at(gate, runner, runner.run(program.main, question, ["second"], run_id="r", **given))
    await carried_on(store, main=main, second=saying("two"))

    assert seen == [(date(2026, 1, 2), (1, 2), ["second"], question)] * 2


async def test_the_runner_is_one_in_each_process(sqlite: str, tmp_path: Any) -> None:
    """Runners of equal settings share the engine; another store is refused in one line, until the first is closed."""
    one, two, other = DurableRunner(sqlite), DurableRunner(sqlite), DurableRunner(f"sqlite:///{tmp_path / 'other.db'}")
    await one.launch()
    await two.launch()
    told = r"already has an open DurableRunner of .*runs\.db with other settings; close it first"
    with pytest.raises(RunnerInUse, match=told):
        await other.launch()
    await one.aclose()
    with pytest.raises(RunnerInUse):
        await other.launch()
    await two.aclose()
    await other.launch()
    await other.aclose()


async def test_what_cannot_be_is_refused_in_one_line(sqlite: str) -> None:
    with pytest.raises(StoreInvalid, match="is not a valid name"):
        DurableRunner(sqlite, application="My App")
    async with working(sqlite, other=saying("hello")) as (runner, program):

        async def main(ctx: Program, observations: Batch, options: Names = None) -> Batch:
            return await runner.run(program.other, observations)

        with pytest.raises(PolicyFailed, match="a run cannot start another run; call 'other' through its context"):
            await Program(runner, main=main).main("Hi.")


async def test_a_run_is_submitted_by_a_process_that_performs_none(store: str) -> None:
    """Nothing is launched for it; it waits for a worker, and the same name is the same run."""
    heard: list[str] = []
    async with DurableRunner(store, beat=BEAT, poll=POLL) as asking:
        program = Program(asking, main=saying("hello", heard))
        for _ in range(2):
            assert await asking.submit(program.main, "Hi.", run_id="asked") == "asked"
        with pytest.raises(ReplayMismatch, match=r"run 'asked' is a call of Program\.main with other observations"):
            await asking.submit(program.main, "Bye.", run_id="asked")
        with pytest.raises(DurableFault, match="not launched; await"):
            assert asking.runs
        assert not heard
        async with working(store, main=saying("hello", heard)) as (runner, _):
            assert [message.text for message in await runner.result("asked")] == ["hello"]
    assert heard == ["hello"]


async def test_a_worker_takes_so_many_runs_at_once(store: str) -> None:
    gate = Gate()
    async with DurableRunner(store, beat=BEAT, poll=POLL, at_once=2) as runner:
        program = Program(runner, main=gate)
        names = [await runner.start(program.main, "Hi.", run_id=f"run {number}") for number in range(5)]
        await gate.reached.wait()
        while [each.state for each in runner.runs.list()].count("running") < 2:
            await asyncio.sleep(POLL)
        await asyncio.sleep(10 * POLL)
        assert gate.passed == 2
        gate.opened.set()
        for name in names:
            await runner.result(name)
    assert gate.passed == 5
