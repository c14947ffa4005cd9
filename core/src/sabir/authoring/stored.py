"""Helpers that read a vendor's JSON: answers field by field, and stored requests by tables.

    text_or_empty() · list_or_empty() · object_or_empty() · first_whole_number()   the value if it has the type (law 10)
    without_fields() · unknown_fields()                                            the other fields of an object
    read_count(body)                                                               the number of tokens in an answer

    request ──History.decode──▶ every field, by the tables of a subclass of History ──▶ DecodedHistory

    settings   a setting of Settings or of the plugin; a value that it does not accept goes to `extra_body`, unchanged
    options    declarations of options; a vendor's own tool goes to the vendor settings
    others     a loss with the field's path in the request

Fields that are null are ignored, except the field with the messages. A message of a wrong form raises HistoryInvalid,
which names its place.
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
from sabir.options.native import NativeOption
from sabir.options.option import Option
from sabir.reading.fold import ReplyBuilder
from sabir.rendering.owners import declared_name
from sabir.vocabulary.messages import Message, OptionCallPayload, OptionResultPayload, PartsPayload
from sabir.vocabulary.parts import KnownPart, OpaquePart, Part, Sections, TextPart
from sabir.vocabulary.settings import ResponseFormat, Settings

Fields = Mapping[str, Any]
"""The type of a JSON object of an API. The types of its values are unknown, hence Any."""

JSON_OBJECT = ResponseFormat(name="json_object", schema={"type": "object"})
"""The response format for a JSON object of any schema, for APIs with such a format."""

_QUOTED = 120


def text_or_empty(value: JSONValue) -> str:
    """Return the value if it is a string, otherwise ""."""
    return value if isinstance(value, str) else ""


def object_or_empty(value: JSONValue) -> Fields:
    """Return the value if it is a JSON object (a dict), otherwise a new empty dict."""
    return value if isinstance(value, dict) else {}


def list_or_empty(value: JSONValue) -> list[Any]:
    """Return the value if it is a JSON array (a list), otherwise a new empty list."""
    return value if isinstance(value, list) else []


def unknown_fields(fields: Fields, known: Collection[str]) -> dict[str, Any]:
    """Return the fields of an object whose names are not in `known`, as a new dict. Fields that are null are left out.

    >>> from sabir.authoring import unknown_fields
    >>> unknown_fields({"text": "Hi", "trace": "t-1", "seal": None}, {"text"})
    {'trace': 't-1'}
    """
    for name in fields:
        if name not in known:
            break
    else:
        return {}
    return {name: value for name, value in fields.items() if name not in known and value is not None}


def without_fields(fields: Fields, *names: str) -> dict[str, Any]:
    """Return a copy of an object without the fields of these names. Names that the object does not have are ignored."""
    copy = dict(fields)
    for name in names:
        copy.pop(name, None)
    return copy


def first_whole_number(*figures: JSONValue) -> int | None:
    """Return the first argument that is a whole number, as an int (70.0 becomes 70). None if there is no such argument.

    Booleans and numbers in strings do not count.

    >>> from sabir.authoring import first_whole_number
    >>> first_whole_number(None, 70.0, 3)
    70
    """
    for figure in figures:
        if type(figure) is int:
            return figure
        if type(figure) is float and figure % 1 == 0:
            return int(figure)
    return None


def read_count(body: bytes, field: str, dialect: str) -> int:
    """Return the number of tokens in the field `field` of a response body. For `Dialect.decode_count`, as
    `partial(read_count, field=…, dialect=…)`.

    `dialect` is the dialect's name for the error. Raises ResponseInvalid if the body has no whole number in this field.
    """
    try:
        count = first_whole_number(object_or_empty(decode_json(body)).get(field))
    except NotJSON:
        count = None
    if count is None:
        raise ResponseInvalid(f"{dialect} answered a count with {body[:_QUOTED]!r}; expected the field {field!r}")
    return count


Expected = TypeVar("Expected", str, dict[str, Any], list[Any])

_WORDS: Mapping[type, str] = {str: "a string", dict: "an object", list: "an array"}
"""Expected type → its name in an error."""
_NO_PARAMETERS: Mapping[str, JSONValue] = {"type": "object", "properties": {}}


class PartReader(NamedTuple):
    """How a content part of a stored request becomes a part of a message. The values of `History.leaves`.

    `inner` is the field of the content part that contains the content; "" means the content part itself. `read` is a
    function that gets this object (a string becomes {"url": string}) and the DecodeScope, and returns the part, or None
    if it cannot. `known` are the fields that `read` uses; other fields are reported as losses.
    """

    inner: str
    read: Callable[[Fields, DecodeScope], KnownPart | None]
    known: frozenset[str]

    @classmethod
    def for_text(cls) -> "PartReader":
        """Return the PartReader for text parts, which are objects with the field "text"."""
        return cls("", _read_text, frozenset({"text"}))


def _read_text(content: Fields, scope: DecodeScope) -> TextPart | None:
    text = content.get("text")
    return TextPart(text=text) if isinstance(text, str) else None


@callable_by_old_names
class History:
    """Base class of a dialect's reader of stored requests. A subclass has tables of methods; `History.decode` is the
    dialect's `decode_history`.

    The fields in `early` are read first, in the order of `early`, and then all others in the request's order. A field
    in `readers` is read by its method. A field in `neutral` becomes a setting of Settings, any other field the vendor
    setting of the same name, unless it is `model` or in `streaming` or `verbatim`. A value that the setting does not
    accept goes to `extra_body`.
    """

    scope: DecodeScope
    """The DecodeScope with which the request is decoded: the target, the policy of the model, and option names.
    `self.found` is the request, and `self.model` the model's name in it, or "".
    """
    vendor_model: ClassVar[type[BaseModel]]
    """The pydantic model of the plugin's vendor settings."""
    messages_field: str = "messages"
    """The name of the field that contains the messages."""
    readers: ClassVar[Mapping[str, Callable[[Any, Any], None]]] = {}
    """Field of the request → method that reads the field's value. Not called for a field that is missing or null,
    except `messages_field`.
    """
    early: ClassVar[Collection[str] | None] = None
    """Fields that are read before all others, because methods of other fields depend on them: the system text, if
    messages follow it, and the declarations of options, if a choice names one. None, for older plugins, means all of
    `readers` and then all of `neutral`.
    """
    roles: ClassVar[Mapping[str, Callable[[Any, Any, str], None]]] = {}
    """Role → method that reads a message of this role. The method gets the message and its path. The key "" is for
    messages without a role.
    """
    neutral: ClassVar[Mapping[str, str]] = {}
    """Field of the request → the setting of Settings with the same meaning. If two fields of a request have the same
    setting, the second field goes to `extra_body`.
    """
    verbatim: ClassVar[Collection[str]] = ()
    """Fields that always go to `extra_body`, although a vendor setting has the same name, because the
    meanings differ.
    """
    streaming: ClassVar[Collection[str]] = ("stream",)
    """Fields that ask for a stream. A field that is true or not empty is reported as a loss."""
    leaves: ClassVar[Mapping[str, PartReader]] = {}
    """The field "type" of a content part → the PartReader for this type."""
    says_nothing: ClassVar[Mapping[str, Collection[Any]]] = {}
    """Field → its default values. `add_losses_of_unknown_fields` adds no loss for a field with such a value."""

    def __init__(self, request: Fields, scope: DecodeScope) -> None:
        self.found, self.scope = request, scope
        self.model = "" if request.get("model") is None else self.expect(request["model"], str, "model")
        """The model's name in the request, or ""."""
        self.origin = scope.origin(self.model or None)
        """The origin of the model's messages."""
        self.messages: list[Message] = []
        """The messages that were read so far."""
        self.names: dict[str, str] = {}
        """Call id → option name, for every call so far."""
        self._options: dict[str, Option] = {}
        self._settings: dict[str, Any] = {}
        self._vendor: dict[str, Any] = {}
        self._extra: dict[str, Any] = {}
        self._losses = LossLog()

    @classmethod
    def decode(cls, body: bytes, scope: DecodeScope) -> DecodedHistory:
        """Convert the body of a stored request to a DecodedHistory. Raises HistoryInvalid for a body that is not a
        request of this dialect.
        """
        try:
            request = scope.read_object(body)
        except ResponseInvalid:
            quoted = ascii(one_line(body[:200].decode("utf-8", "replace"), 60)) if body.strip() else "an empty text"
            raise HistoryInvalid(f"{quoted}; expected a JSON object, the body that was sent") from None
        history = cls(request, scope)
        history.read()
        return history.build()

    @staticmethod
    def expect(value: JSONValue, kind: type[Expected], place: str) -> Expected:
        """Return the value if it has the type `kind` (str, dict or list), otherwise raise HistoryInvalid. `place` is
        the value's path in the request, for the error.
        """
        if isinstance(value, kind):
            return value
        quoted = "missing" if value is None else ascii(value)
        raise HistoryInvalid(f"{place} is {one_line(quoted, 60)}; expected {_WORDS[kind]}")

    @classmethod
    def expect_name(cls, value: JSONValue, place: str) -> str:
        """Return the value if it is a string that is not empty, otherwise raise HistoryInvalid. `place` is the value's
        path in the request, for the error.
        """
        if name := cls.expect(value, str, place):
            return name
        raise HistoryInvalid(f"{place} is empty; expected a name or an id")

    @classmethod
    def list_at(cls, fields: Fields, name: str, within: str = "") -> list[Any]:
        """Return the array in the field `name` of an object; [] if the field is missing or null. Raises HistoryInvalid
        for another type.

        `within` is the object's path in the request, for the error.
        """
        array = fields.get(name)
        return [] if array is None else cls.expect(array, list, f"{within}.{name}" if within else name)

    def read(self) -> None:
        """Read all fields of the request. Called by `decode`."""
        early = (*self.readers, *self.neutral) if self.early is None else self.early
        for name in dict.fromkeys((*early, *self.found, self.messages_field)):
            value = self.found.get(name)
            if name in self.readers:
                if value is not None or name == self.messages_field:
                    self.readers[name](self, value)
            elif name in self.streaming:
                if value:
                    self.add_loss("dropped", name, "a history does not store this field; call `stream` to get a stream")
            elif value is not None and name != "model":
                self.read_setting(name, value)

    def read_setting(self, name: str, value: JSONValue) -> None:
        """Read a field without a method in `readers`: set a setting of Settings, a vendor setting or a field of
        `extra_body`.
        """
        if name in self.neutral:
            self.set_setting(self.neutral[name], value, name)
        elif name in self.verbatim:
            self.set_extra_body(name, value)
        else:
            self.set_vendor_setting(name, value)

    def read_messages(self, messages: JSONValue) -> None:
        """Read all messages, in order. Use in `readers` for the field that contains the messages."""
        for index, message in enumerate(self.expect(messages, list, self.messages_field)):
            path = f"{self.messages_field}[{index}]"
            self.read_message(self.expect(message, dict, path), path)

    def read_message(self, message: Fields, path: str) -> None:
        """Read one message with the method for its role. Raises HistoryInvalid for an unknown role."""
        role = message.get("role")
        reader = self.roles.get(role or "") if isinstance(role, str | None) else None
        if reader is None:
            expected = ", ".join(sorted(filter(None, self.roles)))
            raise HistoryInvalid(f"{path}.role is {one_line(ascii(role), 40)}; expected one of {expected}")
        reader(self, message, path)

    def add_loss(self, kind: LossKind, path: str, reason: str) -> None:
        """Add a loss. `path` is the place in the request."""
        self._losses.add(kind, reason, path=path)

    def add_losses_of_unknown_fields(self, fields: Fields, known: Collection[str], path: str, reason: str) -> None:
        """Add a loss for every field of `fields` that is not in `known`, not empty and not a default by `says_nothing`.

        `path` is the path of `fields` in the request, and `reason` the reason of the losses.
        """
        for name, value in fields.items():
            if name not in known and value not in (None, [], {}, "") and value not in self.says_nothing.get(name, ()):
                self.add_loss("dropped", f"{path}.{name}", reason)

    def add_message(self, policy: str, parts: Sequence[KnownPart], path: str) -> None:
        """Add a message with these parts, for example of the policy "user" or "system". If `parts` is empty, add a loss
        instead. `path` is the message's path in the request, for the loss.

        Use `extend` for the model's own messages.
        """
        if not parts:
            self.add_loss("dropped", path, "the message is empty")
            return
        self.messages.append(Message(policy=policy, payload=PartsPayload(parts=tuple(parts))))

    def parts(
        self, content: JSONValue, path: str, opaque: Callable[[JSONValue], JSONValue] = lambda block: block
    ) -> list[KnownPart]:
        """Return the parts for a message's content, which is a string or a list of content parts.

        A content part that no reader in `leaves` can read becomes an OpaquePart of this dialect, with the block
        `opaque(content part)`. `path` is the content's path in the request. Raises HistoryInvalid for another type.
        """
        contents = [content] if isinstance(content, str) else self.expect(content, list, path)
        return [
            self.part(each, f"{path}[{index}]") or OpaquePart(dialect=self.scope.target.dialect, block=opaque(each))
            for index, each in enumerate(contents)
        ]

    def part(self, content: JSONValue, path: str) -> KnownPart | None:
        """Return the part for one content part, by the reader in `leaves` for its type. None if there is no reader, or
        if the reader cannot read it. Fields that the reader does not know are reported as losses.
        """
        outer = object_or_empty({"type": "text", "text": content} if isinstance(content, str) else content)
        leaf = self.leaves.get(text_or_empty(outer.get("type")))
        if leaf is None:
            return None
        inner: Any = outer.get(leaf.inner) if leaf.inner else outer
        inner = {"url": inner} if isinstance(inner, str) else object_or_empty(inner)
        part = leaf.read(inner, self.scope)
        if part is not None:
            reason = "a part cannot store it"
            place = f"{path}.{leaf.inner}" if leaf.inner else path
            self.add_losses_of_unknown_fields(inner, {*leaf.known, "type"}, place, reason)
            if leaf.inner:
                self.add_losses_of_unknown_fields(outer, {leaf.inner, "type"}, path, reason)
        return part

    def add_result(
        self, call_id: str, content: str | Sequence[KnownPart], path: str, name: str = "", **further: Any
    ) -> None:
        """Add the result of the option call with the id `call_id`. `content` is the result as text or parts.

        `path` is the result's path in the request, for a loss. `name` is the option's name, for results whose call is
        unknown. `further` are other fields of OptionResultPayload, such as `is_error=True`.
        """
        value, parts = (content, ()) if isinstance(content, str) else (None, tuple(content))
        option_name = self.option_of(call_id, path, name)
        fields = {"invocation_id": call_id, "option_name": option_name, "result": value, "parts": parts, **further}
        self.messages.append(Message(policy=option_name, payload=OptionResultPayload.model_validate(fields)))

    def option_of(self, call_id: str, path: str, name: str = "") -> str:
        """Return the name of the option that the call with this id calls. If no earlier call has the id, return `name`,
        or if `name` is "" return "unknown" and add a loss at `path`.
        """
        if option_name := self.names.get(call_id) or name:
            return option_name
        self.add_loss("synthesized", path, f"no earlier call has the id {call_id!r}, so its option's name is unknown")
        return "unknown"

    def extend(self, blocks: Iterable[Part | OptionCallPayload], path: str) -> Sequence[Message]:
        """Add messages of the model from parts and option calls, and return the new messages. Later results can refer
        to these calls by id. If `blocks` has no content, add a loss at `path`.
        """
        messages = ReplyBuilder(self.scope, blocks).messages(self.origin)
        if not messages:
            self.add_loss("dropped", path, "the message is empty")
        self.messages += messages
        self.names |= {call.invocation_id: call.option_name for each in messages if (call := each.call)}
        return messages

    def set_setting(self, setting: str, value: JSONValue, field: str, within: str = "") -> None:
        """Set a setting of Settings. A value that the setting does not accept, or a second value, goes to `extra_body`
        as `field` instead.

        `within` is the name of the object in the request that contains the field; "" means the request itself.
        """
        if setting in self._settings or not self.accepts_setting(setting, value):
            self.set_extra_body(field, value, within)
        else:
            self._settings[setting] = value

    def accepts_setting(self, setting: str, value: JSONValue) -> bool:
        """Return whether the setting of Settings accepts the value without changing it."""
        try:
            stored = getattr(Settings(**{setting: value}), setting)
        except ValueError:
            return False
        expected = tuple(value) if isinstance(value, list) else (value,) if setting == "stop" else value
        return stored is not None and bool(stored == expected)

    def set_vendor_setting(self, name: str, value: JSONValue, field: str = "", within: str = "") -> None:
        """Set one of the plugin's vendor settings. If `vendor_model` does not accept the name or the value, set a field
        of `extra_body` instead.

        The field's name is `field` ("" means `name`), in the object of the request that `within` names ("" means the
        request itself).
        """
        try:
            self.vendor_model.model_validate({name: value})
            self._vendor[name] = value
        except ValidationError:
            self.set_extra_body(field or name, value, within)

    def set_extra_body(self, name: str, value: JSONValue, within: str = "") -> None:
        """Set a field of `extra_body`, unchanged. `within` is the name of the object in the request that contains the
        field; "" means the request itself.
        """
        (self._extra.setdefault(within, {}) if within else self._extra)[name] = value

    def add_option(self, name: str, description: str, parameters: JSONValue, vendor: Sections | None = None) -> bool:
        """Add an option from its declaration in the request, and return True. Return False, and add nothing, if the
        name is empty, reserved or used already, or if `parameters` is not the JSON schema of an object.

        `parameters` None means no parameters. `vendor` are the vendor hints of the option, or None.
        """
        name = self.scope.option_names.get(name, name)
        if not name or name in self._options or not isinstance(parameters, dict | None):
            return False
        try:
            self._options[name] = Option.from_schema(name, description, parameters or _NO_PARAMETERS, vendor=vendor)
        except OptionInvalid:
            return False
        return True

    def add_native(self, fields: Mapping[str, Any] | None) -> bool:
        """Add an option for the vendor's own tool, with these fields of NativeOption, and return True. Return False,
        and add nothing, for None, for fields that NativeOption does not accept, and if the name is used already.
        """
        try:
            option = None if fields is None else NativeOption.model_validate(fields)
        except ValidationError:
            return False
        if option is None or option.name in self._options:
            return False
        self._options[option.name] = option
        return True

    def add_vendor_tool(self, tool: JSONValue, path: str) -> None:
        """Append the declaration of a vendor's own tool to the vendor setting "tools", unchanged. Raises HistoryInvalid
        if `tool` is not an object. `path` is its path in the request, for the error.
        """
        self._vendor["tools"] = [*self._vendor.get("tools", ()), self.expect(tool, dict, path)]

    def set_option_choice(self, choice: JSONValue, name: str) -> bool:
        """Set `option_choice` to `choice` if it is "auto", "none" or "required", else to the option's name `name`.

        Return True. In the second case, return False, and set nothing, if no added option or vendor tool has the name.
        Call it after the options were added.
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
        """Set the JSON schema of the reply, and return True. Return False, and set nothing, if `schema` is not an
        object or `name` is empty.
        """
        if not isinstance(schema, dict) or not name:
            return False
        self._settings["response_format"] = ResponseFormat(name=name, schema=schema, description=description)
        return True

    def set_json_response(self) -> None:
        """Set the response format to a JSON object of any schema: JSON_OBJECT."""
        self._settings["response_format"] = JSON_OBJECT

    def build(self) -> DecodedHistory:
        """Return the decoded history. Called by `decode`."""
        vendor = {self.scope.target.provider: self._vendor} if self._vendor else {}
        settings = {**self._settings, "vendor": vendor, "extra_body": self._extra}
        return DecodedHistory(
            messages=tuple(self.messages),
            options=tuple(self._options.values()),
            settings=Settings(**{name: value for name, value in settings.items() if value not in ({}, None)}),
            model=self.model,
            losses=tuple(self._losses.losses),
        )
