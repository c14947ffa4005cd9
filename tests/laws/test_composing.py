"""What a plugin makes of core's pure helpers itself: `pair` and `TurnMaker` come to what rendering gives a dialect."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from hypothesis import given
from sabir import Message, Settings, Target
from sabir.authoring import Dialect, JSONValue, LossLog, RequestScope, Tables, Turn, TurnMaker, TurnScope, pair_messages
from sabir.errors import RenderingRefused
from sabir.rendering.renderer import Renderer
from sabir_testing.histories.invented_dialects import INLINE, toy, toy_target
from sabir_testing.histories.samples import message_by

from tests.laws.every import on_every
from tests.laws.histories import histories
from tests.laws.test_pairing_laws import ANSWERED, ROUND, tool_call

SAID_AND_DONE = Tables()


def composed(messages: Sequence[Message], scope: TurnScope, losses: LossLog) -> list[Turn]:
    """The turns of a history, each knowing the side before it."""
    maker, turns = TurnMaker(messages, scope, losses), list[Turn]()
    for block in pair_messages(messages, scope).blocks:
        losses.losses += block.losses
        for side, entries in maker.make(block, turns[-1].side if turns else None):
            turns.append(Turn(side, entries, turns[-1].side if turns else None))
    return turns


def encode_said(turn: Turn, scope: TurnScope, losses: LossLog) -> Sequence[JSONValue]:
    """What was said, side by side with nothing else."""
    return [{"from": turn.side, "text": entry.message.text} for entry in turn.entries if not entry.wire_id]


def encode_done(scope: RequestScope) -> Mapping[str, JSONValue]:
    """Each call with its result, apart from what was said: losses are told with the turns."""
    turns = composed(scope.messages, TurnScope(scope.target, SAID_AND_DONE), LossLog())
    pairs = [(entry.call, entry.message) for turn in turns for entry in turn.entries if entry.call]
    calls = [(call.message.call, by.result, call.wire_name) for call, by in pairs]
    return {"done": [{name: call.arguments, "gave": by.result} for call, by, name in calls if call and by]}


STRANGE = toy("toy.strange", SAID_AND_DONE, encode_turn=encode_said, encode_request=encode_done)
"""A wire that wants calls and results in one list beside the conversation."""


@given(history=histories)
@on_every((INLINE, ANSWERED))
def test_composed_turns_are_those_that_rendering_gives_to_a_dialect(wire: Dialect, history: list[Message]) -> None:
    """The same helpers, so the same turns and the same losses (CD-08)."""
    seen: list[Turn] = []

    def encode_turn(turn: Turn, scope: TurnScope, losses: LossLog) -> Sequence[JSONValue]:
        seen.append(turn)
        return [1]

    target, losses = toy_target(wire), LossLog()
    try:
        told = Renderer(replace(wire, encode_turn=encode_turn), target).render(history).losses
    except RenderingRefused as refused:
        told = refused.losses
    paired = pair_messages(history, TurnScope(target, wire.tables, family=wire.family))
    turns = composed(history, TurnScope(target, wire.tables, family=wire.family), losses)

    assert turns == seen
    assert (*losses.losses, *paired.losses) == told


def test_a_strange_wire_composes_its_own_rendering() -> None:
    open_call = tool_call("z", 9)
    history = [message_by("user", "u"), *ROUND, message_by("llm", "so"), open_call]
    rendering = Renderer(STRANGE, Target(provider="toy", dialect=STRANGE.name)).render(history, settings=Settings())
    body: dict[str, Any] = json.loads(rendering.body_bytes)

    assert body == {
        "turns": [{"from": "user", "text": "u"}, {"from": "assistant", "text": "so"}],
        "done": [{"f": {"n": 1}, "gave": 1}],
    }
    assert [(loss.kind, loss.message_id) for loss in rendering.losses] == [("dropped", open_call.id)]
