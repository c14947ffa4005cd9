"""One conversation with a user: send messages, show the answers, and keep or discard a turn that failed.

say(content) ──▶ finish an interrupted turn ──▶ send ──▶ show
                                                  └─ stopped, failed ──▶ recover: discard the turn
                                                       ├─ failed after options ran ──▶ keep the turn for /retry
                                                       └─ it was /retry ──▶ keep the earlier answer
"""

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import sabir
import sabir_session
from pydantic_core import to_jsonable_python
from sabir.authoring import JSONValue, one_line
from sabir.errors import OutputError

from sabir_cli.chat.answer_printer import ENDINGS, AnswerPrinter, NullWriter, OutputClosed, Writer, status_line
from sabir_cli.chat.home import SYSTEM, AnyConversation
from sabir_cli.chat.message_reader import echo_disabled
from sabir_cli.chat.summaries import USER
from sabir_cli.conversation import needs_loop
from sabir_cli.dialects import target_label
from sabir_cli.facts import open_adapter
from sabir_cli.losses import loss_describer
from sabir_cli.output import Output, UsageError

LONGEST_QUOTED = 60
"""Maximum length of a quoted message in characters."""
LONGEST_ANSWER = 200
"""Maximum length of an earlier answer that is shown, in characters."""
Part: TypeAlias = sabir.MediaPart | sabir.TextPart
MessageContent: TypeAlias = str | Part | sabir.Message
AnyAnswer: TypeAlias = "sabir_session.Answer[Any]"  # Any: the type of its output


UNFINISHED = "/retry continues it, /drop removes it"
ASK_AGAIN = "/retry asks it again"


class Recovery(NamedTuple):
    """What `recover` did with a turn that failed or was stopped: a text for the user, and the remedy."""

    is_kept: bool
    """Whether the unfinished turn is still in the conversation."""
    text: str
    remedy: str


def quoted(content: MessageContent) -> str:
    """Return the last text of a message in one line, which is the user's text, because attachments precede it."""
    parts = (content,) if isinstance(content, Part) else content.parts if isinstance(content, sabir.Message) else ()
    texts = [content] if isinstance(content, str) else [part.text for part in parts if part.kind == "text"]
    return one_line(texts[-1] if texts else "", LONGEST_QUOTED)


