"""What an option may know of its run, and the depth at which calls within each other end."""

import pytest
import sabir
from sabir import Message, OptionCallPayload
from sabir.authoring import CallDepth
from sabir.errors import CallsTooDeep, OutsideEvaluation
from sabir.options.execution import MOST_DEPTH, ToolContext

CALL = Message(policy="llm", payload=OptionCallPayload(invocation_id="c1", option_name="sink"))


@sabir.option
def sink() -> str:
    "Go one deeper."
    with CallDepth.one_deeper("sink"):
        return "there"


async def test_a_call_that_is_too_deep_ends_what_it_is_within() -> None:
    """As a result, a model would choose it again; an error of the same name that an option has itself is its result."""
    with CallDepth(MOST_DEPTH - 1).set():
        (result,) = sabir.answer_sync([CALL], [sink])
        assert result.result is not None and result.result.result == "there"
    with (
        CallDepth(MOST_DEPTH).set(),
        pytest.raises(CallsTooDeep, match=f"'sink' is nested in {MOST_DEPTH} other calls"),
    ):
        sabir.answer_sync([CALL], [sink])
    with CallDepth(MOST_DEPTH).set(), pytest.raises(CallsTooDeep):
        await sabir.answer([CALL], [sink])


def test_outside_of_a_run_there_is_no_context() -> None:
    with pytest.raises(OutsideEvaluation, match="does not run inside an option"):
        ToolContext.current()
    with ToolContext("c1", idempotency_key="m1/c1").entered():
        assert ToolContext.current().idempotency_key == "m1/c1"
    with pytest.raises(OutsideEvaluation):
        ToolContext.current()


def test_what_comes_after_a_call_is_as_deep_as_what_came_before_it() -> None:
    with pytest.raises(ZeroDivisionError), CallDepth(7).set():
        assert CallDepth.current().calls == 7
        raise ZeroDivisionError

    assert CallDepth.current().calls == 0
