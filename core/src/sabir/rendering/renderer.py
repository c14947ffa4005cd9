"""Rendering: messages + options + settings → request bytes and losses, before any network call.

    messages ─▶ pairing ─▶ turns ─▶ dialect.encode_turn ─▶ items ┐
    options, settings ─▶ dialect.encode_request ─▶ head          ┴▶ {head…, "messages": [kept prefix, tail]}

Law 6, pure: a function of its arguments alone. Laws 4 and 5: what a closed prefix rendered to is kept and never
changes, and a kept prefix gives the bytes that rendering from nothing gives.
"""

from collections.abc import Sequence
from dataclasses import replace
from threading import Lock
from typing import NamedTuple

from pydantic_core import to_json

from sabir.base.losses import Loss, RenderingRefused
from sabir.contract.dialect import Dialect, Rendering
from sabir.contract.scope import LossLog, Place, Splice, Turn, TurnScope, new_tuple
from sabir.contract.tables import Side
from sabir.options.option import Option
from sabir.rendering.heads import Head, HeadMaker, Tail
from sabir.rendering.pairing import Block, Closed, Pairing
from sabir.rendering.pieces import goes_back, home_of
from sabir.rendering.prefixes import Boundary, Closing, Found, Prefix, PrefixIndex
from sabir.rendering.turns import Identifiers, TurnMaker
from sabir.vocabulary.constructors import check_messages
from sabir.vocabulary.messages import Message
from sabir.vocabulary.parts import OpaquePart
from sabir.vocabulary.settings import Settings, UnsupportedMedia
from sabir.vocabulary.target import ModelInfo, Target

__all__ = ["Renderer", "Rendering"]

MOST_SCOPES = 16
"""How many scopes keep what was rendered: combinations of settings and names that turns depend on."""
MOST_APART = 64
"""Messages from one boundary of a kept prefix to the next."""
LATEST = 8
"""Last messages among which each closed turn ends at a boundary: callers that share a history begin there."""
_NO_SETTINGS = Settings()


class _Kept:
    """What all renderings of equal scope share: who is at home, and the prefixes that were kept."""

    def __init__(self, dialect: Dialect, scope: TurnScope) -> None:
        self.dialect = dialect
        self.scope = scope
        self.index = PrefixIndex()
        self.is_home = home_of(scope, dialect.family)

    def find(self, messages: list[Message]) -> Found:
        """Where the rendering of a history starts: at the end of the longest kept prefix, or of an empty one."""
        found = self.index.find(messages)
        if found is None:
            names = Identifiers(self.scope.tables.calls.names)
            for name in self.scope.declared_names:
                names.name(name)
            empty = Prefix(Identifiers(self.scope.tables.calls.ids), names)
            found = Found(empty, 0, empty.boundaries[0], empty.body)
        return found


class _Messages(NamedTuple):
    """What the messages of a history rendered to, as JSON without brackets."""

    closed: bytes
    """What closed after the kept prefix."""
    open: bytes
    losses: list[Loss]
    """Those of all messages that are not hoisted."""
    system: tuple[int, ...]
    """Positions of the hoisted ones."""
    tail: Tail


