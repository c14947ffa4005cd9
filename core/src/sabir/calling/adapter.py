"""What users hold: a provider speaking one dialect for one model, on behalf of one policy.

    llm = sabir.adapter("provider:model")
    llm.render ──▶ Rendering ──▶ llm.send ──▶ Reply        complete = render + send
                             └─▶ llm.stream ─▶ ReplyStream

Rendering needs no key and no network. The vendor's client is made at the first send, once for all threads that share
an adapter and once for each event loop, which closes it when it ends. A forked child makes its own.
"""

from threading import Lock
from typing import Any, Never, TypeVar, Unpack
from urllib.parse import urlsplit, urlunsplit

from pydantic_core import to_json

from sabir.base.errors import SettingsInvalid
from sabir.base.losses import Loss, Strict, refuse, strict_kinds
from sabir.calling.calls import Adapter, CallArguments, Messages, checked_key, checked_policy, checked_settings
from sabir.calling.clock import Clock
from sabir.calling.drive import SyncWire, Watch, Wire, drive, drive_sync, result_of, unwatched
from sabir.calling.exchange import Exchange, Script, call_script, count_script, folded_script, stream_script
from sabir.calling.fetching import Derived, MediaFetching
from sabir.calling.stream import AsyncClosing, ReplyStream, SyncClosing, SyncReplyStream
from sabir.calling.telemetry import CallWatch
from sabir.contract.dialect import Dialect, Rendering
from sabir.contract.provider import Access, ApiKey, Connection, Fetcher, Provider, TokenCount, WireRequest
from sabir.contract.scope import DecodeScope
from sabir.discovery.registry import default_registry, models_of
from sabir.hooks.plugins import installed_hooks
from sabir.options.option import as_options
from sabir.reading.incoming import StreamState
from sabir.rendering.renderer import Renderer
from sabir.vocabulary.constructors import as_messages, listed
from sabir.vocabulary.messages import Message
from sabir.vocabulary.reply import Reply
from sabir.vocabulary.settings import Settings, refuse_misnamed
from sabir.vocabulary.target import ModelInfo, Target, find_model

__all__ = ["Adapter", "CallArguments", "Messages", "ModelAdapter", "adapter", "without_secrets"]

SomeWire = TypeVar("SomeWire", Wire, SyncWire)
_NO_SETTINGS = Settings()
_CALL = ("options", "settings", "strict")
_FACTORY = (
    "model", "api_key", "base_url", "client", "speaks_as", "settings", "strict", "fetcher", "model_info",
)  # fmt: skip


