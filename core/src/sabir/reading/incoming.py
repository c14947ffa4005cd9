"""A provider's answer as it arrives: bytes in any chunks → events → the reply.

    chunk ─▶ dialect.framing ─▶ dialect's decoder ─▶ Fold ─▶ events for the user
                                                        └──▶ partial reply at any time, whole reply at the end

Law 10, no surprise exceptions: any bytes end in a reply or in one of the library's own errors. Before the first
block an error is raised as it is and the call may be repeated; afterwards it becomes a StreamBroken that carries
the partial reply.
"""

import json
import re
from collections.abc import Iterator, Sequence
from typing import NoReturn
from urllib.parse import urlsplit

from sabir.base.errors import one_line
from sabir.base.failures import CallError, Loss, ResponseInvalid
from sabir.contract.dialect import Decoder, Dialect, ServerEvent
from sabir.contract.scope import DecodeScope
from sabir.reading.fold import Fold
from sabir.vocabulary.parts import TextPart
from sabir.vocabulary.reply import BlockDelta, BlockEnd, Reply, ReplyStart, StreamBroken, StreamEvent
from sabir.vocabulary.settings import Bounds

_ESCAPE = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(\\u[dD][89a-fA-F]..)|\\.", re.DOTALL)
"""An escaped surrogate pair, half of one (group 1), or any other escape."""


def mend(body: bytes) -> tuple[bytes, bool]:
    """The body as valid UTF-8 without lone surrogates, and whether anything was replaced."""
    try:
        text, was_invalid = body.decode(), False
    except UnicodeDecodeError:
        text, was_invalid = body.decode(errors="replace"), True
    text, was_broken = mend_escapes(text)
    return (text.encode(), True) if was_invalid or was_broken else (body, False)


def mend_escapes(text: str) -> tuple[str, bool]:
    """JSON text in which U+FFFD replaces escapes of lone surrogates, and whether there were any."""
    if r"\ud" not in text and r"\uD" not in text:
        return text, False
    mended = _ESCAPE.sub(lambda found: r"\ufffd" if found[1] else found[0], text)
    return mended, mended != text


SHOWN_CHARACTERS = 200
"""How many characters of an unreadable answer the error shows."""
BOUNDS = Bounds()
KEPT_BYTES = 65_536
"""About how many bytes of an answer without any event are kept, to read the error that it may report."""


def shown(body: bytes | str) -> str:
    """The beginning of an answer, as an error shows it."""
    start = body[:SHOWN_CHARACTERS]
    text = start.decode("utf-8", errors="replace") if isinstance(start, bytes) else start
    text = one_line(f"{text}…" if len(body) > SHOWN_CHARACTERS else text, 80)
    return ascii(text) if text else "an empty body"


def labelled(error: CallError, scope: DecodeScope, status: int | None = None) -> CallError:
    """The error, with the provider, request id and status where it has none."""
    error.provider = error.provider or scope.target.provider
    error.request_id = error.request_id or scope.request_id
    error.status = error.status or status
    return error


def redirected(scope: DecodeScope, status: int, location: str) -> ResponseInvalid:
    """The error for a redirect, which is not followed: the conversation and the headers are for the endpoint alone."""
    try:
        host = urlsplit(location).netloc.rpartition("@")[2]
    except ValueError:
        host = "what is no URL"
    there = f"{scope.target} answered {status}, a redirect to {host or 'another path'}"
    return ResponseInvalid(f"{there}, which is not followed; set base_url to where the endpoint is")


def raise_unreadable(scope: DecodeScope, body: bytes | str, error: Exception) -> NoReturn:
    """Raise for an exception that a dialect raised while decoding: a CallError itself, else ResponseInvalid."""
    if isinstance(error, CallError):
        raise labelled(error, scope)
    what, reason = f"what {scope.target.dialect} cannot be", one_line(f"{type(error).__name__}: {error}", 160)
    raise scope.invalid(f"answered with {what}, {shown(body)}: {reason}") from error


def too_long(scope: DecodeScope, what: str, bounds: Bounds, name: str) -> ResponseInvalid:
    """The error for an answer that is longer than the bound `name` of `Settings.bounds`."""
    longer = f"{what} of more than {getattr(bounds, name)} bytes"
    return scope.invalid(f"answered with {longer}; if it may, raise Settings.bounds.{name}")


def finished(reply: Reply, losses: tuple[Loss, ...], attempt: int, *, was_broken: bool = False) -> Reply:
    """A decoded reply with the rendering's losses before its own, and with the number of requests sent for it."""
    if was_broken:
        reason = f"{reply.origin.provider} answered with broken Unicode; U+FFFD stands for it"
        losses = (*losses, Loss(kind="rewritten", path="reply", reason=reason))
    if not losses and attempt == reply.attempts:
        return reply
    return reply.model_copy(update={"losses": (*losses, *reply.losses), "attempts": attempt})


