"""Kept prefixes: the bytes of what a conversation's closed turns rendered to.

    messages   m0 m1 m2 … m17 | m18 m19        a boundary is known by its closer, the first message after it
    bytes      [……………………………]  ▲ closer

A prefix is found by its closer's identity and by every message before it, so that a hit costs one identity comparison
a message. It lives as long as its last closer does, and keeps until then what stands before that; when the closer is
gone, it falls back to the latest boundary whose closer is alive without it. Equal bytes with or without it are law 5.
"""

import weakref
from typing import NamedTuple

from sabir.identifiers import Identifiers
from sabir.losses import Loss
from sabir.messages import Message
from sabir.pairing import Waiting
from sabir.scope import Side


class Boundary(NamedTuple):
    """The state of a rendering between two turns."""

    position: int
    """How many messages the closed prefix has."""
    offset: int
    """How many bytes of the body it rendered to."""
    losses: int
    call_ids: int
    names: int
    media_count: int
    waiting: Waiting
    system: tuple[int, ...]
    """Positions of the messages of the leading system turn, where the dialect hoists it."""
    last_side: Side | None
    """The side of the last turn that came to an item."""


START = Boundary(0, 0, 0, 0, 0, 0, Waiting({}), (), None)


class Prefix:
    """One conversation's closed turns for one target: bytes, losses, identifiers, and its boundaries."""

    def __init__(self, call_ids: Identifiers, names: Identifiers) -> None:
        self.body = bytearray()
        self.losses: list[Loss] = []
        self.call_ids = call_ids
        self.names = names
        self.boundaries = [START._replace(names=len(names))]
        self.closers: list[int] = []
        """The identity of each boundary's closer, but for the start's."""
        self.messages: list[Message] = []
        """Those before the last closer."""

    @property
    def last(self) -> Boundary:
        """The latest boundary."""
        return self.boundaries[-1]

    def holds(self, messages: list[Message], count: int) -> bool:
        """Whether the first `count` messages are those that this prefix was made of."""
        # Lists compare by identity first, in one pass; equal messages render to equal bytes.
        kept = self.messages if count == len(self.messages) else self.messages[:count]
        return kept == messages[:count]

    def ends_at(self, boundary: Boundary) -> bool:
        """Whether a boundary is the end of all that is kept; it is not where a rendering failed midway."""
        kept = (len(self.body), len(self.losses), len(self.call_ids), len(self.names))
        return boundary is self.last and kept == boundary[1:5]

    def cut(self, number: int) -> "Prefix":
        """A prefix of its own that ends at boundary `number`."""
        boundary = self.boundaries[number]
        earlier = Prefix(self.call_ids.cut(boundary.call_ids), self.names.cut(boundary.names))
        earlier.body = self.body[: boundary.offset]
        earlier.losses = self.losses[: boundary.losses]
        earlier.boundaries = self.boundaries[: number + 1]
        earlier.closers = self.closers[:number]
        earlier.messages = self.messages[: boundary.position]
        return earlier


class _Kept(NamedTuple):
    """Where a closer leads to: a boundary of a prefix."""

    closer: weakref.ref[Message]
    prefix: weakref.ref[Prefix]
    number: int


class PrefixIndex:
    """Finds the longest kept prefix of a history. Its owner's lock guards everything but the closers' end."""

    def __init__(self) -> None:
        self._by_closer: dict[int, _Kept] = {}
        self._owned: dict[int, Prefix] = {}
        """A prefix, by its last closer: what keeps it alive."""

    def find(self, messages: list[Message]) -> Prefix | None:
        """The longest kept prefix, ready to be extended: cut to its boundary where it goes on otherwise."""
        by_closer = self._by_closer
        for closer in filter(by_closer.__contains__, map(id, reversed(messages))) if by_closer else ():
            kept = by_closer.get(closer)
            prefix = kept.prefix() if kept else None
            if kept is None or prefix is None:
                continue
            boundary = prefix.boundaries[kept.number]
            at = boundary.position
            if at < len(messages) and id(messages[at]) == closer and prefix.holds(messages, at):
                return prefix if prefix.ends_at(boundary) else prefix.cut(kept.number)
        return None

    def enter(self, prefix: Prefix, messages: list[Message], boundary: Boundary) -> None:
        """Keep one more boundary of a prefix; its closer is `messages[boundary.position]`."""
        prefix.messages += messages[len(prefix.messages) : boundary.position]
        prefix.boundaries.append(boundary)
        if prefix.closers and self._owned.get(prefix.closers[-1]) is prefix:
            del self._owned[prefix.closers[-1]]
        closer = messages[boundary.position]
        key = id(closer)
        prefix.closers.append(key)
        ended = weakref.ref(closer, lambda dead: self._forget(key, dead))
        self._by_closer[key] = _Kept(ended, weakref.ref(prefix), len(prefix.closers))
        self._owned[key] = prefix

    def _forget(self, key: int, dead: weakref.ref[Message]) -> None:
        """A closer is gone: its prefix falls back to the last one that lives without it.

        No rendering is at work there meanwhile: one that extends a prefix has all its messages in its hands.
        """
        kept = self._by_closer.get(key)
        if kept is None or kept.closer is not dead:
            return
        del self._by_closer[key]
        prefix = self._owned.pop(key, None)
        while prefix is not None:
            prefix.boundaries.pop()
            prefix.closers.pop()
            del prefix.messages[prefix.last.position :]
            # What ended with the messages was forgotten within that deletion.
            if not prefix.closers:
                return
            earlier = self._by_closer.get(prefix.closers[-1])
            if earlier is not None and earlier.prefix() is prefix and earlier.closer() is not None:
                self._owned[prefix.closers[-1]] = prefix
                return

    def __len__(self) -> int:
        return len(self._by_closer)
