"""The working copy: a message that a program edits, and from which an immutable core message is made.

    create(…) ─▶ RoledMessage ──to_message──▶ Message        made once, and again after a change
    Message ──from_message──▶ RoledMessage ──to_message──▶ that same Message, until it is edited

An edited message loses the origin and the signed state of its original, as `losses` reports. Serialising changes
nothing: a compiled template and the class of a model stay on the live object.
"""

from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple, Self, TypeAlias

from jinja2 import Template
from pydantic import PrivateAttr
from sabir import Loss, Message
from sabir.authoring import StoredNames, describe_kind, one_line, side_of
from sabir.errors import SabirError

from sabir_roles.base import MessageFlag, MessageRole, SenderRecipient, validate_sender_recipient, word_of
from sabir_roles.content import copied, plain
from sabir_roles.errors import RoleError
from sabir_roles.log import Log, dump_message, load_message
from sabir_roles.rendered import Rendered
from sabir_roles.templates import check_template
from sabir_roles.vocabulary import Called, Origin, Statement, Words, make, nothing

Entry: TypeAlias = dict[str, Any]
"""One entry of a chat array: `{"type": "text", …}` or `{"type": "image_url", …}`."""


class Made(NamedTuple):
    """The latest core message, its losses, and the revision from which it was made."""

    message: Message | None = None
    losses: tuple[Loss, ...] = ()
    revision: object = None
    is_stored: bool = False
    """Whether it was stored because its template cannot be."""


