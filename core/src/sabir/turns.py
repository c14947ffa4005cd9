"""Blocks of complete pairs → turns, as one target takes them.

    Block(assistant) ──▶ Turn(assistant: parts and answered calls) + Turn(results, in the order of their calls)
    Block(user)      ──▶ Turn(user) + Turn(system)                 where late system messages may end the user's side
    Block(other)     ──▶ Turn(side)                                a turn that nothing is left of is not made

Reasoning that nothing follows any more, because its call was left out or its reply ended there, goes with it: the
vendors refuse reasoning without the item that it led to.
"""

from collections.abc import Sequence
from typing import TypeAlias

from sabir.identifiers import Identifiers
from sabir.messages import Message, OptionCallPayload
from sabir.pairing import Block, side_of
from sabir.parts import KnownPart, Part
from sabir.pieces import IsHome, PartFilter, Taken, withhold
from sabir.scope import Entry, LossLog, Side, TurnScope, new_tuple

Gathered: TypeAlias = tuple[Side, tuple[Entry, ...]]
"""A turn of which nobody knows yet what it follows: a turn before it may come to nothing on the wire."""


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
        if block.holds_system and self._scope.tables.later_system == "after_user":
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
            omitted = {index for at, index in block.omitted if at == position}
            left = self._unbind_pieces(message, entry.pieces if entry else (), omitted, follower)
            if entry and len(left) < len(entry.pieces):
                entries[position] = entry._replace(pieces=left)
        return {position: entry for position, entry in entries.items() if entry.pieces or entry.wire_id}

    def _unbind_pieces(self, message: Message, pieces: Taken, omitted: set[int], follower: "_Follower") -> Taken:
        unbound: list[KnownPart] = []
        for index, part in reversed(list(enumerate(message.parts))):
            if part.kind != "reasoning":
                follower.pass_step(is_kept=index not in omitted)
            elif any(piece is part for piece in pieces) and not follower.pass_reasoning():
                reason = "nothing that this reasoning led to is left in its turn"
                self._log.add("dropped", reason, message=message, path=f"parts[{index}]")
                unbound.append(part)
        return tuple(piece for piece in pieces if not any(piece is part for part in unbound))


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
