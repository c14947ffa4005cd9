"""Blocks of complete pairs → turns, as one target takes them.

    Block(assistant) ──▶ Turn(assistant: parts and answered calls) + Turn(results, in the order of their calls)
    Block(other)     ──▶ Turn(side)                                a turn that nothing is left of is not made

Reasoning that nothing follows any more, because its call was left out or its reply ended there, goes with it: the
vendors refuse reasoning without the item that it led to.
"""

from collections.abc import Callable, Sequence

from sabir.identifiers import Identifiers
from sabir.messages import Message
from sabir.pairing import Block
from sabir.parts import KnownPart
from sabir.pieces import Sieve, keeps_state
from sabir.scope import Entry, LossLog, Turn, TurnScope


class TurnMaker:
    """Makes turns of blocks, giving every call its identifiers in the order of rendering."""

    def __init__(
        self,
        messages: Sequence[Message],
        scope: TurnScope,
        family_of: Callable[[str], str],
        call_ids: Identifiers,
        names: Identifiers,
        media_count: int,
    ) -> None:
        self._messages = messages
        self._scope = scope
        self._family_of = family_of
        self._call_ids = call_ids
        self._names = names
        self.log = LossLog()
        self._sieve = Sieve(scope, self.log, media_count)

    @property
    def media_count(self) -> int:
        """How many media the request holds so far."""
        return self._sieve.media_count

    def make(self, block: Block) -> list[Turn]:
        """The turns of a block: none, one, or an assistant's and its results'."""
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
                slots.append(self._call_entry(message, call.invocation_id, call.option_name))
                results.append((block.answers[position], slots[-1]))  # type: ignore[arg-type]
        if block.side == "assistant":
            slots = self._unbind(slots)
        entries = tuple(slot for slot in slots if slot is not None and (slot.pieces or slot.wire_id))
        turns = [Turn(block.side, entries)] if entries else []
        if results:
            turns.append(Turn("results", tuple(self._result_entry(at, call) for at, call in results)))
        return turns

    def _is_home(self, message: Message) -> bool:
        origin = message.origin
        return origin is not None and keeps_state(origin, self._scope, self._family_of(origin.model))

    def _entry(self, message: Message, position: int, block: Block) -> Entry:
        omitted = {index for at, index in block.omitted if at == position} if block.omitted else ()
        is_home = self._is_home(message)
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
        return Entry(message, (), wire_id, wire_name, self._is_home(message))

    def _result_entry(self, position: int, call: Entry) -> Entry:
        message = self._messages[position]
        is_home = self._is_home(message)
        pieces = self._sieve.sift(message, "results", is_home) if message.parts else ()
        return Entry(message, pieces, call.wire_id, call.wire_name, is_home)

    def _unbind(self, slots: list[Entry | None]) -> list[Entry | None]:
        """Without the reasoning that a call left out, or the end of the turn, leaves with nothing to lead to."""
        if not any(slot is not None and any(piece.kind == "reasoning" for piece in slot.pieces) for slot in slots):
            return slots
        is_followed = False
        kept: list[Entry | None] = []
        for slot in reversed(slots):
            if slot is None or slot.wire_id:
                is_followed = slot is not None
                kept.append(slot)
                continue
            pieces: list[KnownPart] = []
            for piece in reversed(slot.pieces):
                if piece.kind == "reasoning" and not is_followed:
                    reason = "nothing that this reasoning led to is left in its turn"
                    path = f"parts[{_index(piece, slot.message)}]"
                    self.log.add("dropped", reason, message=slot.message, path=path)
                    continue
                is_followed = True
                pieces.append(piece)
            kept.append(slot._replace(pieces=tuple(reversed(pieces))))
        return kept[::-1]


def _index(piece: KnownPart, message: Message) -> int:
    return next(index for index, part in enumerate(message.parts) if part is piece)
