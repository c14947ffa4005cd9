"""Steps: neighbouring messages of one decision cycle, seen as one transition (PJ-21 … PJ-24).

    step_num  1 1 1 · 2 2 · None  ──▶  Step(1, …), Step(2, …), Step(None, …)

Nothing is reordered: the order of events is the conversation's own.
"""

from collections.abc import Iterable
from itertools import groupby
from typing import NamedTuple

from sabir.messages import Message


class Step(NamedTuple):
    """Neighbouring messages of one step number; None is the number of those that belong to no step."""

    step_num: int | None
    messages: tuple[Message, ...]


def group_steps(messages: Iterable[Message]) -> list[Step]:
    """The steps of a conversation in its own order; a number that comes again later begins a step of its own."""
    return [Step(number, tuple(group)) for number, group in groupby(messages, key=lambda each: each.step_num)]
