"""The names under which stored data refers to a type.

    class Note:                                            written as "app.note"; read under all three names:
        stored_as: ClassVar[str] = "app.note"                  app.note
        stored_before: ClassVar[tuple[str, ...]] = (           app.memo
            "app.memo", "old.module:Note",                     old.module:Note
        )

Law: a class with `stored_as` can be moved and renamed, and stored data stays readable. A name applies to the class that
assigns it, not to its subclasses.
"""

from dataclasses import fields, is_dataclass
from typing import NamedTuple


class StoredNames(NamedTuple):
    """The name under which values of a type are stored, and earlier names that are still accepted when reading. Created
    by `StoredNames.of`.

    A class sets the names in `stored_as` and `stored_before`, so that the class can be renamed or moved.
    """

    name: str
    """The name that is written."""
    earlier: tuple[str, ...] = ()
    """Earlier names that are still read."""

    @property
    def all(self) -> tuple[str, ...]:
        """The name and all earlier names."""
        return (self.name, *self.earlier)

    @classmethod
    def of(cls, stored_type: type, default: str) -> "StoredNames":
        """Return the stored names of a class, from its attributes `stored_as` and `stored_before`. Inherited attributes
        do not count.

        `default` is the name for a class without `stored_as`. For a class with `stored_as` and without `stored_before`,
        `default` is an earlier name.
        """
        data = {field.name for field in fields(stored_type)} if is_dataclass(stored_type) else set[str]()
        own = {name: value for name, value in vars(stored_type).items() if name not in data}
        name, earlier = own.get("stored_as"), own.get("stored_before")
        earlier = tuple(earlier) if isinstance(earlier, tuple | list) else None
        if not (name and isinstance(name, str)):
            return cls(default, earlier or ())
        if earlier is None:
            earlier = (default,)
        return cls(name, tuple(each for each in earlier if each != name))
