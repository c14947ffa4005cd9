"""What a dialect is given besides turns: to encode the rest of a request, and to read an answer.

RequestScope   settings, options, hoisted system turns
DecodeScope    who answered, for which policy, under which option names
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from os import urandom
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, TypeAlias, TypeVar

from pydantic import BaseModel, ValidationError

from sabir.base.errors import NotJSON, SettingsInvalid
from sabir.base.failures import ResponseInvalid
from sabir.base.renamed import callable_by_old_names
from sabir.base.values import (
    FrozenDict,
    JSONText,
    JSONValue,
    count_values,
    decode_json,
    encode_json,
    has_more_values,
    parse_json,
)
from sabir.contract.turns import LossLog, Side, Turn
from sabir.vocabulary.messages import Message, OptionCallPayload, Origin
from sabir.vocabulary.models import WHILE_REASONING, ModelInfo
from sabir.vocabulary.parts import Sections, read_section
from sabir.vocabulary.settings import Bounds, SettingsReader, Target

if TYPE_CHECKING:
    from sabir.options.option import Option

Item = TypeVar("Item")

Place: TypeAlias = Literal["closed", "end"]
"""The place of a splice: at the end of the closed prefix, or of all messages."""


class Insertion(NamedTuple):
    """Bytes to put into the messages as they are joined: markers that the kept prefix does not hold.

    `text` goes before `before`, which is never empty and with which the closed prefix (`at="closed"`) or the list of
    messages (`at="end"`) must end. If it ends otherwise, or has a splice there already, a loss names `path`.
    """

    at: Place
    before: bytes
    text: bytes
    path: str


@callable_by_old_names
@dataclass(slots=True)
class RequestScope:
    """The arguments from which a dialect encodes the rest of a request: everything but the turns."""

    CHOICES: ClassVar = ("auto", "none", "required")
    """What `option_choice` may be beside an option's name."""

    target: Target
    settings: SettingsReader
    options: tuple["Option", ...]
    option_names: Mapping[str, str]
    """Option name → the name on this wire, for every option offered."""
    system: tuple[Turn, ...]
    """The leading system turns, where the dialect hoists them; else empty."""
    vendor: FrozenDict
    """The settings under this provider's own name."""
    losses: LossLog
    model_info: ModelInfo = ModelInfo(prefix="")
    quirks: frozenset[str] = frozenset()
    last_side: Side | None = None
    """The side of the last turn that was encoded to an item."""
    ending: Turn | None = None
    """The value of `last_turn`."""
    history: Sequence[Message] = ()
    """The value of `messages`."""
    names: frozenset[str] = frozenset()
    """The value of `called_options`."""
    saw_history: bool = False
    """Whether the dialect read `last_turn` or `messages`: then the head is made for this request alone."""
    saw_called: bool = False
    """Whether the dialect read `called_options`."""
    splices: list[Insertion] = field(default_factory=list)
    """Markers to be put between the messages' bytes; the dialect adds them."""
    closing: list[JSONValue] = field(default_factory=list)
    """Wire items to be sent after all turns, which no later request holds at that place; the dialect adds them."""
    headers: dict[str, str] = field(default_factory=dict)
    """Headers that the request needs beside its body; the dialect adds them, and `extra_headers` win over them."""
    argument_names: dict[str, Mapping[str, str]] = field(default_factory=dict)
    """Option name → the names that its arguments have on this wire → their own; the dialect adds those that differ."""
    reasoning_is_off: bool = False
    """Set by the dialect where a vendor setting turns reasoning off."""
    unchecked: list[str] = field(default_factory=list)
    """Paths of settings and options that are sent although nothing documents that the target takes them."""
    only_as_stream: bool = False
    """Set by the dialect where the answer may take too long to arrive as one body: it is always streamed."""

    @property
    def last_turn(self) -> Turn | None:
        """The last turn, if it is not in the closed prefix; it shows whether a provider paused in it."""
        self.saw_history = True
        return self.ending

    @property
    def messages(self) -> Sequence[Message]:
        """All given messages; they show whether the server holds some of them."""
        self.saw_history = True
        return self.history

    @property
    def called_options(self) -> frozenset[str]:
        """Names of the options whose calls the request holds, offered or not."""
        self.saw_called = True
        return self.names

    def read_vendor(self, model: type[BaseModel]) -> dict[str, Any]:
        """The vendor settings that are set, as wire fields; SettingsInvalid names one that the dialect has not."""
        if not self.vendor:
            return {}
        where = f"vendor[{self.target.provider!r}] for {self.target.dialect}"
        section = read_section(model, self.vendor, where, "; all else: extra_body")
        path = f"settings.vendor.{self.target.provider}"
        return {name: value for name, value in section.items() if self.supports(f"vendor.{name}", f"{path}.{name}")}

    def setting(self, setting: str) -> Any:
        """Return a wire setting's value, of the type of the field in Settings; None if it is not set or not to be sent.

        Report a loss if the target refuses or ignores it.
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
        """Whether the model reasons before it answers: by the effort in the settings, else by its own default."""
        effort = self.settings.take("reasoning_effort")
        return not self.reasoning_is_off and (bool(self.model_info.reasoning) if effort is None else effort != "none")

    def supports(self, feature: str, path: str, *, variant: str = "") -> bool:
        """Return whether to send a feature; report a loss at `path` if the target refuses or ignores it.

        `feature` is a name of `ModelInfo.rejects`, and `variant` the name of one value of it, which counts first.
        A feature about which nothing is documented is sent and listed in `Rendering.unchecked`.
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
        """Report as a loss that the model refuses a setting, or is assumed to."""
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
        """The settings that the wire takes as they are, under their `names` there; losses for what it has no field for.

        Of stop texts it takes the first `stops`, all where that is 0. A dialect with rules of its own gives `take`.
        """
        take = take or RequestScope.setting
        for setting in absent:
            if self.settings.take(setting) is not None:
                self.losses.add("dropped", f"{self.target.dialect} has no field for it", path=f"settings.{setting}")
        found = {name: value for setting, name in names.items() if (value := take(self, setting)) is not None}
        stop = names.get("stop", "")
        for index in range(stops, len(found.get(stop, ()))) if stops else ():
            self.losses.add("dropped", f"the API accepts only {stops} stop texts", path=f"settings.stop[{index}]")
        return found | {stop: found[stop][:stops]} if stops and stop in found else found

    def declare(self, option: "Option") -> dict[str, Any]:
        """An option's name on the wire and, where it has one, its description."""
        found = {"name": self.option_names[option.name]}
        return found | {"description": option.description} if option.description else found

    def name_choice(self, choice: str) -> str:
        """The wire name of the option that `option_choice` names; SettingsInvalid for one that is not offered."""
        if choice in self.option_names:
            return self.option_names[choice]
        raise self.not_offered(choice)

    def not_offered(self, choice: str) -> SettingsInvalid:
        """The error for a choice of an option that is not among those offered."""
        offered = ", ".join(self.option_names) or "none"
        return SettingsInvalid(f"option_choice is {choice!r}, which is not an offered option; options are: {offered}")


