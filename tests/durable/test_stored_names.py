"""What a store names, it names by names of its own: classes can be renamed, and runs stored before continue."""

import asyncio
from typing import ClassVar

import pytest
import sabir
from sabir_runtime import BaseContext, BaseRunner, Batch, BoundPolicy, ReplayMismatch
from sabir_runtime.durable import DurableFault, DurableRunner, RowRefused, RunNotFound, stored_faults
from sabir_runtime.durable.engine import ReadableJSON
from sabir_runtime.failures import PolicyFailed

from tests.durable.assistant import Names
from tests.durable.children import BEAT, POLL
from tests.durable.support import Gate, end_at

NAMES = {"DurableFault", "PolicyFailed", "PolicyInvalid", "ReplayMismatch", "RowRefused", "RunConflict", "RunNotFound"}
"""Names of errors that stores hold: none may change or be missing."""


class Program(BaseContext):
    main: BoundPolicy

    def __init__(self, runner: BaseRunner, gate: Gate) -> None:
        super().__init__(runner)
        self._gate = gate
        self.main = self._bind(main)


async def main(ctx: Program, observations: Batch, options: Names = None) -> Batch:
    if observations[-1].text == "wait":
        return await ctx._gate(ctx, observations)
    return [sabir.assistant("hello", policy="main")]


class Before(Program):
    """The class as it was called when its runs were stored."""


class Named(Program):
    """The same class later: renamed, with a stored name."""

    stored_as: ClassVar[str] = "desk"
    stored_before: ClassVar[tuple[str, ...]] = ("Before",)


class Derived(Named):
    """Another class, which has no names of its own."""


async def store_runs(store: str) -> None:
    """Store a run that ended, an unfinished one, and a queued one."""
    async with DurableRunner(store, beat=BEAT, poll=POLL) as runner:
        gate = Gate()
        program = Before(runner, gate)
        await runner.run(program.main, "Hi.", run_id="ended")
        await end_at(gate, runner, runner.run(program.main, "wait", run_id="open"))
    async with DurableRunner(store, beat=BEAT, poll=POLL) as runner:
        await runner.submit(Before(runner, Gate()).main, "Hi.", run_id="queued")


@pytest.mark.parametrize("launched_first", [False, True])
async def test_a_renamed_context_continues_the_runs_of_its_earlier_name(store: str, launched_first: bool) -> None:
    await store_runs(store)
    async with DurableRunner(store, beat=BEAT, poll=POLL) as runner:
        if launched_first:
            await runner.launch()
        gate = Gate()
        gate.opened.set()
        program = Named(runner, gate)
        again = await runner.run(program.main, "Hi.", run_id="ended")
        results = [await asyncio.wait_for(runner.result(run), 30) for run in ("ended", "open", "queued")]
        await runner.run(program.main, "Hi.", run_id="new")
        with pytest.raises(ReplayMismatch, match=r"is a call of Before\.main with other observations"):
            await runner.run(program.main, "Ho.", run_id="ended")
        contexts = {each.run: each.context for each in await asyncio.to_thread(runner.runs.list)}

    assert [batch[-1].text for batch in (again, *results)] == ["hello", "hello", "through", "hello"]
    assert contexts == {"ended": "Before", "open": "Before", "queued": "Before", "new": "desk"}


async def test_a_subclass_does_not_take_the_runs_of_its_base(sqlite: str) -> None:
    await store_runs(sqlite)
    async with DurableRunner(sqlite, beat=BEAT, poll=POLL) as runner:
        program = Derived(runner, Gate())
        with pytest.raises(ReplayMismatch, match=r"is a call of Before\.main, not of Derived\.main"):
            await runner.run(program.main, "Hi.", run_id="ended")


@pytest.mark.parametrize("kind", [RowRefused, RunNotFound, DurableFault, ReplayMismatch])
def test_a_renamed_error_keeps_its_stored_name(kind: type[Exception]) -> None:
    renamed = type("Renamed", (kind,), {})

    assert stored_faults.fault_text(renamed("why")) == f"{kind.__name__}: why"
    assert ReadableJSON().serialize(renamed("why")) == f'{{"error": "{kind.__name__}", "message": "why"}}'


def test_no_stored_name_of_an_error_changes_or_is_missing() -> None:
    assert set(stored_faults.NAMES.values()) >= NAMES


def test_errors_of_other_classes_have_one_stored_name() -> None:
    """Their class is a part of the text, which only people read."""
    serializer = ReadableJSON()

    assert serializer.serialize(LookupError("why")) == '{"error": "Error", "message": "LookupError: why"}'
    assert (
        serializer.serialize(PolicyFailed("MyError", "why")) == '{"error": "PolicyFailed", "message": "MyError: why"}'
    )


async def test_a_fault_that_an_earlier_version_stored_is_raised(sqlite: str) -> None:
    await store_runs(sqlite)
    async with DurableRunner(sqlite, beat=BEAT, poll=POLL) as runner:
        await runner.launch()
        await asyncio.to_thread(runner.runs.pause, "open", reason="ReplayMismatch: it does not repeat itself")
        with pytest.raises(ReplayMismatch, match=r"^it does not repeat itself$"):
            await runner.result("open")
