"""The tables of a dialect, and the arguments of its encoder: turns, entries, scope and losses.

    roles    which parts each side accepts; where system messages go; which of the model's own parts are sent back
    media    (side, modality) ──▶ which forms and MIME types this side accepts
    native   tool ──▶ how the API declares the vendor's own tool
    calls    the accepted ids and names; hints of options; the place of results; what is sent for calls without a result

Core applies the tables before it calls a function of the dialect, so that the function only gets what it can encode:

    Turn = side + entries          Entry = message + pieces (the parts to send) + id to send + name to send
    TurnScope                      equal scopes and equal turns give equal bytes
    LossLog                        what the target cannot accept

Entries return plain dicts, lists and strings, which the serializer writes faster than the immutable views of messages.
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
from sabir.contract.native import NativeTool
from sabir.vocabulary.media import MediaRule, Modality
from sabir.vocabulary.messages import Message, OptionCallPayload, OptionResultPayload, Origin
from sabir.vocabulary.models import ModelInfo
from sabir.vocabulary.native import NativeCallPart, NativeResultPart
from sabir.vocabulary.parts import MediaPart, Part, Piece, Stateful
from sabir.vocabulary.settings import Target, UnsupportedMedia

Side: TypeAlias = Literal["system", "user", "assistant", "results"]
"""The side of a turn: "system", "user", "assistant" (the model's own messages and calls) or "results" (option results).
A results turn directly follows the assistant turn whose calls it answers, unless the server stores the calls
(`Calls.stored_by`).
"""


@dataclass(frozen=True, slots=True)
class Roles:
    """Which kinds of parts each side of the API accepts besides text and media, and where system messages go. A field
    of Tables.

    `native` maps a side to the kinds of parts that `encode_turn` can encode: "reasoning", "refusal" and "opaque". Core
    removes the other kinds, or sends a refusal as text, and reports losses. Calls of the vendor's own tools and their
    results are opaque parts here, and texts for other vendors. `leading_system` is for system messages at
    the start: "inline" passes them to `encode_turn` as a turn, "hoisted" to `encode_request` in `RequestScope.system`.
    `later_system` is for later system messages: "inline" makes them system turns, "user" makes them user messages, and
    "after_user" makes them a system turn at the end of the user's turn and user messages elsewhere.

    `citations` "native" sends citations of text parts back to the target that created them; "dropped" never sends them.
    `reasoning` says which reasoning is sent: "any" all reasoning of the target itself, "with_state" only the target's
    reasoning with signed state. "foreign" sends the same as "any" and the visible reasoning text of other models, for
    endpoints that refuse an assistant turn without reasoning.
    """

    native: Mapping[Side, frozenset[str]] = field(default_factory=dict)
    leading_system: Literal["inline", "hoisted"] = "inline"
    later_system: Literal["inline", "user", "after_user"] = "inline"
    citations: Literal["native", "dropped"] = "dropped"
    reasoning: Literal["any", "with_state", "foreign"] = "any"


_HASH_LENGTH = 12
"""The largest number of hexadecimal digits in a derived identifier."""


@dataclass(frozen=True)
class IdentifierRule:
    """The rule for the ids or names that an API accepts. Used in Calls and SchemaRule.

    `characters` is a regular expression for one character, and `first` one for the first character; "" as `first` means
    the same as `characters`. `longest` is the maximum number of characters. The rule must accept the
    characters that `derive` uses: hexadecimal digits, "x" and, if `longest` is 14 or more, "_".

    >>> from sabir.authoring import IdentifierRule
    >>> rule = IdentifierRule(longest=20)
    >>> rule.fit("call_1"), rule.fit("call 1")
    ('call_1', 'call_1_f6b57eba9de2')
    """

    characters: str = r"[A-Za-z0-9_-]"
    longest: int = 64
    first: str = ""

    @cached_property
    def whole(self) -> re.Pattern[str]:
        """The compiled regular expression for accepted identifiers. Use it with `fullmatch`."""
        return re.compile(f"(?:{self.first or self.characters})(?:{self.characters}){{0,{self.longest - 1}}}")

    @cached_property
    def _foreign(self) -> re.Pattern[str]:
        return re.compile(f"(?!{self.characters})[\\s\\S]")

    def fit(self, identifier: str) -> str:
        """Return the identifier unchanged if the API accepts it, otherwise an accepted one derived from it
        by `derive`.
        """
        return identifier if self.whole.fullmatch(identifier) else self.derive(identifier)

    def derive(self, identifier: str, occurrence: int = 0) -> str:
        """Return an accepted identifier for any string: the shortened string with "_" in place of other characters,
        "_", and up to 12 hexadecimal digits of a hash. If the first character is not accepted, "x" is put before it.
        With `longest` under 14, only hexadecimal digits and the "x" are used.

        The same string and `occurrence` always give the same identifier. Another `occurrence` almost certainly gives
        another identifier, unless `longest` is small.
        """
        digest = sha256(f"{identifier}\0{occurrence}".encode("utf-8", "surrogatepass")).hexdigest()[:_HASH_LENGTH]
        accepted = self._foreign.sub("_", identifier)[: max(self.longest - _HASH_LENGTH - 1, 0)]
        derived = f"{accepted}_{digest}" if accepted else digest
        return derived if self.whole.fullmatch(derived) else f"x{derived}"[: self.longest]


@dataclass(frozen=True, slots=True)
class Calls:
    """How an API accepts option calls and their results. A field of Tables.

    `ids` and `names` are the rules for call ids and option names. `hints` is a strict, frozen pydantic model of the
    vendor hints that an option may have; None means that no hints are accepted.

    `incomplete` is for calls without a result when a user or system message follows or the request ends. "left_out"
    removes the call (loss: dropped); a result that arrives later brings the call back, at the result's place.
    "answered" sends an error as the result (loss: synthesized); a later result is dropped.

    `results` "apart" makes the results a turn of their own. "with_user" puts the user's next messages into the same
    turn, after the results. `unfinished_pairs` is for an opaque part that opens a pair and has no second half:
    "dropped" removes the part; "kept_at_the_end" sends the part if the conversation ends with it, because the provider
    may have paused in the middle of a turn. `stored_by` names the vendor settings and `extra_body` fields that refer to
    messages stored on the server. If one of them is set, a result whose call is not in the conversation is sent too.
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
    """The rules of an API as data: roles, media, calls and native tools. A field of Dialect; core applies the rules
    before it calls the dialect's functions.

    `media` maps (side, modality) to a MediaRule. A side accepts no media of a modality that has no entry; the side
    "results" is for option results. `variants` maps a quirk of an endpoint or a model to the tables to use instead, or
    to a function that returns changed tables. `native` maps "web_search", "code_execution" and "mcp_server" to how the
    API declares the vendor's own tool; a tool without an entry is a loss, or replaced by the user's function.
    """

    roles: Roles = Roles()
    media: Mapping[tuple[Side, Modality], MediaRule] = field(default_factory=dict)
    calls: Calls = Calls()
    variants: Mapping[str, "Tables | Callable[[Tables], Tables]"] = field(default_factory=dict)
    native: Mapping[str, NativeTool] = field(default_factory=dict)

    def at(self, quirks: frozenset[str], info: ModelInfo) -> "Tables":
        """Return the tables for a model at an endpoint with these quirks: apply the variants of the quirks, sorted by
        name.

        If the model rejects "later_system", `roles.later_system` becomes "user".
        """
        tables = self
        for variant in (self.variants[quirk] for quirk in sorted(quirks) if quirk in self.variants):
            tables = variant if isinstance(variant, Tables) else variant(tables)
        if "later_system" in info.rejects and tables.roles.later_system != "user":
            tables = replace(tables, roles=replace(tables.roles, later_system="user"))
        return tables


new_tuple = tuple.__new__
"""Creates a named tuple: `new_tuple(Turn, (side, entries, follows))`. Faster than calling the class.

All values are needed, defaults included. Their number is not checked.
"""
NO_MEDIA = "(its media are not shown)"
"""The text that is sent for a result if its media cannot be sent."""
UNREADABLE = "invalid_json"
"""The name of the field in which the text of arguments that are not a JSON object is sent."""
_NO_FIELDS: Mapping[str, Any] = FrozenDict()


class Entry(NamedTuple):
    """One message of a turn, with only the content that the target accepts. Created by core. `Turn.entries` contains
    the entries of a turn.
    """

    message: Message
    """The message of the conversation, unchanged. For a missing result, an error result that core created."""
    pieces: tuple[Piece, ...] = ()
    """The parts to send, in order. Core has removed or replaced the parts that the target does not accept,
    with a loss.
    """
    wire_id: str = ""
    """The call id to send, for a call or a result; "" for other messages. It follows the rule `Calls.ids`."""
    wire_name: str = ""
    """The option name to send, for a call or a result; "" for other messages. It follows the rule `Calls.names`."""
    keeps_state: bool = False
    """Whether the message came from this target and is sent as the model's own. Only then may its signed
    state be sent.
    """
    call: "Entry | None" = None
    """For a result, the entry of its call, or None if the call is not in the conversation. Otherwise None."""

    @property
    def result(self) -> OptionResultPayload:
        """The option result of the message. Raises AssertionError if the message is not an option result."""
        result = self.message.payload
        assert result.kind == "option_result"
        return result

    @property
    def call_state(self) -> Mapping[str, Any]:
        """The signed state of the call, or of the call that this result answers, as an object. Empty if there is none,
        if it is not an object, or if it must not be sent to this target.
        """
        entry = self.call or self
        call = entry.message.payload
        if not entry.keeps_state or call.kind != "option_call" or call.state_json is None:
            return _NO_FIELDS
        return entry.state_of(call)

    def state_of(self, stated: Stateful) -> Mapping[str, Any]:
        """Return the signed state of a part or call as an object. Empty if there is none, if it is not an object, or if
        it must not be sent to this target.
        """
        state = from_json(stated.state_json) if self.keeps_state and stated.state_json is not None else None
        return state if isinstance(state, dict) else _NO_FIELDS

    def arguments_text(self, target: Target, losses: "LossLog", *, verbatim: bool = False) -> str:
        """Return the arguments of a call as JSON text.

        A call that came from the dialect of `target` is sent with its original text, if it has one, but empty text and
        "null" become "{}". Any other call is sent with compact JSON. Text that is not a JSON object is sent as the
        only field "invalid_json" of an object, and a loss is added to `losses`. `verbatim` True sends such text
        unchanged to the dialect that it came from; use it only if the vendor documents that this is accepted.
        """
        call, origin = self._option_call(), self.message.origin
        raw = call.raw_arguments or ""
        # Some models write white space or null for no arguments, which servers refuse on the way back: it becomes "{}".
        is_home = self.keeps_state or (origin is not None and origin.dialect == target.dialect)
        if raw.strip() not in ("", "null") and is_home and (verbatim or not call.unreadable_arguments):
            return raw
        return encode_json(self.arguments_value(losses)) if call.unreadable_arguments else call.arguments_json[:]

    def arguments_value(self, losses: "LossLog") -> Mapping[str, Any]:
        """Return the arguments of a call as an object. Text that is not a JSON object becomes the only field
        "invalid_json", and a loss is added to `losses`.
        """
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
        """Return the value of an option result as text: a string that is not empty unchanged, any other value as JSON.

        The pieces are not included. If the result had media and no piece can be sent, return the text "(its media are
        not shown)", with a loss.
        """
        result = self.result
        if result.parts and not self.pieces and any(isinstance(part, MediaPart) for part in result.parts):
            losses.add("synthesized", "a text replaced the media", message=self.message, path="payload.result")
            return NO_MEDIA
        text: str = result.result_json[:]
        # APIs refuse empty content, so an empty string is sent as the JSON text "".
        return str(result.plain_result()) if text[0] == '"' and text != '""' else text


class Turn(NamedTuple):
    """Consecutive messages of one side. Created by core and passed to `encode_turn`.

    Results are in the order of their calls. With `Calls.results="with_user"`, the user's messages follow the results in
    the same turn, as entries without a `call`. Turns without content are left out, so two turns of the same side may
    follow each other. If the API refuses two adjacent turns of one side, `encode_turn` must add a short item of the
    missing side and a loss of the kind "synthesized".
    """

    side: Side
    """The side of the entries; "results" also if user messages follow the results in the same turn."""
    entries: tuple[Entry, ...]
    """The messages, in order."""
    follows: Side | None = None
    """The side of the previous turn that produced an item in the request. None if there is no such turn."""


class Unchecked(Loss):
    """An entry of a LossLog that is not a loss: content that is sent although no source documents that it
    is accepted.
    """


class LossLog:
    """Collects the losses of a request. Core passes a LossLog to `encode_turn`, and `RequestScope.losses`
    is a LossLog.
    """

    __slots__ = ("losses",)

    def __init__(self) -> None:
        self.losses: list[Loss] = []

    def add(self, kind: LossKind, reason: str, *, message: Message | None = None, path: str = "") -> None:
        """Add a loss. `kind` is a LossKind, and `reason` a phrase for users, such as "the API has no field for it".

        `message` is the message that loses something, and `path` the place inside it. Without a message, `path` is the
        place in the arguments of the call, such as "settings.seed".
        """
        self.losses.append(Loss(kind=kind, message_id=message.id if message else "", path=path, reason=reason))

    def add_unchecked(self, path: str, message: Message) -> None:
        """Record that the content at `path` of the message is sent although no source documents that the target accepts
        it. The place appears in `Rendering.unchecked`.
        """
        self.losses.append(Unchecked(kind="dropped", message_id=message.id, path=path, reason="unverified"))

    def lose(self, kind: LossKind, reason: str, piece: Piece, entry: Entry, within: str = "") -> None:
        """Add the loss of one part of a message. `piece` is an item of `entry.pieces`, and `within` is added to the
        part's path, such as ".citations".
        """
        parts = entry.message.parts
        indexes = [index for index, part in enumerate(parts) if part is piece] or [
            index for index, part in enumerate(parts) if is_sent_as(part, piece)
        ]
        self.add(kind, reason, message=entry.message, path=f"parts[{indexes[0]}]{within}" if indexes else "")


def is_sent_as(part: Part, piece: Piece) -> bool:
    """Return whether `piece` replaces `part`: a medium with filtered vendor hints, or the block or text of a native
    call or result.
    """
    if isinstance(part, NativeCallPart | NativeResultPart):
        if piece.kind == "opaque":
            return piece.block_json is part.raw_json
        return piece.kind == "text" and piece.text == part.as_text
    both = part.kind == piece.kind == "media"
    return both and {**vars(part), "vendor_json": None} == {**vars(piece), "vendor_json": None}


Difference: TypeAlias = Literal["", "origin", "provider", "dialect", "endpoint", "model"]


def itself(model: str) -> str:
    """Return the model: by default every model is its own family."""
    return model


def of_any_model(endpoint: str, model: str) -> str:
    """Return the endpoint: by default all models of an endpoint share signed state."""
    return endpoint


@dataclass(frozen=True, slots=True)
class TurnScope:
    """Everything that `encode_turn` may use besides the turn itself. Created by core. Equal scopes and equal turns must
    give equal results, because core caches encoded turns.

    `target` is the provider, dialect, model and endpoint. `tables` are the dialect's tables for this model and
    endpoint. `speaks_as` is the policy whose messages are the model's own. `family` and `place` are the functions of
    the Dialect. `model_info` are the known facts about the model. `media_labels` and `unsupported_media` are the
    settings of the same names; core has applied both.
    """

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
    """Whether a vendor setting in `Calls.stored_by` is set. Then a result may be sent without its call."""
    declared_names: tuple[str, ...] = ()
    """The names of all offered options, if the API does not accept at least one of them unchanged. Otherwise empty."""

    def differs_by(self, origin: Origin | None) -> Difference:
        """Return "" if signed state of `origin` may be sent to the target; otherwise the first field that differs.

        The fields are "provider", "dialect", "endpoint" (keys of `place`) and "model" (families of `family`). For None
        as `origin`, return "origin".
        """
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
        """Return the text to send in place of a medium that the API does not accept, and add a loss with this reason.

        If the setting `unsupported_media` is "drop", return "", and send nothing. Only needed for media that MediaRule
        cannot refuse. `piece` is the media part and `entry` the entry that contains it.
        """
        if self.unsupported_media == "drop":
            losses.lose("dropped", reason, piece, entry)
            return ""
        losses.lose("downgraded", f"{reason}; a text that names the medium was sent instead", piece, entry)
        return piece.placeholder
