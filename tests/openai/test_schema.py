"""JSON schemas in strict form: narrowed without a change of meaning, or as given with the reason why not.

That a strict schema has closed objects, required properties and known keywords alone is a law of all wires.
"""

from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field
from sabir.authoring import fit_schema
from sabir.authoring.schemas import FittedSchema
from sabir_openai.schema import STRICT


def make_strict(schema: dict[str, Any]) -> FittedSchema:
    return fit_schema(schema, STRICT)


class Cat(BaseModel):
    kind: Literal["cat"]


class Dog(BaseModel):
    kind: Literal["dog"]


class Node(BaseModel):
    value: int
    children: list["Node"]


class Owner(BaseModel):
    """An owner."""

    pet: Annotated[Cat | Dog, Field(discriminator="kind", description="The pet.")]
    home: Annotated[Cat, Field(description="At home.")]
    note: str | None = None


@pytest.mark.parametrize("model", [Owner, Node, Cat])
def test_models_of_pydantic_become_strict(model: type[BaseModel]) -> None:
    found = make_strict(model.model_json_schema())

    without = [("rewritten", "properties.pet.oneOf", "'oneOf' was sent as 'anyOf', without its 'discriminator'", False)]
    assert (found.refusal, [*found.changes]) == ("", without if model is Owner else [])


def test_a_reference_with_a_description_is_put_in_place() -> None:
    """The wire takes a reference only alone; the description stays."""
    schema = make_strict(Owner.model_json_schema()).schema

    assert schema["properties"]["home"]["description"] == "At home."
    assert schema["properties"]["home"]["properties"]["kind"]["const"] == "cat"
    assert [set(arm) for arm in schema["properties"]["pet"]["anyOf"]] == [{"$ref"}, {"$ref"}]


def of(more: Any = None, **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, **(more or {})}


TEXT = {"type": "string"}
REFUSED: list[tuple[dict[str, Any], str]] = [
    (TEXT, "the root is not an object"),
    ({"type": "object"}, "the root is an object whose properties are not listed"),
    ({"type": "object", "properties": ["a"]}, "properties is not an object"),
    ({"anyOf": [of()]}, "the root has 'anyOf'"),
    (of({"anyOf": [TEXT]}), "the root has 'anyOf'"),
    (of({"oneOf": [TEXT], "discriminator": {}}), "the root has 'oneOf'"),
    (of({"additionalProperties": TEXT}), "properties of any name"),
    (of(a={}), "properties.a accepts any value"),
    (of(a=True), "properties.a is True, which is not a schema"),
    (of(a={**TEXT, "minLength": 1}), "properties.a has 'minLength': 1"),
    (of(a={**TEXT, "format": "uri"}), """properties.a has 'format': "uri\""""),
    (of(a={"type": "array"}), "properties.a is an array whose items have no schema"),
    (of(a={"type": ["array", "null"]}), "a is an array whose items have no schema"),
    (of(a={"oneOf": [TEXT]}), "properties.a has 'oneOf'"),
    (of(a={"$ref": "#/$defs/gone"}, b={"$ref": "#/x", "title": "t"}), "#/$defs/gone names nothing"),
    (of(a={"$ref": "https://example.org/a"}), "example.org/a names nothing"),
    (of({"$defs": {}}, a={"$ref": "#there"}), "#there names nothing"),
    (of(a={"enum": list(range(1001))}), "more than 1,000 enumerated values"),
]


@pytest.mark.parametrize(("schema", "reason"), REFUSED)
def test_what_strict_mode_cannot_say_keeps_the_schema_as_it_is(schema: dict[str, Any], reason: str) -> None:
    found = make_strict(schema)

    assert (found.schema, found.changes) == ({}, ())
    assert reason in found.refusal


def test_a_schema_may_nest_ten_deep() -> None:
    schema: dict[str, Any] = TEXT
    for _ in range(10):
        schema = of(a=schema)

    assert not make_strict(schema).refusal
    assert make_strict(of(a=schema)).refusal == "the schema has more than 10 levels"


REQUIRED = "'a' is optional and was made required, because strict schemas have no optional properties"
NULLABLE = {"type": ["string", "null"]}


@pytest.mark.parametrize(
    ("schema", "changes"),
    [
        (TEXT, [REQUIRED]),
        (NULLABLE, []),
        ({"anyOf": [TEXT, {"type": "null"}], "default": None}, []),
        ({**NULLABLE, "default": "x"}, [REQUIRED]),
        ({**NULLABLE, "examples": ["x"]}, ["'examples' was removed"]),
        (
            {**NULLABLE, "allOf": [{**TEXT, "title": "t"}]},
            ["'type' of 'allOf' was removed, because 'type' next to 'allOf' differs"],
        ),
    ],
)
def test_what_was_optional_becomes_required(schema: dict[str, Any], changes: list[str]) -> None:
    found = make_strict(of(a=schema))

    assert not found.refusal
    assert [change.reason for change in found.changes if change.narrows] == changes


def test_a_default_stays() -> None:
    """The vendor takes it in strict schemas; a reference that has one beside it gives way to what it names."""
    a, b = {**TEXT, "default": "x"}, {"$ref": "#/$defs/B", "default": "y"}
    given = of({"required": ["a", "b"], "$defs": {"B": {"enum": ["y", "z"]}}}, a=a, b=b)
    found = make_strict(given)

    assert (found.refusal, found.changes) == ("", ())
    assert found.schema["properties"] == {"a": a, "b": {"enum": ["y", "z"], "default": "y"}}


@pytest.mark.parametrize("name", ["deprecated", "readOnly", "writeOnly", "$comment", "$id", "$schema"])
def test_what_holds_a_reply_to_nothing_is_left_out_and_named(name: str) -> None:
    found = make_strict(of({"required": ["a"]}, a={**TEXT, name: True}))

    assert found.changes == (("rewritten", f"properties.a.{name}", f"{name!r} was removed", False),)
    assert found.schema["properties"] == {"a": TEXT}
