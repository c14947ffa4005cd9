"""The Protocols that a plugin implements, and the values that pass between it and core.

    Provider ──dialect()──▶ Dialect ──decoder()──▶ Decoder          pure: bytes and tables
        └────connect()──▶ Connection ──open()──▶ WireResponse       I/O: the vendor's SDK client

    messages ──render──▶ Rendering                    a request, and the list of all that it could not carry (law 2)
    a stored request ──decode_history──▶ DecodedHistory ──render, to any dialect──▶ Rendering

Everything else (turns, pairing, ids, media policy, losses, folding, retries) is core's.
"""

from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Protocol, TypeAlias, runtime_checkable

from pydantic import BeforeValidator, ConfigDict, Field

from sabir.base.errors import SabirError
from sabir.base.failures import CallError
from sabir.base.losses import Loss
from sabir.base.models import Frozen
from sabir.base.values import FrozenDict, JSONObjectDocumentField, JSONText, JSONValue, decode_json, freeze, object_view
from sabir.contract.framing import ServerEvent
from sabir.contract.scope import DecodeScope, LossLog, RequestScope, Tables, Turn, TurnScope
from sabir.options.option import Option
from sabir.vocabulary.messages import Message
from sabir.vocabulary.reply import Reply, StreamEvent
from sabir.vocabulary.settings import LONGEST_SILENCE, Bounds, RetryPolicy, Settings
from sabir.vocabulary.target import ModelInfo, Target


def _of_strings(value: object) -> object:
    if isinstance(value, Mapping) and not all(isinstance(each, str) for pair in value.items() for each in pair):
        raise ValueError("expected a mapping of strings to strings")
    return value


NameMap = Annotated[JSONObjectDocumentField, BeforeValidator(_of_strings)]
"""Takes a mapping of strings, held as JSONText."""


class Rendering(Frozen):
    """A request as it will be sent, and everything that it could not carry.

    `body_bytes` are the very bytes; `body` shows them as JSON. `unchecked` says that `extra_body` or
    `extra_headers` put something in that no dialect looked at. `option_names` maps names on the wire to option
    names where the wire could not take those. `streaming` says that it asks for a stream of events, be it because
    the answer may take too long to come at once; `send` folds them to the whole reply.
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
        """The same request asking for a stream of events."""
        if self.streaming:
            return self
        fields = self.stream_fields[1:-1].encode()
        body = self.body_bytes[:-1] + (b"," if fields and len(self.body_bytes) > 2 else b"") + fields + b"}"
        return self.model_copy(update={"path": self.stream_path, "body_bytes": body, "streaming": True})


class DecodedHistory(Frozen):
    """What a request held: its conversation, what was offered, how the call was to be made, and for which model.

    The options have no function: a request does not say what runs. What has no place here is in `losses`, by its
    path in the request; what only the vendor reads is under its name in `settings.vendor`, or in
    `settings.extra_body`.
    """

    messages: tuple[Message, ...]
    options: tuple[Option, ...] = ()
    settings: Settings = Settings()
    model: str = ""
    losses: tuple[Loss, ...] = ()


SABIR_API = 1
"""The version of this contract; core supports the current and the previous one."""
SUPPORTED_APIS = frozenset({SABIR_API})

ApiKey: TypeAlias = str | Callable[[], str]


class TokenCount(Frozen):
    """Input tokens of a request; `estimated` where the provider did not count them itself."""

    input_tokens: int
    estimated: bool


class Decoder(Protocol):
    """One stream's wire events → core events. Made anew for every stream; holds no I/O."""

    def feed(self, event: ServerEvent) -> Iterable[StreamEvent]:
        """Core events of one wire event, in order.

        A wire event that reports a failure raises the CallError it stands for. The terminal marker gives ReplyEnd.
        """

    def close(self) -> Iterable[StreamEvent]:
        """What is still due at a clean end of the stream: BlockEnds, and ReplyEnd if the terminal marker came."""


class Dialect(Protocol):
    """A wire format as pure functions and tables."""

    @property
    def name(self) -> str:
        """`<provider>.<short name>`, for example the name that its origin carries."""

    @property
    def tables(self) -> Tables:
        """What the wire takes, as data."""

    @property
    def messages_field(self) -> str:
        """The request's field that holds the encoded turns."""

    @property
    def streaming_fields(self) -> Mapping[str, JSONValue]:
        """Fields that make the request ask for a stream."""

    def path(self, target: Target, *, streaming: bool) -> str:
        """The request's path below the endpoint, for example `/chat/completions`."""

    def family(self, model: str) -> str:
        """The model family whose members read each other's signed state."""

    def encode_turn(self, turn: Turn, scope: TurnScope, losses: LossLog) -> Sequence[JSONValue]:
        """The wire items of one turn, in order; a function of its arguments alone, and final once encoded.

        An empty sequence where nothing is left of it: then the next turn follows what this one followed. Threads that
        share an adapter may call it at the same time.
        """

    def encode_request(self, scope: RequestScope) -> Mapping[str, JSONValue]:
        """Every top-level field of the request but the messages: model, settings, options, hoisted system text."""

    def encode_count(self, body: Mapping[str, JSONValue], target: Target) -> tuple[str, Mapping[str, JSONValue]] | None:
        """The path and body that ask the vendor to count a request's input tokens; None where it cannot."""

    def decode_count(self, body: bytes) -> int:
        """The input tokens that the vendor counted."""

    def decode(self, body: bytes, scope: DecodeScope) -> Reply:
        """A whole response → reply; ResponseInvalid, or the CallError that the body reports."""

    def decoder(self, scope: DecodeScope) -> Decoder:
        """A decoder for one stream."""

    def decode_history(self, body: bytes, scope: DecodeScope) -> DecodedHistory:
        """A stored request → its messages, options and settings; HistoryInvalid for what is no such request.

        What has no place in them goes to the settings' vendor section or `extra_body`, or is a loss.
        """

    def decode_error(self, status: int, headers: Mapping[str, str], body: bytes, provider: str) -> CallError:
        """The error that a response of status ≥ 400 stands for; header names are lower case."""


