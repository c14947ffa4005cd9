"""Which call a result answers: decided from kinds and ids alone, so that no role hint changes it (law 7).

call, call, call   a run: calls with no other message between them
result             answers the first unanswered call of its id in the nearest earlier run that has such a call
"""

from collections.abc import Iterator, Mapping
from typing import TypeAlias

from sabir.vocabulary.messages import OptionCallPayload, OptionResultPayload, Payload

Stack: TypeAlias = tuple[int, "Stack"] | tuple[()]
"""The position of the call that the next result of an id answers, and the stack of the calls after it."""


class Unanswered:
    """The calls without a result so far; payloads are taken one by one. `stacks` holds the calls left from before."""

    __slots__ = ("_run", "stacks")

    def __init__(self, stacks: Mapping[str, Stack] | None = None) -> None:
        self.stacks = dict(stacks or {})
        """Invocation id → its unanswered calls, without the calls of the present run."""
        self._run: list[tuple[str, int]] = []

    def next_of(self, result: OptionResultPayload) -> int | None:
        """The position of the call that a result answers if it is taken next; None if it answers no call."""
        self.end_run()
        found = self.stacks.get(result.invocation_id)
        return found[0] if found else None

    def take(self, position: int, payload: Payload) -> None:
        """Take the next payload."""
        if payload.kind == "option_call":
            self.take_call(position, payload)
        elif payload.kind == "option_result":
            self.take_result(payload)
        elif payload.kind != "unknown" and self._run:
            self.end_run()

    def take_call(self, position: int, call: OptionCallPayload) -> None:
        """Take a call, which belongs to the present run."""
        self._run.append((call.invocation_id, position))

    def take_result(self, result: OptionResultPayload) -> None:
        """Take a result, which answers the call of `next_of`."""
        if self._run:
            self.end_run()
        if (found := self.stacks.pop(result.invocation_id, None)) and found[1]:
            self.stacks[result.invocation_id] = found[1]

    def end_run(self) -> None:
        """End the present run of calls."""
        while self._run:
            identifier, position = self._run.pop()
            self.stacks[identifier] = position, self.stacks.get(identifier, ())

    def positions(self) -> list[int]:
        """The positions of the unanswered calls, in order."""
        self.end_run()
        return sorted(position for stack in self.stacks.values() for position in _each(stack))


def _each(stack: Stack) -> Iterator[int]:
    while stack:
        position, stack = stack
        yield position
