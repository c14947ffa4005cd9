"""A conversation: a model, instructions and options; asked again and again, kept, and carried on by another model.

    chat = Conversation("provider:model", instructions="Be brief.", options=[weather], keep="chats.db", name="umbrella")
    answer = chat.ask_sync("Umbrella today?")          await chat.ask(…) · chat.stream(…) · chat.stream_sync(…)
    chat.model = "other:model"

    ask ──▶ finish what is unfinished ──▶ render ──▶ record the question ──▶ evaluate ──▶ Answer
                                             └─ refused: nothing is recorded, nothing is sent

It is one evaluation of `evaluate` that goes on: the same script, the same records, the same budgets and approvals.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from copy import copy
from decimal import Decimal
from itertools import groupby
from pathlib import Path
from typing import Any, Generic, Never, TypeAlias, TypedDict, Unpack, overload

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
    Usage,
)
from sabir.authoring import KnownPart, OptionLike, Strict
from sabir.errors import OptionInvalid
from typing_extensions import TypeForm

from sabir_session.conversation.answers import Answer, cost_of
from sabir_session.conversation.asking import OWN, Asked, Asking, AsyncFunction, Content, How, Wanted
from sabir_session.conversation.keeping import Kept
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
from sabir_session.evaluation.perform import Performer
from sabir_session.evaluation.prompts import (
    ApprovalPending,
    BudgetExhausted,
    ConversationNotFound,
    Output,
    Validator,
    total,
)
from sabir_session.stores.names import check_name
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


class Conversation(Asking[Output]):
    """One conversation with a model, or with several in turn. A context manager; it answers one question at a time.

    `model` is `provider:model` or an adapter, `instructions` the system message, `options` what the model may call.
    `output` is the type of answers, or a function to call; an answer that does not fit it, or that `output_validator`
    refuses by a ValueError, is asked again, `retries` times at most. `settings`, `strict`, `budget`, `approve` and
    `watch` are those of `evaluate`; a budget limits the whole conversation, its seconds each question. `keep` is where
    every message is recorded, a path or the URL of a store, under `name`; without it the conversation ends with the
    program.

    The attributes may be changed between questions. Changed `instructions` are said with the next question; empty ones
    say nothing, and take nothing back.

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
        refuse_words("Conversation", misnamed, ("output", *ConversationArguments.__annotations__))
        check_name(name)
        self._adapters: dict[str, Adapter] = {}
        self._model: str | Adapter
        self._said: object = None
        self._unanswered: Asked | None = None
        self._wanted: tuple[object, Outputs[Any] | None] | None = None
        self.model = model
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
        self._own()
        self._kept = Kept(keep, name)

    def __setattr__(self, name: str, value: object) -> None:
        """Set an attribute; raises AttributeError for a name that it lacks, SettingsInvalid for a value of no use."""
        if not name.startswith("_"):
            check_value(name, value)
        super().__setattr__(name, value)

    @property
    def model(self) -> str | Adapter:
        """The model that answers the next question, as it was given."""
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
    def options(self) -> tuple[Option, ...]:
        """What the model may call; functions and models may be given."""
        return self._options

    @options.setter
    def options(self, options: Iterable[OptionLike]) -> None:
        self._options = Option.all_of(options)

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

    def preview(self, *content: Content, output: object = OWN, settings: Settings | None = None) -> Rendering:
        """What `ask` would send first, and its losses; nothing is sent or recorded. Raises RenderingRefused."""
        requests = self._requests(self._asked(output, None, settings, {}))
        return self.adapter.render([*self.messages, *self._question(content)], **requests.how)

    def drop_last(self) -> tuple[Message, ...]:
        """Take back the last question and all that came of it; return these messages. What options did is not undone.

        Raises ConversationNotFound if nothing was asked.
        """
        dropped = self._kept.drop_last()
        self._said = self._unanswered = None
        return dropped

    def fork(self, name: str) -> "Conversation[Output]":
        """Another conversation that begins with all of this one, kept in the same place under another name.

        Raises JournalExists if the store holds a conversation of that name.
        """
        check_name(name)
        other = copy(self)
        other._adapters = {}
        other.model = self._model
        other._kept = self._kept.fork(name)
        return other

    def close(self) -> None:
        """Close the clients of the waiting methods and the store, and let other processes have the conversation."""
        self._kept.close()
        for adapter in self._adapters.values():
            adapter.close()

    async def aclose(self) -> None:
        """As `close`, after `ask` and `stream`."""
        self._kept.close()
        for adapter in self._adapters.values():
            await adapter.aclose()

    def __repr__(self) -> str:
        """The model, the name, and how long it is."""
        return f"Conversation({str(self.adapter.target)!r}, name={self.name!r}, messages={len(self.messages)})"

    def _own(self) -> Outputs[Any] | None:
        """The output that every question wants that says nothing else; its schema is made once."""
        given = (self.output, self.output_validator, self.retries)
        if self._wanted is None or self._wanted[0] != given:
            self._wanted = given, outputs_of(*given)
        return self._wanted[1]

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
            return Asked(self._own(), settings or self.settings, settings is None)
        outputs = outputs_of(self.output if output is OWN else output, validator, self.retries)
        return Asked(outputs, settings or self.settings, False)

    def _question(self, content: tuple[Content, ...]) -> tuple[Message, ...]:
        """The messages of a question: texts and parts that stand together are one; new instructions come first."""
        said: list[Message] = []
        for _, items in groupby(content, key=lambda item: isinstance(item, Message)):
            together = [*items]
            messages = [item for item in together if isinstance(item, Message)]
            said += messages or [sabir.user(*(item for item in together if not isinstance(item, Message)))]
        if any(message.policy == RUNTIME for message in said):
            raise SettingsInvalid(f"a question is of no policy {RUNTIME!r}, which complaints have; give another policy")
        instructions = self._instructions()
        if not said or instructions is None:
            return tuple(said)
        recorded = [message.payload for message in self.messages if message.policy == instructions.policy]
        if instructions.payload == (self._said or (recorded[-1] if recorded else None)):
            return tuple(said)
        if recorded and self._said is None:
            changed = f"the instructions of the conversation {self.name!r} changed since they were recorded"
            logger.warning("%s; the new ones are said with the next question", changed)
        return (instructions, *said)

    def _instructions(self) -> Message | None:
        """The instructions as a message; None if there are none."""
        content = (self.instructions,) if isinstance(self.instructions, str) else self.instructions
        return sabir.system(*content) if any(content) else None

    def _requests(self, asked: Asked) -> Requests:
        return requests_of(self.adapter, asked.outputs, self._how(asked))

    def _how(self, asked: Asked) -> EvaluationArguments:
        """How a question is evaluated."""
        return EvaluationArguments(
            options=self.options,
            settings=asked.settings,
            strict=self.strict,
            budget=self.budget,
            approve=self.approve,
            watch=self.watch,
        )

    async def _answered(
        self, made: type[Performer], content: tuple[Content, ...], asked: Asked, reader: people.Reader | None
    ) -> Answer[Any]:
        with self._kept.asking():
            if not content and asked.is_own and self._unanswered is not None:
                asked = self._unanswered
            if self._kept.is_unfinished and content:
                first = self._unanswered or Asked(self._own(), self.settings, True)
                with telling(NOT_ASKED, SabirError):
                    await self._finish(made, first, self._requests(first), reader)
            requests = self._requests(asked)
            if content:
                self._begin(made, self._question(content), asked, requests)
            elif self._kept.evaluation is None:
                nothing = f"nothing was asked in the conversation {self.name!r}"
                raise ConversationNotFound(f"{nothing}, so there is nothing to finish; ask something")
            return await self._finish(made, asked, requests, reader)

    def _begin(self, made: type[Performer], question: tuple[Message, ...], asked: Asked, requests: Requests) -> None:
        """Record a question that the model can be asked; raises what rendering it raises, and then records nothing."""
        check_functions(made, requests)
        requests.adapter.render([*self.messages, *question], **requests.how)
        self._kept.say(question, requests.speaks_as)
        self._unanswered = asked
        wanted = self._instructions()
        self._said = question[0].payload if wanted and question[0].payload == wanted.payload else self._said

    async def _finish(
        self, made: type[Performer], asked: Asked, requests: Requests, reader: people.Reader | None
    ) -> Answer[Any]:
        evaluation = self._kept.evaluation
        assert evaluation is not None
        with telling(KEPT, *UNANSWERED):
            io = performer_of(made, self._kept.session, evaluation, requests, self._how(asked), reader)
            output = await proceed(evaluation, io)
        self._unanswered = None
        messages, replies = evaluation.last_turn
        return Answer(replies, messages, output)


KEPT = "The question is kept: ask() tries again, drop_last() takes it back."
NOT_ASKED = "It came while the unfinished question was finished; the new one was not asked."
UNANSWERED = (sabir.CallError, ApprovalPending, BudgetExhausted, OptionInvalid)
"""The errors after which a question has no answer yet."""


@contextmanager
def telling(note: str, *kinds: type[sabir.SabirError]) -> Iterator[None]:
    """Add a note to errors of these kinds."""
    try:
        yield
    except kinds as error:
        error.add_note(note)
        raise
