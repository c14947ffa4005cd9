"""The reply of a call: messages, finish reason, usage, origin, and the losses of the request and of the decoding.

    reply.messages ──▶ append to the conversation, all of them, before any result

A streamed reply comes in events, one block for each part or option call, told apart by `index`:

    reply-start ─▶ (text|reasoning|refusal|option_call|media|opaque)-start ─▶ -delta … ─▶ -end … ─▶ reply-end

The end of a block carries the whole part or call, so that folding the ends gives the reply (law 8); the deltas are for
programs that show it meanwhile. Errors that carry a reply, whole or partial, are defined here too.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import ClassVar, Literal, TypeAlias, TypeVar, cast

from pydantic import Field, TypeAdapter, ValidationError

from sabir.base.errors import SabirError, one_line
from sabir.base.failures import CallError, Loss, ResponseInvalid
from sabir.base.models import Frozen, StoredModel
from sabir.base.shown import Arguments, Plain
from sabir.base.values import JSONDocumentField, JSONValue, JSONView, encode_json, has_more_values
from sabir.vocabulary.messages import Message, OptionCall, OptionCallPayload, Origin
from sabir.vocabulary.parts import MediaPart, Part, Text
from sabir.vocabulary.settings import Bounds, Target

FinishReason: TypeAlias = Literal[
    "stop", "option_calls", "native_calls", "length", "content_filter", "paused", "error", "other"
]
"""Why an answer ended.

stop: the answer is whole · option_calls: options are to be called · native_calls: calls of the provider's own, opaque
parts of the reply, wait for the caller's answer · length: at a limit · content_filter: refused or filtered · paused:
goes on when the messages are sent again · error: the provider failed · other: none of these, see the raw reason
"""
FinishedCalls: TypeAlias = Literal["unknown", "followed", "all"]
"""The calls whose arguments a wire shows to be finished, in a reply that was cut off.

unknown: none of them · followed: blocks arrive one after another, so a call is finished if another block follows it ·
all: every call, because the reply ended for a reason that cuts no call off
"""
Output = TypeVar("Output")

MOST_VALUES = Bounds().most_values
"""The most JSON values of a text that `parse` reads: an answer's bounds count no values inside its texts."""


class Usage(StoredModel):
    """Tokens of one call; None where the provider did not say.

    `input_tokens` includes tokens read from or written to a cache, `output_tokens` includes reasoning.
    `details` holds the provider's own figures, verbatim.
    """

    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None
    reasoning_tokens: int | None = None
    details_json: JSONDocumentField | None = Field(default=None, alias="details")

    @property
    def total_tokens(self) -> int | None:
        """Input and output tokens together, or None if either is unknown."""
        if self.input_tokens is None or self.output_tokens is None:
            return None
        return self.input_tokens + self.output_tokens

    details: ClassVar = JSONView("details_json", "The provider's own figures, or None.")

    def __brief_args__(self) -> Arguments:
        """All but the provider's own figures."""
        return ((name, value) for name, value in super().__brief_args__() if name != "details")

    @classmethod
    def unchecked(
        cls,
        details: Mapping[str, JSONValue],
        *,
        input_tokens: int | None,
        output_tokens: int | None,
        cache_read_tokens: int | None = None,
        cache_write_tokens: int | None = None,
        reasoning_tokens: int | None = None,
    ) -> "Usage":
        """One of figures that a decoder has checked already, and the object in which the vendor gave them."""
        values = {
            "input_tokens": input_tokens,
            "output_tokens": output_tokens,
            "cache_read_tokens": cache_read_tokens,
            "cache_write_tokens": cache_write_tokens,
            "reasoning_tokens": reasoning_tokens,
            "details_json": encode_json(details),
        }
        return cls.construct_unchecked(values, set(values))

    def __str__(self) -> str:
        """The figures in one line."""
        told = ("?" if tokens is None else tokens for tokens in (self.input_tokens, self.output_tokens))
        return "{} in, {} out".format(*told)


