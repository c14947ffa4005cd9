"""The caller's side: a context whose policies run at workers.

    ctx = Desk(DistributedRunner("nats://127.0.0.1:4222"))
    await ctx.llm(history, options=["search"])          one request to a worker, which runs the policy and its options

Observations, arguments and results are sent unchanged; the policy's error there is raised here, as a PolicyFailed that
names it.
"""

import asyncio

from sabir import Message, SabirError
from sabir.authoring import AsyncClosing, CallDepth

from sabir_runtime import Batch, BoundCall, PolicyInvalid, Runner, RuntimeFault, UnknownOption
from sabir_runtime.distributed.caller import CallerConnection
from sabir_runtime.distributed.connection import Target, shown
from sabir_runtime.distributed.envelopes import SCHEMA, Failed, Request
from sabir_runtime.distributed.errors import EnvelopeInvalid, PayloadTooLarge, RequestTimedOut, RunnerClosed
from sabir_runtime.distributed.settings import CallSettings
from sabir_runtime.distributed.subjects import check_context

_REFUSALS: dict[str, type[SabirError]] = {
    error.__name__: error for error in (EnvelopeInvalid, PayloadTooLarge, PolicyInvalid, RequestTimedOut, UnknownOption)
}
"""Name of a worker's refusal in the envelope → the caller's error."""

_GIVEN = {"id", "context", "policy", "observations", "options", "arguments", "depth", "seconds_left"}


class DistributedRunner(Runner, AsyncClosing):
    """Performs calls at workers, over NATS (`sabir worker`, or `sabir_runtime.distributed.Worker`).

    `target` is a URL, several with commas between them, or a connected client, which stays its owner's. `name` is the
    name under which workers serve the context; the name of its class unless given. It connects at the first call,
    belongs to that call's event loop until `aclose`, and may serve several contexts.
    """

    def __init__(self, target: Target, *, name: str | None = None, settings: CallSettings | None = None) -> None:
        shown(target)  # an invalid URL is reported now
        self._target = target
        self._name = None if name is None else check_context(name)
        self._settings = settings or CallSettings()
        self._caller: CallerConnection | None = None
        self._opening: asyncio.Lock | None = None

    def __repr__(self) -> str:
        """Its target, without a password."""
        return f"DistributedRunner({shown(self._target)!r})"

    async def perform(self, call: BoundCall) -> Batch:
        """The batch of a call's policy, as a worker answered it, its option calls answered there.

        Raises PolicyFailed, and the errors of `sabir_runtime.distributed.errors`.
        """
        request = self._request(call)
        caller = self._caller
        if caller is None or not caller.connection.is_open or caller.connection.loop is not asyncio.get_running_loop():
            caller = await self._open()
        ending = await caller.ask(request)
        if isinstance(ending, Failed):
            raise _fault(ending)
        return list(ending.result)

    async def aclose(self) -> None:
        """End the connection; a later call opens another."""
        caller, self._caller, self._opening = self._caller, None, None
        if caller is not None:
            await caller.close()

    def _request(self, call: BoundCall) -> Request:
        """The request of a checked call; raises PolicyInvalid for arguments that cannot be sent."""
        bound = call.bound
        values = {
            "schema_number": SCHEMA,
            "id": Message.new_id(),
            "context": self._name or check_context(type(bound.context).__name__),
            "policy": bound.name,
            "observations": tuple(call.observations),
            "options": None if call.options is None else tuple(call.options),
            "arguments": bound.signature.encode(call.arguments) if call.arguments else "{}",
            "seconds_left": self._settings.timeout,
            "depth": CallDepth.current().calls,
            "waited": 0.0,
        }
        return Request.construct_unchecked(values, set(_GIVEN))

    async def _open(self) -> CallerConnection:
        """The connection of this event loop, made by the first call that needs it."""
        loop = asyncio.get_running_loop()
        if self._caller is not None and self._caller.connection.loop is not loop:
            if not self._caller.connection.loop.is_closed():
                remedy = "use one runner for each event loop, or await its aclose() first"
                raise RuntimeFault(f"{self!r} is connected in another event loop; {remedy}")
            self._caller = self._opening = None
        opening = self._opening = self._opening or asyncio.Lock()
        async with opening:
            if self._opening is opening and (self._caller is None or not self._caller.connection.is_open):
                caller = CallerConnection(self._target, self._settings)
                await caller.open()
                if self._opening is opening:
                    self._caller = caller
                else:
                    await caller.close()
            if self._caller is None or self._opening is not opening:
                remedy = "close a runner after its last call"
                raise RunnerClosed(f"{self!r} was closed while it connected for a call; it was not sent; {remedy}")
            return self._caller


def _fault(failed: Failed) -> SabirError:
    """The error here for a failure at a worker."""
    error = failed.error
    if error.raised_by == "policy":
        return error.error()
    return _REFUSALS.get(error.type, EnvelopeInvalid)(f"worker {failed.worker} refused the request: {error.message}")
