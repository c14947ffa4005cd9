"""Send the requests of an operation, such as embeddings, with the same retries, errors and time limits as a chat.

client = operation_client("acme:embed-1", "embeddings")
client.render(call) ──▶ Rendering       client.call(call) ──▶ OperationResult(output, reply)
                                        client.each(call) ──▶ value, value, …      of an operation that reads lines
"""

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import closing
from typing import Any, Generic, TypeVar

from pydantic_core import to_json

from sabir.base.errors import ProviderBroken, SettingsInvalid, did_you_mean
from sabir.base.failures import RenderingRefused, Strict, strict_kinds
from sabir.calling.adapter import without_secrets
from sabir.calling.calls import check_key, check_settings
from sabir.calling.connector import Connector, WireClass, wire_request
from sabir.calling.drive import CallWatch, SyncWire, Wire, drive, result_of, run_blocking
from sabir.calling.exchange import Emit, Exchange, Script, lines_script, operation_script
from sabir.calling.stream import AsyncClosing, SyncClosing
from sabir.contract.dialect import Rendering
from sabir.contract.operation import Call, Operation, OperationResult, Output
from sabir.contract.provider import Access, ApiKey, Provider
from sabir.contract.scope import DecodeScope, RequestScope
from sabir.contract.turns import LossLog
from sabir.discovery import default_registry, models_of
from sabir.hooks.plugins import installed_hooks
from sabir.rendering.owners import extras_for, merge
from sabir.vocabulary.models import ModelInfo, find_model
from sabir.vocabulary.reply import Reply
from sabir.vocabulary.settings import (
    LONGEST_SILENCE,
    NEVER_READ,
    Bounds,
    RetryPolicy,
    Settings,
    SettingsReader,
    Target,
)

Result = TypeVar("Result")


class OperationClient(AsyncClosing, SyncClosing, Generic[Call, Output]):
    """Sends the calls of one operation to one model of one provider. Created by `operation_client`.

    Threads and event loops may share a client. The end of a `with` block calls `close`, the end of an `async with`
    block `aclose`.
    """

    def __init__(
        self,
        provider: Provider,
        operation: Operation[Call, Output],
        model: str,
        access: Access,
        *,
        settings: Settings | None = None,
        strict: Strict = False,
        connector: Connector | None = None,
    ) -> None:
        endpoint = without_secrets(provider.endpoint(access))
        self.operation = operation
        """The operation of the provider."""
        self.target = Target(provider=provider.name, dialect=operation.name, model=model, endpoint=endpoint)
        """The provider, operation, model and endpoint that requests are sent to."""
        self._connector = connector or Connector(provider, access)
        self._settings = check_settings(settings or Settings(), provider.name)
        self._strict = strict
        self._model_info: ModelInfo = find_model(models_of(provider, operation.name), model, model)
        self._quirks = frozenset(provider.quirks(access)) | frozenset(self._model_info.quirks)

    def __repr__(self) -> str:
        """Return the model, the operation and the endpoint, without secrets."""
        facts = f"operation={self.operation.name!r}, endpoint={self.target.endpoint!r}"
        return f"OperationClient({str(self.target)!r}, {facts})"

    def with_operation(self, name: str, *, settings: Settings | None = None) -> "OperationClient[Any, Any]":
        """Return a client for another operation of the provider, which shares this client's connection: closing one
        closes both.

        `settings` None means the settings of this client. Raises SettingsInvalid if the provider does not have the
        operation.
        """
        provider, access = self._connector.provider, self._connector.access
        return OperationClient(
            provider,
            find_operation(provider, name),
            self.target.model,
            access,
            settings=self._settings if settings is None else settings,
            strict=self._strict,
            connector=self._connector,
        )

    def render(self, call: Call, *, strict: Strict | None = None) -> Rendering:
        """Return the request of a call and its losses. Needs no API key and no network, and sends nothing.

        Raises RenderingRefused for losses that `strict` (by default the client's) forbids, and SettingsInvalid for
        settings that do not fit.
        """
        log, settings = LossLog(), self._settings
        scope = RequestScope(
            target=self.target,
            settings=SettingsReader(settings),
            options=(),
            option_names={},
            system=(),
            vendor=settings.vendor.get(self.target.provider, {}),
            losses=log,
            model_info=self._model_info,
            quirks=self._quirks,
        )
        request = self.operation.encode(call, scope)
        for name in scope.settings.untouched():
            log.add("dropped", f"{self.operation.name} {NEVER_READ}", path=f"settings.{name}")
        extra_body, extra_headers = extras_for(self.target, settings, log)
        rendering = Rendering(
            target=self.target,
            path=request.path,
            body_bytes=_add_fields(request.body, extra_body, log),
            losses=tuple(log.losses),
            headers={**request.headers, **scope.headers, **extra_headers},
            timeout=settings.timeout,
            idle=settings.idle or settings.timeout or LONGEST_SILENCE,
            total=settings.total,
            bounds=settings.bounds or Bounds(),
            retries=settings.retries or RetryPolicy(),
            unchecked=(*scope.unchecked, *(f"extra_body.{name}" for name in extra_body)),
            method=request.method,
        )
        if kinds := self._strict if strict is None else strict:
            RenderingRefused.check(rendering.losses, kinds, self.target)
        return rendering

    async def call(self, call: Call) -> OperationResult[Output]:
        """Send a call and return its value. Raises the errors of `render`, and CallError if the call fails."""
        return await self.send(self.render(call))

    def call_sync(self, call: Call) -> OperationResult[Output]:
        """Sync version of `call`. Blocks the thread."""
        return self.send_sync(self.render(call))

    async def send(self, rendering: Rendering) -> OperationResult[Output]:
        """Send a rendering of this client, unchanged, and return the value. Raises CallError if the call fails."""
        return await result_of(*self._prepare(Wire, rendering))

    def send_sync(self, rendering: Rendering) -> OperationResult[Output]:
        """Sync version of `send`. Blocks the thread."""
        return run_blocking(result_of(*self._prepare(SyncWire, rendering)))

    async def each(self, call: Call) -> AsyncIterator[Output]:
        """Yield the value of each line of the response as the lines arrive, without storing the response.

        Raises the errors of `render`, CallError if the call fails before the first value, and StreamBroken later.
        """
        script, wire = self._prepare_lines(Wire, call)
        try:
            with closing(script):
                while isinstance(step := await drive(script, wire), Emit):
                    yield step.event
        finally:
            await wire.close()

    def each_sync(self, call: Call) -> Iterator[Output]:
        """Sync version of `each`. Blocks the thread."""
        script, wire = self._prepare_lines(SyncWire, call)
        try:
            with closing(script):
                while isinstance(step := run_blocking(drive(script, wire)), Emit):
                    yield step.event
        finally:
            run_blocking(wire.close())

    async def aclose(self) -> None:
        """Close the sync client and the async client of the running event loop, if this client created them."""
        await self._connector.aclose()

    def close(self) -> None:
        """Close the client of the sync methods. After async calls, use `aclose`, which closes both."""
        self._connector.close()

    def _prepare(
        self, kind: WireClass, rendering: Rendering
    ) -> tuple[Script[OperationResult[Output]], Wire | SyncWire]:
        """Return the script of a call, and the wire to run it with."""
        watch = CallWatch(rendering, installed_hooks())
        script = watch.over(operation_script(self._exchange(rendering)), lambda outcome: outcome.reply)
        return script, self._connector.wire(kind, rendering, watch.tell)

    def _prepare_lines(self, kind: WireClass, call: Call) -> tuple[Script[Reply], Wire | SyncWire]:
        """Return the script of a call whose response is read line by line, and the wire to run it with."""
        rendering = self.render(call)
        watch = CallWatch(rendering, installed_hooks())
        script = watch.over(lines_script(self._exchange(rendering, is_stream=True)))
        return script, self._connector.wire(kind, rendering, watch.tell, is_stream=True)

    def _exchange(self, rendering: Rendering, *, is_stream: bool = False) -> Exchange[Operation[Call, Output]]:
        scope = DecodeScope(rendering.target, bounds=rendering.bounds)
        request = wire_request(rendering, is_stream=is_stream)
        ids = tuple(self._connector.provider.request_ids)
        return Exchange(request, self.operation, scope, rendering.retries, rendering.losses, ids)


