"""Items as JSON text, and back: the one form that journals and snapshots share; and a session's slices as such texts.

    item ──encode──▶ text      written once, by pydantic
    text ──decode──▶ item      of a registered type only; a text names its type, and nothing is imported for it

    session.snapshot() ──▶ Snapshot ──to_json──▶ {"schema": 2, "created_at": …, "slices": [
                                                    {"slice_type": "sabir.message", "item_type": …, "kind": …,
                                                     "items": [{…}, …]}]}
    session.mutate().rollback(snapshot) ◀── Snapshot ◀──from_json──

Models at rest keep unknown fields and unknown kinds of parts from newer versions. A snapshot holds texts, never
instances: the session that restores it makes items of its own registered types.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from functools import cached_property
from typing import Annotated, Any, Generic, Literal, TypeAlias, TypeVar, cast

from pydantic import AfterValidator, AwareDatetime, Field, TypeAdapter, ValidationError
from pydantic.errors import PydanticUserError
from pydantic_core import PydanticSerializationError, to_json
from sabir.authoring import (
    NonEmpty,
    StoredModel,
    StoredNames,
    Text,
    decode_json,
    describe_validation_error,
    load_stored,
    one_line,
)

from sabir_session.errors import SnapshotRestoreError

SCHEMA = 2
"""The snapshot schema that this version writes, and the latest that it reads.

1 names each type by its module and class, which 2 does only for types without a stored name.
"""
SliceKind: TypeAlias = Literal["state", "log"]
"""State is set back by a rollback; a log only grows, and goes to the journal."""

Item = TypeVar("Item")


def _in_utc(moment: datetime) -> datetime:
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        raise ValueError(f"{moment.isoformat()} is outside the years 1 … 9999 in UTC") from None


UTCDatetime = Annotated[AwareDatetime, AfterValidator(_in_utc)]
"""A time, converted to UTC; a time without a zone is an error."""


def now() -> datetime:
    """This moment."""
    return datetime.now(UTC)


def names_of(item_type: type) -> StoredNames:
    """Return the names under which items of a type are stored; "module:Class" if the class assigns no `stored_as`."""
    return StoredNames.of(item_type, f"{item_type.__module__}:{item_type.__qualname__}")


class Codec(Generic[Item]):
    """Writes and reads items of one type: a pydantic model, a dataclass, or any type that pydantic validates.

    Both directions raise ValueError, in one line without the type's name.
    """

    def __init__(self, item_type: type[Item]) -> None:
        self._type = item_type
        # Any: pydantic's own validator and serializer are called, as its methods do.
        self._at_rest: Any = item_type if issubclass(item_type, StoredModel) else None

    def encode(self, item: Item) -> str:
        """The item's text; raises ValueError if reading it would give another value."""
        if type(item) is not self._type:
            raise ValueError(f"it is a {type(item).__name__}, not a {self._type.__name__}")
        try:
            if self._at_rest is not None:
                return str(self._at_rest.__pydantic_serializer__.to_json(item), "utf-8")
            text = self._adapter.dump_json(item, warnings="error").decode()
            if self.decode(text) == item:
                return text
        except (PydanticSerializationError, TypeError, ValueError, RecursionError) as error:
            raise ValueError(one_line(str(error), 200)) from None
        raise ValueError("it would not come back equal")

    def decode(self, text: str) -> Item:
        """The item of a text; raises ValueError if it is not of this type."""
        try:
            if self._at_rest is None:
                return self._adapter.validate_json(text)
            try:
                return cast(Item, self._at_rest.__pydantic_validator__.validate_json(text))
            except ValidationError:
                return cast(Item, load_stored(self._at_rest.model_validate, decode_json(text)))
        except ValidationError as error:
            raise ValueError(one_line(describe_validation_error(error), 300)) from None
        except RecursionError:
            raise ValueError("it is nested too deeply") from None

    @cached_property
    def _adapter(self) -> TypeAdapter[Item]:
        try:
            return TypeAdapter(self._type)
        except PydanticUserError as error:
            raise ValueError(f"pydantic cannot describe its type: {one_line(str(error), 150)}") from None


class SliceSnapshot(StoredModel):
    """One slice: its type, its kind, and the JSON text of each item."""

    slice_type: NonEmpty
    item_type: NonEmpty
    kind: SliceKind = "state"
    items: tuple[Text, ...] = ()


class Snapshot(StoredModel):
    """The content of a session's slices at one moment; `to_json` writes it, `from_json` reads it."""

    schema_number: int = Field(default=SCHEMA, alias="schema", ge=1)
    created_at: UTCDatetime = Field(default_factory=now)
    slices: tuple[SliceSnapshot, ...] = ()

    def to_json(self) -> str:
        """The snapshot as JSON text; a slice's items are plain JSON values in it."""
        texts = [_with_array(each, "items", each.items) for each in self.slices]
        return _with_array(self, "slices", texts)

    @classmethod
    def from_json(cls, text: str | bytes) -> "Snapshot":
        """Read a snapshot of this schema or of an earlier one.

        Raises SnapshotRestoreError for a text that is not a snapshot, or has a newer schema.
        """
        try:
            document: Any = decode_json(text)
        except ValueError as error:
            raise SnapshotRestoreError(f"the text is no JSON: {one_line(str(error), 200)}") from None
        if not isinstance(document, dict) or not isinstance(document.get("slices"), list):
            expected = "an object with `slices`; see Snapshot.to_json"
            raise SnapshotRestoreError(f"the text is no snapshot: expected {expected}")
        number = document.get("schema")
        if type(number) is int and number > SCHEMA:
            raise SnapshotRestoreError(f"the snapshot has schema {number}, newer than {SCHEMA}; upgrade sabir-session")
        if type(number) is not int or number < 1:
            raise SnapshotRestoreError(f"the snapshot has schema {one_line(repr(number), 40)}; expected 1 to {SCHEMA}")
        try:
            slices = [_with_texts(each) for each in document["slices"]]
            return load_stored(cls.model_validate, {**document, "slices": slices})
        except ValueError as error:  # errors of pydantic and sabir, and for too deep nesting
            reason = describe_validation_error(error) if isinstance(error, ValidationError) else str(error)
            raise SnapshotRestoreError(f"the text is no snapshot: {one_line(reason, 300)}") from None


def _with_texts(each: Any) -> Any:
    """A slice of a snapshot's text, with each item as a text."""
    if not isinstance(each, dict) or not isinstance(each.get("items"), list):
        return each
    return {**each, "items": [_encode(item) for item in each["items"]]}


def _with_array(model: StoredModel, name: str, texts: Sequence[str]) -> str:
    """A model as JSON text, with one field replaced by an array of ready JSON texts."""
    head = _encode(model.model_dump(mode="json", exclude={name}))
    return f'{head[:-1]},"{name}":[{",".join(texts)}]}}'


def _encode(value: Any) -> str:
    return to_json(value).decode()  # as pydantic wrote it, numbers included
