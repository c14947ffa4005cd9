"""A cache of closed prefixes: the encoded bytes of the turns of a conversation that later messages cannot change.

    messages   m0 m1 m2 … m17 | m18 m19     |     a boundary: the end of a closed turn; a rendering can resume there
    bytes      [……………………………]  ▲ closer     m18   the closer of this boundary: the first message after it

A prefix is found by the identity of a closer and of every message before it, so a hit costs one comparison of
identities for each message. A prefix lives as long as its last closer, and keeps the messages before that closer alive.
When the closer is freed, the prefix falls back to the latest boundary whose closer still exists. The bytes of a request
are the same with and without a cached prefix (law 5).

A rendering looks up a prefix, works without changing it, and at its end stores the turns that it closed. The bytes up
to a boundary never change, so only looking up and storing take a lock.
"""

import weakref
from functools import partial
from threading import Lock
from typing import NamedTuple

from sabir.base.failures import Loss
from sabir.contract.turns import Side, TurnScope, new_tuple
from sabir.rendering.pairing import PairingState
from sabir.rendering.turns import Identifiers, TurnMaker
from sabir.vocabulary.messages import Message

LEAST_FORK = 16
"""The least number of closed messages for which a fork of a cached prefix is stored. A shorter fork is
rendered again.
"""


class Boundary(NamedTuple):
    """The state of a rendering at the end of a closed turn, from which a later rendering can resume."""

    position: int = 0
    """The number of messages before the boundary, and the index of its closer."""
    offset: int = 0
    """The number of bytes of the encoded turns before the boundary."""
    losses: int = 0
    """The number of losses of the turns before the boundary."""
    call_ids: int = 0
    """The number of call ids sent before the boundary."""
    names: int = 0
    """The number of option names sent before the boundary."""
    called: frozenset[str] = frozenset()
    """The names of the options that were called before the boundary."""
    media_count: int = 0
    """The number of media sent before the boundary."""
    waiting: PairingState = PairingState()
    """The state of pairing at the boundary."""
    system: tuple[int, ...] = ()
    """The positions of the first system messages, if the dialect sends them outside of the turns (hoisted)."""
    last_side: Side | None = None
    """The side of the last turn before the boundary that produced an item in the request. None if no turn did."""


_START = Boundary()


class Prefix:
    """The cached closed turns of one conversation for one target: bytes, losses, identifiers and boundaries."""

    def __init__(self, call_ids: Identifiers, names: Identifiers) -> None:
        self.body = memoryview(b"")
        """The closed turns as JSON, joined by commas. Other bytes of a request may follow."""
        self.losses: list[Loss] = []
        self.call_ids = call_ids
        """The call ids up to the last boundary, and perhaps those of later turns, which are not closed."""
        self.names = names
        """The option names, like `call_ids`."""
        self.boundaries = [_START]
        """The start of the conversation, and the ends of closed turns, in order."""
        self.closers: list[int] = []
        """The `id()` of the closer of each boundary, without the first boundary, which is the start."""
        self.messages: list[Message] = []
        """The messages before the last closer."""

    def cut(self, number: int) -> "Prefix":
        """Return a new prefix that ends at the boundary with this index."""
        boundary = self.boundaries[number]
        earlier = Prefix(self.call_ids.cut(boundary.call_ids), self.names.cut(boundary.names))
        earlier.body = self.body
        earlier.losses = self.losses[: boundary.losses]
        earlier.boundaries = self.boundaries[: number + 1]
        earlier.closers = self.closers[:number]
        earlier.messages = self.messages[: boundary.position]
        return earlier

    def shed(self) -> None:
        """Copy the bytes of the prefix if they are less than half of the request's bytes, which they keep alive."""
        own = self.body[: self.boundaries[-1].offset]
        if memoryview(self.body.obj).nbytes > 2 * own.nbytes:
            self.body = memoryview(bytes(own))

    def absorb(self, maker: TurnMaker, last: Boundary) -> None:
        """Add the identifiers of a rendering that started at the last boundary, up to the new boundary `last`.
        Identifiers that the prefix had after its last boundary are removed.
        """
        start = self.boundaries[-1]
        if (self.call_ids.count, self.names.count) != (start.call_ids, start.names):
            self.call_ids, self.names = self.call_ids.cut(start.call_ids), self.names.cut(start.names)
        self.call_ids.absorb(maker.call_ids, last.call_ids)
        self.names.absorb(maker.names, last.names)


class CachedStart(NamedTuple):
    """Where a rendering starts: at a boundary of a cached prefix, or at the start of the conversation."""

    prefix: Prefix | None
    """The cached prefix, or None if no cached prefix fits, so that rendering starts with the first message."""
    number: int
    """The index of the boundary in `prefix.boundaries`."""
    boundary: Boundary
    body: memoryview
    """The bytes up to this boundary."""


