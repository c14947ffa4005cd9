"""A stored request → DecodedHistory: what the readers of all dialects share; each has its own tables.

    request ──read_request──▶ its fields ──▶ History ──whole──▶ DecodedHistory

    settings   a neutral name, else the plugin's own vendor setting, else `extra_body`, verbatim
    options    declarations; a tool of the vendor's own stays one, in the vendor settings
    all else   a loss with its path in the request

Fields that are null say nothing. What is wrong is a HistoryInvalid that names its place.
"""

import base64
import binascii
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from pydantic import BaseModel, ValidationError

from sabir.authoring.bodies import Fields, fields, read_object, text
from sabir.base.errors import HistoryInvalid, OptionInvalid, one_line
from sabir.base.failures import ResponseInvalid
from sabir.base.losses import LossKind
from sabir.base.values import JSONValue
from sabir.contract.dialect import DecodedHistory
from sabir.contract.scope import DecodeScope, LossLog
from sabir.options.option import Option
from sabir.vocabulary.hints import Sections
from sabir.vocabulary.media import Modality, sniff_mime
from sabir.vocabulary.messages import Message, OptionResultPayload, PartsPayload
from sabir.vocabulary.parts import KnownPart, MediaPart, TextPart
from sabir.vocabulary.settings import ResponseFormat, Settings

Expected = TypeVar("Expected", str, dict[str, Any], list[Any])

CHOICES = ("auto", "none", "required")
_WORDS: Mapping[type, str] = {str: "a string", dict: "an object", list: "an array"}
_NO_PARAMETERS: Mapping[str, JSONValue] = {"type": "object", "properties": {}}


def read_request(body: bytes, scope: DecodeScope) -> dict[str, Any]:
    """The JSON object of a request; HistoryInvalid for anything else."""
    try:
        return read_object(body, scope)
    except ResponseInvalid:
        shown = ascii(one_line(body[:200].decode("utf-8", "replace"), 60)) if body.strip() else "an empty text"
        raise HistoryInvalid(f"{shown}; expected a JSON object, the body that was sent") from None


def expect(value: JSONValue, kind: type[Expected], place: str) -> Expected:
    """The value if it is of that type; HistoryInvalid names its place."""
    if isinstance(value, kind):
        return value
    shown = "missing" if value is None else ascii(value)
    raise HistoryInvalid(f"{place} is {one_line(shown, 60)}; expected {_WORDS[kind]}")


def expect_name(value: JSONValue, place: str) -> str:
    """A string of at least one character; HistoryInvalid names its place."""
    if found := expect(value, str, place):
        return found
    raise HistoryInvalid(f"{place} is empty; expected a name or an id")


class Leaf(NamedTuple):
    """How a content part becomes a part: the field that holds it (empty: itself), its reader, and what that reads."""

    inner: str
    read: Callable[[Fields, DecodeScope], KnownPart | None]
    known: frozenset[str]


def read_text(found: Fields, scope: DecodeScope) -> TextPart | None:
    """A text."""
    said = found.get("text")
    return TextPart(text=said) if isinstance(said, str) else None


def read_hints(found: Fields, model: type[BaseModel], scope: DecodeScope) -> Sections | None:
    """The fields of a medium or a declaration that are vendor hints; None where their model refuses one."""
    given = {name: found[name] for name in model.model_fields if found.get(name) is not None}
    try:
        model.model_validate(given)
    except ValidationError:
        return None
    return {scope.target.provider: given} if given else {}


def medium(modality: Modality, url: str, name: JSONValue = None, vendor: Sections | None = None) -> MediaPart | None:
    """A media part, or None for a URL that no part may carry."""
    try:
        return MediaPart(modality=modality, url=url, name=text(name) or None, vendor=vendor)
    except ValidationError:
        return None


def file_url(file_id: JSONValue, scope: DecodeScope) -> str:
    """The URL of a file that is with the provider."""
    return f"provider-file:{scope.target.provider}/{text(file_id)}"


def data_url(data: str, mime: str) -> str:
    """Base64 data as a URL: of the type that its first bytes tell, else of the one given; a URL stays as it is."""
    if data[:5].lower() == "data:":
        return data
    try:
        found = sniff_mime(base64.b64decode(data[:64]))
    except (binascii.Error, ValueError):
        found = None
    return f"data:{found or mime};base64,{data}"


