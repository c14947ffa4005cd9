"""A session's slices as data: their content at one moment.

    session.snapshot() ──▶ Snapshot ──to_json──▶ {"schema": 1, "created_at": …, "slices": [
                                                    {"slice_type": "module:Class", "item_type": …, "kind": …,
                                                     "items": [{…}, …]}]}
    session.mutate().rollback(snapshot) ◀── Snapshot ◀──from_json──

A snapshot holds texts, never instances: reading one creates no object that it names and imports nothing. The session
that restores it makes items of its own registered types.
"""

from collections.abc import Sequence
from typing import Any, Literal

from pydantic import Field, ValidationError
from pydantic_core import to_json
from sabir.authoring import AtRest, NonEmpty, Text, decode_json, describe, load_as, one_line

from sabir_session.errors import SnapshotRestoreError
from sabir_session.state.codec import UTCDatetime, now

SCHEMA = 1
"""The number of the snapshot schema that this version writes, and the latest that it reads."""


class SliceSnapshot(AtRest):
    """One slice: its type, its kind, and the JSON text of each item."""

    slice_type: NonEmpty
    item_type: NonEmpty
    kind: Literal["state", "log"] = "state"
    items: tuple[Text, ...] = ()


class Snapshot(AtRest):
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
        """The snapshot of a text.

        Raises SnapshotRestoreError for a text that is not a snapshot, or has a newer schema.
        """
        try:
            document: Any = decode_json(text)
        except ValueError as error:
            raise SnapshotRestoreError(f"the text is no JSON: {one_line(str(error), 200)}") from None
        if not isinstance(document, dict) or not isinstance(document.get("slices"), list):
            raise SnapshotRestoreError(
                "the text is no snapshot: expected an object with `slices`; see Snapshot.to_json"
            )
        number = document.get("schema")
        if type(number) is int and number > SCHEMA:
            raise SnapshotRestoreError(f"the snapshot has schema {number}, newer than {SCHEMA}; upgrade sabir-session")
        if number != SCHEMA or type(number) is not int:
            raise SnapshotRestoreError(f"the snapshot has schema {one_line(repr(number), 40)}; expected {SCHEMA}")
        try:
            slices = [_with_texts(each) for each in document["slices"]]
            return load_as(cls.model_validate, {**document, "slices": slices})
        except ValueError as error:  # errors of pydantic and sabir, and for too deep nesting
            reason = describe(error) if isinstance(error, ValidationError) else str(error)
            raise SnapshotRestoreError(f"the text is no snapshot: {one_line(reason, 300)}") from None


def _with_texts(each: Any) -> Any:
    """A slice of a snapshot's text, with each item as a text."""
    if not isinstance(each, dict) or not isinstance(each.get("items"), list):
        return each
    return {**each, "items": [_encode(item) for item in each["items"]]}


def _with_array(model: AtRest, name: str, texts: Sequence[str]) -> str:
    """A model as JSON text, with one field replaced by an array of ready JSON texts."""
    head = _encode(model.model_dump(mode="json", exclude={name}))
    return f'{head[:-1]},"{name}":[{",".join(texts)}]}}'


def _encode(value: Any) -> str:
    return to_json(value).decode()  # as pydantic wrote it, numbers included
