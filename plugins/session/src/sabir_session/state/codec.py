"""Convert items of slices to JSON text and back, for journals and snapshots. Defines the snapshots, too.

    item ──encode──▶ text      written once, by pydantic
    text ──decode──▶ item      of a registered type only: the name of a type never imports a module

    session.snapshot() ──▶ Snapshot ──to_json──▶ {"schema": 2, "created_at": …, "slices": [
                                                    {"slice_type": "sabir.message", "item_type": …, "kind": …,
                                                     "items": [{…}, …]}]}
    session.mutate().rollback(snapshot) ◀── Snapshot ◀──from_json──

Stored models keep unknown fields and unknown kinds of parts from newer versions. A snapshot contains texts, not
instances. The session that restores a snapshot creates items of its own registered types.
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
"""The version of the snapshot format that is written, and the newest that can be read.

Version 1 names each type by module and class. Version 2 does so only for types without a stored name.
"""
SliceKind: TypeAlias = Literal["state", "log"]
"""The kind of a slice. A rollback resets a "state". A "log" only grows, and its items are written to the journal."""

Item = TypeVar("Item")


def _to_utc(moment: datetime) -> datetime:
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        raise ValueError(f"{moment.isoformat()} is outside the years 1 … 9999 in UTC") from None


UTCDatetime = Annotated[AwareDatetime, AfterValidator(_to_utc)]
"""A time, converted to UTC. A time without a time zone is an error."""


def now() -> datetime:
    """Return the current time in UTC."""
    return datetime.now(UTC)


def names_of(item_type: type) -> StoredNames:
    """Return the names of a type in stored items: `stored_as`, or "module:Class" without it, and its earlier names."""
    return StoredNames.of(item_type, f"{item_type.__module__}:{item_type.__qualname__}")


class Codec(Generic[Item]):
    """Writes and reads items of one type: a pydantic model, a dataclass, or any type that pydantic validates.

    `encode` and `decode` raise ValueError with a message of one line.
    """

    def __init__(self, item_type: type[Item]) -> None:
        self._type = item_type
        # Any: pydantic's own validator and serializer are called, as its methods do.
        self._stored_model: Any = item_type if issubclass(item_type, StoredModel) else None

    def encode(self, item: Item) -> str:
        """Return the item as JSON text. Raises ValueError for an item of another type.

        Unless the type is a StoredModel, also raises ValueError if the text could not be read back as an equal item.
        """
        if type(item) is not self._type:
            raise ValueError(f"the item is a {type(item).__name__}, not a {self._type.__name__}")
        try:
            if self._stored_model is not None:
                return str(self._stored_model.__pydantic_serializer__.to_json(item), "utf-8")
            text = self._adapter.dump_json(item, warnings="error").decode()
            if self.decode(text) == item:
                return text
        except (PydanticSerializationError, TypeError, ValueError, RecursionError) as error:
            raise ValueError(one_line(str(error), 200)) from None
        raise ValueError("reading the text back would give another value")

    def decode(self, text: str) -> Item:
        """Return the item of a text. Raises ValueError if the text is not an item of this type."""
        try:
            if self._stored_model is None:
                return self._adapter.validate_json(text)
            try:
                return cast(Item, self._stored_model.__pydantic_validator__.validate_json(text))
            except ValidationError:
                return cast(Item, load_stored(self._stored_model.model_validate, decode_json(text)))
        except ValidationError as error:
            raise ValueError(one_line(describe_validation_error(error), 300)) from None
        except RecursionError:
            raise ValueError("the text is nested too deeply") from None

    @cached_property
    def _adapter(self) -> TypeAdapter[Item]:
        try:
            return TypeAdapter(self._type)
        except PydanticUserError as error:
            raise ValueError(f"pydantic cannot describe the type of the item: {one_line(str(error), 150)}") from None


class SliceSnapshot(StoredModel):
    """One slice in a Snapshot.

    A slice is a list of items of one type. `slice_type` and `item_type` are both the stored name of that type. `kind`
    is "state" if a rollback resets the slice, or "log" if the slice only grows. `items` are the items, each as JSON
    text, in the order of `Session.select_arrived`.
    """

    slice_type: NonEmpty
    item_type: NonEmpty
    kind: SliceKind = "state"
    items: tuple[Text, ...] = ()


class Snapshot(StoredModel):
    """The content of all slices (lists of items) of a session at one moment. `Session.snapshot` creates it.

    `schema_number` is the version of the snapshot format, `created_at` the time in UTC, and `slices` are the contents
    of the slices. To restore a snapshot, call `session.mutate().rollback(snapshot)`.
    """

    schema_number: int = Field(default=SCHEMA, alias="schema", ge=1)
    created_at: UTCDatetime = Field(default_factory=now)
    slices: tuple[SliceSnapshot, ...] = ()

    def to_json(self) -> str:
        """Return the snapshot as JSON text, in which each item is a JSON value, not a text. `from_json` reads it."""
        texts = [_with_array(each, "items", each.items) for each in self.slices]
        return _with_array(self, "slices", texts)

    @classmethod
    def from_json(cls, text: str | bytes) -> "Snapshot":
        """Return the snapshot of a text that `to_json` of this or an earlier version has returned.

        Raises SnapshotRestoreError if the text is not a snapshot or has a newer snapshot format.
        """
        try:
            document: Any = decode_json(text)
        except ValueError as error:
            raise SnapshotRestoreError(f"the text is not a snapshot: {one_line(str(error), 200)}") from None
        if not isinstance(document, dict) or not isinstance(document.get("slices"), list):
            expected = "an object with `slices`, as Snapshot.to_json returns it"
            raise SnapshotRestoreError(f"the text is not a snapshot; expected {expected}")
        number = document.get("schema")
        if type(number) is int and number > SCHEMA:
            raise SnapshotRestoreError(
                f"the snapshot has schema {number}, but this version reads up to {SCHEMA}; upgrade sabir-session"
            )
        if type(number) is not int or number < 1:
            raise SnapshotRestoreError(f"the snapshot has schema {one_line(repr(number), 40)}; expected 1 to {SCHEMA}")
        try:
            slices = [_with_texts(each) for each in document["slices"]]
            return load_stored(cls.model_validate, {**document, "slices": slices})
        except ValueError as error:  # errors of pydantic and sabir, and for too deep nesting
            reason = describe_validation_error(error) if isinstance(error, ValidationError) else str(error)
            raise SnapshotRestoreError(f"the text is not a snapshot: {one_line(reason, 300)}") from None


def _with_texts(each: Any) -> Any:
    """Return a slice of a parsed snapshot, with each item as JSON text instead of a JSON value."""
    if not isinstance(each, dict) or not isinstance(each.get("items"), list):
        return each
    return {**each, "items": [_to_json_text(item) for item in each["items"]]}


def _with_array(model: StoredModel, name: str, texts: Sequence[str]) -> str:
    """Return a model as JSON text, with one field replaced by an array of JSON texts."""
    head = _to_json_text(model.model_dump(mode="json", exclude={name}))
    return f'{head[:-1]},"{name}":[{",".join(texts)}]}}'


def _to_json_text(value: Any) -> str:
    return to_json(value).decode()  # as pydantic wrote it, numbers included
