"""Law 1, no orphan, and the closed prefix: messages → blocks of complete pairs.

    message ─▶ side ─▶ block            a block is one turn; an assistant block also holds the results of its calls
    result  ─▶ its call (`vocabulary.pairs`)     if the call was abandoned, both render at the result's place

A user or system message abandons open calls. An abandoned call is left out until a result comes, or is answered by an
error; the table of calls says which. A prefix closes where every call in it is answered or abandoned and a message of
another side follows; closed blocks are final. State that outlives a rendering holds positions, never messages.
"""

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, NamedTuple, TypeAlias, TypeVar

from sabir.base.failures import Loss
from sabir.contract.turns import LossLog, Side, TurnScope, new_tuple
from sabir.rendering.pieces import goes_back
from sabir.vocabulary.messages import (
    Message,
    OptionCallPayload,
    OptionResultPayload,
    Origin,
    Stack,
    Unanswered,
    UnknownHint,
)
from sabir.vocabulary.parts import Part

NO_RESULT = "the option call has no result; only complete pairs are sent"
STANDS_IN = "the option call has no result; an error stands for it"
HALF_PAIR = "the provider's own call and its output are sent only together; the other half is missing"


_NOTHING = frozenset[Any]()
Member = TypeVar("Member")


class Waiting(NamedTuple):
    """The state of pairing after a closed prefix."""

    abandoned: Mapping[str, Stack] = {}
    """Calls without a result, by invocation id."""
    is_leading: bool = True
    """Whether nothing but system messages has come yet."""


_NONE_WAITING = Waiting(is_leading=False)


class Block:
    """One turn being gathered: positions of its messages and, for calls that have one, of their results."""

    __slots__ = ("answers", "closer", "late", "losses", "omitted", "positions", "side", "waiting", "words")

    def __init__(self, side: Side, positions: list[int]) -> None:
        self.side = side
        self.positions = positions
        self.answers: dict[int, int | None] = {}
        """The position of a call → that of its result; None where an error stands for it."""
        self.words: Block | None = None
        """What the user says in the turn of the results, where the table of calls joins them."""
        self.late: AbstractSet[int] = _NOTHING
        """Positions of system messages after the start, which are among the user's."""
        self.omitted: AbstractSet[tuple[int, int]] = _NOTHING
        """(position, part index) of opaque parts whose other half is missing."""
        self.losses: Sequence[Loss] = ()
        """Those of what closed, or is still open, from this block on."""
        self.closer = 0
        """The position of the message that closed all blocks before this one; 0 where they are open."""
        self.waiting = _NONE_WAITING
        """What those leave behind."""


class Paired(NamedTuple):
    """Blocks of a history, how many of them are final, and losses that belong to none of them."""

    blocks: list[Block]
    final: int
    losses: list[Loss]


def side_of(message: Message, speaks_as: str) -> Side:
    """The side whose turn a message belongs to: parts follow their hint if there is one; calls are the assistant's."""
    kind, hint = message.payload.kind, message.role_hint_for_llm
    if kind != "parts":
        return "results" if kind == "option_result" else "assistant"
    if hint is not None and not isinstance(hint, UnknownHint):
        return "user" if hint == "tool" else hint
    return "assistant" if message.policy == speaks_as else "system" if message.policy == "system" else "user"


def pair(messages: Sequence[Message], scope: TurnScope) -> Paired:
    """The messages as blocks of complete pairs, by the tables of a scope."""
    (whole,) = pair_apart(messages, scope, 0, Waiting(), len(messages) + 1)
    return whole


def pair_apart(
    messages: Sequence[Message], scope: TurnScope, start: int, waiting: Waiting, apart: int
) -> Iterator[Paired]:
    """Pair as `pair` does, from `start` on: after every `apart` messages yield the final blocks, at the end the rest.

    `waiting` is the state of pairing after the prefix that closed at `start`.
    """
    pairing = _Pairing(messages, scope, waiting)
    for begin in range(start, len(messages), apart):
        if begin > start:
            yield pairing.cut()
        for position, message in enumerate(messages[begin : begin + apart], begin):
            payload = message.payload
            if payload.kind == "parts":
                pairing.take_parts(position, message, payload.parts)
            elif payload.kind == "option_call":
                pairing.take_call(position, payload)
            elif payload.kind == "option_result":
                pairing.take_result(position, payload)
            else:
                reason = f"messages of the kind {payload.document['kind']!r} are unknown to this version"
                pairing.log.add("dropped", reason, message=message)
    yield pairing.finish()


