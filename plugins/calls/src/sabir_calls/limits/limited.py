"""An adapter that waits for a limit before each request.

limited(llm, at_once=8, requests=500, tokens=30_000)
"""

from typing import Unpack

from sabir import Adapter, Rendering, Reply, ReplyStream, SettingsInvalid, SyncReplyStream
from sabir.authoring import (
    Action,
    CallArguments,
    Messages,
    Outcome,
    Performer,
    Relay,
    Script,
    WrappedAdapter,
)

from sabir_calls.arguments import repeatable, repeatable_or_rendering
from sabir_calls.limits.estimates import Estimate, estimate_tokens
from sabir_calls.limits.hooks import calling_in
from sabir_calls.limits.limit import Limit, Period, Slot


class LimitedAdapter(WrappedAdapter):
    """An adapter whose requests wait for a Limit. Created by `limited`.

    Its methods raise the errors of the wrapped adapter, and SettingsInvalid for a request whose estimated tokens exceed
    the limit. Rendering and counting tokens do not wait.
    """

    def __init__(self, adapter: Adapter, limit: Limit, estimate: Estimate) -> None:
        super().__init__(adapter)
        self.limit = limit
        """The limit. Pass it to `limited` with other adapters that share it."""
        self._estimate = estimate

    def __repr__(self) -> str:
        """Show the wrapped adapter and the limit."""
        return f"limited({self.inner!r}, {self.limit!r})"

    async def send(self, rendering: Rendering) -> Reply:
        """Wait for the limit, send a rendering unchanged, and return the reply."""
        async with self._slot(rendering) as slot:
            with calling_in(slot):
                return _record_usage(slot, await self.inner.send(rendering))

    def send_sync(self, rendering: Rendering) -> Reply:
        """Sync version of `send`. Blocks the thread."""
        with self._slot(rendering) as slot, calling_in(slot):
            return _record_usage(slot, self.inner.send_sync(rendering))

    async def complete(self, messages: Messages, **how: Unpack[CallArguments]) -> Reply:
        """Wait for the limit, send a conversation, and return the reply."""
        listed, how = repeatable(messages, how)
        async with self._slot_of(listed, how) as slot:
            with calling_in(slot):
                return _record_usage(slot, await self.inner.complete(listed, **how))

    def complete_sync(self, messages: Messages, **how: Unpack[CallArguments]) -> Reply:
        """Sync version of `complete`. Blocks the thread."""
        listed, how = repeatable(messages, how)
        with self._slot_of(listed, how) as slot, calling_in(slot):
            return _record_usage(slot, self.inner.complete_sync(listed, **how))

    def stream(self, messages: Messages | Rendering, **how: Unpack[CallArguments]) -> ReplyStream:
        """Return the reply as a stream. Reading the first event waits for the limit and sends the request.

        The request counts as running until the stream ends, fails or is closed.
        """
        messages, how = repeatable_or_rendering(messages, how)
        relay = _LimitedStream(self.inner.stream(messages, **how), self._slot_of(messages, how))
        return ReplyStream(relay, relay.start)

    def stream_sync(self, messages: Messages | Rendering, **how: Unpack[CallArguments]) -> SyncReplyStream:
        """Sync version of `stream`. Reading blocks the thread."""
        messages, how = repeatable_or_rendering(messages, how)
        relay = _LimitedStream(self.inner.stream_sync(messages, **how), self._slot_of(messages, how))
        return SyncReplyStream(relay, relay.start)

    def _slot(self, rendering: Rendering) -> Slot:
        return self.limit.slot(0 if self.limit.tokens is None else self._estimate(rendering))

    def _slot_of(self, messages: Messages | Rendering, how: CallArguments) -> Slot:
        if isinstance(messages, Rendering):
            return self._slot(messages)
        return self.limit.slot() if self.limit.tokens is None else self._slot(self.inner.render(messages, **how))


class _LimitedStream(Relay):
    """A stream that enters its slot before the first event, and leaves the slot at its end."""

    def __init__(self, stream: ReplyStream | SyncReplyStream, slot: Slot) -> None:
        super().__init__(stream)
        self._slot = slot

    async def start(self) -> tuple[Script[Reply], Performer]:
        """Wait until the slot may be entered, and start the stream."""
        if isinstance(self.stream, ReplyStream):
            await self._slot.__aenter__()
        else:
            self._slot.__enter__()
        return await super().start()

    async def perform(self, action: Action) -> Outcome:
        """Read the next event. The attempts of the call are reported to the slot."""
        with calling_in(self._slot):
            return await super().perform(action)

    def script(self) -> Script[Reply]:
        """Pass the events on. The slot ends with the stream, also if the stream fails or is closed."""
        try:
            return _record_usage(self._slot, (yield from super().script()))
        finally:
            self._slot.__exit__()


def limited(
    adapter: Adapter,
    limit: Limit | None = None,
    *,
    at_once: int | None = None,
    requests: int | None = None,
    tokens: int | None = None,
    per: Period | None = None,
    estimate: Estimate = estimate_tokens,
) -> LimitedAdapter:
    """Wrap an adapter so that its requests wait for a limit.

    Pass the numbers of a new Limit, or a Limit that adapters share. If tokens are limited, `estimate` returns the
    tokens of a request before it is sent; the reply's usage, if the provider reports it, replaces the estimate
    afterwards. Retries of the adapter do not wait, but count. Raises SettingsInvalid for a limit together with numbers,
    and for invalid numbers.

    >>> import sabir, sabir_calls
    >>> llm = sabir_calls.limited(sabir.adapter("echo:small"), at_once=2)
    >>> other = sabir_calls.limited(sabir.adapter("echo:large"), llm.limit)
    >>> other.complete_sync("Hello!").text
    'Hello!'
    """
    if limit is None:
        limit = Limit(at_once=at_once, requests=requests, tokens=tokens, per="minute" if per is None else per)
    elif (at_once, requests, tokens, per) != (None, None, None, None):
        raise SettingsInvalid("limited() got a limit and numbers for a new one; pass only one of them")
    return LimitedAdapter(adapter, limit, estimate)


def _record_usage(slot: Slot, reply: Reply) -> Reply:
    """Replace the slot's estimate by the reply's tokens, if the provider reported them, and return the reply."""
    slot.use(reply.usage.total_tokens)
    return reply
