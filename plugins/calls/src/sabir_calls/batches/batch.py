"""Batches of one model: submit prompts, and collect the replies by their keys in any process.

    prompts ──order_of──▶ BatchOrder ──submit_steps──▶ ticket
    ticket ──batches.status──▶ BatchStatus ── each of its results ──▶ BatchAnswer ──outcome_of──▶ BatchOutcome

Rendering, losses and decoding are those of the adapter. The scripts in `steps` decide; the methods below only send.
"""

import asyncio
import logging
import re
import time
from collections import Counter
from collections.abc import AsyncGenerator, Generator, Iterable, Iterator, Mapping
from typing import Any, Never, TypeAlias, Unpack, cast

import sabir
from sabir import ApiKey, CallError, ModelAdapter, ModelInfo, Rendering, RetryPolicy, Settings, SettingsInvalid
from sabir.authoring import (
    AsyncClosing,
    BatchAnswer,
    BatchOrder,
    BatchRequest,
    BatchResults,
    BatchStatus,
    CallArguments,
    DecodeScope,
    Messages,
    OperationClient,
    Strict,
    SyncClosing,
    operation_client,
    show_arguments,
)
from sabir.errors import CallTimedOut, RenderingRefused

from sabir_calls.arguments import repeatable
from sabir_calls.batches.outcomes import BatchOutcome, check_results, describe_status, outcome_of
from sabir_calls.batches.steps import LIST, Result, Steps, cancel_steps, digest_of, size_of, status_steps, submit_steps
from sabir_calls.batches.tickets import BatchTicket, model_name, replaced_names

logger = logging.getLogger("sabir_calls")

KeyedPrompts: TypeAlias = Mapping[str, Messages | Rendering] | Iterable[tuple[str, Messages | Rendering]]
"""Prompts by key, or pairs of a key and a prompt. A prompt is a string, a message, a list of messages, or a rendering
of `Batch.render`.
"""
KEY = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""The keys that every vendor accepts: https://platform.claude.com/docs/en/api/messages/batches/create"""
CREATE = "batches.create"