class Alternative(Frozen):
    """A further answer of the same response, where the request asked for more than one."""

    messages: tuple[Message, ...]
    finish_reason: FinishReason
    raw_finish_reason: str | None = None


class FailedMember(Frozen):
    """A member of a fallback that was asked and did not answer.

    `error` is the class name of the error that it raised, `message` that error's text; `losses` are those of the
    request made for this member.
    """

    target: Target
    error: Text
    message: Text
    losses: tuple[Loss, ...] = ()


_CONTENT = ("messages", "origin", "details")
"""The fields of a reply that its repr shows by its properties, or not at all."""


class Reply(Frozen):
    """A provider's whole answer to one request.

    `finish_reason` is neutral, `raw_finish_reason` the provider's word. `details` holds fields of the response
    that have no neutral place (a service tier, log probabilities), verbatim. `attempts` counts the requests sent to
    the provider that answered; `failed_members` are those of a fallback that were asked before and did not answer.
    """

    messages: tuple[Message, ...]
    finish_reason: FinishReason
    raw_finish_reason: str | None = None
    usage: Usage = Usage()
    origin: Origin
    losses: tuple[Loss, ...] = ()
    alternatives: tuple[Alternative, ...] = ()
    details_json: JSONDocumentField | None = Field(default=None, alias="details")
    attempts: int = 1
    failed_members: tuple[FailedMember, ...] = ()

    details: ClassVar = JSONView("details_json", "The response's further fields, or None.")

    @cached_property
    def text(self) -> str:
        """All text of the reply, joined."""
        return "".join(message.text for message in self.messages)

    @cached_property
    def reasoning(self) -> str:
        """All reasoning text of the reply, joined."""
        return "".join(part.text for message in self.messages for part in message.parts if part.kind == "reasoning")

    @cached_property
    def refusal(self) -> str | None:
        """The model's refusal in its own words, or None."""
        texts = (part.text for message in self.messages for part in message.parts if part.kind == "refusal")
        return "".join(texts) or None

    @cached_property
    def media(self) -> tuple[MediaPart, ...]:
        """The media that the reply holds."""
        return tuple(part for message in self.messages for part in message.parts if part.kind == "media")

    @cached_property
    def option_calls(self) -> tuple[OptionCall, ...]:
        """The option calls that the model chose, in order; the `call` of each is not None."""
        return tuple(cast(OptionCall, message) for message in self.messages if message.kind == "option_call")

    def __brief_args__(self) -> Arguments:
        """What a program reads first; of several calls the names, of several losses the kinds."""
        called = ", ".join(call.call.option_name for call in self.option_calls)
        kinds = ", ".join(dict.fromkeys(loss.kind for loss in self.losses))
        counted = {
            "option_calls": Plain(f"<{len(self.option_calls)}: {called}>"),
            "losses": Plain(f"<{len(self.losses)}: {kinds}>"),
            "alternatives": Plain(f"<{len(self.alternatives)}>"),
            "failed_members": Plain(f"<{len(self.failed_members)}>"),
        }
        said = {name: getattr(self, name) for name in ("text", "refusal", "option_calls", "media")}
        said |= {name: value for name, value in super().__brief_args__() if name not in _CONTENT}
        for name, value in said.items():
            if value:
                yield name, counted[name] if name in counted and len(value) > 1 else value

    def parse(self, output: type[Output]) -> Output:
        """The reply's text as an instance of a pydantic model or any type that pydantic validates.

        Raises OutputRefused for a refusal or a filtered reply, OutputTruncated at a length limit, OutputInvalid for
        text that does not validate or has more JSON values than an answer may have; each carries the reply.
        """
        if self.refusal is not None or self.finish_reason == "content_filter":
            raise OutputRefused(f"the model refused: {one_line(self.refusal or self.text or 'no text', 200)}", self)
        if has_more_values(self.text, MOST_VALUES):
            raise OutputInvalid(f"the reply has more than {MOST_VALUES:,} JSON values; read `text` yourself", self)
        try:
            return TypeAdapter(output).validate_json(self.text)
        except ValidationError as error:
            name = getattr(output, "__name__", str(output))
            if self.finish_reason == "length":
                message = f"the reply for {name} was cut off at {len(self.text)} characters; raise max_output_tokens"
                raise OutputTruncated(message, self) from None
            first = error.errors(include_url=False)[0]
            place = ".".join(str(step) for step in first["loc"]) or "the text"
            raise OutputInvalid(f"the reply is no {name}: {place}: {first['msg']}", self) from error