def _add_fields(body: Mapping[str, Any] | bytes, extra: Mapping[str, Any], log: LossLog) -> bytes:
    """Return the bytes of a body with the fields of `extra_body`, which are losses if the body is not JSON."""
    if isinstance(body, bytes):
        for name in extra:
            log.add("dropped", "the request's body is not a JSON object", path=f"extra_body.{name}")
        return body
    merged = {name: merge(body[name], extra[name], f"extra_body.{name}", log) for name in extra if name in body}
    return to_json({**body, **extra, **merged})


def operation_client(
    model: str,
    operation: str,
    *,
    api_key: ApiKey | None = None,
    base_url: str | None = None,
    client: Any = None,  # the vendor SDK's client: its type is known to the provider's plugin alone
    settings: Settings | None = None,
    strict: Strict = False,
) -> OperationClient[Any, Any]:
    """Return a client for an operation of a provider, such as "embeddings". For packages that define an operation,
    which know the types of its calls and values.

    `model` is `provider:model`. The other arguments are those of `sabir.adapter`. Raises SettingsInvalid for a wrong
    argument and for an operation that the provider does not have, and ProviderMissing, ProviderBroken or PluginConflict
    if the provider cannot be used.
    """
    name = default_registry.split_model(model)
    provider = default_registry.provider(name.provider, name.dialect)
    strict_kinds(strict)
    access = Access(api_key=check_key(api_key), base_url=base_url, client=client)
    wanted = find_operation(provider, operation)
    return OperationClient(provider, wanted, name.model, access, settings=settings, strict=strict)


def find_operation(provider: Provider, name: str) -> Operation[Any, Any]:
    """Return a provider's operation. Raises SettingsInvalid if the provider does not have it, and ProviderBroken if the
    provider fails.
    """
    with ProviderBroken.blaming(f"the operations of provider {provider.name!r} cannot be read"):
        operations: Mapping[str, Operation[Any, Any]] = getattr(provider, "operations", dict)()
    if name not in operations:
        remedy = did_you_mean(name, operations, f"its operations are {', '.join(sorted(operations)) or 'none'}")
        raise SettingsInvalid(f"provider {provider.name!r} has no operation {name!r}; {remedy}")
    return operations[name]
