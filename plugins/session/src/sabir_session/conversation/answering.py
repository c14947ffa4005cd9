"""Answer the questions of a conversation: one at a time, and an unfinished question before a new question.

content ──▶ finish the earlier question ──▶ render ──▶ record the question ──▶ evaluate ──▶ Answer
                                               └─ refused: nothing is recorded, nothing is sent
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, cast

import sabir
from sabir import RUNTIME, CallError, Message, Rendering, SabirError, SettingsInvalid, TextPart
from sabir.authoring import KnownPart
from sabir.errors import OptionInvalid, RenderingRefused

from sabir_session.conversation.answers import Answer
from sabir_session.conversation.arguments import Content, Instructions, QuestionOptions
from sabir_session.conversation.event_buffers import AsyncEventBuffer, EventBuffer, Reservation, wait_for
from sabir_session.conversation.storage import ConversationStorage
from sabir_session.evaluation.evaluate import EvaluationArguments, check_functions, create_performer, finish_evaluation
from sabir_session.evaluation.outputs import Requests
from sabir_session.evaluation.performers import LoopPerformer, StepPerformer
from sabir_session.evaluation.prompt_caches import CacheWatch, summarize_reports
from sabir_session.evaluation.prompts import ApprovalPending, BudgetExhausted, ConversationNotFound
from sabir_session.records import InstructionsMark

if TYPE_CHECKING:
    import asyncio

logger = logging.getLogger("sabir")

UNANSWERED_NOTE = "The question is stored without an answer: ask() tries again, drop_last() removes the question."
EARLIER_NOTE = "This error belongs to the earlier, unfinished question; the new question was not sent."
UNANSWERED = (CallError, RenderingRefused, ApprovalPending, BudgetExhausted, OptionInvalid)
"""The errors after which a question has no answer yet."""


class PreparedQuestion(NamedTuple):
    """A question's requests and arguments, by the attributes that the conversation has now.

    `instructions` are the instructions that the question records, if they changed, and `mark` says how they changed.
    """

    requests: Requests
    arguments: EvaluationArguments
    instructions: tuple[Message, ...]
    mark: InstructionsMark


Prepare: TypeAlias = Callable[[QuestionOptions | None], PreparedQuestion]
"""Prepares a question with its options; None means the conversation's own output and settings."""


