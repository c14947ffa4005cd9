"""Conversations as agents have them: whole turns in order, of texts, calls and results of every kind.

    opening     instructions or none, and what the user asks
    turn        what the user says · what the model says · calls with all their results, in any order

A turn is whole: each call is answered, and no half of a maker's own pair waits for the other.
"""

from collections.abc import Sequence
from itertools import chain
from typing import Any, TypeAlias

from hypothesis import strategies as st
from sabir.vocabulary.messages import Message, OptionCallPayload, OptionResultPayload, Origin, PartsPayload
from sabir.vocabulary.parts import Part, TextPart
from sabir_testing.histories.drawn import Strategy, json_values
from sabir_testing.histories.samples import WIRE_KEYS, said

from tests.laws.histories import SPEAKERS, bound, texts

MessageTurn: TypeAlias = list[Message]
HOME = Origin(provider="home", dialect="home")
"""Stands for the target itself until `at_home` puts in who that is: one conversation is tried on many targets."""
AWAY = HOME.model_copy(update={"endpoint": "https://elsewhere.invalid"})
IDS = ("a", "b", "c", "d", "e|f", "g")
NAMES = ("weather", "add", "my.tool/with a name")

words = st.one_of(
    texts,
    st.text(min_size=1, max_size=12),
    st.sampled_from(["%s", " a", "a\u2028", "\x1f", "ä", '{"output": 1}', "🌧"]),
)
whole_parts: Strategy[Part] = st.one_of(
    SPEAKERS.plain_parts(), bound.filter(lambda part: getattr(part, "pair_id", None) is None)
)
outcomes: Strategy[dict[str, Any]] = st.one_of(
    json_values.map(lambda value: {"result": value}),
    json_values.map(lambda value: {"result": value}),
    words.map(lambda text: {"parts": (TextPart(text=text),)}),
    st.lists(SPEAKERS.plain_parts(), min_size=1, max_size=2).map(lambda parts: {"parts": tuple(parts)}),
    st.builds(lambda text: {"is_error": True, "error_type": "Boom", "error_message": text}, words),
)


def answer(call: Message, outcome: dict[str, Any]) -> Message:
    """The result of a call."""
    chosen = call.call
    assert chosen is not None
    payload = OptionResultPayload(invocation_id=chosen.invocation_id, option_name=chosen.option_name, **outcome)
    return Message(policy=chosen.option_name, payload=payload)


def call(invocation_id: str, arguments: dict[str, Any], origin: Origin | None = None, **more: Any) -> Message:
    """A call of the model's."""
    payload = OptionCallPayload(
        **{"invocation_id": invocation_id, "option_name": "weather", "arguments": arguments, **more}
    )
    return Message(policy="llm", origin=origin, payload=payload)


@st.composite
def spoken(draw: Any, policy: str, origin: Origin | None = None) -> Message:
    """Mostly one text; now and then other parts."""
    if draw(st.integers(0, 3)):
        parts: Sequence[Part] = [TextPart(text=draw(words.filter(bool)))]
    else:
        parts = draw(st.lists(whole_parts, min_size=1, max_size=3))
    return Message(policy=policy, origin=origin, payload=PartsPayload(parts=tuple(parts)))


@st.composite
def exchanges(draw: Any, origin: Origin | None) -> MessageTurn:
    """Perhaps a text, calls, and all their results; mostly in order."""
    calls = [
        call(
            draw(st.sampled_from(IDS)),
            draw(st.dictionaries(words | st.sampled_from(WIRE_KEYS), json_values, max_size=2)),
            origin,
            option_name=draw(st.sampled_from(NAMES)),
            raw_arguments=draw(st.sampled_from([None, None, '{"x": 1}', " "])),
        )
        for _ in range(draw(st.integers(1, 3)))
    ]
    results = [answer(each, draw(outcomes)) for each in calls]
    if draw(st.integers(0, 5)) == 0:
        results = draw(st.permutations(results))
    return [*([draw(spoken("llm", origin))] if draw(st.booleans()) else []), *calls, *results]


def turns_of(origins: Sequence[Origin | None]) -> Strategy[MessageTurn]:
    """A turn of the user's, of the model's, or with calls, said by one of these."""
    origin = st.sampled_from(origins)
    exchange = origin.flatmap(exchanges)
    asked = st.lists(st.sampled_from(["user", "user", "planner"]).flatmap(spoken), min_size=1, max_size=2)
    answered = origin.flatmap(lambda each: st.lists(spoken("llm", each), min_size=1, max_size=2))
    return st.one_of(asked, answered, exchange, exchange)


def opened(turns: Sequence[MessageTurn]) -> list[MessageTurn]:
    """The turns after instructions and a question."""
    return [[said("system", "Be brief."), said("user", "Hi")], *turns]


ORIGINS = (None, HOME, HOME, AWAY, Origin(provider="x", dialect="y"))
whole_turns: Strategy[list[MessageTurn]] = st.lists(turns_of(ORIGINS), min_size=1, max_size=5).map(opened)
conversations: Strategy[list[Message]] = whole_turns.map(lambda turns: list(chain.from_iterable(turns)))


def at_home(turns: Sequence[MessageTurn], home: Origin) -> list[MessageTurn]:
    """The turns, with that maker for HOME; elsewhere it speaks the same wire from another endpoint."""
    makers = {HOME: home, AWAY: home.model_copy(update={"endpoint": AWAY.endpoint})}
    return [[_said_by(makers.get(each.origin, each.origin), each) for each in turn] for turn in turns]


def _said_by(maker: Origin | None, message: Message) -> Message:
    return message if maker is message.origin else message.model_copy(update={"origin": maker})
