"""Laws of core alone, read off toy wires: those of the tables that no wire of a vendor has, and cases.

On every wire of a vendor the kit draws histories for the same laws (tests/conformance).
"""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
import sabir
from hypothesis import given
from hypothesis import strategies as st
from sabir.contract.dialect import Dialect, Rendering
from sabir.contract.scope import RequestScope
from sabir.contract.turns import LossLog, Roles, Tables, Turn, TurnScope
from sabir.errors import RenderingRefused, SettingsInvalid
from sabir.rendering.renderer import Renderer
from sabir.vocabulary.history import loads
from sabir.vocabulary.media import MediaRule
from sabir.vocabulary.messages import Message, Origin
from sabir.vocabulary.models import ModelInfo
from sabir.vocabulary.parts import KnownPart, MediaPart, OpaquePart, ReasoningPart, RefusalPart
from sabir_testing.histories.invented_dialects import FILLER, INLINE, PARTED, STRICT, TOYS, toy, toy_target
from sabir_testing.histories.samples import call_message, result_message
from sabir_testing.histories.samples import message_by as said

from tests.laws.every import on_every
from tests.laws.histories import histories, messages

ANSWERED = replace(
    INLINE,
    name="toy.answered",
    tables=replace(INLINE.tables, calls=replace(INLINE.tables.calls, incomplete="answered")),
)
JOINED = replace(
    PARTED, name="toy.joined", tables=replace(PARTED.tables, calls=replace(PARTED.tables.calls, results="with_user"))
)
RULES = (INLINE, ANSWERED, JOINED)
"""Every rule of the tables: an incomplete call left out or answered, results apart or with the user's words."""


def renderer(wire: Dialect, **how: Any) -> Renderer:
    return Renderer(wire, toy_target(wire), **how)


def render(wire: Dialect, history: Sequence[Message], with_renderer: Renderer | None = None) -> Rendering | None:
    try:
        return (with_renderer or renderer(wire)).render(history)
    except RenderingRefused:
        return None


def tool_call(invocation_id: str, number: int) -> Message:
    return call_message(invocation_id, {"n": number}, "f")


def tool_result(invocation_id: str, number: int) -> Message:
    return result_message(invocation_id, number, "f")


def from_model(message: Message, wire: Dialect = PARTED, **origin: str) -> Message:
    """The message, of the model that the target has, and of one reply unless the origin says another."""
    home = Origin(provider="toy", dialect=wire.name, model="m-1", **origin)
    return message.model_copy(update={"origin": home})


def reasoned(*parts: str | KnownPart) -> Message:
    return from_model(said("llm", *parts), INLINE)


def paused(*parts: str | KnownPart) -> Message:
    return from_model(said("llm", *parts))


def of_the_next_reply(message: Message) -> Message:
    return from_model(message, response_id="next")


def own(pair: Any, pair_id: str = "p", wire: Dialect = PARTED) -> OpaquePart:
    """A half of a vendor's own pair."""
    return OpaquePart(dialect=wire.name, block={pair: pair_id}, pair=pair, pair_id=pair_id)


def items(rendering: Rendering | None) -> list[dict[str, Any]]:
    return [] if rendering is None else json.loads(rendering.body_bytes)["turns"]


@given(history=histories)
@on_every(RULES)
def test_every_history_renders_to_complete_pairs_only(wire: Dialect, history: list[Message]) -> None:
    """Law 1: each call's results follow its turn at once, each id once, no empty piece (PJ-53, UP-14, UP-15)."""
    waiting: dict[str, str] = {}
    seen: set[str] = set()
    previous = None
    for item in items(render(wire, history)):
        if item["side"] != "results":
            assert not waiting or previous == item["side"] == "assistant", "a call's result must follow its turn"
        if "call" in item:
            assert item["call"] not in seen
            seen.add(item["call"])
            waiting[item["call"]] = item["name"]
        elif "result" in item:
            assert waiting.pop(item["result"]) == item["name"]
        else:
            assert item["pieces"]
            assert not waiting or item["side"] == "assistant"
        assert all(piece.get("text", "x") or "state" in piece for piece in item["pieces"])
        previous = item["side"]
    assert not waiting


