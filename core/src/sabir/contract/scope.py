"""The arguments of a dialect's functions besides turns: for the other fields of a request, and for decoding an answer.

RequestScope   model, settings, options, leading system turns     for encode_request
DecodeScope    target, policy, renamed options, size limits       for decode, decoder and decode_history
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from os import urandom
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, TypeAlias, TypeVar

from pydantic import BaseModel, ValidationError

from sabir.base.errors import NotJSON, SettingsInvalid
from sabir.base.failures import ResponseInvalid
from sabir.base.renamed import callable_by_old_names
from sabir.base.values import JSONText, JSONValue, count_values, decode_json, encode_json, has_more_values, parse_json
from sabir.contract.turns import LossLog, Side, Turn
from sabir.vocabulary.messages import Message, OptionCallPayload, Origin
from sabir.vocabulary.models import WHILE_REASONING, ModelInfo
from sabir.vocabulary.parts import Sections, read_section
from sabir.vocabulary.settings import Bounds, SettingsReader, Target

if TYPE_CHECKING:
    from sabir.options.option import Option

Item = TypeVar("Item")

Place: TypeAlias = Literal["closed", "end"]
"""The place of an Insertion: the end of the turns that later messages cannot change, or the end of all turns."""


class Insertion(NamedTuple):
    """Text that a dialect inserts into the encoded messages when the request's body is assembled, for example a cache
    marker. Append insertions to `RequestScope.insertions`.

    `text` is inserted directly before `before`, which must not be empty. With `at="closed"`, `before` must be the last
    bytes of the closed prefix, the turns that later messages cannot change; with `at="end"`, the last bytes of all
    turns (without `RequestScope.closing`). If the bytes end differently, or the place already has an insertion, nothing
    is inserted, and a loss names `path`. With `at="closed"` and no closed turn yet, nothing is inserted and there is no
    loss.
    """

    at: Place
    before: bytes
    text: bytes
    path: str


@callable_by_old_names
@dataclass(slots=True)
class RequestScope:
    """Everything that `encode_request` may use: model, settings, options and leading system messages, but not the
    encoded turns. Created by core for each request whose fields are not cached.

    Read settings with `setting` or `neutral_fields`, which report settings that the model does not accept as losses. A
    setting that is set and not read also becomes a loss.
    """

    CHOICES: ClassVar = ("auto", "none", "required")
    """The values of `option_choice` that are not the name of an option."""

    target: Target
    """The provider, dialect, model and endpoint of the request."""
    settings: SettingsReader
    """Reads the call's settings. Prefer `setting`, which also reports losses."""
    options: tuple["Option", ...]
    """The options that the request offers to the model."""
    option_names: Mapping[str, str]
    """Option name → the name to send, for every offered option. The two differ if the API does not accept the option's
    name.
    """
    system: tuple[Turn, ...]
    """The turns of system messages at the start; empty unless the Roles have `leading_system="hoisted"`."""
    vendor: Mapping[str, Any]
    """The user's vendor settings for this provider, not validated. Read the settings with `read_vendor`."""
    losses: LossLog
    """The log to which the dialect adds settings and options that the target cannot accept."""
    model_info: ModelInfo = ModelInfo(prefix="")
    """The known facts about the model."""
    quirks: frozenset[str] = frozenset()
    """Deviations of this endpoint from the dialect, as returned by `Provider.quirks` and `ModelInfo.quirks`."""
    last_side: Side | None = None
    """The side of the last turn that produced an item in the request. None if no turn did."""
    ending: Turn | None = None
    """The value of `last_turn`. Set by core; read `last_turn` instead."""
    history: Sequence[Message] = ()
    """The value of `messages`. Set by core; read `messages` instead."""
    names: frozenset[str] = frozenset()
    """The value of `called_options`. Set by core; read `called_options` instead."""
    join_turns: Callable[[], bytes] = bytes
    """Set by core; read `encoded_turns` instead."""
    stored_start: tuple[int, bytes] = (0, b"")
    """Set by the dialect if the vendor stores the beginning of `encoded_turns`: how many bytes to leave out, and bytes
    to send instead, such as the opening of a turn."""
    saw_history: bool = False
    """Whether the dialect read `last_turn`, `messages` or `encoded_turns`, so that core cannot reuse the fields."""
    saw_called: bool = False
    """Whether the dialect read `called_options`. Set by this property."""
    insertions: list[Insertion] = field(default_factory=list)
    """Insertions into the encoded messages. The dialect appends to this list."""
    closing: list[JSONValue] = field(default_factory=list)
    """Items to send after all turns, in this request only. The dialect appends to this list."""
    headers: dict[str, str] = field(default_factory=dict)
    """HTTP headers that the request needs. The dialect adds them; the user's `extra_headers` take precedence."""
    argument_names: dict[str, Mapping[str, str]] = field(default_factory=dict)
    """Option name → (argument name in the request → real argument name), for arguments that the dialect renamed."""
    reasoning_is_off: bool = False
    """Set to True by the dialect if a vendor setting turns reasoning off."""
    unchecked: list[str] = field(default_factory=list)
    """Paths of settings and options that no source documents; they are sent, and shown in `Rendering.unchecked`."""
    native: Mapping[str, Any] = field(default_factory=dict)
    """Fields of the request for the vendor's own tools, from `NativeTool.encode`. Join lists with the dialect's own."""
    native_choice: JSONValue = None
    """The value for the choice of a tool, from `NativeTool.choice`; None if no native tool must be used."""
    only_as_stream: bool = False
    """Set to True by the dialect if the answer may take too long for one response. Core then requests a stream
    (unless `extra_body` sets a field that asks for one), and `send` still returns a complete reply.
    """

    @property
    def last_turn(self) -> Turn | None:
        """The last turn that produced an item in the request; None if later messages cannot change this turn, or if
        there is none. Needed by dialects of providers that pause within a turn. Reading it sets `saw_history`.
        """
        self.saw_history = True
        return self.ending

    @property
    def messages(self) -> Sequence[Message]:
        """All messages of the conversation, for dialects of servers that store messages. Sets `saw_history`."""
        self.saw_history = True
        return self.history

    @property
    def called_options(self) -> frozenset[str]:
        """The names of the options that calls in the request name, whether the options are offered or not. Reading them
        sets `saw_called`.
        """
        self.saw_called = True
        return self.names

    @property
    def encoded_turns(self) -> bytes:
        """The encoded messages of the request: items as JSON, joined by commas. Sets `saw_history`."""
        self.saw_history = True
        return self.join_turns()

    def read_vendor(self, model: type[BaseModel]) -> dict[str, Any]:
        """Validate the user's vendor settings with a pydantic model and return the fields that are set, as a
        dictionary.

        Settings that the model refuses or ignores, by its known facts, are left out and reported as losses. Raises
        SettingsInvalid for an unknown field or an invalid value.
        """
        if not self.vendor:
            return {}
        where = f"vendor[{self.target.provider!r}] for {self.target.dialect}"
        section = read_section(model, self.vendor, where, "; other fields: extra_body")
        path = f"settings.vendor.{self.target.provider}"
        return {name: value for name, value in section.items() if self.supports(f"vendor.{name}", f"{path}.{name}")}

    def setting(self, setting: str) -> Any:
        """Return the value of a setting, such as "temperature"; None if the setting is not set or must not be sent.

        `setting` is one of WIRE_SETTINGS; raises SettingsInvalid for another name. Reports a loss if the model refuses
        or ignores the setting or this value of it. A tuple is returned as a list.
        """
        value = self.settings.take(setting)
        if value is None:
            return None
        if setting == "reasoning_effort" and self.model_info.reasoning is False:
            self.refuse(setting)
            return None
        variant = _variant(setting, value)
        if not self.supports(setting, f"settings.{setting}", variant=f"{setting}.{variant}" if variant else ""):
            return None
        return list(value) if isinstance(value, tuple) else value

    @property
    def reasons(self) -> bool:
        """Whether the model reasons in this request. False if `reasoning_is_off` is True. Otherwise `reasoning_effort`
        decides if set ("none" means no), and else the model's known facts.
        """
        effort = self.settings.take("reasoning_effort")
        return not self.reasoning_is_off and (bool(self.model_info.reasoning) if effort is None else effort != "none")

    def supports(self, feature: str, path: str, *, variant: str = "") -> bool:
        """Return whether to send a feature. If the target refuses or ignores the feature, report a loss at `path` and
        return False.

        `feature` is a name as in `ModelInfo.rejects`. `variant` is the name of one value, such as
        "option_choice.required"; facts about the variant take precedence over facts about the feature. If
        `ModelInfo.accepts` is known and no list has the feature, it is sent, and `Rendering.unchecked` lists `path`.
        """
        names = [name for name in (variant, feature) if name]
        names = [*(f"{name}{WHILE_REASONING}" for name in names if self.reasons), *names]
        status = self.model_info.status_of(*names)
        if status in ("refused", "ignored"):
            verb, value = "refuses" if status == "refused" else "ignores", variant.partition(".")[2]
            self._lose_feature(f"{verb} its value {value!r}" if value else f"{verb} it", path)
        elif status == "unknown":
            self.unchecked.append(path)
        return status in ("accepted", "unknown")

    def refuse(self, setting: str) -> None:
        """Report a loss: the model refuses the setting of this name."""
        self._lose_feature("refuses it", f"settings.{setting}")

    def _lose_feature(self, fault: str, path: str) -> None:
        follows, model = self.model_info.follows, self.target.model
        reason = f"{model} is unknown and treated like {follows}, which {fault}" if follows else f"{model} {fault}"
        self.losses.add("dropped", reason, path=path)

    def neutral_fields(
        self,
        names: Mapping[str, str],
        *,
        absent: Sequence[str] = (),
        stops: int = 0,
        take: "Callable[[RequestScope, str], Any] | None" = None,
    ) -> dict[str, Any]:
        """Return the request fields for neutral settings (WIRE_SETTINGS) whose values the API accepts unchanged, as a
        dictionary. Settings that are not set or must not be sent are left out.

        `names` maps settings to field names. Settings in `absent` have no field in this API; they are reported as
        losses if set. If `stops` is not 0, only the first `stops` stop texts are sent, and the others are losses.
        `take` is the function that reads a value, with the arguments scope and setting; None means `setting`.
        """
        take = take or RequestScope.setting
        for setting in absent:
            if self.settings.take(setting) is not None:
                self.losses.add("dropped", f"{self.target.dialect} has no field for it", path=f"settings.{setting}")
        fields = {name: value for setting, name in names.items() if (value := take(self, setting)) is not None}
        stop = names.get("stop", "")
        for index in range(stops, len(fields.get(stop, ()))) if stops else ():
            self.losses.add("dropped", f"the API accepts only {stops} stop texts", path=f"settings.stop[{index}]")
        return fields | {stop: fields[stop][:stops]} if stops and stop in fields else fields

    def declare(self, option: "Option") -> dict[str, Any]:
        """Return the fields "name" (the name to send) and "description" of an option's declaration. Without a
        description, return only "name".
        """
        fields = {"name": self.option_names[option.name]}
        return fields | {"description": option.description} if option.description else fields

    def name_choice(self, choice: str) -> str:
        """Return the name to send for the option that `option_choice` names. Raises SettingsInvalid if the option is
        not offered.
        """
        if choice in self.option_names:
            return self.option_names[choice]
        raise self.not_offered(choice)

    def not_offered(self, choice: str) -> SettingsInvalid:
        """Return the SettingsInvalid for an `option_choice` that names an option which is not offered. The caller
        raises the error.
        """
        offered = ", ".join(self.option_names) or "none"
        return SettingsInvalid(f"option_choice is {choice!r}, which is not an offered option; options are: {offered}")


