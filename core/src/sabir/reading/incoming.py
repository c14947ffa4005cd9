"""Convert a provider's answer as it arrives: bytes in any chunks → events → the reply.

    chunk ─▶ dialect.framing ─▶ dialect's decoder ─▶ Fold ─▶ events for the user
                                                        └──▶ partial reply at any time, complete reply at the end

Law 10, no surprise exceptions: any bytes give a reply or one of sabir's own errors. Before the first block of a stream,
an error is raised unchanged, and the call may be repeated. Later, the error becomes a StreamBroken with the partial
reply.
"""

import codecs
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from io import BytesIO
from typing import Any, NoReturn
from urllib.parse import urlsplit

from sabir.base.errors import one_line
from sabir.base.failures import CallError, Loss, ResponseInvalid, ServerFailed
from sabir.base.values import has_more_values
from sabir.contract.dialect import Decoder, Dialect, ServerEvent
from sabir.contract.operation import Operation
from sabir.contract.scope import DecodeScope
from sabir.reading.fold import Fold
from sabir.vocabulary.parts import TextPart
from sabir.vocabulary.reply import BlockDelta, BlockEnd, Reply, ReplyStart, StreamBroken, StreamEvent

_LONE_SURROGATE = re.compile(
    rb"(?:[^\\]*+(?:\\(?:[^u]|\Z)|\\u(?![dD][89a-fA-F])|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}))"
    rb"{1,1000}"  # a repeat without a limit would need memory for each escape
    rb"|[^\\]*+(\\u[dD][89a-fA-F].{0,2})"
    rb"|[^\\]++\Z",
    re.DOTALL,
)
"""Up to 1,000 valid escapes, or the next escape of half a surrogate pair (group 1), or the end. Matches leave no gap.

No group has a possessive quantifier, because Python 3.11.2, which Debian 12 has, matches such groups wrongly.
"""
_PIECE = 2**20
"""How many bytes are decoded at once. Decoding a large body with an emoji at once would need four times its size."""


def mend(body: bytes, most: int | None = None) -> tuple[bytes, bool]:
    """Return the body as valid UTF-8 without lone surrogates, and whether anything was replaced by U+FFFD.

    A replacement is longer than the byte that it replaces. If the result gets longer than `most` bytes, the end of the
    body is left out; the result is then longer than `most` too.
    """
    is_valid = body.isascii() or _is_utf8(body)
    valid = body if is_valid else _replace_invalid(body, most)
    mended = _mend_escapes(valid)
    return mended, not is_valid or mended is not valid


def _is_utf8(body: bytes) -> bool:
    try:
        for _ in _decode_pieces(body, "strict"):
            pass
    except UnicodeDecodeError:
        return False
    return True


def _replace_invalid(body: bytes, most: int | None) -> bytes:
    """Return the body with U+FFFD in place of invalid UTF-8. A result longer than `most` bytes is not complete."""
    valid = BytesIO()
    for text in _decode_pieces(body, "replace"):
        valid.write(text.encode())
        if most is not None and valid.tell() > most:
            break
    return valid.getvalue()


def _decode_pieces(body: bytes, errors: str) -> Iterator[str]:
    """Yield the text of the body in pieces of about a megabyte, to save memory."""
    decoder = codecs.getincrementaldecoder("utf-8")(errors)
    for start in range(0, len(body), _PIECE):
        yield decoder.decode(body[start : start + _PIECE])
    yield decoder.decode(b"", final=True)


def _mend_escapes(body: bytes) -> bytes:
    """Return JSON text in which U+FFFD replaces escapes of lone surrogates; the same object if there are none."""
    if rb"\ud" not in body and rb"\uD" not in body:
        return body
    mended = bytearray(body)
    for match in _LONE_SURROGATE.finditer(body):
        if match[1]:
            mended[slice(*match.span(1))] = rb"\ufffd"  # as long as the escape before
    return body if mended == body else bytes(mended)


SHOWN_CHARACTERS = 200
"""The largest number of characters of an invalid answer that are read for the error message."""
_WIDE_BYTES = re.compile(rb"[\xf0-\xff]|\\u[dD][89abAB]")
"""Matches the beginning of a character beyond U+FFFF in UTF-8, or of its escape in JSON."""
_WIDE = re.compile(r"[^\x00-\uffff]")
"""Matches a character beyond U+FFFF."""
_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")
"""Matches a JSON escape of a half of a character beyond U+FFFF; U+D000 to U+D7FF are ordinary Korean letters."""
KEPT_BYTES = 65_536
"""About how many bytes of an answer without any event are stored, to read the error that the answer may report."""


