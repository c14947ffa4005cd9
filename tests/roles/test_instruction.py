"""Instruction: its parts, their order when rendered, images, and the form of the answer that it asks for."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from pydantic import BaseModel, Field
from sabir.vocabulary.settings import Settings
from sabir_roles import Instruction, RoledMessage

from tests.roles.support import made_of, refuses, through_json

CAT = "https://example.com/cat.png"
DATA = "data:image/png;base64,iVBORw0KGgo="
RAW = "iVBORw0KGgo="


class City(BaseModel):
    name: str = Field(description="what it is called")
    people: int = 0


class Uncallable(BaseModel):
    call: Callable[[], int]


EVERYTHING: dict[str, Any] = {
    "guidance": "Be brief.",
    "instruction": "Where is it?",
    "context": ["a", {"b": 1}],
    "tool_schemas": [{"name": "look"}],
    "plain_content": "plain",
    "image_detail": "high",
    "images": [CAT],
    "request_fields": {"name": "its name"},
}


def test_each_part_is_a_property() -> None:  # LA-25
    made = Instruction.create(**EVERYTHING)
    assert {name: getattr(made, name) for name in EVERYTHING} == EVERYTHING
    assert made.response_format is None
    assert made.respond_schema_info is None
    assert '"name": "its name"' in (made.request_response_format or "")


@pytest.mark.parametrize(
    ("context", "held"),
    [("a", ["a"]), ({"b": 1}, [{"b": 1}]), (0, [0]), (["a", "b"], ["a", "b"]), (("a",), ["a"]), ([], []),
     ([["a"]], [["a"]])],
)  # fmt: skip
def test_context_is_a_list(context: Any, held: list[Any]) -> None:  # LA-27
    assert Instruction.create("x", context=context).context == held


@pytest.mark.parametrize("word", ["request_model", "response_format"])
@pytest.mark.parametrize("model", [City, City(name="x")])
def test_a_model_says_the_form_of_the_answer(word: str, model: Any) -> None:  # LA-29
    made = Instruction.create("x", **{word: model})
    assert made.response_format is City
    assert made.request_fields == {"name": "what it is called", "people": "integer"}
    assert made.respond_schema_info == City.model_json_schema()
    assert json.loads((made.request_response_format or "").split("\n", 1)[1]) == made.request_fields
    assert made.settings == Settings(response_format=City)
    stored = through_json(made).settings.response_format
    assert stored is not None
    assert stored.schema_view == City.model_json_schema()


@pytest.mark.parametrize(
    ("fields", "held"),
    [
        ({"a": "what it is", "b": int, "c": ["x"]}, {"a": "what it is", "b": "int", "c": ["x"]}),
        (["a", "b"], {"a": "any", "b": "any"}),
    ],
)
def test_fields_say_the_form_of_the_answer(fields: Any, held: dict[str, Any]) -> None:  # LA-29
    made = Instruction.create("x", request_fields=fields)
    assert (made.request_fields, made.respond_schema_info, made.settings) == (held, None, Settings())


@pytest.mark.parametrize(
    ("form", "words"),
    [
        ({"request_model": int}, ["request_model", "pydantic model"]),
        ({"response_format": "City"}, ["response_format", "str"]),
        ({"response_format": {"type": "object"}}, ["response_format", "dict"]),
        ({"response_format": BaseModel | None}, ["response_format"]),
        ({"request_model": Uncallable}, ["Uncallable", "no JSON schema"]),
        ({"request_fields": "name"}, ["request_fields", "str"]),
        ({"request_fields": [1]}, ["request_fields", "list"]),
    ],
)
def test_another_form_is_refused(form: dict[str, Any], words: list[str]) -> None:  # LA-29
    with refuses(*words):
        Instruction.create("x", **form)
    made = Instruction.create("x", request_model=City)
    with refuses(*words, of=made):
        made.update(instruction="y", **form)
    assert made.response_format is City


def test_plain_content_takes_the_place_of_the_sections() -> None:  # LA-30, D-56
    made = Instruction.create("x", guidance="g", plain_content="## Context\nplain", images=[CAT])
    assert made.text == "## Context\nplain"
    assert (made.instruction, len(made.rendered)) == ("x", 2)
    with refuses("plain_content", "int"):
        Instruction.create("x", plain_content=5)  # type: ignore[arg-type]


def test_images_make_a_chat_array() -> None:  # LA-32, LA-09
    assert Instruction.create("x", images=[]).rendered == "x"
    assert Instruction.create("x", images=[]).image_content is None
    assert RoledMessage(content={"image_url": CAT}).image_content is None
    assert Instruction.create("x", images=[CAT, DATA]).rendered == [
        {"type": "text", "text": "x"},
        {"type": "image_url", "image_url": {"url": CAT, "detail": "auto"}},
        {"type": "image_url", "image_url": {"url": DATA, "detail": "auto"}},
    ]


@pytest.mark.parametrize(
    ("image", "url"),
    [
        (CAT, CAT),
        ("http://example.com/cat.png", "http://example.com/cat.png"),
        (DATA, DATA),
        (RAW, DATA),
        ("iVBORw0K\nGgo=\n", DATA),
        ("_9j_4AA=", "data:image/jpeg;base64,/9j/4AA="),
    ],
)
def test_an_image_is_a_url_or_base64(image: str, url: str) -> None:  # LA-33, D-53
    made = Instruction.create("x", images=image)  # one alone is a list of one
    assert made.images == [image]
    assert [entry["image_url"]["url"] for entry in made.image_content or []] == [url]
    message = made_of(made)
    assert [part.url for part in message.parts if part.kind == "media"] == [url]


@pytest.mark.parametrize(
    "images",
    [
        ["ftp://example.com/cat.png"], ["file:///etc/passwd"], ["javascript:alert(1)"], ["gs://bucket/cat"],
        [CAT, "https://"], ["data:image/png"], [""], [None], [b"x"], 5, {"url": CAT}, b"x", "no base64!",
    ],
)  # fmt: skip
def test_other_images_are_refused(images: Any) -> None:  # LA-33, D-02
    with refuses("image"):
        Instruction.create("x", images=images)
    made = Instruction.create("x", images=[CAT])
    for change in (lambda: made.update(instruction="y", images=images), lambda: made.extend_images(images, "low")):
        with refuses("image", of=made):
            change()


def test_what_is_no_base64_is_refused_where_it_becomes_a_message() -> None:  # D-53
    made = Instruction.create("x", images=["abc"])
    assert through_json(made).images == ["abc"]
    for use in (lambda: made.rendered, made.to_message):
        with refuses("'abc'", "base64", of=made):
            use()


@pytest.mark.parametrize("detail", ["low", "high", "auto"])
def test_image_detail_is_a_hint_of_each_image(detail: Any) -> None:  # LA-34, D-29
    made = Instruction.create("x", images=[CAT, RAW], image_detail=detail)
    assert [entry["image_url"]["detail"] for entry in made.image_content or []] == [detail, detail]
    message = made_of(made)
    assert [dict(part.vendor) for part in message.parts if part.kind == "media"] == [{"*": {"detail": detail}}] * 2
    taken = RoledMessage.from_message(message)
    assert isinstance(taken, Instruction)
    assert (taken.image_detail, taken.to_message()) == (detail, message)


def test_images_are_added_after_those_that_are_there() -> None:  # LA-35
    made = Instruction.create("x", images=[CAT], image_detail="low")
    made.extend_images([DATA])
    assert (made.images, made.image_detail) == ([CAT, DATA], "low")
    made.extend_images(RAW, "high")
    assert (made.images, made.image_detail) == ([CAT, DATA, RAW], "high")
    first = Instruction.create("x")
    first.extend_images([CAT])
    assert len(first.rendered) == 2


def test_context_is_added_to() -> None:  # LA-36
    made = Instruction.create("x")
    made.extend_context()
    made.extend_context("a", ["b"], 0, c=1, d=[2])
    assert made.context == ["a", ["b"], 0, {"c": 1}, {"d": [2]}]
    made.extend_context("e")
    assert made.context[-1] == "e"
    assert "e" in made.text
    with refuses("JSON", of=made):
        made.extend_context("f", object())


def test_a_new_form_replaces_the_old_one() -> None:  # LA-37
    made = Instruction.create("x", request_model=City)
    made.update(guidance="g")
    assert made.response_format is City
    made.update(request_fields=["a"])
    assert (made.response_format, made.respond_schema_info, made.request_fields) == (None, None, {"a": "any"})
    made.update(response_format=City)
    assert made.settings == Settings(response_format=City)


def test_the_model_holds_for_as_long_as_the_content_asks_for_it() -> None:
    asked = Instruction.create("x", response_format=City)
    assert asked.settings.response_format is not None
    asked.content = {"instruction": "plain now"}
    assert (asked.response_format, asked.settings.response_format) == (None, None)
