"""What a call takes, and the Protocol of whatever takes calls.

class Cached:                                   # a wrapper is an Adapter around an Adapter
    async def complete(self, messages: Messages, **how: Unpack[CallArguments]) -> Reply: ...
"""

from collections.abc import Iterable, Sequence
from typing import Protocol, TypeAlias, TypedDict, Unpack

from sabir.losses import Strict
from sabir.messages import Message
from sabir.options import OptionLike
from sabir.rendering import Rendering
from sabir.reply import Reply
from sabir.scope import Target
from sabir.settings import Settings
from sabir.stream import ReplyStream, SyncReplyStream

Messages: TypeAlias = str | Message | Sequence[Message]
"""What a call takes: a text of the user, one message, or a conversation."""


class CallArguments(TypedDict, total=False):
    """How a call is made, all of it optional; wrappers take and pass it on as `**how: Unpack[CallArguments]`.

    `options` are offered to the model: options, typed functions or pydantic models. `settings` are laid over the
    adapter's. `strict` names the kinds of loss that refuse the rendering (True: dropped and downgraded); left out or
    None, the adapter's counts.
    """

    options: Iterable[OptionLike]
    settings: Settings | None
    strict: Strict | None


class Adapter(Protocol):
    """What a conversation needs; whoever wraps one to cache, redact, limit or fall back offers the same."""

    @property
    def target(self) -> Target:
        """Where renderings go: provider, dialect, model, endpoint."""

    def render(self, messages: Messages, **how: Unpack[CallArguments]) -> Rendering:
        """The request and its losses, without key and network."""

    async def send(self, rendering: Rendering) -> Reply:
        """Send a rendering as it is."""

    def send_sync(self, rendering: Rendering) -> Reply:
        """As `send`, waiting."""

    async def complete(self, messages: Messages, **how: Unpack[CallArguments]) -> Reply:
        """Render and send."""

    def complete_sync(self, messages: Messages, **how: Unpack[CallArguments]) -> Reply:
        """As `complete`, waiting."""

    def stream(self, messages: Messages | Rendering, **how: Unpack[CallArguments]) -> ReplyStream:
        """Render and send; the reply as it comes."""

    def stream_sync(self, messages: Messages | Rendering, **how: Unpack[CallArguments]) -> SyncReplyStream:
        """As `stream`, waiting."""

    async def aclose(self) -> None:
        """Close every client that the adapter made."""

    def close(self) -> None:
        """Close the client of the waiting methods."""
