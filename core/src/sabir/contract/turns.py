"""The decisions of a dialect, as data; and what its encoders are given of a conversation.

    roles    which parts each side takes; where system messages go; which of the model's own parts go back to it
    media    (side, modality) ──▶ which forms and MIME types that side takes
    calls    the characters and lengths of ids and names; hints of options; the place of results; calls without a result

Core decides by these tables before any function of the dialect runs, so that it sees only what it can encode:

    Turn = side + entries          Entry = message + pieces (what this wire takes of it) + wire id + wire name
    TurnScope                      equal scopes and equal turns give equal bytes
    LossLog                        what the target cannot take

Values that entries give are plain dicts, lists and strings, which the serialiser writes faster than the immutable views
of messages.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import sha256
from typing import Any, Literal, NamedTuple, TypeAlias

from pydantic import BaseModel
from pydantic_core import from_json

from sabir.base.failures import Loss, LossKind
from sabir.base.values import FrozenDict, encode_json
from sabir.vocabulary.media import MediaRule, Modality
from sabir.vocabulary.messages import Message, OptionCallPayload, OptionResultPayload, Origin
from sabir.vocabulary.models import ModelInfo
from sabir.vocabulary.parts import KnownPart, MediaPart, Part, Stateful
from sabir.vocabulary.settings import Target, UnsupportedMedia

Side: TypeAlias = Literal["system", "user", "assistant", "results"]
"""The side of a turn, as a wire sees it; results always follow the assistant turn whose calls they answer."""


@dataclass(frozen=True, slots=True)
class Roles:
    """Which parts each side takes besides text and media, and where system messages go.

    `native` maps a side to the part kinds that the dialect encodes for it: "reasoning", "refusal", "opaque".
    `citations` says whether a text part's citations go back to their maker. `reasoning` says which reasoning is sent:
    that of the target with its state, all of the target ("any"), or also the visible text of other models ("foreign"),
    for endpoints that refuse an assistant's turn without reasoning. A system message after the start renders as user
    where `later_system` is "user"; where it is "after_user", a system message at the end of the user's side is a system
    turn, and any other renders as user.
    """

    native: Mapping[Side, frozenset[str]] = field(default_factory=dict)
    leading_system: Literal["inline", "hoisted"] = "inline"
    later_system: Literal["inline", "user", "after_user"] = "inline"
    citations: Literal["native", "dropped"] = "dropped"
    reasoning: Literal["any", "with_state", "foreign"] = "any"


_HASH_LENGTH = 12


@dataclass(frozen=True)
class IdentifierRule:
    """The identifiers that a wire takes: regular expressions for one character and for the first, and the length."""

    characters: str = r"[A-Za-z0-9_-]"
    longest: int = 64
    first: str = ""

    @cached_property
    def whole(self) -> re.Pattern[str]:
        """The expression that every identifier which the wire takes matches as a whole."""
        return re.compile(f"(?:{self.first or self.characters})(?:{self.characters}){{0,{self.longest - 1}}}")

    @cached_property
    def _foreign(self) -> re.Pattern[str]:
        return re.compile(f"(?!{self.characters})[\\s\\S]")

    def fit(self, identifier: str) -> str:
        """The identifier if the wire takes it as it is; else an identifier derived from it."""
        return identifier if self.whole.fullmatch(identifier) else self.derive(identifier)

    def derive(self, identifier: str, occurrence: int = 0) -> str:
        """A valid identifier for any string: its valid characters, then twelve hexadecimal digits of its hash."""
        digest = sha256(f"{identifier}\0{occurrence}".encode("utf-8", "surrogatepass")).hexdigest()[:_HASH_LENGTH]
        kept = self._foreign.sub("_", identifier)[: max(self.longest - _HASH_LENGTH - 1, 0)]
        made = f"{kept}_{digest}" if kept else digest
        return made if self.whole.fullmatch(made) else f"x{made}"[: self.longest]


@dataclass(frozen=True, slots=True)
class Calls:
    """How a wire takes option calls, and the provider's own pairs of blocks.

    `ids` and `names` say which identifiers it takes. `hints` is a strict, frozen model of the vendor hints that an
    option may have.

    `incomplete` says what becomes of a call without a result once another turn begins, or the request ends: it is
    "left_out" (loss: dropped), and a later result brings the call to its own place; or it is "answered" in its place
    by an error (loss: synthesized), and a later result is dropped. `results` stand "apart", as a turn of their own, or
    "with_user": then the user's next messages are in the turn of the results, behind them.

    `unfinished_pairs` says whether a request may end with an opaque part that opens a pair but whose other half is
    missing, as it is where a provider paused in mid-turn.

    `stored_by` names vendor settings that refer to earlier messages which the server stores: with one of them set, a
    result without its call is sent too.
    """

    ids: IdentifierRule = IdentifierRule()
    names: IdentifierRule = IdentifierRule()
    hints: type[BaseModel] | None = None
    incomplete: Literal["left_out", "answered"] = "left_out"
    results: Literal["apart", "with_user"] = "apart"
    unfinished_pairs: Literal["dropped", "kept_at_the_end"] = "dropped"
    stored_by: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Tables:
    """The three tables of a dialect.

    `variants` maps a quirk to a function that returns the tables of endpoints with it, given those without it; or to
    such tables, which then replace all.

    `media` maps (side, modality) to a rule; a missing row means that this side never takes that modality; the rows
    ("results", …) are for option results.
    """

    roles: Roles = Roles()
    media: Mapping[tuple[Side, Modality], MediaRule] = field(default_factory=dict)
    calls: Calls = Calls()
    variants: Mapping[str, "Tables | Callable[[Tables], Tables]"] = field(default_factory=dict)

    def at(self, quirks: frozenset[str], info: ModelInfo) -> "Tables":
        """Return the tables for a model at an endpoint with these quirks."""
        tables = self
        for variant in (self.variants[quirk] for quirk in sorted(quirks) if quirk in self.variants):
            tables = variant if isinstance(variant, Tables) else variant(tables)
        if "later_system" in info.rejects and tables.roles.later_system != "user":
            tables = replace(tables, roles=replace(tables.roles, later_system="user"))
        return tables


new_tuple = tuple.__new__
"""Makes a named tuple of all its values, without the function in Python that a call of its class goes through.

