"""What the kinds of messages do alike, and what System and AssistantResponse do alone; roles, flags, senders."""

import json
import warnings
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from enum import Enum
from functools import partial
from types import SimpleNamespace
from typing import Any, NamedTuple
from uuid import UUID

import pytest
import sabir
from pydantic import BaseModel
from sabir_roles import (
    MESSAGE_FIELDS,
    ActionRequest,
    ActionResponse,
    AssistantResponse,
    Instruction,
    MessageField,
    MessageFlag,
    MessageRole,
    RoledMessage,
    RoleError,
    System,
    validate_sender_recipient,
)

from tests.roles.support import made_of, refuses, through_json


class Row(NamedTuple):
    make: Callable[..., RoledMessage]
    people: tuple[str, str, str]
    """Role, sender, recipient."""
    template: str
    shown: Any
    """A text, or what its JSON is."""


TEXT = "{{ x }}\n"
CALL = {"function": "look", "arguments": {"a": "{{ x }}"}}


def response(**how: Any) -> ActionResponse:
    return ActionResponse.create(ActionRequest.create("look", CALL["arguments"]), ["{{ x }}"], **how)  # type: ignore[arg-type]


KINDS = {
    "system": Row(partial(System.create, TEXT), ("system", "system", "assistant"), "system_message", TEXT),
    "instruction": Row(partial(Instruction.create, TEXT), ("user", "user", "assistant"), "instruction_message", TEXT),
    "answer": Row(
        partial(AssistantResponse.create, TEXT), ("assistant", "assistant", "user"), "assistant_response", TEXT
    ),
    "request": Row(
        partial(ActionRequest.create, "look", CALL["arguments"]),
        ("action", "assistant", "action"),
        "action_request",
        CALL,
    ),
    "response": Row(response, ("action", "action", "assistant"), "action_response", {**CALL, "output": ["{{ x }}"]}),
}
each_kind = pytest.mark.parametrize("row", KINDS.values(), ids=KINDS)


@each_kind
def test_a_kind_has_its_own_people_unless_others_are_given(row: Row) -> None:  # LA-19, LA-26, LA-42, LA-45, LA-21
    made = row.make()
    assert (made.role, made.sender, made.recipient) == row.people
    assert made.chat_msg == {"role": row.people[0], "content": made.text}
    other = row.make(sender="me", recipient="you", template="{{ role }} {{ sender }}!")
    assert (other.sender, other.recipient, other.rendered) == ("me", "you", f"{row.people[0]} me!")


@each_kind
def test_the_default_template_shows_content_as_it_is(row: Row) -> None:  # LA-56
    made = row.make()
    assert made.template == f"{row.template}.jinja2"
    assert (made.text if isinstance(row.shown, str) else json.loads(made.text)) == row.shown


@pytest.mark.parametrize("kind", ["system", "answer", "request"])
def test_further_values_are_content(kind: str) -> None:  # LA-23
    made = KINDS[kind].make(tone="calm", level=0, template="{{ tone }} {{ level }}")
    assert (made.content["tone"], made.rendered) == ("calm", "calm 0")
    made.update(tone="", mark=1)
    assert (made.content["tone"], made.content["mark"], made.rendered) == ("", 1, " 0")


@each_kind
@pytest.mark.parametrize("bad", [{"sender": ""}, {"recipient": 5}, {"template": "{{"}, {"tone": object()}])
def test_what_is_refused_changes_nothing(row: Row, bad: dict[str, Any]) -> None:  # LA-06, LA-24, LA-43
    right: dict[str, Any] = {"sender": "x", "recipient": "y", "template": "z"}
    takes_more = row.template not in ("instruction_message", "action_response")
    if takes_more or "tone" not in bad:
        with refuses():
            row.make(**bad)
    made = row.make()
    with refuses(of=made):
        made.update(**{**right, **({"tone": "calm"} if takes_more else {}), **bad})


DEFAULT = "You are a helpful AI assistant. Let's think step by step."


def test_what_a_system_message_is_where_nothing_is_given() -> None:  # LA-19
    for system in (System.create(), System.create(None, system=None)):
        assert (system.system_message, system.rendered) == (DEFAULT, DEFAULT)
        assert system.content == {"system_message": DEFAULT}
    made = System.create().to_message()
    assert made is not None
    assert (made.policy, made.text) == ("system", DEFAULT)


def test_the_time_of_now_is_read_once() -> None:  # LA-20
    system = System.create("x", system_datetime=True)
    told = system.system_datetime
    assert told is not None
    assert timedelta(0) <= datetime.now(UTC) - datetime.fromisoformat(told) < timedelta(minutes=2)
    assert system.rendered == f"x\n\n## Time\n{told}" == through_json(system).rendered