def quote_beginning(body: bytes | str) -> str:
    """Return the quoted beginning of an answer for an error message, or "an empty body". At most 80 characters; those
    outside ASCII are escaped.
    """
    start = body[:SHOWN_CHARACTERS]
    text = start.decode("utf-8", errors="replace") if isinstance(start, bytes) else start
    text = one_line(f"{text}…" if len(body) > SHOWN_CHARACTERS else text, 80)
    return ascii(text) if text else "an empty body"


def label_error(error: CallError, scope: DecodeScope, status: int | None = None) -> CallError:
    """Add the provider, the request id and the status to an error that has none of its own. Return the same error."""
    error.provider = error.provider or scope.target.provider
    error.request_id = error.request_id or scope.request_id
    error.status = error.status or status
    return error


def redirect_error(scope: DecodeScope, status: int, location: str) -> ResponseInvalid:
    """Return the error for a redirect. sabir does not follow redirects, because the conversation and the headers are
    for the endpoint only.
    """
    try:
        host = urlsplit(location).netloc.rpartition("@")[2]
    except ValueError:
        host = "an invalid URL"
    answer = f"{scope.target} answered {status}, a redirect to {host or 'another path'}"
    return ResponseInvalid(f"{answer}, which sabir does not follow; set base_url to the endpoint's URL")


def raise_unreadable(scope: DecodeScope, body: bytes | str, error: Exception) -> NoReturn:
    """Raise the error for an exception of a dialect's decoding function: a CallError itself, else ResponseInvalid.

    `body` is the undecodable text, whose beginning the message shows.
    """
    if isinstance(error, CallError):
        raise label_error(error, scope)
    what, reason = f"a body that is not {scope.target.dialect}", one_line(f"{type(error).__name__}: {error}", 160)
    raise scope.invalid_answer(f"answered with {what}, {quote_beginning(body)}: {reason}") from error


def size_error(scope: DecodeScope, what: str, bound: str) -> ResponseInvalid:
    """Return the error for too many bytes. `what` is "a body", "an event" or "a stream", `bound` the field
    of Bounds.
    """
    return scope.limit_error(f"{what} of more than {getattr(scope.bounds, bound):,} bytes", bound)


