"""A conversation: a model, instructions and options; asked again and again, kept, and carried on by another model.

    chat = Conversation("provider:model", instructions="Be brief.", options=[weather], keep="chats.db", name="umbrella")
    answer = chat.ask_sync("Umbrella today?")          await chat.ask(…) · chat.stream(…) · chat.stream_sync(…)
    chat.model = "other:model"

    ask ──▶ finish what is unfinished ──▶ render ──▶ record the question ──▶ evaluate ──▶ Answer
                                             └─ refused: nothing is recorded, nothing is sent

It is one evaluation of `evaluate` that goes on: the same script, the same records, the same budgets and approvals.
"""

import logging
from collections.abc import Callable, Iterable, Mapping
from copy import copy
from decimal import Decimal
from pathlib import Path
from typing import Any, Generic, Never, TypeAlias, TypedDict, Unpack, overload

import sabir
from sabir import Adapter, Message, Rendering, Settings, Usage
from sabir.authoring import AsyncClosing, KnownPart, OptionLike, Strict, SyncClosing
from typing_extensions import TypeForm

from sabir_session.conversation.answers import Answer, cost_of
from sabir_session.conversation.asking import Asked, Asking, AsyncFunction, Content, How, Wanted
from sabir_session.conversation.keeping import Kept
from sabir_session.evaluation import people
from sabir_session.evaluation.budgets import Budget
from sabir_session.evaluation.evaluate import EvaluationArguments, outputs_of, performer_of, proceed
from sabir_session.evaluation.evaluations import Evaluation, begin
from sabir_session.evaluation.outputs import RETRIES
from sabir_session.evaluation.perform import LoopPerformer, Performer
from sabir_session.evaluation.prompts import ConversationNotFound, Output, Prompt, Validator, total
from sabir_session.stores.store import Store

logger = logging.getLogger("sabir")

Instructions: TypeAlias = str | tuple[str | KnownPart, ...]
NAME = "conversation"
"""The name of a conversation that was given none."""


class ConversationArguments(TypedDict, Generic[Wanted], total=False):
    """The arguments of a conversation; each is optional."""

    instructions: Instructions
    options: Iterable[OptionLike]
    output_validator: Validator[Wanted] | None
    retries: int
    settings: Settings | None
    strict: Strict | None
    budget: Budget | None
    approve: people.Approve | None
    watch: people.Watch | None
    keep: str | Path | Store | None
    name: str


