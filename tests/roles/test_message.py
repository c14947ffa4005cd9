"""What every message with a role does: fields, what is made of it, copies, logs, and its form at rest."""

import copy
import json
import pickle
from typing import Any

import pytest
from jinja2 import Template
from pydantic import BaseModel
from sabir_roles import (
    ActionRequest,
    ActionResponse,
    AssistantResponse,
    Instruction,
    MessageFlag,
    MessageRole,
    RoledMessage,
    System,
)

from tests.roles.support import made_of, refuses, through_json

IMAGE = "https://example.com/cat.png"


class Answer(BaseModel):
    name: str


class Note(RoledMessage):
    """A kind of a program's own, with a field more."""

    priority: int = 0


def of_every_kind() -> list[RoledMessage]:
    request = ActionRequest.create("f", {"a": 0})
    return [
        RoledMessage(content={"zero": 0, "no": False, "empty": "", "none": None, "list": []}, role=MessageRole.USER),
        System.create("", system_datetime=True),
        Instruction.create("x", guidance="", context=[0, None], images=[IMAGE], response_format=Answer),
        AssistantResponse.create({"choices": []}),
        request,
        ActionResponse.create(request, 0),
        Note(content={"text": "x"}, role=MessageRole.USER, priority=3),
    ]


every_kind = pytest.mark.parametrize("message", of_every_kind(), ids=lambda message: type(message).__name__)


def test_a_field_that_there_is_not_is_refused() -> None:  # LA-07, LA-08
    with refuses("colour"):
        RoledMessage(colour="x")
    message = RoledMessage()
    for name, value in (("colour", "x"), ("id", "x"), ("role", "king"), ("sender", 5), ("metadata", 5)):
        with refuses(name, of=message):
            setattr(message, name, value)


@pytest.mark.parametrize(
    "message",
    [
        RoledMessage(content={"a": "x"}),
        RoledMessage(content={"a": "x"}, role=MessageRole.UNSET),
        RoledMessage(role=MessageRole.USER),
        RoledMessage(content={"a": ""}, role=MessageRole.USER),
        System.create(""),
    ],
)
def test_what_is_unset_or_says_nothing_has_no_chat_message(message: RoledMessage) -> None:  # LA-10
    assert message.chat_msg is None
    assert message.to_message() is None
    assert [loss.kind for loss in message.losses] == ["dropped"]


def test_what_is_rendered_is_of_the_template_or_readable_text() -> None:  # LA-11
    assert RoledMessage(content={"a": 1}, template="a is {{ a }}").rendered == "a is 1"
    assert RoledMessage(content={"a": "x"}).rendered == "x"
    assert RoledMessage().rendered == ""
    assert json.loads(str(RoledMessage(content={"a": 0, "b": None}).rendered)) == {"a": 0, "b": None}


def test_the_base_creates_nothing() -> None:  # LA-12
    for given_values in ({}, {"content": {}}):
        with pytest.raises(NotImplementedError, match="call create of System"):
            RoledMessage.create(**given_values)


@every_kind
def test_what_was_stored_comes_back_of_its_own_kind(message: RoledMessage) -> None:  # LA-13
    loaded = through_json(message)
    assert type(loaded) is type(message)
    assert loaded == message
    assert loaded.flag is MessageFlag.MESSAGE_LOAD
    assert loaded.content == message.content
    assert loaded.rendered == message.rendered
    assert through_json(loaded).to_dict() == message.to_dict() == type(message).from_dict(message.to_dict()).to_dict()
    assert message.flag is None


GOOD = System.create("x").to_dict()


@pytest.mark.parametrize(
    ("stored", "word"),
    [
        ("text", "str"),
        (None, "NoneType"),
        ([GOOD], "list"),
        ({**GOOD, "kind": "Nobody"}, "Nobody"),
        ({**GOOD, "kind": 5}, "5"),
        ({**GOOD, "role": "king"}, "role"),
        ({**GOOD, "content": "x"}, "content"),
        ({**GOOD, "content": {"a": object()}}, "JSON"),
        ({**GOOD, "sender": 5}, "sender"),
        ({**GOOD, "created_at": "yesterday"}, "created_at"),
        ({**GOOD, "template": "{{"}, "template"),
        ({**GOOD, "id": ""}, "id"),
        ({**GOOD, "colour": "red"}, "colour"),
        ({**GOOD, "source": {"id": "x"}}, "stored message"),
        ({**GOOD, "made": "x"}, "stored message"),
    ],
)
def test_what_describes_no_message_is_refused(stored: Any, word: str) -> None:  # LA-13
    with refuses(word):
        RoledMessage.from_dict(stored)


@every_kind
def test_a_clone_is_equal_but_for_its_id_and_shares_nothing(message: RoledMessage) -> None:  # LA-14
    twin = message.clone()
    assert type(twin) is type(message)
    assert twin.id != message.id and twin != message
    assert (twin.content, twin.role, twin.template) == (message.content, message.role, message.template)
    assert (twin.sender, twin.recipient, twin.created_at) == (message.sender, message.recipient, message.created_at)
    assert (twin.is_clone(), message.is_clone(), twin.flag) == (True, False, MessageFlag.MESSAGE_CLONE)
    assert twin.metadata["clone_from"] == message
    assert "clone_from" not in message.metadata
    before = message.to_dict()
    twin.content["added"] = [1]
    twin.metadata["x"] = 1
    twin.metadata.setdefault("model_response", {})["x"] = 1
    assert message.to_dict() == before
    stored = through_json(twin)
    assert stored.is_clone()
    assert stored.metadata["clone_from"] == message.id