_Halves: TypeAlias = tuple[Mapping[str | None, int], Sequence[int], bool]
_NO_HALVES: _Halves = {}, (), False


class _Pairing:
    """Gathers blocks from messages taken one by one, and notes which became final."""

    def __init__(self, messages: Sequence[Message], scope: TurnScope, waiting: Waiting) -> None:
        self._messages = messages
        self._scope = scope
        self._calls, self._roles = scope.tables.calls, scope.tables.roles
        self._unanswered = Unanswered(waiting.abandoned)
        self._is_leading = waiting.is_leading
        self._open: dict[int, Block] = {}
        """Calls that wait for a result in their own turn, by position."""
        self._open_pairs: dict[str | None, tuple[Block, int, int]] = {}
        self._blocks: list[Block] = []
        self._final = 0
        """How many of the blocks are final."""
        self.log = LossLog()

    def cut(self) -> Paired:
        """Remove and return the final blocks; the others stay."""
        final, self._blocks = self._blocks[: self._final], self._blocks[self._final :]
        self._final = 0
        return new_tuple(Paired, (final, len(final), []))

    def finish(self) -> Paired:
        """The remaining blocks, with every loss that a later message could undo."""
        if self._open_pairs:
            self._keep_paused()
            self._omit_open_pairs()
        if self._open and self._calls.incomplete == "answered":
            self._abandon()
        if self._open or self._unanswered.stacks:
            for position in self._unanswered.positions():
                self.log.add("dropped", NO_RESULT, message=self._messages[position])
        if self._final < len(self._blocks):
            self._blocks[self._final].losses, self.log.losses = self.log.losses, []
        return new_tuple(Paired, (self._blocks, self._final, self.log.losses))

    def take_call(self, position: int, call: OptionCallPayload) -> None:
        """Take an option call, which waits for its result."""
        self._open[position] = self._place(position, position, "assistant")
        self._unanswered.take_call(position, call)

    def take_parts(self, position: int, message: Message, parts: Sequence[Part]) -> None:
        """Take a message of parts; it abandons open calls unless it is the assistant's."""
        side, hint = side_of(message, self._scope.speaks_as), message.role_hint_for_llm
        is_late = side == "system" and not self._is_leading and self._roles.later_system != "inline"
        side = "user" if is_late else side
        if self._open:
            self._unanswered.end_run()
        may_pair = len(parts) > 1 or parts[0].kind == "opaque"
        opened, lonely, is_answer = self._read_halves(message, side) if may_pair else _NO_HALVES
        if side != "assistant" and (self._open or self._open_pairs):
            self._abandon()
        block = self._place(position, position, side, is_answer=is_answer)
        if is_late:
            block.late = _with(block.late, position)
            if self._roles.later_system == "user":
                reason = "a system message after the start renders as user on this wire"
                self.log.add("downgraded", reason, message=message)
        if hint == "tool":
            self.log.add("downgraded", "parts with the hint 'tool' render as user", message=message)
        elif isinstance(hint, UnknownHint):
            self.log.add("downgraded", f"the role hint {hint!r} is unknown to this version", message=message)
        if may_pair:
            for index in lonely:
                self._omit(block, position, index)
            self._open_pairs |= {pair_id: (block, position, index) for pair_id, index in opened.items()}

    def take_result(self, position: int, result: OptionResultPayload) -> None:
        """Take a result: it goes to its call; if the call was abandoned, both render at the result's place."""
        message, call = self._messages[position], self._unanswered.next_of(result)
        if call is None:
            reason = f"no earlier unanswered call has the invocation id {result.invocation_id!r}"
            self.log.add("dropped", reason, message=message)
            return
        block = self._open.pop(call, None)
        if block is None:
            block = self._place(position, call, "assistant")
            reason = "its result came after a later turn; call and result render there"
            self.log.add("relocated", reason, message=self._messages[call])
        if block is not self._blocks[-1]:
            self.log.add("relocated", "the result renders right after the turn of its call", message=message)
        block.answers[call] = position
        self._unanswered.take_result(result)

    def _place(self, position: int, at: int, side: Side, *, is_answer: bool = False) -> Block:
        """Put the message at `at` into its block, and return the block.

        If a new block begins, the message at `position` closes the blocks before it; a message that answers an open
        pair closes none.
        """
        blocks = self._blocks
        last = blocks[-1] if blocks else None
        if last and last.answers and side == "user" and self._calls.results == "with_user":
            if last.words is None:
                last.words = Block(side, [at])
                return last.words
            last = last.words
        if last and last.side == side and not last.answers:
            last.positions.append(at)
            return last
        block = Block(side, [at])
        if last and not (self._open or self._open_pairs or is_answer):
            if self.log.losses:
                blocks[self._final].losses, self.log.losses = self.log.losses, []
            self._final = len(blocks)
            abandoned = self._unanswered.stacks
            block.closer = position
            if abandoned or self._is_leading:
                block.waiting = Waiting(dict(abandoned), self._is_leading)
        self._is_leading = self._is_leading and side == "system"
        blocks.append(block)
        return block

    def _abandon(self) -> None:
        """Stop waiting for the results of open calls and for the other halves of open pairs."""
        if self._calls.incomplete == "answered":
            for position, block in self._open.items():
                block.answers[position] = None
                self.log.add("synthesized", STANDS_IN, message=self._messages[position])
            self._unanswered = Unanswered()
        self._open = {}
        self._omit_open_pairs()

    def _read_halves(self, message: Message, side: Side) -> _Halves:
        """The pairs that a message opens (pair id → part index), and indices of parts whose other half is missing.

        At last whether it ends earlier pairs: those are open no longer. What does not go back to where it came from is
        no half of anything.
        """
        opened: dict[str | None, int] = {}
        lonely, waiting = [], len(self._open_pairs)
        for index, part in enumerate(message.parts):
            if part.kind != "opaque" or part.pair_id is None or not goes_back(part, message, side, self._scope):
                continue
            here, earlier = opened.pop(part.pair_id, None), self._open_pairs.pop(part.pair_id, None)
            if part.pair == "opens":
                opened[part.pair_id] = index
                lonely += [] if here is None else [here]
                if earlier is not None:
                    self._omit(*earlier)
            elif here is None and earlier is None:
                lonely.append(index)
        return opened, lonely, len(self._open_pairs) < waiting

    def _keep_paused(self) -> None:
        """Keep the open pairs at which their maker may have paused, if the wire takes unfinished pairs."""
        if self._calls.unfinished_pairs == "dropped":
            return
        openers = self._open_pairs.items()
        paused = {each for each, opener in openers if opener[0].side == "assistant" and self._is_paused(*opener)}
        self._open_pairs = {pair_id: each for pair_id, each in self._open_pairs.items() if pair_id not in paused}

    def _is_paused(self, block: Block, position: int, index: int) -> bool:
        """Whether only openers and calls follow an opener: of the same reply in its block, of the same maker later."""
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
        block.omitted = _with(block.omitted, (position, index))
        self.log.add("dropped", HALF_PAIR, message=self._messages[position], path=f"parts[{index}]")


def _maker(message: Message, *, of_any_reply: bool) -> Origin | None:
    origin = message.origin
    if origin is None or not of_any_reply:
        return origin
    return origin.model_copy(update={"response_id": None})


def _with(held: AbstractSet[Member], more: Member) -> AbstractSet[Member]:
    """The set with one more member; a set is made for the first member, because most blocks have none."""
    grown = held if isinstance(held, set) else set(held)
    grown.add(more)
    return grown
