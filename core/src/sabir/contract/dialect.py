"""A dialect: an API format as a frozen value with tables and pure functions, and the types of their results.

    messages ──tables, encode_turn, encode_request──▶ Rendering     a request, and its losses (law 2)
    answer   ──decode | framings ▸ decoder──────────▶ Reply
    a stored request ──decode_history──▶ DecodedHistory ──render, to any dialect──▶ Rendering

A plugin creates `Dialect(name=…, tables=…, …)` in its dialect.py. Create a similar dialect with
`dataclasses.replace(…)`.

A framing splits the bytes of a stream, in any chunks, into events. Most streams are server-sent events, which are read
by the WHATWG algorithm: lines end in LF, CR or CRLF; a leading byte order mark is dropped; lines beginning with a colon
are comments; several data lines are joined with LF; an event without data is ignored. A last event without a blank line
after it is returned by `close`, because streams of some vendors end this way.

    b"data: a\\n" + b"data: b\\n\\n"  ──▶  ServerEvent(data="a\\nb")

After the first event, a JSON object or an array of objects without a field name is an event too, up to the next blank
line, because some servers end a stream with a bare error body.
"""

import re
from codecs import BOM_UTF8
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, ClassVar, NamedTuple, NoReturn, Protocol, TypeAlias

from pydantic import BeforeValidator, Field

from sabir.base.errors import HistoryInvalid, SabirError, did_you_mean
from sabir.base.failures import CallError, Loss, ResponseInvalid
from sabir.base.models import Frozen
from sabir.base.shown import Arguments, Plain
from sabir.base.values import JSONObjectDocumentField, JSONText, JSONValue, ObjectView, decode_json, freeze
from sabir.contract.operation import HTTPMethod
from sabir.contract.scope import DecodeScope, RequestScope
from sabir.contract.shared_prefix import PromptRequest, SharedPrefix, compare_prompts
from sabir.contract.turns import LossLog, Tables, Turn, TurnScope, itself, of_any_model
from sabir.options.option import Option
from sabir.vocabulary.messages import Message
from sabir.vocabulary.reply import Reply, StreamEvent, Usage
from sabir.vocabulary.settings import LONGEST_SILENCE, Bounds, RetryPolicy, Settings, Target

_BARE = re.compile(rb"\s*(\{|\[\s*(\{|\Z))")
"""Matches the beginning of a JSON object, or of an array of objects."""
_RETURN = ord("\r")


class ServerEvent(NamedTuple):
    """One event of a stream of the API. Created by a Framing and passed to `Decoder.feed`.

    `data` is the event's data as text, `event` the event's name, or "" if it has none.
    """

    data: str
    event: str = ""


class Framing(Protocol):
    """The interface of an object that splits the bytes of one stream into events, without I/O.

    Core creates one for each stream, from `Dialect.framings`. The default is ServerEventReader, for server-sent events.
    """

    @property
    def was_invalid(self) -> bool:
        """Whether some bytes were not valid UTF-8 and were replaced by U+FFFD."""

    @property
    def kept(self) -> int:
        """The number of bytes that are stored for an event that is not complete yet."""

    def feed(self, chunk: bytes) -> list[ServerEvent]:
        """Add bytes and return the events that are complete now. Raises ResponseInvalid for bytes that
        cannot be read.
        """

    def close(self) -> list[ServerEvent]:
        """Return the events that the end of the stream completes."""


