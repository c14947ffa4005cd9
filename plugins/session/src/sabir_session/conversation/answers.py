"""The answer to a question of a conversation, and the answer as it arrives.

    with chat.stream_sync("…") as stream:              async with chat.stream("…") as stream:
        for text in stream.text: ...                       async for text in stream.text: ...
        answer = stream.answer()                           answer = await stream.answer()

`for event in stream` yields the events of the evaluation: texts, replies, calls and their results. Leaving the block
before the end cancels the request and the running coroutine options; options in threads run on, and their results are
discarded. The recorded messages stay: `chat.ask()` finishes a recorded question, and `chat.drop_last()` removes it.
`break` without a `with` block does the same, when nothing refers to the stream or the conversation is used again.
"""

from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Generic, Self, TypeAlias

from sabir import Loss, Message, Reply, SettingsInvalid, Usage
from sabir.authoring import AsyncClosing, FinishReason, SyncClosing, installed_hooks, one_line

from sabir_session.conversation.event_buffers import (
    AsyncEventBuffer,
    AsyncEvents,
    EventBuffer,
    SyncEventBuffer,
    SyncEvents,
)
from sabir_session.evaluation.evaluations import Evaluation
from sabir_session.evaluation.events import Event, TextArrived
from sabir_session.evaluation.outputs import Outputs
from sabir_session.evaluation.partials import OutputVersions, Partial
from sabir_session.evaluation.prompt_caches import PromptCacheReport
from sabir_session.evaluation.prompts import Output, sum_usages


@dataclass(frozen=True, repr=False)
class Answer(Generic[Output]):
    """The answer to one question of a Conversation. `Conversation.ask` returns it.

    `replies` are all replies to the question, with the answer last. `messages` are the messages that the question added
    to the conversation: changed instructions, the question, all replies, results, and requests to correct an answer.
    `output` is the answer as a value of the output type, or the return value of the output function, as the validator
    returned it. With `output=str` it is the text. None without an output type and function. `prompt_cache` compares the
    tokens that the provider read from its prompt cache with those that the requests share. None if no request was sent
    for the answer, and for wrapped adapters.

    >>> import sabir_session
    >>> answer = sabir_session.Conversation("echo:m").ask_sync("Hello!")
    >>> answer.text, answer.finish_reason, len(answer.messages)
    ('Hello!', 'stop', 2)
    """

    replies: tuple[Reply, ...]
    messages: tuple[Message, ...]
    output: Output
    prompt_cache: PromptCacheReport | None = None

    @property
    def reply(self) -> Reply:
        """The last reply, which is the answer."""
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
        """The sum of the tokens of all replies. A number is None if a provider did not report it."""
        return sum_usages(reply.usage for reply in self.replies)

    @property
    def cost(self) -> Decimal | None:
        """The cost of all replies in US dollars; None if unknown, for example without sabir-prices."""
        return cost_of(self.replies)

    @property
    def losses(self) -> tuple[Loss, ...]:
        """What the model's APIs could not represent in the requests and replies. Equal losses are listed once.

        Losses are not recorded. Replies that are built from records, as after a reopening or an error, have no losses.
        """
        return tuple(dict.fromkeys(loss for reply in self.replies for loss in reply.losses))

    def __repr__(self) -> str:
        """Return the text, usage, cost and number of losses, and the output, a refusal or an unusual finish reason."""
        output = "" if self.output is None else f", output={one_line(repr(self.output), 80)}"
        refusal = "" if self.refusal is None else f", refusal={one_line(self.refusal, 80)!r}"
        reason = "" if self.finish_reason == "stop" else f", finish_reason={self.finish_reason!r}"
        figures = f"usage={str(self.usage)!r}, cost={self.cost}, losses={len(self.losses)}"
        return f"Answer(text={one_line(self.text, 80)!r}{output}{refusal}{reason}, {figures})"


def cost_of(replies: tuple[Reply, ...]) -> Decimal | None:
    """Return the sum of the costs of replies, in US dollars; None if the cost of a reply is not known."""
    costs = [installed_hooks().cost(reply) for reply in replies]
    return None if None in costs else sum((cost for cost in costs if cost is not None), Decimal(0))


