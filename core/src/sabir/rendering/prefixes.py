"""Kept prefixes: the bytes of what a conversation's closed turns rendered to.

    messages   m0 m1 m2 … m17 | m18 m19        a boundary is known by its closer, the first message after it
    bytes      [……………………………]  ▲ closer

A prefix is found by its closer's identity and by every message before it, so that a hit costs one identity comparison
a message. It lives as long as its last closer does, and keeps until then what stands before that; when the closer is
gone, it falls back to the latest boundary whose closer is alive without it. Equal bytes with or without it are law 5.

A rendering looks a prefix up, works beside it, and enters what it closed when it is done: what is kept up to a boundary
never changes, so that only the two ends need a lock.
"""

import weakref
from threading import Lock
from typing import NamedTuple

from sabir.base.losses import Loss
from sabir.contract.tables import Side
from sabir.rendering.pairing import Waiting
from sabir.rendering.turns import Identifiers
from sabir.vocabulary.messages import Message

LEAST_FORK = 16
"""Closed messages from which on a fork of a kept prefix is kept too; a shorter one is rendered again."""


class Boundary(NamedTuple):
    """The state of a rendering between two turns."""

    position: int
    """How many messages the closed prefix has."""
    offset: int
    """How many bytes of the messages it rendered to."""
    losses: int
    call_ids: int
    names: int
    media_count: int
    waiting: Waiting
    system: tuple[int, ...]
    """Positions of the messages of the leading system turn, where the dialect hoists it."""
    last_side: Side | None
    """The side of the last turn that came to an item."""


class Closing(NamedTuple):
    """What a rendering closed after the boundary that it started from."""

    body: memoryview
    """All closed turns as JSON, those before that boundary included."""
    boundaries: list[Boundary]
    losses: list[Loss]
    call_ids: Identifiers
    names: Identifiers


class Prefix:
    """One conversation's closed turns for one target: bytes, losses, identifiers, and its boundaries."""

    def __init__(self, call_ids: Identifiers, names: Identifiers) -> None:
        self.body = memoryview(b"")
        self.losses: list[Loss] = []
        self.call_ids = call_ids
        self.names = names
        self.boundaries = [Boundary(0, 0, 0, 0, len(names), 0, Waiting({}), (), None)]
        self.closers: list[int] = []
        """The identity of each boundary's closer, but for the start's."""
        self.messages: list[Message] = []
        """Those before the last closer."""

    def holds(self, messages: list[Message], count: int) -> bool:
        """Whether the first `count` messages are those that this prefix was made of."""
        # Lists compare by identity first, in one pass; equal messages render to equal bytes.
        return self.messages[:count] == messages[:count]

    def cut(self, number: int) -> "Prefix":
        """A prefix of its own that ends at boundary `number`."""
        boundary = self.boundaries[number]
        earlier = Prefix(self.call_ids.cut(boundary.call_ids), self.names.cut(boundary.names))
        earlier.body = self.body
        earlier.losses = self.losses[: boundary.losses]
        earlier.boundaries = self.boundaries[: number + 1]
        earlier.closers = self.closers[:number]
        earlier.messages = self.messages[: boundary.position]
        return earlier

    def shed(self) -> None:
        """Let go of a request's bytes of which this prefix is the lesser part."""
        kept = self.body[: self.boundaries[-1].offset]
        if memoryview(self.body.obj).nbytes > 2 * kept.nbytes:
            self.body = memoryview(bytes(kept))

    def extend(self, closing: Closing) -> None:
        """Take what was closed after the last boundary, but for the messages and the boundaries.

        What is left of boundaries whose closers are gone makes place for it.
        """
        start, last = self.boundaries[-1], closing.boundaries[-1]
        del self.losses[start.losses :]
        if (len(self.call_ids), len(self.names)) != (start.call_ids, start.names):
            self.call_ids, self.names = self.call_ids.cut(start.call_ids), self.names.cut(start.names)
        self.body = closing.body
        self.losses += closing.losses[: last.losses - start.losses]
        self.call_ids.absorb(closing.call_ids, last.call_ids)
        self.names.absorb(closing.names, last.names)


