"""The form of an answer: a schema's file or a type of Python; what is neither is refused in one line."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, TypeAdapter, ValidationError
from sabir_cli.chat.output_types import load_output_type
from sabir_cli.output import UsageError


class Held(BaseModel):
    """A model within another."""

    days: int


class Holds(BaseModel):
    """A model that holds another, twice."""

    first: Held
    more: list[Held]


class Node(BaseModel):
    """A model that holds itself."""

    value: int
    next: "Node | None" = None


def references(value: object) -> Iterator[str]:
    """What a schema refers to."""
    for key, each in value.items() if isinstance(value, dict) else enumerate(value if isinstance(value, list) else ()):
        yield from [each] if key == "$ref" else references(each)


def test_a_schema_of_a_file_is_sent_and_checks(tmp_path: Path) -> None:
    schema = {"type": "object", "properties": {"days": {"type": "integer", "maximum": 9}}, "required": ["days"]}
    (tmp_path / "trip.json").write_text(json.dumps(schema))
    found = load_output_type(str(tmp_path / "trip.json"))
    form = TypeAdapter(found)

    assert found.__name__ == "trip"
    assert form.json_schema() == schema
    assert form.validate_json('{"days": 3}') == {"days": 3}
    with pytest.raises(ValidationError, match=r"\$\.days: 30 is greater than the maximum of 9"):
        form.validate_json('{"days": 30}')


NODE = Node.model_json_schema()["$defs"]["Node"]
LIST = {"type": "array", "items": {"$ref": "#/$defs/trip"}}
INT = {"type": "integer", "maximum": 9}


@pytest.mark.parametrize(
    ("schema", "sent"),
    [
        (Holds.model_json_schema(), Holds.model_json_schema()),
        (Node.model_json_schema(), {**NODE, "$defs": {"Node": NODE}}),
        (
            {"type": "object", "properties": {"held": {"$ref": "#/definitions/a~1b"}}, "definitions": {"a/b": INT}},
            {"type": "object", "properties": {"held": {"$ref": "#/$defs/a_1b"}}, "$defs": {"a_1b": INT}},
        ),
        ({"type": "array", "items": {"$ref": "#"}}, {**LIST, "$defs": {"trip": LIST}}),
    ],
    ids=["nested", "recursive", "older draft", "the whole"],
)
def test_what_a_schema_refers_to_within_itself_is_sent(
    schema: dict[str, Any], sent: dict[str, Any], tmp_path: Path
) -> None:
    (tmp_path / "trip.json").write_text(json.dumps(schema))
    form: Any = load_output_type(str(tmp_path / "trip.json"))

    assert TypeAdapter(form).json_schema() == sent
    around = TypeAdapter(dict[str, form]).json_schema()
    assert {*references(around)} <= {f"#/$defs/{name}" for name in around["$defs"]}


def test_what_is_referred_to_is_checked(tmp_path: Path) -> None:
    (tmp_path / "node.json").write_text(json.dumps(Node.model_json_schema()))
    form = TypeAdapter(load_output_type(str(tmp_path / "node.json")))

    assert form.validate_json('{"value": 1, "next": {"value": 2}}')
    with pytest.raises(ValidationError, match=r"\$\.next\.value"):
        form.validate_json('{"value": 1, "next": {"value": "two"}}')


def test_a_type_is_found_by_its_name() -> None:
    assert load_output_type("fractions:Fraction").__name__ == "Fraction"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("{", "is not JSON"),
        ("[]", "is not a JSON object"),
        ('{"type": "text"}', "is not a valid JSON schema: 'text' is not valid"),
        (
            '{"$ref": "https://x.example/trip.json"}',
            "refers to 'https://x.example/trip.json', which is not a schema in the file",
        ),
        ('{"items": {"$ref": "#/$defs/Day"}}', "refers to '#/\\$defs/Day', which is not a schema in the file"),
    ],
)
def test_a_file_that_is_no_schema_is_refused(text: str, complaint: str, tmp_path: Path) -> None:
    (tmp_path / "trip.json").write_text(text)
    with pytest.raises(UsageError, match=rf"trip.json' {complaint}"):
        load_output_type(str(tmp_path / "trip.json"))
    with pytest.raises(UsageError, match=r"none\.json' cannot be read"):
        load_output_type("none.json")
