"""The answer to a question of a conversation, and the answer as it arrives.

    with chat.stream_sync("…") as stream:              async with chat.stream("…") as stream:
        for text in stream.text: ...                       async for text in stream.text: ...
        answer = stream.answer()                           answer = await stream.answer()

`for event in stream` gives the events of the evaluation: texts, replies, calls and their results. Leaving the block
before the end stops everything that runs; what was recorded stays, and the conversation says that it is unfinished.
"""

from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Generic, TypeAlias

from sabir import Loss, Message, Reply, SettingsInvalid, Usage
from sabir.authoring import AsyncClosing, SyncClosing, installed_hooks, one_line

from sabir_session.evaluation.outputs import Outputs
from sabir_session.evaluation.people import Event, OutputArrived, RequestStarted, TextArrived
from sabir_session.evaluation.prompts import Output, total

if TYPE_CHECKING:
    import asyncio


@dataclass(frozen=True, repr=False)
class Answer(Generic[Output]):
    """What came of one question.

    `messages` are those that it added: the question, calls, results and the answer. `replies` are the model's, the
    answer last. `output` is the answer as the type that was asked for, None without one.
    """

    replies: tuple[Reply, ...]
    messages: tuple[Message, ...]
    output: Output

    @property
    def reply(self) -> Reply:
        """The last reply."""
        return self.replies[-1]

    @property
    def text(self) -> str:
        """The text of the last reply."""
        return self.reply.text

    @property
    def usage(self) -> Usage:
        """The tokens of all replies; a figure that a provider did not report is None."""
        return total(reply.usage for reply in self.replies)

    @property
    def cost(self) -> Decimal | None:
        """The cost of all replies in US dollars; None where it is not known, as without sabir-prices."""
        return cost_of(self.replies)

    @property
    def losses(self) -> tuple[Loss, ...]:
        """What the requests could not carry, each loss once."""
        return tuple(dict.fromkeys(loss for reply in self.replies for loss in reply.losses))

    def __repr__(self) -> str:
        """The text, and the figures beside it."""
        output = "" if self.output is None else f", output={one_line(repr(self.output), 80)}"
        figures = f"usage={str(self.usage)!r}, cost={self.cost}, losses={len(self.losses)}"
        return f"Answer(text={one_line(self.text, 80)!r}{output}, {figures})"


def cost_of(replies: tuple[Reply, ...]) -> Decimal | None:
    """The sum of what replies cost, in US dollars; None if one of them has no known cost."""
    costs = [installed_hooks().cost(reply) for reply in replies]
    return None if None in costs else sum((cost for cost in costs if cost is not None), Decimal(0))


@dataclass
class Arrived(Generic[Output]):
    """The events that were told and not read yet; the JSON of an output as far as it came."""

    outputs: Outputs[Output] | None
    events: deque[Event] = field(default_factory=deque)
    _json: str = ""

    def part(self, event: Event) -> Output | None:
        """The output as far as it came with this event; None if the event adds nothing, or it does not fit yet."""
        if isinstance(event, RequestStarted):
            self._json = ""
        if self.outputs is None or not isinstance(event, TextArrived | OutputArrived):
            return None
        self._json += event.text
        return self.outputs.part(self._json)


Start: TypeAlias = Callable[[Callable[[Event], None]], Coroutine[Any, Any, Answer[Output]]]
"""Begins to answer, and tells the events to the function that it is given."""


class SyncAnswerStream(SyncClosing, Generic[Output]):
    """The events of an answer, pulled by their reader, in its own thread."""

    def __init__(self, start: Start[Output], arrived: Arrived[Output]) -> None:
        self._start = start
        self._arrived = arrived
        self._steps: Coroutine[Any, Any, Answer[Output]] | None = None
        self._answer: Answer[Output] | None = None
        self._is_over = False

    def __iter__(self) -> Iterator[Event]:
        """The events that were not read yet; raises what the question raises."""
        while True:
            while self._arrived.events:
                yield self._arrived.events.popleft()
            if self._is_over:
                return
            if self._steps is None:
                self._steps = self._start(self._arrived.events.append)
            try:
                self._steps.send(None)
            except StopIteration as end:
                self._answer, self._is_over = end.value, True
            except BaseException:
                self._is_over = True
                raise

    @property
    def text(self) -> Iterator[str]:
        """The text of all replies as it arrives."""
        return (event.text for event in self if isinstance(event, TextArrived))

    @property
    def outputs(self) -> Iterator[Output]:
        """The output as it grows, from when it has all that its type requires."""
        return (part for part in map(self._arrived.part, self) if part is not None)

    def answer(self) -> Answer[Output]:
        """The answer, after reading the rest; raises SettingsInvalid if the stream was left before its end."""
        for _ in self:
            pass
        return _given(self._answer)

    def close(self) -> None:
        """Stop; the connection is closed, and what was recorded stays."""
        self._is_over = True
        if self._steps is not None:
            self._steps.close()


class AnswerStream(AsyncClosing, Generic[Output]):
    """The events of an answer, which runs in a task of its own from the first event on."""

    def __init__(self, start: Start[Output], arrived: Arrived[Output]) -> None:
        self._start = start
        self._arrived = arrived
        self._task: asyncio.Task[Answer[Output]] | None = None
        self._more: asyncio.Event | None = None
        self._is_left = False

    async def __aiter__(self) -> AsyncIterator[Event]:
        """The events that were not read yet; raises what the question raises."""
        while True:
            while self._arrived.events:
                yield self._arrived.events.popleft()
            if self._is_left:
                return
            task, more = self._running()
            if task.done():
                task.result()
                return
            more.clear()
            await more.wait()

    def _running(self) -> "tuple[asyncio.Task[Answer[Output]], asyncio.Event]":
        import asyncio

        if self._task is None or self._more is None:
            more = self._more = asyncio.Event()

            def tell(event: Event) -> None:
                self._arrived.events.append(event)
                more.set()

            self._task = asyncio.ensure_future(self._start(tell))
            self._task.add_done_callback(lambda _: more.set())
        return self._task, self._more

    @property
    async def text(self) -> AsyncIterator[str]:
        """The text of all replies as it arrives."""
        async for event in self:
            if isinstance(event, TextArrived):
                yield event.text

    @property
    async def outputs(self) -> AsyncIterator[Output]:
        """The output as it grows, from when it has all that its type requires."""
        async for event in self:
            if (part := self._arrived.part(event)) is not None:
                yield part

    async def answer(self) -> Answer[Output]:
        """The answer, after reading the rest; raises SettingsInvalid if the stream was left before its end."""
        async for _ in self:
            pass
        return _given(None if self._task is None or self._is_left else self._task.result())

    async def aclose(self) -> None:
        """Stop; the connection is closed, running options are cancelled, and what was recorded stays."""
        import asyncio

        if self._task is None or not self._task.done():
            self._is_left = True
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)


def _given(answer: Answer[Output] | None) -> Answer[Output]:
    if answer is None:
        raise SettingsInvalid(
            "the stream was left before its answer; read it to its end, or ask() to finish the question"
        )
    return answer
