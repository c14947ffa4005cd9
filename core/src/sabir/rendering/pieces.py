"""Select the parts of one message that a target accepts, replace other parts by placeholders, and report every loss.

    text       unchanged; empty text is left out, unless its state is sent
    media      unchanged if the dialect's table and the model accept it; else a placeholder text, or nothing
    hints      of a medium that is sent: the fields of the pydantic model in its MediaRule
    reasoning  only back to its origin, except as text for targets that require reasoning
    opaque     only in its dialect: back to its origin, or without an origin to any target with this dialect
    native     like opaque parts; everywhere else as text
    refusal    unchanged if the side accepts refusals; else as text
    state      of a text, a medium or a refusal: only back to its origin, and only in the assistant's turn

Another model of the same family counts as the origin (`TurnScope.differs_by`). The functions of a dialect get only the
selected parts, so they encode parts and decide nothing.
"""

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, NamedTuple, TypeAlias, get_args

from sabir.base.failures import LossKind
from sabir.contract.turns import Difference, LossLog, Side, TurnScope, new_tuple
from sabir.vocabulary.media import Form, MediaURL, Modality
from sabir.vocabulary.messages import Message, Origin
from sabir.vocabulary.models import FeatureStatus
from sabir.vocabulary.native import NativeCallPart, NativeResultPart
from sabir.vocabulary.parts import (
    HintTarget,
    MediaPart,
    OpaquePart,
    Part,
    Piece,
    ReasoningPart,
    RefusalPart,
    Stateful,
    TextPart,
    UnknownPart,
    VendorPart,
    take_hints,
    with_hints,
)

Taken: TypeAlias = tuple[Piece, ...]


class At(NamedTuple):
    """The place of a part in a message, and what is known about the message."""

    message: Message
    number: int
    """The index of the part in the message."""
    side: Side
    differs: Difference
    """The result of `TurnScope.differs_by` for the message's origin."""
    keeps_state: bool
    """Whether signed state is sent with the part: `differs` is "" and the message is in the assistant's turn."""


def _describe_origin(origin: Origin | None) -> str:
    return "" if origin is None else f"{origin.provider} {origin.dialect} {origin.model}".strip()


def _describe_difference(origin: Origin | None, differs: Difference, scope: TurnScope) -> str:
    """Return the origin of a message, and how the target differs from it, as the end of a loss reason."""
    if origin is None:
        return "which is unknown, because the message has no origin"
    was, now = getattr(origin, differs), getattr(scope.target, differs)
    return f"{_describe_origin(origin)}; the {differs} was {was!r}, and is {now!r}"


def goes_back(part: VendorPart, message: Message, side: Side, scope: TurnScope) -> bool:
    """Return whether a vendor's block is sent: the side accepts opaque parts, the part has the target's dialect, and
    its message has no origin, or one that does not differ from the target by `TurnScope.differs_by`.
    """
    if "opaque" not in scope.tables.roles.native.get(side, ()) or part.dialect != scope.target.dialect:
        return False
    return message.origin is None or not scope.differs_by(message.origin)


def opaque_piece(part: NativeCallPart | NativeResultPart) -> OpaquePart:
    """Return the piece with the vendor's block of a native call or result, which must have a block."""
    assert part.dialect is not None and part.raw_json is not None
    values = {"kind": "opaque", "dialect": part.dialect, "block_json": part.raw_json, "pair_id": None, "pair": None}
    return OpaquePart.construct_unchecked(values, {"dialect", "block_json"})


class _Medium(NamedTuple):
    """The properties of a media part that decide whether a target accepts it."""

    modality: Modality
    form: Form
    mime: str | None
    """The MIME type of the part, or of its data URL."""
    owner: str = ""
    """The provider that stores the file; empty for other forms."""
    parameters: str = ""
    """The parameters of a data URL's MIME type."""


def _with_mime_type(part: MediaPart) -> MediaPart:
    """Return the part. If its data URL has no MIME type, return a copy with the type from `mime` in the URL."""
    if part.url[5:6] not in ";," or part.form != "data" or not part.mime_type:
        return part
    spelled = ";".join(each.strip() for each in (part.mime or "").split(";"))
    return part.model_copy(update={"url": f"data:{spelled}{part.url[5:]}"})


def _read_medium(part: MediaPart) -> _Medium:
    form = part.form
    if form == "data":
        header = part.data_url()
        return _Medium(part.modality, form, header.mime, parameters=header.parameters)
    return _Medium(part.modality, form, part.mime, part.provider_file()[0] if form == "file" else "")


_FAULTS: Mapping[FeatureStatus, str] = {"refused": "refuses", "ignored": "ignores"}


