"""Group messages into blocks, so that each call is sent with its result, and no result without its call (law 1).

    message ─▶ side ─▶ block            a block is one turn; an assistant block also has the results of its calls
    result  ─▶ its call                 if the call was abandoned, both are sent in the place of the result

A user or system message abandons open calls: calls without a result. `Calls.incomplete` says whether an abandoned call
is left out until a result comes, or answered by an error. Blocks become final (closed) if each call in them is answered
or abandoned, and a message of another side follows. State that is stored after a rendering contains positions of
messages, never messages.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from sabir.base.failures import Loss, LossKind
from sabir.contract.turns import Side, TurnScope, new_tuple
from sabir.rendering.pieces import goes_back
from sabir.vocabulary.messages import Message, OptionCallPayload, OptionResultPayload, Origin, Stack, Unanswered
from sabir.vocabulary.parts import VENDOR_PARTS, Part

NO_RESULT = "the option call has no result, and APIs accept calls only together with their results"
STANDS_IN = "the option call has no result, so an error result was sent for it"
HALF_PAIR = "the provider's own call and its output can only be sent together, and one of them is missing"


class PairingState(NamedTuple):
    """The state of pairing after the final blocks, with which a later rendering resumes."""

    abandoned: Mapping[str, Stack] = {}
    """Invocation id → the abandoned calls with this id."""
    is_leading: bool = True
    """Whether all messages so far were system messages."""


_NOTHING_ABANDONED = PairingState(is_leading=False)


class Block:
    """One turn under construction: the positions of its messages, and for calls the positions of their results."""

    words: "Block | None" = None
    """The user's messages that follow the results in the same turn, if `Calls.results` is "with_user"."""
    losses: Sequence[Loss] = ()
    """The losses of this block and of the following blocks that became final together with it."""
    closer = 0
    """The position of the message that made all blocks before this one final; 0 if there is no such message.
    """
    waiting = _NOTHING_ABANDONED
    """The state of pairing after the blocks before this one."""

    def __init__(self, side: Side, positions: list[int]) -> None:
        self.side = side
        self.positions = positions
        self.answers: dict[int, int | None] = {}
        """Position of a call → position of its result; None if an error is sent instead of a result."""
        self.late: set[int] = set()
        """The positions of later system messages, which are in a block of the user."""
        self.omitted: set[tuple[int, int]] = set()
        """(position, part index) of opaque and native parts whose other half is missing."""


_Opener: TypeAlias = tuple[Block, int, int]
"""An opaque or native part that opens a pair: its block, the position of its message, the index of the part."""


class Paired(NamedTuple):
    """The result of `pair_messages`.

    `blocks` are the blocks, in order. The first `final` of them cannot change, whatever messages follow. `losses` are
    the losses that no block contains in its `losses`.
    """

    blocks: list[Block]
    final: int
    losses: list[Loss]


_HINTED: Mapping[str | None, Side] = {"system": "system", "user": "user", "assistant": "assistant", "tool": "user"}


def side_of(message: Message, speaks_as: str) -> Side:
    """Return the side whose turn a message belongs to. `speaks_as` is the policy whose messages are the model's own.

    Option calls belong to "assistant" and option results to "results". The role hint of another message decides if it
    has one ("tool" counts as "user"). Without a known hint, the policy decides: `speaks_as` gives "assistant", "system"
    gives "system", and every other policy "user".
    """
    kind = message.payload.kind
    if kind != "parts":
        return "results" if kind == "option_result" else "assistant"
    by_policy: Side = "assistant" if message.policy == speaks_as else "system" if message.policy == "system" else "user"
    return _HINTED.get(message.role_hint_for_llm, by_policy)


def pair_messages(messages: Sequence[Message], scope: TurnScope) -> Paired:
    """Group the messages of a conversation into blocks, so that every option call that is sent is next to its result.
    Return the blocks and the losses.

    `scope` supplies the tables. Core does this before it calls `encode_turn`; tests of a dialect may call
    `pair_messages`, and TurnMaker for each block.
    """
    (paired,) = pair_apart(messages, scope, 0, PairingState(), len(messages) + 1)
    return paired


