"""The reply of a call, the events of a streamed reply, and the errors that have a reply.

    reply.messages ──▶ append to the conversation, all of them, before any result

A streamed reply comes in events. Each part or option call is one block, and events of the same block have the same
`index`:

    reply-start ─▶ (text|reasoning|refusal|media|native_call|native_result|opaque|option_call)-start ─▶ -delta …
                ─▶ -end … ─▶ reply-end

The end of a block contains the complete part or call, so that the reply can be built from the ends alone (law 8). The
deltas are for programs that show the reply while it arrives. The errors that have a reply are OutputError and
StreamBroken.
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
from sabir.vocabulary.fields import Text
from sabir.vocabulary.messages import Message, OptionCall, OptionCallPayload, Origin
from sabir.vocabulary.parts import MediaPart, Part
from sabir.vocabulary.settings import Bounds, Target

FinishReason: TypeAlias = Literal[
    "stop", "option_calls", "native_calls", "length", "content_filter", "paused", "error", "other"
]
"""Why a reply ended: `stop` (complete), `option_calls` (the model calls options), `native_calls` (the model calls a
provider's own tool whose result the program must send), `length` (a token limit was reached), `content_filter` (refused
or filtered), `paused` (the provider stopped within its turn: send the conversation with this reply again to continue),
`error` (the provider failed), or `other` (see `raw_finish_reason`).
"""
FinishedCalls: TypeAlias = Literal["unknown", "followed", "all"]
"""Which option calls of a cut-off reply the API guarantees to be complete.

unknown: the API guarantees nothing · followed: every call that another block follows · all: every call
"""
Output = TypeVar("Output")

MOST_VALUES = Bounds().most_values
"""The largest number of JSON values that the text may have in `Reply.parse`: 524,288."""


class Usage(StoredModel):
    """The numbers of tokens of one call, from the provider's figures. None means that the provider did not report the
    number.

    `input_tokens` includes `cache_read_tokens` (read from a cache) and `cache_write_tokens` (written to a cache).
    `output_tokens` includes `reasoning_tokens`. `details` is the provider's own usage object.
    """

    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None
    reasoning_tokens: int | None = None
    details_json: JSONDocumentField | None = Field(default=None, alias="details")

    @property
    def total_tokens(self) -> int | None:
        """The sum of input and output tokens, or None if either is unknown."""
        if self.input_tokens is None or self.output_tokens is None:
            return None
        return self.input_tokens + self.output_tokens

    details: ClassVar = JSONView("details_json", "The provider's usage object, unchanged, or None.")

    def __brief_args__(self) -> Arguments:
        """Yield the arguments of the short `repr`: all except the provider's own usage object."""
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
        """Return a Usage from numbers and the provider's usage object `details`, without validation. For dialects.

        Raises NotJSON if `details` is not JSON.
        """
        values = {
            "input_tokens": input_tokens,
            "output_tokens": output_tokens,
            "cache_read_tokens": cache_read_tokens,
            "cache_write_tokens": cache_write_tokens,
            "reasoning_tokens": reasoning_tokens,
            "details_json": encode_json(details),
        }
        return cls.construct_unchecked(values, values.keys())

    def __str__(self) -> str:
        """Return the input and output tokens as one line, such as "12 in, ? out"; "?" is an unknown number."""
        numbers = ("?" if tokens is None else tokens for tokens in (self.input_tokens, self.output_tokens))
        return "{} in, {} out".format(*numbers)


class Alternative(Frozen):
    """A further answer in the same reply, if a vendor setting of the request made the provider return several answers.

    `messages`, `finish_reason` and `raw_finish_reason` mean what they mean in a Reply.
    """

    messages: tuple[Message, ...]
    finish_reason: FinishReason
    raw_finish_reason: str | None = None


class FailedMember(Frozen):
    """A member of a fallback that was tried and failed. Listed in `Reply.failed_members` and
    `AllFailed.failed_members`. A nested fallback that raised AllFailed is listed as its members.

    `target` is the member's target, `error` the class name of the error and `message` the error's text. `losses` are
    the losses of this member's request: those that caused the refusal, if the error is RenderingRefused.
    """

    target: Target
    error: Text
    message: Text
    losses: tuple[Loss, ...] = ()


_CONTENT = ("messages", "origin", "details")
"""The fields of a reply that `repr` does not show; properties such as `text` are shown instead of `messages`."""


