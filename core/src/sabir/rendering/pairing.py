"""Law 1, no orphan, and the closed prefix: messages → blocks of complete pairs.

    message ─▶ side ─▶ block            a block is one turn; an assistant block also holds the results of its calls
    result  ─▶ nearest earlier run of calls with an unanswered one of its id; there, the first of them

A user or system message abandons open calls; a result that comes later takes its call to its own place. A prefix
closes where every call in it is answered or abandoned and a message of another side follows; closed blocks are
final. A run is option calls with no other message between them, so that no role hint changes what answers what
(law 7). State that outlives a rendering holds positions, never messages.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from sabir.base.losses import Loss
from sabir.contract.scope import LossLog, new_tuple
from sabir.contract.tables import Side, Tables
from sabir.vocabulary.messages import Message, Origin, RoleHint, UnknownHint
from sabir.vocabulary.parts import OpaquePart, Part

NO_RESULT = "the option call has no result; only complete pairs are sent"
HALF_PAIR = "the provider's own call and its output are sent only together; the other half is missing"


_NOTHING = frozenset[tuple[int, int]]()


class Block:
    """One turn being gathered: positions of its messages and, for calls that have one, of their results."""

    __slots__ = ("answers", "holds_system", "losses", "omitted", "positions", "side")

    def __init__(self, side: Side, positions: list[int]) -> None:
        self.side = side
        self.positions = positions
        self.holds_system = False
        """Whether a system message after the start is among the user's."""
        self.answers: dict[int, int] = {}
        self.omitted: frozenset[tuple[int, int]] = _NOTHING
        """(position, part index) of opaque parts whose other half is missing."""
        self.losses: Sequence[Loss] = ()
        """Those of what closed from this block on."""


class Waiting(NamedTuple):
    """What a closed prefix leaves behind: abandoned calls by invocation id."""

    abandoned: "dict[str, _Abandoned]"
    is_leading: bool = True
    """Whether nothing but system messages has come yet."""


_NONE_WAITING = Waiting({}, is_leading=False)


class Closed(NamedTuple):
    """Blocks that are final, and what they leave behind."""

    blocks: list[Block]
    waiting: Waiting
    position: int
    """The position of the first message after the blocks."""


class _Abandoned(NamedTuple):
    """The call that the next result of its id answers, and those after it: the latest run first, each in order."""

    position: int
    rest: "_Abandoned | None"


class _OpenCall(NamedTuple):
    """A call that has no result yet: where it stands, in which run of calls, in which block."""

    position: int
    run: int
    block: Block


def side_of(message: Message, speaks_as: str) -> Side:
    """Whose turn a message belongs to: a hint wins for parts; calls are the assistant's."""
    kind = message.payload.kind
    if kind == "option_call":
        return "assistant"
    if kind == "option_result":
        return "results"
    return _side_of_parts(message.role_hint_for_llm, message.policy, speaks_as)


def _side_of_parts(hint: RoleHint | UnknownHint | None, policy: str, speaks_as: str) -> Side:
    if hint is not None and not isinstance(hint, UnknownHint):
        return "user" if hint == "tool" else hint
    return "assistant" if policy == speaks_as else "system" if policy == "system" else "user"


