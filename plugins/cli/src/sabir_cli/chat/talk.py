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

from sabir_cli.chat.entry import unechoed
from sabir_cli.chat.home import SYSTEM
from sabir_cli.chat.shown import ENDINGS, NobodyReads, Shown, Unseen, Writer, status
from sabir_cli.chat.summaries import USER
from sabir_cli.conversation import needs_loop
from sabir_cli.dialects import target_label
from sabir_cli.losses import loss_describer
from sabir_cli.output import Output, UsageError

LONGEST_QUOTED = 60
"""Maximum length of a quoted message in characters."""
LONGEST_ANSWER = 200
"""Maximum length of an earlier answer that is shown, in characters."""
Part: TypeAlias = sabir.MediaPart | sabir.TextPart
Said: TypeAlias = str | Part | sabir.Message
Answer: TypeAlias = "sabir_session.Answer[Any]"  # its output is of the type that the user named


UNFINISHED = "/retry continues it, /drop removes it"
ASK_AGAIN = "/retry asks it again"


class Outcome(NamedTuple):
    """What `recover` did with a turn that failed or was stopped: a text for the user, and the remedy."""

    is_kept: bool
    """Whether the unfinished turn is still in the conversation."""
    text: str
    remedy: str


def quoted(said: Said) -> str:
    """Return the last text of a message in one line, which is the user's text, because attachments precede it."""
    parts = (said,) if isinstance(said, Part) else said.parts if isinstance(said, sabir.Message) else ()
    text = said if isinstance(said, str) else next((part.text for part in reversed(parts) if part.kind == "text"), "")
    return one_line(text, LONGEST_QUOTED)


