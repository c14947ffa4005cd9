"""The answer to a question of a conversation, and the answer as it arrives.

    with chat.stream_sync("…") as stream:              async with chat.stream("…") as stream:
        for text in stream.text: ...                       async for text in stream.text: ...
        answer = stream.answer()                           answer = await stream.answer()

`for event in stream` gives the events of the evaluation: texts, replies, calls and their results. Leaving the block
before the end stops everything that runs; what was recorded stays, and the conversation says that it is unfinished.
"""

from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine, Generator, Iterator
from dataclasses import dataclass
from decimal import Decimal
from types import coroutine
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeAlias

from sabir import Loss, Message, Reply, SettingsInvalid, Usage
from sabir.authoring import AsyncClosing, FinishReason, SyncClosing, installed_hooks, one_line

from sabir_session.evaluation.outputs import Outputs
from sabir_session.evaluation.people import Event, OutputArrived, Reader, RequestStarted, TextArrived
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
    def finish_reason(self) -> FinishReason:
        """Why the last reply ended, for example "length" if it was cut off at a limit."""
        return self.reply.finish_reason

    @property
    def refusal(self) -> str | None:
        """The model's refusal in the last reply, in its own words, or None."""
        return self.reply.refusal

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
        """Show the text, a refusal, a finish reason other than "stop", and the figures."""
        output = "" if self.output is None else f", output={one_line(repr(self.output), 80)}"
        refusal = "" if self.refusal is None else f", refusal={one_line(self.refusal, 80)!r}"
        reason = "" if self.finish_reason == "stop" else f", finish_reason={self.finish_reason!r}"
        figures = f"usage={str(self.usage)!r}, cost={self.cost}, losses={len(self.losses)}"
        return f"Answer(text={one_line(self.text, 80)!r}{output}{refusal}{reason}, {figures})"


def cost_of(replies: tuple[Reply, ...]) -> Decimal | None:
    """The sum of what replies cost, in US dollars; None if one of them has no known cost."""
    costs = [installed_hooks().cost(reply) for reply in replies]
    return None if None in costs else sum((cost for cost in costs if cost is not None), Decimal(0))


class Growing(Generic[Output]):
    """Reads an output as far as it has arrived."""

    def __init__(self, outputs: Outputs[Output] | None) -> None:
        self._outputs = outputs
        self._text = self._call = ""
        self._part: Output | None = None

    def __call__(self, event: Event) -> Output | None:
        """The output, if this event changed it; None also while what has arrived does not fit yet."""
        if isinstance(event, RequestStarted):
            self._text = self._call = ""
        if self._outputs is None or not isinstance(event, TextArrived | OutputArrived):
            return None
        if isinstance(event, OutputArrived):
            self._call += event.text
        else:
            self._text += event.text
        earlier, self._part = self._part, self._outputs.part(self._call or self._text)
        return None if self._part == earlier else self._part


Start: TypeAlias = Callable[[Reader], Coroutine[Any, Any, Answer[Output]]]
"""Begins to answer, going no further than the reader reads."""


class SyncAnswerStream(SyncClosing, Generic[Output]):
    """The events of an answer, which is made in the reader's own thread, as far as it reads."""

    def __init__(self, start: Start[Output], outputs: Outputs[Output] | None) -> None:
        self._start = start
        self._growing = Growing(outputs)
        self._events: deque[Event] = deque()
        self._steps: Coroutine[Any, Any, Answer[Output]] | None = None
        self._answer: Answer[Output] | None = None
        self._error: BaseException | None = None
        self._is_over = False

    def __iter__(self) -> Iterator[Event]:
        """The events that were not read yet; raises what the question raises."""
        while True:
            while self._events:
                yield self._events.popleft()
            if self._error is not None:
                raise self._error
            if self._is_over:
                return
            try:
                self._steps = self._steps or self._start(_Pulling(self._events))
                self._steps.send(None)
            except StopIteration as end:
                self._answer, self._is_over = end.value, True
            except BaseException as error:
                self._error = error
                raise

    @property
    def text(self) -> Iterator[str]:
        """The text of all replies as it arrives."""
        return (event.text for event in self if isinstance(event, TextArrived))

    @property
    def outputs(self) -> Iterator[Output]:
        """The output as it grows, from when it has all that its type requires."""
        return (part for part in map(self._growing, self) if part is not None)

    def answer(self) -> Answer[Output]:
        """The answer, after reading the rest; raises SettingsInvalid if the stream was left before its end."""
        for _ in self:
            pass
        return _given(self._answer)

    def close(self) -> None:
        """Stop; the connection is closed, and what was recorded stays."""
        if self._steps is not None:
            self._steps.close()
        self._is_over = True


class _Pulling(NamedTuple):
    """Suspends after each event: its reader sends the coroutine on."""

    events: deque[Event]

    def tell(self, event: Event) -> None:
        self.events.append(event)

    @coroutine
    def taken(self) -> Generator[None, None, None]:
        yield


class AnswerStream(AsyncClosing, Generic[Output]):
    """The events of an answer, which is made in a task of its own, as far as its reader reads."""

    def __init__(self, start: Start[Output], outputs: Outputs[Output] | None) -> None:
        self._start = start
        self._growing = Growing(outputs)
        self._paced: _Paced | None = None
        self._task: asyncio.Task[Answer[Output]] | None = None
        self._is_left = False

    async def __aiter__(self) -> AsyncIterator[Event]:
        """The events that were not read yet; raises what the question raises."""
        import asyncio

        if self._is_left:
            return
        if self._paced is None:
            self._paced = _Paced()
            self._task = asyncio.ensure_future(self._start(self._paced))
            self._task.add_done_callback(self._paced.tell)
        while not self._is_left:
            event = await self._paced.next()
            if isinstance(event, asyncio.Future):
                self._paced.tell(event)  # for the next reader
                event.result()
                return
            yield event

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
            if (part := self._growing(event)) is not None:
                yield part

    async def answer(self) -> Answer[Output]:
        """The answer, after reading the rest; raises SettingsInvalid if the stream was left before its end."""
        async for _ in self:
            pass
        return _given(None if self._task is None or self._is_left else self._task.result())

    async def aclose(self) -> None:
        """Stop; the connection is closed, running options are cancelled, and what was recorded stays."""
        import asyncio

        self._is_left = self._is_left or self._task is None or not self._task.done()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)


class _Paced:
    """A queue whose writer waits until all is read; the finished task is its last item."""

    def __init__(self) -> None:
        import asyncio

        self._items: deque[Any] = deque()  # events, then the task
        self._some, self._none = asyncio.Event(), asyncio.Event()

    def tell(self, item: object) -> None:
        self._items.append(item)
        self._none.clear()
        self._some.set()

    async def taken(self) -> None:
        await self._none.wait()

    async def next(self) -> Any:  # an event, or the task
        while not self._items:
            self._none.set()
            self._some.clear()
            await self._some.wait()
        return self._items.popleft()


def _given(answer: Answer[Output] | None) -> Answer[Output]:
    if answer is None:
        raise SettingsInvalid(
            "the stream was left before its answer; read it to its end, or ask() to finish the question"
        )
    return answer
