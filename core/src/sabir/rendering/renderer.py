"""Rendering: messages + options + settings → request bytes and losses, before any network call.

    messages ─▶ pairing ─▶ turns ─▶ dialect.encode_turn ─▶ items ┐
    options, settings ─▶ dialect.encode_request ─▶ head          ┴▶ {head…, "messages": [cached prefix, new items]}

Law 6: the result depends only on the arguments. Laws 4 and 5: the bytes of closed turns, which later messages cannot
change, are cached, and a cached prefix has the same bytes as a rendering without cache.

The head is the request without its messages. It is cached for equal options, settings and first system messages, and a
cached head equals a new head, because `encode_request` depends on nothing else. If `encode_request` read the last turn
or the messages, which differ each time, the head is not cached.
"""

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from threading import Lock
from typing import NamedTuple, TypeAlias

from pydantic_core import to_json

from sabir.base.errors import SettingsInvalid
from sabir.base.failures import Loss, RenderingRefused
from sabir.base.values import FrozenDict
from sabir.contract.dialect import Dialect, EncodeTurn, Rendering
from sabir.contract.scope import Insertion, Place, RequestScope
from sabir.contract.turns import LossLog, Side, Turn, TurnScope, Unchecked, new_tuple
from sabir.options.option import Option
from sabir.rendering.native import Arranged, encode_natives, take_choice
from sabir.rendering.owners import extras_for, merge, without_foreign_tools
from sabir.rendering.pairing import Block, pair_apart
from sabir.rendering.prefixes import Boundary, CachedStart, PrefixIndex
from sabir.rendering.turns import Identifiers, TurnMaker
from sabir.vocabulary.constructors import check_messages
from sabir.vocabulary.messages import Message, Origin, Payload
from sabir.vocabulary.models import ModelInfo
from sabir.vocabulary.parts import HintTarget, take_hints, with_hints
from sabir.vocabulary.settings import (
    LONGEST_SILENCE,
    NEVER_READ,
    Bounds,
    RetryPolicy,
    Settings,
    SettingsReader,
    Target,
    UnsupportedMedia,
)

MOST_HEADS = 8
"""How many heads are cached: the number of combinations of options and settings that one program alternates between."""


class Offered(NamedTuple):
    """The options of a call, what the target gets of them, and the names of functions in the request."""

    options: tuple[Option, ...] = ()
    arranged: Arranged = Arranged()
    names: Mapping[str, str] = FrozenDict()
    """Option name ─▶ its name in the request."""
    declared: tuple[str, ...] = ()
    """All option names, if at least one has another name in the request. Otherwise empty."""

    @classmethod
    def of(cls, options: tuple[Option, ...], scope: TurnScope) -> "Offered":
        """Return the options with names that the API accepts."""
        identifiers, arranged = Identifiers(scope.tables.calls.names), Arranged.of(options, scope)
        names = {option.name: identifiers.name(option.name) for option in arranged.functions}
        declared = tuple(names) if any(name != wire for name, wire in names.items()) else ()
        return cls(options, arranged, names, declared)


class RequestHead(NamedTuple):
    """The bytes and losses of a request without its messages."""

    opening: bytes
    """The body up to the first message."""
    closing: tuple[bytes, ...]
    """Items after the last message, as JSON."""
    insertions: tuple[Insertion, ...]
    """The dialect's insertions into the messages."""
    stored_start: tuple[int, bytes]
    """How many bytes of the messages are left out, because the vendor stores them, and what is sent instead."""
    system_losses: tuple[Loss, ...]
    """Losses of the first system messages, if the dialect sends them outside of the turns (hoisted)."""
    losses: tuple[Loss, ...]
    """Losses of options and settings."""
    empty: Rendering
    """The Rendering without body and losses."""


_Key: TypeAlias = tuple[Settings, tuple[Option, ...], tuple[tuple[Payload, Origin | None], ...], Side | None]
"""What a head depends on: settings, options, the contents of the hoisted system messages, and the last side."""


Region: TypeAlias = list[bytes | memoryview]
"""Neighbouring pieces of the encoded messages."""

