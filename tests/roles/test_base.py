"""Roles, flags and fields, and who may send or receive a message."""

from enum import Enum
from types import SimpleNamespace
from uuid import UUID

import pytest
import sabir_roles.base as module
from sabir_roles import MESSAGE_FIELDS, Instruction, MessageField, MessageFlag, MessageRole, validate_sender_recipient

from tests.roles.checks import refuses


def values(of: type[Enum]) -> dict[str, str]:
    assert issubclass(of, str)
    return {each.name: each.value for each in of}


def test_roles_are_their_names_in_lower_case() -> None:
    """LA-01: each is a string, and equal to its word."""
    names = ["SYSTEM", "USER", "ASSISTANT", "UNSET", "ACTION"]
    assert values(MessageRole) == {name: name.lower() for name in names}
    assert MessageRole.USER == "user" == f"{MessageRole.USER}"


def test_flags_are_their_names() -> None:
    """LA-02: a clone and a loaded message."""
    assert values(MessageFlag) == {name: name for name in ("MESSAGE_CLONE", "MESSAGE_LOAD")}


def test_fields_are_those_that_every_message_has() -> None:
    """LA-03: each name is one of a message's fields."""
    names = ["CREATED_AT", "ROLE", "CONTENT", "ID", "SENDER", "RECIPIENT", "METADATA"]
    assert values(MessageField) == {name: name.lower() for name in names}
    assert all(hasattr(Instruction.create("x"), field) for field in MessageField)


def test_message_fields_lists_the_names_of_the_fields() -> None:
    """LA-04: plain strings, in the order of the enum."""
    assert MESSAGE_FIELDS == ["created_at", "role", "content", "id", "sender", "recipient", "metadata"]
    assert {type(name) for name in MESSAGE_FIELDS} == {str}


@pytest.mark.parametrize("role", MessageRole)
def test_a_role_is_taken_by_its_enum_or_its_word(role: MessageRole) -> None:
    """LA-05: both give the enum."""
    assert validate_sender_recipient(role) is role
    assert validate_sender_recipient(role.value) is role


@pytest.mark.parametrize("name", ["planner", "User", "a b", "0", "📎", "4f1c"])
def test_another_name_or_id_is_kept(name: str) -> None:
    """LA-05: policies and actors have names of their own."""
    assert validate_sender_recipient(name) == name


def test_an_object_is_its_id_and_none_is_unset() -> None:
    """LA-05: a message is somebody by its id."""
    message = Instruction.create("x")
    assert validate_sender_recipient(message) == message.id
    assert validate_sender_recipient(SimpleNamespace(id="user")) is MessageRole.USER
    assert validate_sender_recipient(None) is MessageRole.UNSET


@pytest.mark.parametrize(
    "value", [123, 0, False, "", b"user", 1.5, [], {}, ["user"], object(), SimpleNamespace(id=""), UUID(int=1)]
)
def test_anything_else_is_nobody(value: object) -> None:
    """LA-06: the error tells what was given, and what to give."""
    with refuses("no sender or recipient", "MessageRole"):
        validate_sender_recipient(value)


def test_the_module_has_what_the_document_names() -> None:
    """The document imports from the modules that it names."""
    assert {"MessageRole", "MessageFlag", "MessageField", "MESSAGE_FIELDS", "SenderRecipient"} <= set(vars(module))