class ServerEventReader:
    """Splits a stream of server-sent events into events, by the WHATWG algorithm. The default framing of a dialect.

    Invalid UTF-8 is replaced by U+FFFD, and `was_invalid` becomes True. `kept` is the number of bytes that are stored
    for an event that is not complete yet. After the first event, a bare JSON object, or an array of objects, up to a
    blank line is an event too, because some servers end a stream with an error body.
    https://html.spec.whatwg.org/multipage/server-sent-events.html
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
        """Add bytes and return the events that are complete now. Raises ResponseInvalid if `chunk` is not bytes."""
        received: object = chunk
        if not isinstance(received, bytes):
            raise ResponseInvalid(f"a stream's chunk is of type {type(received).__name__}; feed accepts only bytes")
        events: list[ServerEvent] = []
        if not self._is_between:
            first, blank, chunk = chunk.partition(b"\n\n")
            events = self._read_lines(first + blank)
        lines = chunk.replace(b"\r\n", b"\n") if _RETURN in chunk else chunk
        if self._is_between and _RETURN not in lines:
            complete, blank, chunk = lines.rpartition(b"\n\n")
            events += self._split_blocks(complete) if blank else ()
        return events + self._read_lines(chunk) if chunk else events

    def _split_blocks(self, blocks: bytes) -> list[ServerEvent]:
        """Return the events in complete blocks of lines, separated by blank lines. Faster than `_read_lines`."""
        try:
            text = blocks.decode()
        except UnicodeDecodeError:
            return self._read_lines(blocks + b"\n\n")
        events = []
        for block in text.split("\n\n") if "\n" in text else (text,):
            name, _, data = block.partition("\n") if block.startswith("event: ") else ("event: ", "", block)
            if data.startswith("data: ") and "\n" not in data:
                events.append(ServerEvent(data[6:], name[7:]))
            else:
                events += self._read_lines(block.encode() + b"\n\n")
        return events

    def close(self) -> list[ServerEvent]:
        """Return the events that the end of the stream completes."""
        return self._read_lines(b"\n\n")

    def _read_lines(self, chunk: bytes) -> list[ServerEvent]:
        """Return the events that the lines in a chunk complete. Any chunk is accepted, also one that ends within a
        line.
        """
        # A CR ends its line at once, so that no event waits for another byte; an LF after it belongs to the same end.
        text = chunk.removeprefix(b"\n") if self._after_return else chunk
        self._after_return = chunk.endswith(b"\r") or (self._after_return and not chunk)
        first, *lines = _split_lines(text)
        self._line += first
        events = []
        if lines:
            first, self._line = bytes(self._line), bytearray(lines.pop())
            events = [event for line in (first, *lines) if (event := self._add_line(line)) is not None]
        is_amid = self._line or self._data or self._event or self._is_bare
        self._is_between = self._has_begun and not is_amid and chunk.endswith(b"\n")
        self.kept = len(self._line) + len(self._data) + len(self._event)
        return events

    def _add_line(self, line: bytes) -> ServerEvent | None:
        """Add one line to the present event. Return the event if the line ends it, and None otherwise."""
        if not self._started:
            self._started = True
            line = line.removeprefix(BOM_UTF8)
        if not line:
            return self._end_event()
        if self._is_bare or (self._has_begun and not self._data and _BARE.match(line)):
            self._is_bare = True
            self._add_data(line)
            return None
        name, _, value = line.partition(b":")
        if name == b"data":
            self._add_data(value.removeprefix(b" "))
        elif name == b"event":
            self._event = self._decode_line(value.removeprefix(b" "))
        else:
            self._decode_line(line)
        return None

    def _add_data(self, data: bytes) -> None:
        self._data += data
        self._data += b"\n"

    def _end_event(self) -> ServerEvent | None:
        """Return the event that a blank line ends; None if the event has no data."""
        event = ServerEvent(self._decode_line(self._data[:-1]), self._event) if self._data else None
        self._has_begun = self._has_begun or event is not None
        self._data, self._event, self._is_bare = bytearray(), "", False
        return event

    def _decode_line(self, line: bytes | bytearray) -> str:
        try:
            return line.decode()
        except UnicodeDecodeError:
            self.was_invalid = True
            return line.decode(errors="replace")


def _split_lines(text: bytes) -> list[bytes]:
    if _RETURN in text:
        text = text.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    return text.split(b"\n")


def _check_strings(value: object) -> object:
    if isinstance(value, Mapping) and not all(isinstance(each, str) for pair in value.items() for each in pair):
        raise ValueError("expected a mapping of strings to strings")
    return value


NameMap = Annotated[JSONObjectDocumentField, BeforeValidator(_check_strings)]
"""A pydantic field type: a mapping of strings to strings, stored as JSONText."""


class Rendering(Frozen):
    """A request as it will be sent, and the losses. Created by `adapter.render`, and sent by `adapter.send`.

    `target` is where the request goes, `path` its path below the endpoint, and `body_bytes` the exact bytes of the
    body. `losses` lists what the target cannot accept unchanged. `assumptions` says, for an unknown model, which known
    model's facts were assumed. `unchecked` lists the paths of settings, options, contents and extra fields that are
    sent although no source documents that the target accepts them. `streaming` is True if the request asks for a stream
    of events; the dialect asks for one if an answer may take long, and `send` still returns a complete reply.
    `timeout`, `idle` and `total` (in seconds), `bounds` and `retries` come from the call's Settings; `idle` is never
    None. `method` is the HTTP method, "POST" for every conversation. `prompt_fields` and `cache_markers` are those of
    the Dialect, with the messages as the last field. `reuses` is the beginning that a cache can
    reuse of the previous request, if a conversation of sabir-session sent both requests; None otherwise.

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
    prompt_fields: tuple[str, ...] = Field(default=("tools", "system", "messages"), repr=False)
    cache_markers: tuple[str, ...] = Field(default=(), repr=False)
    reuses: SharedPrefix | None = None
    stream_path: str = Field(default="", repr=False)
    stream_fields: str = Field(default="{}", repr=False)
    method: HTTPMethod = "POST"

    headers: ClassVar = ObjectView("headers_json", "Headers of the dialect and of `extra_headers`, without the SDK's.")
    option_names: ClassVar = ObjectView("option_names_json", "Name in the request → option's name, if different.")
    argument_names: ClassVar = ObjectView("argument_names_json", "Option → (argument in the request → real argument).")

    @property
    def body(self) -> JSONValue:
        """The request's body as an immutable JSON value. Parsed from `body_bytes` at each access."""
        return freeze(decode_json(self.body_bytes))

    def shared_prefix(self, previous: "Rendering", usage: Usage | None = None) -> SharedPrefix:
        """Return the beginning that this request has in common with an earlier one, which a prompt cache can reuse.

        `usage` is the usage of the reply to `previous`. With it, `tokens` is calculated from the provider's own
        count, and includes the reply, which some providers cache too; without it, `tokens` is estimated from the bytes.

        >>> import sabir
        >>> llm = sabir.adapter("echo:m")
        >>> chat = [sabir.user("Hello!")]
        >>> first = llm.render(chat)
        >>> second = llm.render([*chat, sabir.assistant("Hello!"), sabir.user("Bye!")])
        >>> second.shared_prefix(first).changed
        ''
        >>> llm.render("Good day!").shared_prefix(first).changed
        'messages[0]'
        """
        earlier, later = (
            PromptRequest(each.target, each.body_bytes, each.prompt_fields, each.cache_markers)
            for each in (previous, self)
        )
        return compare_prompts(earlier, later, usage)

    def __repr_args__(self) -> Arguments:
        """Yield the arguments of `repr`: most fields that differ from their defaults, but not the headers, and only the
        size of the body, because headers and body may contain keys.
        """
        yield from super().__repr_args__()
        yield "body_bytes", Plain(f"<{len(self.body_bytes)} bytes>")

    def for_stream(self) -> "Rendering":
        """Return a rendering of the same request that asks for a stream of events. If this one does, return
        it itself.
        """
        if self.streaming:
            return self
        fields = self.stream_fields[1:-1].encode()
        body = self.body_bytes[:-1] + (b"," if fields and len(self.body_bytes) > 2 else b"") + fields + b"}"
        return self.model_copy(update={"path": self.stream_path, "body_bytes": body, "streaming": True})