_NOTHING_KEPT = CachedStart(None, 0, _START, memoryview(b""))


class _CloserEntry(NamedTuple):
    """The entry of the index for one closer: its prefix, and the index of its boundary."""

    closer: weakref.ref[Message]
    prefix: weakref.ref[Prefix]
    number: int


class PrefixIndex:
    """Stores and finds the prefixes of all renderings with one TurnScope. Safe to share between threads."""

    def __init__(self, scope: TurnScope) -> None:
        self.scope = scope
        """The TurnScope of these renderings."""
        self._lock = Lock()
        self._by_closer: dict[int, _CloserEntry] = {}
        self._owned: dict[int, Prefix] = {}
        """`id()` of a prefix's last closer → the prefix. This reference keeps the prefix alive."""

    def find(self, messages: list[Message]) -> CachedStart:
        """Return the start for rendering these messages: the last boundary of the longest cached prefix that fits."""
        by_closer = self._by_closer
        with self._lock:
            for closer in filter(by_closer.__contains__, map(id, reversed(messages if by_closer else ()))):
                entry = by_closer.get(closer)
                if entry is None or (prefix := entry.prefix()) is None:
                    continue
                boundary = prefix.boundaries[entry.number]
                at = boundary.position
                # Lists compare by identity first, in one pass; equal messages render to equal bytes.
                if at < len(messages) and id(messages[at]) == closer and prefix.messages[:at] == messages[:at]:
                    return new_tuple(CachedStart, (prefix, entry.number, boundary, prefix.body[: boundary.offset]))
        return _NOTHING_KEPT

    def enter(
        self,
        cached: CachedStart,
        messages: list[Message],
        body: memoryview,
        boundaries: list[Boundary],
        losses: list[Loss],
        maker: TurnMaker,
    ) -> None:
        """Store the turns that a rendering closed: in the prefix from which it started, or in a fork if this prefix has
        grown since. A fork of fewer than LEAST_FORK messages is not stored.

        `cached` is the start of the rendering, and `boundaries` are the new boundaries. `body` contains all closed
        turns. `losses` are all losses after the start, also those of turns that are not closed. `maker` has the
        identifiers.
        """
        with self._lock:
            prefix, start, last = cached.prefix, cached.boundary, boundaries[-1]
            if prefix is None:
                prefix, before = Prefix(maker.call_ids, maker.names), 0
            else:
                if cached.number >= len(prefix.boundaries) or prefix.boundaries[cached.number] is not start:
                    return  # meanwhile the prefix fell back to an earlier boundary
                # No entry owns a prefix between the end of its last closer and its fall back to an earlier boundary.
                is_settled = self._owned.get(prefix.closers[-1]) is prefix
                if prefix.boundaries[-1] is not start or not is_settled:
                    if last.position - start.position < LEAST_FORK:
                        return
                    prefix = prefix.cut(cached.number)
                before = prefix.closers[-1]
                prefix.absorb(maker, last)
            prefix.body = body
            prefix.losses[start.losses :] = losses[: last.losses - start.losses]
            prefix.messages += messages[start.position : last.position]
            for boundary in boundaries:
                closer = messages[boundary.position]
                prefix.boundaries.append(boundary)
                prefix.closers.append(id(closer))
                ended = weakref.ref(closer, partial(self._drop_closer, id(closer)))
                self._by_closer[id(closer)] = new_tuple(_CloserEntry, (ended, weakref.ref(prefix), len(prefix.closers)))
            if self._owned.get(before) is prefix:
                del self._owned[before]
            self._owned[prefix.closers[-1]] = prefix

    def _drop_closer(self, key: int, dead: weakref.ref[Message]) -> None:
        """Remove a freed closer. Its prefix falls back to the latest boundary whose closer still exists.

        No rendering can have started at the freed closer, because such a rendering keeps the closer alive.
        """
        entry = self._by_closer.get(key)
        if entry is None or entry.closer is not dead:
            return
        del self._by_closer[key]
        prefix = self._owned.pop(key, None)
        while prefix is not None:
            prefix.boundaries.pop()
            prefix.closers.pop()
            del prefix.messages[prefix.boundaries[-1].position :]
            # Deleting these messages may free other closers, which this method removes during the deletion.
            if not prefix.closers:
                return
            earlier = self._by_closer.get(prefix.closers[-1])
            if earlier is not None and earlier.prefix() is prefix and earlier.closer() is not None:
                prefix.shed()
                self._owned[prefix.closers[-1]] = prefix
                return