class QuestionAnswerer:
    """Answers the questions of one conversation."""

    def __init__(self, storage: ConversationStorage) -> None:
        self.storage = storage
        self._unanswered: QuestionOptions | None = None
        """The options of the last question; None if it is answered, or was asked through another object."""
        self._sent_instructions: Message | None = None
        """The recorded instructions when this object recorded its last question."""
        self._reservation: Reservation | None = None
        self._cache_watch = CacheWatch()

    async def answer(
        self,
        performer_class: type[StepPerformer],
        content: tuple[Content, ...],
        options: QuestionOptions,
        prepare: Prepare,
        buffer: EventBuffer[Any] | None,
    ) -> Answer[Any]:
        """Record and answer a question with a performer of that class. `buffer` receives the events of a stream."""
        abandoned_task = self.leave_abandoned()
        if abandoned_task is not None and performer_class is LoopPerformer:
            await wait_for(abandoned_task)
        with Reservation(self.storage.reserve(), buffer) as reservation:
            self._reservation = reservation
            if buffer is not None:
                buffer.reservation = reservation
            if not content and options.is_own and self._unanswered is not None:
                options = self._unanswered
            is_unfinished = self.storage.is_unfinished
            if is_unfinished or not content:
                self.storage.check_latest()
            if is_unfinished and content:
                try:
                    await self._finish_question(performer_class, prepare(self._unanswered), reservation)
                except SabirError as error:
                    error.add_note(EARLIER_NOTE)
                    raise
            question = prepare(options)
            rendering = None
            if content:
                rendering = self._record_question(performer_class, question, question_messages(content))
                self._unanswered = options
            evaluation = self.storage.evaluation
            if evaluation is None or not evaluation.length:
                nothing = f"the conversation {self.storage.name!r} has no question yet"
                raise ConversationNotFound(f"{nothing}, so ask() has nothing to finish; pass a question")
            if buffer is not None:
                buffer.question = evaluation.question
            return await self._finish_question(performer_class, question, reservation, rendering)

    def leave_abandoned(self) -> "asyncio.Task[Any] | None":
        """Stop the stream of the last question if nobody reads it. Return its task if the task still has to end."""
        reservation = self._reservation
        buffer = None if reservation is None else reservation.buffer
        if reservation is None or buffer is None or not buffer.is_abandoned:
            return None
        buffer.stop()
        return buffer.task if reservation.is_open and isinstance(buffer, AsyncEventBuffer) else None

    def _record_question(
        self, performer_class: type[StepPerformer], question: PreparedQuestion, messages: tuple[Message, ...]
    ) -> Rendering | None:
        """Render a question, and record it. Return the rendering if the adapter can send the rendering itself.

        If rendering raises, nothing is recorded.
        """
        requests, storage = question.requests, self.storage
        check_functions(performer_class, requests)
        messages = (*question.instructions, *messages)
        if requests.sends_renderings:
            with storage.lend_messages(messages, question.mark) as sent:
                rendering = requests.adapter.render(requests.messages(sent), **requests.call_arguments)
        else:
            sent = storage.messages_with(messages, question.mark)
            rendering = requests.adapter.render(requests.messages(sent), **requests.call_arguments)
        if question.mark != "same" and storage.instructions is not self._sent_instructions:
            changed = f"the instructions of the conversation {storage.name!r} differ from the recorded instructions"
            logger.warning("%s; the recorded instructions are not sent any more", changed)
        storage.record_question(messages, requests.speaks_as, question.mark)
        self._sent_instructions = storage.instructions
        return rendering if requests.sends_renderings else None

    async def _finish_question(
        self,
        performer_class: type[StepPerformer],
        question: PreparedQuestion,
        reservation: Reservation,
        rendering: Rendering | None = None,
    ) -> Answer[Any]:
        evaluation = self.storage.evaluation
        assert evaluation is not None
        session, requests = self.storage.session, question.requests
        arguments, buffer = question.arguments, reservation.buffer
        try:
            performer = create_performer(performer_class, session, evaluation, requests, arguments, buffer)
            performer.prepared, reservation.performer = rendering, performer
            performer.cache_watch = self._cache_watch
            self._cache_watch.reports = []
            output = await finish_evaluation(evaluation, performer, conversation_id=self.storage.conversation_id)
        except UNANSWERED as error:
            error.add_note(UNANSWERED_NOTE)
            raise
        self._unanswered = None
        messages, replies = evaluation.last_turn
        return Answer(replies, messages, output, summarize_reports(self._cache_watch.reports))

    def drop_last(self) -> tuple[Message, ...]:
        """Remove the last question with all messages after it, and return these messages."""
        self.leave_abandoned()
        dropped = self.storage.drop_last()
        self._unanswered = None
        return dropped

    @contextmanager
    def replacing_last(self) -> Iterator[tuple[Message, ...]]:
        """Replace the last question and its answer with what the `with` block asks. Yields the old messages."""
        self.leave_abandoned()
        try:
            with self.storage.replacing_last() as messages:
                self._unanswered = None
                yield messages
        finally:
            self._unanswered = None

    def fork(self, name: str) -> "QuestionAnswerer":
        """Return the answerer of a new conversation with the same records. Raises JournalExists for a used name."""
        self.leave_abandoned()
        fork = QuestionAnswerer(self.storage.fork(name))
        fork._unanswered, fork._sent_instructions = self._unanswered, self._sent_instructions
        fork._cache_watch = self._cache_watch.copy()
        return fork

    def close(self) -> None:
        """Stop an abandoned stream, and release the storage."""
        self.leave_abandoned()
        self.storage.close()


def question_messages(content: tuple[Content, ...]) -> tuple[Message, ...]:
    """Return the messages of a question: neighbouring texts and parts are one message.

    Raises SettingsInvalid for a message of the runtime's policy.
    """
    question: list[Message] = []
    together: list[str | KnownPart] = []
    for item in content:
        if not isinstance(item, Message):
            together.append(item)
            continue
        if together:
            question.append(sabir.user(*together))
            together = []
        question.append(item)
    if together:
        question.append(sabir.user(*together))
    if any(message.policy == RUNTIME for message in question):
        raise SettingsInvalid(
            f"a question has a message of the policy {RUNTIME!r}, which is reserved for this library; "
            "use another policy"
        )
    return tuple(question)


def instructions_change(
    recorded: Message | None, current: Message | None
) -> tuple[tuple[Message, ...], InstructionsMark]:
    """Return the instructions that the next question records, if they changed, and how they changed."""
    if current is None:
        return (), "same" if recorded is None else "none"
    if recorded is not None and (recorded is current or recorded.payload == current.payload):
        return (), "same"
    return (current,), "new"


def instructions_content(message: Message | None) -> Instructions:
    """Return the content of a system message: its text if it is one text, else its parts; "" without a message."""
    if message is None:
        return ""
    is_text = len(message.parts) == 1 and isinstance(message.parts[0], TextPart)
    return message.text if is_text else cast("Instructions", message.parts)