class Found(NamedTuple):
    """Where a rendering starts: a boundary of a kept prefix, or the start of an empty one."""

    prefix: Prefix
    number: int
    boundary: Boundary
    body: memoryview
    """The bytes up to that boundary."""


class _Kept(NamedTuple):
    """Where a closer leads to: a boundary of a prefix."""

    closer: weakref.ref[Message]
    prefix: weakref.ref[Prefix]
    number: int


class PrefixIndex:
    """Finds the longest kept prefix of a history; safe to share between threads."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._by_closer: dict[int, _Kept] = {}
        self._owned: dict[int, Prefix] = {}
        """A prefix, by its last closer: what keeps it alive."""

    def find(self, messages: list[Message]) -> Found | None:
        """The longest kept prefix."""
        by_closer = self._by_closer
        if not by_closer:
            return None
        with self._lock:
            for closer in filter(by_closer.__contains__, map(id, reversed(messages))):
                kept = by_closer.get(closer)
                if kept is None or (prefix := kept.prefix()) is None:
                    continue
                boundary = prefix.boundaries[kept.number]
                at = boundary.position
                if at < len(messages) and id(messages[at]) == closer and prefix.holds(messages, at):
                    return Found(prefix, kept.number, boundary, prefix.body[: boundary.offset])
        return None

    def enter(self, found: Found, messages: list[Message], closing: Closing) -> None:
        """Keep what a rendering closed: beside what it started from, or as a prefix of its own where that went on."""
        with self._lock:
            prefix, start = found.prefix, found.boundary
            if prefix.boundaries[-1] is not start or not self._is_settled(prefix):
                if closing.boundaries[-1].position - start.position < LEAST_FORK:
                    return
                prefix = prefix.cut(found.number)
            prefix.extend(closing)
            for boundary in closing.boundaries:
                self._enter_boundary(prefix, messages, boundary)
            if len(prefix.closers) > len(closing.boundaries):
                before = prefix.closers[-len(closing.boundaries) - 1]
                if self._owned.get(before) is prefix:
                    del self._owned[before]
            self._owned[prefix.closers[-1]] = prefix

    def _is_settled(self, prefix: Prefix) -> bool:
        """Whether no closer of it is going at this moment: until it has fallen back, nothing owns it."""
        return not prefix.closers or self._owned.get(prefix.closers[-1]) is prefix

    def _enter_boundary(self, prefix: Prefix, messages: list[Message], boundary: Boundary) -> None:
        prefix.messages += messages[len(prefix.messages) : boundary.position]
        prefix.boundaries.append(boundary)
        closer = messages[boundary.position]
        key = id(closer)
        prefix.closers.append(key)
        ended = weakref.ref(closer, lambda dead: self._forget(key, dead))
        self._by_closer[key] = _Kept(ended, weakref.ref(prefix), len(prefix.closers))

    def _forget(self, key: int, dead: weakref.ref[Message]) -> None:
        """A closer is gone: its prefix falls back to the last one that lives without it.

        No rendering starts there meanwhile: one that does has all its messages in its hands.
        """
        kept = self._by_closer.get(key)
        if kept is None or kept.closer is not dead:
            return
        del self._by_closer[key]
        prefix = self._owned.pop(key, None)
        while prefix is not None:
            prefix.boundaries.pop()
            prefix.closers.pop()
            del prefix.messages[prefix.boundaries[-1].position :]
            # What ended with the messages was forgotten within that deletion.
            if not prefix.closers:
                return
            earlier = self._by_closer.get(prefix.closers[-1])
            if earlier is not None and earlier.prefix() is prefix and earlier.closer() is not None:
                prefix.shed()
                self._owned[prefix.closers[-1]] = prefix
                return

    def __len__(self) -> int:
        return len(self._by_closer)
