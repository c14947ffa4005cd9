"""The parts of messages (text, media and others), and the hints for providers in media and options.

    text · media · reasoning · refusal · native call and result · opaque · (unknown: kept by a reader older than the
    writer)

A part's `state` is data that the provider of the part signed, or that refers to data on the provider's server. The
state is sent back only to the message's origin (`Message.origin`) or to a model of its family (`Dialect.family`). The
state must not repeat the part's text, because encoding puts the state and the text together.

    vendor={"acme": {…}, "*": {…}} ──take_hints──▶ {provider: validated fields}, and a loss for each field not taken

A section of hints is for the provider that the section is named after. The section "*" is for every provider: the
fields that a provider's pydantic model of hints has are used, and the provider's own section overrides them. An unknown
or invalid field of a provider's own section raises SettingsInvalid. Such a field of "*" is ignored, with a loss unless
the provider has a section of its own, which may be empty. A field that the model has but excludes from dumps is for
another API of the same provider: the field is valid, and a loss here.
"""

import json
from collections.abc import Callable, Mapping
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, TypeAlias, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    Discriminator,
    Field,
    Tag,
    ValidationError,
    ValidationInfo,
    WithJsonSchema,
    model_serializer,
    model_validator,
)

from sabir.base.errors import SettingsInvalid, one_line
from sabir.base.models import AnyFrozen, Frozen, StoredModel, describe_validation_error, is_loading, load_stored
from sabir.base.renamed import callable_by_old_names
from sabir.base.shown import Arguments, Plain
from sabir.base.values import (
    JSONDocumentField,
    JSONObjectDocumentField,
    JSONText,
    JSONValue,
    JSONView,
    ObjectView,
    encode_json,
    object_view,
)
from sabir.vocabulary.fields import NonEmpty, State, Text
from sabir.vocabulary.media import (
    DEFAULT_MIMES,
    SCHEMES,
    DataURL,
    Form,
    MediaURL,
    Modality,
    mime_type,
    shorten,
    split_provider_file,
    type_parameters,
)
from sabir.vocabulary.native import NativeCallPart, NativeResultPart

Section: TypeAlias = Mapping[str, JSONValue]
Sections: TypeAlias = Mapping[str, Section]
"""Hints for providers: provider name → that provider's hints; "*" for every provider that knows the fields."""
SHARED = "*"
"""The name of the section of hints that is for every provider."""
LONGEST_URL = 120
"""The largest number of characters of a data URL that the `repr` of a MediaPart shows."""


def check_sections(sections: Section, field: str = "vendor", content: str = "that provider's own settings") -> None:
    """Raise ValueError if a section is not a mapping. `field` is the field's name for the error, and `content` says
    what the mapping must contain.
    """
    for name, section in sections.items():
        if not isinstance(section, dict):
            raise ValueError(f"{field}[{name!r}] must be a mapping of {content}")


def _check_hints(text: JSONText) -> JSONText | None:
    check_sections(object_view(text))
    return None if text == "{}" else text


_SECTIONS = WithJsonSchema({"type": "object", "additionalProperties": {"type": "object"}})
Hints: TypeAlias = Annotated[JSONObjectDocumentField, AfterValidator(_check_hints), _SECTIONS] | None
"""The type of a pydantic field for vendor hints. The hints are stored as JSONText, or None if there are no hints."""


class HintTarget(NamedTuple):
    """The target to which the hints of one media part or option are sent, and the function that reports losses."""

    provider: str
    place: str
    """The place of the hints, for error messages: `parts[0] of message …`."""
    wire: str
    """The API format to which the hints are sent, for errors and losses: `acme.chat in user messages`."""
    kind: str
    """The modality of the media part, or "option"."""
    lose: Callable[[str, str], None]
    """Function that adds a loss. Arguments: the path inside `place`, such as ".vendor.acme", and the reason."""


def take_hints(text: JSONText, model: type[BaseModel] | None, target: HintTarget) -> JSONText | None:
    """Return the hints to send to a target, as one section under the provider's name. None if no hint is sent.

    `model` is the pydantic model of the accepted hints; None means that no hints are accepted. Hints in the provider's
    own section that are not sent are losses. If there is no such section, hints in the other sections are losses too.
    Raises SettingsInvalid if the provider's own section does not fit the model.
    """
    sections, provider, lose = object_view(text), target.provider, target.lose
    own, shared = sections.get(provider), sections.get(SHARED, {})
    others = [name for name, section in sections.items() if section and name != SHARED]
    if own is None and others:
        lose(".vendor", f"its vendor hints are for {', '.join(others)}, not for {provider}")
    accepted = {} if model is None else _validate_hints(model, own or {}, shared, target)
    source, fields = (SHARED, shared) if own is None else (provider, own)
    if model is None and own:
        lose(f".vendor.{provider}", f"{target.wire} accepts no vendor hints ({target.kind})")
        fields = {}
    for name in fields:
        if name not in accepted:
            lose(f".vendor.{source}.{name}", f"{target.wire} does not accept this vendor hint {name!r} ({target.kind})")
    return encode_json({provider: accepted}) if accepted else None


