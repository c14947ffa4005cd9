"""What the kit hands over: histories as they come, the shipped ones, marks in them, and what binds them."""

import json
from importlib.resources import files

import pytest
import sabir
from hypothesis import given, settings
from hypothesis.strategies import SearchStrategy
from sabir.base.failures import Loss
from sabir.contract.dialect import Dialect
from sabir.contract.turns import TurnScope
from sabir.rendering.renderer import Renderer
from sabir.vocabulary.messages import Message, Origin, PartsPayload
from sabir.vocabulary.parts import Citation, OpaquePart, ReasoningPart, TextPart
from sabir.vocabulary.settings import Target
from sabir_testing.histories.invented_dialects import HOISTED, INLINE, TOYS, toy_target
from sabir_testing.histories.random_histories import ELSEWHERE, FOREIGN, histories_of, speakers_for, valid_histories
from sabir_testing.histories.samples import ENDPOINT, recorded_histories, source_dialects
from sabir_testing.kit.request_contents import (
    answered_turns,
    bound_in,
    bound_texts,
    is_before,
    mark,
    mark_positions,
    messages_in,
    missing_texts,
    without_bound,
)

from tests.testing.write_histories import DIALECTS, SHIPPED, text

TARGET = Target(provider="acme", dialect="acme.wire", model="m", endpoint="https://acme.invalid")
HOME = Origin(provider="acme", dialect="acme.wire", model="m", endpoint="https://acme.invalid")
SEALED = ReasoningPart(text="hm", state={"signature": "c2lnbmVkIGJ5IGFjbWU="})


def said(*parts: TextPart | ReasoningPart | OpaquePart, origin: Origin | None = None) -> Message:
    return Message(policy="llm", origin=origin, payload=PartsPayload(parts=parts))


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_shipped_histories_are_the_projects_recordings(dialect: str) -> None:
    """Written anew they are the same: `python -m tests.testing.write_histories` after recording."""
    assert (SHIPPED / f"{dialect}.json").read_text("utf-8") == text(dialect)


def test_nothing_else_is_shipped() -> None:
    """A file of a dialect that is no longer recorded would be handed over for ever."""
    shipped = {path.name for path in files("sabir_testing").joinpath("recorded").iterdir()}

    assert shipped == {f"{dialect}.json" for dialect in DIALECTS}
    assert set(source_dialects()) == set(recorded_histories()) == set(DIALECTS)


def test_each_shipped_history_says_who_answered() -> None:
    """No vendor is made to say what it did not; and nobody is at the endpoint that the origins name."""
    for dialect, cases in recorded_histories().items():
        stored = json.loads((SHIPPED / f"{dialect}.json").read_text("utf-8"))["cases"]
        assert all(each["provenance"]["server"] for each in stored.values())
        assert {"text", "option_call", "option_result"} <= set(cases)
        for history in cases.values():
            origins = {message.origin for message in history if message.origin}
            assert {(origin.dialect, origin.endpoint) for origin in origins} == {(dialect, ENDPOINT)}


def test_some_shipped_histories_hold_what_binds_them() -> None:
    """Without signatures and ids in them, that none of them leaks would hold of nothing."""
    bound = {
        name: bound_texts(m for each in cases.values() for m in each) for name, cases in recorded_histories().items()
    }

    assert all(bound[name] for name in DIALECTS if name != "openai.chat")


def examples(strategy: SearchStrategy[list[Message]]) -> list[list[Message]]:
    """Two hundred of them, the same at every run."""
    found: list[list[Message]] = []

    @settings(max_examples=200, derandomize=True, database=None)
    @given(strategy)
    def collect(history: list[Message]) -> None:
        found.append(history)

    collect()
    return found


def holds_state(history: list[Message], origin: Origin) -> bool:
    parts = [part for each in history if each.origin == origin for part in each.parts]
    return any(part.kind in ("reasoning", "opaque") or getattr(part, "citations", ()) for part in parts)


def test_a_target_speaks_in_its_histories_without_state_that_it_did_not_make() -> None:
    """State of the target's own is never invented: its dialect may rely on what it wrote itself."""
    invented = examples(histories_of(speakers_for(TARGET)))
    given_some = examples(histories_of(speakers_for(TARGET, own=[SEALED])))

    assert any(each.origin == HOME for history in invented for each in history)
    assert not any(holds_state(history, HOME) for history in invented)
    assert any(holds_state(history, HOME) for history in given_some)


def test_others_speak_too_and_their_state_is_invented() -> None:
    """The same wire at another endpoint is another maker."""
    others = [HOME.model_copy(update={"endpoint": ELSEWHERE}), *FOREIGN]
    found = examples(histories_of(speakers_for(TARGET)))

    assert all(any(holds_state(history, origin) for history in found) for origin in others)