class Batch(AsyncClosing, SyncClosing):
    """Batches of one model. Created by `batch`. The methods raise CallError for requests that fail, and SettingsInvalid
    for wrong arguments.

    The end of a `with` block calls `close`, the end of an `async with` block `aclose`.
    """

    def __init__(self, adapter: ModelAdapter, client: OperationClient[Any, Any]) -> None:
        self.adapter = adapter
        """The adapter that renders the requests. Nothing is sent with it."""
        self._dialect = adapter.provider.dialect(adapter.dialect.rpartition(".")[2])
        self._model = model_name(adapter.target)
        self._operations = dict(adapter.provider.operations())  # type: ignore[attr-defined]  # checked by `batch`
        self._client = client

    def __repr__(self) -> str:
        """Return the model."""
        return f"batch({self._model!r})"

    @property
    def has_names(self) -> bool:
        """Whether the vendor stores names of batches, so that `submit` accepts a `name`."""
        return LIST in self._operations

    def render(self, messages: Messages, **how: Unpack[CallArguments]) -> Rendering:
        """Return the request for a conversation and its losses. `submit` accepts renderings too. Sends nothing."""
        return self.adapter.render(messages, **how)

    async def submit(self, prompts: KeyedPrompts, *, name: str = "", **how: Unpack[CallArguments]) -> str:
        """Submit prompts as one batch, and return its ticket: a string for the other methods, in any process.

        A key has at most 64 letters, digits, "_" and "-". All prompts are rendered before anything is sent, so that
        RenderingRefused and SettingsInvalid are raised first. Losses are logged once for each kind.

        A crash in the middle can hide whether the vendor received the batch. With a `name`, repeat the call: if a batch
        with this name was submitted, its ticket is returned and nothing is submitted. SettingsInvalid is raised if the
        vendor's batches have no names, as Anthropic's, or if the name was used for other prompts.
        """
        order, ticket = self._order(prompts, name, how)
        return str(ticket._replace(batch_id=(await self._run(submit_steps(order, self._operations))).id))

    def submit_sync(self, prompts: KeyedPrompts, *, name: str = "", **how: Unpack[CallArguments]) -> str:
        """Sync version of `submit`. Blocks the thread."""
        order, ticket = self._order(prompts, name, how)
        return str(ticket._replace(batch_id=self._run_sync(submit_steps(order, self._operations)).id))

    async def status(self, ticket: str) -> BatchStatus:
        """Return the status of a batch."""
        return await self._run(status_steps(self._read(ticket).batch_id))

    def status_sync(self, ticket: str) -> BatchStatus:
        """Sync version of `status`. Blocks the thread."""
        return self._run_sync(status_steps(self._read(ticket).batch_id))

    async def cancel(self, ticket: str) -> BatchStatus:
        """Cancel a batch, and return its status. Requests that were answered before stay answered and are charged."""
        return await self._run(cancel_steps(self._read(ticket).batch_id))

    def cancel_sync(self, ticket: str) -> BatchStatus:
        """Sync version of `cancel`. Blocks the thread."""
        return self._run_sync(cancel_steps(self._read(ticket).batch_id))

    async def wait(self, ticket: str, *, every: float = 60.0, timeout: float | None = None) -> BatchStatus:
        """Wait until a batch is over, and return its status. The status is requested again after `every` seconds.

        An error that may go away is logged, and the status is requested again. Raises CallTimedOut after `timeout`
        seconds; the batch itself continues.
        """
        poll = _Poll(every, timeout)
        while True:
            try:
                if (status := await self.status(ticket)).is_final:
                    return status
                poll.note(describe_status(status))
            except CallError as error:
                poll.note_error(error)
            await asyncio.sleep(poll.next_pause())

    def wait_sync(self, ticket: str, *, every: float = 60.0, timeout: float | None = None) -> BatchStatus:
        """Sync version of `wait`. Blocks the thread."""
        poll = _Poll(every, timeout)
        while True:
            try:
                if (status := self.status_sync(ticket)).is_final:
                    return status
                poll.note(describe_status(status))
            except CallError as error:
                poll.note_error(error)
            time.sleep(poll.next_pause())

    async def collect(self, ticket: str) -> AsyncGenerator[BatchOutcome, None]:
        """Yield the outcome of each request of a batch that is over, in any order, while the results arrive.

        Collecting again yields the same outcomes, as long as the vendor stores the results. The losses of replies are
        those of the answers. A request that was cancelled may have no outcome. Raises BatchError if the batch is not
        over, or failed as a whole, and StreamBroken if the connection breaks off.
        """
        status = await self.status(ticket)
        check_results(status)
        for source in status.results:
            async for answer in self._answers(source):
                yield self._outcome(ticket, answer)

    def collect_sync(self, ticket: str) -> Generator[BatchOutcome, None, None]:
        """Sync version of `collect`. Blocks the thread."""
        status = self.status_sync(ticket)
        check_results(status)
        for source in status.results:
            for answer in self._answers_sync(source):
                yield self._outcome(ticket, answer)

    async def aclose(self) -> None:
        """Close the clients that this object created: the sync client, and the async one of the running loop."""
        await self._client.aclose()

    def close(self) -> None:
        """Close the client of the sync methods. After async calls, use `aclose`, which closes both."""
        self._client.close()

    def _order(self, prompts: KeyedPrompts, name: str, how: CallArguments) -> tuple[BatchOrder, BatchTicket]:
        """Return the batch to create, and its ticket without an id. Raises SettingsInvalid for what does not fit."""
        renderings = dict(self._renderings(prompts, how))
        requests = tuple(
            BatchRequest(key, each.path, each.body_bytes, each.headers) for key, each in renderings.items()
        )
        limits, size = self._operations[CREATE].limits, size_of(requests)
        for number, limit, unit in ((len(requests), "requests", "requests"), (size, "bytes", "bytes of requests")):
            if number > (most := limits.get(limit, number)):
                accepted = f"{self._model} accepts {most:,} {unit} in one batch, not {number:,}"
                raise SettingsInvalid(f"{accepted}; submit several batches")
        if not requests:
            raise SettingsInvalid("a batch needs at least one prompt; pass prompts by key, for example {'a': 'Hello!'}")
        _log_losses(self._model, renderings)
        return BatchOrder(requests, name, digest_of(requests)), BatchTicket(
            self._model, "", *replaced_names(renderings.values())
        )

    def _renderings(self, prompts: KeyedPrompts, how: CallArguments) -> Iterator[tuple[str, Rendering]]:
        _, how = repeatable((), how)
        keys = set[str]()
        for key, prompt in prompts.items() if isinstance(prompts, Mapping) else prompts:
            if not isinstance(key, str) or not KEY.fullmatch(key):
                expected = "expected at most 64 letters, digits, '_' and '-'"
                raise SettingsInvalid(f"{key!r} cannot be the key of a prompt in a batch; {expected}")
            if key in keys:
                raise SettingsInvalid(f"two prompts have the key {key!r}; give each prompt its own key")
            keys.add(key)
            yield key, self._rendering(key, prompt, how)

    def _rendering(self, key: str, prompt: Messages | Rendering, how: CallArguments) -> Rendering:
        if isinstance(prompt, Rendering):
            if prompt.target != self.adapter.target:
                raise SettingsInvalid(f"prompt {key!r} is rendered for {prompt.target}, not for {self._model}")
            return prompt
        try:
            return self.adapter.render(prompt, **how)
        except RenderingRefused as error:
            error.add_note(f"This is the prompt {key!r} of the batch; nothing was submitted.")
            raise

    def _read(self, ticket: str) -> BatchTicket:
        read = BatchTicket.parse(ticket)
        if read.model != self._model:
            raise SettingsInvalid(f"the ticket is for {read.model}, not for {self._model}; use batch({read.model!r})")
        return read

    def _outcome(self, ticket: str, answer: BatchAnswer) -> BatchOutcome:
        read, adapter = self._read(ticket), self.adapter
        scope = DecodeScope(
            adapter.target,
            adapter.speaks_as,
            read.option_names,
            request_id=answer.request_id,
            bounds=adapter.settings.bounds or sabir.Bounds(),
            argument_names=read.argument_names,
        )
        return outcome_of(answer, self._dialect, scope)

    def _client_of(self, operation: str) -> OperationClient[Any, Any]:
        """Return the client for an operation. Creating a batch is not repeated, because it could be charged twice."""
        once = Settings(retries=RetryPolicy(attempts=1)).laid_over(transport_settings(self.adapter.settings))
        return self._client.with_operation(operation, settings=once if operation == CREATE else None)

    async def _run(self, steps: Steps[Result]) -> Result:
        received = None
        while True:
            try:
                step = steps.send(received)
            except StopIteration as end:
                return cast("Result", end.value)
            received = (await self._client_of(step.operation).call(step.call)).output

    def _run_sync(self, steps: Steps[Result]) -> Result:
        received = None
        while True:
            try:
                step = steps.send(received)
            except StopIteration as end:
                return cast("Result", end.value)
            received = self._client_of(step.operation).call_sync(step.call).output

    async def _answers(self, source: BatchResults) -> AsyncGenerator[BatchAnswer, None]:
        client = self._client_of(source.operation)
        if client.operation.reads_lines:
            async for answer in client.each(source.id):
                yield answer
        else:
            for answer in (await client.call(source.id)).output:
                yield answer

    def _answers_sync(self, source: BatchResults) -> Iterator[BatchAnswer]:
        client = self._client_of(source.operation)
        yield from client.each_sync(source.id) if client.operation.reads_lines else client.call_sync(source.id).output


