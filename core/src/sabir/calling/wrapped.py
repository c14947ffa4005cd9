"""The base class of adapters that wrap another adapter.

class Redacting(WrappedAdapter):            # overrides the methods that it changes; `inner` does all others
    async def complete(self, messages, **how): return await self.inner.complete(redacted(messages), **how)

redacting.complete(…) ──▶ its own method        redacting.stream(…), .send(…), .model … ──▶ inner
"""

from typing import TYPE_CHECKING, Any, Unpack

from sabir.calling.calls import Adapter, CallArguments, Messages
from sabir.calling.fallback import require_token_counter
from sabir.calling.stream import AsyncClosing, ReplyStream, SyncClosing, SyncReplyStream
from sabir.contract.dialect import Rendering
from sabir.contract.provider import TokenCount
from sabir.vocabulary.reply import Reply
from sabir.vocabulary.settings import Target


class WrappedAdapter(AsyncClosing, SyncClosing):
    """An adapter that passes every call on to another adapter, `inner`. Inherit from WrappedAdapter to change some of
    the methods.

    Each method calls the same method of `inner`. So an override of `render` does not change `complete`, and an override
    of `complete` changes neither `complete_sync` nor `stream`. Public attributes that this class does not define are
    read from `inner`, for example `model` and `settings`. Closing the wrapper closes `inner`.

    >>> import sabir
    >>> from sabir.authoring import WrappedAdapter
    >>> class Shouting(WrappedAdapter):
    ...     def complete_sync(self, messages, **how):
    ...         return self.inner.complete_sync(messages.upper(), **how)
    >>> Shouting(sabir.adapter("echo:m")).complete_sync("Hello!").text
    'HELLO!'
    """

    def __init__(self, inner: Adapter) -> None:
        self.inner = inner
        """The wrapped adapter."""

    @property
    def target(self) -> Target:
        """The target of the wrapped adapter."""
        return self.inner.target

    @property
    def speaks_as(self) -> str:
        """The policy whose messages the wrapped adapter sends as the model's own; "llm" if the wrapped adapter has no
        such attribute.
        """
        return str(getattr(self.inner, "speaks_as", "llm"))

    def __repr__(self) -> str:
        """Return the class's name with the repr of the wrapped adapter."""
        return f"{type(self).__name__}({self.inner!r})"

    if not TYPE_CHECKING:  # type checkers see only the declared members, so that they find misspelt names

        def __getattr__(self, name: str) -> Any:
            """Read a public attribute that this class does not define from the wrapped adapter."""
            if name.startswith("_") or name == "inner":  # copying and unpickling look for these before `inner` is set
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            return getattr(self.inner, name)

    def render(self, messages: Messages, **how: Unpack[CallArguments]) -> Rendering:
        """Return the wrapped adapter's request for a conversation, and its losses. Needs no API key and no network."""
        return self.inner.render(messages, **how)

    async def send(self, rendering: Rendering) -> Reply:
        """Send a rendering for the wrapped adapter's target, unchanged, and return the reply."""
        return await self.inner.send(rendering)

    def send_sync(self, rendering: Rendering) -> Reply:
        """Sync version of `send`. Blocks the thread."""
        return self.inner.send_sync(rendering)

    async def complete(self, messages: Messages, **how: Unpack[CallArguments]) -> Reply:
        """Render a conversation, send the request and return the complete reply."""
        return await self.inner.complete(messages, **how)

    def complete_sync(self, messages: Messages, **how: Unpack[CallArguments]) -> Reply:
        """Sync version of `complete`. Blocks the thread."""
        return self.inner.complete_sync(messages, **how)

    def stream(self, messages: Messages | Rendering, **how: Unpack[CallArguments]) -> ReplyStream:
        """Render a conversation, and return a stream of the reply. Reading the first event sends the request."""
        return self.inner.stream(messages, **how)

    def stream_sync(self, messages: Messages | Rendering, **how: Unpack[CallArguments]) -> SyncReplyStream:
        """Sync version of `stream`. Reading blocks the thread."""
        return self.inner.stream_sync(messages, **how)

    async def count_tokens(self, messages: Messages, **how: Unpack[CallArguments]) -> TokenCount:
        """Return the number of input tokens of the request for a conversation. Raises SettingsInvalid if the wrapped
        adapter cannot count tokens.
        """
        return await require_token_counter(self.inner).count_tokens(messages, **how)

    def count_tokens_sync(self, messages: Messages, **how: Unpack[CallArguments]) -> TokenCount:
        """Sync version of `count_tokens`. Blocks the thread."""
        return require_token_counter(self.inner).count_tokens_sync(messages, **how)

    async def aclose(self) -> None:
        """Close the wrapped adapter."""
        await self.inner.aclose()

    def close(self) -> None:
        """Close the wrapped adapter. Use `aclose` instead after async calls."""
        self.inner.close()