class Talk:
    """One conversation whose answers are shown to the user. With `shows_output`, the typed output of an answer is
    printed instead of its text.
    """

    def __init__(
        self, chat: "sabir_session.Conversation[Any]", output: Output, writer: Writer, *, shows_output: bool = False
    ) -> None:
        self.chat, self.output, self.shows_output = chat, output, shows_output
        self.writer: Writer = Unseen() if shows_output else writer
        self.attached: list[Part | sabir.Message] = []
        """Attachments of the next message."""
        self.taken_back: tuple[Said, ...] = ()
        """The text of a turn that failed and was discarded, for /retry; () otherwise. Its attachments are in `attached`
        again.
        """
        self.saved: set[Path] = set()
        """The files that /save wrote in this chat, which /save may overwrite."""
        self.answer: Answer | None = None
        self.shown = Shown(output, writer, self.target, lambda: chat.messages)
        self._asked: tuple[Said, ...] = ()
        self._with: tuple[Part | sabir.Message, ...] = ()
        self._is_retry = False
        self._history: list[object] = []  # the payloads of a history from --from that begins with instructions

    @property
    def target(self) -> str:
        """The present model string, with the dialect if it is not the provider's default."""
        return target_label(self.chat.adapter.target)

    @property
    def is_begun(self) -> bool:
        """Whether the conversation has a message of the user."""
        return any(message.policy == USER for message in self.chat.messages)

    def say(self, *said: Said) -> Answer:
        """Send a message with the attachments, and show and return the answer. An interrupted turn is finished first.

        Raises the errors of `Conversation.ask`, OutputError if the model calls options without end, and OSError if
        standard output is closed. Call `recover` after an error.
        """
        if self.chat.unfinished:
            self.finish()
        self._asked, self._with = said, tuple(self.attached)
        self.attached, self.taken_back = [], ()
        given = [each for each in (*self._with, *said) if isinstance(each, sabir.Message)]
        if given and given[0].policy == SYSTEM:
            self._history = [message.payload for message in given]
        return self._ask(*self._with, *said)

    def finish(self) -> Answer:
        """Finish the interrupted turn, and show and return its answer. Raises what `say` raises."""
        self._asked = ()
        return self._ask()

    def catch_up(self) -> None:
        """Finish the interrupted turn, and print the beginning of its answer as a note. Raises what `say` raises."""
        writer, shows_output = self.writer, self.shows_output
        self.writer, self.shows_output = Unseen(), False
        try:
            answer = self.finish()
        finally:
            self.writer, self.shows_output = writer, shows_output
        self.output.note(f"the previous turn is finished: {one_line(answer.text, LONGEST_ANSWER)}")

    def repeat(self) -> Answer:
        """Finish an interrupted turn, or else show the last answer again.

        Raises UsageError if the conversation is empty, and what `say` raises.
        """
        self._refuse_nothing()
        answer = self.finish()
        if not self.shown.heard and not self.shows_output:  # the turn was complete: its record has the answer
            self.writer.write(answer.text)
            self.writer.end()
        return answer

    def retry(self) -> Answer:
        """Finish an interrupted turn, or ask the question of a discarded turn again, or else the last question.

        The old answer is replaced only when the new answer is complete. Raises UsageError if the conversation is empty,
        OutputError if the provider failed before the answer was complete, and what `say` raises. Call `recover` after
        an error.
        """
        if self.chat.unfinished:
            return self.finish()
        if self.taken_back:
            return self.say(*self.taken_back)
        self._refuse_nothing()
        attached = [*self.attached]
        self._is_retry = True
        try:
            with self.chat.replacing_last() as messages:
                answer = self.say(*self._asked_in(messages))
                if answer.reply.finish_reason == "error":
                    raise OutputError(ENDINGS["error"], answer.reply)
        except BaseException:
            self.attached = attached
            raise
        self._is_retry = False
        return answer

    def drop(self) -> str:
        """Remove the attachments of the next message, or if there are none the last turn. Return a line for the user.

        The attachments and the history of a removed turn are attached to the next message again. If the last turn
        failed and was discarded already, its attachments stay, and nothing is removed. Raises UsageError if the
        conversation is empty.
        """
        if self.taken_back and len(self.attached) <= len(self._with):  # nothing was attached since
            *_, said = self.taken_back
            self.taken_back = ()
            still = f"; {len(self.attached)} still attached" if self.attached else ""
            return f"nothing to drop: “{quoted(said)}” had already been discarded{still}"
        if self.attached:
            count, self.attached = len(self.attached), []
            return f"removed: {count} attachment{'s' * (count > 1)}"
        self._refuse_nothing()
        *before, said = self._dropped()
        self.attached = [*before]
        return f"removed: {quoted(said)}"

    def _dropped(self) -> tuple[sabir.Message, ...]:
        """Remove the last turn from the conversation, and return the messages of its question."""
        return self._asked_in(self.chat.drop_last())

    def _asked_in(self, turn: Sequence[sabir.Message]) -> tuple[sabir.Message, ...]:
        """Return the messages of a turn up to the question, without the instructions at their start.

        The conversation sends its current instructions by itself. Instructions that a history from --from begins with
        are returned.
        """
        last = max(at for at, message in enumerate(turn) if message.policy == USER)
        is_given = [message.payload for message in turn[: len(self._history)]] == self._history
        is_own = turn[0].policy == SYSTEM and not (self._history and is_given)
        return tuple(turn[is_own : last + 1])

    def switch(self, name: str) -> tuple[sabir.Loss, ...]:
        """Switch to another model. Return the losses of sending the conversation to this model; () without messages.

        Raises the errors of `sabir.adapter`, and RenderingRefused if the model cannot accept the conversation. After
        these errors, the conversation still has its earlier model.
        """
        before, self.chat.model = self.chat.model, name
        try:
            return self.chat.preview("?").losses if self.is_begun else ()
        except sabir.RenderingRefused:
            self.chat.model = before
            raise

    def tell_losses(self, losses: Sequence[sabir.Loss]) -> None:
        """Print a line for each loss, also for losses that were printed before."""
        self.output.losses(losses, loss_describer(self.chat.messages), again=True)

    def recover(self, *, stopped: bool = False) -> "Outcome | None":
        """Keep or discard the turn that was stopped or failed. Return what was done; None if the turn is complete.

        A failed turn in which an option ran is kept, so that /retry can continue it. Other failed turns, and all turns
        that the user stopped (`stopped`), are discarded; effects of options that ran remain. After a failed /retry, the
        earlier answer stays.
        """
        asked, self._asked = self._asked, ()
        ran = ", ".join(dict.fromkeys(self.shown.ran))
        if self._is_retry:
            self._is_retry = False
            return Outcome(False, f"the earlier answer is kept{f', but {ran} ran again' if ran else ''}", ASK_AGAIN)
        if not asked:
            return Outcome(True, "the previous turn is still unfinished", UNFINISHED) if self.chat.unfinished else None
        if not self.chat.unfinished and self.shown.heard:
            return None
        if ran and not stopped:
            return Outcome(True, f"this turn is kept, because {ran} ran", UNFINISHED)
        if self.chat.unfinished:
            self.chat.drop_last()
        self.taken_back = asked
        self.attached = [*self._with]
        return Outcome(False, f"this turn is discarded{f', but {ran} ran' if ran else ''}", ASK_AGAIN)

    def _ask(self, *content: Said) -> Answer:
        self.chat.watch = self.shown = Shown(self.output, self.writer, self.target, lambda: self.chat.messages)
        try:
            with unechoed(), self.shown:
                if needs_loop(self.chat.options):
                    self.answer = asyncio.run(self.chat.ask(*content))
                else:
                    self.answer = self.chat.ask_sync(*content)
        except NobodyReads as left:
            raise left.error from None
        except sabir_session.BudgetExhausted:
            heard = self.shown.heard
            if not heard:
                raise
            text = f"{self.target} called options {len(heard)} times in a row, so the turn was stopped"
            raise OutputError(text, heard[-1].reply) from None
        answer, self._asked = self.answer, ()
        if self.shows_output and not self.output.machine:
            self.output.data(json.dumps(self.plain_output, ensure_ascii=False, indent=2) + "\n")
        if self.shown.heard:
            last = self.shown.heard[-1]
            self.output.note(status(self.target, answer.usage, answer.cost, answer.losses, last))
        return answer

    @property
    def plain_output(self) -> JSONValue:
        """The last answer's output converted to JSON values; None without an answer."""
        plain: JSONValue = None if self.answer is None else to_jsonable_python(self.answer.output, fallback=str)
        return plain

    def _refuse_nothing(self) -> None:
        if not self.is_begun:
            raise UsageError("this conversation is still empty; send a message first")
