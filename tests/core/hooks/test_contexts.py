"""Context variables that a `with` block sets, in a coroutine that is closed in another context."""

import asyncio
import gc
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager
from contextvars import copy_context
from typing import Any

import pytest
from sabir import ToolContext
from sabir.authoring import AgentWork, CallDepth, announce_work, continue_work
from sabir_calls.limits.hooks import calling_in
from sabir_calls.limits.limit import Limit, Slot
from sabir_roles.template_limits import limit_costs
from sabir_runtime import branch
from sabir_runtime.paths import enter

MANAGERS: dict[str, Callable[[], AbstractContextManager[Any]]] = {
    "ToolContext.entered": lambda: ToolContext("call").entered(),
    "CallDepth": lambda: CallDepth.one_deeper("option"),
    "continue_work": lambda: continue_work({}),
    "announce_work": lambda: announce_work(AgentWork("agent", "assistant")),
    "calling_in": lambda: calling_in(Slot(Limit(requests=1), 1)),
    "limit_costs": limit_costs,
    "enter": lambda: enter("path"),
    "branch": lambda: branch("left"),
}


class Suspension:
    """Awaiting it gives control to whoever drives the coroutine."""

    def __await__(self) -> Generator[None, None, None]:
        yield


@pytest.mark.parametrize("manager", MANAGERS.values(), ids=MANAGERS)
def test_a_coroutine_may_be_closed_in_another_context(manager: Callable[[], AbstractContextManager[Any]]) -> None:
    async def work() -> None:
        with manager():
            await Suspension()

    coroutine = work()
    copy_context().run(coroutine.send, None)
    coroutine.close()


def test_an_error_of_the_block_is_raised_also_in_another_context() -> None:
    """Only the failure to reset the variable is ignored."""

    async def work() -> None:
        with CallDepth(3).set():
            await Suspension()

    coroutine = work()
    copy_context().run(coroutine.send, None)
    with pytest.raises(ValueError, match="mine"):
        coroutine.throw(ValueError("mine"))
    assert CallDepth.current().calls == 0


def test_a_generator_that_a_task_left_is_collected_without_a_complaint() -> None:
    complaints: list[Any] = []

    async def numbers() -> Any:
        with ToolContext("call").entered():
            yield 1
            yield 2

    async def read_one() -> None:
        async for _ in numbers():
            break

    async def main() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: complaints.append(context))
        await asyncio.create_task(read_one())
        gc.collect()
        await asyncio.sleep(0.01)

    asyncio.run(main())
    assert complaints == []
