"""RoledMessage: an editable message, from which an immutable core message is built.

    create(…) ─▶ RoledMessage ──to_message──▶ Message        built once, and again after a change
    Message ──from_message──▶ RoledMessage ──to_message──▶ the same Message object, until the RoledMessage is edited

The core message of an edited message has no origin and no signed state; `losses` reports this. Compiled templates and
model classes are not serialised.
"""

from collections.abc import Mapping
from threading import Lock
from typing import Any, ClassVar, NamedTuple, Self, TypeAlias

from jinja2 import Template
from pydantic import PrivateAttr
from sabir import Loss, Message
from sabir.authoring import StoredNames, describe_kind, one_line, side_of
from sabir.errors import SabirError

from sabir_roles.content import copy_containers, json_copy
from sabir_roles.core_messages import CallContent, MessageDraft, Original, PartsContent, build_message, report_unsent
from sabir_roles.errors import RoleError
from sabir_roles.log import Log, dump_message, load_message
from sabir_roles.roles import MessageFlag, MessageRole, SenderRecipient, person_text, validate_sender_recipient
from sabir_roles.templated_message import TemplatedMessage
from sabir_roles.templates import check_template

Entry: TypeAlias = dict[str, Any]
"""One entry of a chat array: `{"type": "text", …}` or `{"type": "image_url", …}`."""


_PUBLISHING = Lock()


class CachedBuild(NamedTuple):
    """The latest core message (None if it is not sent), its losses, and the revision from which it was built."""

    message: Message | None = None
    losses: tuple[Loss, ...] = ()
    revision: object = None
    is_stored: bool = False
    """Whether the core message was loaded by `from_dict`, because the message had a compiled template, which cannot be
    stored.
    """


