"""Conversations with a model: questions and answers in order, optionally stored, continued by any model.

    chat = Conversation("provider:model", instructions="Be brief.", options=[weather], keep="chats.db", name="umbrella")
    answer = chat.ask_sync("Umbrella today?")          await chat.ask(…) · chat.stream(…) · chat.stream_sync(…)
    chat.model = "other:model"

    Conversation ──▶ QuestionAnswerer ──▶ evaluate ──▶ Evaluation ──▶ records ──▶ session ──▶ journal

A conversation is one evaluation that grows with each question, with the steps, records and budgets of `evaluate`.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AsyncExitStack, ExitStack, contextmanager
from copy import copy
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any, Generic, Never, Unpack, overload

import sabir
from sabir import Adapter, Message, Option, Rendering, Settings, Usage
from sabir.authoring import AsyncClosing, OptionLike, SyncClosing
from typing_extensions import TypeForm

from sabir_session.conversation.answering import (
    PreparedQuestion,
    QuestionAnswerer,
    instructions_change,
    instructions_content,
    question_messages,
)
from sabir_session.conversation.answers import Answer, AnswerStream, SyncAnswerStream, Totals
from sabir_session.conversation.arguments import (
    DEFAULT_NAME,
    UNSET,
    AsyncFunction,
    Content,
    ConversationArguments,
    HelpPage,
    Instructions,
    QuestionArguments,
    QuestionOptions,
    Wanted,
    check_value,
    refuse_unknown_arguments,
)
from sabir_session.conversation.storage import ConversationStorage
from sabir_session.evaluation.approval import Approve
from sabir_session.evaluation.budgets import Budget
from sabir_session.evaluation.evaluate import (
    EvaluationArguments,
    build_outputs,
    run_without_suspending,
)
from sabir_session.evaluation.events import Watch
from sabir_session.evaluation.outputs import RETRIES, Outputs, Requests
from sabir_session.evaluation.performers import LoopPerformer, SyncPerformer
from sabir_session.evaluation.prompts import Options, Output, OutputMode, Strict, Validator
from sabir_session.stores.names import check_name
from sabir_session.stores.store import Store


class Conversation(SyncClosing, AsyncClosing, Generic[Output], metaclass=HelpPage):
    """A conversation with a model. It stores all messages, runs the options that the model calls, and can be reopened.

    `model` is `provider:model` or an adapter, `instructions` the system message. `output` is the type of the answers,
    or a function to call with the model's values; `str` and None mean text. `output_mode` is how the output is
    requested (see `OutputMode`). If an answer does not fit, or that function or `output_validator` raises ValueError,
    the model must answer again, up to `retries` times for each question, but not after a refusal or a cut-off answer.
    `options`, `settings`, `strict`, `budget`, `approve` and `watch` work as in `evaluate`. A budget limits the complete
    conversation, its `seconds` each question. `keep` is a Store, or the path or URL of a store. Messages are stored
    there under `name` when they are complete; the same `keep` and `name` reopen the conversation. Without `keep`,
    messages are only in memory. All arguments except `keep` and `name` are attributes that can be changed between
    questions. A `with` block closes the conversation.

    Raises ConversationBusy if another process or PostgresStore has opened the name, StoreError if the store cannot be
    opened, OptionInvalid, SettingsInvalid or WrongWord for wrong arguments, and the errors of `sabir.adapter`.

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
        instructions: Instructions = UNSET,
        options: Options = (),
        output_validator: Validator[Any] | None = None,  # by the overloads
        output_mode: OutputMode | None = None,
        retries: int = RETRIES,
        settings: Settings | None = None,
        strict: Strict | None = None,
        budget: Budget | None = None,
        approve: Approve | None = None,
        watch: Watch | None = None,
        keep: str | Path | Store | None = None,
        name: str = DEFAULT_NAME,
        **misnamed: Never,
    ) -> None:
        refuse_unknown_arguments("Conversation", misnamed, ("output", *ConversationArguments.__annotations__))
        check_name(name)
        self._adapters: dict[str, Adapter] = {}
        self._model: str | Adapter
        self._outputs_cache: tuple[object, Outputs[Any] | None] | None = None
        self._totals = Totals()
        self.model = model
        self._instructions: Message | None = None
        self._has_instructions = False
        if instructions is not UNSET:
            self.instructions = instructions
        self.options = options
        self.output = output
        self.output_validator = output_validator
        self.output_mode = output_mode
        self.retries = retries
        self.settings = settings
        self.strict = strict
        self.budget = budget
        self.approve = approve
        self.watch = watch
        self._default_outputs()
        self._answerer = QuestionAnswerer(ConversationStorage(keep, name))

    def __setattr__(self, name: str, value: object) -> None:
        """Set an attribute. Raises AttributeError for unknown names. Most wrong values raise errors of Conversation."""
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
        """The system message for the next question; "" means none. A text, or a tuple of texts and parts.

        Until you set a value, these are the recorded instructions. A new value holds from the next question on.
        """
        return instructions_content(self._current_instructions)

    @instructions.setter
    def instructions(self, instructions: Instructions) -> None:
        content = (instructions,) if isinstance(instructions, str) else instructions
        self._instructions = sabir.system(*content) if any(content) else None
        self._has_instructions = True

    @property
    def _current_instructions(self) -> Message | None:
        """The instructions that were set in this object, else the recorded instructions."""
        return self._instructions if self._has_instructions else self._answerer.storage.instructions

    @property
    def options(self) -> tuple[Option, ...]:
        """The options that the model may call. You can set functions, pydantic models or `sabir.Option` objects."""
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
        return self._answerer.storage.name

    @property
    def messages(self) -> tuple[Message, ...]:
        """All recorded messages. Each version of the instructions precedes the first question with that version."""
        return self._answerer.storage.messages

    @property
    def sent_messages(self) -> tuple[Message, ...]:
        """The messages that the next request sends before its question: first the current instructions, if any."""
        change = instructions_change(self._answerer.storage.instructions, self._current_instructions)
        return tuple(self._answerer.storage.messages_with(*change))

    @property
    def unfinished(self) -> bool:
        """Whether the last question has no answer yet, as after a crash. The next `ask` finishes it first."""
        return self._answerer.storage.is_unfinished

    @property
    def usage(self) -> Usage:
        """The sum of the tokens of all replies in `messages`, without removed turns.

        A number is None if a provider did not report it.
        """
        return self._totals.up_to(self._answerer.storage.evaluation).usage

    @property
    def cost(self) -> Decimal | None:
        """The cost of all replies in `messages` in US dollars; None if unknown, for example without sabir-prices."""
        return self._totals.up_to(self._answerer.storage.evaluation).cost

    @overload
    async def ask(
        self, *content: Content, output: TypeForm[Wanted], **how: Unpack[QuestionArguments[Wanted]]
    ) -> Answer[Wanted]: ...
    @overload
    async def ask(
        self, *content: Content, output: AsyncFunction[Wanted], **how: Unpack[QuestionArguments[Wanted]]
    ) -> Answer[Wanted]: ...
    @overload
    async def ask(
        self, *content: Content, output: Callable[..., Wanted], **how: Unpack[QuestionArguments[Wanted]]
    ) -> Answer[Wanted]: ...
    @overload
    async def ask(self, *content: Content, **how: Unpack[QuestionArguments[Output]]) -> Answer[Output]: ...
    async def ask(
        self,
        *content: Content,
        output: Any = UNSET,  # by the overloads
        output_validator: Validator[Any] | None = None,
        output_mode: OutputMode | None = None,
        settings: Settings | None = None,
        **misnamed: Never,
    ) -> Answer[Any]:
        """Ask a question. Return the answer when the model has answered and all its option calls have results.

        `output` is the type of this answer, or a function to call with the model's values; None means text. By default,
        the conversation's `output` and `output_validator` are used; a question with its own `output` is checked only by
        its own `output_validator`. `settings` override the conversation's settings field by field. Without content,
        `ask` finishes the last question, or reads its answer again: an output function and the validator run again, and
        the model corrects an answer that does not fit. An unfinished question is finished first, or use `drop_last()`.

        Raises RenderingRefused for a loss in `strict`, before the question is recorded if its request has the loss;
        CallError, ApprovalPending or BudgetExhausted, after which `ask()` continues; with an output, OutputError if the
        answer does not fit after the last retry or because it was cut off, or is a refusal; ConversationBusy while
        another question is being answered or after a change elsewhere; ConversationNotFound without content if nothing
        was asked; OptionInvalid, SettingsInvalid or WrongWord for wrong arguments; RecordingFailed or StoreError if the
        store fails or the conversation is closed; and errors of an output function or validator (see `Validator`).

        >>> import asyncio, sabir_session
        >>> asyncio.run(sabir_session.Conversation("echo:m").ask("41", output=int)).output
        41
        """
        options = self._question_options(output, output_validator, output_mode, settings, misnamed)
        return await self._answerer.answer(LoopPerformer, content, options, self._prepare, None)

    @overload
    def ask_sync(
        self, *content: Content, output: TypeForm[Wanted], **how: Unpack[QuestionArguments[Wanted]]
    ) -> Answer[Wanted]: ...
    @overload
    def ask_sync(
        self, *content: Content, output: AsyncFunction[Wanted], **how: Unpack[QuestionArguments[Wanted]]
    ) -> Answer[Wanted]: ...
    @overload
    def ask_sync(
        self, *content: Content, output: Callable[..., Wanted], **how: Unpack[QuestionArguments[Wanted]]
    ) -> Answer[Wanted]: ...
    @overload
    def ask_sync(self, *content: Content, **how: Unpack[QuestionArguments[Output]]) -> Answer[Output]: ...
    def ask_sync(
        self,
        *content: Content,
        output: Any = UNSET,  # by the overloads
        output_validator: Validator[Any] | None = None,
        output_mode: OutputMode | None = None,
        settings: Settings | None = None,
        **misnamed: Never,
    ) -> Answer[Any]:
        """Sync version of `ask`. Blocks the thread. Refuses coroutine functions as `evaluate_sync` does.
        >>> import sabir_session; sabir_session.Conversation("echo:m").ask_sync("Hello!").text
        'Hello!'
        """
        options = self._question_options(output, output_validator, output_mode, settings, misnamed)
        return run_without_suspending(self._answerer.answer(SyncPerformer, content, options, self._prepare, None))

    @overload
    def stream(
        self, *content: Content, output: TypeForm[Wanted], **how: Unpack[QuestionArguments[Wanted]]
    ) -> AnswerStream[Wanted]: ...
    @overload
    def stream(
        self, *content: Content, output: AsyncFunction[Wanted], **how: Unpack[QuestionArguments[Wanted]]
    ) -> AnswerStream[Wanted]: ...
    @overload
    def stream(
        self, *content: Content, output: Callable[..., Wanted], **how: Unpack[QuestionArguments[Wanted]]
    ) -> AnswerStream[Wanted]: ...
    @overload
    def stream(self, *content: Content, **how: Unpack[QuestionArguments[Output]]) -> AnswerStream[Output]: ...
    def stream(
        self,
        *content: Content,
        output: Any = UNSET,  # by the overloads
        output_validator: Validator[Any] | None = None,
        output_mode: OutputMode | None = None,
        settings: Settings | None = None,
        **misnamed: Never,
    ) -> AnswerStream[Any]:
        """Ask a question and return the answer as a stream of events. The arguments are the same as in `ask`.

        The question is sent when the first event is read. Reading raises the errors of `ask`; only errors of `output`,
        `output_validator` and unknown arguments are raised at once. Events of an unfinished earlier question come
        first, with another `question` id, and are not part of the stream's `text` and `outputs`.

        >>> import asyncio, sabir_session
        >>> async def texts(chat: sabir_session.Conversation) -> list[str]:
        ...     async with chat.stream("Hello there!") as stream:
        ...         return [text async for text in stream.text]
        >>> asyncio.run(texts(sabir_session.Conversation("echo:m")))
        ['Hello ', 'there!']
        """
        options = self._question_options(output, output_validator, output_mode, settings, misnamed)
        start = partial(self._answerer.answer, LoopPerformer, content, options, self._prepare)
        return AnswerStream(start, options.outputs)

    @overload
    def stream_sync(
        self, *content: Content, output: TypeForm[Wanted], **how: Unpack[QuestionArguments[Wanted]]
    ) -> SyncAnswerStream[Wanted]: ...
    @overload
    def stream_sync(
        self, *content: Content, output: AsyncFunction[Wanted], **how: Unpack[QuestionArguments[Wanted]]
    ) -> SyncAnswerStream[Wanted]: ...
    @overload
    def stream_sync(
        self, *content: Content, output: Callable[..., Wanted], **how: Unpack[QuestionArguments[Wanted]]
    ) -> SyncAnswerStream[Wanted]: ...
    @overload
    def stream_sync(self, *content: Content, **how: Unpack[QuestionArguments[Output]]) -> SyncAnswerStream[Output]: ...
    def stream_sync(
        self,
        *content: Content,
        output: Any = UNSET,  # by the overloads
        output_validator: Validator[Any] | None = None,
        output_mode: OutputMode | None = None,
        settings: Settings | None = None,
        **misnamed: Never,
    ) -> SyncAnswerStream[Any]:
        """Sync version of `stream`. The answer advances only while you read it, in the thread that reads."""
        options = self._question_options(output, output_validator, output_mode, settings, misnamed)
        start = partial(self._answerer.answer, SyncPerformer, content, options, self._prepare)
        return SyncAnswerStream(start, options.outputs)

    def preview(
        self,
        *content: Content,
        output: object = UNSET,
        output_mode: OutputMode | None = None,
        settings: Settings | None = None,
    ) -> Rendering:
        """Return the first request that `ask` would send for new content, with its losses. Sends and records nothing.

        An unfinished earlier question is not finished first. Raises RenderingRefused for a loss in `strict`, or if
        nothing can be sent, and the errors of `ask` for wrong arguments.

        >>> import sabir_session
        >>> rendering = sabir_session.Conversation("echo:m").preview("Hello!")
        >>> rendering.body["messages"], rendering.losses
        ([{'from': 'user', 'text': 'Hello!'}], ())
        """
        question = self._prepare(self._question_options(output, None, output_mode, settings, {}))
        messages = (*question.instructions, *question_messages(content))
        sent = self._answerer.storage.messages_with(messages, question.mark)
        return self.adapter.render(question.requests.messages(sent), **question.requests.call_arguments)

    def drop_last(self) -> tuple[Message, ...]:
        """Remove the last question, answered or not, with all messages after it. Return the removed messages.

        Effects of options are not undone. A budget still counts the replies. Raises ConversationNotFound if there is no
        question, ConversationBusy as `ask` does, StoreError if closed or if other records follow, or a store's errors.
        """
        return self._answerer.drop_last()

    @contextmanager
    def replacing_last(self) -> Iterator[tuple[Message, ...]]:
        """Replace the last question and its answer with what the `with` block asks. Yields the old messages.

        In the block, the conversation ends before the old question, and new messages are only in memory. If the block
        ends without an exception and its last question is answered, one transaction replaces the old messages.
        Otherwise the old messages stay, and a budget counts the new replies. Raises the errors of `drop_last`.
        """
        with self._answerer.replacing_last() as messages:
            yield messages

    def fork(self, name: str) -> "Conversation[Output]":
        """Return a new conversation with the same attributes and messages, stored under `name` in the same store.

        Both continue independently. The budget of the new conversation counts the amounts that were used before. Raises
        JournalExists if the store already has that name, ConversationBusy as `ask` does, and StoreError for an invalid
        name or a closed conversation. A fork without a store (`keep`) is only in memory.

        >>> import sabir_session
        >>> sabir_session.Conversation("echo:m").fork("a second try").name
        'a second try'
        """
        check_name(name)
        other = copy(self)
        other._adapters, other._totals = {}, Totals()
        other.model = self._model
        other._answerer = self._answerer.fork(name)
        return other

    def close(self) -> None:
        """Release the conversation for other processes, unless other objects use it, and close what this object opened:
        the sync clients of its models, and the store, unless another fork uses it. What you passed stays open.
        """
        with ExitStack() as closing:  # closes the rest, too, if one of them fails
            for adapter in self._adapters.values():
                closing.callback(adapter.close)
            closing.callback(self._answerer.close)

    async def aclose(self) -> None:
        """Do what `close` does, and also close the clients that `ask` and `stream` opened in the running event loop."""
        async with AsyncExitStack() as closing:
            for adapter in self._adapters.values():
                closing.push_async_callback(adapter.aclose)
            closing.callback(self._answerer.close)

    def __repr__(self) -> str:
        """Return the model, the name and the number of messages."""
        return f"Conversation({str(self.adapter.target)!r}, name={self.name!r}, messages={len(self.messages)})"

    def _default_outputs(self) -> Outputs[Any] | None:
        """Return the parser of the conversation's own output, or None for text. Cached until the attributes change."""
        key = (self.output, self.output_validator, self.retries, None, self.output_mode)
        if self._outputs_cache is None or self._outputs_cache[0] != key:
            self._outputs_cache = key, build_outputs(*key)
        return self._outputs_cache[1]

    def _question_options(
        self,
        output: object,
        validator: Validator[Any] | None,
        mode: OutputMode | None,
        settings: Settings | None,
        misnamed: Mapping[str, object],
    ) -> QuestionOptions:
        if misnamed:
            refuse_unknown_arguments("ask", misnamed, ("output", *QuestionArguments.__annotations__))
        if settings is not None and self.settings is not None:
            settings = settings.laid_over(self.settings)
        if output is UNSET and validator is None and mode is None:
            return QuestionOptions(self._default_outputs(), settings or self.settings, settings is None)
        own = output is UNSET and validator is None  # then the conversation's validator stays
        output, validator = self.output if output is UNSET else output, self.output_validator if own else validator
        outputs = build_outputs(output, validator, self.retries, mode, self.output_mode)
        return QuestionOptions(outputs, settings or self.settings, False)

    def _prepare(self, options: QuestionOptions | None) -> PreparedQuestion:
        """Prepare a question with the attributes of this moment. None means the conversation's own options."""
        options = options or QuestionOptions(self._default_outputs(), self.settings, True)
        arguments = EvaluationArguments(
            options=self.options,
            settings=options.settings,
            strict=self.strict,
            budget=self.budget,
            approve=self.approve,
            watch=self.watch,
        )
        requests = Requests(self.adapter, self.options, options.outputs, options.settings, self.strict)
        change = instructions_change(self._answerer.storage.instructions, self._current_instructions)
        return PreparedQuestion(requests, arguments, *change)
