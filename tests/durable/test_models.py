"""Models in durable runs: an answer that was recorded is never asked for again."""

import sabir
from sabir_runtime import Batch, llm_policy, loop_policy
from sabir_testing import ScriptedAdapter, calls

from tests.durable.assistant import Names
from tests.durable.support import Gate, Program, carried_on, end_at, working


async def test_a_model_is_asked_only_for_what_is_not_recorded(store: str) -> None:
    """RN-25: the run ends in the option that its model chose; the next process runs the option, and asks on."""
    gate = Gate()

    async def search(ctx: Program, observations: Batch, options: Names = None, *, query: str) -> Batch:
        """Search.

        Args:
            query: For what.
        """
        return [sabir.assistant(f"found {query}", policy="search"), *await gate(ctx, observations)]

    before = ScriptedAdapter(calls(search={"query": "umbrellas"}))
    async with working(store, main=loop_policy("llm"), llm=llm_policy(before), search=search) as (runner, program):
        await end_at(gate, runner, runner.run(program.main, "Umbrella?", ["search"], run_id="r"))
    before.assert_finished()

    gate.opened.set()
    after = ScriptedAdapter("Take one.")
    messages = await carried_on(store, main=loop_policy("llm"), llm=llm_policy(after), search=search)
    after.assert_finished()

    assert messages[-1].text == "Take one."
    assert [len(sent.results) for sent in after.sent] == [1]
    assert gate.passed == 2
