"""The arguments of a call, their checks, and the Protocol of every object that takes calls.

class Cached:                                   # a wrapper is an Adapter around an Adapter
    async def complete(self, messages: Messages, **how: Unpack[CallArguments]) -> Reply: ...

settings={"seed": 1}           ──▶ SettingsInvalid: … write sabir.Settings(…)
Settings(vendor={"acem": …})   ──▶ SettingsInvalid: … did you mean 'acme'?
api_key=123                    ──▶ SettingsInvalid: … give a string, or a plain function that returns one
speaks_as="runtime"            ──▶ SettingsInvalid: … give speaks_as= another

Which member a fallback asks next; a stream moves on to the next member only before its first event.

    way ── Asked(first member) ──▶ driver ── an error ──▶ way ── Asked(next member) ──▶ driver ──▶ reply
                                                           └── or raises: the error itself, or NoneAnswered

The way is a generator, and each call has its own. A waiting call is made inside it, and it yields the answer; an
asynchronous call is yielded as a coroutine, for the caller to await. Streams use it by one script, and only until
there is an event, because a reader that saw one must not be given another beginning.
"""

import difflib
import logging
from collections.abc import Callable, Coroutine, Generator, Iterable, Sequence
from functools import lru_cache
from typing import Any, Generic, NamedTuple, NoReturn, Protocol, TypeAlias, TypedDict, TypeVar, Unpack

from sabir.base.errors import SabirError, SettingsInvalid, one_line
from sabir.base.failures import RenderingRefused, Strict
from sabir.calling.drive import Performer, Raised
from sabir.calling.exchange import Action, Emit, Next, Outcome, Script
from sabir.calling.stream import ReplyStream, SyncReplyStream, state_of
from sabir.contract.dialect import Rendering
from sabir.contract.provider import ApiKey
from sabir.discovery import default_registry as registry
from sabir.options.option import OptionLike
from sabir.options.signatures import Signature
from sabir.vocabulary.messages import RESERVED, RUNTIME, Message
from sabir.vocabulary.reply import NoneAnswered, Passed, Reply, StreamBroken, StreamEvent
from sabir.vocabulary.settings import Settings, Target

Messages: TypeAlias = str | Message | Sequence[Message]
"""The messages that a call takes: a text of the user, one message, or a conversation."""


class CallArguments(TypedDict, total=False):
    """The optional arguments of a call; wrappers take and pass them on as `**how: Unpack[CallArguments]`.

    `options` are offered to the model: options, typed functions or pydantic models. `settings` are laid over the
    adapter's. `strict` names the kinds of loss that refuse the rendering (True: dropped and downgraded); if it is
    left out or None, the adapter's `strict` counts.
    """

    options: Iterable[OptionLike]
    settings: Settings | None
    strict: Strict | None


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


def checked_settings(settings: Settings | None, provider: str) -> Settings | None:
    """The settings; SettingsInvalid for another type, and for a vendor section with a misspelt provider's name.

    Installed providers are known by name without loading them. A section whose name is unlike all installed
    providers' names passes: the same settings may serve machines with other plugins.
    """
    if settings is None:
        return None
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
    """The key; raises SettingsInvalid for a value that is neither None, a string nor a plain function."""
    remedy = "give a string, or a plain function that returns one"
    if callable(api_key) and Signature.is_asynchronous(api_key):
        raise SettingsInvalid(f"api_key is a coroutine function; {remedy}")
    if api_key is not None and not isinstance(api_key, str) and not callable(api_key):
        raise SettingsInvalid(f"api_key is of type {type(api_key).__name__}; {remedy}")
    return api_key


logger = logging.getLogger("sabir")

MESSAGE_CHARACTERS = 460
"""The characters that the members share in the error of a call that no member answered."""

Got = TypeVar("Got")
Got_co = TypeVar("Got_co", covariant=True)
Result = TypeVar("Result")
Kinds: TypeAlias = tuple[type[SabirError], ...]
"""The errors for which the next member is asked."""


class Asked(NamedTuple, Generic[Got_co]):
    """One step of a way: the answer of the member that was asked, and the members passed over before it."""

    got: Got_co
    passed: tuple[Passed, ...]


Way: TypeAlias = Generator[Asked[Got], None, None]


def way_along(members: Sequence[Adapter], kinds: Kinds, opened: Callable[[Adapter], Got]) -> Way[Got]:
    """Ask the members in order: yield a member's answer, and ask the next if it raises or an error is thrown in.

    An error of another kind is raised as it is, with a note that names the members passed over before it.
    """
    passed: list[Passed] = []
    errors: list[SabirError] = []
    for member, following in zip(members, (*members[1:], None), strict=True):
        try:
            yield Asked(opened(member), tuple(passed))
        except kinds as error:
            errors.append(error)
            passed += _passed(member, error)
            if following is not None:
                name = type(error).__name__
                logger.info("%s passed over: %s: %s; going on with %s", member.target, name, error, following.target)
        except Exception as error:
            if passed:
                error.add_note(f"passed over before: {_said(passed)}")
            raise
    _raise_none(passed, errors)


