"""The head of a request: everything but its messages, made once for equal options, settings and instructions.

    options, settings, hoisted turns, last side ─▶ dialect.encode_request ─▶ Head
    Head + the messages' bytes ─▶ body        {model…, tools…, "messages":[ ▯ ]}

A kept head equals a fresh one (law 5), because `encode_request` depends on nothing else. If it read the last turn or
the messages themselves, which differ each time, the head is not kept.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeAlias
from weakref import ref

from pydantic_core import to_json

from sabir.base.errors import SettingsInvalid
from sabir.base.losses import Loss
from sabir.base.values import FrozenDict, freeze
from sabir.contract.dialect import Dialect, Rendering
from sabir.contract.scope import RequestScope, Splice
from sabir.contract.tables import Side
from sabir.contract.turns import LossLog, Turn, TurnScope
from sabir.options.option import Option
from sabir.rendering.pairing import Block
from sabir.rendering.turns import Identifiers, TurnMaker
from sabir.vocabulary.hints import Taker, take_hints, with_hints
from sabir.vocabulary.messages import Message
from sabir.vocabulary.settings import LONGEST_SILENCE, NEVER_READ, Bounds, RetryPolicy, Settings, SettingsReader

MOST_HEADS = 8
"""How many heads are kept: the number of combinations that one program alternates between."""


class Offer(NamedTuple):
    """Options with their names on the wire."""

    options: tuple[Option, ...] = ()
    names: Mapping[str, str] = FrozenDict()
    """Option name ─▶ the name on the wire."""
    declared: tuple[str, ...] = ()
    """All option names, if any of them differs on the wire; else empty."""


class Told(NamedTuple):
    """The facts about the messages that a head may depend on."""

    scope: TurnScope
    messages: Sequence[Message]
    system: tuple[int, ...]
    """Positions of the hoisted messages."""
    last_side: Side | None
    last_turn: Turn | None
    """The last turn that was encoded to an item, if it is not closed."""
    called: frozenset[str]
    """Names of the options whose calls the request holds."""

    def hoisted(self) -> tuple[tuple[Turn, ...], list[Loss]]:
        """The turns of the hoisted messages, and what they lose."""
        log, block = LossLog(), Block("system", [*self.system])
        made = TurnMaker(self.messages, self.scope, log).make(block) if self.system else []
        return tuple(Turn(side, entries) for side, entries in made), log.losses


class Head(NamedTuple):
    """The bytes and losses of a request beside its messages."""

    opening: bytes
    """The body up to the first message."""
    closing: tuple[bytes, ...]
    """Items after the last message, as JSON."""
    splices: tuple[Splice, ...]
    system_losses: tuple[Loss, ...]
    """Losses of the hoisted turns."""
    losses: tuple[Loss, ...]
    """Losses of options and settings."""
    empty: Rendering
    """The rendering without its body and losses."""

    def around(self, body: bytes, losses: tuple[Loss, ...]) -> Rendering:
        """The rendering with that body and those losses."""
        values = {**vars(self.empty), "body_bytes": body, "losses": losses}
        return Rendering.assembled(values, self.empty.__pydantic_fields_set__.copy())


_Key: TypeAlias = "tuple[Settings, tuple[Option, ...], tuple[ref[Message], ...], Side | None]"
"""What a head depends on: settings, options, weak references to the hoisted messages, the last side."""


class HeadMaker:
    """Makes the heads of one target's requests; safe to share between threads (two may make the same head)."""

    def __init__(self, dialect: Dialect, scope: TurnScope) -> None:
        self._dialect = dialect
        self._scope = scope
        self._offer = Offer()
        self._kept: list[tuple[_Key, frozenset[str] | None, Head]] = []
        """Each head with the names of called options; None where the head does not depend on them."""

    def offer(self, options: Sequence[Option]) -> Offer:
        """The options with the names that this wire takes."""
        offer = self._offer
        if offer.options != (listed := tuple(options)):
            given = Identifiers(self._scope.tables.calls.names)
            names = {option.name: given.name(option.name) for option in listed}
            declared = tuple(names) if any(name != wire for name, wire in names.items()) else ()
            self._offer = offer = Offer(listed, names, declared)
        return offer

    def make(self, offer: Offer, settings: Settings, told: Told) -> Head:
        """The head of a request with these options, these settings and those facts about its messages."""
        key = settings, offer.options, tuple(map(ref, map(told.messages.__getitem__, told.system))), told.last_side
        for known, called, head in self._kept:
            if known == key and called in (None, told.called):
                return head
        request, lost = self._request_scope(offer, settings, told)
        head = self._encode(request, settings, tuple(lost))
        if not request.saw_history:
            living = [each for each in self._kept if all(message() is not None for message in each[0][2])]
            made = key, told.called if request.saw_called else None, head
            self._kept = [made, *living[: MOST_HEADS - 1]]
        return head

    def _request_scope(self, offer: Offer, settings: Settings, told: Told) -> tuple[RequestScope, list[Loss]]:
        """The scope from which the head is encoded, and the losses of the hoisted turns."""
        log, target = LossLog(), self._scope.target
        for index, (name, wire) in enumerate(offer.names.items()):
            if name != wire:
                log.add("rewritten", f"{target.dialect} takes {wire!r} for {name!r}", path=f"options[{index}]")
        system, lost = told.hoisted()
        return RequestScope(
            target=target,
            settings=SettingsReader(settings),
            options=tuple(self._hinted(option, index, log) for index, option in enumerate(offer.options)),
            option_names=offer.names,
            system=system,
            vendor=settings.vendor.get(target.provider, FrozenDict()),
            losses=log,
            model_info=self._scope.model_info,
            quirks=self._scope.quirks,
            last_side=told.last_side,
            ending=told.last_turn,
            history=told.messages,
            names=told.called,
        ), lost

    def _hinted(self, option: Option, index: int, log: LossLog) -> Option:
        """The option with the hints that this wire takes with it."""
        if option.vendor_json is None:
            return option
        taker = Taker(
            provider=self._scope.target.provider,
            place=f"options[{index}], {option.name!r},",
            wire=self._scope.target.dialect,
            kind="option",
            lose=lambda path, reason: log.add("dropped", reason, path=f"options[{index}]{path}"),
        )
        return with_hints(option, take_hints(option.vendor_json, self._scope.tables.calls.hints, taker))

    def _encode(self, request: RequestScope, settings: Settings, system_losses: tuple[Loss, ...]) -> Head:
        dialect, field = self._dialect, self._dialect.messages_field
        fields = dict(dialect.encode_request(request))
        for name in request.settings.untouched():
            reason = f"{self._scope.target.dialect} {NEVER_READ}"
            request.losses.add("dropped", reason, path=f"settings.{name}")
        if field in settings.extra_body:
            raise SettingsInvalid(f"extra_body replaces {field!r}, the messages themselves; pass messages instead")
        for name, value in settings.extra_body.items():
            if name in fields and freeze(fields[name]) != value:
                reason = "extra_body replaces what the settings and options said"
                request.losses.add("dropped", reason, path=f"extra_body.{name}")
        streaming = request.only_as_stream and not dialect.streaming_fields.keys() & settings.extra_body.keys()
        fields |= {**(dialect.streaming_fields if streaming else {}), **settings.extra_body}
        return Head(
            opening=to_json(fields)[:-1] + b"," * bool(fields) + to_json(field) + b":[",
            closing=tuple(map(to_json, request.closing)),
            splices=tuple(request.splices),
            system_losses=system_losses,
            losses=tuple(request.losses.losses),
            empty=self._empty(request, settings, streaming=streaming),
        )

    def _empty(self, request: RequestScope, settings: Settings, *, streaming: bool) -> Rendering:
        target, dialect = self._scope.target, self._dialect
        fields = {key: value for key, value in dialect.streaming_fields.items() if key not in settings.extra_body}
        return Rendering(
            target=target,
            path=dialect.path_of(target, streaming=streaming),
            body_bytes=b"",
            losses=(),
            headers={**request.headers, **settings.extra_headers},
            timeout=settings.timeout,
            idle=settings.idle or settings.timeout or LONGEST_SILENCE,
            bounds=settings.bounds or Bounds(),
            retries=settings.retries or RetryPolicy(),
            option_names={wire: name for name, wire in request.option_names.items() if wire != name},
            unchecked=bool(settings.extra_body or settings.extra_headers),
            streaming=streaming,
            stream_path=dialect.path_of(target, streaming=True),
            stream_fields=to_json(fields).decode(),
        )
