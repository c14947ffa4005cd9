"""What a target takes of one message: its parts, or what stands for them, and every loss on the way.

    text       as it is; empty text is left out
    media      as it is where the dialect's table and the model take it; else a placeholder, or nothing
    hints      of a medium that goes along, those that its row has a model of (`vocabulary.hints`)
    reasoning  only back to where it came from
    opaque     only back to where it came from, in its dialect
    refusal    as it is where the side has a place for it; else as text
    state      beside a text, a medium or a refusal: only back to where it came from, and only in the assistant's turn

Leaf functions of a dialect see only what is left, so that they map and never decide.
"""

from collections.abc import Callable, Collection, Sequence
from functools import lru_cache
from typing import NamedTuple, TypeAlias, get_args

from sabir.base.losses import LossKind
from sabir.contract.scope import LossLog, TurnScope
from sabir.contract.tables import Side
from sabir.vocabulary.hints import Taker, take_hints, with_hints
from sabir.vocabulary.media import (
    Form,
    Modality,
    form_of,
    mime_type,
    read_data_url,
    scheme_of,
    shorten,
    spelled_for_url,
    split_provider_file,
)
from sabir.vocabulary.messages import Message, Origin
from sabir.vocabulary.parts import (
    KnownPart,
    MediaPart,
    OpaquePart,
    Part,
    ReasoningPart,
    RefusalPart,
    Stateful,
    TextPart,
    UnknownPart,
)

Taken: TypeAlias = tuple[KnownPart, ...]
IsHome: TypeAlias = Callable[[Origin | None], bool]
"""Whether what came from there came from this very target, so that its state goes back."""


def home_of(scope: TurnScope, family_of: Callable[[str], str]) -> IsHome:
    """Which origins are this very target: its provider, dialect, endpoint and model family."""
    target, family = scope.target, scope.family
    provider, dialect, endpoint = target.provider, target.dialect, target.endpoint

    family_of = lru_cache(maxsize=256)(family_of)

    def is_home(origin: Origin | None) -> bool:
        if origin is None or origin.dialect != dialect or origin.provider != provider or origin.endpoint != endpoint:
            return False
        return family_of(origin.model) == family

    return is_home


def withhold(message: Message, path: str, side: Side, losses: LossLog, *, is_home: bool) -> None:
    """Tell of state that stays behind, beside content that goes along; of nothing where it goes back too."""
    where = _where(message.origin)
    if not is_home:
        reason = f"its state goes back only to where it came from, {where}"
        losses.add("withheld", reason, message=message, path=path)
    elif side != "assistant":
        reason = f"the state of {where} goes back only in the assistant's turn"
        losses.add("withheld", reason, message=message, path=path)


def goes_back(part: OpaquePart, message: Message, side: Side, scope: TurnScope, *, is_home: bool) -> bool:
    """Whether a provider's own block returns to its maker: in its dialect, and from a message of no other origin."""
    takes = "opaque" in scope.tables.roles.native.get(side, ())
    return takes and part.dialect == scope.target.dialect and (is_home or message.origin is None)


class _Medium(NamedTuple):
    """All that decides whether a target takes a media part."""

    modality: Modality
    form: Form
    mime: str | None
    """The part's own type, or its data URL's."""
    owner: str = ""
    """The provider that a file is with."""
    parameters: str = ""
    """Those of a data URL's type."""


def _typed(part: MediaPart) -> MediaPart:
    """The part as it is; where its data URL says no type, with the type that its hint says."""
    if part.url[5:6] not in ";," or form_of(part.url) != "data" or not mime_type(part.mime):
        return part
    return part.model_copy(update={"url": f"data:{spelled_for_url(part.mime or '')}{part.url[5:]}"})


def _medium(part: MediaPart) -> _Medium:
    url, form = part.url, form_of(part.url)
    if form == "data":
        header = read_data_url(url)
        return _Medium(part.modality, form, header.mime, parameters=header.parameters)
    return _Medium(part.modality, form, part.mime, split_provider_file(url)[0] if form == "file" else "")