def test_a_clone_may_lose_its_role_and_keeps_what_is_live() -> None:  # LA-14
    template = Template("{{ instruction }}")
    twin = Instruction.create("x", response_format=Answer, template=template).clone(keep_role=False)
    assert twin.role is MessageRole.UNSET
    assert (twin.template, twin.response_format) == (template, Answer)
    assert twin.chat_msg is None
    assert twin.clone().metadata["clone_from"] is twin


@every_kind
def test_a_log_is_an_immutable_copy(message: RoledMessage) -> None:  # LA-15
    log = message.to_log()
    before = message.to_dict()
    assert log.content == before
    assert (log.id, log.created_at) == (message.id, message.created_at)
    for change in (
        lambda: setattr(log, "id", "x"),
        lambda: log.content.update(role="x"),
        lambda: log.content["content"].clear(),
    ):
        with pytest.raises((TypeError, ValueError)):
            change()
    edited = copy.deepcopy(message)
    log = edited.to_log()
    edited.content["a"] = 9
    assert log.content == before


def test_an_update_changes_what_is_given_and_merges_the_rest() -> None:  # LA-16
    message = RoledMessage(content={"a": 1, "b": {"c": 1}}, role=MessageRole.USER, sender="me", template="{{ a }}")
    message.update(recipient="you", a=0, b={}, d=None)
    assert message.content == {"a": 0, "b": {}, "d": None}
    assert (message.sender, message.recipient, message.template, message.rendered) == ("me", "you", "{{ a }}", "0")
    message.update("user", None, "{{ d }}!")
    assert (message.sender, message.recipient, message.rendered) == (MessageRole.USER, "you", "None!")


@every_kind
def test_serialising_changes_nothing(message: RoledMessage) -> None:  # LA-17, LA-38
    vars_before = dict(message.__dict__)
    first = message.to_dict()
    message.model_dump_json()
    message.to_log()
    second = message.to_dict()
    assert first == second
    first["content"].clear()
    first["metadata"]["x"] = 1
    assert message.to_dict() == second
    assert message.__dict__ == vars_before


def test_what_a_compiled_template_made_is_stored_until_an_edit() -> None:
    """LA-18: not the template is at rest, but what it made: the same message comes back, and an edit makes it anew."""
    compiled = System.create("x", template=Template("> {{ system_message }}"))
    loaded = through_json(compiled)
    assert compiled.to_dict()["template"] is None
    assert (loaded.to_message(), loaded.rendered) == (compiled.to_message(), "> x")
    assert through_json(loaded).to_message() == compiled.to_message()

    loaded.update(system_message="y")
    made = made_of(loaded)
    assert (made.text, made.id == compiled.id) == ("y", False)


def test_the_string_of_a_message_tells_what_it_is_in_one_line() -> None:  # D-52
    shown = str(Instruction.create("line\n" * 100, sender="me"))
    assert shown.startswith("Instruction (me → assistant): line line")
    assert "\n" not in shown
    assert len(shown) <= 100
    assert repr(System.create("x")) == "System (system → assistant): x"


@every_kind
def test_copies_are_equal_hash_alike_and_hold_content_of_their_own(message: RoledMessage) -> None:
    for twin in (copy.copy(message), copy.deepcopy(message), pickle.loads(pickle.dumps(message))):
        assert twin == message and {twin} == {message}
        before = message.to_dict()
        twin.template, shown = None, twin.rendered
        twin.content["added"] = [1]
        assert twin.rendered != shown and twin != message
        assert message.to_dict() == before
        assert hash(twin) == hash(message)


@pytest.mark.parametrize("asks_before_storing", [True, False])
def test_an_id_is_of_one_content_also_after_storing(asks_before_storing: bool) -> None:
    """What was made before an edit keeps its id for itself, whether the edit is made anew before or after storing."""
    message = Instruction.create("x")
    first = message.to_message()
    message.update(instruction="y")
    if asks_before_storing:
        message.to_message()
    second = through_json(message).to_message()
    assert (first.text, second.text) == ("x", "y")
    assert first.id != second.id


def test_two_modules_have_no_kind_of_one_name() -> None:
    """What is stored names its kind: it would come back as the other; a cell that is run again is the same kind."""
    with refuses("sabir_roles.system already has a kind 'System'"):
        type("System", (RoledMessage,), {"__module__": __name__, "__annotations__": {}})
    assert RoledMessage.kinds["System"] is System

    again = type("Note", (RoledMessage,), {"__module__": __name__, "__annotations__": {}})
    assert RoledMessage.kinds["Note"] is again
    RoledMessage.kinds["Note"] = Note


def test_a_kind_is_stored_under_the_name_that_its_class_assigns() -> None:
    """A kind that was renamed reads what was stored under its class's earlier name."""
    names = {"stored_as": "app.greeting", "stored_before": ("Welcome",), "__annotations__": {}}
    greeting = type("Greeting", (Note,), {"__module__": __name__, **names})
    try:
        stored = greeting(content={"text": "Hi."}).to_dict()
        assert stored["kind"] == "app.greeting"
        for name in ("app.greeting", "Welcome"):
            assert type(RoledMessage.from_dict({**stored, "kind": name})) is greeting
        with refuses("the kind 'Greeting' is not a kind of"):
            RoledMessage.from_dict({**stored, "kind": "Greeting"})
    finally:
        del RoledMessage.kinds["app.greeting"], RoledMessage.kinds["Welcome"]


def test_a_message_whose_template_fails_is_stored_all_the_same() -> None:
    broken = System.create("x", template=Template("{{ 1 / 0 }}"))
    assert through_json(broken).content == broken.content