class DecodedHistory(Frozen):
    """The content of a stored request. Created by `PureDialect.decode_history`.

    `messages` are the conversation and `model` the model's name, or "". `options` have no functions, because requests
    do not contain functions. `settings` contains the settings; fields that only this vendor knows are in
    `settings.vendor` and `settings.extra_body_for`. `losses` names what is missing or changed, by its path in the
    request.
    """

    messages: tuple[Message, ...]
    options: tuple[Option, ...] = ()
    settings: Settings = Settings()
    model: str = ""
    losses: tuple[Loss, ...] = ()


class Decoder(Protocol):
    """The interface of an object that converts the events of one stream to sabir's events, without I/O. Created for
    each stream by `Dialect.decoder`.
    """

    def feed(self, event: ServerEvent) -> Iterable[StreamEvent]:
        """Return the stream events for one event of the API, in order.

        Raise the CallError for an event that reports a failure; `ErrorTable.report` creates one. Return ReplyEnd for
        the event that ends the reply.
        """

    def close(self) -> Iterable[StreamEvent]:
        """Return the remaining events when the stream ends without an error: a BlockEnd for each open block, and
        ReplyEnd if the API marked the end and `feed` did not return ReplyEnd. Without any ReplyEnd, core raises
        StreamBroken.
        """