@given(history=histories, data=st.data())
@on_every(TOYS)
def test_a_message_of_an_unknown_kind_changes_nothing_and_is_told(
    wire: Dialect, history: list[Message], data: st.DataObject
) -> None:
    """A newer writer's payload opens, closes and parts nothing; the prefix before it is kept all the same."""
    place = data.draw(st.integers(0, len(history)))
    [unknown] = loads('{"policy": "llm", "payload": {"kind": "plan", "steps": []}}')
    with_it = [*history[:place], unknown, *history[place:]]
    grown = renderer(wire)
    for end in (place, place + 1):
        render(wire, with_it[:end], grown)

    expected = render(wire, history)
    if expected is not None:
        for found in (render(wire, with_it), render(wire, with_it, grown)):
            assert found is not None
            assert found.body_bytes == expected.body_bytes
            told = [loss for loss in found.losses if loss.message_id == unknown.id]
            assert [(loss.kind, "'plan'" in loss.reason) for loss in told] == [("dropped", True)]
            assert sorted(map(str, found.losses)) == sorted(map(str, (*expected.losses, *told)))


@given(history=histories)
@on_every(TOYS)
def test_a_turn_is_told_what_stands_before_it(wire: Dialect, history: list[Message]) -> None:
    """Law 1, order: a turn that came to nothing is none; by what it follows a dialect keeps its wire's order."""
    previous = None
    for item in items(render(wire, history)):
        if "follows" in item:
            assert item["follows"] == previous
        if item["side"] == "system" and wire.tables.roles.later_system == "after_user":
            assert previous in ("user", "results", "system")
            assert {piece["kind"] for piece in item["pieces"]} == {"text"}
        if wire is STRICT and previous == "system":
            assert item["side"] in ("assistant", "system")
        previous = item["side"]


@given(data=st.data())
@on_every(RULES)
def test_a_kept_prefix_gives_the_bytes_of_a_fresh_rendering(wire: Dialect, data: st.DataObject) -> None:
    """Law 5, over random appends, truncations, forks, edits and reused message objects, while others are dropped."""
    kept = renderer(wire)
    conversations: list[list[Message]] = [data.draw(histories)]
    pool = list(conversations[0])
    for _ in range(data.draw(st.integers(1, 8))):
        conversation = data.draw(st.sampled_from(conversations))
        match data.draw(st.sampled_from(["append", "append", "truncate", "fork", "edit", "reuse"])):
            case "append":
                conversation += data.draw(st.lists(messages, min_size=1, max_size=3))
            case "truncate":
                del conversation[data.draw(st.integers(1, len(conversation))) :]
            case "fork":
                conversations.append(conversation[: data.draw(st.integers(1, len(conversation)))])
            case "edit":
                conversation[data.draw(st.integers(0, len(conversation) - 1))] = data.draw(messages)
            case "reuse":
                conversation.append(data.draw(st.sampled_from(pool)))
        pool += conversation[-1:]
        incremental, fresh = render(wire, conversation, kept), render(wire, conversation)
        assert (incremental is None) == (fresh is None)
        if incremental is not None and fresh is not None:
            assert incremental.body_bytes == fresh.body_bytes
            assert incremental.losses == fresh.losses


def test_an_abandoned_call_renders_again_where_its_result_comes() -> None:
    call, user, result = tool_call("a", 1), said("user", "well?"), tool_result("a", 1)
    make = renderer(INLINE)
    assert [loss.kind for loss in make.render([call, user]).losses] == ["dropped"]

    late = make.render([call, user, result])

    assert [item["side"] for item in items(late)] == ["user", "assistant", "results"]
    assert [(loss.kind, loss.message_id) for loss in late.losses] == [("relocated", call.id)]


def test_a_call_without_a_result_is_answered_by_an_error_where_the_table_says_so() -> None:
    calls = [tool_call("a", 1), tool_call("b", 2)]
    asked = [*calls, tool_result("b", 2), said("user", "well?")]
    make = renderer(ANSWERED)

    early = make.render(asked)
    late = make.render([*asked, tool_result("a", 1), said("llm", "so")])

    assert [item["side"] for item in items(early)] == ["assistant", "assistant", "results", "results", "user"]
    assert items(late)[:5] == items(early)
    assert [(loss.kind, loss.message_id) for loss in early.losses] == [("synthesized", calls[0].id)]
    assert [loss.kind for loss in late.losses] == ["synthesized", "dropped"]


def test_results_stand_with_the_users_words_where_the_table_says_so() -> None:
    turns: list[Turn] = []

    def encode_turn(turn: Turn, scope: TurnScope, losses: LossLog) -> Any:
        turns.append(turn)
        return JOINED.encode_turn(turn, scope, losses)

    make = renderer(replace(JOINED, encode_turn=encode_turn))
    asked = [said("user", "u"), *ROUND, said("user", "well?"), said("user", "and?"), said("system", "s")]
    make.render([*asked, said("llm", "so")])

    assert [turn.side for turn in turns] == ["user", "assistant", "results", "system", "assistant"]
    assert [bool(entry.call) for entry in turns[2].entries] == [True, False, False]
    assert [entry.message.text for entry in turns[2].entries[1:]] == ["well?", "and?"]


