"""Show an answer as it arrives: text on standard output; calls, results, losses and a last line on standard error.

Conversation.watch ──event──▶ AnswerPrinter ── text ──▶ as Markdown on a terminal, else unchanged
                                            └─ call, result, loss ──▶ a line each
status_line ──▶ model · tokens · cost · losses
"""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from decimal import Decimal
from typing import Protocol

import sabir
import sabir_session
from sabir.authoring import one_line

from sabir_cli.conversation import TimedReply, describe_call, describe_native, describe_result
from sabir_cli.losses import loss_describer
from sabir_cli.output import Output


class Writer(Protocol):
    """An object that shows the text of replies."""

    def write(self, text: str) -> None:
        """Show the next piece of the text."""

    def end(self) -> None:
        """End the text, whether it is complete or not."""


class PlainWriter:
    """A writer that prints the text without formatting it."""

    def __init__(self, output: Output) -> None:
        self.write, self.end = output.write, output.end_line


class NullWriter:
    """A writer that shows nothing. Used with --output, because then the typed output is printed instead of the text."""

    def write(self, text: str) -> None:
        """Do nothing."""

    def end(self) -> None:
        """Do nothing."""


def writer_for(output: Output, *, plain: bool) -> Writer:
    """Return a MarkdownWriter if `plain` is False, --json is not given, and standard output is a terminal with colours
    and Unicode. Otherwise return a PlainWriter.
    """
    out = output.out
    if plain or output.machine or out.no_color or not out.is_terminal or out.is_dumb_terminal or out.options.ascii_only:
        return PlainWriter(output)
    from sabir_cli.chat.markdown import MarkdownWriter

    return MarkdownWriter(out)


class OutputClosed(BaseException):
    """Raised if the output cannot be written, for example because a pipe was closed. `error` is the OSError.

    A BaseException, so that no code between the printer and ConsoleChat catches it with `except Exception`.
    """

    def __init__(self, error: OSError) -> None:
        super().__init__(str(error))
        self.error = error


class AnswerPrinter(ExitStack):
    """Shows the events of one answer. `replies` lists its replies, and `ran` the names of the options that ran."""

    def __init__(
        self, output: Output, writer: Writer, target: object, messages: Callable[[], Sequence[sabir.Message]]
    ) -> None:
        super().__init__()
        self._messages = messages
        self._output, self._writer, self._target = output, writer, target
        self.replies: list[TimedReply] = []
        self.ran: list[str] = []
        self._times: list[float] = []
        self.callback(writer.end)

    def __call__(self, event: sabir_session.Event) -> None:
        """Show one event. Raises OutputClosed if the output cannot be written."""
        try:
            self._print_event(event)
        except OSError as error:
            raise OutputClosed(error) from None

    def _print_event(self, event: sabir_session.Event) -> None:
        match event:
            case sabir_session.RequestStarted():
                self._times = []
                self._arrived = self.enter_context(self._output.waiting(f"waiting for {self._target}"))
            case sabir_session.TextArrived(text):
                if not self._times:
                    self._arrived()
                self._writer.write(text)
                self._times.append(time.perf_counter())
            case sabir_session.ReplyArrived(reply):
                self._end_reply(reply)
                self._output.losses(reply.losses, loss_describer(self._messages()))
            case sabir_session.CallStarted(call):
                self.ran.append(call.call.option_name)
                self._output.note(f"call   {describe_call(call)}")
            case sabir_session.CallEnded(_, result):
                failed = result.result is not None and result.result.is_error
                self._output.note(f"result {describe_result(result)}", "red" if failed else "dim")

    def _end_reply(self, reply: sabir.Reply) -> None:
        """End the text of a reply. Print a line for each call of the vendor's own tools and its result, and a line if
        the model refused or the reply is incomplete.

        If the reply has no text, the text of a refusal is written instead.
        """
        self._arrived()
        if reply.refusal and not reply.text:
            self._writer.write(reply.refusal)
        self._writer.end()
        for part in (part for message in reply.messages for part in message.parts):
            if isinstance(part, sabir.NativeCallPart | sabir.NativeResultPart):
                self._output.note(f"vendor {describe_native(part)}")
        if ending := ending_of(reply):
            self._output.note(ending, "yellow")
        self.replies.append(TimedReply(reply, self._times[-1] - self._times[0] if self._times else 0.0))


ENDINGS: Mapping[str, str] = {
    "length": "the answer is cut off at its length limit; raise --max-output-tokens",
    "content_filter": "the provider's content filter stopped the answer",
    "error": "the provider failed before the answer was complete",
}
"""Finish reason of an incomplete reply → the line for the user."""


def ending_of(reply: sabir.Reply) -> str:
    """Return the line that tells the user that a reply is refused or incomplete; "" for any other reply."""
    if reply.refusal is not None:
        return "the model refused" + (f": {one_line(reply.refusal)}" if reply.text else "")
    return ENDINGS.get(reply.finish_reason, "")


def status_line(
    model: object,
    usage: sabir.Usage,
    cost: Decimal | None,
    losses: Sequence[sabir.Loss],
    last: TimedReply | None,
    cache: sabir_session.PromptCacheReport | None = None,
) -> str:
    """Return the line after an answer: model, tokens, cost if known, finish reason if not "stop", speed of the last
    reply, number of losses, and what a prompt cache gave if it is known.
    """
    facts = [str(model), str(usage)]
    if cost is not None:
        facts.append(f"${format_money(cost)}")
    if last is not None and last.reply.finish_reason != "stop":
        facts.append(last.reply.finish_reason)
    if last is not None and last.rate is not None:
        facts.append(f"{last.rate:.1f} tokens/s")
    if losses:
        facts.append(f"{len(losses)} {'loss' if len(losses) == 1 else 'losses'}")
    if cache is not None and cache.outcome in ("hit", "changed", "missed"):
        facts.append(str(cache))
    return " · ".join(facts)


def format_money(amount: Decimal) -> str:
    """Return an amount of money as text, rounded to two significant digits, but never to fewer than two decimals:
    12.346 becomes "12.35", and 0.00123 becomes "0.0012".
    """
    rounded = amount.quantize(Decimal(1).scaleb(min(-2, amount.adjusted() - 1))) if amount else Decimal("0.00")
    return f"{rounded:f}"
