"""The four methods that ask a question: async or sync, with the complete answer or with a stream of events.

chat.ask("…", output=Trip | Hotel) ──▶ Answer[Trip | Hotel]        a type, or the return type of a function
chat.ask("…") ──▶ Answer[Output]                                   the conversation's own output type
"""

import sys
from abc import ABCMeta, abstractmethod
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Generic, NamedTuple, Never, TypeAlias, TypedDict, TypeVar, Unpack, overload

from sabir import Message, Settings
from sabir.authoring import AsyncClosing, KnownPart, SyncClosing
from typing_extensions import TypeAliasType, TypeForm

from sabir_session.conversation.answers import Answer, AnswerStream, SyncAnswerStream
from sabir_session.conversation.event_buffers import Reading
from sabir_session.evaluation.evaluate import to_its_end
from sabir_session.evaluation.outputs import Outputs
from sabir_session.evaluation.performers import LoopPerformer, Performer, SyncPerformer
from sabir_session.evaluation.prompts import Output, Validator

Wanted = TypeVar("Wanted")
Content = TypeAliasType("Content", str | KnownPart | Message)
"""One item of a question: a text, a part such as `sabir.image(…)`, or a message. Neighbouring texts and parts become
one message of the user."""


AsyncFunction: TypeAlias = Callable[..., Coroutine[Any, Any, Wanted]]


class How(TypedDict, Generic[Wanted], total=False):
    """The optional arguments of one question: `settings` override the conversation's settings field by field, and
    `output_validator` replaces the conversation's validator.
    """

    output_validator: Validator[Wanted] | None
    settings: Settings | None


OWN: Any = type("_Own", (), {"__repr__": lambda self: "…"})()
"""The default of `output` in `ask`: the conversation's own output. The default of `instructions` in Conversation: the
recorded instructions. None is not the default, because `output=None` means text."""


class Asked(NamedTuple):
    """The output and the settings with which one question is answered."""

    outputs: Outputs[Any] | None
    settings: Settings | None
    is_own: bool
    """Whether both are the conversation's own, because the question passed neither."""


class _HelpPage(ABCMeta):
    """The metaclass of classes whose help() lists public names only. `dir()` of such a class lists all names.

    It is an ABCMeta, so that a user's class can have a Conversation and an ABC as its bases.
    """

    def __dir__(cls) -> list[str]:
        """Return the names of the class. `inspect.classify_class_attrs`, which help() calls, gets the public names."""
        names = list(super().__dir__())
        if sys._getframe(1).f_code.co_name != "classify_class_attrs":
            return names
        return [name for name in names if not name.startswith("_")]  # the class's own signature is shown above them


