"""DistributedRunner: the caller's side. The context's policies run in worker processes.

    ctx = Desk(DistributedRunner("nats://127.0.0.1:4222"))
    await ctx.llm(history, options=["search"])          one request to a worker, which runs the policy and its options

Observations, arguments and results are sent unchanged. An error of the policy at the worker is raised here as
PolicyFailed.
"""

import asyncio

from sabir import Message, SabirError
from sabir.authoring import AsyncClosing, CallDepth, work_headers

from sabir_runtime import Batch, BoundCall, PolicyInvalid, Runner, RuntimeFault, UnknownOption
from sabir_runtime.distributed.caller import CallerConnection
from sabir_runtime.distributed.connection import Target, display_target
from sabir_runtime.distributed.envelopes import SCHEMA, Failed, Request
from sabir_runtime.distributed.errors import EnvelopeInvalid, PayloadTooLarge, RequestTimedOut, RunnerClosed
from sabir_runtime.distributed.settings import CallSettings
from sabir_runtime.distributed.subjects import check_context

_REFUSALS: dict[str, type[SabirError]] = {
    error.__name__: error for error in (EnvelopeInvalid, PayloadTooLarge, PolicyInvalid, RequestTimedOut, UnknownOption)
}
"""The error's name in a worker's answer → the class that the caller receives."""

_FIELDS = {"id", "context", "policy", "observations", "options", "arguments", "depth", "seconds_left", "headers"}


class DistributedRunner(Runner, AsyncClosing):
    """Performs the calls of a context's policies in worker processes, through a NATS server.

    Start workers with `sabir worker module:Context`, or with `sabir_runtime.distributed.Worker`. `target` is a URL,
    several URLs separated by commas, or a connected nats-py client, which `aclose` leaves open. `name` is the name
    under which workers serve the context; None means the name of the context's class. `settings` contains timeouts,
    limits and credentials; None means the defaults.

    The runner connects at the first call. Until `aclose`, all calls must be in the same event loop, or in a new loop
    after this loop was closed. Several contexts may share a runner. Raises AccessInvalid for a wrong URL, and
    RuntimeFault for a wrong name.

    >>> from sabir_runtime import BaseContext, llm_policy
    >>> from sabir_runtime.distributed import CallSettings, DistributedRunner
    >>> class Desk(BaseContext):
    ...     def __init__(self, runner):
    ...         super().__init__(runner)
    ...         self.llm = self._bind(llm_policy("echo:m"))
    >>> desk = Desk(DistributedRunner("nats://127.0.0.1:4222", settings=CallSettings(timeout=60)))
    >>> desk.llm  # `await desk.llm("Hello!")` asks a worker
    <bound policy 'llm' of LLMPolicy>
    """

    def __init__(self, target: Target, *, name: str | None = None, settings: CallSettings | None = None) -> None:
        display_target(target)  # raises for an invalid URL
        self._target = target
        self._name = None if name is None else check_context(name)
        self._settings = settings or CallSettings()
        self._caller: CallerConnection | None = None
        self._opening: asyncio.Lock | None = None

    def __repr__(self) -> str:
        """Return a text with the target, without passwords."""
        return f"DistributedRunner({display_target(self._target)!r})"

    async def perform(self, call: BoundCall) -> Batch:
        """Send a bound call to a worker, and return the batch. The worker also answers the batch's option calls.

        The policy may run more than once if a worker is lost. Raises PolicyFailed if the policy failed, NoServer,
        AccessRefused, AccessInvalid, NoWorkers, WorkerLost, RequestTimedOut, RunnerClosed or PayloadTooLarge if no
        answer was possible, EnvelopeInvalid for a message that cannot be read, PolicyInvalid for wrong arguments, and
        UnknownOption for an option that the worker's context does not bind. Raises RuntimeFault if the runner is
        connected in another event loop that is not closed, or if the context's class name cannot be part of a subject.
        """
        with call.announced(is_remote=True):
            request = self._make_request(call)
            caller, loop = self._caller, asyncio.get_running_loop()
            if caller is None or not caller.connection.is_open or caller.connection.loop is not loop:
                caller = await self._open_connection()
            ending = await caller.ask(request)
            if isinstance(ending, Failed):
                raise _caller_error(ending)
            return list(ending.result)

    async def aclose(self) -> None:
        """Close the connection. Calls in progress raise RunnerClosed, and workers stop their policies.

        A later call opens a new connection. A client that you passed as `target` stays open.
        """
        caller, self._caller, self._opening = self._caller, None, None
        if caller is not None:
            await caller.close()

    def _make_request(self, call: BoundCall) -> Request:
        """Return the request for a call. Raises PolicyInvalid for arguments that cannot be sent."""
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
            "headers": work_headers(),
        }
        return Request.construct_unchecked(values, set(_FIELDS))

    async def _open_connection(self) -> CallerConnection:
        """Return the connection of this event loop. Open it if there is none."""
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
                raise RunnerClosed(f"{self!r} was closed while connecting, so the call was not sent; {remedy}")
            return self._caller


def _caller_error(failed: Failed) -> SabirError:
    """Return the error that the caller receives for a failure at a worker."""
    error = failed.error
    if error.raised_by == "policy":
        return error.error()
    return _REFUSALS.get(error.type, EnvelopeInvalid)(f"worker {failed.worker} refused the request: {error.message}")
