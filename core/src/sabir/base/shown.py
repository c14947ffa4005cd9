"""A value as a person reads it: on three lines by `repr`, whole by rich.

    repr(reply)        ──▶ Reply(text='Take an umbrella…' (9120 characters), finish_reason='stop', usage=Usage(…))
    rich.print(reply)  ──▶ all that is set, each field on its own line; of a data URL its beginning

What is short is shown whole; what is long shares the room that is left. Of a text its beginning is read, of a
collection its first items; what is held as JSON, the arguments of a call for example, is read whole.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from functools import cached_property
from itertools import islice
from typing import NamedTuple, TypeAlias

from sabir.base.errors import printable

ROOM = 240
"""The most characters of a repr: three lines of a terminal."""
LEAST = 24
"""The least characters for which an item of a collection is shown; the others are counted."""

Arguments: TypeAlias = Iterable[tuple[str, object]]
"""Names as a user reads them → their values."""


class Plain(str):
    """A text that a view shows without the quotes of a str."""

    __slots__ = ()

    __repr__ = str.__str__


def brief(value: object) -> str:
    """The value in at most ROOM characters.

    A value that has the method `__brief_args__` is shown by the names and values that this gives.
    """
    room, held = ROOM, _Shown("", value)
    while len(text := held.fitted(room)) > ROOM and room:  # brackets and names took more than their share
        room = max(room + ROOM - len(text), 0)
    return _cut(text, ROOM)


class _Group(NamedTuple):
    """A value that holds others, of which the first are here."""

    opening: str
    items: "list[_Shown]"
    closing: str
    total: int


class _Shown:
    """A value and the label before it."""

    def __init__(self, label: str, value: object) -> None:
        self._label = label
        self._value = value

    @cached_property
    def _group(self) -> _Group | None:
        value = self._value
        if read := getattr(type(value), "__brief_args__", None):
            named = list(read(value))
            return _Group(f"{type(value).__name__}(", [_Shown(f"{name}=", it) for name, it in named], ")", len(named))
        if isinstance(value, Mapping):
            pairs = islice(value.items(), ROOM)
            return _Group("{", [_Shown(f"{_literal(str(key), LEAST)}: ", it) for key, it in pairs], "}", len(value))
        if isinstance(value, list | tuple | Set):
            kind = list if isinstance(value, list) else tuple if isinstance(value, tuple) else Set
            closing = ",)" if kind is tuple and len(value) == 1 else _BRACKETS[kind][1]
            return _Group(_BRACKETS[kind][0], [_Shown("", it) for it in islice(value, ROOM)], closing, len(value))
        return None

    @cached_property
    def _simple(self) -> str:
        """A value that holds no others; of a long text more than there is room for."""
        if isinstance(self._value, str | bytes) and not isinstance(self._value, Plain):
            return repr(self._value[: ROOM + 1])
        return printable(repr(self._value))

    def _pieces(self) -> Iterator[str]:
        """All of it, piece by piece."""
        yield self._label
        if (group := self._group) is None:
            yield self._simple
            return
        yield group.opening
        for number, item in enumerate(group.items):
            yield ", " if number else ""
            yield from item._pieces()
        yield group.closing

    def whole(self, most: int) -> str | None:
        """All of it, if that has no more than `most` characters."""
        found = ""
        for piece in self._pieces():
            found += piece
            if len(found) > most:
                return None
        return found

    def fitted(self, room: int) -> str:
        """As much of it as has room; a few more characters where labels and brackets need them."""
        if (whole := self.whole(room)) is not None:
            return whole
        if self._group is not None:
            return self._label + _within(self._group, room - len(self._label))
        if isinstance(self._value, str | bytes) and not isinstance(self._value, Plain):
            return self._label + _literal(self._value, room - len(self._label))
        return _cut(self._label + self._simple, room)


_BRACKETS: Mapping[type, str] = {list: "[]", tuple: "()", Set: "{}"}


def _within(group: _Group, room: int) -> str:
    """The first items that have room, each fitted, between two brackets; the others are counted."""
    opening, items, closing, total = group
    left = room - len(opening) - len(closing)
    if left < LEAST // 2:
        return f"{opening}…{closing}"
    first: list[tuple[_Shown, int]] = []
    needed = -len(", ")
    for item in items:
        length = ROOM if (whole := item.whole(left)) is None else len(whole)
        needed += len(", ") + min(length, max(LEAST, len(item.fitted(0))))
        is_last = len(first) + 1 == total
        if first and needed > left - (0 if is_last else len(", " + _more(total))):
            break
        first.append((item, length))
    more = [_more(total - len(first))] if len(first) < total else []
    pieces = _shared(first, left - sum(map(len, more)) - len(", ") * (len(first) + len(more) - 1))
    return f"{opening}{', '.join([*pieces, *more])}{closing}"


def _more(count: int) -> str:
    return f"… {count} more"


def _shared(items: Sequence[tuple[_Shown, int]], room: int) -> list[str]:
    """Each item: whole where that takes at most its share, else within an equal share of what the short ones leave."""
    pieces = [""] * len(items)
    for done, position in enumerate(sorted(range(len(items)), key=lambda each: items[each][1])):
        pieces[position] = items[position][0].fitted(max(room // (len(items) - done), 0))
        room -= len(pieces[position])
    return pieces


def _literal(text: str | bytes, room: int) -> str:
    """A text's literal; of one that is too long its beginning, and how long it is."""
    begun = text[: max(room, 1)]
    if len(begun) == len(text) and len(literal := repr(begun)) <= room:
        return literal
    unit = "bytes" if isinstance(text, bytes) else "characters"
    length = f" ({len(text)} {unit})"
    kept = room - len("…") - len(length)
    if kept < LEAST // 2:
        length, kept = "", room - len("…")
    while len(literal := repr(begun)) > kept and begun:
        begun = begun[: len(begun) - max((len(literal) - kept) // 10, 1)]
    return f"{literal[:-1]}…{literal[-1]}{length}"


def _cut(text: str, room: int) -> str:
    return text if len(text) <= room else f"{text[: max(room - 1, 0)]}…"