def with_hints(piece: AnyFrozen, hints: JSONText | None) -> AnyFrozen:
    """Return a copy of a media part or an option with the hints `hints` instead of its own."""
    return type(piece).construct_unchecked(
        {**vars(piece), "vendor_json": hints}, piece.model_fields_set | {"vendor_json"}
    )


def _validate_hints(model: type[BaseModel], own: Section, shared: Section, target: HintTarget) -> dict[str, Any]:
    """Return the valid fields of both sections as JSON values. Fields of `shared` that are unknown or invalid are left
    out; an unknown or invalid field of `own` raises SettingsInvalid.
    """
    fitting = {name: value for name, value in shared.items() if name in model.model_fields and name not in own}
    while fitting:
        try:
            return set_fields(model.model_validate({**fitting, **own}))
        except ValidationError as error:
            blamed = {each["loc"][0] for each in error.errors(include_url=False) if each["loc"]} & fitting.keys()
            fitting = {name: value for name, value in fitting.items() if blamed and name not in blamed}
    where = f"vendor[{target.provider!r}] of {target.place} for {target.wire} ({target.kind})"
    return read_section(model, own, where)


def read_section(model: type[BaseModel], section: Section, where: str, otherwise: str = "") -> dict[str, Any]:
    """Validate a section and return the fields that are set, as JSON values.

    Raises SettingsInvalid, whose message begins with `where`, names the invalid fields and the known fields, and ends
    with `otherwise`. A long message is cut.
    """
    try:
        return set_fields(model.model_validate(dict(section)))
    except ValidationError as error:
        known = f"its fields are {', '.join(sorted(model.model_fields))}{otherwise}"
        raise SettingsInvalid(one_line(f"{where}: {describe_validation_error(error)}; {known}", 900)) from None


def set_fields(model: BaseModel) -> dict[str, Any]:
    """Return the fields of a pydantic model that were set, as JSON values."""
    return model.model_dump(mode="json", exclude_unset=True)


class Stateful(StoredModel):
    """Base class of parts and calls that may have a `state`: data that the provider signed or stores on its server."""

    state_json: State = Field(default=None, alias="state")

    state: ClassVar = JSONView(
        "state_json", "The provider's data, or None. Sent back only to the same model or a model of its family."
    )

    def __brief_args__(self) -> Arguments:
        """Yield the arguments of the short `repr`: all except the state."""
        return ((name, value) for name, value in super().__brief_args__() if name != "state")


class Citation(StoredModel):
    """A source that supports a passage of a text part, as the provider reported the source.

    `url`, `title`, `cited_text` (the quoted text of the source) and `file_id` describe the source. `start` and `end`
    are character offsets of the passage in the part's text; `end` is exclusive. Each of these fields is None if the
    provider did not report it.
    """

    kind: NonEmpty
    """The provider's name for this kind of citation, for example "url_citation". Required."""
    url: Text | None = None
    title: Text | None = None
    cited_text: Text | None = None
    file_id: Text | None = None
    start: int | None = None
    end: int | None = None
    source_json: State = Field(default=None, alias="source")
    """The provider's citation, unchanged, as JSON text; see `source`."""

    source: ClassVar = JSONView("source_json", "The citation exactly as the provider sent it, or None.")


class TextPart(Stateful):
    """A part that is text. `citations` are the sources of passages of the text, if the provider reported any.

    `state` is signed data of the provider, or None.
    """

    kind: Literal["text"] = "text"
    text: Text
    citations: tuple[Citation, ...] = ()