def _variant(setting: str, value: Any) -> str:  # each setting has a type of its own
    """Return the kind of a setting's value, if targets may accept one kind and refuse another; otherwise ""."""
    if setting == "option_choice":
        return value if value in RequestScope.CHOICES else "named"
    if setting in ("reasoning_effort", "prompt_cache"):
        return "" if value is True else str(value)
    if setting == "response_format":
        return "object" if value.schema_view == {"type": "object"} else "schema"
    return ""


DEFAULT_BOUNDS = Bounds()


class Tally:
    """The running totals of one answer, for DecodeScope: blocks, JSON values of events, and copied bytes."""

    __slots__ = ("blocks", "copied", "values")

    def __init__(self) -> None:
        self.blocks = self.values = self.copied = 0


@dataclass(frozen=True, slots=True)
class DecodeScope:
    """Everything that decoding needs: the target, the policy of the new messages, renamed options, and size limits.
    Created by core for every answer and every stored request.
    """

    target: Target
    """The provider, dialect, model and endpoint that the request was sent to."""
    policy: str = "llm"
    """The policy of the decoded messages: usually the adapter's `speaks_as`."""
    option_names: Mapping[str, str] = field(default_factory=dict)
    """Option name in the answer → real option name, for the names that differ."""
    request_id: str | None = None
    """The provider's id of the request, from the response headers. None if unknown."""
    content_type: str = ""
    """The content type of the response; "" before there is a response."""
    bounds: Bounds = DEFAULT_BOUNDS
    """The limits for the size of the answer, from `Settings.bounds`."""
    tally: Tally | None = field(default=None, repr=False, compare=False)
    """The running totals of this answer, which `count_blocks`, `count_stored_values` and `count_copied_bytes` compare
    with `bounds`. None before `counted` creates a copy with totals. Without totals, the three methods do nothing.
    """
    argument_names: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Option name → (argument name in the answer → real argument name), for the names that differ."""

    def counted(self, request_id: str | None = None, content_type: str = "") -> "DecodeScope":
        """Return a copy of this scope for one answer: with its request id and content type, and all totals at zero."""
        names, bounds, arguments = self.option_names, self.bounds, self.argument_names
        return DecodeScope(self.target, self.policy, names, request_id, content_type, bounds, Tally(), arguments)

    def count_blocks(self, number: int = 1) -> None:
        """Add `number` blocks to the total of this answer. Raises ResponseInvalid if the total exceeds `bounds.blocks`.

        A block is a part, an option call, an alternative or a citation. Call this before creating blocks that do not go
        through ReplyBuilder or Fold, which check their blocks themselves. Does nothing if `tally` is None.
        """
        if self.tally is not None:
            self.tally.blocks += number
            self.check_blocks(self.tally.blocks)

    def check_blocks(self, number: int) -> None:
        """Raise ResponseInvalid if `number` blocks are more than `bounds.blocks` allows."""
        most = self.bounds.most_blocks
        if number > most:
            raise self.limit_error(f"more than {most:,} parts, calls and citations", "blocks")

    def count_each(self, blocks: Iterable[Item]) -> Iterator[Item]:
        """Yield the blocks unchanged, one by one, and count each with `count_blocks`, which raises ResponseInvalid if
        the total exceeds `bounds.blocks`.
        """
        for block in blocks:
            self.count_blocks()
            yield block

    def count_stored_values(self, event: str) -> None:
        """Add the number of JSON values of a stream event, as `count_values` estimates it, to the total of this answer.
        Raises ResponseInvalid if the total exceeds `bounds.values`.

        `event` is the event's JSON text. Call this for events whose data the decoder stores, not for plain text deltas.
        Does nothing if `tally` is None.
        """
        if self.tally is not None:
            most = self.bounds.most_values
            self.tally.values += count_values(event, most)
            if self.tally.values > most:
                raise self.limit_error(f"events with more than {most:,} JSON values in total", "values")

    def count_copied_bytes(self, size: int) -> None:
        """Add `size` bytes to the total of copied bytes. Raises ResponseInvalid if the total exceeds
        `bounds.body_bytes`.

        Call this if the dialect stores the same data with several blocks, because a small answer could otherwise fill
        the memory. Does nothing if `tally` is None.
        """
        if self.tally is not None:
            self.tally.copied += size
            if self.tally.copied > self.bounds.body_bytes:
                raise self.limit_error("fields that its parts repeat too often", "body_bytes")

    def limit_error(self, what: str, bound: str) -> ResponseInvalid:
        """Return the ResponseInvalid for an answer that exceeds a limit. The caller raises the error.

        `what` completes the sentence "TARGET answered with …"; `bound` is the name of the field of Bounds to increase.
        """
        return self.invalid_answer(f"answered with {what}; to allow that, raise Settings.bounds.{bound}")

    def invalid_answer(self, problem: str) -> ResponseInvalid:
        """Return a ResponseInvalid for an answer that does not follow the API format. The caller raises the error.

        `problem` is the rest of the message after the target's name: what the target did and how to fix it.
        """
        target = self.target
        return ResponseInvalid(f"{target} {problem}", provider=target.provider, request_id=self.request_id)

    def origin(self, model: str | None = None, response_id: str | None = None) -> Origin:
        """Return the Origin for the decoded messages.

        `model` is the model's name in the answer. If the request named no model, the name is stored as `model`;
        otherwise as `reported_model` if it differs from the requested name. `response_id` is the vendor's id of the
        answer. For both, None and "" mean that the answer has none.
        """
        target, model = self.target, model or None
        return Origin(
            provider=target.provider,
            dialect=target.dialect,
            endpoint=target.endpoint,
            model=target.model or model or "",
            reported_model=model if target.model and model != target.model else None,
            response_id=response_id or None,
        )

    def read_object(self, body: bytes | str) -> dict[str, Any]:
        """Parse a body or an event as a JSON object and return it. Raises ResponseInvalid for anything else, such as
        HTML or an empty body.

        Lone surrogates (invalid Unicode) are replaced by U+FFFD.
        """
        try:
            value = parse_json(body)
        except ValueError:
            value = _read_broken(body)
        if isinstance(value, dict):
            return value
        text = body.decode("utf-8", "replace") if isinstance(body, bytes) else body
        answer = ascii(text[:_QUOTED]) if text.strip() else "an empty body"
        expected = f"expected a JSON object of {self.target.dialect}"
        raise self.invalid_answer(f"answered {answer}; {expected}: check the endpoint")

    def read_call(
        self,
        wire_id: str | None,
        wire_name: str,
        arguments: str | Mapping[str, JSONValue] | None,
        state: JSONValue = None,
    ) -> OptionCallPayload:
        """Return an option call as a payload, with its real option and argument names.

        `wire_id` is the id of the call in the answer; if the id is None or empty, a new id is created. `wire_name` is
        the option's name in the answer. `arguments` is JSON text, an object, or None for no arguments; text is stored
        unchanged in `raw_arguments`. Empty text and "null" mean no arguments; other arguments that are not a JSON
        object set `invalid_arguments`. `state` is vendor data to send back with the call, or None.

        Raises ResponseInvalid if the name is empty or the text of the arguments has more values than `bounds.values`
        allows, and NotJSON for a state that is not JSON.
        """
        if not wire_name:
            call = repr(wire_id) if wire_id else "without id"
            raise self.invalid_answer(f"called an option without its name (call {call}); send the request again")
        if isinstance(arguments, str) and has_more_values(arguments, self.bounds.most_values):
            raise self.limit_error(f"arguments of more than {self.bounds.most_values:,} JSON values", "values")
        raw, parsed = _read_arguments(arguments)
        option_name = self.option_names.get(wire_name, wire_name)
        if (names := self.argument_names.get(option_name)) and parsed is not None:
            renamed = {names.get(name, name): value for name, value in parse_json(parsed).items()}
            parsed = encode_json(renamed)
        return OptionCallPayload(
            state=None if state is None else encode_json(state),
            invocation_id=wire_id or f"call_{urandom(16).hex()}",
            option_name=option_name,
            arguments=parsed or _NO_ARGUMENTS,
            raw_arguments=raw,
            invalid_arguments=parsed is None,
        )

    def read_hints(self, fields: Mapping[str, Any], model: type[BaseModel]) -> Sections | None:
        """Return the vendor hints in a stored medium or option as `{provider: hints}`, for a `vendor=` argument.

        `fields` is the API's object, and `model` the pydantic model of the hints, whose fields are read. Returns {} if
        no hint is set, and None if the model rejects a value.
        """
        hints = {name: fields[name] for name in model.model_fields if fields.get(name) is not None}
        try:
            model.model_validate(hints)
        except ValidationError:
            return None
        return {self.target.provider: hints} if hints else {}

    def file_url(self, file_id: JSONValue) -> str:
        """Return the `provider-file:` URL for a file's id. An id of another type than str gives an invalid URL."""
        return f"provider-file:{self.target.provider}/{file_id if isinstance(file_id, str) else ''}"


_SURROGATE = re.compile("[\ud800-\udfff]")
_QUOTED = 120
_NO_ARGUMENTS = JSONText("{}")


def _read_broken(body: bytes | str) -> JSONValue:
    """Parse JSON, and replace lone surrogates in it by U+FFFD. Return None for text that is not JSON."""
    try:
        return json.loads(_SURROGATE.sub("\ufffd", json.dumps(decode_json(body), ensure_ascii=False)))
    except NotJSON:
        return None


def _read_arguments(arguments: str | Mapping[str, JSONValue] | None) -> tuple[str | None, JSONText | None]:
    """Return the original text (None for an object) and compact JSON text (None if not a JSON object)."""
    if isinstance(arguments, str):
        try:
            value = parse_json(arguments)
            if value is None:
                return arguments, _NO_ARGUMENTS
            return arguments, encode_json(value) if type(value) is dict else None
        except ValueError:
            return arguments, None if arguments.strip() else _NO_ARGUMENTS
    with suppress(NotJSON):
        if arguments is None or isinstance(arguments, Mapping):
            return None, encode_json(dict(arguments or {}))
    # A value of the wrong type, or an object that JSON cannot represent: keep it as text.
    return json.dumps(arguments, separators=(",", ":"), default=str), None
