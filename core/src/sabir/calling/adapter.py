"""The adapter of one model: one provider, one dialect, and one policy whose messages are the model's own.

    llm = sabir.adapter("provider:model")
    llm.render ──▶ Rendering ──▶ llm.send ──▶ Reply        complete = render + send
                             └─▶ llm.stream ─▶ ReplyStream

Rendering needs no key and no network. Clients of the vendor's SDK are created at the first send: one sync client for
all threads that share an adapter, and one async client for each event loop, which is closed when the loop ends. A
forked process creates its own clients.
"""

from typing import Any, Never, Unpack
from urllib.parse import urlsplit, urlunsplit

from pydantic_core import to_json

from sabir.base.errors import ProviderBroken, SettingsInvalid
from sabir.base.failures import Loss, RenderingRefused, Strict, strict_kinds
from sabir.base.surface import show_arguments
from sabir.calling.calls import Adapter, CallArguments, Messages, check_key, check_policy, check_settings
from sabir.calling.connector import Connector, WireClass, read_limits, wire_request
from sabir.calling.drive import CallWatch, SyncWire, Wire, result_of, run_blocking
from sabir.calling.exchange import Exchange, Script, call_script, count_script, folded_script, stream_script
from sabir.calling.stream import AsyncClosing, ReplyStream, Start, SyncClosing, SyncReplyStream
from sabir.contract.dialect import Dialect, Rendering
from sabir.contract.provider import Access, ApiKey, Provider, TokenCount, WireRequest
from sabir.contract.scope import DecodeScope
from sabir.discovery import default_registry, models_of
from sabir.hooks.plugins import installed_hooks
from sabir.options.option import Option
from sabir.reading.incoming import StreamState
from sabir.rendering.renderer import Renderer
from sabir.vocabulary.constructors import listed
from sabir.vocabulary.models import ModelFacts, ModelInfo, find_model
from sabir.vocabulary.reply import Reply
from sabir.vocabulary.settings import Settings, Target

__all__ = ["Adapter", "CallArguments", "Messages", "ModelAdapter", "adapter", "without_secrets"]

_NO_SETTINGS = Settings()
_CALL = CallArguments.__annotations__
_FACTORY = (
    "model", "api_key", "base_url", "client", "speaks_as", "settings", "strict", "model_info", "model_facts",
)  # fmt: skip


