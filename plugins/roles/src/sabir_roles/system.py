"""System: the first message of a conversation, with instructions for the assistant."""

import warnings
from datetime import UTC, datetime
from typing import Any, ClassVar

from jinja2 import Template
from sabir import Message

from sabir_roles.errors import RoleError
from sabir_roles.message import RoledMessage
from sabir_roles.roles import MessageRole, SenderRecipient

DEFAULT_TEXT = "You are a helpful AI assistant. Let's think step by step."
"""The instructions of a System that is created without `system_message`."""


class System(RoledMessage):
    """A system message: instructions for the model, optionally with a time.

    >>> import sabir_roles
    >>> sabir_roles.System.create("Be brief.").to_message().text
    'Be brief.'
    """

    keys: ClassVar = ("system_message", "system_datetime")
    payload_kind: ClassVar = "parts"
    side: ClassVar = "system"
    stored_as: ClassVar = "System"
    own_template: ClassVar = "system_message.jinja2"
    own_people: ClassVar = (MessageRole.SYSTEM, MessageRole.SYSTEM, MessageRole.ASSISTANT)

    @property
    def system_message(self) -> Any:  # any JSON value
        """The instructions for the model, any JSON value; None if the content has none."""
        return self.content.get("system_message")

    @property
    def system_datetime(self) -> str | None:
        """The time that the default template adds to the text, or None."""
        return self.content.get("system_datetime")

    @classmethod
    def _read_content(cls, message: Message) -> dict[str, Any]:
        return {"system_message": message.text}

    @classmethod
    def create(
        cls,
        system_message: Any = None,  # any JSON value
        system_datetime: bool | str | None = None,
        sender: SenderRecipient | None = None,
        recipient: SenderRecipient | None = None,
        template: Template | str | None = None,
        system: Any = None,
        **content: Any,
    ) -> "System":
        """Return a system message.

        `system_message` is the instructions, any JSON value; by default "You are a helpful AI assistant. Let's think
        step by step." `system_datetime` adds a time: True for the current time in UTC, or a text. `sender`, `recipient`
        and `template` replace the defaults of this kind. `content` is further values for the template. `system` is the
        deprecated name of `system_message` and warns. Raises RoleError if both are passed, and for an invalid argument.
        """
        system_message = _choose_instructions(system_message, system)
        instructions = {"system_message": DEFAULT_TEXT if system_message is None else system_message}
        return cls._new({**instructions, **_datetime_content(system_datetime), **content}, sender, recipient, template)

    def update(  # type: ignore[override]
        self,
        system_message: Any = None,
        sender: SenderRecipient | None = None,
        recipient: SenderRecipient | None = None,
        system_datetime: bool | str | None = None,
        template: Template | str | None = None,
        system: Any = None,
        **content: Any,
    ) -> None:
        """Change the fields that are passed. The arguments have the meaning that they have in `create`, but another
        order. None means not passed. `system_datetime=False` removes the time.

        Raises RoleError for an invalid argument, and changes nothing then.
        """
        system_message = _choose_instructions(system_message, system)
        instructions = {} if system_message is None else {"system_message": system_message}
        self._change({**instructions, **_datetime_content(system_datetime), **content}, sender, recipient, template)
        if system_datetime is False:
            self.content.pop("system_datetime", None)


def _choose_instructions(system_message: Any, system: Any) -> Any:
    """Return the instructions from `system_message` or from its deprecated name `system`, which warns.

    Raises RoleError if both are passed.
    """
    if system is None:
        return system_message
    if system_message is not None:
        raise RoleError("system= is the deprecated name of system_message=; pass system_message= only, not both")
    warnings.warn("system= is deprecated; use system_message=", DeprecationWarning, stacklevel=3)
    return system


def _datetime_content(time: bool | str | None) -> dict[str, str]:
    if time is True:
        return {"system_datetime": datetime.now(UTC).isoformat(timespec="minutes")}
    if time is None or time is False:
        return {}
    if not isinstance(time, str):
        raise RoleError(f"system_datetime is of type {type(time).__name__}; pass True, or the time as a text")
    return {"system_datetime": time}
