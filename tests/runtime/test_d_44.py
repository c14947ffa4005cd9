"""D-44: an option may return messages; a result holds one JSON value, or parts."""

import asyncio
from typing import Any

import pytest
import sabir
from sabir import Message
from sabir_runtime import BaseContext, InMemoryRunner

Names = list[str] | None
TEXTS = [sabir.assistant("Rome:", " rain", policy="forecast"), sabir.assistant("Oslo: snow", policy="forecast")]
PICTURE = sabir.assistant("A map", sabir.image(b"\x89PNG\r\n\x1a\n"), policy="forecast")


def choice(name: str) -> Message:
    """A call of an option without arguments."""
    payload = {"kind": "option_call", "option_name": name, "invocation_id": "c1", "arguments": {}}
    return Message.model_validate({"policy": "llm", "payload": payload})


CASES: list[Any] = [
    (TEXTS, "Rome: rain\nOslo: snow", 0),
    (TEXTS[:1], "Rome: rain", 0),
    ([PICTURE], None, 2),
    ([*TEXTS, PICTURE], None, 5),
]


async def results_of(batch: list[Message]) -> list[Message]:
    """The results of a policy that returns the batch, and of a plain option that does."""

    async def forecast(ctx: BaseContext, observations: list[Message], options: Names = None) -> list[Message]:
        return list(batch)

    async def chooser(ctx: BaseContext, observations: list[Message], options: Names = None) -> list[Message]:
        return [choice("forecast")]

    class Desk(BaseContext):
        def __init__(self) -> None:
            super().__init__(InMemoryRunner())
            self.forecast, self.chooser = self._bind(forecast), self._bind(chooser)

    plain = sabir.option(lambda: list(batch), name="forecast")
    return [(await Desk().chooser([], ["forecast"]))[-1], plain.answer_sync(choice("forecast"))]


@pytest.mark.parametrize(("batch", "result", "parts"), CASES)
def test_d_44_messages_of_text_are_joined_and_media_are_parts(batch: list[Message], result: str, parts: int) -> None:
    """One line end between messages, nothing between the parts of one."""
    for message in asyncio.run(results_of(batch)):
        assert message.result is not None
        assert (message.result.result, len(message.result.parts)) == (result, parts)


def test_d_44_other_messages_are_dumped() -> None:
    """A batch with reasoning: each message as `dumps` writes it."""
    batch = [TEXTS[0], sabir.assistant(sabir.ReasoningPart(text="It rains."), policy="forecast")]
    for message in asyncio.run(results_of(batch)):
        assert message.result is not None
        dumped = message.result.plain_result()
        assert [Message.model_validate(each) for each in dumped] == batch