class History:
    """A decoded history being put together; a dialect's reader adds to it, or is a subclass."""

    says_nothing: Mapping[str, Collection[Any]] = {}
    """Field → values that say what would hold without them."""

    def __init__(self, found: Fields, scope: DecodeScope, vendor_model: type[BaseModel]) -> None:
        self.scope = scope
        self.model = "" if found.get("model") is None else expect(found["model"], str, "model")
        self.origin = scope.origin(self.model or None)
        self.messages: list[Message] = []
        self.names: dict[str, str] = {}
        """Call id → option name, of every call so far."""
        self._vendor_model = vendor_model
        self._options: dict[str, Option] = {}
        self._settings: dict[str, Any] = {}
        self._vendor: dict[str, Any] = {}
        self._extra: dict[str, Any] = {}
        self._losses = LossLog()

    def lose(self, kind: LossKind, path: str, reason: str) -> None:
        """Write down what has no place, by its path in the request."""
        self._losses.add(kind, reason, path=path)

    def lose_unknown(self, found: Fields, known: Collection[str], path: str, reason: str) -> None:
        """Write down every field that nothing reads and that says something."""
        for name, value in found.items():
            if name not in known and value not in (None, [], {}, "") and value not in self.says_nothing.get(name, ()):
                self.lose("dropped", f"{path}.{name}", reason)

    def say(self, policy: str, parts: Sequence[KnownPart], path: str) -> None:
        """Add a message of parts by someone else than the model."""
        if not parts:
            self.lose("dropped", path, "the message is empty")
            return
        self.messages.append(Message(policy=policy, payload=PartsPayload(parts=tuple(parts))))

    def part(self, content: JSONValue, leaves: Mapping[str, Leaf], path: str) -> KnownPart | None:
        """The part that a content part is, by the dialect's table; None for one that no part can be."""
        whole = fields({"type": "text", "text": content} if isinstance(content, str) else content)
        leaf = leaves.get(text(whole.get("type")))
        if leaf is None:
            return None
        found: Any = whole.get(leaf.inner) if leaf.inner else whole
        found = {"url": found} if isinstance(found, str) else fields(found)
        part = leaf.read(found, self.scope)
        if part is not None:
            reason = "a part has no place for it"
            self.lose_unknown(found, {*leaf.known, "type"}, f"{path}.{leaf.inner}" if leaf.inner else path, reason)
            if leaf.inner:
                self.lose_unknown(whole, {leaf.inner, "type"}, path, reason)
        return part

    def answer(self, call_id: str, said: str | Sequence[KnownPart], path: str, name: str = "") -> None:
        """Add the result of a call; `name` is the option's where no call of the request tells it."""
        value, parts = (said, ()) if isinstance(said, str) else (None, tuple(said))
        option_name = self.option_of(call_id, path, name)
        self.add_result(OptionResultPayload(invocation_id=call_id, option_name=option_name, result=value, parts=parts))

    def option_of(self, call_id: str, path: str, name: str = "") -> str:
        """The option that a call chose; `name`, or a made-up one and a loss, where no call before it tells."""
        if found := self.names.get(call_id) or name:
            return found
        self.lose("synthesized", path, f"no call before it has the id {call_id!r}, so that its option is unknown")
        return "unknown"

    def add_result(self, payload: OptionResultPayload) -> None:
        """Add a result; its policy is its option."""
        self.messages.append(Message(policy=payload.option_name, payload=payload))

    def extend(self, messages: Sequence[Message]) -> None:
        """Add what the model said, and remember what it called."""
        self.messages += messages
        self.names |= {call.invocation_id: call.option_name for each in messages if (call := each.call)}

    def put(self, setting: str, value: JSONValue, field: str) -> None:
        """Set a neutral setting; what it does not take, or was set before, stays in the request's own field."""
        if setting in self._settings or not self.takes(setting, value):
            self._extra[field] = value
        else:
            self._settings[setting] = value

    def takes(self, setting: str, value: JSONValue) -> bool:
        """Whether a neutral setting says that very value."""
        try:
            taken = getattr(Settings(**{setting: value}), setting)
        except ValueError:
            return False
        given = tuple(value) if isinstance(value, list) else (value,) if setting == "stop" else value
        return taken is not None and bool(taken == given)

    def put_vendor(self, name: str, value: JSONValue) -> None:
        """Set one of the plugin's vendor settings; what they do not have or take goes to the extra body."""
        try:
            self._vendor_model.model_validate({name: value})
            self._vendor[name] = value
        except ValidationError:
            self._extra[name] = value

    def put_extra(self, name: str, value: JSONValue) -> None:
        """Keep a field verbatim."""
        self._extra[name] = value

    def add_option(self, name: str, description: str, parameters: JSONValue, vendor: Sections | None = None) -> bool:
        """Add an option by what declares it; whether it is one."""
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
        self._vendor["tools"] = [*self._vendor.get("tools", ()), expect(tool, dict, path)]

    def choose(self, choice: JSONValue, name: str) -> bool:
        """Set which option is to be chosen: a word of CHOICES, or the offered one of that name; whether that went."""
        chosen = self.scope.option_names.get(name, name)
        if isinstance(choice, str) and choice in CHOICES:
            chosen = choice
        elif not chosen or chosen in CHOICES or chosen not in self._offered():
            return False
        self._settings["option_choice"] = chosen
        return True

    def _offered(self) -> set[str]:
        """Names of the options and of the vendor's own tools, which stand in them or in an object within."""
        tools = self._vendor.get("tools", ())
        declared = (fields(tool.get(text(tool.get("type")))) or tool for tool in tools)
        return {*self._options, *(text(each.get("name")) for each in declared)}

    def hold_to(self, name: str, schema: JSONValue, description: str | None = None) -> bool:
        """Set the schema that replies are held to; whether a neutral setting can say it."""
        if not isinstance(schema, dict) or not name:
            return False
        self._settings["response_format"] = ResponseFormat(name=name, schema=schema, description=description)
        return True

    def whole(self) -> DecodedHistory:
        """The history."""
        vendor = {self.scope.target.provider: self._vendor} if self._vendor else {}
        given = {**self._settings, "vendor": vendor, "extra_body": self._extra}
        return DecodedHistory(
            messages=tuple(self.messages),
            options=tuple(self._options.values()),
            settings=Settings(**{name: value for name, value in given.items() if value not in ({}, None)}),
            model=self.model,
            losses=tuple(self._losses.losses),
        )


def listed(found: Fields, name: str) -> list[Any]:
    """The array in a field; none where it is missing or null."""
    return [] if found.get(name) is None else expect(found[name], list, name)