class _Pass:
    """One rendering of one history: what closes after the kept prefix, and what is still open."""

    def __init__(self, kept: _Kept, messages: list[Message]) -> None:
        self.kept = kept
        self.messages = messages
        self.found = kept.find(messages)
        self._start = start = self.found.boundary
        check_messages(messages, start.position)
        prefix = self.found.prefix
        self._call_ids = prefix.call_ids.fork(start.call_ids)
        self._names = prefix.names.fork(start.names)
        self._log = LossLog()
        self._maker = self._new_maker(self._log, start.media_count)
        self._boundaries: list[Boundary] = []
        self._items: list[bytes] = []
        self._measured = self._length = 0
        self._is_first = not start.position
        self._system, self._side = start.system, start.last_side
        self._last_turn: Turn | None = None

    def _new_maker(self, log: LossLog, media_count: int) -> TurnMaker:
        kept = self.kept
        return TurnMaker(self.messages, kept.scope, kept.is_home, self._call_ids, self._names, log, media_count)

    def render(self) -> tuple[_Messages, list[Loss]]:
        """What the messages render to; the losses of those that closed here."""
        still_open, open_losses = self._close()
        closed, closed_losses = b",".join(self._items), self._log.losses
        self._items, self._log.losses, self._last_turn = [], open_losses, None
        self._encode(still_open)
        kept = self.found.prefix.losses[: self._start.losses]
        losses = [*kept, *closed_losses, *self._log.losses]
        tail = Tail(self._side, self._last_turn, self.messages)
        return _Messages(closed, b",".join(self._items), losses, self._system, tail), closed_losses

    def keep(self, body: memoryview, losses: list[Loss]) -> None:
        """Keep what closed, with the bytes of all that is closed and the losses of what closed here."""
        if self._boundaries:
            closing = Closing(body, self._boundaries, losses, self._call_ids, self._names)
            self.kept.index.enter(self.found, self.messages, closing)

    def hoist(self, system: tuple[int, ...]) -> tuple[list[Turn], list[Loss]]:
        """The turns of the hoisted messages, and what they lose."""
        log = LossLog()
        made = self._new_maker(log, 0).make(Block("system", list(system)), None) if system else ()
        return [Turn(side, entries) for side, entries in made], log.losses

    def _close(self) -> tuple[list[Block], list[Loss]]:
        """Encode what can be closed; returns what is still open, and what that loses by its pairs."""
        scope, start = self.kept.scope, self._start
        pairing = Pairing(self.messages, scope.tables, scope.speaks_as, start.waiting, self._goes_back)
        for closed in pairing.closings(start.position, MOST_APART, LATEST):
            self._encode(closed.blocks)
            self._mark(closed)
        return pairing.finish()

    def _mark(self, closed: Closed) -> None:
        """Note the boundary where all that was encoded so far ends."""
        start, items = self._start, self._items
        self._length += sum(map(len, items[self._measured :])) + len(items) - self._measured
        self._measured = len(items)
        first_comma = bool(items and not start.offset)
        self._boundaries.append(
            Boundary(
                position=closed.position,
                offset=start.offset + self._length - first_comma,
                losses=start.losses + len(self._log.losses),
                call_ids=len(self._call_ids),
                names=len(self._names),
                media_count=self._maker.filter.media_count,
                waiting=closed.waiting,
                system=self._system,
                last_side=self._side,
            )
        )

    def _encode(self, blocks: list[Block]) -> None:
        """Add the items of blocks; a leading system block is set apart where the dialect hoists it."""
        encode_turn, scope, log, items = self.kept.dialect.encode_turn, self.kept.scope, self._log, self._items
        make = self._maker.make
        if self._is_first and blocks:
            self._is_first = False
            if blocks[0].side == "system" and scope.tables.roles.leading_system == "hoisted":
                hoisted, *blocks = blocks
                self._system = tuple(hoisted.positions)
                log.losses += hoisted.losses
        for block in blocks:
            log.losses += block.losses
            for side, entries in make(block, self._side):
                turn = new_tuple(Turn, (side, entries, self._side))
                found = encode_turn(turn, scope, log)
                if found:
                    items += map(to_json, found)
                    self._side, self._last_turn = side, turn

    def _goes_back(self, part: OpaquePart, message: Message, side: Side) -> bool:
        return goes_back(part, message, side, self.kept.scope, is_home=self.kept.is_home(message.origin))