@callable_by_old_names
class MediaPart(Stateful):
    """A part that is an image, a sound, a video or a document. Make parts by `image`, `audio`, `video` and `document`.

    `modality` is "image", "audio", "video" or "document". `url` is an `http(s)` URL, a `data:` URL that contains the
    bytes, or `provider-file:<provider>/<id>` for a file that was uploaded to a provider. `mime` is the MIME type if
    known. `prompt_hint` is a label that names the medium. `id` is an id of your own, and `name` is the file name. Each
    of these four is None if unknown. `vendor` maps a provider's name to hints for that provider, and "*" to hints for
    every provider that knows the fields. The constructor raises pydantic's ValidationError for an invalid URL or field.
    """

    kind: Literal["media"] = "media"
    modality: Modality
    url: Annotated[Text, AfterValidator(lambda url: MediaURL(url).check())]
    mime: Text | None = None
    prompt_hint: Text | None = None
    id: Text | None = None
    name: Text | None = None
    vendor_json: Hints = Field(default=None, alias="vendor")

    vendor: ClassVar = ObjectView("vendor_json", 'Provider name → hints for that provider; "*" for every provider.')

    @classmethod
    def from_wire(cls, modality: Modality, url: str, name: JSONValue = None, **further: Any) -> "MediaPart | None":
        """Return a media part for a medium that a provider sent, or None if the URL or another field is invalid.

        `further` are other fields of the part, such as `mime`. A `name` that is empty or not a string is ignored.
        """
        try:
            return cls(modality=modality, url=url, name=name if name and isinstance(name, str) else None, **further)
        except ValidationError:
            return None

    @property
    def form(self) -> Form:
        """How the URL gives the content: "url" for a web address, "data" for a `data:` URL, "file" for a provider's
        file id.
        """
        scheme = self.url[:5].lower()
        return "url" if scheme.startswith("http") else "data" if scheme == "data:" else "file"

    def data_url(self) -> DataURL:
        """Return the `data:` URL of the part, parsed. Raises MediaRefused if the URL is not a `data:` URL."""
        return DataURL.parse(self.url)

    def provider_file(self) -> tuple[str, str]:
        """Return the provider and the file id of a `provider-file:` URL. Raises MediaRefused for any other URL."""
        return split_provider_file(self.url)

    @property
    def mime_type(self) -> str | None:
        """The MIME type from `mime` in lower case and without parameters; None if `mime` is None or not a MIME type."""
        return mime_type(self.mime)

    @property
    def mime_parameters(self) -> str:
        """The parameters of `mime`, such as ";rate=24000", or "". `base64` and `charset=utf-8` are left out, because
        they have no effect.
        """
        return type_parameters((self.mime or "").partition(";")[2])

    @property
    def likely_mime(self) -> str:
        """The MIME type from `mime`; if there is none, the most common MIME type of the modality, such as
        "image/png".
        """
        return self.mime_type or DEFAULT_MIMES[self.modality]

    def __repr_args__(self) -> Arguments:
        """Yield the arguments of `repr`. A long data URL is cut to its first characters."""
        is_long = len(self.url) > LONGEST_URL and self.form == "data"
        short = {"url": Plain(f"{self.url[:LONGEST_URL]!r}… ({len(self.url)} characters)")} if is_long else {}
        return ((name, short.get(name, value)) for name, value in super().__repr_args__())

    def __brief_args__(self) -> Arguments:
        """Yield the arguments of the short `repr`: all except the state, with the complete URL, which
        `brief` shortens.
        """
        return ((name, self.url if name == "url" else value) for name, value in super().__brief_args__())

    @property
    def placeholder(self) -> str:
        """The text that is sent instead of the medium if the target does not accept the medium, unless
        `unsupported_media` is "drop". For example "[image not shown: a street map]".
        """
        described = self.prompt_hint or self.name or (self.mime or "").strip()
        where = "" if self.form == "data" else f" {shorten(self.url)[1:-1]}"
        return f"[{self.modality} not shown{': ' + described if described else ''}{where}]"


class ReasoningPart(Stateful):
    """A part that is a model's reasoning ("thinking"). `text` is "" if the provider hides the text and returns only
    `state`.

    `state` is the provider's signed or encrypted reasoning, which is sent back only to the message's origin or to a
    model of its family.
    """

    kind: Literal["reasoning"] = "reasoning"
    text: Text = ""


class RefusalPart(Stateful):
    """A part in which the model refuses to answer. `text` is the model's refusal."""

    kind: Literal["refusal"] = "refusal"
    text: Text


