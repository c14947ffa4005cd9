"""Identifiers that a wire takes, derived from any that it does not.

Deterministic and append-only: what an identifier becomes depends on it and on those before it, never on those
after it, on clocks or on randomness. A valid one stays as it is; another keeps its valid characters and gets a
hash of itself; two never become one.
"""

import re
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
    call ids in a later turn confuses nothing (UP-13). A fork writes to itself and reads through to its parent.
    """

    __slots__ = ("_is_valid", "_names", "_parent", "_used", "rule")

    def __init__(self, rule: IdentifierRule, parent: "Identifiers | None" = None) -> None:
        self.rule = rule
        self._is_valid = _pattern(rule).fullmatch
        self._parent = parent
        self._used: dict[str, str] = {}
        """Wire identifier → what was given, in order."""
        self._names: dict[str, str] = {}

    def __len__(self) -> int:
        return len(self._used)

    def fork(self) -> "Identifiers":
        """A scratch copy that leaves this one as it is."""
        return Identifiers(self.rule, self)

    def cut(self, length: int) -> "Identifiers":
        """The state after the first `length` identifiers."""
        earlier = Identifiers(self.rule)
        earlier._used = dict(islice(self._used.items(), length))
        earlier._names = {given: wire for given, wire in self._names.items() if wire in earlier._used}
        return earlier

    def name(self, given: str) -> str:
        """The identifier of a name: the same for the same name."""
        known = self._find(given)
        if known is None:
            self._names[given] = known = self.fresh(given)
        return known

    def fresh(self, given: str) -> str:
        """An identifier of its own for one more call with that id."""
        wire, occurrence = given if self._is_valid(given) else derive(given, self.rule), 0
        while self._is_used(wire):
            occurrence += 1
            wire = derive(given, self.rule, occurrence)
        self._used[wire] = given
        return wire

    def keeps(self, given: str) -> bool:
        """Whether `fresh` would give it as it is."""
        return not self._is_used(given) and self._is_valid(given) is not None

    def keeps_name(self, given: str) -> bool:
        """Whether `name` would give it as it is."""
        known = self._names.get(given) or self._find(given)
        return known == given if known is not None else self.keeps(given)

    def keep(self, given: str) -> None:
        """Use one that `keeps` found; what `fresh` would do."""
        self._used[given] = given

    def _find(self, given: str) -> str | None:
        known = self._names.get(given)
        return known if known is not None or self._parent is None else self._parent._find(given)

    def _is_used(self, wire: str) -> bool:
        return wire in self._used or (self._parent is not None and self._parent._is_used(wire))