The number of values is not checked.
"""
NO_MEDIA = "(its media are not shown)"
UNREADABLE = "invalid_json"
"""The field in which argument text that is not a JSON object is sent."""
_NO_FIELDS: Mapping[str, Any] = FrozenDict()


class Entry(NamedTuple):
    """One message of a turn, with what is left of it for this wire."""

    message: Message
    pieces: tuple[KnownPart, ...] = ()
    """Parts that the target takes as they are, in order; unsupported ones are already replaced or reported."""
    wire_id: str = ""
    """A call's or result's id within the dialect's characters and length."""
    wire_name: str = ""
    """A call's or result's option name within the dialect's characters and length."""
    keeps_state: bool = False
    """Whether the message came from this very target and is said as its own, so that its state goes back."""
    call: "Entry | None" = None
    """For a result, the entry of its call."""

    @property
    def result(self) -> OptionResultPayload:
        """The result, in a turn of results."""
        result = self.message.payload
        assert result.kind == "option_result"
        return result

    @property
    def call_state(self) -> Mapping[str, Any]:
        """The state of its call, or of the call that it answers, where that goes back to its maker; else empty."""
        entry = self.call or self
        call = entry.message.payload
        if not entry.keeps_state or call.kind != "option_call" or call.state_json is None:
            return _NO_FIELDS
        return entry.state_of(call)

    def state_of(self, stated: Stateful) -> Mapping[str, Any]:
        """The state of a part or of a call, where it goes back to its maker; else an empty object."""
        state = from_json(stated.state_json) if self.keeps_state and stated.state_json is not None else None
        return state if isinstance(state, dict) else _NO_FIELDS

    def arguments_text(self, target: Target, losses: "LossLog", *, verbatim: bool = False) -> str:
        """Return the argument text of a call: as it came if its own dialect gets it, canonical elsewhere.

        Text that is not a JSON object is put into an object, because most servers parse the calls of a history.
        `verbatim` sends it back to its own dialect as it came; set it only where a source says that this is accepted.
        """
        call, origin = self._option_call(), self.message.origin
        raw = call.raw_arguments or ""
        # Some models write white space or null for no arguments, which servers refuse on the way back: it becomes "{}".
        is_home = self.keeps_state or (origin is not None and origin.dialect == target.dialect)
        if raw.strip() not in ("", "null") and is_home and (verbatim or not call.unreadable_arguments):
            return raw
        return encode_json(self.arguments_value(losses)) if call.unreadable_arguments else call.arguments_json[:]

    def arguments_value(self, losses: "LossLog") -> Mapping[str, Any]:
        """Return the arguments of a call as an object; text that is not a JSON object becomes its only field."""
        call = self._option_call()
        if unreadable := call.unreadable_arguments:
            reason = f"the arguments are not a JSON object; their text was sent in the field {UNREADABLE!r}"
            losses.add("rewritten", reason, message=self.message, path="payload.arguments")
            return {UNREADABLE: unreadable}
        arguments: Mapping[str, Any] = from_json(call.arguments_json)
        return arguments

    def _option_call(self) -> OptionCallPayload:
        call = self.message.payload
        assert isinstance(call, OptionCallPayload)
        return call

    def result_text(self, losses: "LossLog") -> str:
        """A result of which no part is left, as text; one whose media were all left out says so: it is not null."""
        result = self.result
        if result.parts and not self.pieces and any(isinstance(part, MediaPart) for part in result.parts):
            losses.add("synthesized", "a text was sent for its media", message=self.message, path="payload.result")
            return NO_MEDIA
        whole: str = result.result_json[:]
        # Empty content is none: an empty string goes as its JSON text.
        return str(result.plain_result()) if whole[0] == '"' and whole != '""' else whole


