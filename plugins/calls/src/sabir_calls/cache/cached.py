"""An adapter that returns stored replies for requests that were sent before.

render ──▶ key ──▶ stored? ── yes ──▶ the reply with new message ids, no tokens used, `from_cache` True
                      └────── no ───▶ the wrapped adapter ──▶ complete and not cut off? ──▶ stored
"""

import os
from collections.abc import Iterator
from typing import NamedTuple, Unpack

from pydantic import ValidationError
from sabir import (
    Adapter,
    BlockDelta,
    BlockEnd,
    BlockStart,
    Loss,
    Message,
    ModelAdapter,
    OptionCallPayload,
    Rendering,
    Reply,
    ReplyEnd,
    ReplyStart,
    ReplyStream,
    StreamEvent,
    SyncReplyStream,
    Usage,
)
from sabir.authoring import CallArguments, Emit, Messages, Part, Relay, Script, WrappedAdapter

from sabir_calls.arguments import repeatable, repeatable_or_rendering
from sabir_calls.cache.keys import request_key
from sabir_calls.cache.stores import ResponseStore, SQLiteResponses

_COMPLETE = frozenset({"stop", "option_calls"})
"""The finish reasons of replies that are stored. Other replies were cut off, refused or failed; a repeated request may
succeed.
"""
_NOTHING_USED = Usage(input_tokens=0, output_tokens=0)


class _CacheEntry(NamedTuple):
    """A request, and its key in the store."""

    store: ResponseStore
    key: str
    rendering: Rendering

    def find(self) -> Reply | None:
        """Return the stored reply to this request. None if there is none, or if this version cannot read it."""
        stored = self.store.get(self.key)
        if stored is None:
            return None
        try:
            reply = Reply.model_validate_json(stored)
        except ValidationError:
            return None
        messages = tuple(map(_with_new_id, reply.messages))
        losses = (*self.rendering.losses, *reply.losses)
        fields = {**vars(reply), "messages": messages, "losses": losses, "usage": _NOTHING_USED, "attempts": 0}
        return Reply.construct_unchecked(fields, {*Reply.model_fields})

    def save(self, reply: Reply) -> Reply:
        """Store the reply, without the losses of the request, and return it unchanged.

        A reply is not stored if it is incomplete, from the cache, or from a fallback in which a member failed.
        """
        if reply.finish_reason in _COMPLETE and not reply.failed_members and not reply.from_cache:
            losses = _remaining_losses(reply.losses, self.rendering.losses)
            self.store.put(self.key, reply.model_copy(update={"losses": losses}).model_dump_json().encode())
        return reply


def _with_new_id(message: Message) -> Message:
    return Message.construct_unchecked({**vars(message), "id": Message.new_id()}, message.model_fields_set | {"id"})


class CachedAdapter(WrappedAdapter):
    """An adapter with a cache of replies. Created by `cached_responses`.

    Its methods raise the errors of the wrapped adapter and of the store: CacheError if a SQLite file fails.
    """

    def __init__(self, adapter: Adapter, store: ResponseStore) -> None:
        super().__init__(adapter)
        self.store = store
        """The store of the replies. `store.clear()` deletes all replies."""

    def __repr__(self) -> str:
        """Show the wrapped adapter and the store."""
        return f"cached_responses({self.inner!r}, {self.store!r})"

    def forget(self, messages: Messages | Rendering, **how: Unpack[CallArguments]) -> None:
        """Delete the stored reply to this request, if there is one."""
        self.store.delete(self._entry(messages, how).key)

    async def send(self, rendering: Rendering) -> Reply:
        """Return the stored reply. Without one, send a rendering unchanged, and store the reply if it is complete."""
        entry = self._entry(rendering, {})
        return entry.find() or entry.save(await self.inner.send(rendering))

    def send_sync(self, rendering: Rendering) -> Reply:
        """Sync version of `send`. Blocks the thread."""
        entry = self._entry(rendering, {})
        return entry.find() or entry.save(self.inner.send_sync(rendering))

    async def complete(self, messages: Messages, **how: Unpack[CallArguments]) -> Reply:
        """Return the stored reply. Without one, send a conversation, and store the reply if it is complete."""
        messages, how = repeatable(messages, how)
        entry = self._entry(messages, how)
        if stored_reply := entry.find():
            return stored_reply
        if isinstance(self.inner, ModelAdapter):  # avoids a second rendering of the request
            return entry.save(await self.inner.send(entry.rendering))
        return entry.save(await self.inner.complete(messages, **how))

    def complete_sync(self, messages: Messages, **how: Unpack[CallArguments]) -> Reply:
        """Sync version of `complete`. Blocks the thread."""
        messages, how = repeatable(messages, how)
        entry = self._entry(messages, how)
        if stored_reply := entry.find():
            return stored_reply
        if isinstance(self.inner, ModelAdapter):
            return entry.save(self.inner.send_sync(entry.rendering))
        return entry.save(self.inner.complete_sync(messages, **how))

    def stream(self, messages: Messages | Rendering, **how: Unpack[CallArguments]) -> ReplyStream:
        """Return the reply as a stream. A stored reply arrives as events too, with the text of each part in one event.

        The store is read with the first event. A new reply is stored at the end of the stream, if it is complete.
        """
        messages, how = repeatable_or_rendering(messages, how)
        relay = _CachedStream(self.inner.stream(messages, **how), self._entry(messages, how))
        return ReplyStream(relay, relay.start)

    def stream_sync(self, messages: Messages | Rendering, **how: Unpack[CallArguments]) -> SyncReplyStream:
        """Sync version of `stream`. Reading blocks the thread."""
        messages, how = repeatable_or_rendering(messages, how)
        relay = _CachedStream(self.inner.stream_sync(messages, **how), self._entry(messages, how))
        return SyncReplyStream(relay, relay.start)

    def _entry(self, messages: Messages | Rendering, how: CallArguments) -> _CacheEntry:
        rendering = messages if isinstance(messages, Rendering) else self.inner.render(messages, **how)
        return _CacheEntry(self.store, request_key(rendering, self.speaks_as), rendering)