def pair_apart(
    messages: Sequence[Message], scope: TurnScope, start: int, waiting: PairingState, apart: int
) -> Iterator[Paired]:
    """Pair the messages from position `start` on. After every `apart` messages, yield the blocks that became final; at
    the end, yield all other blocks.

    `waiting` is the state of pairing after the messages before `start`.
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
                reason = f"sending messages of the kind {payload.document['kind']!r} needs a newer version of sabir"
                pairing.lose("dropped", reason, position)
    yield pairing.finish()


class _Pairing:
    """Groups messages into blocks one by one, and tracks which blocks became final."""

    def __init__(self, messages: Sequence[Message], scope: TurnScope, waiting: PairingState) -> None:
        self._messages = messages
        self._scope = scope
        self._calls, self._roles = scope.tables.calls, scope.tables.roles
        self._policy_sides: Mapping[str, Side] = {"system": "system", scope.speaks_as: "assistant"}
        """The side of each policy whose messages without a hint are not the user's."""
        self._unanswered = Unanswered(waiting.abandoned)
        self._is_leading = waiting.is_leading
        self._open: dict[int, Block] = {}
        """Position → block of each call without a result in the present turn."""
        self._open_pairs: dict[str, _Opener] = {}
        """Pair id → the part that opens a pair whose second half has not come yet."""
        self._blocks: list[Block] = []
        self._final = 0
        """The number of final blocks."""
        self._losses: list[Loss] = []
        """The losses of the blocks that are not final."""

    def lose(self, kind: LossKind, reason: str, position: int, path: str = "") -> None:
        """Add the loss of a message."""
        self._losses.append(Loss(kind=kind, message_id=self._messages[position].id, path=path, reason=reason))

    def cut(self) -> Paired:
        """Remove the final blocks and return them."""
        final, self._blocks = self._blocks[: self._final], self._blocks[self._final :]
        self._final = 0
        return new_tuple(Paired, (final, len(final), []))

    def finish(self) -> Paired:
        """End the conversation here: return the remaining blocks, with losses for calls and pairs that are
        incomplete.
        """
        if self._open_pairs:
            if self._calls.unfinished_pairs == "kept_at_the_end":
                self._keep_paused()
            self._omit_open_pairs()
        if self._open and self._calls.incomplete == "answered":
            self._abandon()
        if self._open or self._unanswered.stacks:
            for position in self._unanswered.positions():
                self.lose("dropped", NO_RESULT, position)
        if self._final < len(self._blocks):
            self._blocks[self._final].losses, self._losses = self._losses, []
        return new_tuple(Paired, (self._blocks, self._final, self._losses))

    def take_call(self, position: int, call: OptionCallPayload) -> None:
        """Add an option call, which has no result yet."""
        self._open[position] = self._place_message(position, position, "assistant")
        self._unanswered.run.append((call.invocation_id, position))

    def take_parts(self, position: int, message: Message, parts: Sequence[Part]) -> None:
        """Add a message of parts. A message that is not the assistant's abandons open calls."""
        hint, is_late, is_answer, halves = message.role_hint_for_llm, False, False, None
        side = self._policy_sides.get(message.policy, "user")  # the same as side_of, but faster
        if hint is not None:
            side = _HINTED.get(hint, side)
        if side == "system" and not self._is_leading and self._roles.later_system != "inline":
            side, is_late = "user", True
        if len(parts) > 1 or isinstance(parts[0], VENDOR_PARTS):
            waiting = len(self._open_pairs)
            halves = self._read_halves(message, side)
            is_answer = len(self._open_pairs) < waiting
        if self._open or self._open_pairs:
            self._unanswered.end_run()
            if side != "assistant":
                self._abandon()
        block = self._place_message(position, position, side, is_answer)
        if is_late or hint is not None:
            self._note_place(block, position, hint, is_late)
        if halves:
            opened, unpaired = halves
            for index in unpaired:
                self._omit(block, position, index)
            self._open_pairs |= {pair_id: (block, position, index) for pair_id, index in opened.items()}

    def _note_place(self, block: Block, position: int, hint: str | None, is_late: bool) -> None:
        """Record a later system message, and add the losses of its place or of a role hint."""
        if is_late:
            block.late.add(position)
            if self._roles.later_system == "user":
                reason = "this API accepts system messages only at the start; this one was sent as a user message"
                self.lose("downgraded", reason, position)
        if hint == "tool":
            self.lose("downgraded", "parts with the role hint 'tool' were sent as a user message", position)
        elif hint is not None and hint not in _HINTED:
            self.lose("downgraded", f"the role hint {hint!r} is unknown to this version of sabir", position)

    def take_result(self, position: int, result: OptionResultPayload) -> None:
        """Add a result to its call. If the call was abandoned, both are sent in the place of the result."""
        identifier, unanswered = result.invocation_id, self._unanswered
        if unanswered.run:
            unanswered.end_run()
        if not (calls := unanswered.stacks.get(identifier)):
            if self._scope.has_stored_calls:
                self._place_message(position, position, "results")
                return
            self.lose("dropped", f"no earlier unanswered call has the invocation id {identifier!r}", position)
            return
        call = calls[0]
        block = self._open.pop(call, None)
        if block is None:
            block = self._place_message(position, call, "assistant")
            reason = "its result follows a later turn, so the call was moved to the place of the result"
            self.lose("relocated", reason, call)
        if block is not self._blocks[-1]:
            self.lose("relocated", "the result was moved to the place right after its call", position)
        block.answers[call] = position
        unanswered.answer(identifier)

    def _place_message(self, position: int, at: int, side: Side, is_answer: bool = False) -> Block:
        """Put the message at position `at` into the last block, or into a new block of this side. Return the block.

        `position` is the position of the message that is being added. If a new block begins, this message makes the
        earlier blocks final, unless calls or pairs are open or the message ends a pair (`is_answer`).
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
            if self._losses:
                blocks[self._final].losses, self._losses = self._losses, []
            self._final, block.closer = len(blocks), position
            if self._unanswered.stacks or self._is_leading:
                block.waiting = PairingState(dict(self._unanswered.stacks), self._is_leading)
        if self._is_leading:
            self._is_leading = side == "system"
        blocks.append(block)
        return block

    def _abandon(self) -> None:
        """Abandon all calls without a result and all pairs without a second half."""
        if self._calls.incomplete == "answered":
            for position, block in self._open.items():
                block.answers[position] = None
                self.lose("synthesized", STANDS_IN, position)
            self._unanswered = Unanswered()
        self._open = {}
        self._omit_open_pairs()

    def _read_halves(self, message: Message, side: Side) -> tuple[dict[str, int], list[int]] | None:
        """Return the pairs that a message opens (pair id → part index), and the indices of parts whose other half is
        missing.

        Earlier pairs that the message ends are removed. Parts that are not sent back to their origin are ignored.
        """
        opened: dict[str, int] = {}
        unpaired: list[int] = []
        for index, part in enumerate(message.parts):
            if not isinstance(part, VENDOR_PARTS) or part.pair_id is None:
                continue
            if not goes_back(part, message, side, self._scope):
                continue
            here, earlier = opened.pop(part.pair_id, None), self._open_pairs.pop(part.pair_id, None)
            if part.pair == "opens":
                opened[part.pair_id] = index
                unpaired += [] if here is None else [here]
                if earlier is not None:
                    self._omit(*earlier)
            elif here is None and earlier is None:
                unpaired.append(index)
        return (opened, unpaired) if opened or unpaired else None

    def _keep_paused(self) -> None:
        """Send the open pairs at which their provider may have paused: remove them from the pairs to leave out."""
        openers = self._open_pairs.items()
        paused = {each for each, opener in openers if opener[0].side == "assistant" and self._is_paused(*opener)}
        self._open_pairs = {pair_id: each for pair_id, each in openers if pair_id not in paused}

    def _is_paused(self, block: Block, position: int, index: int) -> bool:
        """Return whether a provider may have paused at this opener: only open pairs and calls follow. In its block,
        they must be of the same reply; later, of the same provider and model.
        """
        message = self._messages[position]
        number = next(number for number, each in enumerate(self._blocks) if each is block)
        following = block.positions[block.positions.index(position) + 1 :]
        later = [at for each in self._blocks[number + 1 :] for at in each.positions]
        rest = [
            *message.parts[index + 1 :],
            *(part for at in (*following, *later) for part in self._messages[at].parts),
        ]
        calls = [(self._messages[at], at in later) for at in (*following, *later) if self._messages[at].call]
        return all(isinstance(part, VENDOR_PARTS) and part.pair_id in self._open_pairs for part in rest) and all(
            _compared_origin(call, of_any_reply=is_later) == _compared_origin(message, of_any_reply=is_later)
            for call, is_later in calls
        )

    def _omit_open_pairs(self) -> None:
        for block, position, index in self._open_pairs.values():
            self._omit(block, position, index)
        self._open_pairs = {}

    def _omit(self, block: Block, position: int, index: int) -> None:
        block.omitted.add((position, index))
        self.lose("dropped", HALF_PAIR, position, f"parts[{index}]")


def _compared_origin(message: Message, *, of_any_reply: bool) -> Origin | None:
    origin = message.origin
    return origin.model_copy(update={"response_id": None}) if origin and of_any_reply else origin
