"""Calls of the model's, their results, and conversations of whole turns."""

from collections.abc import Sequence
from typing import Any, TypeAlias

from sabir.vocabulary.messages import Message, OptionCallPayload, OptionResultPayload
from sabir_testing.histories.samples import message_by

MessageTurn: TypeAlias = list[Message]


def answer(call: Message, outcome: dict[str, Any]) -> Message:
    chosen = call.call
    assert chosen is not None
    payload = OptionResultPayload(invocation_id=chosen.invocation_id, option_name=chosen.option_name, **outcome)
    return Message(policy=chosen.option_name, payload=payload)


def call(invocation_id: str, arguments: dict[str, Any]) -> Message:
    payload = OptionCallPayload(invocation_id=invocation_id, option_name="weather", arguments=arguments)
    return Message(policy="llm", payload=payload)


def opened(turns: Sequence[MessageTurn]) -> list[MessageTurn]:
    """The turns after instructions and a question."""
    return [[message_by("system", "Be brief."), message_by("user", "Hi")], *turns]
