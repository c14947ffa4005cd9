"""Build replies in the same way from a complete response and from a stream (law 8: both give the same reply).

    complete body ──decode──▶ parts and calls ──▶ ReplyBuilder ──finish──▶ Reply
    stream        ──events──▶ Fold (the contents of BlockEnds count) ──▶ ReplyBuilder ──▶ Reply

Neighbouring parts become one message of the kind `parts`, and each call becomes a message of its own, in order. An
empty part (no text, no state, no citation) is left out. A call with the id, name and arguments of an earlier call was
sent twice: the second is dropped, with a loss.

Law 12, no incomplete call runs: a call can run only if its arguments are known to be complete.

    the reply ended by itself                                           every call is finished
    the API marked the call (`is_finished`)                             the mark decides, however the reply ended
    the API sends one block after another, and another block follows    the call is finished
    the API guarantees that all calls are complete                      every call is finished
    the arguments are text that closes a JSON object with members       the call is finished
    anything else                                                       the call is unfinished

Empty arguments prove nothing: a call that was cut off before its first argument looks like a call without arguments.
An object that the vendor parsed proves nothing either: it may contain only the members that were complete when the
reply was cut off. An unfinished call gets `invalid_arguments` and `cut_off`; answering it gives an error result.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from sabir.base.failures import Loss, ResponseInvalid
from sabir.base.values import JSONValue, encode_json
from sabir.contract.scope import DecodeScope
from sabir.vocabulary.messages import Message, OptionCallPayload, Origin, PartsPayload, Payload
from sabir.vocabulary.parts import KnownPart, Part, ReasoningPart, RefusalPart, TextPart
from sabir.vocabulary.reply import (
    Alternative,
    BlockDelta,
    BlockEnd,
    BlockStart,
    FinishedCalls,
    FinishReason,
    Reply,
    ReplyEnd,
    ReplyStart,
    StreamBroken,
    StreamEvent,
    Usage,
)

_TEXTS = (TextPart, ReasoningPart, RefusalPart)
_TEXT_PARTS: Mapping[str, Callable[..., KnownPart]] = dict(zip(("text", "reasoning", "refusal"), _TEXTS, strict=True))
ENDED_BY_ITSELF: frozenset[FinishReason] = frozenset({"stop", "option_calls", "native_calls"})
"""Finish reasons of replies that the model ended itself. After any other reason, the last block may be unfinished."""


class ReplyBuilder:
    """Collects the parts and option calls of one answer, in order, and builds the Reply. Use in `Dialect.decode`.

    `scope` is the DecodeScope, `blocks` are parts and calls to start with. Adjacent parts become one message, and each
    call becomes a message of its own. The constructor and `add` raise ResponseInvalid for more blocks than
    `Settings.bounds.blocks` allows.
    """

    def __init__(self, scope: DecodeScope, blocks: Iterable[Part | OptionCallPayload] = ()) -> None:
        self._scope = scope
        self._number = 0
        self._payloads: list[OptionCallPayload | list[Part]] = []
        self._marks: dict[int, bool] = {}
        for block in blocks:
            self.add(block)

    def add(self, block: Part | OptionCallPayload, *, is_finished: bool | None = None) -> None:
        """Add the next part or option call. A part for which `is_empty` is True is ignored.

        `is_finished` says whether the API marked the arguments of a call as complete; None if the API has no such mark.
        False makes `finish` mark the call as `cut_off`.
        """
        self._number += 1
        self._scope.check_blocks(self._number)
        if isinstance(block, OptionCallPayload):
            if is_finished is not None:
                self._marks[len(self._payloads)] = is_finished
            self._payloads.append(block)
        elif self.is_empty(block):
            return
        elif self._payloads and isinstance(self._payloads[-1], list):
            self._payloads[-1].append(block)
        else:
            self._payloads.append([block])

    @staticmethod
    def is_empty(part: Part) -> bool:
        """Return whether the part is a text, reasoning or refusal part without text, state and citations."""
        if not isinstance(part, _TEXTS) or part.text or part.state_json is not None:
            return False
        return not (isinstance(part, TextPart) and part.citations)

    def _drop_repeated_calls(self) -> list[Loss]:
        """Remove every call that has the id, name and arguments of an earlier call. Return a loss for each."""
        calls: set[tuple[str, ...]] = set()
        losses: list[Loss] = []
        payloads, self._payloads = self._payloads, []
        for payload in payloads:
            if isinstance(payload, OptionCallPayload):
                text = payload.raw_arguments if payload.invalid_arguments else None
                call = (payload.invocation_id, payload.option_name, text or payload.arguments_json)
                if call in calls:
                    reason = f"the answer contains the call {call[0]!r} of {call[1]!r} more than once; one was read"
                    losses.append(Loss(kind="dropped", reason=reason))
                    continue
                calls.add(call)
            self._payloads.append(payload)
        return losses

    def messages(self, origin: Origin) -> tuple[Message, ...]:
        """Return the messages for the parts and calls so far, each with a new id and this origin. For the messages of
        an Alternative or of a stored request; `finish` calls it for a Reply.
        """
        payloads = [PartsPayload(parts=tuple(each)) if isinstance(each, list) else each for each in self._payloads]
        if not payloads:
            return ()
        first = Message(id=Message.new_id(), policy=self._scope.policy, origin=origin, payload=payloads[0])
        shared, fields_set = vars(first), first.model_fields_set  # the others have the same, valid fields
        others = ({**shared, "id": Message.new_id(), "payload": each} for each in payloads[1:])
        return (first, *(Message.construct_unchecked(values, {*fields_set}) for values in others))

    def finish(
        self,
        *,
        finish_reason: FinishReason,
        raw_finish_reason: str | None = None,
        usage: Usage | None = None,
        origin: Origin,
        losses: Iterable[Loss] = (),
        alternatives: Iterable[Alternative] = (),
        details: JSONValue = None,
        finished_calls: FinishedCalls = "unknown",
    ) -> Reply:
        """Return the Reply. Option calls that may be incomplete are marked `cut_off`, and repeated calls are removed
        with a loss.

        `finish_reason` decides whether calls may be incomplete: after "stop", "option_calls" and "native_calls" they
        are complete, unless `add` was called with `is_finished` False. `raw_finish_reason` is the vendor's own word.
        `details` is a JSON object of response fields that Reply has no field for, or None. `finished_calls` says which
        calls of a cut-off reply the API guarantees to be complete: "unknown" (none), "followed" (calls that another
        block follows) or "all".
        """
        for position, call in cut_off_calls(self._payloads, finish_reason, finished_calls, self._marks).items():
            self._payloads[position] = call
        losses = (*losses, *self._drop_repeated_calls())
        return Reply(
            messages=self.messages(origin),
            finish_reason=finish_reason,
            raw_finish_reason=raw_finish_reason,
            usage=usage or Usage(),
            origin=origin,
            losses=losses,
            alternatives=tuple(mark_unfinished(each, finished_calls) for each in alternatives),
            details=None if details is None else encode_json(details),
        )


def cut_off_calls(
    payloads: Sequence[Payload | list[Part]], end: FinishReason, finished: FinishedCalls, marks: Mapping[int, bool]
) -> dict[int, OptionCallPayload]:
    """Return the calls of a reply that may be incomplete, by position, as copies with `cut_off` True.

    `end` is the reply's finish reason, and `finished` says which calls the API guarantees to be complete. `marks` maps
    a call's position to the API's own mark: True for complete.
    """
    calls: dict[int, OptionCallPayload] = {}
    if marks or end not in ENDED_BY_ITSELF:
        for position, call in enumerate(payloads):
            if not isinstance(call, OptionCallPayload):
                continue
            is_sure = finished == "all" or (finished == "followed" and position < len(payloads) - 1)
            if not marks.get(position, end in ENDED_BY_ITSELF or is_sure or _is_closed_text(call)):
                calls[position] = call.model_copy(update={"invalid_arguments": True, "cut_off": True})
    return calls


def _is_closed_text(call: OptionCallPayload) -> bool:
    """Return whether the arguments are text that closes a JSON object with at least one member."""
    return call.raw_arguments is not None and not call.invalid_arguments and call.arguments_json != "{}"


def mark_unfinished(alternative: Alternative, finished_calls: FinishedCalls) -> Alternative:
    """Return the alternative with its unfinished calls marked as `cut_off`. `finished_calls` is the value for the
    reply.

    The alternative may have ended for another reason than the reply, so "all" counts as "followed".
    """
    payloads = [message.payload for message in alternative.messages]
    finished_calls = "unknown" if finished_calls == "unknown" else "followed"
    if not (calls := cut_off_calls(payloads, alternative.finish_reason, finished_calls, {})):
        return alternative
    messages = enumerate(alternative.messages)
    marked = (each.model_copy(update={"payload": calls[at]}) if at in calls else each for at, each in messages)
    return alternative.model_copy(update={"messages": tuple(marked)})


@dataclass(slots=True)
class _Block:
    start: BlockStart
    texts: list[str] = field(default_factory=list)
    end: BlockEnd | None = None


class Fold:
    """Builds the Reply from the events of a stream. Use Fold in `Dialect.decode` if a complete response is easiest to
    read as a stream.

    Call `feed` for each event, then `reply`. Blocks are ordered by their index, whatever the order of their starts.
    """

    def __init__(self, scope: DecodeScope) -> None:
        self._scope = scope
        self._blocks: dict[int, _Block] = {}
        self._start: ReplyStart | None = None
        self._end: ReplyEnd | None = None
        self._reply: Reply | None = None
        self.ended = False
        """Whether a ReplyEnd was fed."""

    @property
    def started(self) -> bool:
        """Whether a BlockStart was fed."""
        return bool(self._blocks)

    def has_grown(self, index: int) -> bool:
        """Return whether the block with this index received a BlockDelta. Raises KeyError for an unknown index."""
        return bool(self._blocks[index].texts)

    def feed(self, event: StreamEvent) -> None:
        """Add the next event. Raises ResponseInvalid if the event is out of order, or for too many blocks.

        ReplyStart must be the first event and ReplyEnd the last, after the ends of all blocks; a block's delta and end
        must follow its start. Each block has its own index.
        """
        if isinstance(event, BlockDelta):
            self._find_open(event, event.kind).texts.append(event.text)
            return
        if self._end is not None or (self._start is None) is not isinstance(event, ReplyStart):
            raise self._out_of_order(event)
        if isinstance(event, BlockStart):
            if event.index in self._blocks:
                raise self._out_of_order(event)
            self._blocks[event.index] = _Block(event)
            self._scope.check_blocks(len(self._blocks))
        elif isinstance(event, BlockEnd):
            self._find_open(event, event.kind).end = event
        elif isinstance(event, ReplyStart):
            self._start = event
        else:
            if any(block.end is None for block in self._blocks.values()):
                raise self._out_of_order(event)
            self._end, self.ended = event, True

    def _find_open(self, event: BlockDelta | BlockEnd, kind: str) -> _Block:
        """Return the open block of an event. Raises ResponseInvalid if there is none of this kind."""
        block = self._blocks.get(event.index)
        if block is None or block.end is not None or block.start.kind != kind:
            raise self._out_of_order(event)
        return block

    def _out_of_order(self, event: StreamEvent) -> ResponseInvalid:
        where = f" of block {event.index}" if not isinstance(event, ReplyStart | ReplyEnd) else ""
        return self._scope.invalid_answer(f"streamed {event.type}{where} out of order; send the request again")

    def partial(self) -> Reply:
        """Return the reply as far as it has arrived; after ReplyEnd, the complete reply.

        An unfinished text, reasoning or refusal becomes a part with the characters so far. An unfinished medium, opaque
        block or option call becomes a loss; `details["unfinished_calls"]` contains the id, the name and the argument
        text so far of each unfinished call. A finished call is marked `cut_off` unless its arguments are certainly
        complete. Before ReplyEnd, the finish reason is "other".
        """
        return self.reply() if self._end else self._build(ReplyEnd(finish_reason="other"))

    def reply(self) -> Reply:
        """Return the complete reply, the same object each time. Raises StreamBroken, with the partial reply, if
        ReplyEnd was not fed.
        """
        if self._end is None:
            target = self._scope.target
            message = f"{target} ended its stream without an end marker; the received part is in `partial`"
            raise StreamBroken(message, partial=self.partial(), provider=target.provider)
        if self._reply is None:
            self._reply = self._build(self._end)
        return self._reply

    def _build(self, end: ReplyEnd) -> Reply:
        """Return the reply of the blocks so far. Blocks without an end are shortened texts, or losses."""
        builder, losses, calls = ReplyBuilder(self._scope), list(end.losses), []
        for _, block in sorted(self._blocks.items()):
            start, text = block.start, "".join(block.texts)
            if block.end is not None:
                builder.add(block.end.block, is_finished=block.end.is_finished)
            elif start.kind in _TEXT_PARTS:
                builder.add(_TEXT_PARTS[start.kind](text=text))
            else:
                losses.append(_unfinished_loss(start, text))
                if start.kind == "option_call":
                    names = {"invocation_id": start.invocation_id, "option_name": start.option_name}
                    calls.append({**names, "arguments": text})
        return builder.finish(
            finish_reason=end.finish_reason,
            raw_finish_reason=end.raw_finish_reason,
            usage=end.usage,
            origin=end.origin or (self._start.origin if self._start else self._scope.origin()),
            losses=losses,
            alternatives=end.alternatives,
            details={"unfinished_calls": calls} if calls else end.details_json,
            finished_calls=end.finished_calls,
        )


def _unfinished_loss(start: BlockStart, text: str) -> Loss:
    name = f" of {start.option_name!r}" if start.option_name else ""
    reason = f"only the first {len(text)} characters of the {start.kind}{name} arrived"
    return Loss(kind="dropped", path=f"blocks[{start.index}]", reason=reason)