class Reply(Frozen):
    """A complete answer of a model. Append `reply.messages` to the conversation, all of them, before any option
    results.

    `messages` are the reply's messages: text and other parts, and one message per option call. `finish_reason` says why
    the reply ended, in words common to all providers; `raw_finish_reason` is the provider's word, or None. `usage` is
    the number of tokens. `origin` is the provider and model that answered. `losses` lists what the request or the
    reading of the response lost. `alternatives` are further answers if the provider returned several. `attempts` is the
    number of requests sent to the provider that answered, retries included; 0 for a reply from a cache.
    `failed_members` are the members of a fallback that failed before another member answered. `is_batch` is True for a
    reply from a batch, for which most vendors charge half the price.

    >>> import sabir
    >>> llm, chat = sabir.adapter("echo:m"), [sabir.user("Hello!")]
    >>> reply = llm.complete_sync(chat)
    >>> chat += reply.messages
    >>> reply.text, reply.finish_reason, str(reply.usage)
    ('Hello!', 'stop', '1 in, 1 out')
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
    is_batch: bool = False

    details: ClassVar = JSONView("details_json", "Further fields of the response, such as log probabilities, or None.")

    @property
    def from_cache(self) -> bool:
        """Whether a cache returned the reply, so that no request was sent."""
        return self.attempts == 0

    @cached_property
    def text(self) -> str:
        """The text parts of the reply, joined without separator; "" if there are none. Reasoning and refusals are not
        included.
        """
        return "".join(message.text for message in self.messages)

    @cached_property
    def reasoning(self) -> str:
        """All reasoning text of the reply, joined without separator; "" if there is none."""
        return "".join(part.text for message in self.messages for part in message.parts if part.kind == "reasoning")

    @cached_property
    def refusal(self) -> str | None:
        """The text of all refusal parts, joined without separator; None if the reply has no refusal text."""
        texts = (part.text for message in self.messages for part in message.parts if part.kind == "refusal")
        return "".join(texts) or None

    @cached_property
    def media(self) -> tuple[MediaPart, ...]:
        """The media parts of the reply, such as generated images, in order. Empty if there are none."""
        return tuple(part for message in self.messages for part in message.parts if part.kind == "media")

    @cached_property
    def option_calls(self) -> tuple[OptionCall, ...]:
        """The messages of the reply that call options, in order. Answer them with `sabir.answer(reply, options)`."""
        return tuple(cast(OptionCall, message) for message in self.messages if message.kind == "option_call")

    def __brief_args__(self) -> Arguments:
        """Yield the arguments of the short `repr`, the text first. Several calls are shown only by their names, several
        losses only by their kinds.
        """
        called = ", ".join(call.call.option_name for call in self.option_calls)
        kinds = ", ".join(dict.fromkeys(loss.kind for loss in self.losses))
        counted = {
            "option_calls": Plain(f"<{len(self.option_calls)}: {called}>"),
            "losses": Plain(f"<{len(self.losses)}: {kinds}>"),
            "alternatives": Plain(f"<{len(self.alternatives)}>"),
            "failed_members": Plain(f"<{len(self.failed_members)}>"),
        }
        values = {name: getattr(self, name) for name in ("text", "refusal", "option_calls", "media")}
        values |= {name: value for name, value in super().__brief_args__() if name not in _CONTENT}
        for name, value in values.items():
            if value:
                yield name, counted[name] if name in counted and len(value) > 1 else value

    def parse(self, output: type[Output]) -> Output:
        """Return the reply's text, which must be JSON, as an instance of `output`: a pydantic model or any type that
        pydantic validates. For `str`, return the text itself, which need not be JSON.

        Raises OutputRefused if the model refused or the reply was filtered. Otherwise, raises OutputInvalid if the text
        has more than 524,288 JSON values. If the text does not fit `output`, raises OutputTruncated if the reply ended
        at a length limit, else OutputInvalid. Each of these errors has the reply as `reply`.

        >>> import sabir
        >>> llm = sabir.adapter("echo:m")
        >>> llm.complete_sync("[1, 2, 3]").parse(list[int])
        [1, 2, 3]
        """
        if self.refusal is not None or self.finish_reason == "content_filter":
            cause = "the model refused" + (", or the reply was filtered" if self.refusal is None else "")
            raise OutputRefused(f"{cause}: {one_line(self.refusal or self.text or 'no text', 200)}", self)
        if output is str:
            return cast("Output", self.text)
        if has_more_values(self.text, MOST_VALUES):
            raise OutputInvalid(f"the reply has more than {MOST_VALUES:,} JSON values; parse `text` yourself", self)
        try:
            return TypeAdapter(output).validate_json(self.text)
        except ValidationError as error:
            name = getattr(output, "__name__", str(output))
            if self.finish_reason == "length":
                message = f"the reply for {name} was cut off at {len(self.text)} characters; raise max_output_tokens"
                raise OutputTruncated(message, self) from None
            first = error.errors(include_url=False)[0]
            place = ".".join(str(step) for step in first["loc"]) or "the text"
            raise OutputInvalid(f"the reply is not a valid {name}: {place}: {first['msg']}", self) from error


class OutputError(SabirError):
    """The base class of the errors of `Reply.parse`. `reply` is the reply whose text could not be converted."""

    def __init__(self, message: str, reply: Reply) -> None:
        super().__init__(message)
        self.reply = reply


class OutputInvalid(OutputError):
    """Raised by `Reply.parse` if the reply's text is not valid JSON for the requested type, or has too many JSON
    values.

    `reply` is the reply.
    """


class OutputRefused(OutputError):
    """Raised by `Reply.parse` if the model refused to answer or the provider filtered the reply. `reply` is the
    reply.
    """


class OutputTruncated(OutputError):
    """Raised by `Reply.parse` if the text does not fit the requested type and the reply ended at a length limit.

    `reply` is the reply. Increase `Settings.max_output_tokens`.
    """


class StreamBroken(ResponseInvalid):
    """Raised when a stream fails after its first event, ends without the event that marks the end, or is read after it
    was closed early.

    `partial` is the reply as far as it arrived. If a CallError broke the stream, it is the `__cause__`, and `status`,
    `code`, `request_id` and `retry_after` are its values. Not retryable.
    """

    def __init__(self, message: str, *, partial: Reply, cause: CallError | None = None, provider: str = "") -> None:
        super().__init__(message, provider=provider)
        self.partial = partial
        if cause:
            self.provider = provider or cause.provider
            self.status, self.code = cause.status, cause.code
            self.request_id, self.retry_after = cause.request_id, cause.retry_after


class AllFailed(CallError):
    """Raised by a FallbackAdapter when every member failed, and not all of them with RenderingRefused.

    `failed_members` describes each member and its error; `errors` contains the error objects. `retryable` is True if
    one of the errors is retryable. `retry_after` is the shortest `retry_after` of the retryable errors; None if one of
    them has none, or if no error is retryable.
    """

    def __init__(self, message: str, *, failed_members: Sequence[FailedMember], errors: Sequence[SabirError]) -> None:
        failed = [error for error in errors if isinstance(error, CallError) and error.retryable]
        delays = [error.retry_after or 0.0 for error in failed]
        super().__init__(message, retry_after=min(delays, default=0.0) or None)
        self.retryable = bool(failed)
        self.failed_members = tuple(failed_members)
        self.errors = tuple(errors)


BlockKind: TypeAlias = Literal[
    "text", "reasoning", "refusal", "media", "native_call", "native_result", "opaque", "option_call"
]
"""The kind of a block of a stream: a kind of part, or "option_call"."""


class ReplyStart(Frozen):
    """The first event of a stream: the provider began to answer. `origin` is the provider, API and model."""

    type: Literal["reply-start"] = "reply-start"
    origin: Origin


class BlockStart(Frozen):
    """The event that begins a block of a stream, which is one part or one option call.

    `index` numbers the block and links its events. `kind` is the kind of the part, or "option_call". `invocation_id`
    and `option_name` identify an option call; both are "" for a part.
    """

    index: int
    kind: BlockKind
    invocation_id: str = ""
    option_name: str = ""

    @classmethod
    def unchecked(cls, index: int, block: Part | OptionCallPayload) -> "BlockStart":
        """Return the start event for a part or an option call, with its kind and ids. For dialects."""
        call = block if isinstance(block, OptionCallPayload) else None
        ids = {"invocation_id": call.invocation_id, "option_name": call.option_name} if call else {}
        return cls.model_validate({"index": index, "kind": block.kind, **ids})

    @property
    def type(self) -> str:
        """The kind of the event, for example "text-start"."""
        return f"{self.kind}-start"


class BlockDelta(Frozen):
    """The event that adds `text` to the block with the same `index`: to a part's text, to the base64 data of a medium,
    or to the text of a call's arguments.
    """

    index: int
    kind: BlockKind
    text: str

    @property
    def type(self) -> str:
        """The kind of the event, for example "text-delta"."""
        return f"{self.kind}-delta"

    @classmethod
    def unchecked(cls, index: int, kind: BlockKind, text: str) -> "BlockDelta":
        """Return a delta event, without validation, from values that must be valid. For dialects, because this is
        faster than the constructor.
        """
        return cls.construct_unchecked({"index": index, "kind": kind, "text": text}, _DELTA_FIELDS)


_DELTA_FIELDS = frozenset(BlockDelta.model_fields)


class BlockEnd(Frozen):
    """The event that ends the block with the same `index`. `block` is the complete part or option call.

    Run an option call only after the complete reply has arrived: a reply that was cut off may contain an incomplete
    call.
    """

    index: int
    block: Part | OptionCallPayload
    is_finished: bool | None = None
    """Whether the API marked the arguments of an option call as complete. None if the API does not say, and
    for parts.
    """

    @property
    def kind(self) -> str:
        """The kind of the part, or "option_call"."""
        return self.block.kind

    @property
    def type(self) -> str:
        """The kind of the event, for example "text-end"."""
        return f"{self.block.kind}-end"


class ReplyEnd(Frozen):
    """The last event of a stream: why the reply ended, and its token usage.

    The fields mean what they mean in a Reply. `origin` None means the origin of ReplyStart. `finished_calls` says which
    option calls the API guarantees to be complete if the reply was cut off: "unknown" (no guarantee), "followed" (every
    call that another block follows) or "all".
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
"""One event of a stream. Each event has a `type`, such as "text-delta".

In a stream that is read to its end, the first event is ReplyStart and the last ReplyEnd. Between them, each part or
option call has one BlockStart, any number of BlockDeltas, and one BlockEnd; the events of several blocks may alternate.

>>> import sabir
>>> with sabir.adapter("echo:m").stream_sync("Hello!") as stream:
...     [event.type for event in stream]
['reply-start', 'text-start', 'text-delta', 'text-end', 'reply-end']
"""
