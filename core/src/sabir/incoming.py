"""What comes from a provider, as it comes: bytes in any chunks → events → the reply.

    chunk ─▶ ServerEventReader ─▶ dialect's decoder ─▶ Fold ─▶ events for the user
                                                        └──▶ partial reply at any time, whole reply at the end

Law 10, no surprise exceptions: any bytes end in a reply or in one of the library's own errors. Before the first
block an error is raised as it is and the call may be repeated; afterwards it becomes a StreamBroken that carries
what had arrived.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from sabir.contracts import Decoder, Dialect
from sabir.errors import CallError, ResponseInvalid, StreamBroken, one_line
from sabir.events import BlockDelta, BlockEnd, ReplyStart, StreamEvent
from sabir.fold import Fold
from sabir.losses import Loss
from sabir.parts import TextPart
from sabir.reply import Reply
from sabir.scope import DecodeScope
from sabir.sse import ServerEventReader

SHOWN_BYTES = 200
"""How much of an answer that is no event stream is kept to show it in the error."""


def shown(body: bytes) -> str:
    """The beginning of an answer, as an error names it."""
    text = one_line(body[:SHOWN_BYTES].decode("utf-8", errors="replace"), 80)
    return repr(text) if text else "an empty body"


@contextmanager
def answers_only(scope: DecodeScope, body: bytes) -> Iterator[None]:
    """Let nothing out of a dialect's decoding but CallErrors; anything else becomes ResponseInvalid."""
    try:
        yield
    except CallError:
        raise
    except Exception as error:
        reason = one_line(f"{type(error).__name__}: {error}", 160)
        message = f"{scope.target} answered with what {scope.target.dialect} cannot be, {shown(body)}: {reason}"
        raise ResponseInvalid(message, provider=scope.target.provider, request_id=scope.request_id) from error


def finished(reply: Reply, losses: tuple[Loss, ...], attempt: int) -> Reply:
    """A decoded reply with the rendering's losses before its own, and the number of requests that it took."""
    if not losses and attempt == reply.attempts:
        return reply
    return reply.model_copy(update={"losses": (*losses, *reply.losses), "attempts": attempt})


class StreamState:
    """One reply being streamed; `begin` starts it over for another attempt. Pure: it is fed bytes."""

    def __init__(self, dialect: Dialect, scope: DecodeScope, losses: tuple[Loss, ...] = ()) -> None:
        self._dialect = dialect
        self._losses = losses
        self.begin(scope, 1)

    def begin(self, scope: DecodeScope, attempt: int, losses: tuple[Loss, ...] | None = None) -> None:
        """Forget what came; the next bytes are those of a new response."""
        self._scope = scope
        self._attempt = attempt
        self._losses = self._losses if losses is None else losses
        self._fold = Fold(scope)
        self._reader = ServerEventReader()
        self._decoder: Decoder | None = None
        self._held: ReplyStart | None = None
        self._seen = b""
        self._saw_event = False
        self._grown: set[int] = set()

    @property
    def ended(self) -> bool:
        """Whether the terminal marker came."""
        return self._fold.ended

    @property
    def partial(self) -> Reply:
        """What has arrived so far, as Fold.partial gives it; the whole reply after its end."""
        return finished(self._fold.partial(), self._losses, self._attempt)

    def feed(self, chunk: bytes) -> Iterator[StreamEvent]:
        """The events that a chunk completes. What follows the terminal marker is not looked at."""
        if not self._saw_event and len(self._seen) < SHOWN_BYTES:
            self._seen += chunk[:SHOWN_BYTES]
        for wire_event in self._reader.feed(chunk):
            yield from self._take(wire_event.data, lambda decoder, event=wire_event: decoder.feed(event))

    def close(self) -> Iterator[StreamEvent]:
        """The events that the end of the bytes completes."""
        for wire_event in self._reader.close():
            yield from self._take(wire_event.data, lambda decoder, event=wire_event: decoder.feed(event))
        if self._saw_event:
            yield from self._take("", lambda decoder: decoder.close())

    def _take(self, data: str, read: Callable[[Decoder], Iterable[StreamEvent]]) -> Iterator[StreamEvent]:
        if self._fold.ended:
            return
        self._saw_event = True
        with answers_only(self._scope, data[:SHOWN_BYTES].encode("utf-8", "replace")):
            if self._decoder is None:
                self._decoder = self._dialect.decoder(self._scope)
            for event in read(self._decoder):
                self._fold.feed(event)
                # Whoever saw the start could not be given another one by a repetition: it waits for company.
                if isinstance(event, ReplyStart):
                    self._held = event
                    continue
                if self._held is not None:
                    yield self._held
                    self._held = None
                yield event

    def reply(self) -> Reply:
        """The whole reply; StreamBroken where the terminal marker is missing."""
        if self._fold.ended:
            return finished(self._fold.reply(), self._losses, self._attempt)
        target = self._scope.target
        if self._saw_event:
            reason = "ended its stream without the terminal marker"
        else:
            reason = f"answered with no event stream but {shown(self._seen)}"
        raise self._broken(f"{target} {reason}; what came is in `partial`")

    def failure(self, error: CallError) -> CallError:
        """What an error of the stream is for its reader: itself before the first block, else StreamBroken."""
        if isinstance(error, StreamBroken) or not self._fold.started:
            return error
        broken = self._broken(f"{self._scope.target} broke off its stream: {error}", error)
        broken.__cause__ = error
        return broken

    def left(self) -> StreamBroken:
        """The error of one who asks for more after leaving the stream."""
        return self._broken("the stream was closed before its end; read it to the end, or take `partial`")

    def _broken(self, message: str, cause: CallError | None = None) -> StreamBroken:
        broken = StreamBroken(message, partial=self.partial, cause=cause, provider=self._scope.target.provider)
        broken.request_id = broken.request_id or self._scope.request_id
        return broken

    def text_of(self, event: StreamEvent) -> str:
        """The characters by which an event lengthens the reply's text; "" where it does not."""
        if isinstance(event, BlockDelta):
            if event.kind != "text":
                return ""
            self._grown.add(event.index)
            return event.text
        if isinstance(event, BlockEnd) and isinstance(event.block, TextPart) and event.index not in self._grown:
            return event.block.text
        return ""
