"""The interface of adapters, and the arguments of their methods.

class Cached:                                   # a wrapper of an Adapter has the same methods
    async def complete(self, messages: Messages, **how: Unpack[CallArguments]) -> Reply: ...

settings={"seed": 1}           ──▶ SettingsInvalid: … write sabir.Settings(…)
Settings(vendor={"acem": …})   ──▶ SettingsInvalid: … did you mean 'acme'?
api_key=123                    ──▶ SettingsInvalid: … pass a string, a mapping of …, or a sync function …
speaks_as="runtime"            ──▶ SettingsInvalid: … use another name for speaks_as=
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
"""The conversation that a call accepts: a string (one user message), a message, or a sequence of messages. A dictionary
or a Reply raises WrongWord, a string that is not valid Unicode BuilderError.
"""


class CallArguments(TypedDict, total=False):
    """The optional arguments of a call, which an adapter accepts as `**how: Unpack[CallArguments]`.

    options: the options that the model may call: Option objects, typed
        functions or pydantic model classes.
    settings: the Settings of this call. Settings that are not set here
        have the adapter's value.
    strict: the kinds of loss that raise RenderingRefused. True means
        "dropped" and "downgraded", False no kind; None means the
        adapter's `strict`.
    """

    options: Iterable[OptionLike]
    settings: Settings | None
    strict: Strict | None


@show_arguments
class Adapter(Protocol):
    """The interface of an object that answers conversations: ModelAdapter, FallbackAdapter, or a wrapper of your own.

    A wrapper, for example one that caches replies, has the same methods and can be used instead of an adapter.

    >>> import sabir
    >>> def ask(llm: sabir.Adapter, question: str) -> str:
    ...     return llm.complete_sync(question).text
    >>> ask(sabir.adapter("echo:m"), "Hello!")
    'Hello!'
    """

    @property
    def target(self) -> Target:
        """The provider, dialect, model and endpoint that requests are sent to."""

    def render(self, messages: Messages, **how: Unpack[CallArguments]) -> Rendering:
        """Return the request for a conversation and its losses. Needs no API key and no network, and sends nothing.

        Raises RenderingRefused for losses that `strict` forbids or if nothing can be sent, and SettingsInvalid,
        WrongWord or OptionInvalid for wrong arguments.
        """

    async def send(self, rendering: Rendering) -> Reply:
        """Send a rendering for this adapter's target, unchanged, and return the reply.

        Raises SettingsInvalid for a rendering of another target, and CallError if the call fails.
        """

    def send_sync(self, rendering: Rendering) -> Reply:
        """Sync version of `send`. Blocks the thread."""

    async def complete(self, messages: Messages, **how: Unpack[CallArguments]) -> Reply:
        """Send a conversation and return the complete reply.

        Before sending, raises the same errors as `render`. Raises CallError if the call fails.
        """

    def complete_sync(self, messages: Messages, **how: Unpack[CallArguments]) -> Reply:
        """Sync version of `complete`. Blocks the thread."""

    def stream(self, messages: Messages | Rendering, **how: Unpack[CallArguments]) -> ReplyStream:
        """Return the reply to a conversation, or to a rendering, as a stream of events.

        Raises the same errors as `render`; with a rendering, SettingsInvalid for another target or further arguments.
        The request is sent when the first event is read, so reading raises the errors of the call.
        """

    def stream_sync(self, messages: Messages | Rendering, **how: Unpack[CallArguments]) -> SyncReplyStream:
        """Sync version of `stream`. Reading blocks the thread."""

    async def aclose(self) -> None:
        """Close the clients that the adapter created for its sync methods and for the running event loop."""

    def close(self) -> None:
        """Close the client that the sync methods created. After async calls, use `aclose` instead."""


LIKENESS = 0.8
"""The similarity (from 0 to 1, by difflib) from which a name counts as a misspelt name of a provider."""


def check_settings(settings: Settings, provider: str) -> Settings:
    """Return the settings. Raises SettingsInvalid for another type, and for a `vendor` section whose name looks like a
    misspelt name of an installed provider.

    A section with a name unlike all installed providers is accepted, because the same settings may be used on machines
    with other plugins. Loads no provider.
    """
    if not isinstance(settings, Settings):
        raise SettingsInvalid(f"settings is of type {type(settings).__name__}; write sabir.Settings(…)")
    for name in settings.vendor:
        meant = None if name == provider else _similar_name(name, (provider, *registry.names()))
        if meant is not None and not registry.knows(name):
            fault = f"has a section for {name!r}, which is not a provider"
            raise SettingsInvalid(f"Settings(vendor=…) {fault}; did you mean {meant!r}?")
    return settings


def check_policy(speaks_as: str) -> str:
    """Return the policy. Raises SettingsInvalid for the reserved policy "runtime"."""
    if speaks_as == RUNTIME:
        raise SettingsInvalid(f"{RESERVED}; use another name for speaks_as=, for example 'llm'")
    return speaks_as


@lru_cache(maxsize=256)
def _similar_name(name: str, known: tuple[str, ...]) -> str | None:
    """Return the known name that `name` is similar to. None if `name` is itself known, or similar to none."""
    if name in known:
        return None
    return next(iter(difflib.get_close_matches(name.lower(), known, n=1, cutoff=LIKENESS)), None)


def check_key(api_key: ApiKey | None) -> ApiKey | None:
    """Return the key. Raises SettingsInvalid unless it is None, a string, a mapping of strings to strings, or a
    function that is not a coroutine function.
    """
    remedy = "pass a string, a mapping of names to strings, or a sync function that returns either"
    if callable(api_key) and Signature.is_asynchronous(api_key):
        raise SettingsInvalid(f"api_key is a coroutine function; {remedy}")
    if isinstance(api_key, Mapping) and not all(isinstance(text, str) for pair in api_key.items() for text in pair):
        raise SettingsInvalid(f"api_key is a mapping with names or values that are not strings; {remedy}")
    if api_key is not None and not isinstance(api_key, str | Mapping) and not callable(api_key):
        raise SettingsInvalid(f"api_key is of type {type(api_key).__name__}; {remedy}")
    return api_key