CALLS = [tool_call("a", number) for number in (1, 2)]
RESULTS = [tool_result("a", number) for number in (1, 2)]


@pytest.mark.parametrize(
    "history",
    [[CALLS[0], RESULTS[0], CALLS[1], RESULTS[1]], [*CALLS, *RESULTS], [*CALLS, said("user", "?"), *RESULTS]],
    ids=["again", "parallel", "abandoned"],
)
def test_results_answer_the_calls_of_their_id_in_order(history: list[Message]) -> None:
    """A provider that reuses call ids confuses nothing, and each pair has its own wire id (UP-13)."""
    shown = items(renderer(INLINE).render(history))

    calls = {item["call"]: item["arguments"]["n"] for item in shown if "call" in item}
    assert [(calls[item["result"]], item["value"]) for item in shown if "result" in item] == [(1, 1), (2, 2)]
    assert "a" in calls


def test_a_closer_goes_only_with_an_opener_that_goes_too() -> None:
    opener, closer = (said("llm", "x", own(pair, wire=INLINE)) for pair in ("opens", "closes"))
    closer = closer.model_copy(update={"policy": "user"})
    foreign = renderer(INLINE).render([from_model(opener, INLINE, endpoint="https://elsewhere.example"), closer])
    ours = renderer(INLINE).render([from_model(opener, INLINE), closer])

    assert ["opaque" in str(item) for item in items(foreign)] == [False, False]
    assert [loss.kind for loss in foreign.losses] == ["dropped", "dropped"]
    assert ["opaque" in str(item) for item in items(ours)] == [True, True]
    assert not ours.losses


def test_a_half_that_its_side_cannot_carry_takes_the_other_with_it() -> None:
    """Law 1: a system message's block goes only where that renders as user, which a leading one does not."""
    opener, closer = (own(pair, wire=STRICT) for pair in ("opens", "closes"))
    leading = renderer(STRICT).render([said("system", "x", opener), said("llm", "x", closer)])
    late = renderer(STRICT).render([said("user", "x"), said("system", "x", opener, closer)])

    assert [len(item["pieces"]) for item in items(leading)] == [1]
    assert [loss.kind for loss in leading.losses] == ["dropped", "dropped"]
    assert [(item["side"], len(item["pieces"])) for item in items(late)] == [("user", 1), ("user", 3)]


THOUGHT, AGAIN = ReasoningPart(text="hm", state={"s": 1}), ReasoningPart(text="again", state={"s": 2})
OPENER = OpaquePart(dialect="toy.inline", block={"x": 1}, pair="opens", pair_id="p")


@pytest.mark.parametrize(
    ("history", "kept"),
    [
        ([reasoned(THOUGHT), tool_call("a", 1), tool_call("b", 2), tool_result("b", 2)], ["hm"]),
        ([reasoned(THOUGHT), tool_call("a", 1), tool_call("b", 2), tool_result("a", 1)], ["hm"]),
        ([reasoned(THOUGHT), tool_call("a", 1), reasoned(AGAIN), tool_call("b", 2), tool_result("b", 2)], ["again"]),
        ([reasoned(THOUGHT), tool_call("a", 1)], []),
        ([reasoned(THOUGHT, AGAIN, "so")], ["hm", "again"]),
        ([reasoned(THOUGHT, OPENER), reasoned(AGAIN, "so")], ["again"]),
        ([reasoned("so", THOUGHT)], []),
        ([reasoned(THOUGHT, "")], []),
        ([reasoned(THOUGHT), reasoned("")], []),
        ([reasoned(THOUGHT, "", AGAIN, "so")], ["again"]),
        ([reasoned(THOUGHT, RefusalPart(text="no"), "")], ["hm"]),
    ],
)
def test_reasoning_stays_only_with_something_that_it_led_to(history: list[Message], kept: list[str]) -> None:
    rendering = renderer(INLINE).render([said("user", "?"), *history])

    shown = [piece["text"] for item in items(rendering) for piece in item["pieces"] if piece["kind"] == "reasoning"]
    assert shown == kept


