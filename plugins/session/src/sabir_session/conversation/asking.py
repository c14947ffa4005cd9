"""The four ways to ask a conversation, with the types of their answers: awaited or waiting, whole or as it arrives.

chat.ask("…", output=Trip | Hotel) ──▶ Answer[Trip | Hotel]        a type, or the return type of a function
chat.ask("…") ──▶ Answer[Output]                                   the conversation's own
"""

from abc import abstractmethod
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Generic, NamedTuple, Never, TypeAlias, TypedDict, TypeVar, Unpack, overload

from sabir import Message, Settings
from sabir.authoring import AsyncClosing, KnownPart, SyncClosing
from typing_extensions import TypeForm

from sabir_session.conversation.answers import Answer, AnswerStream, SyncAnswerStream
from sabir_session.conversation.reading import Reading
from sabir_session.evaluation.evaluate import to_its_end
from sabir_session.evaluation.outputs import Outputs
from sabir_session.evaluation.perform import LoopPerformer, Performer, SyncPerformer
from sabir_session.evaluation.prompts import Output, Validator

Wanted = TypeVar("Wanted")
Content: TypeAlias = str | KnownPart | Message
"""A text, a part such as `sabir.image(…)`, or a whole message."""


AsyncFunction: TypeAlias = Callable[..., Coroutine[Any, Any, Wanted]]


class How(TypedDict, Generic[Wanted], total=False):
    """How one question is answered: `settings` are laid over the conversation's, `output_validator` takes its place."""

    output_validator: Validator[Wanted] | None
    settings: Settings | None


OWN: Any = type("_Own", (), {"__repr__": lambda self: "…"})()
"""The default of `output`: the conversation's own. None asks for no output."""


class Asked(NamedTuple):
    """How one question is answered."""

    outputs: Outputs[Any] | None
    settings: Settings | None
    is_own: bool
    """Whether it is as the conversation's attributes say."""


class Asking(SyncClosing, AsyncClosing, Generic[Output]):
    """What can be asked."""

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
        """Ask, and return the answer once all option calls were made. Without content, finish the last question.

        An unfinished question is finished first; its answer is in the conversation's `messages`. To give it up instead,
        without paying for its answer, call `drop_last()` before. The content is texts, parts and messages.
        `output` is this answer's type, or a function to call with what the model gives, None for plain text;
        `settings` are laid over the conversation's. Without content, a finished question gives its answer again: the
        output is read again, and a function that makes it runs again.

        Raises ConversationBusy, RenderingRefused before anything is recorded, ApprovalPending for calls that wait for a
        person, BudgetExhausted, ConversationNotFound if there is nothing to finish, OutputError if the last answer does
        not fit either, RecordingFailed, and the adapter's CallErrors, after which the question is unfinished.
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
        """As `ask`, waiting; no option may be a coroutine function."""
        return to_its_end(
            self._answered(SyncPerformer, content, self._asked(output, output_validator, settings, misnamed), None)
        )

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
        """As `ask`: return the answer as it arrives. Reading the first event asks, and raises what `ask` raises.

        An unfinished question is finished first: its events have another `question` than the stream, and its text is
        not in the stream's `text`. To give that question up instead, call `drop_last()` before.
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
        """As `stream`, waiting."""
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
        """The output that a question wants, and its settings; raises WrongWord for another library's argument."""

    @abstractmethod
    async def _answered(
        self, performer_class: type[Performer], content: tuple[Content, ...], asked: Asked, reading: Reading[Any] | None
    ) -> Answer[Any]:
        """Ask, and answer by a performer of that class; `reading` takes the events."""