class Asking(SyncClosing, AsyncClosing, Generic[Output], metaclass=_HelpPage):
    """The methods of a Conversation that ask a question."""

    @overload
    async def ask(self, *content: Content, output: TypeForm[Wanted], **how: Unpack[How[Wanted]]) -> Answer[Wanted]: ...
    @overload
    async def ask(
        self, *content: Content, output: AsyncFunction[Wanted], **how: Unpack[How[Wanted]]
    ) -> Answer[Wanted]: ...
    @overload
    async def ask(
        self, *content: Content, output: Callable[..., Wanted], **how: Unpack[How[Wanted]]
    ) -> Answer[Wanted]: ...
    @overload
    async def ask(self, *content: Content, **how: Unpack[How[Output]]) -> Answer[Output]: ...
    async def ask(
        self,
        *content: Content,
        output: Any = OWN,  # by the overloads
        output_validator: Validator[Any] | None = None,
        settings: Settings | None = None,
        **misnamed: Never,
    ) -> Answer[Any]:
        """Ask a question. Return the answer when the model has answered and all its option calls have results.

        `output` is the type of this answer, or a function to call with the model's values; None means text. `settings`
        override the conversation's settings field by field. `output_validator` replaces the conversation's validator
        for this question. Without content, `ask` finishes the last question, or returns its answer again; an output
        function then runs again. An unfinished earlier question is finished first, unless you `drop_last()`.

        Raises RenderingRefused before anything is recorded; CallError, ApprovalPending or BudgetExhausted, after which
        `ask()` continues; OutputError if the answer does not fit after the last retry; ConversationBusy while another
        question is being answered; ConversationNotFound without content if nothing was asked; OptionInvalid,
        SettingsInvalid or WrongWord for wrong arguments; RecordingFailed, or StoreError if the conversation is closed.

        >>> import asyncio, sabir_session
        >>> asyncio.run(sabir_session.Conversation("echo:m").ask("41", output=int)).output
        41
        """
        return await self._answered(
            LoopPerformer, content, self._asked(output, output_validator, settings, misnamed), None
        )

    @overload
    def ask_sync(self, *content: Content, output: TypeForm[Wanted], **how: Unpack[How[Wanted]]) -> Answer[Wanted]: ...
    @overload
    def ask_sync(
        self, *content: Content, output: AsyncFunction[Wanted], **how: Unpack[How[Wanted]]
    ) -> Answer[Wanted]: ...
    @overload
    def ask_sync(
        self, *content: Content, output: Callable[..., Wanted], **how: Unpack[How[Wanted]]
    ) -> Answer[Wanted]: ...
    @overload
    def ask_sync(self, *content: Content, **how: Unpack[How[Output]]) -> Answer[Output]: ...
    def ask_sync(
        self,
        *content: Content,
        output: Any = OWN,  # by the overloads
        output_validator: Validator[Any] | None = None,
        settings: Settings | None = None,
        **misnamed: Never,
    ) -> Answer[Any]:
        """Sync version of `ask`. Blocks the thread, runs options one by one, and raises for coroutine functions.
        >>> import sabir_session
        >>> sabir_session.Conversation("echo:m").ask_sync("Hello!").text
        'Hello!'
        """
        asked = self._asked(output, output_validator, settings, misnamed)
        return to_its_end(self._answered(SyncPerformer, content, asked, None))

    @overload
    def stream(
        self, *content: Content, output: TypeForm[Wanted], **how: Unpack[How[Wanted]]
    ) -> AnswerStream[Wanted]: ...
    @overload
    def stream(
        self, *content: Content, output: AsyncFunction[Wanted], **how: Unpack[How[Wanted]]
    ) -> AnswerStream[Wanted]: ...
    @overload
    def stream(
        self, *content: Content, output: Callable[..., Wanted], **how: Unpack[How[Wanted]]
    ) -> AnswerStream[Wanted]: ...
    @overload
    def stream(self, *content: Content, **how: Unpack[How[Output]]) -> AnswerStream[Output]: ...
    def stream(
        self,
        *content: Content,
        output: Any = OWN,  # by the overloads
        output_validator: Validator[Any] | None = None,
        settings: Settings | None = None,
        **misnamed: Never,
    ) -> AnswerStream[Any]:
        """Ask a question and return the answer as a stream of events. The arguments are the same as in `ask`.

        The question is sent when the first event is read, where the errors of `ask` are raised; only errors of `output`
        and of unknown arguments are raised at once. Events of an unfinished earlier question come first, with another
        `question` id, and are not part of the stream's `text`.

        >>> import asyncio, sabir_session
        >>> async def texts(chat: sabir_session.Conversation) -> list[str]:
        ...     async with chat.stream("Hello there!") as stream:
        ...         return [text async for text in stream.text]
        >>> asyncio.run(texts(sabir_session.Conversation("echo:m")))
        ['Hello ', 'there!']
        """
        asked = self._asked(output, output_validator, settings, misnamed)
        return AnswerStream(lambda reading: self._answered(LoopPerformer, content, asked, reading), asked.outputs)

    @overload
    def stream_sync(
        self, *content: Content, output: TypeForm[Wanted], **how: Unpack[How[Wanted]]
    ) -> SyncAnswerStream[Wanted]: ...
    @overload
    def stream_sync(
        self, *content: Content, output: AsyncFunction[Wanted], **how: Unpack[How[Wanted]]
    ) -> SyncAnswerStream[Wanted]: ...
    @overload
    def stream_sync(
        self, *content: Content, output: Callable[..., Wanted], **how: Unpack[How[Wanted]]
    ) -> SyncAnswerStream[Wanted]: ...
    @overload
    def stream_sync(self, *content: Content, **how: Unpack[How[Output]]) -> SyncAnswerStream[Output]: ...
    def stream_sync(
        self,
        *content: Content,
        output: Any = OWN,  # by the overloads
        output_validator: Validator[Any] | None = None,
        settings: Settings | None = None,
        **misnamed: Never,
    ) -> SyncAnswerStream[Any]:
        """Sync version of `stream`. The question is answered in the thread that reads, and only while it reads."""
        asked = self._asked(output, output_validator, settings, misnamed)
        return SyncAnswerStream(lambda reading: self._answered(SyncPerformer, content, asked, reading), asked.outputs)

    @abstractmethod
    def _asked(
        self,
        output: object,
        validator: Validator[Any] | None,
        settings: Settings | None,
        misnamed: Mapping[str, object],
    ) -> Asked:
        """Return the output and the settings of a question. Raises WrongWord for an argument of another library."""

    @abstractmethod
    async def _answered(
        self, performer_class: type[Performer], content: tuple[Content, ...], asked: Asked, reading: Reading[Any] | None
    ) -> Answer[Any]:
        """Record and answer a question with a performer of that class. `reading` receives the events of a stream."""