def test_the_old_name_of_the_text_works_alone_and_warns() -> None:  # LA-22
    with pytest.warns(DeprecationWarning, match="system_message=") as caught:
        assert System.create(system="x").rendered == "x"
    assert caught[0].filename == __file__
    system = System.create("x")
    with pytest.warns(DeprecationWarning, match="system_message="):
        system.update(system="")
    assert (system.system_message, "system" in system.content) == ("", False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert System.create(system_message="x", system=None).rendered == "x"
    for texts in (("x", "y"), ("x", "x"), ("", "")):
        with refuses("system", "system_message"):
            System.create(texts[0], system=texts[1])


def test_an_update_changes_what_is_given() -> None:  # LA-24
    system = System.create("x")
    system.update(system_datetime="now")
    assert (system.system_message, system.system_datetime) == ("x", "now")
    system.update("y", tone="calm")
    assert (system.content, system.sender) == (
        {"system_message": "y", "system_datetime": "now", "tone": "calm"},
        "system",
    )
    system.update(None, "me", "you", None, "{{ system_message }}!")
    assert (system.sender, system.recipient, system.rendered, system.system_datetime) == ("me", "you", "y!", "now")
    system.update(system_datetime=False)
    assert system.system_datetime is None
    system.update(system_datetime=True)
    assert system.system_datetime is not None
    system.update("")
    assert system.system_message == ""


BODY = {
    "id": "chatcmpl-1",
    "model": "m",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "hello"}, "finish_reason": "stop"}],
}


class Chunk(BaseModel):
    delta: str


class Mute:
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
def test_data_is_kept_and_its_json_is_the_text(value: Any, raw: Any) -> None:  # LA-39, LA-40, LA-44
    made = AssistantResponse.create(value)
    assert json.loads(made.response) == raw == made.model_response == made.metadata["model_response"]
    assert through_json(made).model_response == raw
    assert made.rendered == made.response


@pytest.mark.parametrize("value", [Mute(), {"a": object()}, [object()]])
def test_what_has_no_text_is_refused(value: Any) -> None:  # LA-39
    with refuses():
        AssistantResponse.create(value)
    made = AssistantResponse.create({"a": 1})
    with refuses(of=made):
        made.update(value, sender="x")


@pytest.mark.parametrize("value", ["", None, 0, [], {}, False])
def test_falsy_input_is_no_text(value: Any) -> None:  # LA-41
    made = AssistantResponse.create(value)
    assert (made.response, made.rendered, made.model_response, made.chat_msg) == ("", "", {}, None)
    made.response = "x"
    made.response = value
    assert (made.response, made.rendered) == ("", "")


def test_an_update_replaces_text_and_raw_data_together() -> None:  # LA-43, D-57
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
def test_a_providers_response_is_decoded_by_its_plugin(given_as: Any) -> None:  # LA-44, D-58
    made = AssistantResponse.create(given_as(BODY), dialect="openai.chat")
    assert (made.response, made.model_response, made.sender) == ("hello", BODY, "llm")
    message = made_of(made)
    assert (message.origin.dialect, message.id, made.losses) == ("openai.chat", made.id, ())
    assert through_json(made).to_message() == message
    made.update(BODY, dialect="openai.chat")
    assert made.response == "hello"


@pytest.mark.parametrize("adapter", ["openai.chat:gpt-5", sabir.adapter("openai.chat:gpt-5")])
def test_an_adapter_decodes_a_providers_response(adapter: Any) -> None:  # D-31, D-58, LA-44
    made = AssistantResponse.create(BODY, adapter=adapter)
    assert (made.response, made.model_response) == ("hello", BODY)
    assert made_of(made).origin.dialect == "openai.chat"
    other = AssistantResponse.create("first")
    other.update(BODY, adapter=adapter)
    assert other.response == "hello"
    with pytest.raises(RoleError, match="both adapter= and dialect= name a dialect"):
        AssistantResponse.create(BODY, adapter=adapter, dialect="openai.chat")


def test_a_reply_is_taken_with_its_origin() -> None:  # LA-44, D-58
    reply = sabir.dialect("openai.chat").decode(json.dumps(BODY))
    made = AssistantResponse.create(reply)
    assert (made.response, made.model_response["finish_reason"]) == ("hello", "stop")
    message = made_of(made)
    assert message.origin == reply.messages[0].origin
    taken = RoledMessage.from_message(reply.messages[0])
    assert isinstance(taken, AssistantResponse)
    assert (taken.response, taken.model_response) == ("hello", {})


ENUMS: list[tuple[type[Enum], list[str]]] = [
    (MessageRole, ["system", "user", "assistant", "unset", "action"]),
    (MessageFlag, ["MESSAGE_CLONE", "MESSAGE_LOAD"]),
    (MessageField, ["created_at", "role", "content", "id", "sender", "recipient", "metadata"]),
]


@pytest.mark.parametrize(("kind", "words"), ENUMS)
def test_a_word_is_its_name(kind: type[Enum], words: list[str]) -> None:  # LA-01, LA-02, LA-03, LA-04
    assert {each.name: each.value for each in kind} == {word.upper(): word for word in words}
    assert issubclass(kind, str)
    assert ENUMS[-1][1] == MESSAGE_FIELDS


@pytest.mark.parametrize(
    ("given", "somebody"),
    [
        *[(role.value, role) for role in MessageRole],
        ("planner", "planner"),
        ("User", "User"),
        (SimpleNamespace(id="user"), MessageRole.USER),
        (None, MessageRole.UNSET),
    ],
)
def test_somebody_is_a_role_a_name_or_an_object_with_an_id(given: object, somebody: str) -> None:  # LA-05
    assert (found := validate_sender_recipient(given)) == somebody
    assert type(found) is type(somebody)
    message = Instruction.create("x")
    assert validate_sender_recipient(message) == message.id


@pytest.mark.parametrize(
    "value", [123, 0, False, "", b"user", 1.5, [], {}, ["user"], object(), SimpleNamespace(id=""), UUID(int=1)]
)
def test_anything_else_is_nobody(value: object) -> None:  # LA-06
    with refuses("not a sender or recipient", "MessageRole"):
        validate_sender_recipient(value)
