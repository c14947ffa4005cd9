"""Blocks of complete pairs → turns, as one target takes them.

    Block(assistant) ──▶ Turn(assistant: parts and answered calls) + Turn(results, in the order of their calls)
    Block(user)      ──▶ Turn(user) + Turn(system)                 where late system messages may end the user's side
    Block(other)     ──▶ Turn(side)                                a turn that nothing is left of is not made

Reasoning that nothing follows any more, because its call was left out or its reply ended there, goes with it: the
vendors refuse reasoning without the item that it led to.
"""

import re
from bisect import bisect_left
from collections.abc import Sequence
from functools import lru_cache
from hashlib import sha256
from itertools import islice
from typing import TypeAlias

from sabir.contract.scope import Entry, LossLog, TurnScope, new_tuple
from sabir.contract.tables import IdentifierRule, Side
from sabir.rendering.pairing import Block, side_of
from sabir.rendering.pieces import IsHome, PartFilter, Taken, withhold
from sabir.vocabulary.messages import Message, OptionCallPayload
from sabir.vocabulary.parts import KnownPart, Part

Gathered: TypeAlias = tuple[Side, tuple[Entry, ...]]
"""A turn of which nobody knows yet what it follows: a turn before it may come to nothing on the wire."""


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
    call ids in a later turn confuses nothing. A fork sees the first so many of the identifiers that it was
    forked from, whatever these gain later, and writes to itself; it is never forked again.
    """

    __slots__ = (
        "_is_valid",
        "_names",
        "_repeats",
        "_seen",
        "_seen_count",
        "_seen_names",
        "_seen_repeats",
        "_used",
        "rule",
    )

    def __init__(self, rule: IdentifierRule, seen: "Identifiers | None" = None, count: int = 0) -> None:
        self.rule = rule
        self._is_valid = _pattern(rule).fullmatch
        self._seen: dict[str, int] = seen._used if seen else {}
        self._seen_names: dict[str, str] = seen._names if seen else {}
        self._seen_count = count
        self._used: dict[str, int] = {}
        """Wire identifier → its number, counted from 0."""
        self._names: dict[str, str] = {}
        self._seen_repeats: dict[str, list[tuple[int, int]]] = seen._repeats if seen else {}
        self._repeats: dict[str, list[tuple[int, int]]] = {}
        """An id that came again → for each time, its identifier's number and the occurrence that made it."""

    def __len__(self) -> int:
        return self._seen_count + len(self._used)

    def fork(self, count: int) -> "Identifiers":
        """Identifiers that go on after the first `count` of these, and leave these as they are."""
        return Identifiers(self.rule, self, count)

    def cut(self, count: int) -> "Identifiers":
        """A copy of the first `count`."""
        earlier = Identifiers(self.rule)
        earlier._used = dict(islice(self._used.items(), count))
        earlier._names = {given: wire for given, wire in self._names.items() if wire in earlier._used}
        earlier._repeats = {given: each[: bisect_left(each, (count,))] for given, each in self._repeats.items()}
        return earlier

    def absorb(self, fork: "Identifiers", count: int) -> None:
        """Take what a fork of these added, up to `count` identifiers in all."""
        self._used.update(islice(fork._used.items(), count - len(self._used)))
        self._names.update((given, wire) for given, wire in fork._names.items() if wire in self._used)
        for given, each in fork._repeats.items():
            self._repeats.setdefault(given, []).extend(each[: bisect_left(each, (len(self._used),))])

    def name(self, given: str) -> str:
        """The identifier of a name: the same for the same name."""
        known = self._names.get(given)
        if known is None:
            known = self._seen_names.get(given)
            if known is None or self._seen[known] >= self._seen_count:
                self._names[given] = known = self.fresh(given)
        return known

    def fresh(self, given: str) -> str:
        """An identifier of its own for one more call with that id."""
        wire, number = given if self._is_valid(given) else derive(given, self.rule), len(self)
        if self._is_used(wire):
            occurrence = self._last_occurrence(given)
            while self._is_used(wire):
                occurrence += 1
                wire = derive(given, self.rule, occurrence)
            self._repeats.setdefault(given, []).append((number, occurrence))
        self._used[wire] = number
        return wire

    def _is_used(self, wire: str) -> bool:
        return wire in self._used or self._seen.get(wire, self._seen_count) < self._seen_count

    def _last_occurrence(self, given: str) -> int:
        """Of that id, in what this one sees: those before it are used."""
        if given in self._repeats:
            return self._repeats[given][-1][1]
        seen = self._seen_repeats.get(given, [])
        place = bisect_left(seen, (self._seen_count,))
        return seen[place - 1][1] if place else 0


