"""The arguments of a call, their checks, and the Protocol of every object that takes calls.

class Cached:                                   # a wrapper is an Adapter around an Adapter
    async def complete(self, messages: Messages, **how: Unpack[CallArguments]) -> Reply: ...

settings={"seed": 1}           ──▶ SettingsInvalid: … write sabir.Settings(…)
Settings(vendor={"acem": …})   ──▶ SettingsInvalid: … did you mean 'acme'?
api_key=123                    ──▶ SettingsInvalid: … give a string, a mapping of …, or a plain function …
speaks_as="runtime"            ──▶ SettingsInvalid: … give speaks_as= another
"""

import difflib
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Protocol, TypeAlias, TypedDict, Unpack

from sabir.base.errors import SettingsInvalid
from sabir.base.failures import Strict
from sabir.base.surface import show_arguments
from sabir.calling.stream import ReplyStream, SyncReplyStream
from sabir.contract.dialect import Rendering
from sabir.contract.provider import ApiKey
from sabir.discovery import default_registry as registry
from sabir.options.option import OptionLike
from sabir.options.signatures import Signature
from sabir.vocabulary.messages import RESERVED, RUNTIME, Message
from sabir.vocabulary.reply import Reply
from sabir.vocabulary.settings import Settings, Target

Messages: TypeAlias = str | Message | Sequence[Message]
"""The messages that a call takes: a text of the user, one message, or a conversation."""


class CallArguments(TypedDict, total=False):
    """The optional arguments of a call, which an adapter accepts as `**how: Unpack[CallArguments]`.

    options: the options that the model may call: Option objects, typed
        functions or pydantic model classes.
    settings: the Settings of this call. The adapter's settings apply
        where these are not set.
    strict: the kinds of loss that raise RenderingRefused. True means
        "dropped" and "downgraded"; None means the adapter's `strict`.
    """

    options: Iterable[OptionLike]
    settings: Settings | None
    strict: Strict | None


@show_arguments
class Adapter(Protocol):
    """The methods that a conversation needs; a wrapper that caches, redacts, limits or falls back has them too."""

    @property
    def target(self) -> Target:
        """The target of its renderings: provider, dialect, model, endpoint."""

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
        """Render and send; the reply as it arrives."""

    def stream_sync(self, messages: Messages | Rendering, **how: Unpack[CallArguments]) -> SyncReplyStream:
        """As `stream`, waiting."""

    async def aclose(self) -> None:
        """Close every client that the adapter made."""

    def close(self) -> None:
        """Close the client of the waiting methods."""


LIKENESS = 0.8
"""The least likeness (0 … 1, as difflib counts it) at which a name is taken for another name misspelt."""


def checked_settings(settings: Settings, provider: str) -> Settings:
    """The settings; SettingsInvalid for another type, and for a vendor section with a misspelt provider's name.

    Installed providers are known by name without loading them. A section whose name is unlike all installed
    providers' names passes: the same settings may serve machines with other plugins.
    """
    if not isinstance(settings, Settings):
        raise SettingsInvalid(f"settings is of type {type(settings).__name__}; write sabir.Settings(…)")
    for name in settings.vendor:
        meant = None if name == provider else _meant(name, (provider, *registry.names()))
        if meant is not None and not registry.knows(name):
            raise SettingsInvalid(
                f"Settings(vendor=…) has a section for {name!r}, which is no provider; did you mean {meant!r}?"
            )
    return settings


def checked_policy(speaks_as: str) -> str:
    """The policy that an adapter speaks for; raises SettingsInvalid for the reserved policy `runtime`."""
    if speaks_as == RUNTIME:
        raise SettingsInvalid(f"{RESERVED}; give speaks_as= another, for example 'llm'")
    return speaks_as


@lru_cache(maxsize=256)
def _meant(name: str, known: tuple[str, ...]) -> str | None:
    """The provider whose name resembles this name; None where the name is a provider's, or unlike all."""
    if name in known:
        return None
    return next(iter(difflib.get_close_matches(name.lower(), known, n=1, cutoff=LIKENESS)), None)


def checked_key(api_key: ApiKey | None) -> ApiKey | None:
    """Return the key; raises SettingsInvalid unless it is None, a string, a mapping or a plain function."""
    remedy = "give a string, a mapping of names to strings, or a plain function that returns one"
    if callable(api_key) and Signature.is_asynchronous(api_key):
        raise SettingsInvalid(f"api_key is a coroutine function; {remedy}")
    if isinstance(api_key, Mapping) and not all(isinstance(text, str) for pair in api_key.items() for text in pair):
        raise SettingsInvalid(f"api_key is a mapping that holds more than strings; {remedy}")
    if api_key is not None and not isinstance(api_key, str | Mapping) and not callable(api_key):
        raise SettingsInvalid(f"api_key is of type {type(api_key).__name__}; {remedy}")
    return api_key
