"""Plain turns: a turn has the same bytes whether it is filled into its shape's stencil or encoded by itself."""

import json
import weakref
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

import pytest
import sabir
from hypothesis import given, settings
from hypothesis import strategies as st
from sabir.errors import RenderingRefused
from sabir.losses import Loss
from sabir.messages import Message, OptionCallPayload, OptionResultPayload, Origin, PartsPayload
from sabir.parts import TextPart
from sabir.rendering import Renderer
from sabir.scope import LossLog, Target, Turn, TurnScope
from sabir_testing.histories import json_values
from sabir_testing.toys import INLINE

from tests.laws.every import on_every
from tests.laws.histories import messages, texts
from tests.laws.test_dialect_laws import DIALECTS, MODELS, pure
from tests.laws.test_dialect_laws import renderer as fresh_renderer

FILLING = tuple(name for name in DIALECTS if pure(name).dialect.tables.plain_turns == "filled_in")
EACH = settings().max_examples // 3
"""Examples of each wire: together they are more than the usual number."""
WIRES = (*FILLING, "toy.inline")
"""And a toy that puts values as they are into its items, and takes any text."""


class Counting:
    """A dialect that counts the turns which it encodes."""

    def __init__(self, dialect: Any) -> None:
        self.dialect = dialect
        self.encoded = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.dialect, name)

    def encode_turn(self, turn: Turn, scope: TurnScope, losses: LossLog) -> Sequence[Any]:
        self.encoded += 1
        return self.dialect.encode_turn(turn, scope, losses)  # type: ignore[no-any-return]


def filling_renderer(name: str) -> Renderer:
    """One that fills in, with nothing kept."""
    if name in FILLING:
        return fresh_renderer(name)
    return Renderer(INLINE, target_of(name), tables=replace(INLINE.tables, plain_turns="filled_in"))


def each_renderer(name: str) -> Renderer:
    """One that encodes each turn by itself."""
    filling = filling_renderer(name)
    return filling.new(replace(filling.tables, plain_turns="encoded_each"))


def target_of(name: str) -> Target:
    if name == INLINE.name:
        return Target(provider="toy", dialect=name, model="m")
    return pure(name).target.model_copy(update={"model": MODELS[name]})


def rendered(renderer: Renderer, history: Sequence[Message]) -> tuple[bytes, tuple[Loss, ...]] | None:
    try:
        rendering = renderer.render(history)
    except RenderingRefused:
        return None
    return rendering.body_bytes, rendering.losses


def said(policy: str, text: str, origin: Origin | None = None) -> Message:
    return Message(policy=policy, origin=origin, payload=PartsPayload(parts=(TextPart(text=text),)))


def result_of(call: Message, outcome: dict[str, Any]) -> Message:
    chosen = call.call
    assert chosen is not None
    payload = OptionResultPayload(invocation_id=chosen.invocation_id, option_name=chosen.option_name, **outcome)
    return Message(policy=chosen.option_name, payload=payload)


words = st.one_of(
    texts, st.text(min_size=1, max_size=12), st.sampled_from(["%s", "sabir0mark", " a", "a\u2028", "\x1f", "ä"])
)
numbers = st.sampled_from([1e16, 1e-7, 2**70, 0.1, -0.0, 1.0, 123456789.125])
values = st.one_of(json_values, numbers, words, st.dictionaries(words, numbers, max_size=2))
outcomes = st.one_of(
    values.map(lambda value: {"result": value}),
    words.map(lambda text: {"parts": (TextPart(text=text),)}),
    st.just({"is_error": True, "error_type": "Boom", "error_message": "no"}),
)


@st.composite
def exchanges(draw: Any, origins: Sequence[Origin | None]) -> list[Message]:
    """Perhaps a text, calls, and their results; mostly in order."""
    origin = draw(st.sampled_from(origins))
    calls = [
        Message(
            policy="llm",
            origin=origin,
            payload=OptionCallPayload(
                invocation_id=draw(st.sampled_from(["a", "b", "c", "d", "e|f", "g"])),
                option_name=draw(st.sampled_from(["weather", "add", "my.tool/with a name"])),
                arguments=draw(st.dictionaries(words, values, max_size=2)),
                raw_arguments=draw(st.sampled_from([None, None, '{"x": 1}', " "])),
            ),
        )
        for _ in range(draw(st.integers(1, 3)))
    ]
    results = [result_of(call, draw(outcomes)) for call in calls]
    if draw(st.integers(0, 5)) == 0:
        results = draw(st.permutations(results))[: draw(st.integers(0, len(results)))]
    return [*([said("llm", draw(words), origin)] if draw(st.booleans()) else []), *calls, *results]


