"""Dialects that treat what somebody else answered as they should not, each one maker's only."""

from collections.abc import Mapping
from typing import Any

from sabir.contract.turns import LossLog, Turn, TurnScope
from sabir_testing.families.handover import TOY_APIS
from sabir_testing.histories.samples import ENDPOINT, source_dialects

from tests.testing.broken.laws import sifted
from tests.testing.harness import Breakage, changed

INSTALLED = "echo.plain"
"""A dialect whose provider is installed wherever these tests run."""


def deaf(source: str) -> Breakage:
    """What was recorded on one wire is left out, silently."""

    def is_others(entry: Any, losses: LossLog) -> bool:
        origin = entry.message.origin
        return origin is None or (origin.dialect, origin.endpoint) != (source, ENDPOINT)

    return sifted(is_others)


def leaking(maker: str) -> Breakage:
    """The state of one other maker's texts is sent with them."""

    def encode_turn(own: Any, turn: Turn, scope: TurnScope, losses: LossLog) -> Any:
        theirs = [entry.message for entry in turn.entries if getattr(entry.message.origin, "dialect", "") == maker]
        states = [part.state for each in theirs for part in each.parts if part.kind == "text" and part.state]
        beside = {"states": states} if states else {}
        return [{**item, **beside} for item in own(turn, scope, losses)]

    return changed(encode_turn=encode_turn)


def hushed(own: Any, turn: Turn, scope: TurnScope, losses: LossLog) -> Any:
    """What was told of state that stays behind is taken back."""
    losses.losses[:] = [loss for loss in losses.losses if loss.kind != "withheld"]
    return own(turn, scope, losses)


def all_or_nothing(own: Any, turn: Turn, scope: TurnScope, losses: LossLog) -> Any:
    """State goes home only in a turn that is all its own: if another maker speaks in it too, none does."""
    keeps = all(entry.keeps_state for entry in turn.entries)
    return own(turn._replace(entries=tuple(each._replace(keeps_state=keeps) for each in turn.entries)), scope, losses)


BROKEN: Mapping[str, Breakage] = {
    **{f"test_a_history_is_taken_over[{source}]": deaf(source) for source in source_dialects()},
    **{f"test_an_answer_goes_to_another_wire_and_back[{name}]": leaking(name) for name in TOY_APIS},
    "test_an_answer_goes_to_every_installed_provider_and_back": leaking(INSTALLED),
    "test_state_that_stays_behind_is_told": changed(encode_turn=hushed),
    "test_what_is_bound_goes_home": changed(encode_turn=all_or_nothing),
}
