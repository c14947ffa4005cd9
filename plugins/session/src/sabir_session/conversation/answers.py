"""The answer to a question of a conversation, and the answer as it arrives.

    with chat.stream_sync("…") as stream:              async with chat.stream("…") as stream:
        for text in stream.text: ...                       async for text in stream.text: ...
        answer = stream.answer()                           answer = await stream.answer()

`for event in stream` gives the events of the evaluation: texts, replies, calls and their results. Leaving the block
before the end stops everything that runs. The recorded messages stay: `chat.ask()` finishes the question, and
`chat.drop_last()` removes it without paying for an answer. `break` without a `with` block does the same.
"""

from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Generic, Self, TypeAlias

from sabir import Loss, Message, Reply, SettingsInvalid, Usage
from sabir.authoring import AsyncClosing, FinishReason, SyncClosing, installed_hooks, one_line

from sabir_session.conversation.reading import AsyncEvents, AsyncReading, Reading, SyncEvents, SyncReading
from sabir_session.evaluation.outputs import Outputs
from sabir_session.evaluation.people import Event, OutputArrived, RequestStarted, TextArrived
from sabir_session.evaluation.prompts import Output, total


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


Start: TypeAlias = Callable[[Any], Coroutine[Any, Any, Answer[Output]]]
"""Begins to answer for a Reading, going no further than it reads."""


class _Selection(Generic[Output]):
    """What the iterators of a stream give: everything, or only what belongs to the question that was asked by it."""

    def __init__(self, reading: Reading[Any], outputs: Outputs[Output] | None) -> None:
        self._reading = reading
        self._growing = Growing(outputs)

    def event(self, event: Event) -> Event:
        """Every event, those of an unfinished earlier question too."""
        return event

    def text(self, event: Event) -> str | None:
        """The text of an event of the new question."""
        is_own = isinstance(event, TextArrived) and event.question == self._reading.question
        return event.text if is_own and isinstance(event, TextArrived) else None

    def output(self, event: Event) -> Output | None:
        """The output of the new question, if the event changed it."""
        return self._growing(event) if event.question == self._reading.question else None


class SyncAnswerStream(SyncClosing, Generic[Output]):
    """The events of an answer, which is made in the reader's own thread, as far as it reads.

    A stream without a `with` block is left when nothing refers to it any more, or when its conversation is used again
    while nobody iterates over it.
    """

    def __init__(self, start: Start[Output], outputs: Outputs[Output] | None) -> None:
        self._reading: SyncReading[Answer[Output]] = SyncReading(start)
        self._select = _Selection(self._reading, outputs)

    def __iter__(self) -> Iterator[Event]:
        """The events that were not read yet; raises what the question raises.

        Events of an unfinished earlier question come first, with its id as their `question`.
        """
        return SyncEvents(self, self._reading, self._select.event)

    @property
    def question(self) -> str:
        """The id of the first message of the question, in the `question` of its events; "" before it is asked."""
        return self._reading.question

    @property
    def text(self) -> Iterator[str]:
        """The text of the question's replies as it arrives."""
        return SyncEvents(self, self._reading, self._select.text)

    @property
    def outputs(self) -> Iterator[Output]:
        """The output as it grows, from when it has all that its type requires."""
        return SyncEvents(self, self._reading, self._select.output)

    def answer(self) -> Answer[Output]:
        """The answer, after reading the rest; raises SettingsInvalid if the stream was left before its end."""
        for _ in self:
            pass
        return _complete(self._reading.result)

    def close(self) -> None:
        """Stop: close the connection. Recorded messages stay; `drop_last` removes the question without an answer."""
        self._reading.leave()

    def __enter__(self) -> Self:
        """The stream; the conversation is its own until the block ends."""
        self._reading.is_entered = True
        return self

    def __exit__(self, *raised: object) -> None:
        """Close it."""
        self._reading.is_entered = False
        self.close()

    def __del__(self) -> None:
        """Free the conversation."""
        self._reading.leave()


class AnswerStream(AsyncClosing, Generic[Output]):
    """The events of an answer, which is made in a task of its own, as far as its reader reads.

    A stream without an `async with` block is left when nothing refers to it any more, or when its conversation is used
    again while nobody iterates over it.
    """

    def __init__(self, start: Start[Output], outputs: Outputs[Output] | None) -> None:
        self._reading: AsyncReading[Answer[Output]] = AsyncReading(start)
        self._select = _Selection(self._reading, outputs)

    def __aiter__(self) -> AsyncIterator[Event]:
        """The events that were not read yet; raises what the question raises.

        Events of an unfinished earlier question come first, with its id as their `question`.
        """
        return AsyncEvents(self, self._reading, self._select.event)

    @property
    def question(self) -> str:
        """The id of the first message of the question, in the `question` of its events; "" before it is asked."""
        return self._reading.question

    @property
    def text(self) -> AsyncIterator[str]:
        """The text of the question's replies as it arrives."""
        return AsyncEvents(self, self._reading, self._select.text)

    @property
    def outputs(self) -> AsyncIterator[Output]:
        """The output as it grows, from when it has all that its type requires."""
        return AsyncEvents(self, self._reading, self._select.output)

    async def answer(self) -> Answer[Output]:
        """The answer, after reading the rest; raises SettingsInvalid if the stream was left before its end."""
        async for _ in self:
            pass
        task = self._reading.task
        return _complete(None if task is None or self._reading.is_left else task.result())

    async def aclose(self) -> None:
        """Stop: close the connection and cancel running options.

        Recorded messages stay; `drop_last` removes the question without an answer.
        """
        await self._reading.close()

    async def __aenter__(self) -> Self:
        """The stream; the conversation is its own until the block ends."""
        self._reading.is_entered = True
        return self

    async def __aexit__(self, *raised: object) -> None:
        """Close it."""
        self._reading.is_entered = False
        await self.aclose()

    def __del__(self) -> None:
        """Free the conversation."""
        self._reading.leave()


def _complete(answer: Answer[Output] | None) -> Answer[Output]:
    if answer is None:
        remedy = "read it to its end, or ask() to finish the question"
        raise SettingsInvalid(f"the stream was left before its answer; {remedy}")
    return answer