EncodeTurn: TypeAlias = Callable[[Turn, TurnScope, LossLog], Sequence[JSONValue]]
EncodeCount: TypeAlias = Callable[[Mapping[str, JSONValue], TurnScope], tuple[str, Mapping[str, JSONValue]]]


def _reads_no_streams(scope: DecodeScope) -> NoReturn:
    """Create the Decoder for one stream. This default raises ResponseInvalid, for an API without streams."""
    raise ResponseInvalid(f"{scope.target.dialect} has no streams; call complete()", provider=scope.target.provider)


def _reads_no_errors(status: int, headers: Mapping[str, str], body: bytes, provider: str) -> CallError:
    """Return the CallError for a response with an error status. This default raises NotImplementedError; a dialect
    usually passes `ErrorTable(…).decode`.
    """
    raise NotImplementedError("this dialect cannot read errors")


def _reads_no_requests(body: bytes, scope: DecodeScope) -> NoReturn:
    """Convert the body of a stored request to a DecodedHistory. This default raises HistoryInvalid."""
    raise HistoryInvalid(f"{scope.target.dialect} cannot read stored requests; store histories as sabir's messages")


def _read_no_count(body: bytes) -> NoReturn:
    """Return the number of input tokens from the body of a response. This default raises ResponseInvalid, for an API
    that cannot count.
    """
    raise ResponseInvalid(f"this dialect cannot count tokens, so {body[:120]!r} is not a token count")


