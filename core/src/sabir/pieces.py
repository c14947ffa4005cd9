"""What a target takes of one message: its parts, or what stands for them, and every loss on the way.

    text       as it is; empty text is left out
    media      as it is where the dialect's table and the model take it; else a placeholder, or nothing
    reasoning  only back to where it came from
    opaque     only back to where it came from, in its dialect
    refusal    as it is where the side has a place for it; else as text

Leaf functions of a dialect see only what is left, so that they map and never decide.
"""

from collections.abc import Callable, Collection, Sequence
from functools import lru_cache
from typing import TypeAlias

from sabir.media import form_of, shorten, split_provider_file
from sabir.messages import Message, Origin
from sabir.parts import (
    KnownPart,
    MediaPart,
    OpaquePart,
    Part,
    ReasoningPart,
    RefusalPart,
    TextPart,
    UnknownPart,
)
from sabir.scope import LossLog, Side, TurnScope

IsHome: TypeAlias = Callable[[Origin | None], bool]
"""Whether what came from there came from this very target, so that its state goes back."""


def home_of(scope: TurnScope, family_of: Callable[[str], str]) -> IsHome:
    """Which origins are this very target: its provider, dialect, endpoint and model family."""
    target, family = scope.target, scope.family
    provider, dialect, endpoint = target.provider, target.dialect, target.endpoint

    @lru_cache(maxsize=256)
    def is_of_family(model: str) -> bool:
        return family_of(model) == family

    def is_home(origin: Origin | None) -> bool:
        if origin is None or origin.dialect != dialect or origin.provider != provider or origin.endpoint != endpoint:
            return False
        return is_of_family(origin.model)

    return is_home


def goes_back(part: OpaquePart, message: Message, side: Side, scope: TurnScope, *, is_home: bool) -> bool:
    """Whether a provider's own block returns to its maker: in its dialect, and from a message of no other origin."""
    takes = "opaque" in scope.tables.native.get(side, ())
    return takes and part.dialect == scope.target.dialect and (is_home or message.origin is None)


