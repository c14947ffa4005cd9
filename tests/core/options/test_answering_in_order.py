"""No function runs if a later call of the same reply cannot run, so that no result is lost."""

import asyncio
from collections.abc import Callable

import pytest
import sabir
from sabir import Message, Reply, ToolContext
from sabir.errors import OptionInvalid

DRIVERS: dict[str, Callable[..., list[Message]]] = {
    "sync": sabir.answer_sync,
    "async": lambda reply, options: asyncio.run(sabir.answer(reply, options)),
}


def ask_for_two(options: list[Callable[..., object]]) -> Reply:
    question = sabir.user('call pay {"amount": 1}\ncall report {"amount": 2}')
    reply = sabir.adapter("echo:m").complete_sync([question], options=options)
    assert [call.call and call.call.option_name for call in reply.option_calls] == ["pay", "report"]
    return reply


@pytest.mark.parametrize("answer", DRIVERS.values(), ids=DRIVERS)
def test_answer_runs_nothing_if_a_later_call_cannot_run(answer: Callable[..., list[Message]]) -> None:
    paid: list[int] = []

    def pay(amount: int) -> int:
        paid.append(amount)
        return amount

    def report(ctx: ToolContext, amount: int) -> int:
        return amount

    reply = ask_for_two([pay, report])
    with pytest.raises(OptionInvalid, match="'report' needs 'ctx', a ToolContext"):
        answer(reply, [pay, report])

    assert paid == []
    answer(reply, [pay])
    assert paid == [1]
