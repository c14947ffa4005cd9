"""Rendering: messages + options + settings → request bytes and losses, before any network call.

    messages ─▶ pairing ─▶ turns ─▶ dialect.encode_turn ─▶ items ┐
    options, settings ─▶ dialect.encode_request ─▶ head          ┴▶ {head…, "messages": [kept prefix, tail]}

Law 6, pure: a function of its arguments alone. Laws 4 and 5: what a closed prefix rendered to is kept and never
changes, and a kept prefix gives the bytes that rendering from nothing gives.
"""

from collections.abc import Sequence
from threading import Lock
from typing import NamedTuple

from pydantic_core import to_json

from sabir.constructors import check_messages
from sabir.contracts import Dialect
from sabir.errors import RenderingRefused
from sabir.heads import Head, HeadMaker, Tail
from sabir.identifiers import Identifiers
from sabir.losses import Loss
from sabir.messages import Message
from sabir.options import Option
from sabir.pairing import Block, Closed, Pairing
from sabir.parts import OpaquePart
from sabir.pieces import goes_back, home_of
from sabir.plain import MOST_MESSAGES, PlainTurns
from sabir.prefixes import Boundary, Prefix, PrefixIndex
from sabir.rendered import Rendering
from sabir.scope import LossLog, ModelInfo, Place, Side, Splice, Tables, Target, Turn, TurnScope
from sabir.settings import Settings, UnsupportedMedia
from sabir.turns import TurnMaker

__all__ = ["Renderer", "Rendering"]

MOST_COURSES = 16
"""How many scopes keep what was rendered: combinations of settings and names that turns depend on."""
_NO_SETTINGS = Settings()


class _Made(NamedTuple):
    """What some blocks rendered to: their bytes, with a leading comma where they continue others, and what is known."""

    body: bytes
    system: tuple[int, ...]
    tail: Tail


class _Course:
    """What all renderings of equal scope share: who is at home, what was kept, and what plain turns render to."""

    def __init__(self, dialect: Dialect, scope: TurnScope) -> None:
        self.dialect = dialect
        self.scope = scope
        self.index = PrefixIndex()
        self.is_home = home_of(scope, dialect.family)
        fills_in = scope.tables.plain_turns == "filled_in"
        self.plain = PlainTurns(dialect, scope, self.is_home) if fills_in else None

    def new_names(self) -> Identifiers:
        """Names of options, those that are offered under another name given first."""
        names = Identifiers(self.scope.tables.option_names)
        for name in self.scope.declared_names:
            names.name(name)
        return names

    def prefix_of(self, messages: list[Message]) -> Prefix:
        """The longest kept prefix of a history; an empty one where there is none."""
        return self.index.find(messages) or Prefix(Identifiers(self.scope.tables.call_ids), self.new_names())