def conversations(name: str) -> st.SearchStrategy[list[Message]]:
    """Conversations as they are: mostly plain, with something else now and then."""
    target = target_of(name)
    home = Origin(provider=target.provider, dialect=target.dialect, endpoint=target.endpoint, model=target.model)
    origins = (
        None,
        None,
        home,
        home.model_copy(update={"endpoint": "https://elsewhere.invalid"}),
        Origin(provider="x", dialect="y"),
    )
    turns = st.one_of(
        words.filter(bool).map(lambda text: [said("user", text)]),
        st.builds(lambda text, origin: [said("llm", text, origin)], words.filter(bool), st.sampled_from(origins)),
        exchanges(origins),
        exchanges(origins),
        st.lists(messages, min_size=1, max_size=1),
    )
    return st.lists(turns, max_size=8).map(
        lambda some: [said("system", "Be brief."), said("user", "Hi"), *chain.from_iterable(some)]
    )


@pytest.mark.parametrize("name", WIRES)
@settings(max_examples=EACH)
@given(data=st.data())
def test_a_filled_in_turn_has_the_bytes_of_one_that_is_encoded_by_itself(name: str, data: st.DataObject) -> None:
    """Rendering is the same, bytes and losses, whether plain turns are filled in or not."""
    history = data.draw(conversations(name))

    assert rendered(filling_renderer(name), history) == rendered(each_renderer(name), history)


def chosen(invocation_id: str, **arguments: Any) -> Message:
    payload = OptionCallPayload(invocation_id=invocation_id, option_name="weather", arguments=arguments)
    return Message(policy="llm", payload=payload)


def answered(outcome: Any, invocation_id: str = "a", **arguments: Any) -> list[Message]:
    call = chosen(invocation_id, **arguments)
    return [call, result_of(call, {"result": outcome})]


HARDLY_PLAIN: dict[str, list[Message]] = {
    "a number with an exponent": answered("x", n=1e16),
    "a small number": answered("x", n=1e-7),
    "a result with an exponent": answered({"n": 1e-7}),
    "a result that ends with white space": answered("so\n"),
    "a result that ends with a control character": answered("so\x1f"),
    "a result that begins with white space": answered("\nso"),
    "a result of white space": answered(" "),
    "a result of a line's end": answered("\n"),
    "an empty result": answered(""),
    "a result that is a reference": answered({"$ref": "#/x"}),
    "a result with a key of the wire": answered({"output": 1}),
    "a result that is nothing": answered(None),
    "calls of one id": [
        chosen("a"), chosen("a"), result_of(chosen("a"), {"result": "1"}), result_of(chosen("a"), {"result": "2"}),
    ],
    "an id that was used": [*answered("x"), *answered("y")],
    "a result for nobody": [result_of(chosen("z"), {"result": "1"}), said("user", "again")],
    "a result twice": [*answered("x"), result_of(chosen("a"), {"result": "2"})],
    "results in another order": [
        chosen("a"), chosen("b"), result_of(chosen("b"), {"result": "1"}), result_of(chosen("a"), {"result": "2"}),
    ],
    "a text after a call": [chosen("a"), said("llm", "so"), result_of(chosen("a"), {"result": "1"})],
    "a late result": [chosen("a"), said("user", "?"), said("llm", "!"), result_of(chosen("a"), {"result": "1"})],
    "a late system message": [said("llm", "x"), said("system", "And be kind.")],
    "white space at an end": [said("llm", "x "), said("user", " y")],
}  # fmt: skip


