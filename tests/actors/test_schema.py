"""The published schema of the protocol: it takes what the models take, and refuses what they refuse."""

import json

import jsonschema
import pytest
from sabir_actors import serialize_message
from sabir_actors.protocol import AnyMessage

from tests.actors.examples import ERROR, MESSAGES
from tests.actors.places import shown
from tests.actors.write_schema import PUBLISHED, rendered, schema

VALIDATOR = jsonschema.Draft202012Validator(schema())


def test_the_published_schema_is_current() -> None:
    """Where this fails, `python -m tests.actors.write_schema` writes it anew."""
    assert PUBLISHED.read_text("utf-8") == rendered()


def test_it_is_a_schema() -> None:
    """Draft 2020-12."""
    jsonschema.Draft202012Validator.check_schema(schema())


@pytest.mark.parametrize("message", MESSAGES, ids=shown)
def test_every_message_that_is_written_fits(message: AnyMessage) -> None:
    """CH-08: all types of the document, and one that nobody knows."""
    VALIDATOR.validate(json.loads(serialize_message(message)))
    VALIDATOR.validate(json.loads(serialize_message(ERROR.model_copy(update={"data": {**ERROR.data, "more": [1]}}))))