__all__ = ["Renderer", "Rendering"]

MOST_SCOPES = 16
"""For how many scopes (combinations of settings and names on which turns depend) prefixes are cached."""
MOST_APART = 64
"""The number of messages after which a boundary is set, if a turn closes. A boundary is a place in a cached prefix from
which a later rendering can resume.
"""
LATEST = 8
"""A boundary (see MOST_APART) follows each turn that closes in this many last messages: conversations fork there."""
_NO_SETTINGS = Settings()
logger = logging.getLogger("sabir")
_logged: set[str] = set()
"""The assumptions about unknown models that were logged already."""


class _Encoded(NamedTuple):
    """The messages after a cached prefix, encoded as JSON items without brackets."""

    closed: bytes
    """The turns after the prefix that later messages cannot change."""
    open: bytes
    """The turns that later messages may change."""
    boundaries: list[Boundary]
    """The boundaries after the prefix."""
    maker: TurnMaker
    """The TurnMaker of all turns after the prefix. Its log contains all losses after the prefix."""
    system: tuple[int, ...]
    """The positions of the hoisted system messages."""
    last_side: Side | None
    """The side of the last turn that produced an item."""
    last_turn: Turn | None
    """The last turn that produced an item, if it is not closed."""


def _encode_tail(encode_turn: EncodeTurn, scope: TurnScope, cached: CachedStart, messages: list[Message]) -> _Encoded:
    """Encode the messages after the cached prefix. System messages at the start are left out if the dialect hoists
    them.
    """
    prefix, start = cached.prefix, cached.boundary
    check_messages(messages, start.position)
    log, calls = LossLog(), scope.tables.calls
    may_hoist = scope.tables.roles.leading_system == "hoisted" and not start.position
    call_ids = Identifiers(calls.ids, prefix.call_ids if prefix else None, start.call_ids)
    names = Identifiers(calls.names, prefix.names if prefix else None, start.names)
    for declared in () if prefix else scope.declared_names:
        names.name(declared)
    maker = TurnMaker(messages, scope, log, call_ids, names, start.called, start.media_count)
    side, system, turn = start.last_side, start.system, None
    items: list[bytes] = []
    boundaries: list[Boundary] = []
    closed, offset, latest = 0, start.offset, len(messages) - LATEST
    for paired in pair_apart(messages, scope, start.position, start.waiting, MOST_APART):
        for index, block in enumerate(paired.blocks):
            if block.closer and (block.closer >= latest or index in (0, paired.final)):
                offset += sum(map(len, items[closed:])) + len(items) - closed - bool(items and not offset)
                closed, turn = len(items), None
                counts = len(log.losses) + start.losses, call_ids.count, names.count, frozenset(maker.called)
                here = block.closer, offset, *counts, maker.media_count, block.waiting, system, side
                boundaries.append(new_tuple(Boundary, here))
            if block.losses:
                log.losses += block.losses
            if may_hoist:
                may_hoist = False
                if block.side == "system":
                    system = tuple(block.positions)
                    continue
            for turn_side, entries in maker.make(block, side):
                new_turn = new_tuple(Turn, (turn_side, entries, side))
                if encoded := encode_turn(new_turn, scope, log):
                    items += map(to_json, encoded)
                    side, turn = turn_side, new_turn
        log.losses += paired.losses
    parts = b",".join(items[:closed]), b",".join(items[closed:])
    return new_tuple(_Encoded, (*parts, boundaries, maker, system, side, turn))


def _without_marks(log: Iterable[Loss]) -> list[Loss]:
    """Return the losses of a log without the entries of the class Unchecked, which are not losses."""
    return [loss for loss in log if not isinstance(loss, Unchecked)]


def _hoist_system(encoded: _Encoded, messages: list[Message]) -> tuple[tuple[Turn, ...], list[Loss]]:
    """Return the turns of the hoisted system messages, and their losses."""
    log, block = LossLog(), Block("system", [*encoded.system])
    gathered = TurnMaker(messages, encoded.maker.scope, log).make(block) if encoded.system else []
    return tuple(Turn(side, entries) for side, entries in gathered), log.losses


