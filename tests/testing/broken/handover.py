"""Dialects that treat what somebody else answered as they should not, each one maker's only."""

from collections.abc import Mapping, Sequence
from typing import Any

from sabir.contract.turns import Entry, LossLog, Turn, TurnScope
from sabir.vocabulary.messages import Origin
from sabir_testing.families.handover import TOY_WIRES
from sabir_testing.histories.recorded import ENDPOINT, source_dialects

from tests.testing.harness import Breakage, Delegate

Items = Sequence[Any]
INSTALLED = "echo.plain"
"""A dialect whose provider is installed wherever these tests run."""


class Deaf(Delegate):
    """What was recorded on one wire is left out, silently."""

    def __init__(self, base: Any, source: str) -> None:
        super().__init__(base)
        self.source = source

    def encode_turn(self, turn: Turn, scope: TurnScope, losses: LossLog) -> Items:
        kept = tuple(entry for entry in turn.entries if not self._is_of_source(entry.message.origin))
        found: Items = self.base.encode_turn(turn._replace(entries=kept), scope, losses) if kept else []
        return found

    def _is_of_source(self, origin: Origin | None) -> bool:
        return origin is not None and (origin.dialect, origin.endpoint) == (self.source, ENDPOINT)


class Leaking(Delegate):
    """The state of one other maker's texts and calls is sent with them."""

    def __init__(self, base: Any, maker: str) -> None:
        super().__init__(base)
        self.maker = maker

    def encode_turn(self, turn: Turn, scope: TurnScope, losses: LossLog) -> Items:
        states = [state for entry in turn.entries for state in self._states(entry)]
        beside = {"states": states} if states else {}
        return [{**item, **beside} for item in self.base.encode_turn(turn, scope, losses)]

    def _states(self, entry: Entry) -> list[Any]:
        origin = entry.message.origin
        if origin is None or origin.dialect != self.maker:
            return []
        return [part.state for part in entry.message.parts if part.kind == "text" and part.state]


class Hushed(Delegate):
    """What was told of state that stays behind is taken back."""

    def encode_turn(self, turn: Turn, scope: TurnScope, losses: LossLog) -> Items:
        losses.losses[:] = [loss for loss in losses.losses if loss.kind != "withheld"]
        found: Items = self.base.encode_turn(turn, scope, losses)
        return found


class AllOrNothing(Delegate):
    """State goes home only in a turn that is all its own: if another maker speaks in it too, none does."""

    def encode_turn(self, turn: Turn, scope: TurnScope, losses: LossLog) -> Items:
        keeps = all(entry.keeps_state for entry in turn.entries)
        entries = tuple(entry._replace(keeps_state=keeps) for entry in turn.entries)
        found: Items = self.base.encode_turn(turn._replace(entries=entries), scope, losses)
        return found


def deaf(source: str) -> Breakage:
    return Breakage(dialect=lambda base: Deaf(base, source))


def leaking(maker: str) -> Breakage:
    return Breakage(dialect=lambda base: Leaking(base, maker))


BROKEN: Mapping[str, Breakage] = {
    **{f"test_a_history_is_taken_over[{source}]": deaf(source) for source in source_dialects()},
    **{f"test_an_answer_goes_to_another_wire_and_back[{name}]": leaking(name) for name in TOY_WIRES},
    "test_an_answer_goes_to_every_installed_provider_and_back": leaking(INSTALLED),
    "test_state_that_stays_behind_is_told": Breakage(dialect=Hushed),
    "test_what_is_bound_goes_home": Breakage(dialect=AllOrNothing),
}