def _feature(medium: _Medium, side: Side) -> str:
    """Return the name of such a medium in the lists of ModelInfo, such as "image.url" or "results.image"."""
    return f"results.{medium.modality}" if side == "results" else f"{medium.modality}.{medium.form}"


class PartFilter:
    """Filters the parts of messages for one target and numbers the media of a request. The base class of TurnMaker."""

    scope: TurnScope
    losses: LossLog
    media_count: int
    refusals: dict[tuple[Side, _Medium], str | None]
    """Cache: side and medium → why the side does not accept the medium, or None if it does."""

    def take(
        self,
        message: Message,
        parts: Sequence[Part],
        side: Side,
        differs: Difference,
        position: int = 0,
        omitted: AbstractSet[tuple[int, int]] = frozenset(),
    ) -> Taken:
        """Return the parts of a message that the API accepts in turns of this side, and the texts that replace or label
        other parts. Adds the losses to `self.losses`.

        `differs` is the result of `TurnScope.differs_by` for the message's origin. `position` is the message's position
        in the conversation. `omitted` are parts to leave out, as pairs of a message's position and a part's index.
        """
        pieces: list[Piece] = []
        keeps = side == "assistant" and not differs
        for index, part in enumerate(parts):
            if type(part) is TextPart and part.text and not part.citations and (keeps or part.state_json is None):
                pieces.append(part)  # nearly all parts are such texts
            elif (position, index) not in omitted:
                pieces += _TAKERS[part.kind](self, part, new_tuple(At, (message, index, side, differs, keeps)))
        return tuple(pieces)

    def _lose(self, kind: LossKind, reason: str, at: At, within: str = "") -> Taken:
        self.losses.add(kind, reason, message=at.message, path=f"parts[{at.number}]{within}")
        return ()

    def withhold(self, stated: Stateful, at: At, path: str = "") -> None:
        """Add a loss if a part's or call's signed state is not sent although its content is.

        `path` is the place of a call's state; for a part, the place is derived from the part's index.
        """
        if stated.state_json is None or at.keeps_state:
            return
        origin = at.message.origin
        if at.differs:
            difference = _describe_difference(origin, at.differs, self.scope)
            reason = f"the signed state is only sent back to its origin, {difference}"
        else:
            reason = f"the state of {_describe_origin(origin)} is only sent back in an assistant message"
        self.losses.add("withheld", reason, message=at.message, path=path or f"parts[{at.number}].state")

    def _leave_out(self, part: UnknownPart, at: At) -> Taken:
        stored = part.document
        if stored["kind"] != "media":
            reason = f"sending parts of the kind {stored['kind']!r} needs a newer version of sabir"
        elif stored.get("modality") not in get_args(Modality):
            reason = f"sending media of the modality {stored.get('modality')!r} needs a newer version of sabir"
        else:
            scheme = MediaURL(str(stored.get("url"))).scheme
            reason = f"sending URLs of the scheme {scheme!r} needs a newer version of sabir"
        return self._lose("dropped", reason, at)

    def _take_text(self, part: TextPart, at: At) -> Taken:
        if not part.text and not (at.keeps_state and part.state_json is not None):
            return self._lose("dropped", "the text is empty", at)
        if part.citations and not (at.keeps_state and self.scope.tables.roles.citations == "native"):
            self._lose("dropped", "requests of this dialect cannot contain these citations", at, ".citations")
        if part.state_json is not None:
            self.withhold(part, at)
        return (part,)

    def _take_refusal(self, part: RefusalPart, at: At) -> Taken:
        if not part.text:
            return self._lose("dropped", "the refusal is empty", at)
        self.withhold(part, at)
        if "refusal" in self.scope.tables.roles.native.get(at.side, ()):
            return (part,)
        self._lose("downgraded", "the refusal was sent as text", at)
        return (TextPart(text=part.text),)

    def _take_bound(self, part: ReasoningPart | OpaquePart, at: At) -> Taken:
        scope, kind, origin = self.scope, part.kind, at.message.origin
        roles = scope.tables.roles
        if kind not in roles.native.get(at.side, ()):
            reason = f"{scope.target.dialect} does not accept {kind} parts in {at.side} messages"
        elif part.kind == "opaque" and part.dialect != scope.target.dialect:
            reason = f"the block is {part.dialect}'s own block and is only sent back to that API"
        elif part.kind == "reasoning" and roles.reasoning == "foreign" and part.text and at.differs:
            back = f"which is only sent back to its origin, {_describe_difference(origin, at.differs, scope)}"
            change = f"{scope.target} requires reasoning; the reasoning was sent without its signature, {back}"
            self._lose("synthesized", change, at)
            return (ReasoningPart(text=part.text),)
        elif at.differs and (kind == "reasoning" or origin is not None):
            reason = f"the part is only sent back to its origin, {_describe_difference(origin, at.differs, scope)}"
        elif part.kind == "reasoning" and not part.state_json and not (part.text and roles.reasoning != "with_state"):
            reason = "the reasoning has no signature, which the API requires" if part.text else "the reasoning is empty"
        else:
            return (part,)
        return self._lose("dropped", reason, at)

    def _take_native(self, part: NativeCallPart | NativeResultPart, at: At) -> Taken:
        """Return the vendor's block for the API that it came from, and a text for any other API.

        A result without a block goes back with the block of its call.
        """
        scope, origin = self.scope, at.message.origin
        if goes_back(part, at.message, at.side, scope):
            return () if part.raw_json is None else (opaque_piece(part),)
        is_own = part.dialect == scope.target.dialect and origin is not None and at.differs
        owner = f"{part.dialect}'s own block" if part.dialect else "not a block of a vendor"
        why = _describe_difference(origin, at.differs, scope) if is_own else f"it is {owner}"
        self._lose("downgraded", f"the {part.kind.replace('_', ' ')} of {part.tool!r} was sent as text; {why}", at)
        return (TextPart(text=part.as_text),)

    def _take_media(self, part: MediaPart, at: At) -> Taken:
        part, scope = _with_mime_type(part), self.scope
        medium = _read_medium(part)
        if (at.side, medium) not in self.refusals:
            self.refusals[at.side, medium] = self._refusal_of_media(medium, at.side)
        if refusal := self.refusals[at.side, medium]:
            if scope.unsupported_media == "drop":
                return self._lose("dropped", refusal, at)
            self._lose("downgraded", f"{refusal}; a text that names the medium was sent instead", at)
            return (TextPart(text=part.placeholder),)
        self.withhold(part, at)
        if scope.model_info.status_of(_feature(medium, at.side)) == "unknown":
            self.losses.add_unchecked(f"parts[{at.number}]", at.message)
        rule = scope.tables.media[at.side, part.modality]
        if medium.parameters and not rule.parameters:
            reason = f"{scope.target.dialect} does not accept {medium.parameters!r} after the type {medium.mime}"
            self._lose("dropped", reason, at, ".url")
        if part.vendor_json is not None:
            part = with_hints(part, take_hints(part.vendor_json, rule.hints, self._hint_target(part.modality, at)))
        self.media_count += 1
        if not scope.media_labels:
            return (part,)
        hint = f" {part.prompt_hint}" if part.prompt_hint else ""
        return TextPart(text=f"Media {self.media_count}:{hint}"), part

    def _hint_target(self, modality: Modality, at: At) -> HintTarget:
        def lose(path: str, reason: str) -> None:
            self._lose("dropped", reason, at, path)

        place, target = f"parts[{at.number}] of message {at.message.id}", self.scope.target
        return HintTarget(target.provider, place, f"{target.dialect} in {at.side} messages", modality, lose)

    def _refusal_of_media(self, medium: _Medium, side: Side) -> str | None:
        scope, modality = self.scope, medium.modality
        rule = scope.tables.media.get((side, modality))
        where = f"{scope.target.dialect} in {side} messages"
        if rule is None:
            return f"{where} does not accept {modality}"
        refusal = rule.refusal(medium.form, medium.mime)
        if refusal is not None:
            return f"{where} {refusal} ({modality})"
        if medium.form == "file" and medium.owner != scope.target.provider:
            return f"the file was uploaded to {medium.owner}, not to {scope.target.provider}"
        if side == "results" and "results_media" in scope.model_info.rejects:
            return f"{scope.target.model} does not accept media in option results"
        info, model = scope.model_info, scope.target.model
        if info.modalities is not None and modality not in info.modalities:
            return f"{model} does not accept {modality}"
        status = info.status_of(_feature(medium, side))
        return f"{model} {_FAULTS[status]} {_feature(medium, side)}" if status in _FAULTS else None


_TAKERS: Mapping[str, Callable[[PartFilter, Any, At], Taken]] = {
    "text": PartFilter._take_text,
    "media": PartFilter._take_media,
    "reasoning": PartFilter._take_bound,
    "native_call": PartFilter._take_native,
    "native_result": PartFilter._take_native,
    "opaque": PartFilter._take_bound,
    "refusal": PartFilter._take_refusal,
    "unknown": PartFilter._leave_out,
}
"""Kind of a part → the method that returns the pieces of such a part. Each gets only parts of its kind, hence Any."""