class Renderer:
    """Renders conversations for one target, and caches the encoded closed turns. Safe to share between threads."""

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
        quirks = quirks.union(info.quirks)
        self.dialect = dialect
        """The dialect that encodes the turns."""
        tables = dialect.tables.at(quirks, info)
        self.scope = TurnScope(target, tables, speaks_as, dialect.family, dialect.place, info, quirks=quirks)
        """The target, the tables for it, and the other arguments of `encode_turn`, without those from call settings."""
        self._assumptions = _assumptions_of(target, info)
        self._offer = Offered()
        self._heads: list[tuple[_Key, frozenset[str] | None, tuple[str, ...] | None, RequestHead]] = []
        """The cached heads: key, names of the called options, ids of the hoisted messages, head. None in place of names
        if the head does not depend on them, and in place of ids if no loss of the head names a message.
        """
        self._indexes: dict[tuple[bool, UnsupportedMedia, bool, tuple[str, ...]], PrefixIndex] = {}
        self._lock = Lock()

    def new(self) -> "Renderer":
        """Return another renderer for the same target, with empty caches."""
        of = self.scope
        return Renderer(self.dialect, of.target, speaks_as=of.speaks_as, model_info=of.model_info, quirks=of.quirks)

    def render(
        self, messages: Sequence[Message], options: Sequence[Option] = (), settings: Settings | None = None
    ) -> Rendering:
        """Return the request for a conversation, whatever losses it has. Raises RenderingRefused if none of the
        messages can be sent.

        Raises WrongWord for an item that is not a message, and SettingsInvalid for invalid vendor settings or hints and
        for an `extra_body` that replaces the messages.
        """
        settings, listed = settings or _NO_SETTINGS, messages if type(messages) is list else list(messages)
        offer, offered = self._offer, tuple(options)
        if offer.options != offered:
            self._offer = offer = Offered.of(offered, self.scope)
        index = self._index_for(settings, offer.declared)
        cached = index.find(listed)
        encoded = _encode_tail(self.dialect.encode_turn, index.scope, cached, listed)
        after = encoded.maker.losses.losses
        prefix = cached.prefix.losses[: cached.boundary.losses] if cached.prefix else []
        if not (cached.body or encoded.closed or encoded.open):
            turns, lost = _hoist_system(encoded, listed)
            if not turns:
                what = (
                    f"there is nothing to send to {self.scope.target}: none of the {len(listed)} messages can be sent"
                )
                losses = _without_marks([*lost, *prefix, *after])
                raise RenderingRefused(f"{what}; add at least one user message", losses)
        head = self._find_head(offer, settings, encoded, listed, cached.body)
        body, closed, unmarked = _join_body(head, cached.body, encoded)
        if encoded.boundaries:
            index.enter(cached, listed, closed, encoded.boundaries, after, encoded.maker)
        log: tuple[Loss, ...] = (*head.system_losses, *prefix, *after, *head.losses, *unmarked)
        values = {**vars(head.empty), "body_bytes": body, "losses": log}
        if self.scope.model_info.accepts is not None:
            marks = [f"{mark.message_id[:8]} {mark.path}" for mark in log if isinstance(mark, Unchecked)]
            values["losses"] = tuple(_without_marks(log))
            values["unchecked"] = (*head.empty.unchecked, *dict.fromkeys(marks))
        return Rendering.construct_unchecked(values, head.empty.__pydantic_fields_set__.copy())

    def _index_for(self, settings: Settings, declared: tuple[str, ...]) -> PrefixIndex:
        labels, media = bool(settings.media_labels), settings.unsupported_media or "placeholder"
        vendor, stored_by = settings.vendor.get(self.scope.target.provider, {}), self.scope.tables.calls.stored_by
        stored = any(vendor.get(name) or settings.extra_body.get(name) for name in stored_by)
        key = labels, media, stored, declared
        with self._lock:
            index = self._indexes.pop(key, None)
            if index is None:
                scope = replace(self.scope, media_labels=labels, unsupported_media=media, has_stored_calls=stored)
                index = PrefixIndex(replace(scope, declared_names=declared))
            self._indexes[key] = index
            if len(self._indexes) > MOST_SCOPES:
                del self._indexes[next(iter(self._indexes))]
        return index

    def _find_head(
        self, offer: Offered, settings: Settings, encoded: _Encoded, messages: list[Message], prefix: memoryview
    ) -> RequestHead:
        """Return the head of a request with these options and settings, from the cache if possible."""
        called, hoisted = frozenset(encoded.maker.called), [messages[position] for position in encoded.system]
        ids = tuple(message.id for message in hoisted)
        contents = tuple((message.payload, message.origin) for message in hoisted)
        key = settings, offer.options, contents, encoded.last_side
        for known, names, named, head in self._heads:
            if known == key and names in (None, called) and named in (None, ids):
                return head
        log, scope, arranged = LossLog(), self.scope, offer.arranged
        for index, (name, wire) in zip(arranged.positions, offer.names.items(), strict=True):
            if name != wire:
                reason = f"{scope.target.dialect} accepts {wire!r}, which was sent for {name!r}"
                log.add("rewritten", reason, path=f"options[{index}]")
        system, lost = _hoist_system(encoded, messages)
        chosen, native_choice = take_choice(settings, arranged, log)
        functions = zip(arranged.positions, arranged.functions, strict=True)
        request = RequestScope(
            target=scope.target,
            settings=SettingsReader(without_foreign_tools(chosen, scope.target, offer.names, log)),
            options=tuple(self._filter_hints(option, index, log) for index, option in functions),
            option_names=offer.names,
            system=system,
            vendor=settings.vendor.get(scope.target.provider, FrozenDict()),
            losses=log,
            model_info=scope.model_info,
            quirks=scope.quirks,
            last_side=encoded.last_side,
            ending=encoded.last_turn,
            history=messages,
            join_turns=lambda: b",".join(filter(None, (prefix, encoded.closed, encoded.open))),
            names=called,
            native_choice=native_choice,
        )
        request.native = encode_natives(arranged.natives, request)
        head = self._encode_head(request, settings, arranged, tuple(lost))
        if not request.saw_history:
            names_message = any(loss.message_id for loss in (*head.system_losses, *head.losses))
            entry = key, called if request.saw_called else None, ids if names_message else None, head
            self._heads = [entry, *self._heads[: MOST_HEADS - 1]]
        return head

    def _filter_hints(self, option: Option, index: int, log: LossLog) -> Option:
        """Return the option with only the vendor hints that this API accepts. Adds losses for the others."""
        if option.vendor_json is None:
            return option
        taker = HintTarget(
            provider=self.scope.target.provider,
            place=f"options[{index}], {option.name!r},",
            wire=self.scope.target.dialect,
            kind="option",
            lose=lambda path, reason: log.add("dropped", reason, path=f"options[{index}]{path}"),
        )
        return with_hints(option, take_hints(option.vendor_json, self.scope.tables.calls.hints, taker))

    def _encode_head(
        self, request: RequestScope, settings: Settings, arranged: Arranged, system_losses: tuple[Loss, ...]
    ) -> RequestHead:
        decided = len(request.losses.losses), len(request.unchecked)
        dialect, target, field = self.dialect, self.scope.target, self.dialect.messages_field
        fields = dict(dialect.encode_request(request))
        arranged.restore_paths(request, *decided)
        for name in request.settings.untouched():
            request.losses.add("dropped", f"{target.dialect} {NEVER_READ}", path=f"settings.{name}")
        extra_body, extra_headers = extras_for(target, settings, request.losses)
        if field in extra_body:
            raise SettingsInvalid(f"extra_body replaces {field!r}, which contains the messages; pass the messages")
        for name in extra_body.keys() & fields.keys():
            extra_body[name] = merge(fields[name], extra_body[name], f"extra_body.{name}", request.losses)
        status_of, asking = self.scope.model_info.status_of, dialect.streaming_fields.items()
        accepted = {key: value for key, value in asking if status_of(key) in ("accepted", "unknown")}
        as_stream = {key: value for key, value in accepted.items() if key not in extra_body}
        streaming = request.only_as_stream and len(as_stream) == len(accepted)
        fields |= {**(accepted if streaming else {}), **extra_body}
        return RequestHead(
            opening=to_json(fields)[:-1] + b"," * bool(fields) + to_json(field) + b":[",
            closing=tuple(map(to_json, request.closing)),
            insertions=tuple(request.insertions),
            stored_start=request.stored_start,
            system_losses=system_losses,
            losses=tuple(request.losses.losses),
            empty=Rendering(
                target=target,
                path=dialect.path_of(target, streaming=streaming),
                body_bytes=b"",
                losses=(),
                assumptions=self._assumptions,
                headers={**request.headers, **extra_headers},
                timeout=settings.timeout,
                idle=settings.idle or settings.timeout or LONGEST_SILENCE,
                total=settings.total,
                bounds=settings.bounds or Bounds(),
                retries=settings.retries or RetryPolicy(),
                option_names={wire: name for name, wire in request.option_names.items() if wire != name},
                argument_names=request.argument_names,
                unchecked=(
                    *request.unchecked,
                    *(f"extra_body.{name}" for name in extra_body),
                    *(f"extra_headers.{name}" for name in extra_headers),
                ),
                streaming=streaming,
                prompt_fields=(*dialect.prompt_fields, field),
                cache_markers=dialect.cache_markers,
                stream_path=dialect.path_of(target, streaming=True),
                stream_fields=to_json(as_stream).decode(),
            ),
        )


