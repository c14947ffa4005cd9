"""Partial outputs: each is a prefix of the final output, the last one equals it, and the work is linear."""

import json
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date
from enum import Enum
from typing import Annotated, Any, Literal

import pytest
import sabir
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field, RootModel, TypeAdapter, field_validator, model_validator
from sabir_session import Conversation, OutputMode, Partial
from sabir_session.evaluation import json_scanner
from sabir_session.evaluation.partials import VERSIONS_IN_LENGTH
from sabir_session.evaluation.shapes import Shape
from sabir_testing.scripted import ScriptedAdapter, calls, cut_off, pieces, reply
from typing_extensions import TypedDict


class Color(Enum):
    """A value that is whole or missing."""

    red = "red"
    blue = "blue"


class Cat(BaseModel):
    """One of a union with a discriminator."""

    kind: Literal["cat"]
    lives: int


class Dog(BaseModel):
    """The other of a union with a discriminator."""

    kind: Literal["dog"]
    tricks: list[str]


class Hotel(BaseModel):
    """One of a union without a discriminator."""

    model_config = ConfigDict(extra="forbid")
    hotel: str
    nights: int = 1


class Flight(BaseModel):
    """The other of a union without a discriminator."""

    model_config = ConfigDict(extra="forbid")
    flight: str
    stops: list[str] = []


class Tree(BaseModel):
    """A recursive type."""

    label: str
    children: list["Tree"] = []


@dataclass
class Point:
    """A dataclass."""

    x: float
    y: float = 0


class Names(TypedDict, total=False):
    """A typed dict."""

    first: str
    last: str


class Numbers(RootModel[list[int]]):
    """A model of a list."""


class Plan(BaseModel):
    """A model with a field of each form."""

    city: str
    start: date | None
    color: Color
    pet: Annotated[Cat | Dog, Field(discriminator="kind")]
    bookings: list[Hotel | Flight]
    tree: Tree
    point: Point
    names: Names
    by_day: dict[int, Hotel]
    pair: tuple[int, str]
    numbers: Numbers
    note: Annotated[str, Field(min_length=2)] | None = Field(alias="remark", default=None)
    other: Any = None


trees = st.recursive(
    st.builds(Tree, label=st.text(max_size=5)),
    lambda inner: st.builds(Tree, label=st.text(max_size=5), children=st.lists(inner, max_size=3)),
    max_leaves=5,
)
texts = st.text(max_size=12)
hotels = st.builds(Hotel, hotel=texts)
flights = st.builds(Flight, flight=texts, stops=st.lists(texts, max_size=3))
plans = st.builds(
    Plan,
    city=texts,
    pet=st.builds(Cat, kind=st.just("cat")) | st.builds(Dog, kind=st.just("dog"), tricks=st.lists(texts, max_size=3)),
    bookings=st.lists(hotels | flights, max_size=3),
    tree=trees,
    point=st.builds(Point, x=st.floats(allow_nan=False, allow_infinity=False), y=st.just(0.5)),
    by_day=st.dictionaries(st.integers(1, 9), hotels, max_size=2),
    numbers=st.builds(Numbers, st.lists(st.integers(), max_size=3)),
    remark=st.none() | st.text(min_size=2, max_size=8),
    other=st.recursive(
        st.none() | st.integers() | texts, lambda inner: st.lists(inner) | st.dictionaries(texts, inner)
    ),
)
TYPES: dict[Any, st.SearchStrategy[Any]] = {
    Plan: plans,
    Tree: trees,
    list[Hotel | Flight]: st.lists(hotels | flights, max_size=4),
    Hotel | Flight | None: hotels | flights | st.none(),
    dict[str, list[str]]: st.dictionaries(texts, st.lists(texts, max_size=3), max_size=3),
    Literal["yes", "yesterday"]: st.sampled_from(["yes", "yesterday"]),
    str: texts.filter(bool),
}