class TurnMaker:
    """Makes turns of blocks, giving every call its identifiers in the order of rendering."""

    def __init__(
        self,
        messages: Sequence[Message],
        scope: TurnScope,
        is_home: IsHome,
        call_ids: Identifiers,
        names: Identifiers,
        log: LossLog,
        media_count: int,
    ) -> None:
        self._messages = messages
        self._scope = scope
        self._is_home = is_home
        self.call_ids = call_ids
        self.names = names
        self._log = log
        self.filter = PartFilter(scope, log, media_count)

    def make(self, block: Block, follows: Side | None) -> list[Gathered]:
        """What a block, which follows a turn of that side, makes: no turn, one, or two."""
        messages, answers, side, take = self._messages, block.answers, block.side, self.filter.take
        entries: dict[int, Entry] = {}
        calls: list[tuple[int, Entry]] = []
        is_own, known, is_home, is_cut = side == "assistant", None, False, bool(block.omitted)
        parts: Sequence[Part] = ()
        for position in block.positions:
            message = messages[position]
            origin, payload = message.origin, message.payload
            if origin is not known:
                known, is_home = origin, self._is_home(origin)
            if payload.kind == "parts":
                parts = payload.parts
                omitted = {index for at, index in block.omitted if at == position} if block.omitted else ()
                pieces = take(message, parts, side, is_home, omitted)
                is_cut = is_cut or len(pieces) < len(parts)
                if pieces:
                    entries[position] = new_tuple(Entry, (message, pieces, "", "", is_home and is_own, None))
                continue
            parts = ()
            if payload.kind == "option_call" and position in answers:
                entries[position] = entry = self._call_entry(message, payload, is_home)
                calls.append((answers[position], entry))
            else:
                is_cut = True
        if side == "assistant" and (is_cut or (parts and parts[-1].kind == "reasoning")):
            entries = self._unbind(entries, block)
        said = tuple(entries.values())
        if block.holds_system and self._scope.tables.roles.later_system == "after_user":
            return self._part_system(said, follows)
        made: list[Gathered] = [(side, said)] if said else []
        if calls:
            made.append(("results", tuple([self._result_entry(messages[at], call) for at, call in calls])))
        return made

    def _part_system(self, entries: tuple[Entry, ...], follows: Side | None) -> list[Gathered]:
        """The user's turn, and the system messages at its end that may stand for themselves."""
        count = len(entries)
        while count and self._is_system_text(entries[count - 1]):
            count -= 1
        if not count and follows in (None, "assistant"):
            count = len(entries)
        for entry in entries[:count]:
            if side_of(entry.message, self._scope.speaks_as) == "system":
                reason = "a system message renders as user, but for one between the user and the assistant"
                self._log.add("downgraded", reason, message=entry.message)
        parted: list[Gathered] = [("user", entries[:count]), ("system", entries[count:])]
        return [each for each in parted if each[1]]

    def _is_system_text(self, entry: Entry) -> bool:
        is_text = all(part.kind == "text" for part in entry.message.parts)
        return is_text and side_of(entry.message, self._scope.speaks_as) == "system"

    def _call_entry(self, message: Message, call: OptionCallPayload, keeps_state: bool) -> Entry:
        given_id, given_name = call.invocation_id, call.option_name
        wire_id, wire_name = self.call_ids.fresh(given_id), self.names.name(given_name)
        if wire_id != given_id:
            self._rewrite(message, "invocation_id", given_id, wire_id)
        if wire_name != given_name:
            self._rewrite(message, "option_name", given_name, wire_name)
        if not keeps_state and call.state_json is not None:
            withhold(message, "payload.state", "assistant", self._log, is_home=False)
        return new_tuple(Entry, (message, (), wire_id, wire_name, keeps_state, None))

    def _rewrite(self, message: Message, path: str, given: str, wire: str) -> None:
        reason = f"{self._scope.target.dialect} takes {wire!r} for {given!r}"
        self._log.add("rewritten", reason, message=message, path=f"payload.{path}")

    def _result_entry(self, message: Message, call: Entry) -> Entry:
        result = message.payload
        assert result.kind == "option_result"
        origin, parts = message.origin, result.parts
        is_home = origin is not None and self._is_home(origin)
        pieces = self.filter.take(message, parts, "results", is_home) if parts else ()
        return new_tuple(Entry, (message, pieces, call.wire_id, call.wire_name, False, call))

    def _unbind(self, entries: dict[int, Entry], block: Block) -> dict[int, Entry]:
        """Without the reasoning that a step left out, or the end of the turn, leaves with nothing to lead to.

        Reasoning leads to all that follows it up to the next reasoning: of several calls one that is kept is enough.
        """
        follower = _Follower()
        for position in reversed(block.positions):
            message, entry = self._messages[position], entries.get(position)
            if message.call:
                follower.pass_step(is_kept=entry is not None)
                continue
            left = self._unbind_pieces(message, entry.pieces if entry else (), follower)
            if entry and len(left) < len(entry.pieces):
                entries[position] = entry._replace(pieces=left)
        return {position: entry for position, entry in entries.items() if entry.pieces or entry.wire_id}

    def _unbind_pieces(self, message: Message, pieces: Taken, follower: "_Follower") -> Taken:
        unbound: list[KnownPart] = []
        for index, part in reversed(list(enumerate(message.parts))):
            if part.kind != "reasoning":
                follower.pass_step(is_kept=self._is_kept(part, pieces))
            elif any(piece is part for piece in pieces) and not follower.pass_reasoning():
                reason = "nothing that this reasoning led to is left in its turn"
                self._log.add("dropped", reason, message=message, path=f"parts[{index}]")
                unbound.append(part)
        return tuple(piece for piece in pieces if not any(piece is part for part in unbound))

    def _is_kept(self, part: Part, pieces: Taken) -> bool:
        """Whether something stands for a part that is no reasoning."""
        is_as_text = part.kind == "refusal" and bool(part.text)
        is_named = part.kind == "media" and self._scope.unsupported_media == "placeholder"
        return is_as_text or is_named or any(piece is part for piece in pieces)


class _Follower:
    """Read backwards: whether something is left of what the reasoning before it led to."""

    def __init__(self) -> None:
        self._is_left = False
        self._is_new = False

    def pass_step(self, *, is_kept: bool) -> None:
        """A call, or a part that is no reasoning."""
        self._is_left = is_kept or (self._is_left and not self._is_new)
        self._is_new = False

    def pass_reasoning(self) -> bool:
        """Reasoning; whether it leads to something."""
        self._is_new = True
        return self._is_left