class _Poll:
    """The pauses between two requests for the status."""

    def __init__(self, every: float, timeout: float | None) -> None:
        if not every > 0:
            raise SettingsInvalid(f"every is {every!r}; expected a number of seconds above 0")
        self._every = every
        self._end = None if timeout is None else time.monotonic() + timeout
        self._state = ""

    def note(self, state: str) -> None:
        """Remember the last status, for the error."""
        self._state = state

    def note_error(self, error: CallError) -> None:
        """Log an error that may go away. Raises any other."""
        if not error.retryable:
            raise error
        logger.warning("waiting for a batch: %s", error)

    def next_pause(self) -> float:
        """Return the seconds until the next request. Raises CallTimedOut if the time is over."""
        if self._end is None:
            return self._every
        if (remaining := self._end - time.monotonic()) <= 0:
            raise CallTimedOut(f"the batch is not over ({self._state}); wait for it again, or raise timeout=")
        return min(self._every, remaining)


def transport_settings(settings: Settings) -> Settings:
    """Return the settings for requests besides chat: time limits, retries, size limits and headers."""
    names = ("timeout", "idle", "total", "bounds", "retries", "extra_headers", "extra_headers_for")
    chosen: Any = {name: getattr(settings, name) for name in names if getattr(settings, name)}
    return Settings(**chosen)


def _log_losses(model: str, renderings: Mapping[str, Rendering]) -> None:
    losses = Counter(f"{loss.kind}: {loss.path}: {loss.reason}" for each in renderings.values() for loss in each.losses)
    for loss, count in losses.items():
        logger.warning("%s lost in %d of %d requests: %s", model, count, len(renderings), loss)


@show_arguments
def batch(
    model: str,
    *,
    api_key: ApiKey | None = None,
    base_url: str | None = None,
    client: Any = None,  # the vendor SDK's client: its type is known to the provider's plugin alone
    speaks_as: str = "llm",
    settings: Settings | None = None,
    strict: Strict = False,
    model_info: ModelInfo | None = None,
    model_facts: Any = None,  # as in `sabir.adapter`: a ModelInfo, or a mapping of some of its fields
    **misnamed: Never,
) -> Batch:
    """Return an object that submits batches for a model, and reads their results. Nothing is sent yet.

    The arguments are those of `sabir.adapter`. Pass the same arguments in each process that uses a ticket. Raises the
    errors of `sabir.adapter`, and SettingsInvalid for a provider without batches.
    """
    adapter = sabir.adapter(
        model,
        api_key=api_key,
        base_url=base_url,
        client=client,
        speaks_as=speaks_as,
        settings=settings,
        strict=strict,
        model_info=model_info,
        model_facts=model_facts,
        **misnamed,
    )
    return batch_of(adapter)


def batch_of(adapter: ModelAdapter) -> Batch:
    """Return an object for batches of an adapter's model. Raises SettingsInvalid for a provider without batches."""
    passed, transport = adapter.access, transport_settings(adapter.settings)
    access: Mapping[str, Any] = {"api_key": passed.api_key, "base_url": passed.base_url, "client": passed.client}
    return Batch(adapter, operation_client(model_name(adapter.target), CREATE, settings=transport, **access))