PICTURE = MediaPart(modality="image", url="https://a.example/b")
PICTURED = said("system", "s", PICTURE)
NEVER_LATE = ModelInfo(prefix="m", rejects=("later_system",))


@pytest.mark.parametrize(
    ("history", "sides", "lost", "info"),
    [
        ([said("user", "a"), said("system", "s")], "user system", [], None),
        ([said("user", "a"), said("system", "s"), said("llm", "b")], "user system assistant", [], None),
        ([said("user", "a"), said("system", "s"), said("user", "b")], "user user user", ["downgraded"], None),
        ([said("user", "a"), said("system", "s"), said("system", "t")], "user system system", [], None),
        ([said("user", "a"), said("llm", "b"), said("system", "s")], "user assistant user", ["downgraded"], None),
        ([tool_call("1", 1), tool_result("1", 1), said("system", "s")], "assistant results system", [], None),
        ([said("user", "a"), PICTURED], "user user", ["downgraded"], None),
        ([said("user", ""), said("system", "s"), said("llm", "b")], "user assistant", ["dropped", "downgraded"], None),
        ([said("user", "a"), said("system", "s")], "user user", ["downgraded"], NEVER_LATE),
    ],
)
def test_late_system_messages_end_the_users_side_or_render_as_user(
    history: list[Message], sides: str, lost: list[str], info: ModelInfo | None
) -> None:
    """Both are said: where one stands for itself nothing is lost, where it renders as user a loss says so.

    The wire takes its text alone, and only after the user; what a model does not take is data of the model.
    """
    rendering = renderer(PARTED, model_info=info).render(history)

    assert [item["side"] for item in items(rendering)] == sides.split()
    assert [loss.kind for loss in rendering.losses] == lost


@pytest.mark.parametrize("gone", [[tool_call("a", 1)], [said("llm", " ")], [said("llm", "")]])
@pytest.mark.parametrize("at_once", [True, False])
def test_where_nothing_is_left_of_a_turn_its_neighbours_meet(gone: list[Message], at_once: bool) -> None:
    asked = [said("user", "u"), said("system", "s"), *gone]
    made, told = renderer(STRICT), {"kind": "text", "text": "s"}
    if not at_once:
        made.render(asked)

    spoken = items(made.render([*asked, said("user", "v")]))
    warned = items(made.render([*asked, said("system", "w")]))

    assert [item["side"] for item in spoken] == ["user", "system", "assistant", "user"]
    assert [item["side"] for item in warned] == ["user", "system", "system"]
    assert spoken[1]["pieces"] == warned[1]["pieces"] == [told]
    assert spoken[2] == FILLER


def test_a_message_that_completes_a_pair_closes_nothing_before_it() -> None:
    """Law 5: whoever goes on from there must still know that the pair is open."""
    opener, closer = (reasoned(own(pair, wire=INLINE)) for pair in ("opens", "closes"))
    history = [said("user", "u"), opener, tool_call("a", 1), tool_result("a", 1), closer]
    kept = renderer(INLINE)
    kept.render([*history, said("user", "v"), said("llm", "w"), said("user", "x")])

    assert kept.render(history).body_bytes == renderer(INLINE).render(history).body_bytes
    assert kept.render(history).losses == ()


def test_only_the_leading_system_turn_is_hoisted() -> None:
    wire = toy("toy.both", Tables(Roles(leading_system="hoisted", later_system="inline")))
    history = [said("system", "s"), said("user", "a"), said("system", "t"), said("llm", "b"), said("user", "c")]

    rendering = renderer(wire).render(history)

    assert [item["side"] for item in items(rendering)] == ["user", "system", "assistant", "user"]
    assert len(json.loads(rendering.body_bytes)["system"]) == 1


def test_the_request_is_told_the_last_turn_that_came_to_something() -> None:
    seen: list[tuple[Any, ...]] = []

    def encode_request(scope: RequestScope) -> Any:
        last = scope.last_turn
        seen.append((scope.last_side, last and (last.side, last.follows)))
        return STRICT.encode_request(scope)

    wire = replace(STRICT, encode_request=encode_request)
    asked, answered = said("user", "u"), said("llm", "b")
    for history in (
        [said("system", "s")],
        [asked],
        [asked, said("llm", " ")],
        [asked, answered],
        [asked, answered, said("user", " ")],
    ):
        renderer(wire).render(history)

    assert seen == [
        (None, None),
        ("user", ("user", None)),
        ("user", None),
        ("assistant", ("assistant", "user")),
        ("assistant", None),
    ]