@pytest.mark.parametrize("case", HARDLY_PLAIN)
@on_every(WIRES)
def test_what_is_hardly_plain_is_encoded_as_ever(name: str, case: str) -> None:
    """Turns at the border of what is plain, among plain ones of the same shapes."""
    plain = [
        said("system", "s"),
        said("user", "Hi"),
        *answered("fine", "p", city="Paris"),
        said("llm", "so"),
        said("user", "?"),
    ]
    history = [
        *plain,
        *HARDLY_PLAIN[case],
        said("llm", "well"),
        said("user", "!"),
        said("llm", "yes"),
        said("user", "?"),
    ]

    assert rendered(filling_renderer(name), history) == rendered(each_renderer(name), history)


@pytest.mark.parametrize("name", FILLING)
def test_a_long_plain_conversation_encodes_each_shape_once(name: str) -> None:
    """Of two hundred plain turns, those of two shapes are encoded: the first, the last and the specimens."""
    dialect = Counting(pure(name).dialect)
    history = [said("system", "Be brief.")]
    for number in range(100):
        history += [said("user", f"question {number}"), said("llm", f"answer {number}")]

    body = json.loads(Renderer(dialect, target_of(name)).render(history).body_bytes)

    assert "question 99" in json.dumps(body)
    assert dialect.encoded < 10


@pytest.mark.parametrize("name", WIRES)
@settings(max_examples=EACH)
@given(data=st.data())
def test_what_was_kept_and_forked_renders_as_afresh(name: str, data: st.DataObject) -> None:
    """Law 5, over random appends, forks, truncations and edits of conversations that share their messages."""
    kept = filling_renderer(name)
    branches: list[list[Message]] = [data.draw(conversations(name))]
    for _ in range(data.draw(st.integers(1, 6))):
        branch = data.draw(st.sampled_from(branches))
        match data.draw(st.sampled_from(["append", "append", "truncate", "fork", "edit"])):
            case "append":
                branch += data.draw(conversations(name))[2:]
            case "truncate":
                del branch[data.draw(st.integers(1, len(branch))) :]
            case "fork":
                branches.append(branch[: data.draw(st.integers(1, len(branch)))])
            case "edit":
                branch[data.draw(st.integers(0, len(branch) - 1))] = data.draw(messages)
        assert rendered(kept, branch) == rendered(filling_renderer(name), branch)


@given(history=st.lists(messages, max_size=6), text=words.filter(bool))
@on_every(WIRES)
def test_what_a_text_says_changes_nothing_but_the_text(name: str, history: list[Message], text: str) -> None:
    """No text is met by a stencil as a mark, a place or a letter of JSON."""
    before = [
        said("system", "s"),
        said("user", "Hi"),
        *history,
        said("planner", "so"),
        said("llm", text),
        said("user", "?"),
    ]

    assert rendered(filling_renderer(name), before) == rendered(each_renderer(name), before)


def test_a_prefix_falls_back_to_the_last_closer_that_lives() -> None:
    """What is kept dies with its messages, from the end: a conversation that is cut short keeps what it still has."""
    renderer = fresh_renderer("openai.chat")
    history = [said("user" if number % 2 == 0 else "llm", f"{number}") for number in range(300)]
    renderer.render(history)
    (course,) = renderer._courses.values()
    entered = len(course.index)

    del history[150:]

    assert 0 < len(course.index) < entered
    found = course.index.find(history)
    assert found is not None
    assert 80 < found.last.position <= 150
    del found
    history.clear()
    assert len(course.index) == 0


def test_a_message_without_its_conversation_is_kept_by_no_prefix() -> None:
    """Whoever keeps one message of a conversation that is gone keeps that alone, unless it is the last that closed."""
    renderer = fresh_renderer("openai.chat")
    history = [said("user" if number % 2 == 0 else "llm", f"{number}") for number in range(40)]
    renderer.render(history)
    kept, other = history[20], weakref.ref(history[3])

    history.clear()

    assert kept.text == "20"
    assert other() is None


def test_sabir_names_its_filling_dialects() -> None:
    """An empty list would let every law above pass."""
    assert set(FILLING) == {"openai.chat", "openai.responses", "anthropic.messages", "google.generate_content"}
    assert sabir.dialect("echo.plain").dialect.tables.plain_turns == "encoded_each"
