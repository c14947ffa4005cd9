"""AssistantResponse: a text, the raw data that it came in, and a provider's response that its plugin decodes."""

import json
from typing import Any

import pytest
import sabir
from pydantic import BaseModel
from sabir_roles import AssistantResponse, RoledMessage

from tests.roles.checks import made_of, refuses, through_json

BODY = {
    "id": "chatcmpl-1",
    "model": "m",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "hello"}, "finish_reason": "stop"}],
}


class Chunk(BaseModel):
    """A piece of a stream."""

    delta: str


class Mute:
    """What has no text."""

    def __str__(self) -> str:
        raise OSError("closed\nfile")


@pytest.mark.parametrize(
    ("value", "raw"),
    [
        (Chunk(delta="a"), {"delta": "a"}),
        ({"choices": [], "n": 0}, {"choices": [], "n": 0}),
        ([Chunk(delta="a"), Chunk(delta="b")], [{"delta": "a"}, {"delta": "b"}]),
        ([{"a": 1}, {"b": None}], [{"a": 1}, {"b": None}]),
    ],
)
def test_data_is_kept_and_its_json_is_the_text(value: Any, raw: Any) -> None:
    """LA-39, LA-40: a model, a mapping, lists of those; no shape is guessed (LA-44)."""
    made = AssistantResponse.create(value)
    assert json.loads(made.response) == raw == made.model_response == made.metadata["model_response"]
    assert through_json(made).model_response == raw
    assert made.rendered == made.response


@pytest.mark.parametrize("value", [Mute(), {"a": object()}, [object()]])
def test_what_has_no_text_is_refused(value: Any) -> None:
    """LA-39: created or updated, in one line."""
    with refuses():
        AssistantResponse.create(value)
    made = AssistantResponse.create({"a": 1})
    with refuses(of=made):
        made.update(value, sender="x")


@pytest.mark.parametrize("value", ["", None, 0, [], {}, False])
def test_falsy_input_is_no_text(value: Any) -> None:
    """LA-41: created, and set."""
    made = AssistantResponse.create(value)
    assert (made.response, made.rendered, made.model_response, made.chat_msg) == ("", "", {}, None)
    made.response = "x"
    made.response = value
    assert (made.response, made.rendered) == ("", "")


def test_an_update_replaces_text_and_raw_data_together() -> None:
    """LA-43, D-57: wholly; a text has no raw data; other metadata stays."""
    made = AssistantResponse.create({"a": 1, "b": 2})
    made.metadata["extra"] = 1
    made.update({"a": 3})
    assert (json.loads(made.response), made.model_response) == ({"a": 3}, {"a": 3})
    made.update(sender="me", mark=0)
    assert (made.model_response, made.sender, made.content["mark"]) == ({"a": 3}, "me", 0)
    made.update("x")
    assert (made.response, made.metadata) == ("x", {"extra": 1})
    made.update({"a": 4})
    made.update("")
    assert (made.response, made.model_response) == ("", {})


@pytest.mark.parametrize("given_as", [lambda body: body, json.dumps, lambda body: json.dumps(body).encode()])
def test_a_providers_response_is_decoded_by_its_plugin(given_as: Any) -> None:
    """LA-44, D-58: an object or its body's text; the message of the vocabulary is the plugin's own."""
    made = AssistantResponse.create(given_as(BODY), dialect="openai.chat")
    assert (made.response, made.model_response, made.sender) == ("hello", BODY, "llm")
    message = made_of(made)
    assert (message.origin.dialect, message.id, made.losses) == ("openai.chat", made.id, ())
    assert through_json(made).to_message() == message
    made.update(BODY, dialect="openai.chat")
    assert made.response == "hello"


def test_a_reply_is_taken_with_its_origin() -> None:
    """LA-44, D-58: its text, its facts as raw data, and its message."""
    reply = sabir.dialect("openai.chat").decode(json.dumps(BODY))
    made = AssistantResponse.create(reply)
    assert (made.response, made.model_response["finish_reason"]) == ("hello", "stop")
    message = made_of(made)
    assert message.origin == reply.messages[0].origin
    taken = RoledMessage.from_message(reply.messages[0])
    assert isinstance(taken, AssistantResponse)
    assert (taken.response, taken.model_response) == ("hello", {})