class Totals:
    """The sums of the tokens and costs of the replies of one evaluation, updated for new replies."""

    def __init__(self) -> None:
        self._evaluation: Evaluation | None = None
        self._replies: list[Reply] = []
        self._reset()

    def _reset(self) -> None:
        self._usage, self._usage_count = sum_usages(()), 0
        self._cost, self._cost_count = Decimal(0), 0

    def up_to(self, evaluation: Evaluation | None) -> "Totals":
        """Set the evaluation whose replies are summed, and return this object. None means no replies.

        The sums begin at zero if it is another evaluation than before.
        """
        if evaluation is not self._evaluation:
            self._evaluation = evaluation
            self._replies = [] if evaluation is None else evaluation.replies
            self._reset()
        return self

    @property
    def usage(self) -> Usage:
        """The sum of the tokens of all replies. A number is None if a provider did not report it."""
        new = self._replies[self._usage_count :]
        if new:
            self._usage = sum_usages([self._usage, *(reply.usage for reply in new)])
            self._usage_count += len(new)
        return self._usage

    @property
    def cost(self) -> Decimal | None:
        """The cost of all replies in US dollars; None if the cost of a reply is not known."""
        for reply in self._replies[self._cost_count :]:
            cost = installed_hooks().cost(reply)
            if cost is None:
                return None
            self._cost, self._cost_count = self._cost + cost, self._cost_count + 1
        return self._cost


StartAnswer: TypeAlias = Callable[[Any], Coroutine[Any, Any, Answer[Output]]]
"""Starts to answer a question for an EventBuffer. The coroutine pauses until its events are read."""


class _EventSelection(Generic[Output]):
    """Selects what the iterators of a stream yield: all events, or texts and outputs of the stream's own question."""

    def __init__(self, buffer: EventBuffer[Any], outputs: Outputs[Output] | None) -> None:
        self._buffer = buffer
        self._versions: OutputVersions[Output] = OutputVersions(None) if outputs is None else outputs.versions()

    def event(self, event: Event) -> Event:
        """Return the event. Events of an unfinished earlier question are included."""
        return event

    def text(self, event: Event) -> str | None:
        """Return the text of an event of the new question; None for other events."""
        is_own = isinstance(event, TextArrived) and event.question == self._buffer.question
        return event.text if is_own and isinstance(event, TextArrived) else None

    def output(self, event: Event) -> Partial[Output] | None:
        """Return the version of the new question's output if the event changed it; else None."""
        return self._versions(event) if event.question == self._buffer.question else None


class SyncAnswerStream(SyncClosing, Generic[Output]):
    """An answer as a stream of events, read with `for`. `Conversation.stream_sync` returns it.

    The question is answered in the reader's thread, and only while the stream is read; if the budget limits the
    seconds, options run in threads of their own. Without a `with` block, the stream ends when nothing refers to the
    stream. If nothing iterates over the stream after reading has begun, it also ends at the next question, `drop_last`,
    `replacing_last`, `fork` or `close` of the conversation.

    >>> import sabir_session
    >>> with sabir_session.Conversation("echo:m").stream_sync("Hello there!") as stream:
    ...     for text in stream.text:
    ...         print(text)
    Hello
    there!
    >>> stream.answer().text
    'Hello there!'
    """

    def __init__(self, start: StartAnswer[Output], outputs: Outputs[Output] | None) -> None:
        self._buffer: SyncEventBuffer[Answer[Output]] = SyncEventBuffer(start)
        self._select = _EventSelection(self._buffer, outputs)

    def __iter__(self) -> Iterator[Event]:
        """Iterate over the events that were not read yet. Raises the errors of `Conversation.ask` while iterating.

        Reading the first event starts to answer the question. Events of an unfinished earlier question come first, with
        another id as their `question`. Replies that were recorded before have no events.
        """
        return SyncEvents(self, self._buffer, self._select.event)

    @property
    def question(self) -> str:
        """The id of the question's first message, the `question` of its events. "" until the question is recorded."""
        return self._buffer.question

    @property
    def text(self) -> Iterator[str]:
        """An iterator over the pieces of text of this question's replies. Iterating discards all other events.

        Yields nothing for replies that were recorded before.
        """
        return SyncEvents(self, self._buffer, self._select.text)

    @property
    def outputs(self) -> Iterator[Partial[Output]]:
        """An iterator over the versions of the output while it arrives, from its first field on.

        A value that does not fit its type is left out of the versions. Errors are raised at the end of the iteration,
        after the last retry: OutputInvalid, OutputTruncated and OutputRefused, as in `Conversation.ask`. A corrected
        answer begins again, as does a text after option calls. The validator is called for the complete output only,
        and its corrections are in `answer()`. Iterating discards the events. Yields nothing for an output function,
        without an output type, and for replies that were recorded before.
        """
        return SyncEvents(self, self._buffer, self._select.output)

    def answer(self) -> Answer[Output]:
        """Read the stream to its end and return the answer. Raises the errors of `Conversation.ask`.

        Raises SettingsInvalid if the stream was closed before the answer was complete.
        """
        for _ in self:
            pass
        return _require_answer(self._buffer.result)

    def close(self) -> None:
        """Stop answering and close the connection. A complete answer stays available from `answer`.

        Recorded messages stay. If the question was recorded, `Conversation.drop_last` removes the question.
        """
        self._buffer.stop()

    def __enter__(self) -> Self:
        """Return the stream.

        After its first event is read, other questions raise ConversationBusy until the answer is complete, an error
        ends the stream, or the block ends.
        """
        self._buffer.is_entered = True
        return self

    def __exit__(self, *raised: object) -> None:
        """Close the stream."""
        self._buffer.is_entered = False
        self.close()

    def __del__(self) -> None:
        """Stop answering, so that the conversation can be used."""
        self._buffer.stop()