class Renderer:
    """Renders histories for one target, keeping the closed prefix of each; safe to share between threads."""

    def __init__(
        self,
        dialect: Dialect,
        target: Target,
        *,
        speaks_as: str = "llm",
        model_info: ModelInfo | None = None,
        quirks: frozenset[str] = frozenset(),
    ) -> None:
        info = model_info or ModelInfo(prefix="")
        self.dialect = dialect
        """What encodes its turns."""
        self.scope = TurnScope(
            target=target,
            tables=dialect.tables.at(quirks, info),
            speaks_as=speaks_as,
            family=dialect.family(target.model),
            model_info=info,
            quirks=quirks,
        )
        """The target, what it takes, and what holds for all its turns."""
        self._heads = HeadMaker(dialect, self.scope)
        self._kept: dict[tuple[bool, UnsupportedMedia, tuple[str, ...]], _Kept] = {}
        self._lock = Lock()

    def new(self) -> "Renderer":
        """Another renderer for the same target, with nothing kept."""
        of = self.scope
        return Renderer(self.dialect, of.target, speaks_as=of.speaks_as, model_info=of.model_info, quirks=of.quirks)

    def render(
        self, messages: Sequence[Message], options: Sequence[Option] = (), settings: Settings | None = None
    ) -> Rendering:
        """The request for a history; RenderingRefused where nothing of it is left to send."""
        settings, listed = settings or _NO_SETTINGS, messages if type(messages) is list else list(messages)
        offer = self._heads.offer(options)
        one_pass = _Pass(self._kept_for(settings, offer.declared), listed)
        made, closed_losses = one_pass.render()
        kept = one_pass.found.body
        if not (kept or made.closed or made.open):
            self._refuse_nothing(one_pass, made)
        system = [listed[position] for position in made.system]
        head = self._heads.make(offer, settings, system, made.tail, lambda: one_pass.hoist(made.system))
        body, closed, unmarked = _joined(head, kept, made)
        one_pass.keep(closed, closed_losses)
        return head.around(body, (*head.system_losses, *made.losses, *head.losses, *unmarked))

    def _refuse_nothing(self, one_pass: _Pass, made: _Messages) -> None:
        """Raise RenderingRefused where no instructions are left either."""
        turns, lost = one_pass.hoist(made.system)
        if not turns:
            given = len(one_pass.messages)
            reason = f"nothing is left to send to {self.scope.target}: {given} messages given, none rendered"
            raise RenderingRefused(f"{reason}; give at least one user message", [*lost, *made.losses])

    def _kept_for(self, settings: Settings, declared: tuple[str, ...]) -> _Kept:
        labels, media = bool(settings.media_labels), settings.unsupported_media or "placeholder"
        key = labels, media, declared
        with self._lock:
            kept = self._kept.pop(key, None)
            if kept is None:
                scope = replace(self.scope, media_labels=labels, unsupported_media=media, declared_names=declared)
                kept = _Kept(self.dialect, scope)
            self._kept[key] = kept
            if len(self._kept) > MOST_SCOPES:
                del self._kept[next(iter(self._kept))]
        return kept


def _joined(head: Head, kept: memoryview, made: _Messages) -> tuple[bytes, memoryview, list[Loss]]:
    """The body; the bytes of all that is closed, without markers; the losses of markers that found no place."""
    log = LossLog()
    closed: list[bytes | memoryview] = [kept, b"," if kept and made.closed else b"", made.closed]
    length = sum(map(len, closed))
    regions: dict[Place, list[bytes | memoryview]] = {"closed": closed, "end": [made.open]}
    if head.splices:
        regions["closed"] = [b"".join(closed)]
    for splice in head.splices:
        at: Place = splice.at if made.open else "closed"
        regions[at] = _spliced(regions[at], splice, log)
    messages = [*regions["closed"], b"," if length and made.open else b"", *regions["end"]]
    for item in head.closing:
        messages += [b"," if any(messages) else b"", item]
    body = b"".join((head.opening, *messages, b"]}"))
    start = len(head.opening)
    unmarked = b"".join(closed) if head.splices else memoryview(body)[start : start + length]
    return body, memoryview(unmarked), log.losses


def _spliced(region: list[bytes | memoryview], splice: Splice, losses: LossLog) -> list[bytes | memoryview]:
    """The messages' bytes with a splice in them; a loss where they do not end as it wants, or hold one already."""
    ends, length = region[-1], len(splice.before)
    if splice.at == "closed" and not ends:
        return region  # a conversation's first request: nothing is closed yet
    if len(region) > 1 or ends[-length:] != splice.before:
        losses.add("dropped", f"nothing at the {splice.at} can be marked", path=splice.path)
        return region
    return [ends[:-length], splice.text, ends[-length:]]
