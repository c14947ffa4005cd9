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
from typing import Annotated, ClassVar, NamedTuple, NoReturn, Protocol, TypeAlias

from pydantic import BeforeValidator, Field

from sabir.base.errors import HistoryInvalid
from sabir.base.failures import CallError, Loss, ResponseInvalid
from sabir.base.models import Frozen
from sabir.base.shown import Arguments, Plain
from sabir.base.values import JSONObjectDocumentField, JSONText, JSONValue, ObjectView, decode_json, freeze
from sabir.contract.scope import DecodeScope, RequestScope
from sabir.contract.turns import LossLog, Tables, Turn, TurnScope, itself, of_any_model
from sabir.options.option import Option
from sabir.vocabulary.messages import Message
from sabir.vocabulary.reply import Reply, StreamEvent
from sabir.vocabulary.settings import LONGEST_SILENCE, Bounds, RetryPolicy, Settings, Target

_BARE = re.compile(rb"\s*(\{|\[\s*(\{|\Z))")
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

    Each byte is read once, however small the chunks are: a long line is kept until it ends. Events that stand whole
    between two blank lines of a chunk, as most do, are cut out at once; other bytes are read line by line. `kept`
    is how many bytes wait for the end of their event.
    """

    def __init__(self) -> None:
        self.was_invalid = False
        self.kept = 0
        self._line = bytearray()
        self._started = False
        self._after_return = False
        self._data = bytearray()
        self._event = ""
        self._is_bare = False
        self._has_begun = False
        self._is_between = False

    def feed(self, chunk: bytes) -> list[ServerEvent]:
        """Return the events that are whole after this chunk; raises ResponseInvalid for a chunk that is not bytes."""
        given: object = chunk
        if not isinstance(given, bytes):
            raise ResponseInvalid(f"a stream's chunk is of type {type(given).__name__}; feed accepts only bytes")
        events: list[ServerEvent] = []
        if not self._is_between:
            first, blank, chunk = chunk.partition(b"\n\n")
            events = self._read(first + blank)
        lines = chunk.replace(b"\r\n", b"\n") if _RETURN in chunk else chunk
        if self._is_between and _RETURN not in lines:
            complete, blank, chunk = lines.rpartition(b"\n\n")
            events += self._cut(complete) if blank else ()
        return events + self._read(chunk) if chunk else events

    def _cut(self, whole: bytes) -> list[ServerEvent]:
        """The events of the bytes between two blank lines."""
        try:
            text = whole.decode()
        except UnicodeDecodeError:
            return self._read(whole + b"\n\n")
        events = []
        for block in text.split("\n\n") if "\n" in text else (text,):
            name, _, data = block.partition("\n") if block.startswith("event: ") else ("event: ", "", block)
            if data.startswith("data: ") and "\n" not in data:
                events.append(ServerEvent(data[6:], name[7:]))
            else:
                events += self._read(block.encode() + b"\n\n")
        return events

    def close(self) -> list[ServerEvent]:
        """The events that the end of the stream completes."""
        return self._read(b"\n\n")

    def _read(self, chunk: bytes) -> list[ServerEvent]:
        # A CR ends its line at once, so that no event waits for another byte; an LF after it belongs to the same end.
        text = chunk.removeprefix(b"\n") if self._after_return else chunk
        self._after_return = chunk.endswith(b"\r") or (self._after_return and not chunk)
        first, *lines = _lines(text)
        self._line += first
        events = []
        if lines:
            whole, self._line = bytes(self._line), bytearray(lines.pop())
            events = [event for line in (whole, *lines) if (event := self._take(line)) is not None]
        is_amid = self._line or self._data or self._event or self._is_bare
        self._is_between = self._has_begun and not is_amid and chunk.endswith(b"\n")
        self.kept = len(self._line) + len(self._data) + len(self._event)
        return events

    def _take(self, line: bytes) -> ServerEvent | None:
        if not self._started:
            self._started = True
            line = line.removeprefix(BOM_UTF8)
        if not line:
            return self._end()
        if self._is_bare or (self._has_begun and not self._data and _BARE.match(line)):
            self._is_bare = True
            self._keep(line)
            return None
        name, _, value = line.partition(b":")
        if name == b"data":
            self._keep(value.removeprefix(b" "))
        elif name == b"event":
            self._event = self._text(value.removeprefix(b" "))
        else:
            self._text(line)
        return None

    def _keep(self, data: bytes) -> None:
        self._data += data
        self._data += b"\n"

    def _end(self) -> ServerEvent | None:
        """The event that a blank line ends; None where it has no data."""
        event = ServerEvent(self._text(self._data[:-1]), self._event) if self._data else None
        self._has_begun = self._has_begun or event is not None
        self._data, self._event, self._is_bare = bytearray(), "", False
        return event

    def _text(self, line: bytes | bytearray) -> str:
        try:
            return line.decode()
        except UnicodeDecodeError:
            self.was_invalid = True
            return line.decode(errors="replace")


def _lines(text: bytes) -> list[bytes]:
    if _RETURN in text:
        text = text.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    return text.split(b"\n")


def _of_strings(value: object) -> object:
    if isinstance(value, Mapping) and not all(isinstance(each, str) for pair in value.items() for each in pair):
        raise ValueError("expected a mapping of strings to strings")
    return value


NameMap = Annotated[JSONObjectDocumentField, BeforeValidator(_of_strings)]
"""A field that takes a mapping of strings to strings and holds it as JSONText."""


class Rendering(Frozen):
    """A request as it will be sent, and what gets lost. Created by `adapter.render`, and sent by `adapter.send`.

    `target` is where the request goes, `path` its path below the endpoint, and `body_bytes` the exact bytes of the
    body. `losses` lists what the target cannot accept. `assumptions` are sentences about a model that no table knows.
    `unchecked` names the settings, media and extra fields that no source documents for this target. `streaming` is True
    if the request asks for a stream of events; long answers are requested so, and `send` still returns a complete
    reply. `timeout`, `idle` and `total` (in seconds), `bounds` and `retries` come from the call's Settings.

    >>> import sabir
    >>> llm = sabir.adapter("echo:m")
    >>> rendering = llm.render(sabir.user("Hello!"))
    >>> rendering.path, rendering.body["messages"]
    ('/echo', [{'from': 'user', 'text': 'Hello!'}])
    >>> llm.send_sync(rendering).text
    'Hello!'
    """

    target: Target
    path: str
    body_bytes: bytes = Field(repr=False)
    losses: tuple[Loss, ...] = ()
    assumptions: tuple[str, ...] = ()
    headers_json: NameMap = Field(default=JSONText("{}"), alias="headers", repr=False)
    timeout: float | None = None
    idle: float = LONGEST_SILENCE
    total: float | None = None
    bounds: Bounds = Bounds()
    retries: RetryPolicy = RetryPolicy()
    option_names_json: NameMap = Field(default=JSONText("{}"), alias="option_names")
    argument_names_json: JSONObjectDocumentField = Field(default=JSONText("{}"), alias="argument_names", repr=False)
    unchecked: tuple[str, ...] = ()
    streaming: bool = False
    stream_path: str = Field(default="", repr=False)
    stream_fields: str = Field(default="{}", repr=False)

    headers: ClassVar = ObjectView("headers_json", "Headers of the dialect and of `extra_headers`, without the SDK's.")
    option_names: ClassVar = ObjectView("option_names_json", "Name in the request → option's name, where they differ.")
    argument_names: ClassVar = ObjectView("argument_names_json", "Option → argument's name in the request → real name.")

    @property
    def body(self) -> JSONValue:
        """The request's body as an immutable JSON value."""
        return freeze(decode_json(self.body_bytes))

    def __repr_args__(self) -> Arguments:
        """Its fields but the headers; of the body the size: both may hold what is in no repr, as a server's own key."""
        yield from super().__repr_args__()
        yield "body_bytes", Plain(f"<{len(self.body_bytes)} bytes>")

    def for_stream(self) -> "Rendering":
        """Return the same request, but asking for a stream of events."""
        if self.streaming:
            return self
        fields = self.stream_fields[1:-1].encode()
        body = self.body_bytes[:-1] + (b"," if fields and len(self.body_bytes) > 2 else b"") + fields + b"}"
        return self.model_copy(update={"path": self.stream_path, "body_bytes": body, "streaming": True})


class DecodedHistory(Frozen):
    """The content of a stored request. Created by `PureDialect.decode_history`.

    `messages` are the conversation and `model` the model's name. `options` have no functions, because requests do not
    contain functions. `settings` holds the settings, and the fields that only this vendor knows, in `vendor` and
    `extra_body_for`. `losses` names the fields that have no place here, by their paths in the request.
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
    raise ResponseInvalid(f"{scope.target.dialect} has no streaming; use complete()", provider=scope.target.provider)


def _reads_no_errors(status: int, headers: Mapping[str, str], body: bytes, provider: str) -> CallError:
    raise NotImplementedError("this dialect cannot read errors")


def _reads_no_requests(body: bytes, scope: DecodeScope) -> NoReturn:
    raise HistoryInvalid(f"{scope.target.dialect} cannot read stored requests; store histories as sabir's messages")


def _read_no_count(body: bytes) -> NoReturn:
    raise ResponseInvalid(f"this dialect cannot count tokens, so {body[:120]!r} is not a token count")


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
