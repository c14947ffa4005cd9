"""Names of roles, flags and fields; senders and recipients of messages."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Literal, TypeAlias

from sabir.authoring import describe_kind

from sabir_roles.errors import RoleError


class MessageRole(StrEnum):
    """The role of a message, or of a sender or recipient without another name."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    UNSET = "unset"
    ACTION = "action"


class MessageFlag(StrEnum):
    """The origin of a message that was not created: cloned or loaded."""

    MESSAGE_CLONE = "MESSAGE_CLONE"
    MESSAGE_LOAD = "MESSAGE_LOAD"


class MessageField(StrEnum):
    """The fields that every message with a role has."""

    CREATED_AT = "created_at"
    ROLE = "role"
    CONTENT = "content"
    ID = "id"
    SENDER = "sender"
    RECIPIENT = "recipient"
    METADATA = "metadata"


MESSAGE_FIELDS: Sequence[str] = [field.value for field in MessageField]
"""The names of those fields."""

SenderRecipient: TypeAlias = MessageRole | str
"""A role, or the name or id of a policy, an actor or another sender."""


def validate_sender_recipient(value: object) -> SenderRecipient:
    """A role for its enum or its word, another name or id as it is, the id of an object that has one; UNSET for None.

    Raises RoleError, a ValueError, for an empty string and for anything else.
    """
    if value is None:
        return MessageRole.UNSET
    if isinstance(value, MessageRole):
        return value
    name = value if isinstance(value, str) else getattr(value, "id", None)
    if isinstance(name, str) and name:
        return MessageRole(name) if name in _ROLES else name
    given = "an empty string" if name == "" else describe_kind(value)
    raise RoleError(f"{given} is no sender or recipient; give a MessageRole, a name, an id, or an object with an id")


class Unset:
    """The type of UNSET."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "UNSET"

    def __bool__(self) -> Literal[False]:
        """Nothing was given."""
        return False


UNSET = Unset()
"""The default of arguments for which None, 0 or "" are values."""


_ROLES = frozenset(role.value for role in MessageRole)


def word_of(value: SenderRecipient | None) -> str:
    """A sender or recipient as text; UNSET for None."""
    value = value or MessageRole.UNSET
    return value.value if isinstance(value, MessageRole) else value