class AnswerStream(AsyncClosing, Generic[Output]):
    """An answer as a stream of events, read with `async for`. `Conversation.stream` returns it.

    A task answers the question and pauses while its events are not read, but options that have begun run on. Without an
    `async with` block, the stream ends when nothing refers to the stream. If nothing iterates over the stream after
    reading has begun, it also ends at the next question, `drop_last`, `replacing_last`, `fork` or `close` of the
    conversation.

    >>> import asyncio, sabir_session
    >>> async def ask(chat: sabir_session.Conversation) -> sabir_session.Answer:
    ...     async with chat.stream("Hello there!") as stream:
    ...         async for text in stream.text:
    ...             print(text)
    ...         return await stream.answer()
    >>> asyncio.run(ask(sabir_session.Conversation("echo:m"))).text
    Hello
    there!
    'Hello there!'
    """

    def __init__(self, start: StartAnswer[Output], outputs: Outputs[Output] | None) -> None:
        self._buffer: AsyncEventBuffer[Answer[Output]] = AsyncEventBuffer(start)
        self._select = _EventSelection(self._buffer, outputs)

    def __aiter__(self) -> AsyncIterator[Event]:
        """Iterate over the events that were not read yet. Raises the errors of `Conversation.ask` while iterating.

        Reading the first event starts to answer the question. Events of an unfinished earlier question come first, with
        another id as their `question`. Replies that were recorded before have no events.
        """
        return AsyncEvents(self, self._buffer, self._select.event)

    @property
    def question(self) -> str:
        """The id of the question's first message, the `question` of its events. "" until the question is recorded."""
        return self._buffer.question

    @property
    def text(self) -> AsyncIterator[str]:
        """An iterator over the pieces of text of this question's replies. Iterating discards all other events.

        Yields nothing for replies that were recorded before.
        """
        return AsyncEvents(self, self._buffer, self._select.text)

    @property
    def outputs(self) -> AsyncIterator[Partial[Output]]:
        """An iterator over the versions of the output while it arrives, from its first field on.

        A value that does not fit its type is left out of the versions. Errors are raised at the end of the iteration,
        after the last retry: OutputInvalid, OutputTruncated and OutputRefused, as in `Conversation.ask`. A corrected
        answer begins again, as does a text after option calls. The validator is called for the complete output only,
        and its corrections are in `answer()`. Iterating discards the events. Yields nothing for an output function,
        without an output type, and for replies that were recorded before.
        """
        return AsyncEvents(self, self._buffer, self._select.output)

    async def answer(self) -> Answer[Output]:
        """Read the stream to its end and return the answer. Raises the errors of `Conversation.ask`.

        Raises SettingsInvalid if the stream was closed before the answer was complete.
        """
        async for _ in self:
            pass
        task = self._buffer.task
        return _require_answer(None if task is None or self._buffer.is_stopped else task.result())

    async def aclose(self) -> None:
        """Stop answering: close the connection, cancel running coroutine options and wait for them to end.

        Options in threads run on, and their results are discarded. Recorded messages stay. If the question was
        recorded, `Conversation.drop_last` removes the question.
        """
        await self._buffer.close()

    async def __aenter__(self) -> Self:
        """Return the stream.

        After its first event is read, other questions raise ConversationBusy until the answer is complete, an error
        ends the stream, or the block ends.
        """
        self._buffer.is_entered = True
        return self

    async def __aexit__(self, *raised: object) -> None:
        """Close the stream."""
        self._buffer.is_entered = False
        await self.aclose()

    def __del__(self) -> None:
        """Stop answering, so that the conversation can be used."""
        self._buffer.stop()


def _require_answer(answer: Answer[Output] | None) -> Answer[Output]:
    if answer is None:
        remedy = "read the stream to its end, or call `ask()` without arguments to finish the question"
        raise SettingsInvalid(f"the stream was closed before the answer was complete; {remedy}")
    return answer