class ModelAdapter(AsyncClosing, SyncClosing):
    """The adapter of one model; made by `sabir.adapter`.

    Its methods raise RenderingRefused for losses that `strict` names, Misnamed for another library's arguments,
    MediaRefused for media that cannot be fetched, and CallError for calls that fail.
    """

    def __init__(
        self,
        provider: Provider,
        dialect: Dialect,
        model: str,
        access: Access,
        *,
        speaks_as: str = "llm",
        settings: Settings | None = None,
        strict: Strict = False,
        fetcher: Fetcher | None = None,
        model_info: ModelInfo | None = None,
    ) -> None:
        endpoint = without_secrets(provider.endpoint(access))
        self._target = Target(provider=provider.name, dialect=dialect.name, model=model, endpoint=endpoint)
        self._provider = provider
        self._dialect = dialect
        self._access = access
        self._speaks_as = checked_policy(speaks_as)
        self._settings = checked_settings(settings, provider.name) or _NO_SETTINGS
        self._strict = strict
        info = model_info or find_model(models_of(provider), model, dialect.family(model))
        self._renderer = Renderer(
            dialect, self._target, speaks_as=speaks_as, model_info=info, quirks=provider.quirks(access)
        )
        self._media = MediaFetching(fetcher, self._renderer.scope)
        self._connection: Connection | None = None
        self._lock = Lock()

    @property
    def target(self) -> Target:
        """Where renderings go: provider, dialect, model, endpoint."""
        return self._target

    @property
    def provider(self) -> Provider:
        """Who carries what it sends."""
        return self._provider

    @property
    def access(self) -> Access:
        """How it reaches its provider; the key in it is never shown."""
        return self._access

    @property
    def model(self) -> str:
        """The model's name, as its provider knows it."""
        return self._target.model

    @property
    def dialect(self) -> str:
        """The dialect's name."""
        return self._target.dialect

    @property
    def speaks_as(self) -> str:
        """The policy on whose behalf the adapter speaks."""
        return self._speaks_as

    def new_renderer(self) -> Renderer:
        """A renderer for the same target with nothing kept, which shows what this adapter renders afresh."""
        return self._renderer.new()

    def __repr__(self) -> str:
        """Without secrets."""
        target = self._target
        return (
            f"ModelAdapter({str(target)!r}, dialect={target.dialect!r}, endpoint={target.endpoint!r}, "
            f"speaks_as={self._speaks_as!r})"
        )

    def render(self, messages: Messages, **how: Unpack[CallArguments]) -> Rendering:
        """The request and its losses; pure: no key, no network, nothing fetched.

        What a fetcher would bring shows here as media that the target does not take: pass the messages through
        `fetch_media` first to render them with it.
        """
        refuse_misnamed("render", how, _CALL)
        return self._render(Derived(listed(messages)), how)

    async def fetch_media(self, messages: Messages) -> list[Message]:
        """The messages with media as bytes where the target takes them only so; as they are without a fetcher."""
        return (await self._media.fetch(as_messages(messages))).messages

    def fetch_media_sync(self, messages: Messages) -> list[Message]:
        """As `fetch_media`, waiting."""
        return self._media.fetch_sync(as_messages(messages)).messages

    async def complete(self, messages: Messages, **how: Unpack[CallArguments]) -> Reply:
        """Render and send. Append `reply.messages` to the conversation, all of them, before any result."""
        return await self.send(await self._fetched(messages, "complete", how))

    def complete_sync(self, messages: Messages, **how: Unpack[CallArguments]) -> Reply:
        """As `complete`, waiting; it works inside a running event loop too, which stands still meanwhile."""
        return self.send_sync(self._fetched_sync(messages, "complete_sync", how))

    async def send(self, rendering: Rendering) -> Reply:
        """Send a rendering as it is; SettingsInvalid for one that was made for another target."""
        return result_of(await drive(*self._call(Wire, rendering)))

    def send_sync(self, rendering: Rendering) -> Reply:
        """As `send`, waiting."""
        return result_of(drive_sync(*self._call(SyncWire, rendering)))

    def stream(self, messages: Messages | Rendering, **how: Unpack[CallArguments]) -> ReplyStream:
        """Render and send; the reply as it comes. What is refused is refused here, the request goes out later."""
        ready = self._ready(messages, "stream", how)
        state = StreamState(self._dialect, self._scope(ready))

        async def start() -> tuple[Script[Reply], Wire]:
            rendering = ready if isinstance(ready, Rendering) else await self._fetched(ready, "stream", how)
            return self._call(Wire, rendering.for_stream(), state)

        return ReplyStream(state, start)

    def stream_sync(self, messages: Messages | Rendering, **how: Unpack[CallArguments]) -> SyncReplyStream:
        """As `stream`, waiting."""
        ready = self._ready(messages, "stream_sync", how)
        state = StreamState(self._dialect, self._scope(ready))

        def start() -> tuple[Script[Reply], SyncWire]:
            rendering = ready if isinstance(ready, Rendering) else self._fetched_sync(ready, "stream_sync", how)
            return self._call(SyncWire, rendering.for_stream(), state)

        return SyncReplyStream(state, start)

    async def count_tokens(self, messages: Messages, **how: Unpack[CallArguments]) -> TokenCount:
        """The request's input tokens: counted by the vendor, or estimated as a quarter of the body's bytes."""
        rendering = await self._fetched(messages, "count_tokens", how)
        script = self._count_script(rendering)
        if isinstance(script, TokenCount):
            return script
        return result_of(await drive(script, self._wire(Wire, rendering)))

    def count_tokens_sync(self, messages: Messages, **how: Unpack[CallArguments]) -> TokenCount:
        """As `count_tokens`, waiting."""
        rendering = self._fetched_sync(messages, "count_tokens_sync", how)
        script = self._count_script(rendering)
        if isinstance(script, TokenCount):
            return script
        return result_of(drive_sync(script, self._wire(SyncWire, rendering)))

    async def aclose(self) -> None:
        """Close the clients that this adapter made, not the user's own; a later call makes new ones."""
        connection = self._disconnected()
        if connection is not None:
            await connection.aclose()

    def close(self) -> None:
        """As `aclose`, for those who only used the waiting methods."""
        connection = self._disconnected()
        if connection is not None:
            connection.close()

    def _ready(self, messages: Messages | Rendering, function: str, how: CallArguments) -> Rendering | list[Message]:
        """The rendering of a stream, or messages whose media must be fetched first."""
        if isinstance(messages, Rendering):
            if how:
                given = ", ".join(how)
                raise SettingsInvalid(f"{function}() takes no {given} beside a rendering; it holds all of it")
            self._check_target(messages)
            return messages
        refuse_misnamed(function, how, _CALL)
        conversation = self._media.listed(messages)
        if self._media.urls(conversation):
            return conversation
        return self._render(self._media.derive(conversation, {}), how)

    async def _fetched(self, messages: Messages, function: str, how: CallArguments) -> Rendering:
        refuse_misnamed(function, how, _CALL)
        return self._render(await self._media.fetch(self._media.listed(messages)), how)

    def _fetched_sync(self, messages: Messages, function: str, how: CallArguments) -> Rendering:
        refuse_misnamed(function, how, _CALL)
        return self._render(self._media.fetch_sync(self._media.listed(messages)), how)

    def _render(self, given: Derived, how: CallArguments) -> Rendering:
        given_settings = checked_settings(how.get("settings"), self._target.provider) or _NO_SETTINGS
        settings = given_settings.laid_over(self._settings)
        rendering = self._renderer.render(given.messages, as_options(how.get("options") or ()), settings)
        if given.losses:
            rendering = rendering.model_copy(update={"losses": (*given.losses, *rendering.losses)})
        strict = how.get("strict")
        refuse(rendering.losses, self._strict if strict is None else strict, str(self._target))
        return rendering

    def _check_target(self, rendering: Rendering) -> None:
        if rendering.target is not self._target and rendering.target != self._target:
            raise SettingsInvalid(
                f"the rendering is for {rendering.target} ({rendering.target.dialect}), this adapter is {self._target} "
                f"({self._target.dialect}); render it with this adapter"
            )

    def _scope(self, rendering: object) -> DecodeScope:
        option_names = rendering.option_names if isinstance(rendering, Rendering) else {}
        return DecodeScope(target=self._target, policy=self._speaks_as, option_names=option_names)

    def _call(
        self, kind: type[SomeWire], rendering: Rendering, state: StreamState | None = None
    ) -> tuple[Script[Reply], SomeWire]:
        """The script of a call, and the wire to drive it on; with `state`, which shows how far it is, a stream's."""
        self._check_target(rendering)
        timeout = rendering.timeout
        if timeout is not None and rendering.streaming:
            timeout = max(timeout, rendering.idle)  # each read's, of which some follow the first event
        request = WireRequest(
            rendering.path, rendering.body_bytes, rendering.headers, timeout, streaming=rendering.streaming
        )
        exchange = self._exchange(rendering, request, rendering.losses)
        watch = CallWatch(rendering, installed_hooks())
        if state is not None:
            script = stream_script(exchange, state)
        else:
            script = folded_script(exchange) if rendering.streaming else call_script(exchange)
        return watch.over(script), self._wire(kind, rendering, watch.tell, is_folded=state is None)

    def _count_script(self, rendering: Rendering) -> Script[TokenCount] | TokenCount:
        if self._dialect.encode_count is None:
            return TokenCount(input_tokens=-(-len(rendering.body_bytes) // 4), estimated=True)
        path, body = self._dialect.encode_count(rendering.body, rendering.target)
        request = WireRequest(path, to_json(body), rendering.headers, rendering.timeout)
        return count_script(self._exchange(rendering, request))

    def _exchange(self, rendering: Rendering, request: WireRequest, losses: tuple[Loss, ...] = ()) -> Exchange:
        return Exchange(request, self._dialect, self._scope(rendering), rendering.retries, losses, rendering.bounds)

    def _wire(
        self, kind: type[SomeWire], rendering: Rendering, watch: Watch = unwatched, *, is_folded: bool = False
    ) -> SomeWire:
        clock = Clock(rendering.timeout, rendering.idle, is_folded=is_folded, who=rendering.target)
        return kind(self._connected(), watch, clock)

    def _connected(self) -> Connection:
        with self._lock:
            if self._connection is None:
                self._connection = self._provider.connect(self._access)
            return self._connection

    def _disconnected(self) -> Connection | None:
        with self._lock:
            connection, self._connection = self._connection, None
            return connection


def adapter(
    model: str,
    *,
    api_key: ApiKey | None = None,
    base_url: str | None = None,
    client: Any = None,  # the vendor SDK's client: its type is known to the provider's plugin alone
    speaks_as: str = "llm",
    settings: Settings | None = None,
    strict: Strict = False,
    fetcher: Fetcher | None = None,
    model_info: ModelInfo | None = None,
    **misnamed: Never,
) -> ModelAdapter:
    """An adapter for `provider[.dialect]:model`; no key is read and nothing is sent before it is used.

    `api_key` (a string, or a function asked at each send) and `base_url` replace the provider's defaults;
    `client` is the vendor SDK's own client, with its own credentials. `speaks_as` names the policy whose messages
    are the model's. `settings` and `strict` hold for every call that does not say otherwise. `fetcher` fetches media
    for targets that take only bytes. `model_info` replaces what is known of the model.

    Raises SettingsInvalid for a name of another form, a key or settings of another type and a vendor section
    whose name is a provider's misspelt, ProviderMissing, ProviderBroken, PluginConflict or
    DialectMissing where the plugin cannot serve, Misnamed for another library's argument.
    """
    refuse_misnamed("adapter", misnamed, _FACTORY)
    name = default_registry.split_model(model)
    provider = default_registry.provider(name.provider)
    strict_kinds(strict)
    return ModelAdapter(
        provider,
        provider.dialect(name.dialect or provider.dialects[0]),
        name.model,
        Access(api_key=checked_key(api_key), base_url=base_url, client=client),
        speaks_as=speaks_as,
        settings=settings,
        strict=strict,
        fetcher=fetcher,
        model_info=model_info,
    )


def without_secrets(url: str) -> str:
    """A URL without user name, password, query and fragment: it is recorded in every message's origin."""
    try:
        split = urlsplit(url)
    except ValueError as error:
        raise SettingsInvalid(f"the endpoint is no URL: {error}; give base_url as https://host/path") from None
    return urlunsplit((split.scheme, split.netloc.rpartition("@")[2], split.path, "", ""))
