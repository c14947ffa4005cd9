"""A dialect: a wire format as a frozen value of pure functions and three tables; and the values that these return.

    messages ──tables, encode_turn, encode_request──▶ Rendering     a request, and its losses (law 2)
    answer   ──decode | framings ▸ decoder──────────▶ Reply
    a stored request ──decode_history──▶ DecodedHistory ──render, to any dialect──▶ Rendering

Core calls each function with the arguments that it needs and nothing else. A plugin writes
`Dialect(name=…, tables=…, …)` in its dialect.py; a dialect that differs little from it is a `dataclasses.replace(…)`.

Framing cuts the bytes of a stream, in any chunks, into events. Most streams are server-sent events, which are read by
the WHATWG algorithm: lines end in LF, CR or CRLF; a leading byte order mark is dropped; lines that begin with a colon
are comments; several data lines join with LF; an event without data is ignored. A last event without a blank line
after it is given at the close, because vendors' streams sometimes end so.

    b"data: a\\n" + b"data: b\\n\\n"  ──▶  ServerEvent(data="a\\nb")

After a first event, a line that begins a JSON object or array is an event too, up to the next blank line: some
servers break off a stream with a bare error body.
"""

import re
from codecs import BOM_UTF8
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, NamedTuple, NoReturn, Protocol, TypeAlias

from pydantic import BeforeValidator, Field

from sabir.base.errors import HistoryInvalid
from sabir.base.failures import CallError, Loss, ResponseInvalid
from sabir.base.models import Frozen
from sabir.base.values import FrozenDict, JSONObjectDocumentField, JSONText, JSONValue, decode_json, freeze, object_view
from sabir.contract.scope import DecodeScope, RequestScope
from sabir.contract.turns import LossLog, Tables, Turn, TurnScope, itself, of_any_model
from sabir.options.option import Option
from sabir.vocabulary.messages import Message
from sabir.vocabulary.reply import Reply, StreamEvent
from sabir.vocabulary.settings import LONGEST_SILENCE, Bounds, RetryPolicy, Settings, Target

_BARE = re.compile(r"\s*(\{|\[\s*(\{|\Z))", re.ASCII)
"""The beginning of a JSON object, or of an array of objects."""
_RETURN = ord("\r")


class ServerEvent(NamedTuple):
    """One event of a stream: its data and its name ("" for none)."""

    data: str
    event: str = ""


class Framing(Protocol):
    """Cuts the bytes of one stream into events. Each stream has a new framing; it does no I/O."""

    @property
    def was_invalid(self) -> bool:
        """Whether some bytes were no text, and U+FFFD replaces them."""

    @property
    def kept(self) -> int:
        """How many bytes wait for the end of their event."""

    def feed(self, chunk: bytes) -> list[ServerEvent]:
        """The events that are whole after this chunk; raises ResponseInvalid for bytes that it cannot read."""

    def close(self) -> list[ServerEvent]:
        """The events that the end of the stream completes."""


class ServerEventReader:
    """Cuts a byte stream into events; invalid UTF-8 becomes U+FFFD, and `was_invalid` says so.

    Bytes are kept until the blank line that ends their event, and each is read once, however small the chunks are.
    """

    def __init__(self) -> None:
        self.was_invalid = False
        self._waiting = bytearray()
        """Bytes whose event has no end yet; their lines end in LF."""
        self._after_return = False
        self._has_started = False
        self._has_begun = False
        """Whether there was an event."""

    @property
    def kept(self) -> int:
        """How many bytes wait for the end of their event."""
        return len(self._waiting)

    def feed(self, chunk: bytes) -> list[ServerEvent]:
        """The events that are whole after this chunk; raises ResponseInvalid for a chunk that is not bytes."""
        given: object = chunk
        if not isinstance(given, bytes):
            raise ResponseInvalid(f"a stream's chunk is of type {type(given).__name__}; feed takes bytes")
        # A CR ends its line at once, so that no event waits for another byte; an LF after it belongs to the same end.
        lines = given.removeprefix(b"\n") if self._after_return else given
        self._after_return = given.endswith(b"\r") or (self._after_return and not given)
        if _RETURN in lines:
            lines = lines.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        unread = max(len(self._waiting) - 1, 0)  # an LF that waits may be the first of the two that end an event
        self._waiting += lines
        end = self._waiting.rfind(b"\n\n", unread)
        if end < 0:
            return []
        whole = self._waiting[:end]
        del self._waiting[: end + 2]
        return self._events(whole)

    def close(self) -> list[ServerEvent]:
        """The events that the end of the stream completes."""
        return self.feed(b"\n\n")

    def _events(self, whole: bytearray) -> list[ServerEvent]:
        """The events of bytes that end where an event does."""
        if not self._has_started:
            self._has_started = True
            whole = whole.removeprefix(BOM_UTF8)
        try:
            text = whole.decode()
        except UnicodeDecodeError:
            self.was_invalid = True
            text = whole.decode(errors="replace")
        events = []
        for block in text.split("\n\n"):
            name, _, data = block.partition("\n") if block.startswith("event: ") else ("event: ", "", block)
            if data.startswith("data: ") and "\n" not in data:  # nearly all events
                events.append(ServerEvent(data[6:], name[7:]))
            elif (event := self._read(block, bool(events))) is not None:
                events.append(event)
        self._has_begun = self._has_begun or bool(events)
        return events

    def _read(self, block: str, has_begun: bool) -> ServerEvent | None:
        """The event of the lines between two blank lines; None where they have no data."""
        data: list[str] = []
        name, is_bare = "", False
        for line in block.split("\n"):
            field, _, value = line.partition(":")
            is_bare = is_bare or ((has_begun or self._has_begun) and not data and _BARE.match(line) is not None)
            if is_bare:
                data.append(line)
            elif field == "data":
                data.append(value.removeprefix(" "))
            elif field == "event":
                name = value.removeprefix(" ")
        return ServerEvent("\n".join(data), name) if data else None