class _CachedStream(Relay):
    """A stream of the stored reply, or of a new reply that is stored at its end."""

    def __init__(self, stream: ReplyStream | SyncReplyStream, entry: _CacheEntry) -> None:
        super().__init__(stream)
        self._entry = entry
        self._stored_reply: Reply | None = None
        self._is_silent = False

    @property
    def partial(self) -> Reply:
        """The stored reply, or the reply as far as it has arrived."""
        return self._stored_reply or super().partial

    def skip_events(self) -> None:
        """Pass on no more events."""
        self._is_silent = True
        super().skip_events()

    def text_of(self, event: StreamEvent) -> str:
        """Return the text that an event adds to the reply, or ""."""
        if self._stored_reply is None:
            return super().text_of(event)
        return event.text if isinstance(event, BlockDelta) and event.kind == "text" else ""

    def script(self) -> Script[Reply]:
        """Pass the events on, of the stored reply or of the wrapped stream."""
        self._stored_reply = self._entry.find()
        if self._stored_reply is None:
            return self._entry.save((yield from super().script()))
        for event in events_of(self._stored_reply):
            if not self._is_silent:
                yield Emit(event)
        return self._stored_reply


def cached_responses(adapter: Adapter, store: ResponseStore | str | os.PathLike[str]) -> CachedAdapter:
    """Wrap an adapter so that a request to which a reply is stored gets this reply and is not sent.

    `store` is the path of a SQLite file, or a store. Two calls share a reply if they render to the same request, for
    the same target and policy. Only replies with the finish reason "stop" or "option_calls" are stored, and none of a
    fallback in which a member failed. A reply from the cache has new message ids, `from_cache` True, and a usage of 0
    tokens. Raises CacheError if the file cannot be used. Wrap the members of a fallback, not the fallback; and download
    media outside: `fetching(cached_responses(llm, …))`.

    >>> import sabir, sabir_calls
    >>> llm = sabir_calls.cached_responses(sabir.adapter("echo:m"), sabir_calls.MemoryResponses())
    >>> llm.complete_sync("Hello!").from_cache, llm.complete_sync("Hello!").from_cache
    (False, True)
    """
    return CachedAdapter(adapter, SQLiteResponses(store) if isinstance(store, str | os.PathLike) else store)


def events_of(reply: Reply) -> Iterator[StreamEvent]:
    """Yield the events of a stream that ends with this reply."""
    yield ReplyStart(origin=reply.origin)
    for index, block in enumerate(_blocks(reply)):
        start = BlockStart.unchecked(index, block)
        yield start
        if text := _text_of(block):
            yield BlockDelta(index=index, kind=start.kind, text=text)
        yield BlockEnd(index=index, block=block)
    copied = ("finish_reason", "raw_finish_reason", "usage", "losses", "alternatives")
    yield ReplyEnd(**{name: getattr(reply, name) for name in copied}, details=reply.details, finished_calls="all")


def _text_of(block: Part | OptionCallPayload) -> str:
    if isinstance(block, OptionCallPayload):
        return block.raw_arguments or block.arguments_json
    text: str = getattr(block, "text", "")
    return text


def _blocks(reply: Reply) -> Iterator[Part | OptionCallPayload]:
    for message in reply.messages:
        if isinstance(message.payload, OptionCallPayload):
            yield message.payload
        else:
            yield from message.parts


def _remaining_losses(losses: tuple[Loss, ...], others: tuple[Loss, ...]) -> tuple[Loss, ...]:
    remaining = list(losses)
    for other in others:
        if other in remaining:
            remaining.remove(other)
    return tuple(remaining)
