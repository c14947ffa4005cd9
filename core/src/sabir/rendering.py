"""Rendering: messages + options + settings → request bytes and losses, before any network call.

    messages ─▶ pairing ─▶ turns ─▶ dialect.encode_turn ─▶ items ┐
    options, settings ─▶ dialect.encode_request ─▶ head          ┴▶ {head…, "messages": [kept prefix, tail]}

Law 6, pure: a function of its arguments alone. Laws 4 and 5: what a closed prefix rendered to is kept and never
changes, and a kept prefix gives the bytes that rendering from nothing gives.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache
from threading import Lock
from typing import Annotated, Any, NamedTuple

from pydantic import AfterValidator, Field
from pydantic_core import to_json

from sabir.contracts import Dialect
from sabir.errors import RenderingRefused, SettingsInvalid
from sabir.identifiers import Identifiers
from sabir.losses import Loss
from sabir.messages import Message
from sabir.models import Frozen
from sabir.options import Option
from sabir.pairing import Block, Closed, Pairing
from sabir.parts import OpaquePart
from sabir.pieces import goes_back, keeps_state
from sabir.prefixes import Boundary, Prefix, PrefixIndex
from sabir.scope import LossLog, ModelInfo, Place, RequestScope, Side, Splice, Tables, Target, Turn, TurnScope
from sabir.settings import NEVER_READ, RetryPolicy, Settings, SettingsReader
from sabir.turns import TurnMaker
from sabir.values import FrozenDict, JSONValue, decode_json, freeze

NameMap = Annotated[Mapping[str, str], AfterValidator(FrozenDict)]
"""An immutable mapping of strings."""


class Rendering(Frozen):
    """A request as it will be sent, and everything that it could not carry.

    `body_bytes` are the very bytes; `body` shows them as JSON. `unchecked` says that `extra_body` or
    `extra_headers` put something in that no dialect looked at. `option_names` maps names on the wire to option
    names where the wire could not take those.
    """

    target: Target
    path: str
    body_bytes: bytes = Field(repr=False)
    losses: tuple[Loss, ...] = ()
    headers: NameMap = Field(default=FrozenDict(), repr=False)
    timeout: float | None = None
    retries: RetryPolicy = RetryPolicy()
    option_names: NameMap = FrozenDict()
    unchecked: bool = False
    streaming: bool = False
    stream_path: str = ""
    stream_fields: str = "{}"

    @cached_property
    def body(self) -> JSONValue:
        """The body as an immutable JSON view."""
        return freeze(decode_json(self.body_bytes))

    def for_stream(self) -> "Rendering":
        """The same request asking for a stream of events."""
        if self.streaming:
            return self
        fields = self.stream_fields[1:-1].encode()
        body = self.body_bytes[:-1] + (b"," if fields and len(self.body_bytes) > 2 else b"") + fields + b"}"
        return self.model_copy(update={"path": self.stream_path, "body_bytes": body, "streaming": True})


class _Made(NamedTuple):
    """What some blocks rendered to: their bytes, with a leading comma where they continue others, and what is known."""

    body: bytes
    system: tuple[int, ...]
    last_side: Side | None
    last_turn: Turn | None


class _Pass:
    """One rendering of one history: extends the kept prefix by what closed, and makes the open tail beside it."""

    def __init__(self, dialect: Dialect, scope: TurnScope, messages: Sequence[Message], prefix: Prefix) -> None:
        self.dialect = dialect
        self.scope = scope
        self.messages = messages
        self.prefix = prefix
        self.family_of = lru_cache(maxsize=256)(dialect.family)

    def maker(self, call_ids: Identifiers, names: Identifiers, media_count: int) -> TurnMaker:
        return TurnMaker(self.messages, self.scope, self.family_of, call_ids, names, media_count)

    def extend(self, index: PrefixIndex) -> Closed:
        """Close what can be closed; returns what is still open."""
        tables, speaks_as = self.scope.tables, self.scope.speaks_as
        start = self.prefix.last
        pairing = Pairing(self.messages, tables, speaks_as, start.waiting, self._goes_back)
        for position in range(start.position, len(self.messages)):
            closed = pairing.take(position)
            if closed is not None:
                index.enter(self.prefix, self.messages, self._commit(closed, position))
        return pairing.finish()

    def _goes_back(self, part: OpaquePart, message: Message, side: Side) -> bool:
        origin = message.origin
        is_home = origin is not None and keeps_state(origin, self.scope, self.family_of(origin.model))
        return goes_back(part, message, side, self.scope, is_home=is_home)

    def _commit(self, closed: Closed, position: int) -> Boundary:
        prefix, last = self.prefix, self.prefix.last
        maker = self.maker(prefix.call_ids, prefix.names, last.media_count)
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
            last_side=made.last_side,
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
        return _Made(b",".join([b""] * bool(last.offset) + items), system, side, last_turn)

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
    ) -> None:
        self._dialect = dialect
        self._tables = dialect.tables.at(quirks, model_info or ModelInfo(prefix=""))
        self._target = target
        self._speaks_as = speaks_as
        self._model_info = model_info or ModelInfo(prefix="")
        self._quirks = quirks
        self._indexes: dict[tuple[object, ...], PrefixIndex] = {}
        self._lock = Lock()

    def new(self) -> "Renderer":
        """Another renderer for the same target, with nothing kept."""
        return Renderer(
            self._dialect,
            self._target,
            speaks_as=self._speaks_as,
            model_info=self._model_info,
            quirks=self._quirks,
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
        settings = settings or Settings()
        messages = tuple(messages)
        names = self._option_names(options)
        scope = self._turn_scope(settings, names)
        with self._lock:
            index = self._index(scope)
            prefix = index.find(messages) or self._new_prefix(scope)
            one_pass = _Pass(self._dialect, scope, messages, prefix)
            tail = one_pass.extend(index)
            last = prefix.last
            maker = one_pass.maker(prefix.call_ids.fork(), prefix.names.fork(), last.media_count)
            ending, system, last_side, last_turn = one_pass.encode(maker, tail.blocks, last)
            prefix_losses = prefix.losses[: last.losses]
            log = LossLog()
            system_maker = one_pass.maker(prefix.call_ids.fork(), prefix.names.fork(), 0)
            hoisted = system_maker.make(Block("system", list(system)), None) if system else []
            log.losses = [*system_maker.log.losses, *prefix_losses, *tail.losses, *maker.log.losses]
            if not (last.offset or ending or hoisted):
                reason = f"nothing is left to send to {self._target}: {len(messages)} messages given, none rendered"
                raise RenderingRefused(f"{reason}; give at least one user message", log.losses)
            request = self._request_scope(options, names, settings, tuple(hoisted), log)
            request.last_side, request.last_turn = last_side, last_turn
            head = self._head(request, settings)
            body = self._join(head, memoryview(prefix.body)[: last.offset], ending, request)
        return self._rendering(body, request, settings)

    def _turn_scope(self, settings: Settings, names: Mapping[str, str]) -> TurnScope:
        needs_mapping = any(name != wire for name, wire in names.items())
        return TurnScope(
            target=self._target,
            tables=self._tables,
            speaks_as=self._speaks_as,
            family=self._dialect.family(self._target.model),
            model_info=self._model_info,
            media_labels=bool(settings.media_labels),
            unsupported_media=settings.unsupported_media or "placeholder",
            quirks=self._quirks,
            declared_names=tuple(names) if needs_mapping else (),
        )

    def _index(self, scope: TurnScope) -> PrefixIndex:
        key = (scope.media_labels, scope.unsupported_media, scope.declared_names)
        index = self._indexes.pop(key, None) or PrefixIndex()
        self._indexes[key] = index
        while len(self._indexes) > 16:
            del self._indexes[next(iter(self._indexes))]
        return index

    def _new_prefix(self, scope: TurnScope) -> Prefix:
        return Prefix(Identifiers(scope.tables.call_ids), self._names(scope.declared_names))

    def _names(self, declared: Sequence[str]) -> Identifiers:
        names = Identifiers(self._tables.option_names)
        for name in declared:
            names.name(name)
        return names

    def _option_names(self, options: Sequence[Option]) -> dict[str, str]:
        names = Identifiers(self._tables.option_names)
        return {option.name: names.name(option.name) for option in options}

    def _request_scope(
        self,
        options: Sequence[Option],
        names: Mapping[str, str],
        settings: Settings,
        system: tuple[Turn, ...],
        log: LossLog,
    ) -> RequestScope:
        for index, (name, wire) in enumerate(names.items()):
            if name != wire:
                log.add(
                    "rewritten",
                    f"{self._target.dialect} takes {wire!r} for {name!r}",
                    path=f"options[{index}]",
                )
        return RequestScope(
            target=self._target,
            settings=SettingsReader(settings),
            options=tuple(options),
            option_names=names,
            system=system,
            vendor=settings.vendor.get(self._target.provider, FrozenDict()),
            losses=log,
            model_info=self._model_info,
            quirks=self._quirks,
        )

    def _head(self, request: RequestScope, settings: Settings) -> dict[str, Any]:
        head = dict(self._dialect.encode_request(request))
        for name in request.settings.untouched():
            reason = f"{self._target.dialect} {NEVER_READ}"
            request.losses.add("dropped", reason, path=f"settings.{name}")
        field = self._dialect.messages_field
        if field in settings.extra_body:
            raise SettingsInvalid(f"extra_body replaces {field!r}, the messages themselves; pass messages instead")
        for name, value in settings.extra_body.items():
            if name in head and freeze(head[name]) != value:
                reason = "extra_body replaces what the settings and options said"
                request.losses.add("dropped", reason, path=f"extra_body.{name}")
        return {**head, **settings.extra_body}

    def _join(self, head: Mapping[str, Any], prefix: memoryview, ending: bytes, request: RequestScope) -> bytes:
        opening = to_json(head)[:-1]
        name = to_json(self._dialect.messages_field)
        regions: dict[Place, list[bytes | memoryview]] = {"closed": [prefix], "end": [memoryview(ending)]}
        for splice in request.splices:
            at: Place = splice.at if ending else "closed"
            regions[at] = _spliced(regions[at], splice, request.losses)
        messages = [*regions["closed"], *regions["end"]]
        for item in request.closing:
            messages += [b"," if any(messages) else b"", to_json(item)]
        return b"".join((opening, b"," if head else b"", name, b":[", *messages, b"]}"))

    def _rendering(self, body: bytes, request: RequestScope, settings: Settings) -> Rendering:
        target, dialect = self._target, self._dialect
        fields = {key: value for key, value in dialect.streaming_fields.items() if key not in settings.extra_body}
        return Rendering(
            target=target,
            path=dialect.path(target, streaming=False),
            body_bytes=body,
            losses=tuple(request.losses.losses),
            headers={**request.headers, **settings.extra_headers},
            timeout=settings.timeout,
            retries=settings.retries or RetryPolicy(),
            option_names={wire: name for name, wire in request.option_names.items() if wire != name},
            unchecked=bool(settings.extra_body or settings.extra_headers),
            stream_path=dialect.path(target, streaming=True),
            stream_fields=to_json(fields).decode(),
        )


def _spliced(region: list[bytes | memoryview], splice: Splice, losses: LossLog) -> list[bytes | memoryview]:
    """The messages' bytes with a splice in them; a loss where they do not end as it wants, or hold one already."""
    ends, length = region[-1], len(splice.before)
    if splice.at == "closed" and not ends:
        return region  # a conversation's first request: nothing is closed yet
    if len(region) > 1 or ends[-length:] != splice.before:
        losses.add("dropped", f"nothing at the {splice.at} can be marked", path=splice.path)
        return region
    return [ends[:-length], splice.text, ends[-length:]]