def _passed(member: Adapter, error: SabirError) -> Sequence[Passed]:
    if isinstance(error, NoneAnswered):
        return error.passed
    message = str(error).encode(errors="replace").decode()
    losses = getattr(error, "losses", ())
    return (Passed(target=member.target, error=type(error).__name__, message=message, losses=losses),)


def _said(passed: Sequence[Passed]) -> str:
    """One line that names every member passed over, and its error."""
    room = max(MESSAGE_CHARACTERS // len(passed) - 2, 40)
    return "; ".join(one_line(f"{each.target}: {each.error}: {each.message}", room) for each in passed)


def _raise_none(passed: Sequence[Passed], errors: Sequence[SabirError]) -> NoReturn:
    if all(isinstance(error, RenderingRefused) for error in errors):
        losses = [loss for each in passed for loss in each.losses]
        raise RenderingRefused(f"no member takes this: {_said(passed)}", losses) from errors[-1]
    raise NoneAnswered(f"no member answered: {_said(passed)}", passed=passed, errors=errors) from errors[-1]


async def awaited(way: Way[Coroutine[Any, Any, Result]]) -> Asked[Result]:
    """The answer of the first member that gives one, in an event loop; raises the errors of the way."""
    asked = next(way)
    while True:
        try:
            return Asked(await asked.got, asked.passed)
        except Exception as error:
            asked = way.throw(error)


def told(reply: Reply, passed: tuple[Passed, ...]) -> Reply:
    """The reply, with the members that were passed over before the one that gave it."""
    return reply.model_copy(update={"passed": (*passed, *reply.passed)}) if passed else reply


class Relay:
    """A stream that hands on the events of another: `ReplyStream(relay, relay.start)`, or `SyncReplyStream` alike.

    An adapter's wrapper that reads or changes the events overrides `start`, `told` or `script`.
    """

    def __init__(self, stream: ReplyStream | SyncReplyStream) -> None:
        self.stream = stream
        """The stream from which the events come; `start` may replace it."""

    def told(self, reply: Reply) -> Reply:
        """The reply to hand on for a reply of the stream, whole or partial."""
        return reply

    @property
    def partial(self) -> Reply:
        """The reply as far as it has arrived."""
        return self.told(self.stream.partial)

    def mute(self) -> None:
        """Give no more events, because the caller wants the reply alone."""
        state_of(self.stream).mute()

    def left(self) -> StreamBroken:
        """The error for a caller that reads on after leaving the stream."""
        return self._telling(state_of(self.stream).left())

    def text_of(self, event: StreamEvent) -> str:
        """The characters that an event adds to the reply's text; "" where it adds none."""
        return state_of(self.stream).text_of(event)

    async def start(self) -> tuple[Script[Reply], Performer]:
        """The script to drive, and this relay as its wire."""
        return self.script(), self

    def script(self) -> Script[Reply]:
        """The script that hands on the events."""
        try:
            while event := (yield from self.next_event()):
                yield Emit(event)
        except StreamBroken as error:
            raise self._telling(error)  # noqa: B904 — it is the same error
        return self.partial

    def next_event(self) -> Script[StreamEvent | None]:
        """The stream's next event, None at its end."""
        event = yield Next()
        assert event is None or isinstance(event, StreamEvent)
        return event

    async def perform(self, action: Action) -> Outcome | Raised:
        """The next event, or None at the end; a relay's script asks for nothing else."""
        try:
            return await anext(self.stream, None) if isinstance(self.stream, ReplyStream) else next(self.stream, None)
        except Exception as error:
            return Raised(error)

    async def close(self) -> None:
        """Close the stream."""
        if isinstance(self.stream, ReplyStream):
            await self.stream.aclose()
        else:
            self.stream.close()

    def _telling(self, error: StreamBroken) -> StreamBroken:
        error.partial = self.told(error.partial)
        return error


class FallbackRelay(Relay):
    """Hands on the events of the first member that sends one."""

    def __init__(self, way: Way[ReplyStream | SyncReplyStream]) -> None:
        self._way = way
        self._passed: tuple[Passed, ...] = ()
        super().__init__(self._member(next(way)))
        self._has_begun = False

    def told(self, reply: Reply) -> Reply:
        """The reply, with the members that were passed over."""
        return told(reply, self._passed)

    def next_event(self) -> Script[StreamEvent | None]:
        """The next event; if a member fails before its first event, the next member's."""
        while True:
            try:
                event = yield from super().next_event()
                self._has_begun = True
                return event
            except Exception as error:
                if self._has_begun:
                    raise
                self.stream = self._member(self._way.throw(error))

    def _member(self, asked: Asked[ReplyStream | SyncReplyStream]) -> ReplyStream | SyncReplyStream:
        self._passed = asked.passed
        return asked.got