class _Pass:
    """One rendering of one history: extends the kept prefix by what closed, and makes the open tail beside it."""

    def __init__(self, course: _Course, messages: list[Message]) -> None:
        self.course = course
        self.dialect = course.dialect
        self.scope = course.scope
        self.messages = messages
        self.prefix = course.prefix_of(messages)
        check_messages(messages, self.prefix.last.position)

    def scratch_maker(self, media_count: int) -> TurnMaker:
        """A maker of turns that leaves the prefix as it is."""
        prefix = self.prefix
        return self._maker(prefix.call_ids.fork(), prefix.names.fork(), media_count)

    def _maker(self, call_ids: Identifiers, names: Identifiers, media_count: int) -> TurnMaker:
        return TurnMaker(self.messages, self.scope, self.course.is_home, call_ids, names, media_count)

    def finish(self) -> tuple[_Made, list[Loss]]:
        """What follows the prefix, when all is closed that can be; the losses of all messages that are not hoisted."""
        tail, prefix = self.extend(), self.prefix
        maker = self.scratch_maker(prefix.last.media_count)
        made = self.encode(maker, tail.blocks, prefix.last)
        return made, [*prefix.losses[: prefix.last.losses], *tail.losses, *maker.log.losses]

    def hoist(self, system: tuple[int, ...]) -> tuple[list[Turn], list[Loss]]:
        """The turns of the hoisted messages, and what they lose."""
        maker = self.scratch_maker(0)
        turns = maker.make(Block("system", list(system)), None) if system else []
        return turns, maker.log.losses

    def extend(self) -> Closed:
        """Close what can be closed; returns what is still open."""
        tables, speaks_as = self.scope.tables, self.scope.speaks_as
        while True:
            self._fill()
            start = self.prefix.last
            pairing = Pairing(self.messages, tables, speaks_as, start.waiting, self._goes_back)
            for position in range(start.position, len(self.messages)):
                closed = pairing.take(position)
                if closed is not None:
                    self._keep(self._commit(closed, position))
                    if self.course.plain is not None:
                        break
            else:
                return pairing.finish()

    def _fill(self) -> None:
        """Close the plain turns that come next."""
        plain, prefix = self.course.plain, self.prefix
        is_more = plain is not None and not prefix.last.waiting.is_leading
        while plain is not None and is_more:
            last = prefix.last
            filled = plain.fill(self.messages, last.position, last.last_side, prefix.call_ids, prefix.names)
            if filled.end == last.position:
                return
            prefix.body += b",".join([b""] * bool(last.offset) + filled.items)
            self._keep(
                last._replace(
                    position=filled.end,
                    offset=len(prefix.body),
                    call_ids=len(prefix.call_ids),
                    names=len(prefix.names),
                    last_side=filled.last_side,
                )
            )
            is_more = filled.end - last.position >= MOST_MESSAGES

    def _keep(self, boundary: Boundary) -> None:
        self.course.index.enter(self.prefix, self.messages, boundary)

    def _goes_back(self, part: OpaquePart, message: Message, side: Side) -> bool:
        return goes_back(part, message, side, self.scope, is_home=self.course.is_home(message.origin))

    def _commit(self, closed: Closed, position: int) -> Boundary:
        prefix, last = self.prefix, self.prefix.last
        maker = self._maker(prefix.call_ids, prefix.names, last.media_count)
        made = self.encode(maker, closed.blocks, last)
        prefix.body += made.body
        prefix.losses += [*closed.losses, *maker.log.losses]
        return Boundary(
            position=position,
            offset=len(prefix.body),
            losses=len(prefix.losses),
            call_ids=len(prefix.call_ids),
            names=len(prefix.names),
            media_count=maker.media_count,
            waiting=closed.waiting,
            system=made.system,
            last_side=made.tail.last_side,
        )

    def encode(self, maker: TurnMaker, blocks: list[Block], last: Boundary) -> _Made:
        """What blocks after a boundary render to; a leading system block is set apart where the dialect hoists it."""
        items: list[bytes] = []
        system, side, last_turn = last.system, last.last_side, None
        for block in blocks:
            if last.position == 0 and block is blocks[0] and self._is_hoisted(block):
                system = tuple(block.positions)
                continue
            for turn in maker.make(block, side):
                following = turn._replace(follows=side)
                found = self.dialect.encode_turn(following, self.scope, maker.log)
                if found:
                    items += map(to_json, found)
                    side, last_turn = turn.side, following
        return _Made(b",".join([b""] * bool(last.offset) + items), system, Tail(side, last_turn))

    def _is_hoisted(self, block: Block) -> bool:
        return block.side == "system" and self.scope.tables.leading_system == "hoisted"


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
        tables: Tables | None = None,
    ) -> None:
        """`tables` replace those that hold for the model and the endpoint."""
        self._dialect = dialect
        self._model_info = model_info or ModelInfo(prefix="")
        self._tables = tables or dialect.tables.at(quirks, self._model_info)
        self._target = target
        self._speaks_as = speaks_as
        self._quirks = quirks
        self._heads = HeadMaker(dialect, target, self._model_info, quirks, self._tables)
        self._courses: dict[tuple[bool, UnsupportedMedia, tuple[str, ...]], _Course] = {}
        self._lock = Lock()

    def new(self, tables: Tables | None = None) -> "Renderer":
        """Another renderer for the same target, with nothing kept; with these tables, where given."""
        return Renderer(
            self._dialect,
            self._target,
            speaks_as=self._speaks_as,
            model_info=self._model_info,
            quirks=self._quirks,
            tables=tables or self._tables,
        )

    @property
    def dialect(self) -> Dialect:
        """What encodes its turns."""
        return self._dialect

    @property
    def tables(self) -> Tables:
        """What this target takes: the dialect's tables, as they hold for the model and the endpoint."""
        return self._tables

    def render(
        self, messages: Sequence[Message], options: Sequence[Option] = (), settings: Settings | None = None
    ) -> Rendering:
        """The request for a history; RenderingRefused where nothing of it is left to send."""
        settings, listed = settings or _NO_SETTINGS, messages if type(messages) is list else list(messages)
        with self._lock:
            offer = self._heads.offer(options)
            one_pass = _Pass(self._course(settings, offer.declared), listed)
            made, losses = one_pass.finish()
            kept = memoryview(one_pass.prefix.body)[: one_pass.prefix.last.offset]
            if not (kept or made.body):
                self._refuse_nothing(one_pass, made, losses)
            system = [listed[position] for position in made.system]
            head = self._heads.make(offer, settings, system, made.tail, lambda: one_pass.hoist(made.system))
            body, unmarked = _joined(head, kept, made.body)
        losses = [*head.system_losses, *losses, *head.losses, *unmarked]
        return head.around(body, tuple(losses))

    def _refuse_nothing(self, one_pass: _Pass, made: _Made, losses: list[Loss]) -> None:
        """Raise RenderingRefused where no instructions are left either."""
        turns, lost = one_pass.hoist(made.system)
        if not turns:
            given = len(one_pass.messages)
            reason = f"nothing is left to send to {self._target}: {given} messages given, none rendered"
            raise RenderingRefused(f"{reason}; give at least one user message", [*lost, *losses])

    def _course(self, settings: Settings, declared: tuple[str, ...]) -> _Course:
        key = (bool(settings.media_labels), settings.unsupported_media or "placeholder", declared)
        course = self._courses.pop(key, None) or _Course(self._dialect, self._turn_scope(*key))
        self._courses[key] = course
        while len(self._courses) > MOST_COURSES:
            del self._courses[next(iter(self._courses))]
        return course

    def _turn_scope(self, media_labels: bool, media: UnsupportedMedia, declared: tuple[str, ...]) -> TurnScope:
        return TurnScope(
            target=self._target,
            tables=self._tables,
            speaks_as=self._speaks_as,
            family=self._dialect.family(self._target.model),
            model_info=self._model_info,
            media_labels=media_labels,
            unsupported_media=media,
            quirks=self._quirks,
            declared_names=declared,
        )


def _joined(head: Head, prefix: memoryview, ending: bytes) -> tuple[bytes, list[Loss]]:
    """The body, and the losses of markers that found no place."""
    log = LossLog()
    regions: dict[Place, list[bytes | memoryview]] = {"closed": [prefix], "end": [memoryview(ending)]}
    for splice in head.splices:
        at: Place = splice.at if ending else "closed"
        regions[at] = _spliced(regions[at], splice, log)
    messages = [*regions["closed"], *regions["end"]]
    for item in head.closing:
        messages += [b"," if any(messages) else b"", item]
    return b"".join((head.opening, *messages, b"]}")), log.losses


def _spliced(region: list[bytes | memoryview], splice: Splice, losses: LossLog) -> list[bytes | memoryview]:
    """The messages' bytes with a splice in them; a loss where they do not end as it wants, or hold one already."""
    ends, length = region[-1], len(splice.before)
    if splice.at == "closed" and not ends:
        return region  # a conversation's first request: nothing is closed yet
    if len(region) > 1 or ends[-length:] != splice.before:
        losses.add("dropped", f"nothing at the {splice.at} can be marked", path=splice.path)
        return region
    return [ends[:-length], splice.text, ends[-length:]]