def test_the_request_is_told_which_options_its_calls_chose() -> None:
    """Those of complete pairs, offered or not; whether the first calls are kept or rendered changes nothing (law 5).

    A head that did not look is kept, whatever is called.
    """
    heads: list[str] = []

    def looking(scope: RequestScope) -> Any:
        heads.append("looking")
        gone = scope.called_options - {option.name for option in scope.options}
        if gone:
            raise SettingsInvalid(f"the history calls {', '.join(sorted(gone))}, which is not offered; offer it")
        return INLINE.encode_request(scope)

    def blind(scope: RequestScope) -> Any:
        heads.append("blind")
        return INLINE.encode_request(scope)

    lamp, weather = (sabir.Option.from_schema(name, "", {"type": "object"}) for name in ("f", "weather"))
    history = [said("user", "u"), *ROUND, said("llm", "so"), said("user", "v"), tool_call("z", 9)]
    for function in (looking, blind):
        made = renderer(replace(INLINE, encode_request=function))
        made.render([said("user", "u")], [lamp])
        made.render(history, [lamp])
        made.render([*history, said("user", "w")], [lamp])
        made.render(history, [lamp, weather])
    assert heads == ["looking"] * 3 + ["blind"] * 2

    vendor = renderer(replace(INLINE, encode_request=looking))
    vendor.render([said("user", "u")], [weather])
    for grown in (history[:4], history, history[:1] + history[4:5]):
        if grown[1].call:
            with pytest.raises(SettingsInvalid, match="calls f, which is not offered"):
                vendor.render(grown, [weather])
        else:
            vendor.render(grown, [weather])


def test_a_result_knows_the_entry_of_its_call() -> None:
    seen: list[Turn] = []

    def encode_turn(turn: Turn, scope: TurnScope, losses: LossLog) -> Any:
        seen.append(turn)
        return INLINE.encode_turn(turn, scope, losses)

    renderer(replace(INLINE, encode_turn=encode_turn)).render([*AGAIN_ROUND, *ROUND])

    calls = [entry for turn in seen if turn.side == "assistant" for entry in turn.entries]
    assert [entry.call for turn in seen if turn.side == "results" for entry in turn.entries] == calls
    assert [entry.call for entry in calls] == [None, None]


def test_a_model_that_takes_no_media_in_results_gets_their_names() -> None:
    """As above: the wire takes them, this model does not (UP-18)."""
    picture = MediaPart(modality="image", url="data:image/png;base64,iVBORw0KGgo=", name="sky")
    history = [tool_call("a", 1), result_message("a", name="f", parts=(picture,))]

    taken = renderer(INLINE).render(history)
    named = renderer(INLINE, model_info=ModelInfo(prefix="m", rejects=("results_media",))).render(history)

    assert not taken.losses
    assert [loss.kind for loss in named.losses] == ["downgraded"]
    assert [piece["kind"] for piece in items(named)[-1]["pieces"]] == ["text"]


LATER = {
    "a modality": (
        '{"payload": {"kind": "parts", "parts": [{"kind": "media", "modality": "scent", "url": "https://a.org/b"}]},',
        "dropped parts[0] sending media of the modality 'scent' needs a newer version of sabir",
        [],
    ),
    "a scheme": (
        '{"payload": {"kind": "parts", "parts": [{"kind": "media", "modality": "image", "url": "ipfs://b/a.png"}]},',
        "dropped parts[0] sending URLs of the scheme 'ipfs' needs a newer version of sabir",
        [],
    ),
    "a hint": (
        '{"role_hint_for_llm": "critic", "payload": {"kind": "parts", "parts": [{"kind": "text", "text": "b"}]},',
        "downgraded  the role hint 'critic' is unknown to this version of sabir",
        ["b"],
    ),
}


@pytest.mark.parametrize(("stored", "loss", "sent"), LATER.values(), ids=LATER)
@on_every(TOYS)
def test_what_a_later_version_said_is_told(wire: Dialect, stored: str, loss: str, sent: list[str]) -> None:
    [later] = loads(stored + '"policy": "user"}')
    rendering = renderer(wire).render([said("user", "a"), later])

    assert [f"{each.kind} {each.path} {each.reason}" for each in rendering.losses] == [loss]
    assert [piece["text"] for item in items(rendering) for piece in item["pieces"]] == ["a", *sent]