class OpaquePart(StoredModel):
    """A part of a reply that only its provider understands, such as a summary of earlier messages.

    `block` is the provider's JSON, unchanged. The part is sent only in the API format that `dialect` names: to the
    origin of the message or a model of its family, or to every target with this API format if the message has no
    origin. `pair_id` links two parts, for example a provider's call and its output: `pair` is "opens" for the first and
    "closes" for the second. If one of the two is missing, the other is not sent either, except at the end of a request
    to a provider that may pause within a turn. `pair_id` and `pair` are both None for a part without a counterpart.
    """

    kind: Literal["opaque"] = "opaque"
    dialect: NonEmpty
    block_json: JSONDocumentField = Field(alias="block")
    pair_id: NonEmpty | None = None
    pair: Literal["opens", "closes"] | None = None

    block: ClassVar = JSONView("block_json", "The provider's JSON value, unchanged.")

    @model_validator(mode="after")
    def _check_pair(self) -> "OpaquePart":
        if (self.pair_id is None) != (self.pair is None):
            raise ValueError("an opaque part needs both `pair_id` and `pair`, or neither")
        return self


class UnknownKind(Frozen):
    """Base class for stored data that only a newer version of sabir knows. Created when stored data is read, and
    written back unchanged.
    """

    known_kinds: ClassVar[tuple[str, ...]] = ()
    kind: Literal["unknown"] = "unknown"
    document_json: JSONDocumentField = Field(alias="document")

    document: ClassVar = ObjectView("document_json", "The stored JSON object, its `kind` included.")

    @model_validator(mode="before")
    @classmethod
    def _refuse_unless_loading(cls, value: Any, info: ValidationInfo) -> Any:
        if isinstance(value, cls):
            return value
        if isinstance(value, dict) and is_loading(info) and isinstance(value.get("kind"), str):
            return {"document": value}
        kind = value.get("kind") if isinstance(value, dict) else value
        raise ValueError(f"kind {kind!r} is unknown; known kinds are {', '.join(cls.known_kinds)}")

    @model_serializer
    def _write_back(self) -> dict[str, Any]:
        return json.loads(self.document_json)  # type: ignore[no-any-return]


Piece: TypeAlias = TextPart | MediaPart | ReasoningPart | RefusalPart | OpaquePart
"""A part that a dialect encodes. Core sends a native call or result as an OpaquePart with the vendor's block, or as a
TextPart, so dialects never encode these two kinds.
"""
VendorPart: TypeAlias = NativeCallPart | NativeResultPart | OpaquePart
"""A part whose vendor's block is sent only in its own API format."""
VENDOR_PARTS = (NativeCallPart, NativeResultPart, OpaquePart)
"""The classes of VendorPart, for isinstance."""
KnownPart: TypeAlias = Piece | NativeCallPart | NativeResultPart
"""A part of a known kind, as dialects decode it. UnknownPart is not included, because only loading creates it."""
KNOWN_KINDS = ("text", "media", "reasoning", "refusal", "native_call", "native_result", "opaque")
"""The kinds of parts that this version of sabir knows."""


class UnknownPart(UnknownKind):
    """A stored part whose kind, modality or URL scheme only a newer version of sabir knows.

    Created by loading, never by a program. `save` and `dumps` write the part back unchanged. Renderings leave the part
    out and report a loss.
    """

    known_kinds = KNOWN_KINDS


def _tag(value: Any) -> str:
    kind = value.get("kind") if isinstance(value, dict) else getattr(value, "kind", None)
    return kind if isinstance(kind, str) and kind in KNOWN_KINDS else "unknown"


Part = Annotated[
    Annotated[TextPart, Tag("text")]
    | Annotated[MediaPart, Tag("media")]
    | Annotated[ReasoningPart, Tag("reasoning")]
    | Annotated[RefusalPart, Tag("refusal")]
    | Annotated[NativeCallPart, Tag("native_call")]
    | Annotated[NativeResultPart, Tag("native_result")]
    | Annotated[OpaquePart, Tag("opaque")]
    | Annotated[UnknownPart, Tag("unknown")],
    Discriminator(_tag),
]
"""One part of a message: text, media, reasoning, refusal, native call, native result, opaque, or an unknown part of a
newer version of sabir.
"""


def keep_parts(payload: dict[Any, Any]) -> dict[Any, Any]:
    """Return a stored payload in which media with an unknown modality or URL scheme are replaced by UnknownParts."""
    if not isinstance(parts := payload.get("parts"), list):
        return payload
    loaded = [load_stored(UnknownPart.model_validate, part) if _is_newer(part) else part for part in parts]
    return {**payload, "parts": loaded}


def _is_newer(part: Any) -> bool:
    """Return whether a stored part is a medium with a modality or a URL scheme that this version does not know."""
    if not isinstance(part, dict) or part.get("kind") != "media":
        return False
    modality, url = part.get("modality"), part.get("url")
    if not (isinstance(modality, str) and modality and isinstance(url, str)):
        return False
    return modality not in get_args(Modality) or MediaURL(url).scheme not in (None, *SCHEMES)