def _variant(setting: str, value: Any) -> str:  # a setting's value
    """Return the kind of a setting's value, where targets may take one kind and refuse another; else ""."""
    if setting == "option_choice":
        return value if value in RequestScope.CHOICES else "named"
    if setting == "reasoning_effort":
        return str(value)
    if setting == "response_format":
        return "object" if value.schema_view == {"type": "object"} else "schema"
    return ""


DEFAULT_BOUNDS = Bounds()


class Tally:
    """Counts what one reply keeps while it is decoded: blocks, JSON values of events, and copied bytes."""

    __slots__ = ("blocks", "copied", "values")

    def __init__(self) -> None:
        self.blocks = self.values = self.copied = 0


@dataclass(frozen=True, slots=True)
class DecodeScope:
    """The facts from which a dialect reads one answer: who answers, for which policy, and how large it may be."""

    target: Target
    policy: str = "llm"
    option_names: Mapping[str, str] = field(default_factory=dict)
    """Name on the wire → option name, where they differ."""
    request_id: str | None = None
    content_type: str = ""
    """The content type in the answer's headers; "" before there is an answer."""
    bounds: Bounds = DEFAULT_BOUNDS
    """How large the answer may be."""
    tally: Tally | None = field(default=None, repr=False, compare=False)
    """The counts of the answer that is being read; None outside a call: then nothing is counted."""
    argument_names: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Option name → the names that its arguments have on the wire → their own, where they differ."""

    def counted(self, **changes: Any) -> "DecodeScope":
        """Return a copy for one answer, with its counts at zero; `changes` are values of other fields."""
        return replace(self, tally=Tally(), **changes)

    def count_blocks(self, number: int = 1) -> None:
        """Count parts, option calls, alternatives or citations; raise ResponseInvalid above `bounds.blocks`.

        A dialect calls this before it makes many of them from one answer. ReplyBuilder and Fold count by themselves.
        """
        if self.tally is not None:
            self.tally.blocks += number
            self.check_blocks(self.tally.blocks)

    def check_blocks(self, number: int) -> None:
        """Raise ResponseInvalid if a reply with so many blocks is larger than `bounds.blocks` allows."""
        most = self.bounds.most_blocks
        if number > most:
            raise self.limit_error(f"more than {most:,} parts, calls and citations", "blocks")

    def count_each(self, blocks: Iterable[Item]) -> Iterator[Item]:
        """Yield blocks and count each before the next is made."""
        for block in blocks:
            self.count_blocks()
            yield block

    def count_stored_values(self, event: str) -> None:
        """Count the JSON values of an event of which the decoder keeps more than a text.

        They add up over a stream. Raises ResponseInvalid above `bounds.values`.
        """
        if self.tally is not None:
            most = self.bounds.most_values
            self.tally.values += count_values(event, most)
            if self.tally.values > most:
                raise self.limit_error(f"events with more than {most:,} JSON values", "values")

    def count_copied_bytes(self, size: int) -> None:
        """Count bytes that a dialect stores again with another block; raise ResponseInvalid above `bounds.body_bytes`.

        An item's own fields may be stored with each of its parts, so that few bytes would become many.
        """
        if self.tally is not None:
            self.tally.copied += size
            if self.tally.copied > self.bounds.body_bytes:
                raise self.limit_error("fields that its parts repeat too often", "body_bytes")

    def limit_error(self, what: str, bound: str) -> ResponseInvalid:
        """Return the error for an answer that is larger than the bound of that name allows; `what` says by what."""
        return self.invalid_answer(f"answered with {what}; to allow that, raise Settings.bounds.{bound}")

    def invalid_answer(self, said: str) -> ResponseInvalid:
        """The error for an answer that breaks the dialect; `said` is what the target did, and the remedy."""
        target = self.target
        return ResponseInvalid(f"{target} {said}", provider=target.provider, request_id=self.request_id)

    def origin(self, model: str | None = None, response_id: str | None = None) -> Origin:
        """The origin of the messages that this scope decodes; `model` is the name that the response gives.

        A deployment or an alias may answer under another name than the request's. The request's name counts, because
        later requests have it too.
        """
        target = self.target
        return Origin(
            provider=target.provider,
            dialect=target.dialect,
            endpoint=target.endpoint,
            model=target.model or model or "",
            reported_model=model if target.model and model != target.model else None,
            response_id=response_id,
        )

    def read_object(self, body: bytes | str) -> dict[str, Any]:
        """The JSON object that a body or an event holds; ResponseInvalid for HTML, an empty body, broken JSON.

        Lone surrogates become U+FFFD: no text of the library may hold one.
        """
        try:
            found = parse_json(body)
        except ValueError:
            found = _read_broken(body)
        if isinstance(found, dict):
            return found
        shown = body.decode("utf-8", "replace") if isinstance(body, bytes) else body
        answer = ascii(shown[:_SHOWN]) if shown.strip() else "an empty body"
        raise self.invalid_answer(
            f"answered {answer}; expected a JSON object of {self.target.dialect}: check the endpoint"
        )

    def read_call(
        self,
        wire_id: str | None,
        wire_name: str,
        arguments: str | Mapping[str, JSONValue] | None,
        state: JSONValue = None,
    ) -> OptionCallPayload:
        """An option call as a wire reports it.

        The name is mapped back through `option_names`. Argument text is kept as it came in `raw_arguments`; text that
        is no JSON object marks the call `invalid_arguments`; empty text, `null` or None means no arguments. Arguments
        get their own names by `argument_names`. A missing id is made up. Raises ResponseInvalid for a call without a
        name and for arguments with more JSON values than `bounds.values`, NotJSON for a state that is not JSON.
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
            parsed = encode_json(renamed, sort_keys=True)
        return OptionCallPayload(
            state=None if state is None else encode_json(state),
            invocation_id=wire_id or f"call_{urandom(16).hex()}",
            option_name=option_name,
            arguments=parsed or _NO_ARGUMENTS,
            raw_arguments=raw,
            invalid_arguments=parsed is None,
        )

    def read_hints(self, found: Mapping[str, Any], model: type[BaseModel]) -> Sections | None:
        """The fields of a medium or a declaration that are vendor hints; None where their model refuses one."""
        given = {name: found[name] for name in model.model_fields if found.get(name) is not None}
        try:
            model.model_validate(given)
        except ValidationError:
            return None
        return {self.target.provider: given} if given else {}

    def file_url(self, file_id: JSONValue) -> str:
        """The URL of a file that is with the provider."""
        return f"provider-file:{self.target.provider}/{file_id if isinstance(file_id, str) else ''}"


_SURROGATE = re.compile("[\ud800-\udfff]")
_SHOWN = 120
_NO_ARGUMENTS = JSONText("{}")


def _read_broken(body: bytes | str) -> JSONValue:
    """What is JSON but for its Unicode; None for all else."""
    try:
        return json.loads(_SURROGATE.sub("\ufffd", json.dumps(decode_json(body), ensure_ascii=False)))
    except NotJSON:
        return None


def _read_arguments(arguments: str | Mapping[str, JSONValue] | None) -> tuple[str | None, JSONText | None]:
    """The raw text, where there is one, and the canonical text; None where they are no JSON object."""
    if isinstance(arguments, str):
        try:
            value = parse_json(arguments)
            if value is None:
                return arguments, _NO_ARGUMENTS
            return arguments, encode_json(value, sort_keys=True) if type(value) is dict else None
        except ValueError:
            return arguments, None if arguments.strip() else _NO_ARGUMENTS
    with suppress(NotJSON):
        if arguments is None or isinstance(arguments, Mapping):
            return None, encode_json(dict(arguments or {}), sort_keys=True)
    # A body that was parsed leniently, or holds another type than it may: keep what it said.
    return json.dumps(arguments, separators=(",", ":"), default=str), None