class PartFilter:
    """Takes from messages what one target takes of them, numbering media over the whole request."""

    __slots__ = ("_losses", "_refusals", "_scope", "media_count")

    def __init__(self, scope: TurnScope, losses: LossLog, media_count: int = 0) -> None:
        self._scope = scope
        self._losses = losses
        self.media_count = media_count
        self._refusals: dict[tuple[Side, _Medium], str | None] = {}
        """Why a side does not take a medium; None where it does."""

    def take(
        self, message: Message, parts: Sequence[Part], side: Side, is_home: bool, omitted: Collection[int] = ()
    ) -> Taken:
        """Those of a message's parts that this side of the wire takes, in order; `is_home` if they came from there."""
        keeps = is_home and side == "assistant"
        pieces: list[KnownPart] = []
        for index, part in enumerate(parts):
            if type(part) is TextPart and part.text and not part.citations and (keeps or part.state_json is None):
                if len(parts) == 1:
                    return (part,)
                pieces.append(part)
            elif index not in omitted:
                pieces += self._take_part(part, message, index, side, is_home)
        return tuple(pieces)

    def _take_part(self, part: Part, message: Message, index: int, side: Side, is_home: bool) -> Taken:
        if part.kind == "media":
            return self._take_media(part, message, index, side, is_home)
        if isinstance(part, ReasoningPart | OpaquePart):
            return self._take_bound(part, message, index, side, is_home)
        if part.kind == "text":
            return self._take_text(part, message, index, side, is_home)
        if part.kind == "refusal":
            return self._take_refusal(part, message, index, side, is_home)
        return self._leave_out(part, message, index)

    def _lose(self, kind: LossKind, reason: str, message: Message, index: int, within: str = "") -> None:
        self._losses.add(kind, reason, message=message, path=f"parts[{index}]{within}")

    def _withhold(self, part: Stateful, message: Message, index: int, side: Side, is_home: bool) -> None:
        if part.state_json is not None:
            withhold(message, f"parts[{index}].state", side, self._losses, is_home=is_home)

    def _leave_out(self, part: UnknownPart, message: Message, index: int) -> Taken:
        said = part.document
        if said["kind"] != "media":
            reason = f"parts of the kind {said['kind']!r} are unknown to this version"
        elif said.get("modality") not in get_args(Modality):
            reason = f"media of the modality {said.get('modality')!r} are unknown to this version"
        else:
            reason = f"URLs of the scheme {scheme_of(str(said.get('url')))!r} are unknown to this version"
        self._lose("dropped", reason, message, index)
        return ()

    def _take_text(self, part: TextPart, message: Message, index: int, side: Side, is_home: bool) -> Taken:
        keeps = is_home and side == "assistant"
        if not part.text and not (keeps and part.state_json is not None):
            self._lose("dropped", "the text is empty", message, index)
            return ()
        if part.citations and not (keeps and self._scope.tables.roles.citations == "native"):
            reason = "a request of this dialect has no place for these citations"
            self._lose("dropped", reason, message, index, ".citations")
        self._withhold(part, message, index, side, is_home)
        return (part,)

    def _take_refusal(self, part: RefusalPart, message: Message, index: int, side: Side, is_home: bool) -> Taken:
        if not part.text:
            self._lose("dropped", "the refusal is empty", message, index)
            return ()
        self._withhold(part, message, index, side, is_home)
        if "refusal" in self._scope.tables.roles.native.get(side, ()):
            return (part,)
        self._lose("downgraded", "the refusal renders as text", message, index)
        return (TextPart(text=part.text),)

    def _take_bound(
        self, part: ReasoningPart | OpaquePart, message: Message, index: int, side: Side, is_home: bool
    ) -> Taken:
        scope, kind, takes_text = self._scope, part.kind, self._scope.tables.roles.reasoning == "any"
        if kind not in scope.tables.roles.native.get(side, ()):
            reason = f"{scope.target.dialect} takes no {kind} part from the {side} side"
        elif part.kind == "opaque" and part.dialect != scope.target.dialect:
            reason = f"the block is {part.dialect}'s own and goes back only there"
        elif not is_home and (kind == "reasoning" or message.origin is not None):
            reason = f"it goes back only to where it came from, {_where(message.origin)}"
        elif part.kind == "reasoning" and part.state_json is None and not (takes_text and part.text):
            reason = "the reasoning carries no state of its maker" if part.text else "the reasoning is empty"
        else:
            return (part,)
        self._lose("dropped", reason, message, index)
        return ()

    def _take_media(self, part: MediaPart, message: Message, index: int, side: Side, is_home: bool) -> Taken:
        part = _typed(part)
        medium = _medium(part)
        if (side, medium) not in self._refusals:
            self._refusals[side, medium] = self._refusal_of_media(medium, side)
        refusal = self._refusals[side, medium]
        if refusal is None:
            self._withhold(part, message, index, side, is_home)
            rule = self._scope.tables.media[side, part.modality]
            if medium.parameters and not rule.parameters:
                reason = f"{self._scope.target.dialect} takes no {medium.parameters!r} with the type {medium.mime}"
                self._lose("dropped", reason, message, index, ".url")
            if part.vendor_json is not None:
                taker = self._taker(part.modality, message, index, side)
                part = with_hints(part, take_hints(part.vendor_json, rule.hints, taker))
            self.media_count += 1
            if not self._scope.media_labels:
                return (part,)
            hint = f" {part.prompt_hint}" if part.prompt_hint else ""
            return TextPart(text=f"Media {self.media_count}:{hint}"), part
        if self._scope.unsupported_media == "drop":
            self._lose("dropped", refusal, message, index)
            return ()
        self._lose("downgraded", f"{refusal}; a placeholder names it", message, index)
        return (TextPart(text=placeholder(part)),)

    def _taker(self, modality: Modality, message: Message, index: int, side: Side) -> Taker:
        return Taker(
            provider=self._scope.target.provider,
            place=f"parts[{index}] of message {message.id}",
            wire=f"{self._scope.target.dialect} on the {side} side",
            kind=modality,
            lose=lambda path, reason: self._lose("dropped", reason, message, index, path),
        )

    def _refusal_of_media(self, medium: _Medium, side: Side) -> str | None:
        scope, modality = self._scope, medium.modality
        rule = scope.tables.media.get((side, modality))
        where = f"{scope.target.dialect} on the {side} side"
        if rule is None:
            return f"{where} takes no {modality}"
        refusal = rule.refusal(medium.form, medium.mime)
        if refusal is not None:
            return f"{where} {refusal} ({modality})"
        if medium.form == "file" and medium.owner != scope.target.provider:
            return f"the file is with {medium.owner}, not with {scope.target.provider}"
        if side == "results" and "results_media" in scope.model_info.rejects:
            return f"{scope.target.model} takes no media in option results"
        modalities = scope.model_info.modalities
        if modalities is not None and modality not in modalities:
            return f"{scope.target.model} reads no {modality}"
        return None


def placeholder(part: MediaPart) -> str:
    """The words that stand for a medium that a target does not take."""
    described = part.prompt_hint or part.name or (part.mime or "").strip()
    where = "" if form_of(part.url) == "data" else f" {shorten(part.url)[1:-1]}"
    return f"[{part.modality} not shown{': ' + described if described else ''}{where}]"


def _where(origin: Origin | None) -> str:
    if origin is None:
        return "which its message does not say"
    return f"{origin.provider} {origin.dialect} {origin.model}".strip()