class ConsoleChat:
    """A conversation on the console: sends messages and shows the answers. With `shows_output`, the typed output of an
    answer is printed instead of its text.
    """

    def __init__(
        self, conversation: AnyConversation, output: Output, writer: Writer, *, shows_output: bool = False
    ) -> None:
        self.conversation, self.output, self.shows_output = conversation, output, shows_output
        self.writer: Writer = NullWriter() if shows_output else writer
        self.attachments: list[Part | sabir.Message] = []
        """Attachments of the next message."""
        self.discarded: tuple[MessageContent, ...] = ()
        """The text of a turn that failed or was stopped and was discarded, for /retry; () otherwise. Its attachments
        are in `attachments` again.
        """
        self.saved: set[Path] = set()
        """The files that /save wrote in this chat, which /save may overwrite."""
        self.answer: AnyAnswer | None = None
        self.printer = AnswerPrinter(output, writer, self.target, lambda: conversation.messages)
        self._last_content: tuple[MessageContent, ...] = ()
        self._last_attachments: tuple[Part | sabir.Message, ...] = ()
        self._is_retry = False
        self._adapters: dict[str, sabir.ModelAdapter] = {}
        self._imported_payloads: list[object] = []  # of a history from --from that begins with instructions

    @property
    def target(self) -> str:
        """The present model string, with the dialect if it is not the provider's default."""
        return target_label(self.conversation.adapter.target)

    @property
    def has_question(self) -> bool:
        """Whether the conversation has a message of the user."""
        return any(message.policy == USER for message in self.conversation.messages)

    def say(self, *content: MessageContent) -> AnyAnswer:
        """Send a message with the attachments, and show and return the answer. An interrupted turn is finished first.

        Raises the errors of `Conversation.ask`, OutputError if the model only calls options until the turn's budget is
        used up, and OSError if the output cannot be written. Call `recover` after an error.
        """
        if self.conversation.unfinished:
            self.finish()
        self._last_content, self._last_attachments = content, tuple(self.attachments)
        self.attachments, self.discarded = [], ()
        messages = [each for each in (*self._last_attachments, *content) if isinstance(each, sabir.Message)]
        if messages and messages[0].policy == SYSTEM:
            self._imported_payloads = [message.payload for message in messages]
        return self._request_answer(*self._last_attachments, *content)

    def finish(self) -> AnyAnswer:
        """Finish the interrupted turn, and show and return its answer. Raises what `say` raises."""
        self._last_content = ()
        return self._request_answer()

    def catch_up(self) -> None:
        """Finish the interrupted turn, and print the beginning of its answer as a note. Raises what `say` raises."""
        writer, shows_output = self.writer, self.shows_output
        self.writer, self.shows_output = NullWriter(), False
        try:
            answer = self.finish()
        finally:
            self.writer, self.shows_output = writer, shows_output
        self.output.note(f"the previous turn is finished: {one_line(answer.text, LONGEST_ANSWER)}")

    def repeat(self) -> AnyAnswer:
        """Finish an interrupted turn, or else show the last answer again.

        Raises UsageError if the conversation is empty, and what `say` raises.
        """
        self._refuse_empty()
        answer = self.finish()
        if not self.printer.replies and not self.shows_output:  # the turn was complete: its record has the answer
            self.writer.write(answer.text)
            self.writer.end()
        return answer

    def retry(self) -> AnyAnswer:
        """Finish an interrupted turn, or ask the question of a discarded turn again, or else the last question.

        The old answer is replaced only if the new answer arrives without an error. Raises UsageError if the
        conversation is empty, OutputError if the provider failed before the answer was complete, and what `say` raises.
        Call `recover` after an error.
        """
        if self.conversation.unfinished:
            return self.finish()
        if self.discarded:
            return self.say(*self.discarded)
        self._refuse_empty()
        attachments = [*self.attachments]
        self._is_retry = True
        try:
            with self.conversation.replacing_last() as messages:
                answer = self.say(*self._question_of(messages))
                if answer.reply.finish_reason == "error":
                    raise OutputError(ENDINGS["error"], answer.reply)
        except BaseException:
            self.attachments = attachments
            raise
        self._is_retry = False
        return answer

    def drop(self) -> str:
        """Remove the attachments of the next message, or if there are none the last turn. Return a line for the user.

        The attachments and the history of a removed turn are attached to the next message again. If the last turn
        failed and was discarded already, its attachments stay, and nothing is removed. Raises UsageError if the
        conversation is empty.
        """
        if self.discarded and len(self.attachments) <= len(self._last_attachments):  # nothing was attached since
            *_, content = self.discarded
            self.discarded = ()
            still = f"; {len(self.attachments)} still attached" if self.attachments else ""
            return f"nothing to drop: “{quoted(content)}” had already been discarded{still}"
        if self.attachments:
            count, self.attachments = len(self.attachments), []
            return f"removed: {count} attachment{'s' * (count > 1)}"
        self._refuse_empty()
        *attachments, content = self._question_of(self.conversation.drop_last())
        self.attachments = [*attachments]
        return f"removed: {quoted(content)}"

    def _question_of(self, turn: Sequence[sabir.Message]) -> tuple[sabir.Message, ...]:
        """Return the messages of a turn up to the question, without the instructions at their start.

        The conversation sends its current instructions by itself. Instructions that a history from --from begins with
        are returned.
        """
        last = max(at for at, message in enumerate(turn) if message.policy == USER)
        is_imported = [message.payload for message in turn[: len(self._imported_payloads)]] == self._imported_payloads
        is_own = turn[0].policy == SYSTEM and not (self._imported_payloads and is_imported)
        return tuple(turn[is_own : last + 1])

    def switch(self, name: str) -> tuple[sabir.Loss, ...]:
        """Switch to another model. Return the losses of sending the conversation to this model; () without messages.

        Raises the errors of `open_adapter`, and RenderingRefused if the model cannot accept the conversation. After
        these errors, the conversation still has its earlier model.
        """
        adapter = self._adapters.get(name) or open_adapter(name)
        self._adapters[name] = adapter
        before, self.conversation.model = self.conversation.model, adapter
        try:
            return self.conversation.preview("?").losses if self.has_question else ()
        except sabir.RenderingRefused:
            self.conversation.model = before
            raise

    def close(self) -> None:
        """Close the adapters of the models to which the chat switched."""
        for adapter in self._adapters.values():
            adapter.close()

    def print_losses(self, losses: Sequence[sabir.Loss]) -> None:
        """Print a line for each loss, also for losses that were printed before."""
        self.output.losses(losses, loss_describer(self.conversation.messages), again=True)

    def recover(self, *, stopped: bool = False) -> "Recovery | None":
        """Keep or discard the turn that was stopped or failed. Return what was done; None if the turn is complete.

        A failed turn in which an option ran is kept, so that /retry can continue it. Other failed turns, and turns that
        the user stopped (`stopped`), are discarded, but not the effects of options that ran. An interrupted turn that
        `finish` tried to finish stays unfinished. After a failed /retry, the earlier answer stays.
        """
        content, self._last_content = self._last_content, ()
        ran = ", ".join(dict.fromkeys(self.printer.ran))
        if self._is_retry:
            self._is_retry = False
            return Recovery(False, f"the earlier answer is kept{f', but {ran} ran again' if ran else ''}", ASK_AGAIN)
        if not content:
            is_unfinished = self.conversation.unfinished
            return Recovery(True, "the previous turn is still unfinished", UNFINISHED) if is_unfinished else None
        if not self.conversation.unfinished and self.printer.replies:
            return None
        if ran and not stopped:
            return Recovery(True, f"this turn is kept, because {ran} ran", UNFINISHED)
        if self.conversation.unfinished:
            self.conversation.drop_last()
        self.discarded = content
        self.attachments = [*self._last_attachments]
        return Recovery(False, f"this turn is discarded{f', but {ran} ran' if ran else ''}", ASK_AGAIN)

    def _request_answer(self, *content: MessageContent) -> AnyAnswer:
        conversation = self.conversation
        self.printer = AnswerPrinter(self.output, self.writer, self.target, lambda: conversation.messages)
        conversation.watch = self.printer
        try:
            with echo_disabled(), self.printer:
                if needs_loop(conversation.options):
                    self.answer = asyncio.run(conversation.ask(*content))
                else:
                    self.answer = conversation.ask_sync(*content)
        except OutputClosed as closed:
            raise closed.error from None
        except sabir_session.BudgetExhausted:
            replies = self.printer.replies
            if not replies:
                raise
            text = f"{self.target} called options {len(replies)} times in a row, so the turn was stopped"
            raise OutputError(text, replies[-1].reply) from None
        answer, self._last_content = self.answer, ()
        if self.shows_output and not self.output.machine:
            self.output.data(json.dumps(self.plain_output, ensure_ascii=False, indent=2) + "\n")
        if self.printer.replies:
            last = self.printer.replies[-1]
            facts = answer.usage, answer.cost, answer.losses, last, answer.prompt_cache
            self.output.note(status_line(self.target, *facts))
        return answer

    @property
    def plain_output(self) -> JSONValue:
        """The last answer's output converted to JSON values; None without an answer."""
        plain: JSONValue = None if self.answer is None else to_jsonable_python(self.answer.output, fallback=str)
        return plain

    def _refuse_empty(self) -> None:
        if not self.has_question:
            raise UsageError("this conversation is still empty; send a message first")
