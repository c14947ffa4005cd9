"""Reads what a vendor wrote: answers field by field, and stored requests by the tables of a dialect.

    text_or_empty() · list_or_empty() · object_or_empty() · first_whole_number()   one type, else nothing (law 10)
    without_fields() · unknown_fields()                                            what nothing else holds
    read_count(body)                                                               the tokens that a vendor counted

    request ──History.decode──▶ each of its fields, by the tables of a dialect's own History ──▶ DecodedHistory

    settings   a neutral name, else the plugin's own vendor setting, else `extra_body`, verbatim
    options    declarations; a tool of the vendor's own stays one, in the vendor settings
    all else   a loss with its path in the request

Fields that are null are ignored. A faulty field raises HistoryInvalid, which names its place.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, TypeVar

from pydantic import BaseModel, ValidationError

from sabir.base.errors import HistoryInvalid, NotJSON, OptionInvalid, one_line
from sabir.base.failures import LossKind, ResponseInvalid
from sabir.base.renamed import callable_by_old_names
from sabir.base.values import JSONValue, decode_json
from sabir.contract.dialect import DecodedHistory
from sabir.contract.scope import DecodeScope, RequestScope
from sabir.contract.turns import LossLog
from sabir.options.option import Option
from sabir.reading.fold import ReplyBuilder
from sabir.rendering.owners import declared_name
from sabir.vocabulary.messages import Message, OptionCallPayload, OptionResultPayload, PartsPayload
from sabir.vocabulary.parts import KnownPart, OpaquePart, Part, Sections, TextPart
from sabir.vocabulary.settings import ResponseFormat, Settings

Fields = Mapping[str, Any]
"""A JSON object of the wire; the types of its fields are not trusted, hence Any."""

JSON_OBJECT = ResponseFormat(name="json_object", schema={"type": "object"})
"""The format of replies that are JSON objects of any schema; some wires have a type for it."""

_SHOWN = 120


def text_or_empty(value: JSONValue) -> str:
    """The value if it is a string, else the empty string."""
    return value if isinstance(value, str) else ""


def object_or_empty(value: JSONValue) -> Fields:
    """The value if it is an object, else an empty object."""
    return value if isinstance(value, dict) else {}


def list_or_empty(value: JSONValue) -> list[Any]:
    """The value if it is an array, else an empty array."""
    return value if isinstance(value, list) else []


def unknown_fields(found: Fields, known: Collection[str]) -> dict[str, Any]:
    """The fields that are not among `known`; fields that are null are left out."""
    for name in found:
        if name not in known:
            break
    else:
        return {}
    return {name: value for name, value in found.items() if name not in known and value is not None}


def without_fields(found: Fields, *names: str) -> dict[str, Any]:
    """An object without those fields."""
    rest = dict(found)
    for name in names:
        rest.pop(name, None)
    return rest


def first_whole_number(*figures: JSONValue) -> int | None:
    """The first value that is a whole number, however it is written (70 or 70.0), or None."""
    for figure in figures:
        if type(figure) is int:
            return figure
        if type(figure) is float and figure % 1 == 0:
            return int(figure)
    return None


def read_count(body: bytes, field: str, dialect: str) -> int:
    """The tokens that a vendor counted, in that field of its answer; raises ResponseInvalid for any other answer."""
    try:
        counted = first_whole_number(object_or_empty(decode_json(body)).get(field))
    except NotJSON:
        counted = None
    if counted is None:
        raise ResponseInvalid(f"{dialect} answered a count with {body[:_SHOWN]!r}; expected {field}")
    return counted


Expected = TypeVar("Expected", str, dict[str, Any], list[Any])

_WORDS: Mapping[type, str] = {str: "a string", dict: "an object", list: "an array"}
_NO_PARAMETERS: Mapping[str, JSONValue] = {"type": "object", "properties": {}}


class PartReader(NamedTuple):
    """How a content part becomes a part: the field that holds it (empty: itself), its reader, and the fields read."""

    inner: str
    read: Callable[[Fields, DecodeScope], KnownPart | None]
    known: frozenset[str]

    @classmethod
    def for_text(cls) -> "PartReader":
        """That of a text."""
        return cls("", _read_text, frozenset({"text"}))


def _read_text(found: Fields, scope: DecodeScope) -> TextPart | None:
    said = found.get("text")
    return TextPart(text=said) if isinstance(said, str) else None


@callable_by_old_names
class History:
    """A stored request being read; each dialect has a subclass, with tables of the readers of its fields and roles.

    `readers` run first, in their order. Then each field sets the neutral setting that `neutral` names, or the vendor's
    own setting; a field of `verbatim` goes to `extra_body`. Tables hold methods of the subclass, hence Any.
    """

    vendor_model: ClassVar[type[BaseModel]]
    """The plugin's vendor settings."""
    messages_field = "messages"
    readers: ClassVar[Mapping[str, Callable[[Any, Any], None]]] = {}
    """Field → the method that reads its value."""
    roles: ClassVar[Mapping[str, Callable[[Any, Any, str], None]]] = {}
    """Role → the method that reads a message of that role at a path; "" for a message without a role."""
    neutral: ClassVar[Mapping[str, str]] = {}
    """Field → the neutral setting of the same meaning; of two fields for one, the second stays verbatim."""
    verbatim: ClassVar[Collection[str]] = ()
    """Fields whose name a vendor setting has with another meaning; they go to `extra_body`."""
    streaming: ClassVar[Collection[str]] = ("stream",)
    """Fields that ask for a stream."""
    leaves: ClassVar[Mapping[str, PartReader]] = {}
    """Type of a content part → how it becomes a part."""
    says_nothing: ClassVar[Mapping[str, Collection[Any]]] = {}
    """Field → the default values, which need no loss."""

    def __init__(self, found: Fields, scope: DecodeScope) -> None:
        self.found = found
        self.scope = scope
        self.model = "" if found.get("model") is None else self.expect(found["model"], str, "model")
        self.origin = scope.origin(self.model or None)
        self.messages: list[Message] = []
        self.names: dict[str, str] = {}
        """Call id → option name, of every call so far."""
        self._options: dict[str, Option] = {}
        self._settings: dict[str, Any] = {}
        self._vendor: dict[str, Any] = {}
        self._extra: dict[str, Any] = {}
        self._losses = LossLog()

    @classmethod
    def decode(cls, body: bytes, scope: DecodeScope) -> DecodedHistory:
        """The request as sabir's own data; raises HistoryInvalid for a body that is not a request of this dialect."""
        try:
            found = scope.read_object(body)
        except ResponseInvalid:
            shown = ascii(one_line(body[:200].decode("utf-8", "replace"), 60)) if body.strip() else "an empty text"
            raise HistoryInvalid(f"{shown}; expected a JSON object, the body that was sent") from None
        history = cls(found, scope)
        history.read()
        return history.build()

    @staticmethod
    def expect(value: JSONValue, kind: type[Expected], place: str) -> Expected:
        """The value if it is of that type; HistoryInvalid names its place."""
        if isinstance(value, kind):
            return value
        shown = "missing" if value is None else ascii(value)
        raise HistoryInvalid(f"{place} is {one_line(shown, 60)}; expected {_WORDS[kind]}")

    @classmethod
    def expect_name(cls, value: JSONValue, place: str) -> str:
        """A string of at least one character; HistoryInvalid names its place."""
        if found := cls.expect(value, str, place):
            return found
        raise HistoryInvalid(f"{place} is empty; expected a name or an id")

    @classmethod
    def list_at(cls, found: Fields, name: str, within: str = "") -> list[Any]:
        """The array in a field of an object, the one at the path `within`; none where it is missing or null."""
        return [] if found.get(name) is None else cls.expect(found[name], list, f"{within}.{name}" if within else name)

    def read(self) -> None:
        """Read all fields."""
        for name in dict.fromkeys((*self.readers, *self.neutral, *self.found)):
            value = self.found.get(name)
            if name in self.readers:
                if value is not None or name == self.messages_field:
                    self.readers[name](self, value)
            elif name in self.streaming:
                if value:
                    self.add_loss("dropped", name, "a call streams by `stream` instead of `complete`")
            elif value is not None and name != "model":
                self.read_setting(name, value)

    def read_setting(self, name: str, value: JSONValue) -> None:
        """Read a field that has no reader of its own."""
        if name in self.neutral:
            self.set_setting(self.neutral[name], value, name)
        elif name in self.verbatim:
            self.set_extra_body(name, value)
        else:
            self.set_vendor_setting(name, value)

    def read_messages(self, given: JSONValue) -> None:
        """All messages, in order."""
        for index, message in enumerate(self.expect(given, list, self.messages_field)):
            path = f"{self.messages_field}[{index}]"
            self.read_message(self.expect(message, dict, path), path)

    def read_message(self, message: Fields, path: str) -> None:
        """Read one message, by its role; raises HistoryInvalid for an unknown role."""
        role = message.get("role")
        reader = self.roles.get(role or "") if isinstance(role, str | None) else None
        if reader is None:
            expected = ", ".join(sorted(filter(None, self.roles)))
            raise HistoryInvalid(f"{path}.role is {one_line(ascii(role), 40)}; expected one of {expected}")
        reader(self, message, path)

    def add_loss(self, kind: LossKind, path: str, reason: str) -> None:
        """Add a loss by its path in the request."""
        self._losses.add(kind, reason, path=path)

    def add_losses_of_unknown_fields(self, found: Fields, known: Collection[str], path: str, reason: str) -> None:
        """Add a loss for every field that is not `known` and neither empty nor a default."""
        for name, value in found.items():
            if name not in known and value not in (None, [], {}, "") and value not in self.says_nothing.get(name, ()):
                self.add_loss("dropped", f"{path}.{name}", reason)

    def add_message(self, policy: str, parts: Sequence[KnownPart], path: str) -> None:
        """Add a message of parts by another policy than the model's."""
        if not parts:
            self.add_loss("dropped", path, "the message is empty")
            return
        self.messages.append(Message(policy=policy, payload=PartsPayload(parts=tuple(parts))))

    def parts(
        self, content: JSONValue, path: str, opaque: Callable[[JSONValue], JSONValue] = lambda block: block
    ) -> list[KnownPart]:
        """The parts of a content, which may be a text; one that no part can be is `opaque` of it, for this dialect."""
        given = [content] if isinstance(content, str) else self.expect(content, list, path)
        return [
            self.part(each, f"{path}[{index}]") or OpaquePart(dialect=self.scope.target.dialect, block=opaque(each))
            for index, each in enumerate(given)
        ]

    def part(self, content: JSONValue, path: str) -> KnownPart | None:
        """The part that a content part becomes, by the leaves; None if no leaf can read it."""
        whole = object_or_empty({"type": "text", "text": content} if isinstance(content, str) else content)
        leaf = self.leaves.get(text_or_empty(whole.get("type")))
        if leaf is None:
            return None
        found: Any = whole.get(leaf.inner) if leaf.inner else whole
        found = {"url": found} if isinstance(found, str) else object_or_empty(found)
        part = leaf.read(found, self.scope)
        if part is not None:
            reason = "a part cannot store it"
            self.add_losses_of_unknown_fields(
                found, {*leaf.known, "type"}, f"{path}.{leaf.inner}" if leaf.inner else path, reason
            )
            if leaf.inner:
                self.add_losses_of_unknown_fields(whole, {leaf.inner, "type"}, path, reason)
        return part

    def add_result(
        self, call_id: str, said: str | Sequence[KnownPart], path: str, name: str = "", **further: Any
    ) -> None:
        """Add the result of a call; `name` is the option's if no call gives it, `further` the result's other fields."""
        value, parts = (said, ()) if isinstance(said, str) else (None, tuple(said))
        option_name = self.option_of(call_id, path, name)
        given = {"invocation_id": call_id, "option_name": option_name, "result": value, "parts": parts, **further}
        self.messages.append(Message(policy=option_name, payload=OptionResultPayload.model_validate(given)))

    def option_of(self, call_id: str, path: str, name: str = "") -> str:
        """The option that a call chose; without an earlier call of that id, `name`, or else "unknown" and a loss."""
        if found := self.names.get(call_id) or name:
            return found
        self.add_loss(
            "synthesized", path, f"no earlier call has the id {call_id!r}, so the name of its option is unknown"
        )
        return "unknown"

    def extend(self, blocks: Iterable[Part | OptionCallPayload], path: str) -> Sequence[Message]:
        """Add the model's messages, as in a reply, and remember its calls; returns the messages."""
        messages = ReplyBuilder(self.scope, blocks).messages(self.origin)
        if not messages:
            self.add_loss("dropped", path, "the message is empty")
        self.messages += messages
        self.names |= {call.invocation_id: call.option_name for each in messages if (call := each.call)}
        return messages

    def set_setting(self, setting: str, value: JSONValue, field: str, within: str = "") -> None:
        """Set a neutral setting; a value that it does not take, or a second one, goes to `extra_body`.

        `within` names the object of the request that holds the field.
        """
        if setting in self._settings or not self.accepts_setting(setting, value):
            self.set_extra_body(field, value, within)
        else:
            self._settings[setting] = value

    def accepts_setting(self, setting: str, value: JSONValue) -> bool:
        """Whether a neutral setting takes that exact value."""
        try:
            taken = getattr(Settings(**{setting: value}), setting)
        except ValueError:
            return False
        given = tuple(value) if isinstance(value, list) else (value,) if setting == "stop" else value
        return taken is not None and bool(taken == given)

    def set_vendor_setting(self, name: str, value: JSONValue, field: str = "", within: str = "") -> None:
        """Set one of the plugin's vendor settings; an unknown name or a refused value goes to `extra_body`.

        There it has the name `field`, by default its own, in the object of the request that `within` names.
        """
        try:
            self.vendor_model.model_validate({name: value})
            self._vendor[name] = value
        except ValidationError:
            self.set_extra_body(field or name, value, within)

    def set_extra_body(self, name: str, value: JSONValue, within: str = "") -> None:
        """Put a field into `extra_body`, verbatim: at its top, or in the object of the request that `within` names."""
        fields_there = self._extra.setdefault(within, {}) if within else self._extra
        fields_there[name] = value

    def add_option(self, name: str, description: str, parameters: JSONValue, vendor: Sections | None = None) -> bool:
        """Add an option from its declaration; returns whether the declaration is one of an option."""
        name = self.scope.option_names.get(name, name)
        if not name or name in self._options or not isinstance(parameters, dict | None):
            return False
        try:
            self._options[name] = Option.from_schema(name, description, parameters or _NO_PARAMETERS, vendor=vendor)
        except OptionInvalid:
            return False
        return True

    def add_vendor_tool(self, tool: JSONValue, path: str) -> None:
        """Keep a declaration that is no option's in the vendor settings, verbatim."""
        self._vendor["tools"] = [*self._vendor.get("tools", ()), self.expect(tool, dict, path)]

    def set_option_choice(self, choice: JSONValue, name: str) -> bool:
        """Set the option to choose: one of CHOICES, or the offered option or vendor's tool of that name.

        Returns whether it was set.
        """
        chosen = self.scope.option_names.get(name, name)
        offered = {*self._options, *map(declared_name, self._vendor.get("tools", ()))}
        if isinstance(choice, str) and choice in RequestScope.CHOICES:
            chosen = choice
        elif not chosen or chosen in RequestScope.CHOICES or chosen not in offered:
            return False
        self._settings["option_choice"] = chosen
        return True

    def set_response_format(self, name: str, schema: JSONValue, description: str | None = None) -> bool:
        """Set the JSON schema of the reply; returns whether the neutral setting takes it."""
        if not isinstance(schema, dict) or not name:
            return False
        self._settings["response_format"] = ResponseFormat(name=name, schema=schema, description=description)
        return True

    def set_json_response(self) -> None:
        """Set that replies are JSON objects, of any schema."""
        self._settings["response_format"] = JSON_OBJECT

    def build(self) -> DecodedHistory:
        """The decoded history."""
        vendor = {self.scope.target.provider: self._vendor} if self._vendor else {}
        given = {**self._settings, "vendor": vendor, "extra_body": self._extra}
        return DecodedHistory(
            messages=tuple(self.messages),
            options=tuple(self._options.values()),
            settings=Settings(**{name: value for name, value in given.items() if value not in ({}, None)}),
            model=self.model,
            losses=tuple(self._losses.losses),
        )
