"""The working copy: a message that a program edits, and from which an immutable message of the vocabulary is made.

    create(…) ─▶ RoledMessage ──to_message──▶ Message        made once, and anew after a change
    Message ──from_message──▶ RoledMessage ──to_message──▶ that same Message, until it is edited

An edited message loses the origin and the signed state of the one that it came from; `losses` says so. Serialising
changes nothing (D-27): a compiled template and the class of a model stay on the live object.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from threading import RLock
from typing import Any, ClassVar, NamedTuple, Self, TypeAlias
from uuid import uuid4
from weakref import WeakSet

from jinja2 import Template
from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, ValidationError, field_serializer, field_validator
from sabir.base.errors import one_line
from sabir.base.losses import Loss
from sabir.errors import SabirError
from sabir.vocabulary.constructors import name_kind
from sabir.vocabulary.messages import Message

from sabir_roles.base import MessageFlag, MessageRole, SenderRecipient, validate_sender_recipient, word_of
from sabir_roles.content import Watcher, copied, hold, plain
from sabir_roles.errors import RoleError, refuse_invalid
from sabir_roles.log import Log, dump_message, load_message
from sabir_roles.templates import as_json, check_template, render

Entry: TypeAlias = dict[str, Any]
"""One entry of a chat array: `{"type": "text", …}` or `{"type": "image_url", …}`."""


class Made(NamedTuple):
    """The message of the vocabulary that was made last, what it lacks, and of which revision it was made."""

    message: Message | None = None
    losses: tuple[Loss, ...] = ()
    revision: object = None
    is_stored: bool = False
    """Whether it was stored because the template that made it is not."""


class RoledMessage(BaseModel):
    """A message with a role, a sender, a recipient and structured content that a template renders (LA-07 … LA-18).

    `content` holds JSON values and may be changed in place. `template` is a jinja2 source, the file name of one of the
    package's own templates, or a compiled Template. `metadata` is for the program: no message of the vocabulary holds
    it. An attribute that is set is validated; RoleError for what does not fit.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid", validate_assignment=True)

    kinds: ClassVar[dict[str, type["RoledMessage"]]] = {}
    """Every kind of message by the name that its serialised form carries."""
    keys: ClassVar[tuple[str, ...]] = ()
    """The names that a template of this kind may always use, None where content has no such value (D-50)."""
    payload_kind: ClassVar[str] = ""
    """The kind of the messages of the vocabulary that it stands for; any where empty."""
    own_template: ClassVar[str] = ""
    """The package's template of this kind."""

    content: dict[str, Any] = Field(default_factory=dict)
    role: MessageRole | None = None
    template: str | Template | None = None
    sender: SenderRecipient | None = MessageRole.UNSET
    recipient: SenderRecipient | None = MessageRole.UNSET
    id: str = Field(default_factory=lambda: uuid4().hex, min_length=1, frozen=True)
    created_at: datetime = Field(default_factory=lambda: datetime.now(UTC))
    metadata: dict[str, Any] = Field(default_factory=dict)

    _flag: MessageFlag | None = PrivateAttr(default=None)
    _source: Message | None = PrivateAttr(default=None)
    """The message that this one came from."""
    _revision: object = PrivateAttr(default_factory=object)
    """Another object after each change: threads that change it at once cannot give it an earlier value."""
    _made: Made = PrivateAttr(default=Made())
    _text: str | None = PrivateAttr(default=None)
    _editing: RLock = PrivateAttr(default_factory=RLock)
    """Held by what reads the content and then changes it; whoever waits for it holds no other message's."""
    _watchers: WeakSet[Watcher] = PrivateAttr(default_factory=WeakSet)

    def __init__(self, /, **fields: Any) -> None:
        """A message of those fields; RoleError, in one line, where they do not fit."""
        check_template(fields.get("template"))
        try:
            super().__init__(**fields)
        except ValidationError as error:
            refuse_invalid(type(self).__name__, error)

    def __init_subclass__(cls, **how: Any) -> None:
        """Know the kind by its name; RoleError where a kind of another module has it."""
        super().__init_subclass__(**how)
        known = cls.kinds.setdefault(cls.__name__, cls)
        if known.__module__ != cls.__module__:
            raise RoleError(f"{known.__module__} has a kind {cls.__name__!r} already; give the class another name")
        cls.kinds[cls.__name__] = cls

    @field_validator("sender", "recipient", mode="before")
    @classmethod
    def _is_somebody(cls, value: object) -> SenderRecipient:
        return validate_sender_recipient(value)

    def model_post_init(self, context: Any, /) -> None:
        """Hold the content so that its changes are heard of."""
        self.__dict__["content"] = hold(self.content, self._touch)

    def __setattr__(self, name: str, value: Any) -> None:
        """Set a field, validated; RoleError where the value does not fit."""
        if name == "template":
            check_template(value)
        if name == "content" and isinstance(value, Mapping):
            value = plain(value)
        try:
            super().__setattr__(name, value)
        except ValidationError as error:
            refuse_invalid(f"{type(self).__name__}.{name}", error)
        if name == "content":
            self.__dict__["content"] = hold(self.content, self._touch)
        if name in type(self).model_fields and name != "metadata":
            self._touch()

    def __str__(self) -> str:
        """Kind, sender, recipient and the start of the text, in one line."""
        whom = f"{word_of(self.sender)} → {word_of(self.recipient)}"
        try:
            said = self.text
        except SabirError as error:
            said = f"[{error}]"
        return one_line(f"{type(self).__name__} ({whom}): {said}", 100)

    __repr__ = __str__

    def __eq__(self, other: object) -> bool:
        """Of the same kind, with the same fields."""
        return other is self or (type(other) is type(self) and self.to_dict() == other.to_dict())

    def __hash__(self) -> int:
        """Equal messages hash alike, and an edit changes nothing of it."""
        return hash(self.id)

    # What is made of it

    def _touch(self) -> None:
        """Note that something changed: what was made of it no longer holds."""
        self._revision = object()
        self._text = None
        for watcher in list(self._watchers):
            watcher.changed(self.id)

    @property
    def text(self) -> str:
        """What the template makes of the content, or the readable text of one without; kept until a change.

        Of a message that came from the vocabulary, and says the same, its own text.
        """
        made = self._made
        if made.is_stored and made.revision is self._revision and made.message is not None:
            return made.message.text
        source = self._source
        is_taken = source is not None and source.kind == "parts" and self.to_message() is source
        return source.text if source is not None and is_taken else self.written

    @property
    def written(self) -> str:
        """What the template makes of the content as it is now; kept until a change."""
        text, revision = self._text, self._revision
        if text is None:
            text = self._render()
            if revision is self._revision:
                self._text = text
        return text

    def _render(self) -> str:
        return self._plain() if self.template is None else render(self.template, self._variables())

    def _variables(self) -> dict[str, Any]:
        """What a template sees: content, who and when; `template_context` of the content is laid over it (D-50)."""
        said = self._said()
        over = said.pop("template_context", None) or {}
        if not isinstance(over, Mapping):
            raise RoleError(f"template_context is {name_kind(over)}; give a mapping of names to values")
        who = {"sender": word_of(self.sender), "recipient": word_of(self.recipient)}
        role = self.role.value if self.role else MessageRole.UNSET.value
        return {**said, "role": role, **who, "created_at": self.created_at.isoformat(), **over}

    def _said(self) -> dict[str, Any]:
        """What a template sees of the content."""
        return {**dict.fromkeys(self.keys), **plain(self.content)}

    def _plain(self) -> str:
        """The text of content that has no template."""
        return self._readable(self.content)

    @staticmethod
    def _readable(content: Mapping[str, Any]) -> str:
        values = list(content.values())
        if len(values) == 1 and isinstance(values[0], str):
            return values[0]
        return as_json(content) if values else ""

    @property
    def rendered(self) -> str | list[Entry]:
        """The text; where there are images, a chat array: the text, then each image."""
        return self.text

    @property
    def image_content(self) -> list[Entry] | None:
        """The image entries of the chat array; None where `rendered` is a text."""
        found = self.rendered
        return None if isinstance(found, str) else [entry for entry in found if entry["type"] == "image_url"]

    @property
    def chat_msg(self) -> dict[str, Any] | None:
        """`{"role": …, "content": …}` with the plain role string; None where the role is unset or nothing is said."""
        if self.role in (None, MessageRole.UNSET) or not (said := self.rendered):
            return None
        return {"role": self.role.value, "content": said}

    def to_message(self) -> Message | None:
        """The message of the vocabulary; None where nothing is said, or the role is unset.

        The one that this one came from, or that was made before, for as long as nothing has changed.
        """
        return self._current().message

    def _current(self) -> Made:
        from sabir_roles.vocabulary import make

        made, revision = self._made, self._revision
        if made.revision is not revision:
            made = self._made = Made(*make(self), revision)
        return made

    @property
    def losses(self) -> tuple[Loss, ...]:
        """What the message of the vocabulary lacks of the one that this one came from, since it was edited."""
        return self._current().losses

    @property
    def source(self) -> Message | None:
        """The message of the vocabulary that this one came from, or None."""
        return self._source

    # How it comes to be, and how it changes

    @classmethod
    def create(cls, *_: Any, **__: Any) -> Self:
        """Each kind makes its own; NotImplementedError on this base."""
        raise NotImplementedError("RoledMessage is the base of all kinds; create a System, an Instruction or another")

    @classmethod
    def from_message(cls, message: Message, *, speaks_as: str = "llm") -> "RoledMessage":
        """The working copy of a message; its kind is that of its side, for the policy that a model speaks as.

        RoleError where `cls` is another kind.
        """
        from sabir_roles.vocabulary import take

        if not isinstance(message, Message):
            raise RoleError(f"{name_kind(message)} is no message of the vocabulary; give a sabir.Message")
        taken = take(message, speaks_as)
        if isinstance(taken, cls):
            return taken
        raise RoleError(f"the message is one of {type(taken).__name__}, not of {cls.__name__}; use RoledMessage")

    def update(
        self,
        sender: SenderRecipient | None = None,
        recipient: SenderRecipient | None = None,
        template: str | Template | None = None,
        **content: Any,
    ) -> None:
        """Change the given fields, and merge the rest into the content; all or nothing."""
        self._change(content, sender, recipient, template)

    def _change(
        self,
        content: Mapping[str, Any],
        sender: SenderRecipient | None = None,
        recipient: SenderRecipient | None = None,
        template: str | Template | None = None,
    ) -> None:
        merged = plain(dict(content))
        given = {"sender": sender, "recipient": recipient}
        people = {name: validate_sender_recipient(value) for name, value in given.items() if value is not None}
        check_template(template)
        if template is not None:
            self.template = template
        for name, value in people.items():
            setattr(self, name, value)
        if merged:
            self.content.update(merged)

    def clone(self, keep_role: bool = True) -> Self:
        """A copy of its own id, with equal content; `metadata["clone_from"]` is this message (D-51)."""
        fields = {name: getattr(self, name) for name in type(self).model_fields if name != "id"}
        fields["content"], fields["metadata"] = plain(self.content), {**copied(self.metadata), "clone_from": self}
        if not keep_role:
            fields["role"] = MessageRole.UNSET
        twin = type(self)(**fields)
        twin._flag = MessageFlag.MESSAGE_CLONE
        twin._take_live(self)
        if self._source is not None:
            twin._source = self._source.model_copy(update={"id": twin.id})
        return twin

    def _take_live(self, other: Self) -> None:
        """Take over what is never serialised."""

    def is_clone(self) -> bool:
        """Whether this message is a copy of another, also after it was stored."""
        return self._flag is MessageFlag.MESSAGE_CLONE or "clone_from" in self.metadata

    @property
    def flag(self) -> MessageFlag | None:
        """How it came to be: MESSAGE_CLONE, MESSAGE_LOAD, or None where it was created."""
        return self._flag

    def __copy__(self) -> Self:
        """As `copy.deepcopy`: no two messages hold the same content."""
        return self.__deepcopy__()

    def __deepcopy__(self, memo: object = None) -> Self:
        """A copy of the same id, with what is live."""
        twin = type(self).from_dict(self.to_dict())
        assert isinstance(twin, type(self))
        twin.template, twin._flag = self.template, self._flag
        twin._take_live(self)
        return twin

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle as what `to_dict` gives."""
        return RoledMessage.from_dict, (self.to_dict(),)

    @field_serializer("template")
    def _template_text(self, template: str | Template | None) -> str | None:
        return template if isinstance(template, str) else None

    def to_dict(self) -> dict[str, Any]:
        """JSON of everything but what is live alone; `from_dict` gives an equal message (LA-13, LA-17, LA-18)."""
        metadata = dict(self.metadata)
        if isinstance(origin := metadata.get("clone_from"), RoledMessage):
            metadata["clone_from"] = origin.id
        is_current = self._made.revision is self._revision
        keeps = isinstance(self.template, Template) or (self._made.is_stored and is_current)
        try:
            made = self.to_message() if keeps else self._made.message
        except RoleError:  # a template that fails makes no message; the content is stored all the same
            made, keeps = None, False
        if made is self._source or (made and made.id == self.id and is_current and not keeps):
            made = None  # it is made again as it was
        return {
            **self.model_dump(mode="json", exclude=set(RoledMessage.model_fields)),
            "kind": type(self).__name__,
            "id": self.id,
            "created_at": self.created_at.isoformat(),
            "role": self.role and self.role.value,
            "content": plain(self.content),
            "template": self._template_text(self.template),
            "sender": word_of(self.sender),
            "recipient": word_of(self.recipient),
            "metadata": plain(metadata),
            "source": dump_message(self._source) if self._source else None,
            "made": dump_message(made) if made else None,
            "keeps_made": keeps,
        }

    @classmethod
    def from_dict(cls, dict_: Mapping[str, Any]) -> "RoledMessage":
        """The message that `to_dict` described, of its own kind, flagged MESSAGE_LOAD.

        RoleError for what describes none, and for one that is no `cls`.
        """
        if not isinstance(dict_, Mapping):
            raise RoleError(f"a value of type {type(dict_).__name__} is no message; give what to_dict() gave")
        stored = dict(dict_)
        if not stored.keys() & {"kind", "content"}:
            raise RoleError("the mapping has neither kind nor content, so it is no message; give what to_dict() gave")
        name = stored.pop("kind", cls.__name__)
        kind = RoledMessage if name == "RoledMessage" else cls.kinds.get(name) if isinstance(name, str) else None
        if kind is None or not issubclass(kind, cls):
            known = ", ".join(each for each, of in cls.kinds.items() if issubclass(of, cls)) or cls.__name__
            raise RoleError(one_line(f"the kind {name!r} is none of {cls.__name__}; expected one of {known}"))
        source, made, keeps = stored.pop("source", None), stored.pop("made", None), stored.pop("keeps_made", False)
        loaded = kind(**{str(key): value for key, value in stored.items()})
        loaded._source = load_message(source) if source is not None else None
        if loaded._source is not None and kind.payload_kind not in ("", loaded._source.kind):
            reason = f"a {loaded._source.kind} message is no {kind.__name__}"
            raise RoleError(f"the stored message is damaged: {reason}; give what to_dict() gave")
        if made is not None:
            loaded._made = Made(load_message(made), (), loaded._revision if keeps else None, bool(keeps))
        loaded._flag = MessageFlag.MESSAGE_LOAD
        return loaded

    def to_log(self) -> Log:
        """An immutable copy of all fields as they are now."""
        return Log(id=self.id, created_at=self.created_at, content=self.to_dict())
