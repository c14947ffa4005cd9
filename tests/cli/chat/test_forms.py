"""The form of an answer: a schema's file or a type of Python; what is neither is refused in one line."""

import json
from pathlib import Path

import pytest
from pydantic import TypeAdapter, ValidationError
from sabir_cli.chat.forms import load_form
from sabir_cli.output import UsageError


def test_a_schema_of_a_file_is_sent_and_checks(tmp_path: Path) -> None:
    """What it says beyond types too."""
    schema = {"type": "object", "properties": {"days": {"type": "integer", "maximum": 9}}, "required": ["days"]}
    (tmp_path / "trip.json").write_text(json.dumps(schema))
    found = load_form(str(tmp_path / "trip.json"))
    form = TypeAdapter(found)

    assert found.__name__ == "trip"
    assert form.json_schema() == schema
    assert form.validate_json('{"days": 3}') == {"days": 3}
    with pytest.raises(ValidationError, match=r"\$\.days: 30 is greater than the maximum of 9"):
        form.validate_json('{"days": 30}')


def test_a_type_is_found_by_its_name() -> None:
    """As an option is."""
    assert load_form("fractions:Fraction").__name__ == "Fraction"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("{", "is no JSON"),
        ("[]", "holds no JSON object"),
        ('{"type": "text"}', "is no JSON schema: 'text' is not valid"),
    ],
)
def test_a_file_that_is_no_schema_is_refused(text: str, complaint: str, tmp_path: Path) -> None:
    """With its name."""
    (tmp_path / "trip.json").write_text(text)
    with pytest.raises(UsageError, match=rf"trip.json' {complaint}"):
        load_form(str(tmp_path / "trip.json"))
    with pytest.raises(UsageError, match=r"none\.json' cannot be read"):
        load_form("none.json")
