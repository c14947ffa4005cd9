"""Roles, flags and fields, and who may send or receive a message."""

from enum import Enum
from types import SimpleNamespace
from uuid import UUID

import pytest
from sabir_roles import MESSAGE_FIELDS, Instruction, MessageField, MessageFlag, MessageRole, validate_sender_recipient

from tests.roles.checks import refuses

ENUMS: list[tuple[type[Enum], list[str]]] = [
    (MessageRole, ["system", "user", "assistant", "unset", "action"]),
    (MessageFlag, ["MESSAGE_CLONE", "MESSAGE_LOAD"]),
    (MessageField, ["created_at", "role", "content", "id", "sender", "recipient", "metadata"]),
]


@pytest.mark.parametrize(("kind", "words"), ENUMS)
def test_a_word_is_its_name(kind: type[Enum], words: list[str]) -> None:
    """LA-01, LA-02, LA-03, LA-04: each is a string, and equal to its word."""
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
def test_somebody_is_a_role_a_name_or_an_object_with_an_id(given: object, somebody: str) -> None:
    """LA-05: a role by its word, a policy or an actor by a name of its own, a message by its id."""
    assert (found := validate_sender_recipient(given)) == somebody
    assert type(found) is type(somebody)
    message = Instruction.create("x")
    assert validate_sender_recipient(message) == message.id


@pytest.mark.parametrize(
    "value", [123, 0, False, "", b"user", 1.5, [], {}, ["user"], object(), SimpleNamespace(id=""), UUID(int=1)]
)
def test_anything_else_is_nobody(value: object) -> None:
    """LA-06: the error tells what was given, and what to give."""
    with refuses("no sender or recipient", "MessageRole"):
        validate_sender_recipient(value)
