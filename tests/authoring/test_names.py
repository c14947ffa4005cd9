"""Stored names: what a class assigns, or the default."""

from dataclasses import dataclass
from typing import ClassVar

import pytest
from pydantic import BaseModel
from sabir.authoring import StoredNames


class Unnamed:
    """Assigns nothing."""


class Renamed:
    stored_before: ClassVar[tuple[str, ...]] = ("old",)


class Named(BaseModel):
    stored_as: ClassVar[str] = "app.note"


class Moved(Named):
    stored_as: ClassVar[str] = "app.moved"
    stored_before: ClassVar[tuple[str, ...]] = ("app.moved", "old:Moved")


class Below(Moved):
    """Assigns nothing itself."""


@dataclass
class WithField:
    """Its fields are data, whatever they are called."""

    stored_as: str = "data"
    stored_before: tuple[str, ...] = ("data",)


@dataclass
class NamedData:
    stored_as: ClassVar[str] = "app.data"
    text: str = ""


class New:
    stored_as: ClassVar[str] = "app.new"
    stored_before: ClassVar[tuple[str, ...]] = ()


@pytest.mark.parametrize(
    ("stored_type", "expected"),
    [
        (Unnamed, StoredNames("m:C")),
        (Renamed, StoredNames("m:C", ("old",))),
        (Named, StoredNames("app.note", ("m:C",))),
        (Moved, StoredNames("app.moved", ("old:Moved",))),
        (Below, StoredNames("m:C")),
        (WithField, StoredNames("m:C")),
        (NamedData, StoredNames("app.data", ("m:C",))),
        (New, StoredNames("app.new")),
    ],
)
def test_a_class_is_stored_under_the_names_that_it_assigns(stored_type: type, expected: StoredNames) -> None:
    """A name counts for the class that assigns it; the default is read unless earlier names are listed."""
    assert StoredNames.of(stored_type, "m:C") == expected
    assert StoredNames.of(stored_type, "m:C").all == (expected.name, *expected.earlier)