def _of_strings(value: object) -> object:
    if isinstance(value, Mapping) and not all(isinstance(each, str) for pair in value.items() for each in pair):
        raise ValueError("expected a mapping of strings to strings")
    return value


NameMap = Annotated[JSONObjectDocumentField, BeforeValidator(_of_strings)]
"""A field that takes a mapping of strings to strings and holds it as JSONText."""


class Rendering(Frozen):
    """A request as it will be sent, and its losses.

    `body_bytes` are the exact bytes of the body; `body` shows them as JSON. `unchecked` says that `extra_body` or
    `extra_headers` added fields that no dialect checked. `option_names` maps names on the wire to option names
    where the two differ. `streaming` says that the request asks for a stream of events, as it also does where the
    answer may take too long to arrive as one body; `send` folds the events to the whole reply. `timeout` and `idle`
    are in seconds.
    """

    target: Target
    path: str
    body_bytes: bytes = Field(repr=False)
    losses: tuple[Loss, ...] = ()
    headers_json: NameMap = Field(default=JSONText("{}"), alias="headers", repr=False)
    timeout: float | None = None
    idle: float = LONGEST_SILENCE
    bounds: Bounds = Bounds()
    retries: RetryPolicy = RetryPolicy()
    option_names_json: NameMap = Field(default=JSONText("{}"), alias="option_names")
    unchecked: bool = False
    streaming: bool = False
    stream_path: str = ""
    stream_fields: str = "{}"

    @property
    def headers(self) -> FrozenDict:
        """Headers of the dialect and of `extra_headers`."""
        return object_view(self.headers_json)

    @property
    def option_names(self) -> FrozenDict:
        """Names on the wire → option names, where they differ."""
        return object_view(self.option_names_json)

    @property
    def body(self) -> JSONValue:
        """The body as an immutable JSON view."""
        return freeze(decode_json(self.body_bytes))

    def for_stream(self) -> "Rendering":
        """The same request, but asking for a stream of events."""
        if self.streaming:
            return self
        fields = self.stream_fields[1:-1].encode()
        body = self.body_bytes[:-1] + (b"," if fields and len(self.body_bytes) > 2 else b"") + fields + b"}"
        return self.model_copy(update={"path": self.stream_path, "body_bytes": body, "streaming": True})


class DecodedHistory(Frozen):
    """The content of a stored request: its messages, options, settings and model.

    The options have no function, because a request holds none. A field that has no place here is in `losses`, by its
    path in the request; a field that only this vendor reads is under the vendor's name in `settings.vendor`, or in
    `settings.extra_body`.
    """

    messages: tuple[Message, ...]
    options: tuple[Option, ...] = ()
    settings: Settings = Settings()
    model: str = ""
    losses: tuple[Loss, ...] = ()