def test_tidy_histories_are_whole() -> None:
    """Every call is answered, and the user spoke last."""
    tidy = examples(valid_histories(TARGET))

    assert any(each.call for history in tidy for each in history)
    for history in tidy:
        assert history[-1].policy == "user"
        assert sum(bool(each.call) for each in history) == sum(bool(each.result) for each in history)


def test_marks_stand_in_every_text_and_are_found_again() -> None:
    history = [sabir.user("a", sabir.TextPart(text="b")), said(SEALED), said(TextPart(text=""))]
    marked = mark(history)

    assert [each.marks for each in marked] == [("mark0.", "mark1."), ("mark2.",), ("mark3.",)]
    assert [each.required for each in marked] == [("mark0.", "mark1."), (), ("mark3.",)]
    assert messages_in(marked)[1].parts[0].state == SEALED.state
    assert mark_positions([{"a": {"b": [1, '{"x": "mark0."}']}}, "mark1. mark2."]) == {
        "mark0.": [(0, 1)],
        "mark1.": [(1,)],
        "mark2.": [(1,)],
    }


def test_what_is_neither_in_the_body_nor_in_the_losses_is_named() -> None:
    marked = mark([sabir.user("a"), sabir.user("b"), sabir.user("c")])
    losses = [Loss(kind="dropped", message_id=marked[1].message.id, reason="r")]

    [silent] = missing_texts(marked, json.dumps({"x": ["mark0. and so on"]}).encode(), losses)

    assert silent == "the text 'mark2.' of message 3 (user)"


def test_what_binds_is_in_state_and_blocks_alone() -> None:
    """Words of a wire bind nothing, nor does what is said to everybody."""
    block = OpaquePart(
        dialect="acme.wire", block={"type": "web_search_call", "id": "ws_0123456789", "said": "Rain in Oslo"}
    )
    message = said(SEALED, block, TextPart(text="Rain in Oslo, perhaps"), origin=HOME)

    assert bound_texts([message]) == {"c2lnbmVkIGJ5IGFjbWU=", "ws_0123456789"}
    assert bound_in(b'{"a": ["x ws_0123456789"]}', bound_texts([message])) == ["ws_0123456789"]
    assert [part.kind for part in without_bound(message).parts] == ["text"]


def test_pairs_are_those_of_core() -> None:
    """A call that a user's message abandoned is no pair, until its result comes."""
    call = Message.model_validate(
        {"policy": "llm", "payload": {"kind": "option_call", "invocation_id": "a", "option_name": "f"}}
    )
    done = {"kind": "option_result", "invocation_id": "a", "option_name": "f", "result": 1}
    result = Message.model_validate({"policy": "f", "payload": done})
    scope = TurnScope(sabir.dialect("echo.plain").target, sabir.dialect("echo.plain").dialect.tables)

    assert [each.pairs for each in answered_turns([call, result], scope)] == [((0, 1),)]
    assert answered_turns([call, sabir.user("?")], scope) == []
    assert [each.pairs for each in answered_turns([call, sabir.user("?"), result], scope)] == [((0, 2),)]


@pytest.mark.parametrize(
    ("one", "other", "before"), [((0,), (1,), True), ((1, 5), (1, 2), False), ((1,), (1, 2), None), ((), (), None)]
)
def test_places_have_an_order_where_arrays_give_them_one(
    one: tuple[int, ...], other: tuple[int, ...], before: object
) -> None:
    """What stands in one object has none."""
    assert is_before(one, other) is before


# --- the made-up wires, which between them take all shapes ---------------------------------------------------------

STRANGER = Origin(provider="acme", dialect="acme.wire", model="m")
BOUND = TextPart(text="x", state={"id": "text-0123"}, citations=(Citation(kind="page", source={"id": "cite-0123"}),))


def answered(origin: Origin) -> list[Message]:
    return [said(ReasoningPart(text="hm", state={"id": "thought-0123"}), BOUND, origin=origin)]


def test_every_shape_is_taken_by_some_wire() -> None:
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
    rendering = Renderer(wire, toy_target(wire)).render(answered(STRANGER))

    assert "0123" not in rendering.body_bytes.decode()
    assert json.loads(rendering.body_bytes)["turns"]


def test_what_is_bound_goes_home() -> None:
    home = Origin(provider="toy", dialect=INLINE.name, model="m-1")

    body = Renderer(INLINE, toy_target(INLINE)).render(answered(home)).body_bytes.decode()

    assert {"text-0123", "cite-0123", "thought-0123"} <= set(json.dumps(json.loads(body)).replace('"', " ").split())


def test_leading_instructions_stand_apart_where_they_are_hoisted() -> None:
    chat = [sabir.system("s"), sabir.user("u")]
    body = json.loads(Renderer(HOISTED, toy_target(HOISTED)).render(chat).body_bytes)

    assert [each["pieces"][0]["text"] for each in body["system"]] == ["s"]
    assert [(each["side"], each["follows"]) for each in body["turns"]] == [("user", None)]