def is_prefix(part: Any, final: Any) -> bool:
    """Whether a partial value is the beginning of the final value."""
    if part is None or type(part) is not type(final):
        return part is None
    if isinstance(part, str):
        return final.startswith(part)
    if isinstance(part, list | tuple):
        return len(part) <= len(final) and all(map(is_prefix, part, final))
    if isinstance(part, dict):
        return all(name in final and is_prefix(each, final[name]) for name, each in part.items())
    if isinstance(part, BaseModel | Point):
        return is_prefix(vars(part), vars(final))
    return bool(part == final)


def cut(text: str, sizes: Iterator[int]) -> list[str]:
    """Cut a text into pieces of these sizes, the last of which is what is left."""
    parts = []
    while text:
        size = next(sizes)
        parts, text = [*parts, text[:size]], text[size:]
    return parts


def stream(form: Any, *texts: str, **how: Any) -> tuple[list[Partial[Any]], Any]:
    """Return the partial outputs of a streamed answer, and its output."""
    with Conversation(ScriptedAdapter(pieces(*texts)), **how).stream_sync("?", output=form) as answer:
        return list(answer.outputs), answer.answer().output


@settings(max_examples=max(20, settings().max_examples // 5))
@pytest.mark.parametrize("form", TYPES, ids=str)
@given(data=st.data())
def test_every_partial_is_a_prefix_and_the_last_is_the_output(form: Any, data: st.DataObject) -> None:
    final = data.draw(TYPES[form])
    value = TypeAdapter(form).dump_python(final, mode="json", by_alias=True)
    if form is not str:
        is_object = isinstance(final, Plan | Tree)
        escapes, indent = data.draw(st.booleans()), data.draw(st.sampled_from([None, 1]))
        value = json.dumps(value if is_object else {"value": value}, ensure_ascii=escapes, indent=indent)
    sizes = data.draw(st.lists(st.integers(1, 15), min_size=1))
    partials, output = stream(form, *cut(value, (size for _ in range(len(value)) for size in sizes)))

    assert [part for part in partials if not is_prefix(part.output, output)] == []
    assert [part.is_complete for part in partials] == [False] * (len(partials) - 1) + [True]
    assert partials[-1].output == output


TRIP = '{"city": "Rome", "days": 3, "stays": [{"hotel": "Ritz"}, {"hotel": "B"}]}'


class Trip(BaseModel):
    """A journey."""

    city: str
    days: int = Field(ge=1)
    stays: list[Hotel] = []


def test_partials_begin_with_the_first_field() -> None:
    """Missing fields are None, and `model_fields_set` names those that arrived."""
    partials, _ = stream(Trip, *TRIP)
    assert repr(partials[0].output) == "Trip(city='', days=None, stays=None)"
    assert repr(partials[4].output) == "Trip(city='Rome', days=None, stays=None)"
    assert partials[4].output.model_fields_set == {"city"}
    assert [part.output.days for part in partials].count(3) > 3
    grown = [part.get(lambda trip: trip.stays[1].hotel) for part in partials]
    assert (grown[0], grown[-1]) == (None, "B")


@pytest.mark.parametrize("end", range(0, len(TRIP), 7))
def test_a_cut_off_stream_shows_what_arrived_then_raises(end: int) -> None:
    """The error of the stream is raised at the end of the iteration, after all partials."""
    chat = Conversation(ScriptedAdapter(cut_off(pieces(*TRIP[:end] or " "))))
    shown = []
    with chat.stream_sync("?", output=Trip) as answer, pytest.raises(sabir.StreamBroken):
        for part in answer.outputs:
            shown.append(part)
    final = Trip.model_validate_json(TRIP)
    assert all(is_prefix(part.output, final) and not part.is_complete for part in shown)
    assert len(shown) > 3 or end < 14


def test_errors_of_validation_are_raised_at_the_end() -> None:
    """A value that does not fit is left out, a corrected answer begins again, and the last error is raised."""
    bad = '{"city": "Rome", "days": 0, "stays": []}'
    chat = Conversation(ScriptedAdapter(pieces(*bad), pieces(*TRIP)))
    with chat.stream_sync("?", output=Trip) as answer:
        partials = list(answer.outputs)
    assert {part.output.days for part in partials} == {None, 3}
    assert [part.output.city for part in partials].count("") == 2
    assert [part.is_complete for part in partials].count(True) == 1

    chat = Conversation(ScriptedAdapter(pieces(*bad)), retries=0)
    with chat.stream_sync("?", output=Trip) as answer, pytest.raises(sabir.OutputInvalid, match="days"):
        for part in answer.outputs:
            assert not part.is_complete


def test_validators_see_complete_values_only() -> None:
    """The functions of a type run when the value, or the object, is complete."""
    seen: list[str] = []

    class Place(BaseModel):
        name: str

        @field_validator("name")
        @classmethod
        def check(cls, name: str) -> str:
            seen.append(name)
            return name.upper()

        @model_validator(mode="after")
        def check_all(self) -> "Place":
            seen.append(f"all of {self.name}")
            return self

    partials, output = stream(list[Place], *'{"value": [{"name": "Rome"}]}')
    assert set(seen) == {"Rome", "all of ROME"}
    names = [part.get(lambda places: places[0].name) for part in partials if part.output]
    assert names == [None, "ROME", "ROME"]  # the name, the place and the list are complete
    assert output[0].name == "ROME"


def test_a_union_is_shown_when_one_type_is_left() -> None:
    class Long(BaseModel):
        name: str
        size: int

    class Short(BaseModel):
        name: str
        color: str

    partials, _ = stream(list[Long | Short], *'{"value": [{"name": "a", "color": "blue"}]}')
    shown = [part.output for part in partials if part.output]
    assert repr(shown[0]) == "[Short(name='a', color='')]"


@pytest.mark.parametrize("model", ["scripted:m", "deepseek:deepseek-chat"])
@pytest.mark.parametrize("mode", [None, "native", "call", "text"])
async def test_partials_are_alike_in_every_mode(model: str, mode: OutputMode | None) -> None:
    """Sync and async; a call that arrives as a whole has one version."""
    by_call = mode == "call" or (mode is None and model != "scripted:m")
    said = calls(final_answer=json.loads(TRIP)) if by_call else pieces(*TRIP)
    llm = ScriptedAdapter(said, said, model=model)
    chat = Conversation(llm, output=Trip, output_mode=mode)
    with chat.stream_sync("?") as answer:
        partials = list(answer.outputs)
    async with chat.stream("?") as awaited:
        assert [part async for part in awaited.outputs] == partials
        assert (await awaited.answer()).output == partials[-1].output
    assert partials[-1] == Partial(Trip.model_validate_json(TRIP), is_complete=True)
    assert len(partials) > (0 if by_call else 18)
    assert ("final_answer" in llm.sent[0].option_names) == by_call
    assert (llm.sent[0].settings.response_format is None) == (by_call or mode == "text")
    assert ("JSON schema" in llm.sent[0].user_text) == (mode == "text")


def test_json_in_a_text_is_found() -> None:
    """Text before and after, fences, and braces that begin no JSON."""
    said = f"Here {{it}} is:\n```json\n{TRIP}\n```\nEnjoy {{}}!"
    partials, output = stream(Trip, *said, output_mode="text")
    assert partials[-1] == Partial(output, is_complete=True)
    assert all(is_prefix(part.output, output) for part in partials)

    chat = Conversation(ScriptedAdapter("I cannot.", said), output_mode="text")
    answer = chat.ask_sync("?", output=Trip)
    assert (answer.output, len(answer.replies)) == (output, 2)
    assert not [message for message in chat.messages if "JSON schema" in message.text]


def test_a_mode_that_the_model_lacks_is_a_loss() -> None:
    """Or an error, if the caller is strict."""
    for model, mode, path in (
        ("deepseek:deepseek-chat", "native", "settings.response_format.schema"),
        ("perplexity:sonar", "call", "options"),
    ):
        llm = ScriptedAdapter(TRIP, model=model)
        answer = Conversation(llm).ask_sync("?", output=Trip, output_mode=mode)  # type: ignore[arg-type]
        assert ("dropped", path) in [(loss.kind, loss.path) for loss in answer.losses]
        with pytest.raises(sabir.RenderingRefused):
            Conversation(llm, output=Trip, output_mode=mode, strict=True).ask_sync("?")  # type: ignore[arg-type]


def test_an_unknown_mode_and_a_mode_without_effect_are_refused() -> None:
    chat = Conversation(ScriptedAdapter("Hi."), output_mode="call")
    assert chat.ask_sync("?", output=str).output == "Hi."
    for how in (
        {"output_mode": "json", "output": int},
        {"output_mode": "text"},
        {"output_mode": "text", "output": str},
    ):
        with pytest.raises(sabir.SettingsInvalid, match="output_mode="):
            chat.ask_sync("?", **how)
    with pytest.raises(sabir.SettingsInvalid, match="output_mode is 'json'"):
        chat.output_mode = "json"  # type: ignore[assignment]


def test_str_is_plain_text() -> None:
    """Without a schema in the request; the validator may have the model answer again, and a refusal is an error."""

    def check(text: str) -> None:
        if not text.startswith("Dear"):
            raise ValueError("begin with Dear")

    llm = ScriptedAdapter(pieces("He", "llo"), pieces("Dear", " {you}"))
    with Conversation(llm).stream_sync("?", output=str, output_validator=check) as answer:
        partials = list(answer.outputs)
        assert answer.answer().output == "Dear {you}"
    assert [part.output for part in partials if part.is_complete] == ["Hello", "Dear {you}"]
    assert (llm.last.settings.response_format, llm.last.option_names) == (None, ())

    cut_text = ScriptedAdapter(reply("Half a", finish_reason="length"), reply(sabir.RefusalPart(text="No.")))
    assert Conversation(cut_text).ask_sync("?", output=str).output == "Half a"
    with pytest.raises(sabir.errors.OutputRefused):
        Conversation(cut_text).ask_sync("?", output=str)


def test_a_text_before_an_option_call_is_not_the_output() -> None:
    def note(text: str) -> None:
        """Note."""

    llm = ScriptedAdapter(reply(pieces("Let", " me see."), calls(note={"text": "a"})), pieces("Don", "e."))
    with Conversation(llm, options=[note]).stream_sync("?", output=str) as answer:
        shown = [(part.output, part.is_complete) for part in answer.outputs]
    assert shown == [("Let", False), ("Let me see.", False), ("Don", False), ("Done.", False), ("Done.", True)]


def long_text(length: int) -> str:
    items = [{"hotel": "Ritz", "nights": 1}] * (length // 64)
    return json.dumps({"city": "R" * (length // 2), "days": 3, "stays": items})


@pytest.mark.parametrize("length", [20_000, 80_000])
def test_the_work_is_linear(monkeypatch: pytest.MonkeyPatch, length: int) -> None:
    """Pieces of one character: each is scanned once, and validated once in each value that contains it."""
    text, counted = long_text(length), {"scanned": 0, "validated": 0}

    def counting(step: Callable[..., int]) -> Callable[..., int]:
        def read(scanner: object, rest: str, at: int) -> int:
            end = step(scanner, rest, at)
            counted["scanned"] += end - at
            return end

        return read

    validate = Shape.validate

    def count_validated(shape: Shape, value: str) -> object:
        counted["validated"] += len(value)
        return validate(shape, value)

    monkeypatch.setattr(json_scanner, "_STEPS", {name: counting(step) for name, step in json_scanner._STEPS.items()})
    monkeypatch.setattr(Shape, "validate", count_validated)
    scanned = JSONReader(text)
    versions = scanned.read()
    depth = 4  # Trip, its list, a Hotel, its name

    assert counted["scanned"] <= len(text)
    assert counted["validated"] <= depth * len(text)
    assert len(versions) <= VERSIONS_IN_LENGTH * (2 + math.log(len(text) / VERSIONS_IN_LENGTH))
    assert versions[-1].output == Trip.model_validate_json(text)


class JSONReader:
    """Reads the versions of one text without a conversation."""

    def __init__(self, text: str) -> None:
        self.text = text

    def read(self) -> list[Partial[Trip]]:
        """Return all versions of the text, which arrives character by character."""
        from sabir_session import TextArrived
        from sabir_session.evaluation.outputs import Outputs

        versions = Outputs[Trip](Trip).versions()
        return [each for piece in self.text if (each := versions(TextArrived(piece))) is not None]
