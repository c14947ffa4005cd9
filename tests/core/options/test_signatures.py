"""A parameter whose type provides itself is filled in where an option runs, and no model is told of it (WI-48)."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import Annotated, Any

import pytest
import sabir
from pydantic import BaseModel
from sabir import Message, Option
from sabir.errors import OptionInvalid
from sabir_testing.histories.samples import call_message


class Run:
    def __init__(self, number: int) -> None:
        self.number = number

    @classmethod
    def __sabir_provide__(cls) -> "Run":
        return RUN.get()

    @classmethod
    @contextmanager
    def running(cls) -> Iterator[None]:
        token = RUN.set(cls(7))
        try:
            yield
        finally:
            RUN.reset(token)


RUN: ContextVar[Run] = ContextVar("run")


class Amount(BaseModel):
    """What is paid."""

    amount: int


def pay(amount: int, run: Run) -> str:
    """Pay."""
    return f"{amount} by {run.number}"


def pay_model(given: Amount, *, run: Annotated[Run, "whose it is"]) -> str:
    """Pay."""
    return f"{given.amount} by {run.number}"


async def pay_maybe(amount: int, *, run: Run | None = None) -> str:
    """Pay."""
    return f"{amount} by {run.number if run else 'nobody'}"


SCHEMA: dict[str, Any] = {"type": "object", "properties": {"amount": {"type": "integer"}}, "required": ["amount"]}
OPTIONS = [
    Option.from_function(pay),
    Option.from_function(partial(pay), name="pay"),
    Option.from_model(Amount, pay_model, name="pay"),
    Option.from_schema("pay", "Pay.", SCHEMA, pay),
]


def call(**arguments: Any) -> Message:
    return call_message("c", {"amount": 3, **arguments}, "pay")


@pytest.mark.parametrize("option", OPTIONS, ids=["function", "partial", "model", "schema"])
async def test_it_is_filled_in_and_stands_in_no_schema(option: Option) -> None:
    assert set(option.parameters["properties"]) == {"amount"}
    with Run.running():
        results = [option.answer_sync(call()), await option.answer(call())]
        refused = OPTIONS[0].answer_sync(call(run={"number": 1})).result

    assert [result.result.result for result in results if result.result] == ["3 by 7"] * 2
    assert refused is not None and refused.error_type == "invalid_arguments"  # a model cannot give it
    with pytest.raises(OptionInvalid, match="'pay' needs 'run', a Run, which is not available here"):
        sabir.answer_sync([call()], [option])


async def test_with_a_default_it_need_not_be_provided() -> None:
    option = Option.from_function(pay_maybe, name="pay")
    alone = await option.answer(call())
    with Run.running():
        told = await option.answer(call())

    assert [each.result.result for each in (alone, told) if each.result] == ["3 by nobody", "3 by 7"]
    assert set(option.parameters["properties"]) == {"amount"}