@dataclass(frozen=True, slots=True)
class WireRequest:
    """Bytes to send. `timeout` bounds each read, in seconds; None leaves the SDK's own. Core bounds the whole call."""

    path: str
    body: bytes = field(repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    timeout: float | None = None
    streaming: bool = False


class WireHead(Protocol):
    """What is known of an answer before its body.

    It may have `secrets` too, texts that went out with the request: no error shows one that the answer repeats.
    """

    @property
    def status(self) -> int:
        """The HTTP status."""

    @property
    def headers(self) -> Mapping[str, str]:
        """Names in lower case."""


class WireResponse(WireHead, Protocol):
    """A WireHead whose body has not been read; closing it gives its connection back."""

    def chunks(self) -> Iterator[bytes]:
        """The body's bytes as they come, decompressed in small pieces: core counts them. A piece may be empty."""

    def close(self) -> None:
        """Close it; twice is harmless."""


class AsyncWireResponse(WireHead, Protocol):
    """As WireResponse, for an event loop."""

    def chunks(self) -> AsyncIterator[bytes]:
        """The body's bytes as they come, decompressed in small pieces: core counts them. A piece may be empty."""

    async def aclose(self) -> None:
        """Close it; twice is harmless."""


class Connection(Protocol):
    """A provider's SDK clients, made at the first send. One `open` a kind; core drives both."""

    def open_sync(self, request: WireRequest) -> WireResponse:
        """Send; return at the response's headers, whatever the status."""

    async def open(self, request: WireRequest) -> AsyncWireResponse:
        """Send; return at the response's headers, whatever the status."""

    def translate(self, error: Exception) -> SabirError | None:
        """The library error for an exception that `open` or `chunks` raised; None for what is not the wire's."""

    def close(self) -> None:
        """Close the sync client if this connection made it."""

    async def aclose(self) -> None:
        """Close both clients if this connection made them."""


@dataclass(frozen=True, slots=True)
class Access:
    """How a user reaches a provider: what is left None is the provider's default.

    `api_key` may be a callable, asked at each send, so keep it cheap; it is never shown. `client` is the user's own
    SDK client, sync or async, with its own endpoint and credentials.
    """

    api_key: ApiKey | None = field(default=None, repr=False)
    base_url: str | None = field(default=None, repr=False)
    client: Any = field(default=None, repr=False)
    """The vendor SDK's client object; its type is the plugin's business, hence Any."""


@runtime_checkable
class Provider(Protocol):
    """What an entry point of the group `sabir.providers` names: endpoint, credentials, client, dialects."""

    @property
    def name(self) -> str:
        """As the entry point names it."""

    @property
    def api_version(self) -> int:
        """The SABIR_API that it was written for."""

    @property
    def dialects(self) -> tuple[str, ...]:
        """Short names, the default first."""

    @property
    def key_variables(self) -> tuple[str, ...]:
        """Environment variables that hold the key, in the order in which they are read; empty where none is needed."""

    def dialect(self, short_name: str) -> Dialect:
        """The dialect of that short name; only called with one of `dialects`."""

    def endpoint(self, access: Access) -> str:
        """The endpoint's URL, without making a client."""

    def connect(self, access: Access) -> Connection:
        """A connection; makes no client and reads no key before its first `open`."""

    def quirks(self, access: Access) -> frozenset[str]:
        """Deviations of this endpoint from its dialect, by the dialect's names."""

    def models(self) -> tuple[ModelInfo, ...]:
        """What is known of the provider's models, longest prefixes first."""


class FetchedMedia(Frozen):
    """Bytes behind a URL. `url` is where they came from after redirects. In JSON the bytes are base64."""

    model_config = ConfigDict(ser_json_bytes="base64", val_json_bytes="base64")

    data: bytes
    mime: str
    url: str


class Fetcher(Protocol):
    """Fetches media for targets that take only bytes; nothing fetches unless the user gave one (UP-22)."""

    def fetch_sync(self, url: str) -> FetchedMedia:
        """The bytes behind a web URL; MediaRefused where fetching is not allowed or fails."""

    async def fetch(self, url: str) -> FetchedMedia:
        """The bytes behind a web URL; MediaRefused where fetching is not allowed or fails."""