class Decoder(Protocol):
    """One stream's wire events → core events. Each stream has a new decoder; it does no I/O."""

    def feed(self, event: ServerEvent) -> Iterable[StreamEvent]:
        """Core events of one wire event, in order.

        A wire event that reports a failure raises the CallError it stands for. The terminal marker gives ReplyEnd.
        """

    def close(self) -> Iterable[StreamEvent]:
        """The events still due at a clean end of the stream: BlockEnds, and ReplyEnd if the terminal marker came."""


EncodeTurn: TypeAlias = Callable[[Turn, TurnScope, LossLog], Sequence[JSONValue]]
EncodeCount: TypeAlias = Callable[[Mapping[str, JSONValue], TurnScope], tuple[str, Mapping[str, JSONValue]]]


def _reads_no_streams(scope: DecodeScope) -> NoReturn:
    raise ResponseInvalid(f"{scope.target.dialect} reads no streams; use complete()", provider=scope.target.provider)


def _reads_no_errors(status: int, headers: Mapping[str, str], body: bytes, provider: str) -> CallError:
    raise NotImplementedError("this dialect reads no errors")


def _reads_no_requests(body: bytes, scope: DecodeScope) -> NoReturn:
    raise HistoryInvalid(f"{scope.target.dialect} reads no stored requests; keep histories as sabir's messages")


def _read_no_count(body: bytes) -> NoReturn:
    raise ResponseInvalid(f"this dialect asks for no count of tokens, so that {body[:120]!r} cannot be one")


@dataclass(frozen=True, kw_only=True, eq=False)
class Dialect:
    """A wire format as pure functions and tables; compared by identity."""

    name: str
    """`<provider>.<short name>`, which origins carry too."""
    tables: Tables
    """What the wire takes, as data."""
    encode_turn: EncodeTurn
    """The wire items of one turn, in order; a function of its arguments alone, and final once encoded.

    An empty sequence if the turn has no content left: then the next turn follows the turn that this one followed.
    Threads that share an adapter may call it at the same time.
    """
    encode_request: Callable[[RequestScope], Mapping[str, JSONValue]]
    """Every top-level field of the request but the messages: model, settings, options, hoisted system text."""
    decode: Callable[[bytes, DecodeScope], Reply]
    """A whole response → reply; raises ResponseInvalid, or the CallError that the body reports."""
    path: Callable[[Target], str]
    """The request's path below the endpoint, for example `/chat/completions`."""
    decoder: Callable[[DecodeScope], Decoder] = _reads_no_streams
    """Makes a decoder for one stream."""
    decode_error: Callable[[int, Mapping[str, str], bytes, str], CallError] = _reads_no_errors
    """Status ≥ 400, headers (names in lower case), body, provider → the error that the response reports."""
    stream_path: Callable[[Target], str] | None = None
    """The path that asks for a stream, where it differs from `path`."""
    messages_field: str = "messages"
    """The request's field that holds the encoded turns."""
    streaming_fields: Mapping[str, JSONValue] = field(default_factory=lambda: {"stream": True})
    """Fields that make the request ask for a stream."""
    framings: Mapping[str, Callable[[], Framing]] = field(default_factory=dict)
    """Beginning of a content type → the framing that cuts such a stream into events; else server-sent events."""
    family: Callable[[str], str] = itself
    """A model → the family whose members read each other's signed state."""
    place: Callable[[str, str], str] = of_any_model
    """An endpoint and a model → the place where that model's state is read; equal endpoints are one place."""
    decode_history: Callable[[bytes, DecodeScope], DecodedHistory] = _reads_no_requests
    """A stored request → its messages, options and settings; raises HistoryInvalid for bytes that are no such request.

    A field that has no place in them goes to the settings' vendor section or `extra_body`, or is a loss.
    """
    encode_count: EncodeCount | None = None
    """A request's body → the path and body that ask the vendor for its input tokens; if None, core estimates them."""
    decode_count: Callable[[bytes], int] = _read_no_count
    """The input tokens that the vendor counted."""

    def path_of(self, target: Target, *, streaming: bool) -> str:
        """The request's path below the endpoint."""
        return (self.stream_path or self.path)(target) if streaming else self.path(target)

    def framing(self, content_type: str) -> Framing:
        """A new framing, which cuts an answer of that content type into events."""
        return (self._own_framing(content_type) or ServerEventReader)()

    def is_framed(self, content_type: str) -> bool:
        """Whether the dialect names a framing for that content type, so that the answer's bytes are no text."""
        return self._own_framing(content_type) is not None

    def _own_framing(self, content_type: str) -> Callable[[], Framing] | None:
        said = content_type.lower()
        return next((make for start, make in self.framings.items() if said.startswith(start)), None)
