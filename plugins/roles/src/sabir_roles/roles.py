"""The roles, flags and fields of messages, and their senders and recipients."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Literal, TypeAlias

from sabir.authoring import describe_kind

from sabir_roles.errors import RoleError


class MessageRole(StrEnum):
    """The role of a message, or of a sender or recipient that has no name of its own."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    UNSET = "unset"
    ACTION = "action"


class MessageFlag(StrEnum):
    """How a message was created, if not by `create` or `from_message`: MESSAGE_CLONE by `clone`, MESSAGE_LOAD by
    `from_dict`.
    """

    MESSAGE_CLONE = "MESSAGE_CLONE"
    MESSAGE_LOAD = "MESSAGE_LOAD"


class MessageField(StrEnum):
    """The names of the fields that every message of this package has."""

    CREATED_AT = "created_at"
    ROLE = "role"
    CONTENT = "content"
    ID = "id"
    SENDER = "sender"
    RECIPIENT = "recipient"
    METADATA = "metadata"


MESSAGE_FIELDS: Sequence[str] = [field.value for field in MessageField]
"""The names of the fields that every message of this package has, as a list of strings."""

SenderRecipient: TypeAlias = MessageRole | str
"""A sender or recipient: a role, or the name or id of a policy, an actor or another sender."""


def validate_sender_recipient(value: object) -> SenderRecipient:
    """Return the sender or recipient for a value.

    For a role or its name, return the MessageRole; for another string, the string; for None, MessageRole.UNSET. For an
    object whose attribute `id` is a string, do the same with the id. Raises RoleError for an empty string and for any
    other value.
    """
    if value is None:
        return MessageRole.UNSET
    if isinstance(value, MessageRole):
        return value
    name = value if isinstance(value, str) else getattr(value, "id", None)
    if isinstance(name, str) and name:
        return MessageRole(name) if name in _ROLES else name
    kind = "an empty string" if name == "" else describe_kind(value)
    raise RoleError(f"{kind} is not a sender or recipient; pass a MessageRole, a name, an id, or an object with an id")


class Unset:
    """The type of UNSET."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "UNSET"

    def __bool__(self) -> Literal[False]:
        """Return False, always."""
        return False


UNSET = Unset()
"""The default of arguments for which None is a valid value. It means that the argument was not passed."""


_ROLES = frozenset(role.value for role in MessageRole)


def person_text(value: SenderRecipient | None) -> str:
    """Return a sender or recipient as text; "unset" for None."""
    value = value or MessageRole.UNSET
    return value.value if isinstance(value, MessageRole) else value