class OutputError(SabirError):
    """A reply is not of the type that `parse` was asked for; `reply` is that reply."""

    def __init__(self, message: str, reply: Reply) -> None:
        super().__init__(message)
        self.reply = reply


class OutputInvalid(OutputError):
    """A reply's text does not validate."""


class OutputRefused(OutputError):
    """The model refused, or its provider filtered the reply."""


class OutputTruncated(OutputError):
    """A reply ended at a length limit before its output was whole."""


class StreamBroken(ResponseInvalid):
    """A stream ended without its terminal marker, or failed midway; `partial` is the reply as far as it arrived."""

    def __init__(self, message: str, *, partial: Reply, cause: CallError | None = None, provider: str = "") -> None:
        super().__init__(message, provider=provider)
        self.partial = partial
        if cause:
            self.provider = provider or cause.provider
            self.status, self.code = cause.status, cause.code
            self.request_id, self.retry_after = cause.request_id, cause.retry_after


class AllFailed(CallError):
    """No member of a fallback answered; `failed_members` describes each member's error, `errors` holds the errors.

    It is retryable if one of the errors is, after the shortest time that one of them names.
    """

    def __init__(self, message: str, *, failed_members: Sequence[FailedMember], errors: Sequence[SabirError]) -> None:
        failed = [error for error in errors if isinstance(error, CallError) and error.retryable]
        delays = [error.retry_after or 0.0 for error in failed]
        super().__init__(message, retry_after=min(delays, default=0.0) or None)
        self.retryable = bool(failed)
        self.failed_members = tuple(failed_members)
        self.errors = tuple(errors)


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

    @classmethod
    def unchecked(cls, index: int, block: Part | OptionCallPayload) -> "BlockStart":
        """The start of a block."""
        call = block if isinstance(block, OptionCallPayload) else None
        ids = {"invocation_id": call.invocation_id, "option_name": call.option_name} if call else {}
        return cls.model_validate({"index": index, "kind": block.kind, **ids})

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

    @classmethod
    def unchecked(cls, index: int, kind: BlockKind, text: str) -> "BlockDelta":
        """One of values that a decoder has checked already: a stream holds thousands of them."""
        return cls.construct_unchecked({"index": index, "kind": kind, "text": text}, {"index", "kind", "text"})


class BlockEnd(Frozen):
    """The end of a block, with the whole part or call.

    Whether a call may run is known only from the reply: a reply that was cut off may have ended within the call.
    """

    index: int
    block: Part | OptionCallPayload
    is_finished: bool | None = None
    """The wire's own mark on an option call: whether its arguments are finished; None if the wire has no such mark."""

    @property
    def kind(self) -> str:
        """The block's kind."""
        return self.block.kind

    @property
    def type(self) -> str:
        """For example `text-end`."""
        return f"{self.block.kind}-end"


class ReplyEnd(Frozen):
    """The terminal marker: why the reply ended, its token usage, and the further fields of the reply.

    `finished_calls` describes the wire; it decides which calls may run if the reply was cut off.
    """

    type: Literal["reply-end"] = "reply-end"
    finish_reason: FinishReason
    raw_finish_reason: str | None = None
    usage: Usage = Usage()
    origin: Origin | None = None
    losses: tuple[Loss, ...] = ()
    alternatives: tuple[Alternative, ...] = ()
    details_json: JSONDocumentField | None = Field(default=None, alias="details")
    finished_calls: FinishedCalls = "unknown"


StreamEvent: TypeAlias = ReplyStart | BlockStart | BlockDelta | BlockEnd | ReplyEnd