class Conversation(Asking[Output], SyncClosing, AsyncClosing):
    """One conversation with a model, or with several in turn. A context manager; threads ask one after another.

    `model` is `provider:model` or an adapter, `instructions` the system message, `options` what the model may call.
    `output` is the type of answers, or a function to call; an answer that does not fit it, or that `output_validator`
    refuses by a ValueError, is asked again, `retries` times at most. `settings`, `strict`, `budget`, `approve` and
    `watch` are those of `evaluate`; a budget limits the whole conversation, its seconds each question. `keep` is where
    every message is recorded, a path or the URL of a store, under `name`; without it the conversation ends with the
    program.

    The attributes may be changed between questions. Changed `instructions` are said with the next question.

    Raises ConversationBusy if another process holds that name, StoreError for a store that cannot be opened, what
    `sabir.adapter` raises for a model, and OptionInvalid.
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
        instructions: Instructions = "",
        options: Iterable[OptionLike] = (),
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
        Settings.refuse_misnamed("Conversation", misnamed, ("output", *ConversationArguments.__annotations__))
        self._adapters: dict[str, Adapter] = {}
        self.model = model
        self.instructions = instructions
        self.options = tuple(options)
        self.settings = settings
        self.strict = strict
        self.budget = budget
        self.approve = approve
        self.watch = watch
        self.retries = retries
        self._output = output
        self._outputs = outputs_of(output, output_validator, retries)
        self._kept = Kept(keep, name)

    @property
    def model(self) -> str | Adapter:
        """The model that answers the next question, as it was given."""
        return self._model

    @model.setter
    def model(self, model: str | Adapter) -> None:
        if isinstance(model, str) and model not in self._adapters:
            self._adapters[model] = sabir.adapter(model)
        self._model = model

    @property
    def adapter(self) -> Adapter:
        """The adapter of the model."""
        return self._adapters[self._model] if isinstance(self._model, str) else self._model

    @property
    def name(self) -> str:
        """The name under which it is kept."""
        return self._kept.name

    @property
    def messages(self) -> tuple[Message, ...]:
        """All messages, the instructions first."""
        return self._kept.messages

    @property
    def unfinished(self) -> bool:
        """Whether the last question has no answer yet, as after a crash or an error; `ask()` finishes it."""
        return self._kept.is_unfinished

    @property
    def usage(self) -> Usage:
        """The tokens of all replies; a figure that a provider did not report is None."""
        return total(reply.usage for reply in self._replies)

    @property
    def cost(self) -> Decimal | None:
        """The cost of all replies in US dollars; None where it is not known, as without sabir-prices."""
        return cost_of(self._replies)

    @property
    def _replies(self) -> tuple[sabir.Reply, ...]:
        return () if self._kept.evaluation is None else tuple(self._kept.evaluation.replies)

    def preview(self, *content: Content, output: object = None, settings: Settings | None = None) -> Rendering:
        """What `ask` would send first, and its losses; nothing is sent or recorded. Raises RenderingRefused."""
        question = self._question(content)
        asked = self._asked(output, None, settings, {})
        io = self._performer(LoopPerformer, self._kept.evaluation or begin(Prompt(messages=question), ""), asked, None)
        return self.adapter.render([*self.messages, *question], **io.how)

    def drop_last(self) -> tuple[Message, ...]:
        """Take back the last question and all that came of it; return these messages. What options did is not undone.

        Raises ConversationNotFound if nothing was asked.
        """
        return self._kept.drop_last()

    def fork(self, name: str) -> "Conversation[Output]":
        """Another conversation that begins with all of this one, kept in the same place under another name.

        Raises JournalExists if the store holds a conversation of that name.
        """
        other = copy(self)
        other._kept = self._kept.fork(name)
        return other

    def close(self) -> None:
        """Close the clients of the waiting methods and the store, and let other processes have the conversation."""
        for adapter in self._adapters.values():
            adapter.close()
        self._kept.close()

    async def aclose(self) -> None:
        """As `close`, after `ask` and `stream`."""
        for adapter in self._adapters.values():
            await adapter.aclose()
        self._kept.close()

    def __repr__(self) -> str:
        """The model, the name, and how long it is."""
        return f"Conversation({str(self.adapter.target)!r}, name={self.name!r}, messages={len(self.messages)})"

    def _asked(
        self,
        output: object,
        validator: Validator[Any] | None,
        settings: Settings | None,
        misnamed: Mapping[str, object],
    ) -> Asked:
        Settings.refuse_misnamed("ask", misnamed, ("output", *How.__annotations__))
        if settings is not None and self.settings is not None:
            settings = settings.laid_over(self.settings)
        outputs = self._outputs
        if output is not None or validator is not None:
            outputs = outputs_of(self._output if output is None else output, validator, self.retries)
        return Asked(outputs, settings or self.settings)

    def _question(self, content: tuple[Content, ...]) -> tuple[Message, ...]:
        """The messages of a question, after the instructions where they are new or changed."""
        said: list[Message] = []
        parts: list[str | KnownPart] = []
        for item in (*content, None):
            if (item is None or isinstance(item, Message)) and parts:
                said.append(sabir.user(*parts))
                parts = []
            if isinstance(item, Message):
                said.append(item)
            elif item is not None:
                parts.append(item)
        wanted = (self.instructions,) if isinstance(self.instructions, str) else self.instructions
        if not said or not any(wanted):
            return tuple(said)
        instructions = sabir.system(*wanted)
        recorded = [message for message in self.messages if message.policy == instructions.policy]
        if recorded and recorded[-1].payload == instructions.payload:
            return tuple(said)
        if recorded and self._kept.is_restored:
            changed = f"the instructions of the conversation {self.name!r} changed since they were recorded"
            logger.warning("%s; the new ones are said with the next question", changed)
        return (instructions, *said)

    def _performer(
        self, made: type[Performer], evaluation: Evaluation, asked: Asked, reader: people.Reader | None
    ) -> Performer:
        how = EvaluationArguments(
            options=self.options,
            settings=asked.settings,
            strict=self.strict,
            budget=self.budget,
            approve=self.approve,
            watch=self.watch,
        )
        return performer_of(made, self.adapter, self._kept.session, evaluation, asked.outputs, how, reader)

    async def _answered(
        self, made: type[Performer], content: tuple[Content, ...], asked: Asked, reader: people.Reader | None
    ) -> Answer[Any]:
        with self._kept.asking():
            if self._kept.is_unfinished:
                finishing = Asked(self._outputs, self.settings) if content else asked
                await self._finish(made, finishing, reader)
            if content:
                self._begin(made, self._question(content), asked)
            elif self._kept.evaluation is None:
                nothing = f"nothing was asked in the conversation {self.name!r}"
                raise ConversationNotFound(f"{nothing}, so there is nothing to finish; ask something")
            return await self._finish(made, asked, reader)

    def _begin(self, made: type[Performer], question: tuple[Message, ...], asked: Asked) -> None:
        """Record a question that the model can be asked; raises what rendering it raises, and then records nothing."""
        kept, messages = self._kept, [*self.messages, *question]
        evaluation = kept.evaluation or begin(Prompt(messages=question), str(getattr(self.adapter, "speaks_as", "llm")))
        io = self._performer(made, evaluation, asked, None)
        self.adapter.render(messages, **io.how)
        records = evaluation.unrecorded if kept.evaluation is None else evaluation.follow(*question)
        for record in records:
            io.record(record)
        kept.evaluation, evaluation.unrecorded = evaluation, ()

    async def _finish(self, made: type[Performer], asked: Asked, reader: people.Reader | None) -> Answer[Any]:
        evaluation = self._kept.evaluation
        assert evaluation is not None
        io = self._performer(made, evaluation, asked, reader)
        try:
            output = await proceed(evaluation, io)
        except sabir.CallError as error:
            error.add_note("The question is kept: ask() tries again, drop_last() takes it back.")
            raise
        messages, replies = evaluation.last_turn
        return Answer(replies, messages, output)
