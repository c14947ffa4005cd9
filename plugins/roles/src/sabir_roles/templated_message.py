"""Editable content and its rendered text, which is cached until a change. Changes are reported to collections.

content[…] = … ─▶ _touch ─▶ a new revision: the cached text and core message are no longer valid
written ─▶ template, with the variables of _variables ─▶ text
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from threading import RLock
from typing import Any, ClassVar
from uuid import uuid4
from weakref import WeakSet

from jinja2 import Template
from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, ValidationError, field_serializer, field_validator
from sabir.authoring import describe_kind

from sabir_roles.content import Watcher, json_copy, watch
from sabir_roles.errors import RoleError, refuse_invalid
from sabir_roles.roles import MessageRole, SenderRecipient, person_text, validate_sender_recipient
from sabir_roles.templates import as_json, check_template, render


class TemplatedMessage(BaseModel):
    """The pydantic base class of RoledMessage: the fields of an editable message, and its cached text.

    Do not create it yourself; see RoledMessage.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid", validate_assignment=True)

    keys: ClassVar[tuple[str, ...]] = ()
    """The names of the variables that a template of this kind may always use. A variable is None if `content` does not
    have it.
    """

    content: dict[str, Any] = Field(default_factory=dict)
    """The JSON values of the message. They may be changed in place, at any depth."""
    role: MessageRole | None = None
    """The role of the message. With None or MessageRole.UNSET, the message is not sent, unless `from_message` created
    the message and it was not edited.
    """
    template: str | Template | None = None
    """A jinja2 source, the file name of a template of sabir_roles, or a compiled Template. None means no template:
    the text is the content's value if this is a single string, "" for empty content, and otherwise the content as JSON.
    """
    sender: SenderRecipient | None = MessageRole.UNSET
    """Who sends the message: a role, or a name or id."""
    recipient: SenderRecipient | None = MessageRole.UNSET
    """Who receives the message: a role, or a name or id."""
    id: str = Field(default_factory=lambda: uuid4().hex, min_length=1, frozen=True)
    """The unique id of the message, by default a random one. It cannot be changed."""
    created_at: datetime = Field(default_factory=lambda: datetime.now(UTC))
    """The time when the message was created, by default the present time in UTC."""
    metadata: dict[str, Any] = Field(default_factory=dict)
    """Data of your program and of sabir_roles (such as `clone_from`). It is not part of the core message, and is not
    sent.
    """

    _revision: object = PrivateAttr(default_factory=object)
    """A new object after each change. Compared by identity, so concurrent changes are noticed."""
    _text: str | None = PrivateAttr(default=None)
    _editing: RLock = PrivateAttr(default_factory=RLock)
    """The lock for reading the content and then changing it. No thread locks two messages at once."""
    _watchers: WeakSet[Watcher] = PrivateAttr(default_factory=WeakSet)

    def __init__(self, /, **fields: Any) -> None:
        """Create a message with these fields. Raises RoleError for an invalid field."""
        check_template(fields.get("template"))
        try:
            super().__init__(**fields)
        except ValidationError as error:
            refuse_invalid(type(self).__name__, error)

    @field_validator("sender", "recipient", mode="before")
    @classmethod
    def _check_person(cls, person: object) -> SenderRecipient:
        return validate_sender_recipient(person)

    def model_post_init(self, context: Any, /) -> None:
        """Replace the content with a copy that reports its changes to `_touch`."""
        self.__dict__["content"] = watch(self.content, self._touch)

    def __setattr__(self, name: str, value: Any) -> None:
        """Set a field. Raises RoleError for an invalid value."""
        if name == "template":
            check_template(value)
        if name == "content" and isinstance(value, Mapping):
            value = json_copy(value)
        try:
            super().__setattr__(name, value)
        except ValidationError as error:
            refuse_invalid(f"{type(self).__name__}.{name}", error)
        if name == "content":
            self.__dict__["content"] = watch(self.content, self._touch)
        if name in type(self).model_fields and name != "metadata":
            self._touch()

    def _touch(self) -> None:
        """Note a change: discard the cached text, and tell the collections of this message."""
        self._revision = object()
        self._text = None
        for watcher in list(self._watchers):
            watcher.changed(self.id)

    @property
    def written(self) -> str:
        """The text that the template renders from the content; without a template, the content as text. For an
        Instruction with `plain_content`, the `plain_content`.

        Cached until a change. Raises RoleError for invalid content, and TemplateFailed if the template cannot be
        rendered. Unlike `text`, it never is the text of an original core message.
        """
        text, revision = self._text, self._revision
        if text is None:
            text = self._render_text()
            if revision is self._revision:
                self._text = text
        return text

    def _render_text(self) -> str:
        return self._text_without_template() if self.template is None else render(self.template, self._variables())

    def _variables(self) -> dict[str, Any]:
        """Return the variables of a template: the values of the content, `role`, `sender`, `recipient` and
        `created_at`.

        The values in `template_context` of the content override them. Raises RoleError if it is not a mapping.
        """
        variables = self._content_variables()
        overrides = variables.pop("template_context", None) or {}
        if not isinstance(overrides, Mapping):
            raise RoleError(f"template_context is {describe_kind(overrides)}; pass a mapping of names to values")
        people = {"sender": person_text(self.sender), "recipient": person_text(self.recipient)}
        role = self.role.value if self.role else MessageRole.UNSET.value
        return {**variables, "role": role, **people, "created_at": self.created_at.isoformat(), **overrides}

    def _content_variables(self) -> dict[str, Any]:
        """Return the variables of a template that come from the content: its values, and None for the other `keys`."""
        return {**dict.fromkeys(self.keys), **json_copy(self.content)}

    def _text_without_template(self) -> str:
        """Return the text of a message without a template: a single string, otherwise the content as JSON."""
        return self._format_content(self.content)

    @staticmethod
    def _format_content(content: Mapping[str, Any]) -> str:
        values = list(content.values())
        if len(values) == 1 and isinstance(values[0], str):
            return values[0]
        return as_json(content) if values else ""

    @field_serializer("template")
    def _template_text(self, template: str | Template | None) -> str | None:
        return template if isinstance(template, str) else None
