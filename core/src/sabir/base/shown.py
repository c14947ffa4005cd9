"""Show values to people: `repr` returns at most 240 characters (three lines of a terminal), rich prints everything.

    repr(reply)        ──▶ Reply(text='Take an umbrella…' (9120 characters), finish_reason='stop', usage=Usage(…))
    rich.print(reply)  ──▶ all fields that are set, each on its own line; of a data URL only the beginning

The standard library's `reprlib` cuts long texts and collections. `brief` lowers the limits until the text fits.
"""

from collections.abc import Iterable, Mapping
from itertools import islice
from reprlib import Repr
from typing import Any, TypeAlias

from sabir.base.errors import printable

LONGEST_REPR = 240
"""The largest number of characters of a repr: three lines of a terminal."""
SIZES = (LONGEST_REPR, 180, 135, 100, 75, 55, 40, 30, 20, 10)
"""The largest numbers of characters of a text inside a repr, tried in this order until the repr fits.

A number also limits the items of a collection (a tenth of the number), the fields of an object (a fifth), and the
nested levels (two, and one more for each 20 characters)."""

Arguments: TypeAlias = Iterable[tuple[str, object]]
"""Pairs of an argument's name and its value, as `repr` shows them."""


class Plain(str):
    """A text that `repr` shows without quotes."""

    __slots__ = ()

    __repr__ = str.__str__


def brief(value: object) -> str:
    """Return the repr of a value, shortened to at most 240 characters (LONGEST_REPR).

    For an object with the method `__brief_args__`, the repr shows the names and values that this method returns.
    """
    shortener, text = _Brief(), ""
    for size in SIZES:
        text = shortener.shorten(value, size)
        if len(text) <= LONGEST_REPR:
            break
    return _cut_to(text, LONGEST_REPR)


class _Brief(Repr):
    """Shows texts by their beginning and their length, and collections by their first items."""

    def __init__(self) -> None:
        super().__init__()
        self.fillvalue = "…"
        self._arguments: dict[int, list[tuple[str, object]]] = {}
        """The arguments of each object by its id, because reading them may parse JSON."""
        self._count = self._most_fields = 0

    def shorten(self, value: object, size: int) -> str:
        """Return the repr with texts of at most `size` characters."""
        self.maxstring = self.maxother = self.maxlong = size
        self.maxdict = self.maxlist = self.maxtuple = self.maxset = self.maxfrozenset = size // 10
        self._most_fields = size // 5
        self.maxlevel = 2 + size // 20
        self._count = 0
        return self.repr(value)

    def repr1(self, x: Any, level: int) -> str:
        """Show one value. Values after the first 240 are not read, because no line has room for more."""
        self._count += 1
        return super().repr1(x, level) if self._count <= LONGEST_REPR else self.fillvalue

    def repr_str(self, x: str, level: int) -> str:
        """Show a text; of a long text only the beginning and the number of characters."""
        return self._quote(x, "characters")

    def repr_bytes(self, x: bytes, level: int) -> str:
        """Show bytes; of many bytes only the first and their number."""
        return self._quote(x, "bytes")

    def _quote(self, x: str | bytes, unit: str) -> str:
        note = f" ({len(x)} {unit})"
        if len(x) <= self.maxstring + len(note):  # a cut text with the note would not be shorter
            return repr(x)
        literal = repr(x[: self.maxstring])
        return f"{literal[:-1]}…{literal[-1]}{note}"

    def repr_dict(self, x: Mapping[Any, Any], level: int) -> str:
        """Show the first items of a mapping, in its own order. The base class would sort the keys."""
        items = ((self.repr1(key, level), ": ", x[key]) for key in x)
        return f"{{{self._join_first(items, len(x), self.maxdict, level)}}}"

    def repr_instance(self, x: Any, level: int) -> str:
        """Show a value of any other type."""
        if isinstance(x, list):
            return self.repr_list(x, level)
        if isinstance(x, Mapping):
            return self.repr_dict(x, level)
        if read := getattr(type(x), "__brief_args__", None):
            if id(x) not in self._arguments:
                self._arguments[id(x)] = list(read(x))
            named = self._arguments[id(x)]
            fields = ((name, "=", value) for name, value in named)
            return f"{type(x).__name__}({self._join_first(fields, len(named), self._most_fields, level)})"
        return _cut_to(printable(repr(x)), self.maxother)

    def _join_first(self, pairs: Iterable[tuple[str, str, object]], total: int, most: int, level: int) -> str:
        """Join the first `most` of `pairs` (name, separator, value), with "…" for the others. If the object is nested
        too deep, show only "…".
        """
        first = islice(pairs, most if level > 0 else 0)
        texts = [f"{name}{sign}{self.repr1(value, level - 1)}" for name, sign, value in first]
        return ", ".join(texts if len(texts) == total else [*texts, self.fillvalue])


def _cut_to(text: str, room: int) -> str:
    return text if len(text) <= room else f"{text[: room - 1]}…"
