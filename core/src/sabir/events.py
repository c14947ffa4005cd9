"""Stream events: noun-start, noun-delta, noun-end.

    reply-start ─▶ (text|reasoning|refusal|option_call|media|opaque)-start ─▶ -delta … ─▶ -end … ─▶ reply-end

A block is one part or one option call of the reply, in order, told apart by `index`. Its end carries the whole
part or call, so that folding the ends gives the reply (law 8); the deltas are for whoever shows it meanwhile.
"""

from typing import Literal, TypeAlias

from pydantic import Field

from sabir.losses import Loss
from sabir.messages import OptionCallPayload, Origin
from sabir.models import Frozen, assemble
from sabir.parts import Part
from sabir.reply import Alternative, FinishReason, Usage
from sabir.values import JSONDocumentField

BlockKind: TypeAlias = Literal["text", "reasoning", "refusal", "media", "opaque", "option_call"]


class ReplyStart(Frozen):
    """The provider began to answer."""

    type: Literal["reply-start"] = "reply-start"
    origin: Origin


class BlockStart(Frozen):
    """A block begins; an option call already has its ids."""

    index: int
    kind: BlockKind
    invocation_id: str = ""
    option_name: str = ""

    @property
    def type(self) -> str:
        """For example `text-start`."""
        return f"{self.kind}-start"


class BlockDelta(Frozen):
    """More characters of a block: of its text, or of a call's argument text."""

    index: int
    kind: BlockKind
    text: str

    @property
    def type(self) -> str:
        """For example `text-delta`."""
        return f"{self.kind}-delta"


def block_delta(index: int, kind: BlockKind, text: str) -> BlockDelta:
    """A BlockDelta of values that a decoder has checked already: a stream holds thousands of them."""
    return assemble(BlockDelta, {"index": index, "kind": kind, "text": text}, {"index", "kind", "text"})


class BlockEnd(Frozen):
    """A block is whole."""

    index: int
    block: Part | OptionCallPayload

    @property
    def kind(self) -> str:
        """The block's kind."""
        return self.block.kind

    @property
    def type(self) -> str:
        """For example `text-end`."""
        return f"{self.block.kind}-end"


class ReplyEnd(Frozen):
    """The terminal marker: why the reply ended, and what it cost."""

    type: Literal["reply-end"] = "reply-end"
    finish_reason: FinishReason
    raw_finish_reason: str | None = None
    usage: Usage = Usage()
    origin: Origin | None = None
    losses: tuple[Loss, ...] = ()
    alternatives: tuple[Alternative, ...] = ()
    details_json: JSONDocumentField | None = Field(default=None, alias="details")


StreamEvent: TypeAlias = ReplyStart | BlockStart | BlockDelta | BlockEnd | ReplyEnd
