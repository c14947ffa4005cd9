"""Stored names: what a class assigns, or the default."""

from dataclasses import dataclass
from typing import Any, ClassVar

import pytest
from pydantic import BaseModel
from sabir.authoring import StoredNames


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


def assigning(**names: Any) -> type:
    return type("Stored", (), names)


@pytest.mark.parametrize(
    ("stored_type", "expected"),
    [
        (assigning(), StoredNames("m:C")),
        (assigning(stored_before=("old",)), StoredNames("m:C", ("old",))),
        (assigning(stored_as="app.new", stored_before=()), StoredNames("app.new")),
        (dataclass(assigning(stored_as="app.data", __annotations__={"text": str})), StoredNames("app.data", ("m:C",))),
        (Named, StoredNames("app.note", ("m:C",))),
        (Moved, StoredNames("app.moved", ("old:Moved",))),
        (Below, StoredNames("m:C")),
        (WithField, StoredNames("m:C")),
    ],
)
def test_a_class_is_stored_under_the_names_that_it_assigns(stored_type: type, expected: StoredNames) -> None:
    """A name counts for the class that assigns it; the default is read unless earlier names are listed."""
    assert StoredNames.of(stored_type, "m:C") == expected
    assert StoredNames.of(stored_type, "m:C").all == (expected.name, *expected.earlier)
