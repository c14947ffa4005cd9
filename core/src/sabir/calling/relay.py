"""Whom to ask next, where several adapters stand for one; streams go on with the next before their first event.

    way ── Asked(first member) ──▶ driver ── an error ──▶ way ── Asked(next member) ──▶ driver ──▶ reply
                                                           └── or raises: the error itself, or that nobody answered

The way is a generator, and each call has its own. A waiting call is made inside it, and it yields the answer; an
asynchronous call is yielded as a coroutine, for the caller to await. Streams go along it by one script, and only until
there is an event: whoever saw one could not be given another beginning.
"""

import logging
from collections.abc import Callable, Coroutine, Generator, Sequence
from typing import Any, Generic, NamedTuple, NoReturn, TypeAlias, TypeVar

from sabir.base.errors import SabirError, one_line
from sabir.base.losses import RenderingRefused
from sabir.calling.calls import Adapter
from sabir.calling.drive import Performer, Raised, SyncPerformer
from sabir.calling.exchange import Action, Emit, Next, Outcome, Script
from sabir.calling.stream import ReplyStream, SyncReplyStream, state_of
from sabir.vocabulary.reply import NoneAnswered, Passed, Reply, StreamBroken, StreamEvent

logger = logging.getLogger("sabir")

MESSAGE_CHARACTERS = 460
"""How much of the error of a call that nobody answered is shared among the members."""

Got = TypeVar("Got")
Result = TypeVar("Result")
SomeStream = TypeVar("SomeStream", bound=ReplyStream | SyncReplyStream)
Kinds: TypeAlias = tuple[type[SabirError], ...]
"""The errors for which the next member is asked."""


class Asked(NamedTuple, Generic[Got]):
    """Where a call stands on its way: what came of asking, and who was passed over before."""

    got: Got
    passed: tuple[Passed, ...]


Way: TypeAlias = Generator[Asked[Got], None, None]


def way_along(members: Sequence[Adapter], kinds: Kinds, opened: Callable[[Adapter], Got]) -> Way[Got]:
    """Asks the members in order: yields what one gives, and asks the next where it raises or an error is thrown in.

    An error of another kind is raised as it is, with a note of what was passed over before it.
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
    """One line that names every member."""
    room = max(MESSAGE_CHARACTERS // len(passed) - 2, 40)
    return "; ".join(one_line(f"{each.target}: {each.error}: {each.message}", room) for each in passed)


def _raise_none(passed: Sequence[Passed], errors: Sequence[SabirError]) -> NoReturn:
    if all(isinstance(error, RenderingRefused) for error in errors):
        losses = [loss for each in passed for loss in each.losses]
        raise RenderingRefused(f"no member takes this: {_said(passed)}", losses) from errors[-1]
    raise NoneAnswered(f"no member answered: {_said(passed)}", passed=passed, errors=errors) from errors[-1]


async def awaited(way: Way[Coroutine[Any, Any, Result]]) -> Asked[Result]:
    """The answer of the first who gives one, in an event loop; raises what the way raises."""
    asked = next(way)
    while True:
        try:
            return Asked(await asked.got, asked.passed)
        except Exception as error:
            asked = way.throw(error)


def told(reply: Reply, passed: tuple[Passed, ...]) -> Reply:
    """The reply, telling who was passed over before whoever gave it."""
    return reply.model_copy(update={"passed": (*passed, *reply.passed)}) if passed else reply


class _Relay(Generic[SomeStream]):
    """What has come of a fallback's stream: that which has come of the stream of the member asked."""

    def __init__(self, way: Way[SomeStream]) -> None:
        self._way = way
        self._asked = next(way)

    @property
    def stream(self) -> SomeStream:
        """The stream of the member asked."""
        return self._asked.got

    @property
    def partial(self) -> Reply:
        """What has arrived so far, of whom, and who was passed over."""
        return told(self.stream.partial, self._asked.passed)

    def mute(self) -> None:
        """Give no more events: whoever reads wants the reply alone."""
        state_of(self.stream).mute()

    def left(self) -> StreamBroken:
        """The error of one who asks for more after leaving the stream."""
        return self._telling(state_of(self.stream).left())

    def text_of(self, event: StreamEvent) -> str:
        """The characters by which an event lengthens the reply's text; "" where it does not."""
        return state_of(self.stream).text_of(event)

    def script(self) -> Script[Reply]:
        """Hands on the events of the first member that has one."""
        try:
            event = yield from self._first()
            while event is not None:
                yield Emit(event)
                event = _event((yield Next()))
        except StreamBroken as error:
            raise self._telling(error)  # noqa: B904 — it is the same error
        return self.partial

    def _first(self) -> Script[StreamEvent | None]:
        while True:
            try:
                return _event((yield Next()))
            except Exception as error:
                self._asked = self._way.throw(error)

    def _telling(self, error: StreamBroken) -> StreamBroken:
        error.partial = told(error.partial, self._asked.passed)
        return error


def _event(outcome: Outcome) -> StreamEvent | None:
    assert outcome is None or isinstance(outcome, StreamEvent)
    return outcome


class SyncRelay(_Relay[SyncReplyStream]):
    """What has come of a fallback's stream, and the wire that waits for its next event."""

    def start(self) -> tuple[Script[Reply], SyncPerformer]:
        """The script to drive, and this relay as its wire."""
        return self.script(), self

    def perform(self, action: Action) -> Outcome | Raised:
        """The next event, or None at the end; a relay's script asks for nothing else."""
        try:
            return next(self.stream, None)
        except Exception as error:
            return Raised(error)

    def close(self) -> None:
        """Close the stream of the member asked."""
        self.stream.close()


class Relay(_Relay[ReplyStream]):
    """As SyncRelay, in an event loop."""

    async def start(self) -> tuple[Script[Reply], Performer]:
        """The script to drive, and this relay as its wire."""
        return self.script(), self

    async def perform(self, action: Action) -> Outcome | Raised:
        """The next event, or None at the end; a relay's script asks for nothing else."""
        try:
            return await anext(self.stream, None)
        except Exception as error:
            return Raised(error)

    async def close(self) -> None:
        """Close the stream of the member asked."""
        await self.stream.aclose()