class Pairing:
    """Gathers blocks from messages taken one by one, and tells which became final."""

    def __init__(
        self,
        messages: Sequence[Message],
        tables: Tables,
        speaks_as: str,
        waiting: Waiting,
        goes_back: Callable[[OpaquePart, Message, Side], bool],
    ) -> None:
        self._messages = messages
        self._goes_back = goes_back
        self._tables = tables
        self._speaks_as = speaks_as
        self._abandoned = dict(waiting.abandoned)
        self._is_leading = waiting.is_leading
        self._open_calls: dict[str, list[deque[_OpenCall]]] = {}
        """By invocation id, run by run, latest last."""
        self._run = 0
        self._open_pairs: dict[str | None, tuple[Block, int, int]] = {}
        self._blocks: list[Block] = []
        self._log = LossLog()
        self._final = 0
        """How many of the blocks are final."""
        self._closed_at, self._waiting = -1, waiting
        """The position of the message that closed them, and what they leave behind."""

    def closings(self, start: int, apart: int = 1, latest: int = 0) -> Iterator[Closed]:
        """Take the messages from that position on; yields the blocks that became final.

        One closing in so many messages (`apart`) is yielded, with what closed in between; of the last messages
        (`latest`) each is.
        """
        messages, count = self._messages, len(self._messages)
        due = min(start + apart, count - latest)
        for position in range(start, count):
            message = messages[position]
            payload = message.payload
            if payload.kind == "option_call":
                self._place(position, position, "assistant")
                call = new_tuple(_OpenCall, (position, self._run, self._blocks[-1]))
                runs = self._open_calls.setdefault(payload.invocation_id, [])
                if runs and runs[-1][0].run == self._run:
                    runs[-1].append(call)
                else:
                    runs.append(deque((call,)))
            elif payload.kind == "unknown":
                reason = f"messages of the kind {payload.document['kind']!r} are unknown to this version"
                self._log.add("dropped", reason, message=message)
            else:
                self._run += 1
                if payload.kind == "option_result":
                    self._take_result(position, message, payload.invocation_id)
                else:
                    self._take_parts(position, message, payload.parts)
            if self._closed_at == position >= due:
                yield self._cut()
                due = min(position + apart, count - latest)
        if self._final:
            yield self._cut()

    def _cut(self) -> Closed:
        """The blocks that are final; the others stay."""
        final, self._blocks, self._final = self._blocks[: self._final], self._blocks[self._final :], 0
        return Closed(final, self._waiting, self._closed_at)

    def finish(self) -> tuple[list[Block], list[Loss]]:
        """The blocks that are still open, and every loss that a later message could undo."""
        self._keep_paused()
        self._omit_open_pairs()
        dropped = [call.position for runs in self._open_calls.values() for run in runs for call in run]
        for left in self._abandoned.values():
            dropped += _positions(left)
        for position in sorted(dropped):
            self._log.add("dropped", NO_RESULT, message=self._messages[position])
        return self._blocks, self._log.losses

    def _take_parts(self, position: int, message: Message, parts: tuple[Part, ...]) -> None:
        hint = message.role_hint_for_llm
        side = _side_of_parts(hint, message.policy, self._speaks_as)
        is_late = side == "system" and not self._is_leading and self._tables.roles.later_system != "inline"
        side = "user" if is_late else side
        halves = self._halves(message, parts, side) if len(parts) > 1 or parts[0].kind == "opaque" else ()
        waiting = len(self._open_pairs)
        unmatched = self._match_closers(halves) if halves else ()
        is_answer = len(self._open_pairs) < waiting
        if side != "assistant" and (self._open_calls or self._open_pairs):
            self._abandon()
        self._place(position, position, side, is_answer=is_answer)
        if is_late:
            self._blocks[-1].holds_system = True
            if self._tables.roles.later_system == "user":
                reason = "a system message after the start renders as user on this wire"
                self._log.add("downgraded", reason, message=message)
        if hint == "tool":
            self._log.add("downgraded", "parts with the hint 'tool' render as user", message=message)
        elif isinstance(hint, UnknownHint):
            self._log.add("downgraded", f"the role hint {hint!r} is unknown to this version", message=message)
        if halves:
            self._open(position, halves, unmatched)

    def _place(self, position: int, at: int, side: Side, *, is_answer: bool = False) -> None:
        """Put the message at `at` into its block.

        Where that begins a block, the message at `position` closes those before it, but for one that answers something.
        """
        blocks = self._blocks
        if blocks:
            last = blocks[-1]
            if last.side == side and not last.answers:
                last.positions.append(at)
                return
            if not (self._open_calls or self._open_pairs or is_answer):
                if self._log.losses:
                    blocks[self._final].losses, self._log.losses = self._log.losses, []
                is_plain = not (self._abandoned or self._is_leading)
                self._waiting = _NONE_WAITING if is_plain else Waiting(dict(self._abandoned), self._is_leading)
                self._final, self._closed_at = len(blocks), position
        blocks.append(Block(side, [at]))
        self._is_leading = self._is_leading and side == "system"

    def _open(self, position: int, halves: Sequence[tuple[int, OpaquePart]], unmatched: Sequence[int]) -> None:
        """Open the pairs that a message begins, and leave out the halves that close none."""
        block = self._blocks[-1]
        for index in unmatched:
            self._omit(block, position, index)
        for index, part in halves:
            earlier = self._open_pairs.pop(part.pair_id, None)
            if part.pair == "opens":
                if earlier is not None:
                    self._omit(*earlier)
                self._open_pairs[part.pair_id] = block, position, index

    def _take_result(self, position: int, message: Message, invocation_id: str) -> None:
        if invocation_id in self._open_calls:
            call, _, block = self._pop_open(invocation_id)
        elif invocation_id in self._abandoned:
            call = self._abandoned[invocation_id].position
            self._place(position, call, "assistant")
            self._pop_abandoned(invocation_id)
            block = self._blocks[-1]
            reason = "its result came after a later turn; call and result render there"
            self._log.add("relocated", reason, message=self._messages[call])
        else:
            reason = f"no earlier unanswered call has the invocation id {invocation_id!r}"
            self._log.add("dropped", reason, message=message)
            return
        if block is not self._blocks[-1]:
            self._log.add("relocated", "the result renders right after the turn of its call", message=message)
        block.answers[call] = position

    def _pop_open(self, invocation_id: str) -> _OpenCall:
        runs = self._open_calls[invocation_id]
        call = runs[-1].popleft()
        if not runs[-1]:
            runs.pop()
        if not runs:
            del self._open_calls[invocation_id]
        return call

    def _pop_abandoned(self, invocation_id: str) -> None:
        left = self._abandoned[invocation_id].rest
        if left:
            self._abandoned[invocation_id] = left
        else:
            del self._abandoned[invocation_id]

    def _abandon(self) -> None:
        for invocation_id, runs in self._open_calls.items():
            for call in (call for run in runs for call in reversed(run)):
                self._abandoned[invocation_id] = _Abandoned(call.position, self._abandoned.get(invocation_id))
        self._open_calls = {}
        self._omit_open_pairs()

    def _match_closers(self, halves: Sequence[tuple[int, OpaquePart]]) -> list[int]:
        unmatched = []
        opened_here: set[str | None] = set()
        for index, part in halves:
            if part.pair == "opens":
                if part.pair_id in self._open_pairs:
                    self._omit(*self._open_pairs.pop(part.pair_id))
                opened_here.add(part.pair_id)
            elif part.pair_id in opened_here:
                opened_here.discard(part.pair_id)
            elif self._open_pairs.pop(part.pair_id, None) is None:
                unmatched.append(index)
        return unmatched

    def _halves(self, message: Message, parts: Sequence[Part], side: Side) -> Sequence[tuple[int, OpaquePart]]:
        """The halves of pairs that go back to where they came from; to the others the wire is closed anyway."""
        halves = []
        for index, part in enumerate(parts):
            if part.kind == "opaque" and part.pair_id is not None and self._goes_back(part, message, side):
                halves.append((index, part))
        return halves

    def _keep_paused(self) -> None:
        """Let openers stand, where the wire takes them, in which their maker may have paused."""
        if self._tables.calls.unfinished_pairs == "dropped":
            return
        openers = self._open_pairs.items()
        paused = {each for each, opener in openers if opener[0].side == "assistant" and self._is_paused(*opener)}
        self._open_pairs = {pair_id: each for pair_id, each in self._open_pairs.items() if pair_id not in paused}

    def _is_paused(self, block: Block, position: int, index: int) -> bool:
        """Whether after an opener stand only openers and calls: of its reply, and after results of its maker."""
        message = self._messages[position]
        number = next(number for number, each in enumerate(self._blocks) if each is block)
        beside = block.positions[block.positions.index(position) + 1 :]
        later = [at for each in self._blocks[number + 1 :] for at in each.positions]
        rest = [*message.parts[index + 1 :], *(part for at in (*beside, *later) for part in self._messages[at].parts)]
        calls = [(self._messages[at], at in later) for at in (*beside, *later) if self._messages[at].call]
        return all(part.kind == "opaque" and part.pair_id in self._open_pairs for part in rest) and all(
            _maker(call, of_any_reply=is_later) == _maker(message, of_any_reply=is_later) for call, is_later in calls
        )

    def _omit_open_pairs(self) -> None:
        for block, position, index in self._open_pairs.values():
            self._omit(block, position, index)
        self._open_pairs = {}

    def _omit(self, block: Block, position: int, index: int) -> None:
        block.omitted |= {(position, index)}
        self._log.add("dropped", HALF_PAIR, message=self._messages[position], path=f"parts[{index}]")


def _positions(left: _Abandoned | None) -> Iterator[int]:
    while left is not None:
        yield left.position
        left = left.rest


def _maker(message: Message, *, of_any_reply: bool) -> Origin | None:
    origin = message.origin
    if origin is None or not of_any_reply:
        return origin
    return origin.model_copy(update={"response_id": None})
