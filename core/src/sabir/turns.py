"""Blocks of complete pairs → turns, as one target takes them.

    Block(assistant) ──▶ Turn(assistant: parts and answered calls) + Turn(results, in the order of their calls)
    Block(user)      ──▶ Turn(user) + Turn(system)                 where late system messages may end the user's side
    Block(other)     ──▶ Turn(side)                                a turn that nothing is left of is not made

Reasoning that nothing follows any more, because its call was left out or its reply ended there, goes with it: the
vendors refuse reasoning without the item that it led to.
"""

from collections.abc import Sequence

from sabir.identifiers import Identifiers
from sabir.messages import Message
from sabir.pairing import Block, side_of
from sabir.parts import KnownPart
from sabir.pieces import IsHome, Sieve
from sabir.scope import Entry, LossLog, Side, Turn, TurnScope


class TurnMaker:
    """Makes turns of blocks, giving every call its identifiers in the order of rendering."""

    def __init__(
        self,
        messages: Sequence[Message],
        scope: TurnScope,
        is_home: IsHome,
        call_ids: Identifiers,
        names: Identifiers,
        media_count: int,
    ) -> None:
        self._messages = messages
        self._scope = scope
        self._is_home = is_home
        self._call_ids = call_ids
        self._names = names
        self.log = LossLog()
        self._sieve = Sieve(scope, self.log, media_count)

    @property
    def media_count(self) -> int:
        """How many media the request holds so far."""
        return self._sieve.media_count

    def make(self, block: Block, follows: Side | None) -> list[Turn]:
        """The turns of a block, which follows a turn of that side: none, one, or two.

        What each of them follows is for whoever encodes them to say: one of them may come to nothing.
        """
        turns = self._make(block)
        if turns and block.side == "user" and self._scope.tables.later_system == "after_user":
            turns = self._part_system(turns[0], follows)
        return turns

    def _part_system(self, turn: Turn, follows: Side | None) -> list[Turn]:
        """The user's turn, and the system messages at its end that may stand for themselves."""
        entries, count = turn.entries, len(turn.entries)
        while count and self._is_system(entries[count - 1]):
            count -= 1
        if not count and follows in (None, "assistant"):
            count = len(entries)
        for entry in entries[:count]:
            if side_of(entry.message, self._scope.speaks_as) == "system":
                reason = "a system message renders as user, but for one between the user and the assistant"
                self.log.add("downgraded", reason, message=entry.message)
        parted = Turn("user", entries[:count]), Turn("system", entries[count:])
        return [each for each in parted if each.entries]

    def _is_system(self, entry: Entry) -> bool:
        is_text = all(part.kind == "text" for part in entry.message.parts)
        return is_text and side_of(entry.message, self._scope.speaks_as) == "system"

    def _make(self, block: Block) -> list[Turn]:
        slots: list[Entry | None] = []
        results: list[tuple[int, Entry]] = []
        for position in block.positions:
            message = self._messages[position]
            call = message.call
            if call is None:
                slots.append(self._entry(message, position, block))
            elif position not in block.answers:
                slots.append(None)
            else:
                entry = self._call_entry(message, call.invocation_id, call.option_name)
                slots.append(entry)
                results.append((block.answers[position], entry))
        if block.side == "assistant":
            slots = self._unbind(slots, block)
        entries = tuple(slot for slot in slots if slot is not None and (slot.pieces or slot.wire_id))
        turns = [Turn(block.side, entries)] if entries else []
        if results:
            turns.append(Turn("results", tuple(self._result_entry(at, call) for at, call in results)))
        return turns

    def _entry(self, message: Message, position: int, block: Block) -> Entry:
        omitted = {index for at, index in block.omitted if at == position} if block.omitted else ()
        is_home = self._is_home(message.origin)
        return Entry(message, self._sieve.sift(message, block.side, is_home, omitted), keeps_state=is_home)

    def _call_entry(self, message: Message, invocation_id: str, option_name: str) -> Entry:
        wire_id = self._call_ids.fresh(invocation_id)
        wire_name = self._names.name(option_name)
        dialect = self._scope.target.dialect
        for path, given, wire in (
            ("invocation_id", invocation_id, wire_id),
            ("option_name", option_name, wire_name),
        ):
            if given != wire:
                reason = f"{dialect} takes {wire!r} for {given!r}"
                self.log.add("rewritten", reason, message=message, path=f"payload.{path}")
        return Entry(message, (), wire_id, wire_name, self._is_home(message.origin))

    def _result_entry(self, position: int, call: Entry) -> Entry:
        message = self._messages[position]
        is_home = self._is_home(message.origin)
        pieces = self._sieve.sift(message, "results", is_home) if message.parts else ()
        return Entry(message, pieces, call.wire_id, call.wire_name, is_home, call)

    def _unbind(self, slots: list[Entry | None], block: Block) -> list[Entry | None]:
        """Without the reasoning that a step left out, or the end of the turn, leaves with nothing to lead to.

        Reasoning leads to all that follows it up to the next reasoning: of several calls one that is kept is enough.
        """
        if not any(slot is not None and any(piece.kind == "reasoning" for piece in slot.pieces) for slot in slots):
            return slots
        follower = _Follower()
        kept: list[Entry | None] = []
        for position, slot in zip(reversed(block.positions), reversed(slots), strict=True):
            if slot is None or slot.wire_id:
                follower.pass_step(is_kept=slot is not None)
                kept.append(slot)
            else:
                omitted = {index for at, index in block.omitted if at == position}
                kept.append(self._unbind_entry(slot, omitted, follower))
        return kept[::-1]

    def _unbind_entry(self, entry: Entry, omitted: set[int], follower: "_Follower") -> Entry:
        unbound: list[KnownPart] = []
        for index, part in reversed(list(enumerate(entry.message.parts))):
            if part.kind != "reasoning":
                follower.pass_step(is_kept=index not in omitted)
            elif any(piece is part for piece in entry.pieces) and not follower.pass_reasoning():
                reason = "nothing that this reasoning led to is left in its turn"
                self.log.add("dropped", reason, message=entry.message, path=f"parts[{index}]")
                unbound.append(part)
        left = tuple(piece for piece in entry.pieces if not any(piece is part for part in unbound))
        return entry._replace(pieces=left)


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