@pytest.mark.parametrize("hint", ["image/png", "IMAGE/PNG; q=1", "photo", "image/*", None])
def test_a_data_url_without_a_type_is_of_the_type_that_the_hint_says(hint: str | None) -> None:
    """PJ-17, RFC 2397: without a whole type in either it is text, which no image is."""
    bare = MediaPart(modality="image", url="data:;base64,iVBORw0KGgo=", mime=hint)
    table = Tables(media={("user", "image"): MediaRule(data="image/png", parameters=True)})
    rendering = renderer(toy("toy.typed", table)).render([said("user", bare)])
    [piece] = [piece for item in items(rendering) for piece in item["pieces"]]

    if hint and hint.lower().startswith("image/png"):
        assert piece["url"].lower() == f"data:{hint.lower().replace(' ', '')};base64,iVBORw0KGgo=".lower()
        assert not rendering.losses
    else:
        assert [loss.kind for loss in rendering.losses] == ["downgraded"]
        assert "text/plain" in rendering.losses[0].reason


ROUND, AGAIN_ROUND = [tool_call("a", 1), tool_result("a", 1)], [tool_call("b", 2), tool_result("b", 2)]
OPEN, ALSO, DONE = own("opens", "1"), own("opens", "2"), own("closes", "1")
ALONE = OpaquePart(dialect="toy.parted", block={"stands": "alone"})


@pytest.mark.parametrize(
    ("history", "shown"),
    [
        ([paused("x", OPEN)], ["text", "opaque"]),
        ([paused(OPEN, ALSO)], ["opaque", "opaque"]),
        ([paused(OPEN, "x", ALSO)], ["text", "opaque"]),
        ([paused(OPEN, ALONE)], ["opaque"]),
        ([paused(OPEN), from_model(tool_call("a", 1)), tool_result("a", 1)], ["opaque"]),
        ([paused("x", OPEN), tool_call("a", 1), tool_result("a", 1)], ["text"]),
        ([paused(OPEN), from_model(tool_call("a", 1)), tool_result("a", 1), paused("x")], ["text"]),
        ([paused(OPEN), *map(from_model, ROUND), *map(of_the_next_reply, AGAIN_ROUND)], ["opaque"]),
        ([paused(OPEN), *map(from_model, ROUND), *AGAIN_ROUND], []),
        ([paused(OPEN), *map(of_the_next_reply, ROUND)], []),
        ([paused(OPEN), *map(from_model, ROUND), paused(ALSO)], ["opaque", "opaque"]),
        ([tool_call("b", 2), said("user", "!"), paused(OPEN), tool_result("b", 2)], ["text"]),
        ([paused(OPEN), tool_call("a", 1), tool_result("a", 1), paused(DONE)], ["opaque", "opaque"]),
        ([paused(OPEN), paused(DONE, "x")], ["opaque", "opaque", "text"]),
        ([paused(OPEN, "x")], ["text"]),
        ([paused("x", OPEN), said("user", "?")], ["text", "text"]),
        ([paused("x", OPEN), said("user", "y", DONE)], ["text", "text"]),
    ],
)
def test_a_paused_pair_may_end_a_request_and_nothing_else(history: list[Message], shown: list[str]) -> None:
    """Law 1 for a provider that paused in mid-turn: its own open call goes back as it is, until someone else speaks.

    A provider's code that runs meanwhile may call again after results, in a reply of its own.
    """
    rendering = renderer(PARTED).render([said("user", "?"), *history])

    assert [piece["kind"] for item in items(rendering)[1:] for piece in item["pieces"]] == shown


def test_reasoning_without_state_stays_out_where_its_maker_demands_it() -> None:
    bare = reasoned(ReasoningPart(text="hm"), "x")

    signed = renderer(PARTED).render([said("user", "?"), from_model(bare)])
    unsigned = renderer(INLINE).render([said("user", "?"), bare])

    assert [piece["kind"] for item in items(signed) for piece in item["pieces"]] == ["text", "text"]
    assert [loss.reason for loss in signed.losses] == ["the reasoning has no signature, which the API requires"]
    assert [piece["kind"] for item in items(unsigned) for piece in item["pieces"]] == ["text", "reasoning", "text"]
    assert not unsigned.losses


def test_an_endpoint_with_a_quirk_may_have_tables_of_its_own() -> None:
    """A cloud that takes only bytes: the same dialect, other tables, and the loss says what it takes."""
    picture = said("user", PICTURE)
    plain = renderer(PARTED).render([picture])
    bytes_only = renderer(PARTED, quirks=frozenset({"bytes"})).render([picture])

    assert not plain.losses
    assert [loss.kind for loss in bytes_only.losses] == ["downgraded"]
    assert "only as data, not as url" in bytes_only.losses[0].reason
