"""Identifiers that a wire takes, derived from any that it does not.

Deterministic and append-only: what an identifier becomes depends on it and on those before it, never on those
after it, on clocks or on randomness. A valid one stays as it is; another keeps its valid characters and gets a
hash of itself; two never become one.
"""

import re
from bisect import bisect_left
from functools import lru_cache
from hashlib import sha256
from itertools import islice

from sabir.scope import IdentifierRule

_HASH_LENGTH = 12


@lru_cache(maxsize=64)
def _pattern(rule: IdentifierRule) -> re.Pattern[str]:
    first = rule.first or rule.characters
    return re.compile(f"(?:{first})(?:{rule.characters}){{0,{rule.longest - 1}}}")


@lru_cache(maxsize=64)
def _foreign(rule: IdentifierRule) -> re.Pattern[str]:
    return re.compile(f"(?!{rule.characters})[\\s\\S]")


def is_valid(identifier: str, rule: IdentifierRule) -> bool:
    """Whether a wire takes an identifier as it is."""
    return _pattern(rule).fullmatch(identifier) is not None


def derive(identifier: str, rule: IdentifierRule, occurrence: int = 0) -> str:
    """A valid identifier for any string: its valid characters, then twelve hexadecimal digits of its hash."""
    digest = sha256(f"{identifier}\0{occurrence}".encode("utf-8", "surrogatepass")).hexdigest()[:_HASH_LENGTH]
    kept = _foreign(rule).sub("_", identifier)[: max(rule.longest - _HASH_LENGTH - 1, 0)]
    derived = f"{kept}_{digest}" if kept else digest
    return derived if is_valid(derived, rule) else f"x{derived}"[: rule.longest]


class Identifiers:
    """Which wire identifiers a conversation has used, in order.

    `name` maps equal strings to equal identifiers; `fresh` gives every call its own, so that a provider that reuses
    call ids in a later turn confuses nothing (UP-13). A fork sees the first so many of the identifiers that it was
    forked from, whatever these gain later, and writes to itself; it is never forked again.
    """

    __slots__ = (
        "_is_valid",
        "_names",
        "_repeats",
        "_seen",
        "_seen_count",
        "_seen_names",
        "_seen_repeats",
        "_used",
        "rule",
    )

    def __init__(self, rule: IdentifierRule, seen: "Identifiers | None" = None, count: int = 0) -> None:
        self.rule = rule
        self._is_valid = _pattern(rule).fullmatch
        self._seen: dict[str, int] = seen._used if seen else {}
        self._seen_names: dict[str, str] = seen._names if seen else {}
        self._seen_count = count
        self._used: dict[str, int] = {}
        """Wire identifier → its number, counted from 0."""
        self._names: dict[str, str] = {}
        self._seen_repeats: dict[str, list[tuple[int, int]]] = seen._repeats if seen else {}
        self._repeats: dict[str, list[tuple[int, int]]] = {}
        """An id that came again → for each time, its identifier's number and the occurrence that made it."""

    def __len__(self) -> int:
        return self._seen_count + len(self._used)

    def fork(self, count: int) -> "Identifiers":
        """Identifiers that go on after the first `count` of these, and leave these as they are."""
        return Identifiers(self.rule, self, count)

    def cut(self, count: int) -> "Identifiers":
        """A copy of the first `count`."""
        earlier = Identifiers(self.rule)
        earlier._used = dict(islice(self._used.items(), count))
        earlier._names = {given: wire for given, wire in self._names.items() if wire in earlier._used}
        earlier._repeats = {given: each[: bisect_left(each, (count,))] for given, each in self._repeats.items()}
        return earlier

    def absorb(self, fork: "Identifiers", count: int) -> None:
        """Take what a fork of these added, up to `count` identifiers in all."""
        self._used.update(islice(fork._used.items(), count - len(self._used)))
        self._names.update((given, wire) for given, wire in fork._names.items() if wire in self._used)
        for given, each in fork._repeats.items():
            self._repeats.setdefault(given, []).extend(each[: bisect_left(each, (len(self._used),))])

    def name(self, given: str) -> str:
        """The identifier of a name: the same for the same name."""
        known = self._names.get(given)
        if known is None:
            known = self._seen_names.get(given)
            if known is None or self._seen[known] >= self._seen_count:
                self._names[given] = known = self.fresh(given)
        return known

    def fresh(self, given: str) -> str:
        """An identifier of its own for one more call with that id."""
        wire, number = given if self._is_valid(given) else derive(given, self.rule), len(self)
        if self._is_used(wire):
            occurrence = self._last_occurrence(given)
            while self._is_used(wire):
                occurrence += 1
                wire = derive(given, self.rule, occurrence)
            self._repeats.setdefault(given, []).append((number, occurrence))
        self._used[wire] = number
        return wire

    def _is_used(self, wire: str) -> bool:
        return wire in self._used or self._seen.get(wire, self._seen_count) < self._seen_count

    def _last_occurrence(self, given: str) -> int:
        """Of that id, in what this one sees: those before it are used."""
        if given in self._repeats:
            return self._repeats[given][-1][1]
        seen = self._seen_repeats.get(given, [])
        place = bisect_left(seen, (self._seen_count,))
        return seen[place - 1][1] if place else 0