def _assumptions_of(target: Target, info: ModelInfo) -> tuple[str, ...]:
    """Return the assumption about an unknown model, as a tuple of one sentence, and log it once. Empty for other
    models.
    """
    if not info.follows:
        return ()
    treated = f"is not a known model and is treated like {target.provider}:{info.follows}"
    assumption = f"{target} {treated}; if that is wrong, pass model_facts"
    if assumption not in _logged:
        _logged.add(assumption)
        logger.warning("%s", assumption)
    return (assumption,)


def _join_body(head: RequestHead, prefix: memoryview, encoded: _Encoded) -> tuple[bytes, memoryview, list[Loss]]:
    """Return the body, the bytes of all closed turns without insertions, and the losses of impossible insertions."""
    lost: list[Loss] = []
    closed: Region = [prefix, b"," if prefix and encoded.closed else b"", encoded.closed]
    length = sum(map(len, closed))
    regions: dict[Place, Region] = {"closed": closed, "end": [encoded.open]}
    if head.insertions:
        regions["closed"] = [b"".join(closed)]
    for insertion in head.insertions:
        at: Place = insertion.at if encoded.open else "closed"
        regions[at] = _insert_text(regions[at], insertion, lost)
    messages = [*regions["closed"], b"," if length and encoded.open else b"", *regions["end"]]
    left_out, instead = head.stored_start
    if left_out:
        messages = [instead, b"".join(messages)[left_out:]]
    for item in head.closing:
        messages += [b"," if any(messages) else b"", item]
    body = b"".join((head.opening, *messages, b"]}"))
    start = len(head.opening)
    is_changed = head.insertions or left_out
    unmarked = memoryview(b"".join(closed)) if is_changed else memoryview(body)[start : start + length]
    return body, unmarked, lost


def _insert_text(region: Region, insertion: Insertion, losses: list[Loss]) -> Region:
    """Return the bytes of the messages with the insertion. Adds a loss if the region ends with other bytes, or has an
    insertion already.
    """
    ends, length = region[-1], len(insertion.before)
    if insertion.at == "closed" and not ends:
        return region  # a conversation's first request: nothing is closed yet
    if len(region) > 1 or ends[-length:] != insertion.before:
        place = "the unchangeable messages" if insertion.at == "closed" else "the messages"
        reason = f"the API accepts no cache marker at the end of {place}"
        losses.append(Loss(kind="dropped", path=insertion.path, reason=reason))
        return region
    return [ends[:-length], insertion.text, ends[-length:]]