class RoledMessage(Rendered):
    """A message with a role, a sender, a recipient and structured content that a template renders.

    `content` holds JSON values and may be changed in place. `template` is a jinja2 source, the file name of one of the
    package's own templates, or a compiled Template. `metadata` is for the program: it is not in the core
    message. Setting an attribute validates it, and raises RoleError for an invalid value.
    """

    kinds: ClassVar[dict[str, type["RoledMessage"]]] = {}
    """Every kind of message by the names that its serialised form may have: `stored_as`, by default the class's."""
    stored_as: ClassVar[str] = "RoledMessage"
    stored_before: ClassVar[tuple[str, ...]] = ()
    payload_kind: ClassVar[str] = ""
    """The payload kind of its core messages; any if empty."""
    own_template: ClassVar[str] = ""
    """The package's template of this kind."""
    own_people: ClassVar[tuple[MessageRole, MessageRole, MessageRole]] = (MessageRole.UNSET,) * 3
    """Role, sender and recipient of this kind, where no others are given."""
    side: ClassVar[str] = ""
    """The side of the core messages that become this kind; none if empty."""
    of_side: ClassVar[dict[tuple[str, str], type["RoledMessage"]]] = {}
    """Kind of the payload, side → the kind of the working copy."""

    _flag: MessageFlag | None = PrivateAttr(default=None)
    _source: Message | None = PrivateAttr(default=None)
    """The message that this one came from."""
    _made: Made = PrivateAttr(default=Made())

    def __init_subclass__(cls, **how: Any) -> None:
        """Register the kind under its stored names; raise RoleError if a kind of another module has one of them."""
        super().__init_subclass__(**how)
        for name in kind_names(cls).all:
            known = cls.kinds.setdefault(name, cls)
            if known.__module__ != cls.__module__:
                raise RoleError(f"{known.__module__} has a kind {name!r} already; give the class another stored_as")
            cls.kinds[name] = cls
        if cls.side:
            cls.of_side.setdefault((cls.payload_kind, cls.side), cls)

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
        """Equal messages have equal hashes, and an edit does not change the hash."""
        return hash(self.id)

    # What is made of it

    @property
    def text(self) -> str:
        """The rendered template, or the readable text of content without one; cached until a change.

        For an unedited copy of a core message, that message's own text.
        """
        made = self._made
        if made.is_stored and made.revision is self._revision and made.message is not None:
            return made.message.text
        source = self._source
        is_taken = source is not None and source.kind == "parts" and self.to_message() is source
        return source.text if source is not None and is_taken else self.written

    @property
    def rendered(self) -> str | list[Entry]:
        """The text; with images, a chat array: the text, then each image."""
        return self.text

    @property
    def image_content(self) -> list[Entry] | None:
        """The image entries of the chat array; None where `rendered` is a text."""
        found = self.rendered
        return None if isinstance(found, str) else [entry for entry in found if entry["type"] == "image_url"]

    @property
    def chat_msg(self) -> dict[str, Any] | None:
        """`{"role": …, "content": …}` with the plain role string; None if the role is unset or the message is empty."""
        if self.role in (None, MessageRole.UNSET) or not (said := self.rendered):
            return None
        return {"role": self.role.value, "content": said}

    def to_message(self) -> Message | None:
        """The core message; None if the message is empty, or the role is unset.

        As long as nothing changes, this is the original or the message made before.
        """
        return self._current().message

    def _current(self) -> Made:
        made, revision = self._made, self._revision
        if made.revision is not revision:
            made = self._made = Made(*self._make(), revision)
        return made

    def _make(self) -> tuple[Message | None, tuple[Loss, ...]]:
        source, origin = self._source, None
        if source is not None:
            kind = self.of_side.get((self.payload_kind, self.side), RoledMessage)
            origin = Origin(source, kind._taken(source)._statement())
        elif self.role in (None, MessageRole.UNSET):
            return nothing(self.id, "its role is unset")
        return make(self.id, self._statement(), origin, self._made.message)

    def _statement(self) -> Statement:
        """All fields of this message that the core message has."""
        return Statement(type(self).__name__, self.role, validate_sender_recipient(self.sender), self._stated())

    def _stated(self) -> Words | Called:
        """The text, or the call, of this message."""
        return Words(self.written)

    @classmethod
    def _taken(cls, message: Message) -> Self:
        """The working copy of a core message, not yet linked to it."""
        if not cls.side:
            return cls(role=MessageRole.UNSET, id=message.id)
        return cls._new(cls._read(message), message.policy, id=message.id)

    @classmethod
    def _read(cls, message: Message) -> dict[str, Any]:
        """The content of the working copy of a message."""
        raise NotImplementedError(f"{cls.__name__} has a side; give it a _read")

    @property
    def losses(self) -> tuple[Loss, ...]:
        """What the core message lacks of the original since an edit."""
        return self._current().losses

    @property
    def source(self) -> Message | None:
        """The core message that this one was made from, or None."""
        return self._source

    # How it comes to be, and how it changes

    @classmethod
    def create(cls, *_: Any, **__: Any) -> Self:
        """Each kind makes its own; NotImplementedError on this base."""
        raise NotImplementedError("RoledMessage is the base of all kinds; create a System, an Instruction or another")

    @classmethod
    def _new(
        cls,
        content: dict[str, Any],
        sender: SenderRecipient | None = None,
        recipient: SenderRecipient | None = None,
        template: str | Template | None = None,
        **fields: Any,
    ) -> Self:
        """A message with that content; missing arguments get the kind's defaults."""
        role, own_sender, own_recipient = cls.own_people
        return cls(
            content=content,
            role=role,
            sender=own_sender if sender is None else sender,
            recipient=own_recipient if recipient is None else recipient,
            template=cls.own_template if template is None else template,
            **fields,
        )

    @classmethod
    def from_message(cls, message: Message, *, speaks_as: str = "llm") -> "RoledMessage":
        """The working copy of a message; its kind is that of its side, for the policy that a model speaks as.

        Raises RoleError if `cls` is another kind.
        """
        if not isinstance(message, Message):
            raise RoleError(f"{describe_kind(message)} is no message of the vocabulary; give a sabir.Message")
        payload = message.payload.kind
        kind = RoledMessage if payload == "unknown" else cls.of_side[payload, side_of(message, speaks_as)]
        taken = kind._taken(message)
        if isinstance(taken, cls):
            taken._source, taken._made = message, Made(message, (), taken._revision)
            return taken
        raise RoleError(f"the message is one of {type(taken).__name__}, not of {cls.__name__}; use RoledMessage")

    def update(
        self,
        sender: SenderRecipient | None = None,
        recipient: SenderRecipient | None = None,
        template: str | Template | None = None,
        **content: Any,
    ) -> None:
        """Change the given fields, and merge the rest into the content; all or none."""
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
        """A copy with a new id and equal content; `metadata["clone_from"]` is this message."""
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
        """Copy the live objects, which are never serialised."""

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
        """A copy with the same id, and the live objects."""
        twin = type(self).from_dict(self.to_dict())
        assert isinstance(twin, type(self))
        twin.template, twin._flag = self.template, self._flag
        twin._take_live(self)
        return twin

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle as the result of `to_dict`."""
        return RoledMessage.from_dict, (self.to_dict(),)

    def to_dict(self) -> dict[str, Any]:
        """Everything but live objects as JSON; `from_dict` gives an equal message."""
        metadata = dict(self.metadata)
        if isinstance(origin := metadata.get("clone_from"), RoledMessage):
            metadata["clone_from"] = origin.id
        is_current = self._made.revision is self._revision
        keeps = isinstance(self.template, Template) or (self._made.is_stored and is_current)
        try:
            made = self.to_message() if keeps else self._made.message
        except RoleError:  # a failing template makes no message; the content is stored nevertheless
            made, keeps = None, False
        if made is self._source or (made and made.id == self.id and is_current and not keeps):
            made = None  # it is made again as it was
        return {
            **self.model_dump(mode="json", exclude=set(RoledMessage.model_fields)),
            "kind": kind_names(type(self)).name,
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
        """The message from `to_dict`'s result, of its own kind, flagged MESSAGE_LOAD.

        Raises RoleError for anything else, and for a message that is not a `cls`.
        """
        if not isinstance(dict_, Mapping):
            raise RoleError(f"a value of type {type(dict_).__name__} is no message; give what to_dict() gave")
        stored = dict(dict_)
        if not stored.keys() & {"kind", "content"}:
            raise RoleError("the mapping has neither kind nor content, so it is no message; give what to_dict() gave")
        name = stored.pop("kind", kind_names(cls).name)
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


def kind_names(kind: type[RoledMessage]) -> StoredNames:
    """Return the names of a kind in serialised messages; the name of its class if it assigns no `stored_as`."""
    return StoredNames.of(kind, kind.__name__)


def check_kind(message: object, kind: type[RoledMessage]) -> None:
    """Raise RoleError for a value that is not a message of that kind."""
    if not isinstance(message, kind):
        raise RoleError(f"a value of type {type(message).__name__} is no {kind.__name__}; make one with create()")
