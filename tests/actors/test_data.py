"""What the data of each type holds: fields, bounds, what is refused and by which name, by the published schema too."""

import json
from typing import Any

import jsonschema
import pytest
from pydantic import ValidationError
from sabir_actors import ActorError, serialize_message, validate_message
from sabir_actors import data as typed
from sabir_actors.protocol import AnyMessage

from tests.actors.examples import ERROR, MESSAGES, PAIRS
from tests.actors.places import MISSING, MISTAKEN, WRONG, changed, held, model_of, shown
from tests.actors.write_schema import PUBLISHED, rendered, schema


def check_refused(message: AnyMessage, words: str) -> None:
    """A message that neither `validate_message` takes, which says why in these words, nor the schema."""
    with pytest.raises(ActorError) as caught:
        validate_message(message)
    assert str(caught.value).startswith(f"{message.type} message {words}")
    assert not VALIDATOR.is_valid(json.loads(serialize_message(message)))


@pytest.mark.parametrize(("message", "path"), MISSING, ids=shown)
def test_a_field_that_is_missing_is_named(message: AnyMessage, path: tuple[str | int, ...]) -> None:  # CH-10, CH-12
    check_refused(changed(message, path), f"must contain {'.'.join(map(str, path))!r} field")


@pytest.mark.parametrize(("message", "path"), MISTAKEN, ids=shown)
def test_a_field_of_a_wrong_type_is_named(message: AnyMessage, path: tuple[str | int, ...]) -> None:  # CH-12
    wrong = changed(message, path, WRONG[type(held(message, path))])
    check_refused(wrong, f"has invalid data: {'.'.join(map(str, path))}")


@pytest.mark.parametrize("message", [each for pair in PAIRS for each in pair], ids=shown)
def test_every_field_of_the_document_is_one_of_the_model(message: AnyMessage) -> None:  # CH-08, D-23
    assert set(message.data) - set(model_of(message).model_fields) == set()


@pytest.mark.parametrize(
    ("model", "said", "field"),
    [
        (typed.PhaseOutput, {"response": "Hi", "confidence": 1.01}, "confidence"),
        (typed.AgentResult, {"response": "Hi", "confidence": -0.01}, "confidence"),
        (typed.AgentConfig, {"model": "m", "max_tokens": 0}, "max_tokens"),
        (typed.AgentConfig, {"model": ""}, "model"),
        (typed.AgentResponse, {"result": {"response": ""}, "processing_time": -1}, "processing_time"),
        (typed.HeartbeatResponse, {"uptime": float("inf"), "load": 0}, "uptime"),
        (typed.HeartbeatResponse, {"uptime": 1, "load": -0.1}, "load"),
        (typed.Retry, {"original_message_id": "m", "attempt": 0, "max_attempts": 3}, "attempt"),
        (typed.Turn, {"role": "tool", "content": "Hi"}, "role"),
        (typed.ThreadCreated, {"thread_id": "t", "status": "lost"}, "status"),
        (typed.OfThread, {"thread_id": "x" * 201}, "thread_id"),
        (typed.ThreadStarted, {"thread_id": "t", "status": "created", "started_at": "2026-01-01"}, "started_at"),
    ],
)
def test_a_value_outside_of_its_bounds_is_refused(model: type[typed.Data], said: dict[str, Any], field: str) -> None:
    # CH-12
    with pytest.raises(ValidationError, match=field):
        model.model_validate(said)


VALIDATOR = jsonschema.Draft202012Validator(schema())


def test_the_published_schema_is_current() -> None:
    """Where this fails, `python -m tests.actors.write_schema` writes it anew."""
    assert PUBLISHED.read_text("utf-8") == rendered()
    jsonschema.Draft202012Validator.check_schema(schema())


@pytest.mark.parametrize("message", MESSAGES, ids=shown)
def test_every_message_that_is_written_fits(message: AnyMessage) -> None:  # CH-08
    VALIDATOR.validate(json.loads(serialize_message(message)))
    VALIDATOR.validate(json.loads(serialize_message(ERROR.model_copy(update={"data": {**ERROR.data, "more": [1]}}))))
