"""Conversations with a model: questions and answers in order, optionally stored, continued by any model.

    chat = Conversation("provider:model", instructions="Be brief.", options=[weather], keep="chats.db", name="umbrella")
    answer = chat.ask_sync("Umbrella today?")          await chat.ask(…) · chat.stream(…) · chat.stream_sync(…)
    chat.model = "other:model"

    ask ──▶ finish an earlier question ──▶ render ──▶ record the question ──▶ evaluate ──▶ Answer
                                              └─ refused: nothing is recorded, nothing is sent

A conversation is one evaluation, like an evaluation of `evaluate`, that grows with each question. It has the same
steps, records, budgets and approvals.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from copy import copy
from decimal import Decimal
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, Never, Unpack, cast, overload

import sabir
from sabir import (
    RUNTIME,
    Adapter,
    Message,
    Option,
    Rendering,
    SabirError,
    Settings,
    SettingsInvalid,
    TextPart,
    Usage,
)
from sabir.authoring import OptionLike
from sabir.errors import OptionInvalid
from typing_extensions import TypeForm

from sabir_session.conversation.answers import Answer
from sabir_session.conversation.arguments import NAME, ConversationArguments, Instructions
from sabir_session.conversation.asking import OWN, Asked, Asking, AsyncFunction, Content, How
from sabir_session.conversation.keeping import Kept
from sabir_session.conversation.reading import AsyncReading, Reading, Turn, wait_for
from sabir_session.conversation.totals import Totals
from sabir_session.conversation.words import check_value, refuse_words
from sabir_session.evaluation import people
from sabir_session.evaluation.budgets import Budget
from sabir_session.evaluation.evaluate import (
    EvaluationArguments,
    check_functions,
    outputs_of,
    performer_of,
    proceed,
    requests_of,
)
from sabir_session.evaluation.outputs import RETRIES, Outputs, Requests
from sabir_session.evaluation.perform import LoopPerformer, Performer
from sabir_session.evaluation.prompts import (
    ApprovalPending,
    BudgetExhausted,
    ConversationNotFound,
    Options,
    Output,
    Strict,
    Validator,
)
from sabir_session.records import InstructionsMark
from sabir_session.stores.names import check_name
from sabir_session.stores.store import Store

if TYPE_CHECKING:
    import asyncio

logger = logging.getLogger("sabir")


class Conversation(Asking[Output]):
    """A conversation with a model. It stores all messages, runs the options that the model calls, and can be reopened.

    `model` is `provider:model` or an adapter, `instructions` the system message. `output` is the type of the answers,
    or a function to call with the model's values; None means text. If an answer does not fit, or `output_validator`
    raises ValueError, the model must answer again, up to `retries` times. `options`, `settings`, `strict`, `budget`,
    `approve` and `watch` work as in `evaluate`. A budget limits the complete conversation, its `seconds` each question.
    `keep` is a Store, or the path or URL of a store. Each message is stored there at once under `name`; the same `keep`
    and `name` reopen the conversation. Without `keep`, the messages are lost when the program ends. All arguments
    except `keep` and `name` are attributes that can be changed between questions. A `with` block closes the
    conversation.

    Raises ConversationBusy if another process has opened the name, StoreError if the store cannot be opened,
    OptionInvalid, SettingsInvalid or WrongWord for wrong arguments, and the errors of `sabir.adapter`.

    >>> import sabir_session
    >>> chat = sabir_session.Conversation("echo:m", instructions="Be brief.")
    >>> chat.ask_sync("Hello!").text
    'Hello!'
    """

    @overload
    def __init__(
        self, model: str | Adapter, *, output: TypeForm[Output], **how: Unpack[ConversationArguments[Output]]
    ) -> None: ...
    @overload
    def __init__(
        self, model: str | Adapter, *, output: AsyncFunction[Output], **how: Unpack[ConversationArguments[Output]]
    ) -> None: ...
    @overload
    def __init__(
        self, model: str | Adapter, *, output: Callable[..., Output], **how: Unpack[ConversationArguments[Output]]
    ) -> None: ...
    @overload
    def __init__(
        self: "Conversation[None]",
        model: str | Adapter,
        *,
        output: None = None,
        **how: Unpack[ConversationArguments[None]],
    ) -> None: ...
    def __init__(  # noqa: PLR0913 - all of a conversation, each by its name
        self,
        model: str | Adapter,
        *,
        output: Any = None,  # by the overloads
        instructions: Instructions = OWN,
        options: Options = (),
        output_validator: Validator[Any] | None = None,  # by the overloads
        retries: int = RETRIES,
        settings: Settings | None = None,
        strict: Strict | None = None,
        budget: Budget | None = None,
        approve: people.Approve | None = None,
        watch: people.Watch | None = None,
        keep: str | Path | Store | None = None,
        name: str = NAME,
        **misnamed: Never,
    ) -> None:
        refuse_words("Conversation", misnamed, ("output", *ConversationArguments.__annotations__))
        check_name(name)
        self._adapters: dict[str, Adapter] = {}
        self._model: str | Adapter
        self._sent_instructions: Message | None = None
        self._pending: Asked | None = None
        self._outputs_cache: tuple[object, Outputs[Any] | None] | None = None
        self._totals = Totals()
        self._turn: Turn | None = None
        self.model = model
        self._instructions: Message | None = None
        self._has_instructions = False
        if instructions is not OWN:
            self.instructions = instructions
        self.options = options
        self.output = output
        self.output_validator = output_validator
        self.retries = retries
        self.settings = settings
        self.strict = strict
        self.budget = budget
        self.approve = approve
        self.watch = watch
        self._default_outputs()
        self._kept = Kept(keep, name)

    def __setattr__(self, name: str, value: object) -> None:
        """Set an attribute. Raises AttributeError for an unknown name, and SettingsInvalid for an invalid value."""
        if not name.startswith("_"):
            check_value(name, value)
        super().__setattr__(name, value)

    @property
    def model(self) -> str | Adapter:
        """The model that answers the next question, as you passed it: `provider:model` or an adapter."""
        return self._model

    @model.setter
    def model(self, model: str | Adapter) -> None:
        if isinstance(model, str) and model not in self._adapters:
            self._adapters[model] = sabir.adapter(model)
        settings, earlier = vars(self).get("settings"), vars(self).get("_model", model)
        if isinstance(settings, Settings) and earlier != model:
            # Extra fields that name no target were meant for the model that answered until now.
            self.settings = settings.owned_by(self.adapter.target.full_name)
        self._model = model

    @property
    def instructions(self) -> Instructions:
        """The system message for the next question; "" means none. If you set none, the recorded instructions.

        A text, or a tuple of texts and parts. Set a value to replace the instructions from the next question on.
        """
        message = self._current_instructions
        if message is None:
            return ""
        is_text = len(message.parts) == 1 and isinstance(message.parts[0], TextPart)
        return message.text if is_text else cast("Instructions", message.parts)

    @instructions.setter
    def instructions(self, instructions: Instructions) -> None:
        content = (instructions,) if isinstance(instructions, str) else instructions
        self._instructions = sabir.system(*content) if any(content) else None
        self._has_instructions = True

    @property
    def _current_instructions(self) -> Message | None:
        """The instructions that were set in this object, else the recorded instructions."""
        return self._instructions if self._has_instructions else self._kept.instructions

    @property
    def options(self) -> tuple[Option, ...]:
        """The options that the model may call. Set functions, pydantic models or `sabir.Option` objects."""
        return self._options

    @options.setter
    def options(self, options: Iterable[OptionLike]) -> None:
        self._options = Option.all_of(options)

    @property
    def adapter(self) -> Adapter:
        """The adapter that sends the requests: `model` itself if it is an adapter, otherwise the one created for it."""
        return self._adapters[self._model] if isinstance(self._model, str) else self._model

    @property
    def name(self) -> str:
        """The name of the conversation in its store."""
        return self._kept.name

    @property
    def messages(self) -> tuple[Message, ...]:
        """All recorded messages. Each version of the instructions precedes the first question with that version."""
        return self._kept.messages

    @property
    def sent_messages(self) -> tuple[Message, ...]:
        """The messages that the next request sends before its question: first the current instructions, if any."""
        return tuple(self._sent_with(()))

    @property
    def unfinished(self) -> bool:
        """Whether the last question has no answer yet, as after a crash. The next `ask` finishes it first."""
        return self._kept.is_unfinished

    @property
    def usage(self) -> Usage:
        """The sum of the tokens of all replies in `messages`, without removed turns.

        A number is None if a provider did not report it.
        """
        return self._totals.up_to(self._kept.evaluation).usage

    @property
    def cost(self) -> Decimal | None:
        """The cost of all replies in `messages` in US dollars; None if unknown, for example without sabir-prices."""
        return self._totals.up_to(self._kept.evaluation).cost

    def preview(self, *content: Content, output: object = OWN, settings: Settings | None = None) -> Rendering:
        """Return the request that `ask` would send, with its losses, but send and record nothing.

        Raises RenderingRefused if the request has losses of the kinds in `strict`.

        >>> import sabir_session
        >>> rendering = sabir_session.Conversation("echo:m").preview("Hello!")
        >>> rendering.body["messages"], rendering.losses
        ([{'from': 'user', 'text': 'Hello!'}], ())
        """
        requests = self._requests(self._asked(output, None, settings, {}))
        return self.adapter.render(self._sent_with(content), **requests.how)

    def drop_last(self) -> tuple[Message, ...]:
        """Remove the last question, answered or not, with all messages after it. Return the removed messages.

        Effects of options are not undone. A budget still counts the replies. Raises ConversationNotFound if nothing was
        asked, ConversationBusy while a question is being answered, and StoreError if other records follow the question.
        """
        self._leave_abandoned()
        dropped = self._kept.drop_last()
        self._pending = None
        return dropped

    @contextmanager
    def replacing_last(self) -> Iterator[tuple[Message, ...]]:
        """Replace the last question and its answer with what the `with` block asks. Yields the old messages.

        In the block, the conversation ends before the old question. If the block asks a question and gets an answer,
        one transaction replaces the old messages. Otherwise the old messages stay. Raises ConversationNotFound if
        nothing was asked, and ConversationBusy while a question is being answered.
        """
        self._leave_abandoned()
        try:
            with self._kept.replacing_last() as messages:
                self._pending = None
                yield messages
        finally:
            self._pending = None

    def fork(self, name: str) -> "Conversation[Output]":
        """Return a new conversation with the same attributes and messages, stored under `name` in the same store.

        Both continue independently. The budget of the new conversation counts the amounts that were used before. Raises
        JournalExists if the store already has that name, ConversationBusy while a question is being answered, and
        StoreError for an invalid name. The fork of a conversation without a store (`keep`) is only in memory.

        >>> import sabir_session
        >>> sabir_session.Conversation("echo:m").fork("a second try").name
        'a second try'
        """
        check_name(name)
        self._leave_abandoned()
        other = copy(self)
        other._adapters, other._totals, other._turn = {}, Totals(), None
        other.model = self._model
        other._kept = self._kept.fork(name)
        return other

    def close(self) -> None:
        """Release the conversation for other processes, and close what this conversation opened.

        These are the sync clients of its models, and the store, unless a fork still uses the store. Adapters and stores
        that you passed stay open.
        """
        self._leave_abandoned()
        self._kept.close()
        for adapter in self._adapters.values():
            adapter.close()

    async def aclose(self) -> None:
        """Async version of `close`, which also closes the clients that `ask` and `stream` opened."""
        self._leave_abandoned()
        self._kept.close()
        for adapter in self._adapters.values():
            await adapter.aclose()

    def __repr__(self) -> str:
        """Return the model, the name and the number of messages."""
        return f"Conversation({str(self.adapter.target)!r}, name={self.name!r}, messages={len(self.messages)})"

    def _default_outputs(self) -> Outputs[Any] | None:
        """Return the parser of the conversation's own output, or None for text. Cached until the attributes change."""
        key = (self.output, self.output_validator, self.retries)
        if self._outputs_cache is None or self._outputs_cache[0] != key:
            self._outputs_cache = key, outputs_of(*key)
        return self._outputs_cache[1]

    def _asked(
        self,
        output: object,
        validator: Validator[Any] | None,
        settings: Settings | None,
        misnamed: Mapping[str, object],
    ) -> Asked:
        refuse_words("ask", misnamed, ("output", *How.__annotations__))
        if settings is not None and self.settings is not None:
            settings = settings.laid_over(self.settings)
        if output is OWN and validator is None:
            return Asked(self._default_outputs(), settings or self.settings, settings is None)
        outputs = outputs_of(self.output if output is OWN else output, validator, self.retries)
        return Asked(outputs, settings or self.settings, False)

    def _question(self, content: tuple[Content, ...]) -> tuple[Message, ...]:
        """Return the messages of a question: neighbouring texts and parts are one message."""
        question: list[Message] = []
        for _, items in groupby(content, key=lambda item: isinstance(item, Message)):
            together = [*items]
            messages = [item for item in together if isinstance(item, Message)]
            question += messages or [sabir.user(*(item for item in together if not isinstance(item, Message)))]
        if any(message.policy == RUNTIME for message in question):
            raise SettingsInvalid(
                f"a question has a message of the policy {RUNTIME!r}, which is reserved for this library; "
                "use another policy"
            )
        return tuple(question)

    def _instructions_change(self) -> tuple[tuple[Message, ...], InstructionsMark]:
        """Return the instructions that the next question records, if they changed, and how they changed."""
        recorded, current = self._kept.instructions, self._current_instructions
        if current is None:
            return (), "same" if recorded is None else "none"
        if recorded is not None and (recorded is current or recorded.payload == current.payload):
            return (), "same"
        return (current,), "new"

    def _sent_with(self, content: tuple[Content, ...]) -> list[Message]:
        """Return the messages of the request that a question makes."""
        instructions, mark = self._instructions_change()
        return self._kept.sent_with((*instructions, *self._question(content)), mark)

    def _requests(self, asked: Asked) -> Requests:
        return requests_of(self.adapter, asked.outputs, self._how(asked))

    def _how(self, asked: Asked) -> EvaluationArguments:
        """Return the arguments with which a question is evaluated."""
        return EvaluationArguments(
            options=self.options,
            settings=asked.settings,
            strict=self.strict,
            budget=self.budget,
            approve=self.approve,
            watch=self.watch,
        )

    async def _answered(
        self,
        performer_class: type[Performer],
        content: tuple[Content, ...],
        asked: Asked,
        reading: Reading[Any] | None,
    ) -> Answer[Any]:
        ending = self._leave_abandoned()
        if ending is not None and performer_class is LoopPerformer:
            await wait_for(ending)
        with Turn(self._kept.asking(), reading) as turn:
            self._turn = turn
            if reading is not None:
                reading.turn = turn
            if not content and asked.is_own and self._pending is not None:
                asked = self._pending
            if self._kept.is_unfinished and content:
                first = self._pending or Asked(self._default_outputs(), self.settings, True)
                with telling(NOT_ASKED, SabirError):
                    await self._finish(performer_class, first, self._requests(first), turn)
            requests = self._requests(asked)
            rendering = self._begin(performer_class, content, asked, requests) if content else None
            evaluation = self._kept.evaluation
            if evaluation is None or not evaluation.length:
                nothing = f"the conversation {self.name!r} has no question yet"
                raise ConversationNotFound(f"{nothing}, so ask() has nothing to finish; pass a question")
            if reading is not None:
                reading.question = evaluation.question
            return await self._finish(performer_class, asked, requests, turn, rendering)

    def _leave_abandoned(self) -> "asyncio.Task[Any] | None":
        """Stop the stream of the last question if nobody reads it. Return its task if the task still has to end."""
        turn = self._turn
        reading = None if turn is None else turn.reading
        if turn is None or reading is None or not reading.is_abandoned:
            return None
        reading.leave()
        return reading.task if turn.is_open and isinstance(reading, AsyncReading) else None

    def _begin(
        self, performer_class: type[Performer], content: tuple[Content, ...], asked: Asked, requests: Requests
    ) -> Rendering | None:
        """Render a question, and record it. Return the rendering if the adapter can send the rendering itself.

        If rendering raises, nothing is recorded.
        """
        check_functions(performer_class, requests)
        instructions, mark = self._instructions_change()
        question = (*instructions, *self._question(content))
        if requests.sends_renderings:
            with self._kept.lent_with(question, mark) as messages:
                rendering = requests.adapter.render(messages, **requests.how)
        else:
            rendering = requests.adapter.render(self._kept.sent_with(question, mark), **requests.how)
        if mark != "same" and self._kept.instructions is not self._sent_instructions:
            changed = f"the instructions of the conversation {self.name!r} differ from the recorded instructions"
            logger.warning("%s; only the new instructions are sent", changed)
        self._kept.say(question, requests.speaks_as, mark)
        self._pending = asked
        self._sent_instructions = self._kept.instructions
        return rendering if requests.sends_renderings else None

    async def _finish(
        self,
        performer_class: type[Performer],
        asked: Asked,
        requests: Requests,
        turn: Turn,
        rendering: Rendering | None = None,
    ) -> Answer[Any]:
        evaluation = self._kept.evaluation
        assert evaluation is not None
        with telling(KEPT, *UNANSWERED):
            session, how = self._kept.session, self._how(asked)
            io = performer_of(performer_class, session, evaluation, requests, how, turn.reading)
            io.prepared, turn.performer = rendering, io
            output = await proceed(evaluation, io)
        self._pending = None
        messages, replies = evaluation.last_turn
        return Answer(replies, messages, output)


for _name in ("ask", "ask_sync", "stream", "stream_sync"):
    setattr(Conversation, _name, vars(Asking)[_name])  # help() lists them first, as the class's own methods

KEPT = "The question is stored without an answer: ask() tries again, drop_last() removes the question."
NOT_ASKED = "This error belongs to the earlier, unfinished question; the new question was not sent."
UNANSWERED = (sabir.CallError, ApprovalPending, BudgetExhausted, OptionInvalid)
"""The errors after which a question has no answer yet."""


@contextmanager
def telling(note: str, *kinds: type[sabir.SabirError]) -> Iterator[None]:
    """Add a note to errors of these kinds that the `with` block raises."""
    try:
        yield
    except kinds as error:
        error.add_note(note)
        raise