class Turn(NamedTuple):
    """Neighbouring messages of one side; results are in the order of their calls.

    Where the table of calls says so, what the user says stands behind them: entries without a `call`.

    A turn of which nothing is left is none, so that any side but results may follow any other. Where a wire forbids
    that, `encode_turn` puts a short item of the missing side before the turn's own (loss: synthesized).
    """

    side: Side
    entries: tuple[Entry, ...]
    follows: Side | None = None
    """The side of the turn before it that came to an item; None where there is none but hoisted ones."""


class Unchecked(Loss):
    """A mark in a log of losses for content that is sent although nothing documents that the target takes it."""


class LossLog:
    """Where encoders write down what the target cannot take."""

    __slots__ = ("losses",)

    def __init__(self) -> None:
        self.losses: list[Loss] = []

    def add(self, kind: LossKind, reason: str, *, message: Message | None = None, path: str = "") -> None:
        """Write down one loss."""
        self.losses.append(Loss(kind=kind, message_id=message.id if message else "", path=path, reason=reason))

    def add_unchecked(self, path: str, message: Message) -> None:
        """Write down the place of something that is sent although nothing documents that the target takes it."""
        self.losses.append(Unchecked(kind="dropped", message_id=message.id, path=path, reason="unverified"))

    def lose(self, kind: LossKind, reason: str, piece: KnownPart, entry: Entry, within: str = "") -> None:
        """Write down the loss of one piece of a message; `within` is the path inside it."""
        parts = entry.message.parts
        found = [index for index, part in enumerate(parts) if part is piece] or [
            index for index, part in enumerate(parts) if _is_left_of(part, piece)
        ]
        self.add(kind, reason, message=entry.message, path=f"parts[{found[0]}]{within}" if found else "")


def _is_left_of(part: Part, piece: KnownPart) -> bool:
    """Whether a piece is that part but for its hints, of which a target takes its own."""
    both = part.kind == piece.kind == "media"
    return both and {**vars(part), "vendor_json": None} == {**vars(piece), "vendor_json": None}


Difference: TypeAlias = Literal["", "origin", "provider", "dialect", "endpoint", "model"]


def itself(model: str) -> str:
    """A model is a family of its own."""
    return model


def of_any_model(endpoint: str, model: str) -> str:
    """An endpoint is a place of its own, whatever the model."""
    return endpoint


@dataclass(frozen=True, slots=True)
class TurnScope:
    """All that the encoding of a turn may depend on besides the turn itself."""

    target: Target
    tables: Tables
    speaks_as: str = "llm"
    family: Callable[[str], str] = itself
    place: Callable[[str, str], str] = of_any_model
    model_info: ModelInfo = ModelInfo(prefix="")
    media_labels: bool = False
    unsupported_media: UnsupportedMedia = "placeholder"
    quirks: frozenset[str] = frozenset()
    """Deviations of this endpoint from the dialect, by names that the dialect defines."""
    has_stored_calls: bool = False
    """Whether the server stores earlier messages, so that a result may come without its call."""
    declared_names: tuple[str, ...] = ()
    """Names of offered options that the wire cannot take as they are."""

    def differs_by(self, origin: Origin | None) -> Difference:
        """What of an origin is another than here, so that its state stays behind; "" where it is this very target."""
        if origin is None:
            return "origin"
        target = self.target
        if origin.provider != target.provider:
            return "provider"
        if origin.dialect != target.dialect:
            return "dialect"
        if origin.model == target.model and origin.endpoint == target.endpoint:
            return ""
        if self.place(origin.endpoint, origin.model) != self.place(target.endpoint, target.model):
            return "endpoint"
        return "" if self.family(origin.model) == self.family(target.model) else "model"

    def placeholder_or_drop(self, reason: str, piece: MediaPart, entry: Entry, losses: LossLog) -> str:
        """The text that stands for a medium that a wire does not take there; empty where it shall be left out."""
        if self.unsupported_media == "drop":
            losses.lose("dropped", reason, piece, entry)
            return ""
        losses.lose("downgraded", f"{reason}; a text that names it was sent instead", piece, entry)
        return piece.placeholder