class PartFilter:
    """Takes from messages what one target takes of them, numbering media over the whole request (PJ-51)."""

    __slots__ = ("_losses", "_scope", "media_count")

    def __init__(self, scope: TurnScope, losses: LossLog, media_count: int = 0) -> None:
        self._scope = scope
        self._losses = losses
        self.media_count = media_count

    def take(
        self, message: Message, parts: Sequence[Part], side: Side, is_home: bool, omitted: Collection[int] = ()
    ) -> tuple[KnownPart, ...]:
        """Those of a message's parts that this side of the wire takes, in order; `is_home` if its state goes back."""
        if len(parts) == 1 and type(part := parts[0]) is TextPart and part.text and not part.citations:
            return (part,)
        pieces: list[KnownPart] = []
        for index, part in enumerate(parts):
            if type(part) is TextPart and part.text and not part.citations:
                pieces.append(part)
            elif index not in omitted:
                pieces += self._take_part(part, message, f"parts[{index}]", side, is_home)
        return tuple(pieces)

    def _take_part(self, part: Part, message: Message, path: str, side: Side, is_home: bool) -> tuple[KnownPart, ...]:
        match part:
            case TextPart():
                return self._take_text(part, message, path, is_home)
            case MediaPart():
                return self._take_media(part, message, path, side)
            case ReasoningPart() | OpaquePart():
                return self._take_bound(part, message, path, side, is_home)
            case RefusalPart():
                return self._take_refusal(part, message, path, side)
            case UnknownPart():
                reason = f"parts of the kind {part.document['kind']!r} are unknown to this version"
                self._losses.add("dropped", reason, message=message, path=path)
                return ()

    def _take_text(self, part: TextPart, message: Message, path: str, is_home: bool) -> tuple[KnownPart, ...]:
        if not part.text and not (is_home and part.state_json is not None):
            self._losses.add("dropped", "the text is empty", message=message, path=path)
            return ()
        if part.citations and not (is_home and self._scope.tables.citations == "native"):
            reason = "a request of this dialect has no place for these citations"
            self._losses.add("dropped", reason, message=message, path=f"{path}.citations")
        return (part,)

    def _take_refusal(self, part: RefusalPart, message: Message, path: str, side: Side) -> tuple[KnownPart, ...]:
        if not part.text:
            self._losses.add("dropped", "the refusal is empty", message=message, path=path)
            return ()
        if "refusal" in self._scope.tables.native.get(side, ()):
            return (part,)
        self._losses.add("downgraded", "the refusal renders as text", message=message, path=path)
        return (TextPart(text=part.text),)

    def _take_bound(
        self, part: ReasoningPart | OpaquePart, message: Message, path: str, side: Side, is_home: bool
    ) -> tuple[KnownPart, ...]:
        scope = self._scope
        if part.kind not in scope.tables.native.get(side, ()):
            reason = f"{scope.target.dialect} takes no {part.kind} part from the {side} side"
        elif part.kind == "opaque" and part.dialect != scope.target.dialect:
            reason = f"the block is {part.dialect}'s own and goes back only there"
        elif not is_home and (part.kind == "reasoning" or message.origin is not None):
            reason = f"it goes back only to where it came from, {_where(message.origin)}"
        elif (
            part.kind == "reasoning" and part.state_json is None and not (part.text and scope.tables.reasoning == "any")
        ):
            reason = "the reasoning carries no state of its maker" if part.text else "the reasoning is empty"
        else:
            return (part,)
        self._losses.add("dropped", reason, message=message, path=path)
        return ()

    def _take_media(self, part: MediaPart, message: Message, path: str, side: Side) -> tuple[KnownPart, ...]:
        refusal = self._refusal_of_media(part, side)
        if refusal is None:
            self.media_count += 1
            if not self._scope.media_labels:
                return (part,)
            hint = f" {part.prompt_hint}" if part.prompt_hint else ""
            return TextPart(text=f"Media {self.media_count}:{hint}"), part
        if self._scope.unsupported_media == "drop":
            self._losses.add("dropped", refusal, message=message, path=path)
            return ()
        self._losses.add("downgraded", f"{refusal}; a placeholder names it", message=message, path=path)
        return (TextPart(text=placeholder(part)),)

    def _refusal_of_media(self, part: MediaPart, side: Side) -> str | None:
        scope = self._scope
        rule = scope.tables.media.get((side, part.modality))
        where = f"{scope.target.dialect} on the {side} side"
        if rule is None:
            return f"{where} takes no {part.modality}"
        form = form_of(part.url)
        refusal = rule.refusal(form, mime_of(part))
        if refusal is not None:
            return f"{where} {refusal} ({part.modality})"
        if form == "file" and (owner := split_provider_file(part.url)[0]) != scope.target.provider:
            return f"the file is with {owner}, not with {scope.target.provider}"
        if side == "results" and "results_media" in scope.model_info.rejects:
            return f"{scope.target.model} takes no media in option results"
        modalities = scope.model_info.modalities
        if modalities is not None and part.modality not in modalities:
            return f"{scope.target.model} reads no {part.modality}"
        return None


def mime_of(part: MediaPart) -> str | None:
    """The MIME type that a media part declares: its own, or its data URL's."""
    if form_of(part.url) == "data":
        return part.url[5:200].partition(",")[0].partition(";")[0].lower() or "text/plain"
    return part.mime


def placeholder(part: MediaPart) -> str:
    """The words that stand for a medium that a target does not take."""
    described = part.prompt_hint or part.name or (part.mime or "").strip()
    where = "" if form_of(part.url) == "data" else f" {shorten(part.url)[1:-1]}"
    return f"[{part.modality} not shown{': ' + described if described else ''}{where}]"


def _where(origin: Origin | None) -> str:
    if origin is None:
        return "which its message does not say"
    return f"{origin.provider} {origin.dialect} {origin.model}".strip()