class StreamState:
    """The state of one streamed reply; `begin` starts it over for another attempt. Pure: its caller feeds it bytes."""

    def __init__(self, dialect: Dialect, scope: DecodeScope) -> None:
        self._dialect = dialect
        self._is_mute = False
        self.had_event = False
        """Whether the last chunk ended an event."""
        self.begin(scope)

    def begin(
        self, scope: DecodeScope, attempt: int = 1, losses: tuple[Loss, ...] = (), bounds: Bounds = BOUNDS
    ) -> None:
        """Forget what was fed; the next bytes belong to a new response."""
        self._scope = scope
        self._attempt = attempt
        self._losses = losses
        self._bounds = bounds
        self._fold = Fold(scope)
        self._reader = self._dialect.framing(scope.content_type)
        self._most = bounds.event_bytes
        self._decoder: Decoder | None = None
        self._held: ReplyStart | None = None
        self._seen = bytearray()
        self._was_broken = False

    @property
    def ended(self) -> bool:
        """Whether the terminal marker came."""
        return self._fold.ended

    @property
    def partial(self) -> Reply:
        """The reply as far as it has arrived, as Fold.partial gives it; the whole reply after its end."""
        return self._finished(self._fold.partial())

    def mute(self) -> None:
        """Give no more events, because the caller wants the reply alone."""
        self._is_mute = True

    def feed(self, chunk: bytes) -> Iterator[StreamEvent]:
        """The events that a chunk completes. Bytes after the terminal marker are ignored."""
        if self._decoder is None and len(self._seen) <= KEPT_BYTES:
            self._seen += chunk
        reader, most = self._reader, self._most
        longest = reader.kept + len(chunk)
        try:
            events = reader.feed(chunk)
        except Exception as error:
            raise_unreadable(self._scope, chunk, error)
        self.had_event = bool(events)
        if longest > most and (reader.kept > most or any(len(event.data) > most for event in events)):
            raise too_long(self._scope, "an event", self._bounds, "event_bytes")
        return self._take(events)

    def close(self) -> Iterator[StreamEvent]:
        """The events that the end of the bytes completes."""
        try:
            events = self._reader.close()
        except Exception as error:
            raise_unreadable(self._scope, bytes(self._seen), error)
        yield from self._take(events)
        if self._decoder is not None:
            yield from self._take([None])
            return
        body, _ = mend(bytes(self._seen))  # without any event it may be JSON that reports an error
        try:
            json.loads(body)
            self._dialect.decode(body, self._scope)
        except Exception as error:
            if isinstance(error, CallError) and not isinstance(error, ResponseInvalid):
                raise  # the provider reported a failure; for any other error, `reply` says what is wrong

    def _take(self, wire_events: Sequence[ServerEvent | None]) -> Iterator[StreamEvent]:
        """The core events of wire events; None stands for the end of the bytes."""
        fold = self._fold
        for came in wire_events:
            if fold.ended:
                return
            wire_event = self._mended(came) if came is not None and "\\" in came.data else came
            try:
                if self._decoder is None:
                    self._decoder = self._dialect.decoder(self._scope)
                decoder = self._decoder
                for event in decoder.close() if wire_event is None else decoder.feed(wire_event):
                    fold.feed(event)
                    if self._is_mute:
                        continue
                    if not isinstance(event, BlockDelta):
                        # A repeated call must not show its reader a second start: the start waits for the next event.
                        if isinstance(event, ReplyStart):
                            self._held = event
                            continue
                        if self._held is not None:
                            yield self._held
                            self._held = None
                    yield event
            except Exception as error:
                raise_unreadable(self._scope, wire_event.data if wire_event else "", error)

    def _mended(self, wire_event: ServerEvent) -> ServerEvent:
        data, was_broken = mend_escapes(wire_event.data)
        self._was_broken = self._was_broken or was_broken
        return wire_event._replace(data=data) if was_broken else wire_event

    def reply(self) -> Reply:
        """The whole reply; raises StreamBroken where the terminal marker is missing."""
        if self._fold.ended:
            return self._finished(self._fold.reply())
        target = self._scope.target
        if self._decoder is not None:
            reason = "ended its stream without the terminal marker"
        else:
            reason = f"answered with no event stream but {shown(bytes(self._seen[:SHOWN_CHARACTERS]))}"
        raise self._broken(f"{target} {reason}; what came is in `partial`")

    def _finished(self, reply: Reply) -> Reply:
        was_broken = self._was_broken or self._reader.was_invalid
        return finished(reply, self._losses, self._attempt, was_broken=was_broken)

    def failure(self, error: CallError) -> CallError:
        """The error that the stream's reader gets: the error itself before the first block, else a StreamBroken."""
        if isinstance(error, StreamBroken) or not self._fold.started:
            return error
        return self._broken(f"{self._scope.target} broke off its stream: {error}", error)

    def left(self) -> StreamBroken:
        """The error for a caller that reads on after leaving the stream."""
        return self._broken("the stream was closed before its end; read it to the end, or take `partial`")

    def _broken(self, message: str, cause: CallError | None = None) -> StreamBroken:
        broken = StreamBroken(message, partial=self.partial, cause=cause, provider=self._scope.target.provider)
        broken.request_id = broken.request_id or self._scope.request_id
        return broken

    def text_of(self, event: StreamEvent) -> str:
        """The characters that an event adds to the reply's text; "" where it adds none."""
        if isinstance(event, BlockDelta):
            return event.text if event.kind == "text" else ""
        if isinstance(event, BlockEnd) and isinstance(event.block, TextPart) and not self._fold.has_grown(event.index):
            return event.block.text
        return ""
