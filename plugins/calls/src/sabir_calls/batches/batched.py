"""An adapter whose calls are batches of one request: half the price, and replies after minutes or hours.

call ──▶ request ──stored?──▶ its ticket ──▶ wait ──▶ collect ──▶ reply        a later process goes on with the ticket
             └──── no ──▶ name stored ──▶ submit ──▶ ticket stored
"""

import json
import os
from typing import NoReturn, Unpack
from uuid import uuid4

from sabir import Rendering, Reply, ReplyStream, SettingsInvalid, SyncReplyStream
from sabir.authoring import CallArguments, Messages, WrappedAdapter

from sabir_calls.batches.batch import Batch
from sabir_calls.batches.outcomes import BatchError, BatchOutcome
from sabir_calls.cache.keys import request_key
from sabir_calls.cache.stores import ResponseStore, SQLiteResponses

KEY = "request"
"""The key of the only request of each batch."""


class BatchedAdapter(WrappedAdapter):
    """An adapter that submits each call as a batch of one request, and waits for the reply. Created by `batched`.

    Its methods raise the errors of Batch, and the error of the request. An equal request to the same store returns the
    reply of the same batch, unless that request failed. There are no streams.
    """

    def __init__(self, batches: Batch, tickets: ResponseStore, every: float) -> None:
        super().__init__(batches.adapter)
        self.batches = batches
        """The batches that requests are submitted to."""
        self.tickets = tickets
        """The store of the tickets."""
        self._every = every

    def __repr__(self) -> str:
        """Show the model."""
        return f"batched({self.batches!r})"

    async def send(self, rendering: Rendering) -> Reply:
        """Submit a rendering, or find the batch of an equal one, and return the reply when the batch is over."""
        call = _BatchedCall(self.tickets, request_key(rendering, self.speaks_as), self.batches.has_names)
        if not call.ticket:
            call.save_ticket(await self.batches.submit({KEY: rendering}, name=call.name))
        await self.batches.wait(call.ticket, every=self._every)
        return call.reply_of([outcome async for outcome in self.batches.collect(call.ticket)], rendering)

    def send_sync(self, rendering: Rendering) -> Reply:
        """Sync version of `send`. Blocks the thread."""
        call = _BatchedCall(self.tickets, request_key(rendering, self.speaks_as), self.batches.has_names)
        if not call.ticket:
            call.save_ticket(self.batches.submit_sync({KEY: rendering}, name=call.name))
        self.batches.wait_sync(call.ticket, every=self._every)
        return call.reply_of(list(self.batches.collect_sync(call.ticket)), rendering)

    async def complete(self, messages: Messages, **how: Unpack[CallArguments]) -> Reply:
        """Submit a conversation, or find its batch, and return the reply when the batch is over."""
        return await self.send(self.inner.render(messages, **how))

    def complete_sync(self, messages: Messages, **how: Unpack[CallArguments]) -> Reply:
        """Sync version of `complete`. Blocks the thread."""
        return self.send_sync(self.inner.render(messages, **how))

    def stream(self, messages: Messages | Rendering, **how: Unpack[CallArguments]) -> ReplyStream:
        """Raise SettingsInvalid, because batches have no streams."""
        _refuse_stream()

    def stream_sync(self, messages: Messages | Rendering, **how: Unpack[CallArguments]) -> SyncReplyStream:
        """Raise SettingsInvalid, because batches have no streams."""
        _refuse_stream()

    async def aclose(self) -> None:
        """Close the clients of the batches."""
        await self.batches.aclose()

    def close(self) -> None:
        """Close the client of the sync methods."""
        self.batches.close()


class _BatchedCall:
    """The entry of a request in the store: a name for its batch, which is stored first, and then the ticket."""

    def __init__(self, store: ResponseStore, request: str, has_names: bool) -> None:
        self._store = store
        self._entry_key = f"batch {request}"
        stored = store.get(self._entry_key)
        entry = {"name": f"sabir-{uuid4().hex}", "ticket": ""} if stored is None else json.loads(stored)
        self.ticket: str = entry["ticket"]
        self.name: str = entry["name"] if has_names else ""
        if stored is None:
            self._put(entry["name"])

    def save_ticket(self, ticket: str) -> None:
        """Store the ticket."""
        self.ticket = ticket
        self._put(self.name)

    def reply_of(self, outcomes: list[BatchOutcome], rendering: Rendering) -> Reply:
        """Return the reply, with the losses of the request. If the request has no reply, delete the entry, so that the
        next call submits the request again, and raise the error.
        """
        if not outcomes or outcomes[0].reply is None:
            self._store.delete(self._entry_key)
        if not outcomes:
            raise BatchError(f"the batch of {self.ticket!r} is over without an answer; call again to submit it again")
        reply = outcomes[0].unwrap()
        return reply.model_copy(update={"losses": (*rendering.losses, *reply.losses)})

    def _put(self, name: str) -> None:
        self._store.put(self._entry_key, json.dumps({"name": name, "ticket": self.ticket}).encode())


def _refuse_stream() -> NoReturn:
    raise SettingsInvalid("batches have no streams; call complete() instead of stream()")


def batched(batches: Batch, tickets: ResponseStore | str | os.PathLike[str], *, every: float = 60.0) -> BatchedAdapter:
    """Return an adapter for calls that may wait, such as evaluations that run overnight.

    Each call submits a batch of one request and waits until it is over. `tickets` is a store, or the path of an
    SQLite file, with the tickets: if the process ends while it waits, an equal call in a later process waits for the
    same batch. A call that was killed while it was submitted may be charged twice if the vendor's batches have no
    names. `every` is the number of seconds between two requests for the status. Raises CacheError if the file cannot be
    used.

    >>> import sabir_calls
    >>> llm = sabir_calls.batched(sabir_calls.batch("echo:m"), sabir_calls.MemoryResponses())
    >>> llm.complete_sync("Hello!").is_batch
    True
    """
    store = SQLiteResponses(tickets) if isinstance(tickets, str | os.PathLike) else tickets
    return BatchedAdapter(batches, store, every)
