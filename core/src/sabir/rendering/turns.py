"""Convert blocks of complete pairs to turns for one target.

    Block(assistant) ──▶ Turn(assistant: parts and answered calls) + Turn(results, in the order of the calls)
                         with Calls.results="with_user", the user's messages follow the results
    Block(user)      ──▶ Turn(user) + Turn(system)                 with Roles.later_system="after_user"
    Block(other)     ──▶ Turn(side)                                a turn without content is left out

Reasoning is left out if nothing that followed it in its turn is sent, because vendors refuse reasoning without the item
that it led to.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import TypeAlias

from sabir.contract.turns import Difference, Entry, IdentifierRule, LossLog, Side, TurnScope, is_sent_as, new_tuple
from sabir.rendering.pairing import Block
from sabir.rendering.pieces import At, PartFilter, Taken
from sabir.vocabulary.constructors import result_payload
from sabir.vocabulary.messages import RUNTIME, Message, OptionCallPayload, Payload
from sabir.vocabulary.native import NativeCallPart, NativeResultPart
from sabir.vocabulary.parts import Part, TextPart

Gathered: TypeAlias = tuple[Side, tuple[Entry, ...]]
"""The side and the entries of a turn. `Turn.follows` is added later, because the turn before may produce no item."""


class Identifiers:
    """The ids or names that the requests of a conversation use, in order.

    `name` returns the same identifier for the same string. `fresh` returns a new identifier for every call, so that
    call ids which a provider uses again in a later turn stay different. With `seen`, the object is a fork: it reads the
    first `count` identifiers of `seen` and changes only itself. A fork is never forked again.
    """

    __slots__ = ("_names", "_seen", "_seen_names", "_start", "_used", "count", "rule")

    def __init__(self, rule: IdentifierRule, seen: "Identifiers | None" = None, count: int = 0) -> None:
        self.rule = rule
        self._seen: dict[str, int] = seen._used if seen else {}
        self._seen_names: dict[str, str] = seen._names if seen else {}
        self._start = self.count = count
        self._used: dict[str, int] = {}
        """Identifier in the request → its number, counted from 0."""
        self._names: dict[str, str] = {}

    def cut(self, count: int) -> "Identifiers":
        """Return a copy with the first `count` identifiers."""
        earlier = Identifiers(self.rule)
        earlier.absorb(self, count)
        return earlier

    def absorb(self, fork: "Identifiers", count: int) -> None:
        """Take over identifiers of a fork of this object, in order, until this object has `count` identifiers."""
        self._used.update(islice(fork._used.items(), count - self.count))
        for identifier, wire in fork._names.items():
            if wire in self._used:
                self._names[identifier] = wire
        self.count = count

    def name(self, name: str) -> str:
        """Return the identifier for a name: the same each time, accepted by the rule, and not used for another name."""
        known = self._names.get(name)
        if known is None:
            known = self._seen_names.get(name)
            if known is None or self._seen[known] >= self._start:
                self._names[name] = known = self.fresh(name)
        return known

    def fresh(self, identifier: str) -> str:
        """Return an identifier for one more call with this id: the id itself if it is accepted and unused, else a
        derived identifier.
        """
        wire = identifier if self.rule.whole.fullmatch(identifier) else self.rule.derive(identifier)
        occurrence = self.count
        while wire in self._used or self._seen.get(wire, self._start) < self._start:
            wire, occurrence = self.rule.derive(identifier, occurrence), occurrence + 1
        self._used[wire] = self.count
        self.count += 1
        return wire


class TurnMaker(PartFilter):
    """Converts the blocks of messages that `pair_messages` returns to turns for one target. Core uses TurnMaker; tests
    of a dialect may use it too.

    `messages` is the complete conversation, and losses are added to `losses`. `call_ids`, `names`, `called` and
    `media_count` continue an earlier rendering; otherwise leave them out.
    """

    def __init__(
        self,
        messages: Sequence[Message],
        scope: TurnScope,
        losses: LossLog,
        call_ids: Identifiers | None = None,
        names: Identifiers | None = None,
        called: Iterable[str] = (),
        media_count: int = 0,
    ) -> None:
        self._messages = messages
        self.scope = scope
        self.losses = losses
        self.call_ids = call_ids or Identifiers(scope.tables.calls.ids)
        self.names = names or Identifiers(scope.tables.calls.names)
        self.called = set(called)
        """The names of the options whose calls are in the turns."""
        self.media_count = media_count
        self.refusals = {}

    def make(self, block: Block, follows: Side | None = None) -> list[Gathered]:
        """Return the turns of a block as pairs of side and entries: none, one or several. Call it for the blocks in
        order.

        `follows` is the side of the last turn that produced an item, or None.
        """
        messages, scope, side, answers = self._messages, self.scope, block.side, block.answers
        entries: dict[int, Entry] = {}
        payload: Payload | None = None
        is_cut, known, keeps = bool(block.omitted), None, False
        differs: Difference = "origin"
        for position in block.positions:
            message = messages[position]
            origin, payload = message.origin, message.payload
            if origin is not known:
                known, differs = origin, scope.differs_by(origin)
                keeps = side == "assistant" and not differs
            if payload.kind == "parts":
                parts = payload.parts
                lone = parts[0] if len(parts) == 1 else None
                pieces: Taken
                if type(lone) is TextPart and lone.text and not lone.citations and (keeps or lone.state_json is None):
                    pieces = (lone,)  # nearly all messages are a single text
                else:
                    pieces = self.take(message, parts, side, differs, position, block.omitted)
                    is_cut = is_cut or len(pieces) < len(parts)
                if pieces:
                    entries[position] = new_tuple(Entry, (message, pieces, "", "", keeps, None))
            elif payload.kind == "option_call" and position in answers:
                entries[position] = self._call_entry(new_tuple(At, (message, 0, side, differs, keeps)), payload)
            elif payload.kind == "option_result" and side == "results":  # the server stores the call
                pieces = self.take(message, payload.parts, side, differs) if payload.parts else ()
                names = payload.invocation_id, self.names.name(payload.option_name)
                entries[position] = new_tuple(Entry, (message, pieces, *names, False, None))
            else:
                is_cut = True
        if side == "assistant" and payload and payload.kind == "parts":
            is_cut = is_cut or payload.parts[-1].kind == "reasoning"
        if is_cut and side == "assistant":
            entries = self._unbind(entries, block)
        if block.late and scope.tables.roles.later_system == "after_user":
            return self._part_system(entries, block, follows)
        turns: list[Gathered] = [(side, tuple(entries.values()))] if entries else []
        return turns + self._gather_results(block, entries) if answers else turns

    def _gather_results(self, block: Block, entries: Mapping[int, Entry]) -> list[Gathered]:
        """Return the turn with the results of a block's calls, and the turns of the user's messages in `block.words`
        that cannot be in the same turn.
        """
        results: list[Entry] = []
        for at, call in entries.items():
            if at in block.answers:
                position = block.answers[at]
                message = _missing_result(call.message) if position is None else self._messages[position]
                result = message.payload
                pieces: Taken = ()
                if result.kind == "option_result" and result.parts:
                    pieces = self.take(message, result.parts, "results", self.scope.differs_by(message.origin))
                results.append(new_tuple(Entry, (message, pieces, call.wire_id, call.wire_name, False, call)))
        words = self.make(block.words, "results") if block.words else []
        if words and words[0][0] == "user":
            results += words.pop(0)[1]
        return [("results", tuple(results)), *words]

    def _part_system(self, entries: dict[int, Entry], block: Block, follows: Side | None) -> list[Gathered]:
        """Return the user's turn, and a system turn of the later system messages at its end if these contain only text.

        Other later system messages stay in the user's turn, with a loss.
        """
        positions, ordered = list(entries), tuple(entries.values())
        count = len(ordered)
        while count and positions[count - 1] in block.late and _has_only_text(ordered[count - 1].message):
            count -= 1
        if not count and follows in (None, "assistant"):
            count = len(ordered)
        for position, entry in zip(positions[:count], ordered, strict=False):
            if position in block.late:
                reason = (
                    "a later system message is accepted only as text between user and assistant; "
                    "this one was sent as user"
                )
                self.losses.add("downgraded", reason, message=entry.message)
        parted: list[Gathered] = [("user", ordered[:count]), ("system", ordered[count:])]
        return [each for each in parted if each[1]]

    def _call_entry(self, at: At, call: OptionCallPayload) -> Entry:
        given_id, given_name = call.invocation_id, call.option_name
        wire_id, wire_name = self.call_ids.fresh(given_id), self.names.name(given_name)
        self.called.add(given_name)
        if wire_id != given_id:
            self._report_rewrite(at.message, "invocation_id", given_id, wire_id)
        if wire_name != given_name:
            self._report_rewrite(at.message, "option_name", given_name, wire_name)
        if call.state_json is not None:
            self.withhold(call, at, "payload.state")
        return new_tuple(Entry, (at.message, (), wire_id, wire_name, at.keeps_state, None))

    def _report_rewrite(self, message: Message, field: str, original: str, wire: str) -> None:
        reason = f"{self.scope.target.dialect} accepts {wire!r}, which was sent for {original!r}"
        self.losses.add("rewritten", reason, message=message, path=f"payload.{field}")

    def _unbind(self, entries: dict[int, Entry], block: Block) -> dict[int, Entry]:
        """Drop reasoning when nothing that followed it in the turn is sent.

        Reasoning belongs to all items that follow it, up to the next reasoning: if at least one of them is sent, the
        reasoning is sent.
        """
        is_left = is_new = False  # whether a later item is sent, and whether reasoning came in between
        for position in reversed(block.positions):
            message, entry = self._messages[position], entries.get(position)
            pieces = entry.pieces if entry else ()
            unbound: list[int] = []
            for index, part in reversed([*enumerate(message.parts)]):
                if part.kind != "reasoning":
                    is_left, is_new = self._is_sent(part, pieces) or (is_left and not is_new), False
                elif any(piece is part for piece in pieces):
                    is_new = True
                    if not is_left:
                        reason = "nothing that followed this reasoning in its turn was sent"
                        self.losses.add("dropped", reason, message=message, path=f"parts[{index}]")
                        unbound.append(id(part))
            if message.call:
                is_left, is_new = entry is not None or (is_left and not is_new), False
            if entry and unbound:
                entries[position] = entry._replace(pieces=tuple(each for each in pieces if id(each) not in unbound))
        return {position: entry for position, entry in entries.items() if entry.pieces or entry.wire_id}

    def _is_sent(self, part: Part, pieces: Taken) -> bool:
        """Return whether a part other than reasoning is sent: unchanged, or as a text or block that replaces it."""
        is_as_text = part.kind == "refusal" and bool(part.text)
        if isinstance(part, NativeCallPart | NativeResultPart):
            return any(is_sent_as(part, piece) for piece in pieces)
        is_named = part.kind == "media" and self.scope.unsupported_media == "placeholder"
        return is_as_text or is_named or any(piece is part for piece in pieces)


def _has_only_text(message: Message) -> bool:
    return all(part.kind == "text" for part in message.parts)


def _missing_result(call: Message) -> Message:
    """Return the error result that is sent instead of a missing result. It has the id of the call's message, for
    losses.
    """
    assert call.call
    error = {"is_error": True, "error_type": "no_result", "error_message": "the call never got a result"}
    return Message(id=call.id, policy=RUNTIME, step_num=call.step_num, payload=result_payload(call.call, error))