@dataclass(frozen=True, kw_only=True, eq=False)
class Dialect:
    """One API format: tables and pure functions that translate between sabir's messages and the API's JSON. A plugin
    creates one for each format.

    Only the fields without a default are required. The functions do no I/O. Dialects are compared by identity; change
    one with `dataclasses.replace`.
    """

    name: str
    """The full name, `<provider>.<short name>`, for example "acme.chat". Stored in the origin of a model's messages."""
    tables: Tables
    """The rules of the API as data."""
    encode_turn: EncodeTurn
    """Return the items of the request for one turn, in order. Arguments: the Turn, the TurnScope, the LossLog.

    The result must depend on the arguments only, because core caches it; threads may call the function at the same
    time. Return an empty sequence if no content is left; `follows` of the next turn ignores this turn.
    """
    encode_request: Callable[[RequestScope], Mapping[str, JSONValue]]
    """Return the top-level fields of the request: model, settings, options, and the leading system text if the API has
    a field for it. Core adds the messages, `streaming_fields` and `extra_body`. Arguments: the RequestScope.
    """
    decode: Callable[[bytes, DecodeScope], Reply]
    """Convert the body of a complete response to a Reply. Arguments: the body, the DecodeScope.

    Raises ResponseInvalid, or the CallError that the body reports.
    """
    path: Callable[[Target], str]
    """Return the path of a request below the endpoint, for example "/chat/completions"."""
    decoder: Callable[[DecodeScope], Decoder] = _reads_no_streams
    """Create the Decoder for one stream. Arguments: the DecodeScope. The default raises ResponseInvalid, for APIs
    without streams.
    """
    decode_error: Callable[[int, Mapping[str, str], bytes, str], CallError] = _reads_no_errors
    """Return the CallError for a response with a status of 400 or more. Arguments: status, headers (names in lower
    case), body, provider. Usually `ErrorTable(…).decode`. The default raises NotImplementedError.
    """
    stream_path: Callable[[Target], str] | None = None
    """Return the path of a streamed request, for APIs with another path for streams. None means that `path` is used."""
    messages_field: str = "messages"
    """The name of the request's field that contains the encoded turns."""
    streaming_fields: Mapping[str, JSONValue] = field(default_factory=lambda: {"stream": True})
    """Fields that are added to the request to ask for a stream, except those that the model refuses or ignores. The
    default is {"stream": True}.
    """
    framings: Mapping[str, Callable[[], Framing]] = field(default_factory=dict)
    """Content type → function that creates the framing for it, for streams that are not server-sent events. A key
    matches every content type that begins with it. Keys are in lower case.
    """
    family: Callable[[str], str] = itself
    """Model name → name of its family. Signed state of a model is also sent to other models of its family at the same
    `place`. By default every model is its own family.
    """
    place: Callable[[str, str], str] = of_any_model
    """Endpoint and model → a key for the place where signed state can be read. Signed state is sent only to a target
    with an equal key. By default the key is the endpoint.
    """
    decode_history: Callable[[bytes, DecodeScope], DecodedHistory] = _reads_no_requests
    """Convert the body of a stored request to messages, options and settings. Raises HistoryInvalid for anything else.

    Fields without an equivalent go to the vendor settings or `extra_body`, or are reported as losses. `History` helps
    to write this function. The default raises HistoryInvalid.
    """
    encode_count: EncodeCount | None = None
    """Return path and body of the request that counts the input tokens of a request. Arguments: the request's body, the
    TurnScope. None if the API cannot count; then core estimates.
    """
    prompt_fields: tuple[str, ...] = ("tools", "system")
    """The fields of the request that the model reads before the messages, in this order, and fields whose change makes
    a prompt cache useless for the messages. `Rendering.shared_prefix` compares them.
    """
    cache_markers: tuple[str, ...] = ()
    """The names of fields that mark the end of a cached prompt. Their values are objects without further objects."""
    quirks: Mapping[str, str] = field(default_factory=dict)
    """Quirk → its meaning: the deviations of endpoints and models from this API that the dialect supports."""
    decode_count: Callable[[bytes], int] = _read_no_count
    """Return the number of input tokens from the body of the response to the request of `encode_count`. Usually
    `partial(read_count, …)`. The default raises ResponseInvalid.
    """

    def check_quirks(self, names: Iterable[str], source: str, error: type[SabirError]) -> None:
        """Raise `error` for the first name that `quirks` does not declare. `source` names who uses the quirks."""
        for name in sorted(set(names).difference(self.quirks)):
            remedy = did_you_mean(name, self.quirks, f"its quirks are {', '.join(self.quirks) or 'none'}")
            raise error(f"{source} has the quirk {name!r}, which {self.name} does not declare; {remedy}")

    def path_of(self, target: Target, *, streaming: bool) -> str:
        """Return the path of a request below the endpoint: by `stream_path` if `streaming` is True and the dialect has
        this function, otherwise by `path`.
        """
        return (self.stream_path or self.path)(target) if streaming else self.path(target)

    def framing(self, content_type: str) -> Framing:
        """Return a new framing for a response of this content type: from `framings` if a key matches, otherwise a
        ServerEventReader.
        """
        return (self._own_framing(content_type) or ServerEventReader)()

    def is_framed(self, content_type: str) -> bool:
        """Return whether `framings` has a framing for this content type."""
        return self._own_framing(content_type) is not None

    def _own_framing(self, content_type: str) -> Callable[[], Framing] | None:
        lower = content_type.lower()
        return next((make for start, make in self.framings.items() if lower.startswith(start)), None)
