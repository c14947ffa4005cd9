"""Two calls are told apart by what they ask; what differs is named."""

import pytest
import sabir
from hypothesis import given
from hypothesis import strategies as some
from sabir import Message
from sabir_runtime import BaseContext, Batch, BoundCall, InMemoryRunner
from sabir_runtime.durable.tables import difference, request_of, whole_request

from tests.durable.assistant import Names

HINTS = some.sampled_from([None, "user", "assistant", "tool", "system"])
STEPS = some.none() | some.integers(0, 9)
LONG = "to be or not to be " * 50


async def ask(ctx: BaseContext, observations: Batch, options: Names = None, *, number: int = 0) -> Batch:
    """Anything."""
    return []


class Desk(BaseContext):
    """One policy."""

    def __init__(self) -> None:
        super().__init__(InMemoryRunner())
        self.ask = self._bind(ask)


def call_of(*said: str | Message, options: list[str] | None = None, **arguments: int) -> BoundCall:
    """A call of it."""
    messages = [sabir.user(each) if isinstance(each, str) else each for each in said]
    return BoundCall(Desk().ask, messages, options, arguments)


@given(HINTS, STEPS, HINTS, STEPS)
def test_role_hints_and_steps_are_no_part_of_what_is_asked(
    hint: str | None, step: int | None, other_hint: str | None, other_step: int | None
) -> None:
    """Law 7, PJ-08, PJ-23: nor are ids; texts and policies are."""
    one = sabir.user("Hi.").model_copy(update={"role_hint_for_llm": hint, "step_num": step})
    other = sabir.user("Hi.").model_copy(update={"role_hint_for_llm": other_hint, "step_num": other_step})

    assert request_of(call_of(one)).digest == request_of(call_of(other)).digest
    assert request_of(call_of(one)).digest != request_of(call_of(sabir.assistant("Hi."))).digest


@pytest.mark.parametrize(
    ("was", "now", "told"),
    [
        (call_of("a"), call_of("b"), 'recorded with observations.last.payload.parts[0].text "a", found "b"'),
        (call_of(f"{LONG}a"), call_of(f"{LONG}b"), 'observations.last.payload.parts[0].text … to be or not to be a"'),
        (call_of("a"), call_of(sabir.assistant("a")), 'observations.last.policy "user", found "llm"'),
        (call_of("a", "c"), call_of("b", "c"), "recorded with other observations: a message before the last one"),
        (call_of("c"), call_of("b", "c"), "recorded with observations.count 1, found 2"),
        (call_of("a"), call_of(), "recorded with observations.count 1, found 0"),
        (call_of("a", number=1), call_of("a", number=2), "recorded with arguments.number 1, found 2"),
        (call_of("a", options=["ask"]), call_of("a"), 'recorded with options ["ask"], found null'),
    ],
    ids=["text", "end of a long text", "policy", "earlier message", "count", "no message", "argument", "options"],
)  # fmt: skip
def test_what_differs_is_shown(was: BoundCall, now: BoundCall, told: str) -> None:
    """D-11: never two equal texts; what is not compared is not shown."""
    text = difference(request_of(was).readable, request_of(now).readable)

    assert told in text
    assert '"id"' not in text
    if told.endswith("before the last is"):  # of a whole request, the place in its history is shown
        assert 'observations[0].payload.parts[0].text "a", found "b"' in difference(
            whole_request(was), whole_request(now)
        )