class ModelAdapter(AsyncClosing, SyncClosing):
    """Sends conversations to one model of one provider. Created by `sabir.adapter`.

    Its methods raise RenderingRefused for losses that `strict` forbids or if nothing can be sent, SettingsInvalid,
    WrongWord or OptionInvalid for wrong arguments, and CallError for calls that fail. Threads and event loops may share
    an adapter. The end of a `with` block calls `close`, the end of an `async with` block `aclose`.
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
        model_info: ModelInfo | None = None,
        model_facts: ModelInfo | ModelFacts | None = None,
    ) -> None:
        endpoint = without_secrets(provider.endpoint(access))
        self._target = target = Target(provider=provider.name, dialect=dialect.name, model=model, endpoint=endpoint)
        self._speaks_as = check_policy(speaks_as)
        self._settings = _NO_SETTINGS if settings is None else check_settings(settings, provider.name)
        self._dialect = dialect
        self._strict = strict
        known = model_info or find_model(models_of(provider, dialect.name), model, dialect.family(model))
        info, quirks = known.overridden(model_facts), provider.quirks(access)
        if provider.api_version > 1:
            own = () if model_info else known.quirks
            dialect.check_quirks({*quirks, *own}, f"provider {provider.name!r}", ProviderBroken)
            dialect.check_quirks(info.quirks, "model_info= or model_facts=", SettingsInvalid)
        self._renderer = Renderer(dialect, target, speaks_as=speaks_as, model_info=info, quirks=quirks)
        self._connector = Connector(provider, access)

    @property
    def target(self) -> Target:
        """The provider, dialect, model and endpoint that requests are sent to."""
        return self._target

    @property
    def provider(self) -> Provider:
        """The provider's plugin object, as `sabir.provider` returns it."""
        return self._connector.provider

    @property
    def access(self) -> Access:
        """The API key, the base URL and the client that were passed to `sabir.adapter`. The `repr` of this object does
        not show them.
        """
        return self._connector.access

    @property
    def settings(self) -> Settings:
        """The default settings of every call. A call's own settings take precedence."""
        return self._settings

    @property
    def model(self) -> str:
        """The model's name, as it was passed to `sabir.adapter`, without the provider."""
        return self._target.model

    @property
    def dialect(self) -> str:
        """The full name of the dialect (API format), for example "echo.plain"."""
        return self._target.dialect

    @property
    def speaks_as(self) -> str:
        """The policy whose messages are sent as the model's own. The messages of replies have this policy."""
        return self._speaks_as

    def new_renderer(self) -> Renderer:
        """Return a renderer for the same target with an empty cache. For tests that compare renderings."""
        return self._renderer.new()

    def __repr__(self) -> str:
        """Return the model, the dialect, the endpoint and `speaks_as`, without secrets."""
        facts = f"dialect={self._target.dialect!r}, endpoint={self._target.endpoint!r}, speaks_as={self._speaks_as!r}"
        return f"ModelAdapter({str(self._target)!r}, {facts})"

    def render(self, messages: Messages, **how: Unpack[CallArguments]) -> Rendering:
        """Return the request for a conversation and its losses. Needs no API key and no network, and sends nothing.

        Raises RenderingRefused for losses that `strict` forbids or if nothing can be sent, and SettingsInvalid,
        WrongWord or OptionInvalid for wrong arguments.

        >>> import sabir
        >>> rendering = sabir.adapter("echo:m").render("Hello!", settings=sabir.Settings(seed=1))
        >>> rendering.body["settings"], rendering.losses
        ({'seed': 1}, ())
        """
        return self._render_checked("render", messages, how)

    async def complete(self, messages: Messages, **how: Unpack[CallArguments]) -> Reply:
        """Send a conversation and return the complete reply. Append `reply.messages` to the conversation, all of them.

        Before sending, raises the same errors as `render`. Raises CallError if the call fails.

        >>> import asyncio, sabir
        >>> llm = sabir.adapter("echo:m")
        >>> reply = asyncio.run(llm.complete([sabir.system("Be brief."), sabir.user("Hello!")]))
        >>> reply.text
        'Hello!'
        """
        return await self.send(self._render_checked("complete", messages, how))

    def complete_sync(self, messages: Messages, **how: Unpack[CallArguments]) -> Reply:
        """Sync version of `complete`. Blocks the thread, and an event loop that runs in the thread."""
        return self.send_sync(self._render_checked("complete_sync", messages, how))

    async def send(self, rendering: Rendering) -> Reply:
        """Send a rendering for this adapter's target, unchanged, and return the reply.

        Raises SettingsInvalid for a rendering of another target, and CallError if the call fails.

        >>> import asyncio, sabir
        >>> llm = sabir.adapter("echo:m")
        >>> rendering = llm.render("Hello!")
        >>> asyncio.run(llm.send(rendering)).text
        'Hello!'
        """
        return await result_of(*self._prepare_call(Wire, rendering))

    def send_sync(self, rendering: Rendering) -> Reply:
        """Sync version of `send`. Blocks the thread."""
        return run_blocking(result_of(*self._prepare_call(SyncWire, rendering)))

    def stream(self, messages: Messages | Rendering, **how: Unpack[CallArguments]) -> ReplyStream:
        """Return the reply to a conversation, or to a rendering, as a stream of events.

        Raises the same errors as `render`; with a rendering, SettingsInvalid for another target or further arguments.
        The request is sent when the first event is read, so reading raises the errors of the call.

        >>> import asyncio, sabir
        >>> async def show(llm: sabir.ModelAdapter) -> sabir.Reply:
        ...     async with llm.stream("Hello there!") as stream:
        ...         async for text in stream.text:
        ...             print(text)
        ...         return await stream.reply()
        >>> asyncio.run(show(sabir.adapter("echo:m"))).finish_reason
        Hello
        there!
        'stop'
        """
        return ReplyStream(*self._prepare_stream(Wire, "stream", messages, how))

    def stream_sync(self, messages: Messages | Rendering, **how: Unpack[CallArguments]) -> SyncReplyStream:
        """Sync version of `stream`. Reading blocks the thread."""
        return SyncReplyStream(*self._prepare_stream(SyncWire, "stream_sync", messages, how))

    async def count_tokens(self, messages: Messages, **how: Unpack[CallArguments]) -> TokenCount:
        """Return the number of input tokens of the request for a conversation.

        If the provider's API can count, a request is sent, and CallError is raised if it fails. Otherwise `estimated`
        is True, and the number is a quarter of the number of bytes of the request's body, rounded up. Also raises the
        same errors as `render`.
        """
        return await self._count_request(Wire, self._render_checked("count_tokens", messages, how))

    def count_tokens_sync(self, messages: Messages, **how: Unpack[CallArguments]) -> TokenCount:
        """Sync version of `count_tokens`. Blocks the thread."""
        return run_blocking(self._count_request(SyncWire, self._render_checked("count_tokens_sync", messages, how)))

    async def aclose(self) -> None:
        """Close the sync client and the async client of the running event loop, if this adapter created them. A later
        call creates new clients. The async client of another loop is closed when that loop ends.
        """
        await self._connector.aclose()

    def close(self) -> None:
        """Close the client that the sync methods created, but not a client that you passed. A later call creates a new
        client. After async calls, use `aclose`, which closes both.
        """
        self._connector.close()

    def _render_checked(self, function: str, messages: Messages, how: CallArguments) -> Rendering:
        """Render a call with the adapter's defaults. Raises WrongWord for unknown arguments, and RenderingRefused for
        losses that `strict` forbids. `function` is the name of the public method, for errors.
        """
        if not how.keys() <= _CALL.keys():
            Settings.refuse_misnamed(function, how, tuple(_CALL))
        settings, strict = how.get("settings"), how.get("strict")
        if settings is None:
            settings = self._settings
        else:
            settings = check_settings(settings, self._target.provider).laid_over(self._settings)
        rendering = self._renderer.render(listed(messages), Option.all_of(how.get("options") or ()), settings)
        if strict is None:
            strict = self._strict
        if strict:
            RenderingRefused.check(rendering.losses, strict, self._target)
        return rendering

    def _prepare_stream(
        self, kind: WireClass, function: str, messages: Messages | Rendering, how: CallArguments
    ) -> tuple[StreamState, Start]:
        """Return the state of a streamed call, and the function that prepares the call when its first event is read."""
        if not isinstance(messages, Rendering):
            rendering = self._render_checked(function, messages, how)
        elif how:
            remedy = "together with a rendering; pass them to render()"
            raise SettingsInvalid(f"{function}() does not accept {', '.join(how)} {remedy}")
        else:
            rendering = messages
            self._check_target(rendering)
        state = StreamState(self._dialect, self._decode_scope(rendering))

        async def start() -> tuple[Script[Reply], Wire | SyncWire]:
            return self._prepare_call(kind, rendering.for_stream(), state)

        return state, start

    def _check_target(self, rendering: Rendering) -> None:
        if rendering.target is not self._target and rendering.target != self._target:
            raise SettingsInvalid(
                f"the rendering is for {rendering.target} ({rendering.target.dialect}), this adapter is {self._target} "
                f"({self._target.dialect}); render it with this adapter"
            )

    def _decode_scope(self, rendering: Rendering) -> DecodeScope:
        names, arguments = rendering.option_names, rendering.argument_names
        return DecodeScope(self._target, self._speaks_as, names, bounds=rendering.bounds, argument_names=arguments)

    def _prepare_call(
        self, kind: WireClass, rendering: Rendering, state: StreamState | None = None
    ) -> tuple[Script[Reply], Wire | SyncWire]:
        """Return the script of a call and the wire to run it with. With `state`, it is the script of a
        streamed call.
        """
        self._check_target(rendering)
        request = wire_request(rendering, is_stream=state is not None)
        exchange = self._exchange(rendering, request, rendering.losses)
        watch = CallWatch(rendering, installed_hooks())
        if state is not None:
            script = stream_script(exchange, state)
        else:
            script = folded_script(exchange) if rendering.streaming else call_script(exchange)
        return watch.over(script), self._connector.wire(kind, rendering, watch.tell, is_stream=state is not None)

    async def _count_request(self, kind: WireClass, rendering: Rendering) -> TokenCount:
        """Send the request that counts the tokens of a rendering. If the API cannot count, estimate them."""
        if self._dialect.encode_count is None:
            return TokenCount(input_tokens=-(-len(rendering.body_bytes) // 4), estimated=True)
        path, body = self._dialect.encode_count(rendering.body, self._renderer.scope)
        timeout, opening = read_limits(rendering, is_stream=False)
        request = WireRequest(path, to_json(body), rendering.headers, timeout, opening=opening)
        exchange = self._exchange(rendering, request)
        return await result_of(count_script(exchange), self._connector.wire(kind, rendering))

    def _exchange(self, rendering: Rendering, request: WireRequest, losses: tuple[Loss, ...] = ()) -> Exchange[Dialect]:
        scope, ids = self._decode_scope(rendering), tuple(self._connector.provider.request_ids)
        return Exchange(request, self._dialect, scope, rendering.retries, losses, ids)


@show_arguments
def adapter(
    model: str,
    *,
    api_key: ApiKey | None = None,
    base_url: str | None = None,
    client: Any = None,  # the vendor SDK's client: its type is known to the provider's plugin alone
    speaks_as: str = "llm",
    settings: Settings | None = None,
    strict: Strict = False,
    model_info: ModelInfo | None = None,
    model_facts: ModelInfo | ModelFacts | None = None,
    **misnamed: Never,
) -> ModelAdapter:
    """Return an adapter for a model. Nothing is sent and no API key is read until the first call.

    `model` is `provider:model` or `provider.dialect:model`. `api_key` and `base_url` replace the provider's defaults;
    the key is a string, a mapping of credential names to strings, or a function that returns either and is called for
    each request. `client` is a client of the vendor's SDK that you created, with its own key and endpoint; sabir does
    not close it. `speaks_as` names the policy whose messages are sent as the model's. `settings` and `strict` are the
    defaults of all calls; a call's own settings take precedence. `model_info` replaces all known facts of the model,
    `model_facts` only the facts that it contains, for example `{"efforts": ["low", "high"]}`.

    Raises SettingsInvalid for a wrong model string or a wrong value of an argument; ProviderMissing, DialectMissing,
    ProviderBroken or PluginConflict if the provider cannot be used; WrongWord for an unknown argument, such as one of
    another library.

    >>> import sabir
    >>> llm = sabir.adapter("echo:m", settings=sabir.Settings(timeout=30))
    >>> llm.complete_sync("Hello!").text
    'Hello!'
    """
    Settings.refuse_misnamed("adapter", misnamed, _FACTORY)
    name = default_registry.split_model(model)
    provider = default_registry.provider(name.provider, name.dialect)
    strict_kinds(strict)
    return ModelAdapter(
        provider,
        provider.dialect(name.dialect or provider.dialects[0]),
        name.model,
        Access(api_key=check_key(api_key), base_url=base_url, client=client),
        speaks_as=speaks_as,
        settings=settings,
        strict=strict,
        model_info=model_info,
        model_facts=model_facts,
    )


def without_secrets(url: str) -> str:
    """Return the URL without user, password, query and fragment, because the origin of every reply contains it.

    Raises SettingsInvalid for a text that Python's `urlsplit` refuses, such as an invalid IPv6 address.
    """
    try:
        split = urlsplit(url)
    except ValueError as error:
        raise SettingsInvalid(f"the endpoint is not a URL: {error}; write base_url as https://host/path") from None
    return urlunsplit((split.scheme, split.netloc.rpartition("@")[2], split.path, "", ""))
