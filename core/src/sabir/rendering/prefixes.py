"""Kept prefixes: the bytes that a conversation's closed turns rendered to.

    messages   m0 m1 m2 … m17 | m18 m19        a boundary is known by its closer, the first message after it
    bytes      [……………………………]  ▲ closer

A prefix is found by the identity of its closer and of every message before it, so a hit costs one identity comparison
a message. A prefix lives as long as its last closer, and keeps the messages before that closer alive. When the closer
is freed, the prefix falls back to the latest boundary whose closer the program still holds. The bytes are equal with
and without a kept prefix (law 5).

A rendering looks up a prefix, works without changing it, and enters the turns that it closed at its end. The bytes kept
up to a boundary never change, so only the look-up and the entry take a lock.
"""

import weakref
from functools import partial
from threading import Lock
from typing import NamedTuple

from sabir.base.failures import Loss
from sabir.contract.turns import Side, TurnScope, new_tuple
from sabir.rendering.pairing import Waiting
from sabir.rendering.turns import Identifiers, TurnMaker
from sabir.vocabulary.messages import Message

LEAST_FORK = 16
"""The least number of closed messages for which a fork of a kept prefix is kept; a shorter fork is rendered again."""


class Boundary(NamedTuple):
    """The state of a rendering between two turns."""

    position: int = 0
    """The number of messages in the closed prefix."""
    offset: int = 0
    """The number of bytes that those messages rendered to."""
    losses: int = 0
    call_ids: int = 0
    names: int = 0
    called: frozenset[str] = frozenset()
    """Names of the options that were called."""
    media_count: int = 0
    waiting: Waiting = Waiting()
    system: tuple[int, ...] = ()
    """Positions of the messages of the leading system turn, where the dialect hoists it."""
    last_side: Side | None = None
    """The side of the last turn that was encoded to an item."""


_START = Boundary()


class Prefix:
    """One conversation's closed turns for one target: bytes, losses, identifiers, and its boundaries."""

    def __init__(self, call_ids: Identifiers, names: Identifiers) -> None:
        self.body = memoryview(b"")
        """All closed turns as JSON; further bytes of the request may follow them."""
        self.losses: list[Loss] = []
        self.call_ids = call_ids
        """The identifiers up to the last boundary, and perhaps more, as of turns that were open."""
        self.names = names
        self.boundaries = [_START]
        self.closers: list[int] = []
        """The identity of each boundary's closer, the first boundary (the start) excepted."""
        self.messages: list[Message] = []
        """The messages before the last closer."""

    def cut(self, number: int) -> "Prefix":
        """A separate prefix that ends at boundary `number`."""
        boundary = self.boundaries[number]
        earlier = Prefix(self.call_ids.cut(boundary.call_ids), self.names.cut(boundary.names))
        earlier.body = self.body
        earlier.losses = self.losses[: boundary.losses]
        earlier.boundaries = self.boundaries[: number + 1]
        earlier.closers = self.closers[:number]
        earlier.messages = self.messages[: boundary.position]
        return earlier

    def shed(self) -> None:
        """Copy the prefix's bytes where they are less than half of the request whose bytes they keep alive."""
        kept = self.body[: self.boundaries[-1].offset]
        if memoryview(self.body.obj).nbytes > 2 * kept.nbytes:
            self.body = memoryview(bytes(kept))

    def absorb(self, maker: TurnMaker, last: Boundary) -> None:
        """Take the identifiers that a rendering gave after the last boundary, in place of all that are left there."""
        start = self.boundaries[-1]
        if (self.call_ids.count, self.names.count) != (start.call_ids, start.names):
            self.call_ids, self.names = self.call_ids.cut(start.call_ids), self.names.cut(start.names)
        self.call_ids.absorb(maker.call_ids, last.call_ids)
        self.names.absorb(maker.names, last.names)