class RoledMessage(TemplatedMessage):
    """Base class of editable messages with a role, a sender, a recipient, and content that a template renders.

    `content` is JSON values, which may be changed in place. `template` is a jinja2 source, the file name of a
    template of sabir_roles, or a compiled Template. None means no template: the text is the content's value if this is
    a single string, otherwise the content as JSON. `sender` and `recipient` are roles, names or ids. `metadata` is
    further data, which is not sent. Setting an attribute raises RoleError for an invalid value.

    Create a System, an Instruction, an AssistantResponse, an ActionRequest or an ActionResponse, or convert a core
    message with `from_message`.

    >>> import sabir, sabir_roles
    >>> message = sabir_roles.RoledMessage.from_message(sabir.user("Hello!"))
    >>> message.update(instruction="Good morning!")
    >>> message.to_message().text
    'Good morning!'
    """

    kinds: ClassVar[dict[str, type["RoledMessage"]]] = {}
    """Name in serialised messages → class. A class has the name `stored_as` (by default the class's name) and the
    earlier names `stored_before`. The definition of a subclass adds it.
    """
    stored_as: ClassVar[str] = "RoledMessage"
    """The name of this kind in serialised messages. A subclass that does not set it has the name of the class."""
    stored_before: ClassVar[tuple[str, ...]] = ()
    """Earlier names of this kind in serialised messages, which can still be read."""
    payload_kind: ClassVar[str] = ""
    """The payload kind of the core messages of this kind: "parts", "option_call", "option_result", or "" for any."""
    own_template: ClassVar[str] = ""
    """The default template of this kind: a source, or the file name of a template of sabir_roles."""
    own_people: ClassVar[tuple[MessageRole, MessageRole, MessageRole]] = (MessageRole.UNSET,) * 3
    """The default role, sender and recipient of this kind."""
    side: ClassVar[str] = ""
    """The side of the conversation whose core messages `from_message` converts to this kind: "system", "user",
    "assistant" or "results". "" means that `from_message` converts no messages to this kind.
    """
    of_side: ClassVar[dict[tuple[str, str], type["RoledMessage"]]] = {}
    """(Payload kind, side) → the class to which `from_message` converts messages of that kind and side."""

    _flag: MessageFlag | None = PrivateAttr(default=None)
    _source: Message | None = PrivateAttr(default=None)
    """The core message from which this message was converted."""
    _cached: CachedBuild = PrivateAttr(default=CachedBuild())

    def __init_subclass__(cls, **how: Any) -> None:
        """Register the subclass in `kinds` and `of_side`. Raises RoleError if a class of another module has a stored
        name of the subclass.
        """
        super().__init_subclass__(**how)
        for name in kind_names(cls).all:
            known = cls.kinds.setdefault(name, cls)
            if known.__module__ != cls.__module__:
                raise RoleError(f"{known.__module__} already has a kind {name!r}; set another `stored_as` in the class")
            cls.kinds[name] = cls
        if cls.side:
            cls.of_side.setdefault((cls.payload_kind, cls.side), cls)

    def __str__(self) -> str:
        """Return the kind, the sender, the recipient and the start of the text, in one line of up to 100 characters. If
        the text cannot be rendered, the line contains the error.
        """
        people = f"{person_text(self.sender)} → {person_text(self.recipient)}"
        try:
            text = self.text
        except SabirError as error:
            text = f"[{error}]"
        return one_line(f"{type(self).__name__} ({people}): {text}", 100)

    __repr__ = __str__

    def __eq__(self, other: object) -> bool:
        """Return whether the other value is a message of the same class with an equal `to_dict`, including the id."""
        return other is self or (type(other) is type(self) and self.to_dict() == other.to_dict())

    def __hash__(self) -> int:
        """Return a hash of the id, so that an edited message keeps its place in sets and dicts."""
        return hash(self.id)

    # The text and the core message

    @property
    def text(self) -> str:
        """The text of the message: the rendered template, or the content as text if there is no template.

        If the message was converted from a core message with parts and not edited, the text of the core message. Raises
        RoleError for invalid content, and TemplateFailed if the template cannot be rendered.
        """
        cached = self._cached
        if cached.is_stored and cached.revision is self._revision and cached.message is not None:
            return cached.message.text
        source = self._source
        is_original = source is not None and source.kind == "parts" and self.to_message() is source
        return source.text if source is not None and is_original else self.written

    @property
    def rendered(self) -> str | list[Entry]:
        """The text of the message. An Instruction with images has a list of entries as in OpenAI's chat API instead:
        the text, then each image.
        """
        return self.text

    @property
    def image_content(self) -> list[Entry] | None:
        """The image entries of `rendered`; None if `rendered` is a text."""
        entries = self.rendered
        return None if isinstance(entries, str) else [entry for entry in entries if entry["type"] == "image_url"]

    @property
    def chat_msg(self) -> dict[str, Any] | None:
        """The message as `{"role": …, "content": …}`; None if the role is unset or the message is empty."""
        if self.role in (None, MessageRole.UNSET) or not (content := self.rendered):
            return None
        return {"role": self.role.value, "content": content}

    def to_message(self) -> Message | None:
        """Return the core message, which any adapter can send. For a message with a `source` that was not edited, this
        is the `source`. Otherwise, the result is None if the message is empty or its role is unset.

        Until the message changes, the same object is returned. Raises RoleError for invalid content, and TemplateFailed
        if the template cannot be rendered.
        """
        return self._cached_build().message

    def _cached_build(self) -> CachedBuild:
        cached, revision = self._cached, self._revision
        if cached.revision is revision:
            return cached
        built = CachedBuild(*self._build(), revision)
        with _PUBLISHING:  # two threads that build at once return the same message, because each build has a new id
            if self._cached.revision is revision:
                return self._cached
            if self._revision is revision:
                self._cached = built
        return built

    def _build(self) -> tuple[Message | None, tuple[Loss, ...]]:
        source, original = self._source, None
        if source is not None:
            kind = self.of_side.get((self.payload_kind, self.side), RoledMessage)
            original = Original(source, kind._convert(source)._draft())
        elif self.role in (None, MessageRole.UNSET):
            return report_unsent(self.id, "its role is unset")
        return build_message(self.id, self._draft(), original, self._cached.message)

    def _draft(self) -> MessageDraft:
        """Return the fields of this message from which the core message is built."""
        sender = validate_sender_recipient(self.sender)
        return MessageDraft(type(self).__name__, self.role, sender, self._core_content())

    def _core_content(self) -> PartsContent | CallContent:
        """Return the content for the core message: a text, or a call or its result."""
        return PartsContent(self.written)

    @classmethod
    def _convert(cls, message: Message) -> Self:
        """Return an editable message of this kind for a core message. It is not linked to the core message yet."""
        if not cls.side:
            return cls(role=MessageRole.UNSET, id=message.id)
        return cls._new(cls._read_content(message), message.policy, id=message.id)

    @classmethod
    def _read_content(cls, message: Message) -> dict[str, Any]:
        """Return the content of an editable message for a core message. Kinds with a `side` must define it."""
        raise NotImplementedError(f"{cls.__name__} has a side but no method _read_content; define it")

    @property
    def losses(self) -> tuple[Loss, ...]:
        """What the core message of an edited message does not have of its original, and why a message is not sent.

        Raises the errors of `to_message`.
        """
        return self._cached_build().losses

    @property
    def source(self) -> Message | None:
        """The core message from which `from_message` created this message, also after edits; None if there is none.

        A clone of this message, and an AssistantResponse that was created from a reply with one answer, have a copy of
        the core message with their own id.
        """
        return self._source

    # Creating and changing

    @classmethod
    def create(cls, *_: Any, **__: Any) -> Self:
        """Create a message of this kind. Each kind has its own arguments. Raises NotImplementedError on RoledMessage
        itself, and on a subclass that does not define `create`.
        """
        kinds = "System, Instruction, AssistantResponse, ActionRequest or ActionResponse"
        raise NotImplementedError(f"RoledMessage is the base class of all kinds; call create of {kinds}")

    @classmethod
    def _new(
        cls,
        content: dict[str, Any],
        sender: SenderRecipient | None = None,
        recipient: SenderRecipient | None = None,
        template: str | Template | None = None,
        **fields: Any,
    ) -> Self:
        """Return a message with this content. None means the default of the kind."""
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
        """Return an editable message for a core message. The kind depends on the core message.

        `speaks_as` is the policy of the model, whose messages become AssistantResponses and ActionRequests. Raises
        RoleError for a value that is not a `sabir.Message`. Call it on RoledMessage: on a subclass, it raises RoleError
        if the message becomes one of another kind.
        """
        if not isinstance(message, Message):
            raise RoleError(f"{describe_kind(message)} is not a core message; pass a sabir.Message")
        payload = message.payload.kind
        kind = RoledMessage if payload == "unknown" else cls.of_side[payload, side_of(message, speaks_as)]
        editable = kind._convert(message)
        if isinstance(editable, cls):
            editable._source, editable._cached = message, CachedBuild(message, (), editable._revision)
            return editable
        raise RoleError(f"the message is of kind {type(editable).__name__}, not {cls.__name__}; use RoledMessage")

    def update(
        self,
        sender: SenderRecipient | None = None,
        recipient: SenderRecipient | None = None,
        template: str | Template | None = None,
        **content: Any,
    ) -> None:
        """Change the fields that are passed, and set each value of `content` in the content. For `sender`, `recipient`
        and `template`, None means not passed. Raises RoleError for an invalid value, and changes nothing then.
        """
        self._change(content, sender, recipient, template)

    def _change(
        self,
        content: Mapping[str, Any],
        sender: SenderRecipient | None = None,
        recipient: SenderRecipient | None = None,
        template: str | Template | None = None,
    ) -> None:
        merged = json_copy(dict(content))
        passed = {"sender": sender, "recipient": recipient}
        people = {name: validate_sender_recipient(value) for name, value in passed.items() if value is not None}
        check_template(template)
        if template is not None:
            self.template = template
        for name, value in people.items():
            setattr(self, name, value)
        if merged:
            self.content.update(merged)

    def clone(self, keep_role: bool = True) -> Self:
        """Return a copy with a new id. `metadata["clone_from"]` of the copy is this message object, of which `to_dict`
        stores the id.

        With `keep_role=False`, the role of the copy is unset.
        """
        fields = {name: getattr(self, name) for name in type(self).model_fields if name != "id"}
        fields["content"] = json_copy(self.content)
        fields["metadata"] = {**copy_containers(self.metadata), "clone_from": self}
        if not keep_role:
            fields["role"] = MessageRole.UNSET
        twin = type(self)(**fields)
        twin._flag = MessageFlag.MESSAGE_CLONE
        twin._copy_unserialised(self)
        if self._source is not None:
            twin._source = self._source.model_copy(update={"id": twin.id})
        return twin

    def _copy_unserialised(self, other: Self) -> None:
        """Copy from another message the objects that are not serialised, such as model classes. By default: none."""

    def is_clone(self) -> bool:
        """Return whether the message was created by `clone`, even if it was stored and loaded since then."""
        return self._flag is MessageFlag.MESSAGE_CLONE or "clone_from" in self.metadata

    @property
    def flag(self) -> MessageFlag | None:
        """How the message was created: MESSAGE_CLONE by `clone`, MESSAGE_LOAD by `from_dict` or unpickling, None in any
        other way. A copy by `copy.copy` has the flag of its original.
        """
        return self._flag

    def __copy__(self) -> Self:
        """Return a deep copy, because two messages never share content."""
        return self.__deepcopy__()

    def __deepcopy__(self, memo: object = None) -> Self:
        """Return a copy with the same id, which shares only the template and the model class. Raises RoleError if
        `metadata` contains a value that JSON cannot represent.
        """
        twin = type(self).from_dict(self.to_dict())
        assert isinstance(twin, type(self))
        twin.template, twin._flag = self.template, self._flag
        twin._copy_unserialised(self)
        return twin

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the message as the result of `to_dict`, which `from_dict` reads."""
        return RoledMessage.from_dict, (self.to_dict(),)

    def to_dict(self) -> dict[str, Any]:
        """Return the message as an object of JSON values, which `from_dict` reads. Model classes are not included. A
        compiled template is not included either: the core message is, if it can be built. Raises RoleError if
        `metadata` contains a value that JSON cannot represent.
        """
        metadata = dict(self.metadata)
        if isinstance(origin := metadata.get("clone_from"), RoledMessage):
            metadata["clone_from"] = origin.id
        is_current = self._cached.revision is self._revision
        is_stored = isinstance(self.template, Template) or (self._cached.is_stored and is_current)
        try:
            message = self.to_message() if is_stored else self._cached.message
        except RoleError:  # with a failing template there is no core message; the content is stored nevertheless
            message, is_stored = None, False
        if message is self._source or (message and message.id == self.id and is_current and not is_stored):
            message = None  # after loading, the same core message is built again
        return {
            **self.model_dump(mode="json", exclude=set(RoledMessage.model_fields)),
            "kind": kind_names(type(self)).name,
            "id": self.id,
            "created_at": self.created_at.isoformat(),
            "role": self.role and self.role.value,
            "content": json_copy(self.content),
            "template": self._template_text(self.template),
            "sender": person_text(self.sender),
            "recipient": person_text(self.recipient),
            "metadata": json_copy(metadata),
            "source": dump_message(self._source) if self._source else None,
            "made": dump_message(message) if message else None,
            "keeps_made": is_stored,
        }

    @classmethod
    def from_dict(cls, dict_: Mapping[str, Any]) -> "RoledMessage":
        """Return a message of the stored kind from the result of `to_dict`. Its flag is MESSAGE_LOAD. A compiled
        template is not restored: after a change, the text is the content as text.

        Raises RoleError for anything else, and if the stored kind is neither this class nor a subclass.
        """
        if not isinstance(dict_, Mapping):
            raise RoleError(f"{describe_kind(dict_)} is not a stored message; pass the result of to_dict()")
        stored = dict(dict_)
        if not stored.keys() & {"kind", "content"}:
            raise RoleError("a mapping without kind and content is not a message; pass the result of to_dict()")
        name = stored.pop("kind", kind_names(cls).name)
        kind = RoledMessage if name == "RoledMessage" else cls.kinds.get(name) if isinstance(name, str) else None
        if kind is None or not issubclass(kind, cls):
            known = ", ".join(each for each, of in cls.kinds.items() if issubclass(of, cls)) or cls.__name__
            raise RoleError(one_line(f"the kind {name!r} is not a kind of {cls.__name__}; expected one of {known}"))
        source, message = stored.pop("source", None), stored.pop("made", None)
        is_stored = bool(stored.pop("keeps_made", False))
        loaded = kind(**{str(key): value for key, value in stored.items()})
        loaded._source = load_message(source) if source is not None else None
        if loaded._source is not None and kind.payload_kind not in ("", loaded._source.kind):
            reason = f"a {loaded._source.kind} message cannot be of kind {kind.__name__}"
            raise RoleError(f"the stored message is damaged: {reason}; pass the unchanged result of to_dict()")
        if message is not None:
            revision = loaded._revision if is_stored else None
            loaded._cached = CachedBuild(load_message(message), (), revision, is_stored)
        loaded._flag = MessageFlag.MESSAGE_LOAD
        return loaded

    def to_log(self) -> Log:
        """Return an immutable copy of the message in its present state."""
        return Log(id=self.id, created_at=self.created_at, content=self.to_dict())


def kind_names(kind: type[RoledMessage]) -> StoredNames:
    """Return the names of a class in serialised messages. Without `stored_as`, the name is the name of the class."""
    return StoredNames.of(kind, kind.__name__)


def check_kind(message: object, kind: type[RoledMessage]) -> None:
    """Raise RoleError for a value that is not a message of this kind."""
    if not isinstance(message, kind):
        kind_of_value = type(message).__name__
        expected = f"expected a message of type {kind.__name__}, got a value of type {kind_of_value}"
        raise RoleError(f"{expected}; pass a message that create() returned")
