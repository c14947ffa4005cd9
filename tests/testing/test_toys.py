"""The made-up wires between them take all shapes, and let nothing that is bound pass."""

import json

import pytest
from sabir.contract.dialect import Dialect
from sabir.rendering.renderer import Renderer
from sabir.vocabulary.messages import Message, Origin, PartsPayload
from sabir.vocabulary.parts import Citation, ReasoningPart, TextPart
from sabir_testing.histories.toys import HOISTED, INLINE, TOYS, toy_target

FOREIGN = Origin(provider="acme", dialect="acme.wire", model="m")
BOUND = TextPart(text="x", state={"id": "text-0123"}, citations=(Citation(kind="page", source={"id": "cite-0123"}),))


def answered(origin: Origin) -> list[Message]:
    parts = (ReasoningPart(text="hm", state={"id": "thought-0123"}), BOUND)
    return [Message(policy="llm", origin=origin, payload=PartsPayload(parts=parts))]


def test_every_shape_is_taken_by_some_wire() -> None:
    """System text in all three places, thoughts with and without state, paused pairs, native and plain."""
    tables = [wire.tables for wire in TOYS]

    assert {each.roles.leading_system for each in tables} == {"inline", "hoisted"}
    assert {each.roles.later_system for each in tables} == {"inline", "user", "after_user"}
    assert {each.roles.reasoning for each in tables} == {"any", "with_state"}
    assert {each.calls.unfinished_pairs for each in tables} == {"dropped", "kept_at_the_end"}
    assert {each.roles.citations for each in tables} == {"native", "dropped"}
    assert len({wire.name for wire in TOYS}) == len(TOYS) == 4


@pytest.mark.parametrize("wire", TOYS, ids=lambda wire: wire.name)
def test_nothing_bound_reaches_a_made_up_wire(wire: Dialect) -> None:
    """State and citations of another maker stay behind."""
    rendering = Renderer(wire, toy_target(wire)).render(answered(FOREIGN))

    assert "0123" not in rendering.body_bytes.decode()
    assert json.loads(rendering.body_bytes)["turns"]


def test_what_is_bound_goes_home() -> None:
    """Where the wire takes it back."""
    home = Origin(provider="toy", dialect=INLINE.name, model="m-1")

    body = Renderer(INLINE, toy_target(INLINE)).render(answered(home)).body_bytes.decode()

    assert {"text-0123", "cite-0123", "thought-0123"} <= set(json.dumps(json.loads(body)).replace('"', " ").split())


def test_leading_instructions_stand_apart_where_they_are_hoisted() -> None:
    """And the first turn follows nothing."""
    told = Message(policy="system", payload=PartsPayload(parts=(TextPart(text="s"),)))
    asked = Message(policy="user", payload=PartsPayload(parts=(TextPart(text="u"),)))

    body = json.loads(Renderer(HOISTED, toy_target(HOISTED)).render([told, asked]).body_bytes)

    assert [each["pieces"][0]["text"] for each in body["system"]] == ["s"]
    assert [(each["side"], each["follows"]) for each in body["turns"]] == [("user", None)]