def read_body(body: bytes, scope: DecodeScope) -> tuple[bytes, bool]:
    """Return the body as valid UTF-8, and whether anything was replaced in it.

    Raises ResponseInvalid, before anything is parsed, for a body that has too many bytes or JSON values for
    `scope.bounds`. A body with characters beyond U+FFFF may have only half of the allowed bytes.
    """
    bounds = scope.bounds
    if len(body) > (most := bounds.body_bytes // 2) and _WIDE_BYTES.search(body):
        raise scope.limit_error(f"more than {most:,} bytes in a body with emoji (half of body_bytes)", "body_bytes")
    if has_more_values(body, bounds.most_values):
        raise scope.limit_error(f"more than {bounds.most_values:,} JSON values", "values")
    mended, was_broken = mend(body, bounds.body_bytes)
    if len(mended) > bounds.body_bytes:
        raise size_error(scope, "a body", "body_bytes")
    return mended, was_broken


def finish_reply(reply: Reply, losses: tuple[Loss, ...], attempt: int, *, was_broken: bool = False) -> Reply:
    """Return a decoded reply with `losses` before its own losses, and with `attempt` as `attempts`.

    `was_broken` True adds a loss for invalid Unicode that was replaced.
    """
    if was_broken:
        reason = f"{reply.origin.provider} answered with invalid Unicode, which was replaced by U+FFFD"
        losses = (*losses, Loss(kind="rewritten", path="reply", reason=reason))
    if not losses and attempt == reply.attempts:
        return reply
    return reply.model_copy(update={"losses": (*losses, *reply.losses), "attempts": attempt})


def decode_body(dialect: Dialect, raw: bytes, scope: DecodeScope) -> Reply:
    """Return the reply in the complete body of a response. Raises the CallError that the body reports, and
    ResponseInvalid for a body that cannot be read.
    """
    body, was_broken = read_body(raw, scope)
    try:
        return finish_reply(dialect.decode(body, scope), (), 1, was_broken=was_broken)
    except Exception as error:
        raise_unreadable(scope, body, error)


def decode_refusal(
    format_: Dialect | Operation[Any, Any], body: bytes, scope: DecodeScope, status: int, headers: Mapping[str, str]
) -> CallError:
    """Return the CallError for a response with an error status. The caller raises the error."""
    if has_more_values(body, scope.bounds.most_values):
        body = body[:SHOWN_CHARACTERS]  # too many values to parse: only its beginning is shown
    mended, _ = mend(body)
    try:
        refusal = format_.decode_error(status, headers, mended, scope.target.provider)
    except CallError as error:
        refusal = error
    except Exception as unexpected:
        kind = ServerFailed if status >= 500 else ResponseInvalid
        answered = f"{scope.target} answered {status} with {quote_beginning(mended)}"
        refusal = kind(f"{answered}, which its dialect cannot read")
        refusal.__cause__ = unexpected
    return label_error(refusal, scope, status)


def decode_answer(dialect: Dialect, body: bytes, scope: DecodeScope, status: int = 200) -> Reply:
    """Return the reply for a complete answer that arrived outside a call, such as one of a batch.

    Raises the CallError for a status of 400 or above, and for a body that reports an error or cannot be read.
    """
    if status >= 400:
        raise decode_refusal(dialect, body, scope, status, {})
    return decode_body(dialect, body, scope.counted())


class StreamState:
    """The state of one streamed reply. Does no I/O: the caller passes the bytes to `feed`. `begin` starts another
    attempt.
    """

    def __init__(self, dialect: Dialect, scope: DecodeScope) -> None:
        self._dialect = dialect
        self._is_mute = False
        self.had_event = False
        """Whether the last chunk completed at least one event."""
        self.begin(scope)

    def begin(self, scope: DecodeScope, attempt: int = 1, losses: tuple[Loss, ...] = ()) -> None:
        """Discard everything that was received; the next bytes belong to a new response.

        `attempt` is its number, and `losses` are the losses of the rendering, for the reply.
        """
        self._scope = scope
        self._attempt = attempt
        self._losses = losses
        self._fold = Fold(scope)
        self._reader = self._dialect.framing(scope.content_type)
        self._most_values = scope.bounds.most_values
        self._wide_bytes = 0
        self._decoder: Decoder | None = None
        self._start: ReplyStart | None = None
        self._beginning = bytearray()
        self._was_broken = False

    @property
    def ended(self) -> bool:
        """Whether the event that ends the reply was received."""
        return self._fold.ended

    @property
    def partial(self) -> Reply:
        """The reply as far as it has arrived, by `Fold.partial`; after the end, the complete reply."""
        return self._finish_reply(self._fold.partial())

    def skip_events(self) -> None:
        """Stop yielding events, because the caller only wants the reply."""
        self._is_mute = True

    def feed(self, chunk: bytes) -> Iterator[StreamEvent]:
        """Return an iterator over the stream events that a chunk completes. Iterate to its end: iterating decodes them.

        Bytes after the event that ends the reply are ignored. Raises CallError for invalid or reported failures.
        """
        if self._decoder is None and len(self._beginning) <= KEPT_BYTES:
            self._beginning += chunk
        reader, most = self._reader, self._scope.bounds.event_bytes
        longest = reader.kept + len(chunk)
        try:
            events = reader.feed(chunk)
        except Exception as error:
            raise_unreadable(self._scope, chunk, error)
        self.had_event = bool(events)
        if longest > most and (reader.kept > most or any(len(event.data) > most for event in events)):
            raise size_error(self._scope, "an event", "event_bytes")
        return self._convert_events(events)

    def close(self) -> Iterator[StreamEvent]:
        """Yield the stream events that the end of the stream completes. Raises CallError for invalid or reported
        failures, and the CallError that a body without any event reports.
        """
        try:
            events = self._reader.close()
        except Exception as error:
            raise_unreadable(self._scope, bytes(self._beginning), error)
        yield from self._convert_events(events)
        if self._decoder is not None:
            yield from self._convert_events([None])
            return
        body, _ = mend(bytes(self._beginning))  # without any event, the body may be JSON that reports an error
        try:
            json.loads(body)
            self._dialect.decode(body, self._scope)
        except Exception as error:
            if isinstance(error, CallError) and not isinstance(error, ResponseInvalid):
                raise  # the provider reported a failure; other errors are ignored here: `reply` raises StreamBroken

    def _convert_events(self, wire_events: Sequence[ServerEvent | None]) -> Iterator[StreamEvent]:
        """Yield the stream events for events of the API. None means the end of the stream."""
        fold = self._fold
        for arrived in wire_events:
            if fold.ended:
                return
            wire_event = None if arrived is None else self._check_event(arrived)
            try:
                if self._decoder is None:
                    self._decoder = self._dialect.decoder(self._scope)
                decoder = self._decoder
                for event in decoder.close() if wire_event is None else decoder.feed(wire_event):
                    fold.feed(event)
                    if isinstance(event, ReplyStart):
                        # Held back until the next event, because after a retry the reader must not get a second start.
                        self._start = event
                    elif not self._is_mute:
                        if self._start is not None:
                            yield self._start
                            self._start = None
                        yield event
            except Exception as error:
                raise_unreadable(self._scope, wire_event.data if wire_event else "", error)

    def _check_event(self, wire_event: ServerEvent) -> ServerEvent:
        """Return the event with lone surrogates replaced. Raises ResponseInvalid if it has too many JSON values, or if
        too much data with characters beyond U+FFFF has arrived.
        """
        data, bounds = wire_event.data, self._scope.bounds
        has_escape = (r"\ud" in data or r"\uD" in data) and _SURROGATE_ESCAPE.search(data) is not None
        if has_escape or (not data.isascii() and _WIDE.search(data)):
            self._wide_bytes += len(data)
            if self._wide_bytes > (most := bounds.body_bytes // 4):
                what = f"more than {most:,} bytes of events with emoji (a quarter of body_bytes)"
                raise self._scope.limit_error(what, "body_bytes")
        if len(data) > self._most_values and has_more_values(data, self._most_values):
            raise self._scope.limit_error(f"an event of more than {self._most_values:,} JSON values", "values")
        if not has_escape:
            return wire_event
        text = data.encode("utf-8", "surrogatepass")
        mended = _mend_escapes(text)
        if mended is text:
            return wire_event
        self._was_broken = True
        return wire_event._replace(data=mended.decode("utf-8", "surrogatepass"))

    def reply(self) -> Reply:
        """Return the complete reply. Raises StreamBroken if the event that ends the reply is missing."""
        if self._fold.ended:
            return self._finish_reply(self._fold.reply())
        target = self._scope.target
        if self._decoder is not None:
            reason = "ended its stream without an end marker"
        else:
            reason = f"answered without an event stream: {quote_beginning(bytes(self._beginning[:SHOWN_CHARACTERS]))}"
        raise self._stream_broken(f"{target} {reason}; the received part is in `partial`")

    def _finish_reply(self, reply: Reply) -> Reply:
        was_broken = self._was_broken or self._reader.was_invalid
        return finish_reply(reply, self._losses, self._attempt, was_broken=was_broken)

    def failure(self, error: CallError) -> CallError:
        """Return the error for the stream's reader: `error` itself before the first block, otherwise a StreamBroken
        with the partial reply.
        """
        if isinstance(error, StreamBroken) or not self._fold.started:
            return error
        return self._stream_broken(f"{self._scope.target} broke off its stream: {error}", error)

    def closed_error(self) -> StreamBroken:
        """Return the StreamBroken to raise for a reader of a closed stream."""
        return self._stream_broken("the stream was closed before its end; read it to the end, or use `partial`")

    def _stream_broken(self, message: str, cause: CallError | None = None) -> StreamBroken:
        broken = StreamBroken(message, partial=self.partial, cause=cause, provider=self._scope.target.provider)
        broken.request_id = broken.request_id or self._scope.request_id
        return broken

    def text_of(self, event: StreamEvent) -> str:
        """Return the text that an event adds to the reply's text, or "".

        The end of a text block counts only if the block had no deltas.
        """
        if isinstance(event, BlockDelta):
            return event.text if event.kind == "text" else ""
        if isinstance(event, BlockEnd) and isinstance(event.block, TextPart) and not self._fold.has_grown(event.index):
            return event.block.text
        return ""