class Found(NamedTuple):
    """Where a rendering starts: a boundary of a kept prefix, or the start of the conversation."""

    prefix: Prefix | None
    number: int
    boundary: Boundary
    body: memoryview
    """The bytes up to that boundary."""


_NOTHING_KEPT = Found(None, 0, _START, memoryview(b""))


class _Kept(NamedTuple):
    """The boundary of a prefix that a closer closes."""

    closer: weakref.ref[Message]
    prefix: weakref.ref[Prefix]
    number: int


class PrefixIndex:
    """Keeps the prefixes of all renderings of one scope and finds them again; safe to share between threads."""

    def __init__(self, scope: TurnScope) -> None:
        self.scope = scope
        """What those renderings share."""
        self._lock = Lock()
        self._by_closer: dict[int, _Kept] = {}
        self._owned: dict[int, Prefix] = {}
        """Identity of the last closer → its prefix; this reference keeps the prefix alive."""

    def find(self, messages: list[Message]) -> Found:
        """The longest kept prefix."""
        by_closer = self._by_closer
        with self._lock:
            for closer in filter(by_closer.__contains__, map(id, reversed(messages if by_closer else ()))):
                kept = by_closer.get(closer)
                if kept is None or (prefix := kept.prefix()) is None:
                    continue
                boundary = prefix.boundaries[kept.number]
                at = boundary.position
                # Lists compare by identity first, in one pass; equal messages render to equal bytes.
                if at < len(messages) and id(messages[at]) == closer and prefix.messages[:at] == messages[:at]:
                    return new_tuple(Found, (prefix, kept.number, boundary, prefix.body[: boundary.offset]))
        return _NOTHING_KEPT

    def enter(
        self,
        found: Found,
        messages: list[Message],
        body: memoryview,
        boundaries: list[Boundary],
        losses: list[Loss],
        maker: TurnMaker,
    ) -> None:
        """Keep the turns that a rendering closed: in the prefix it started from, or in a fork if that has grown since.

        `body` holds all closed turns; `losses` are the losses after the start, those of open turns included.
        """
        with self._lock:
            prefix, start, last = found.prefix, found.boundary, boundaries[-1]
            if prefix is None:
                prefix, before = Prefix(maker.call_ids, maker.names), 0
            else:
                if found.number >= len(prefix.boundaries) or prefix.boundaries[found.number] is not start:
                    return  # another thread's rendering took it back meanwhile
                # No entry owns a prefix between the end of its last closer and its fall back to an earlier boundary.
                is_settled = self._owned.get(prefix.closers[-1]) is prefix
                if prefix.boundaries[-1] is not start or not is_settled:
                    if last.position - start.position < LEAST_FORK:
                        return
                    prefix = prefix.cut(found.number)
                before = prefix.closers[-1]
                prefix.absorb(maker, last)
            prefix.body = body
            prefix.losses[start.losses :] = losses[: last.losses - start.losses]
            prefix.messages += messages[start.position : last.position]
            for boundary in boundaries:
                closer = messages[boundary.position]
                prefix.boundaries.append(boundary)
                prefix.closers.append(id(closer))
                ended = weakref.ref(closer, partial(self._forget, id(closer)))
                self._by_closer[id(closer)] = new_tuple(_Kept, (ended, weakref.ref(prefix), len(prefix.closers)))
            if self._owned.get(before) is prefix:
                del self._owned[before]
            self._owned[prefix.closers[-1]] = prefix

    def _forget(self, key: int, dead: weakref.ref[Message]) -> None:
        """Forget a freed closer: its prefix falls back to the latest boundary whose closer still lives.

        No rendering starts at the freed closer meanwhile: a rendering that did would hold the closer itself.
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
            # Closers that were freed with these messages were forgotten within that deletion.
            if not prefix.closers:
                return
            earlier = self._by_closer.get(prefix.closers[-1])
            if earlier is not None and earlier.prefix() is prefix and earlier.closer() is not None:
                prefix.shed()
                self._owned[prefix.closers[-1]] = prefix
                return
