"""`sabir chat`: talk to a model, once or in a loop.

PROMPT, or a pipe ──▶ one turn ──▶ text          no PROMPT on a terminal ──▶ a loop, until /quit or Ctrl-D
"""

import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import sabir
from cyclopts import Parameter
from sabir.authoring import one_line

from sabir_cli import inputs
from sabir_cli.output import Exit, Output, UsageError

if TYPE_CHECKING:  # stores of conversations are loaded when needed, not at the start of every command
    from sabir_cli.keeping import Kept, Turn

QUIT = ("/quit", "/exit")
DROP = "/drop"


@Parameter(name="*")
@dataclass(frozen=True)
class Keep:
    """Where the conversation is kept, and what to do with its last turn."""

    history: Annotated[
        Path | None, Parameter(help="File of a conversation: it is continued, and saved after each turn.")
    ] = None
    session: Annotated[
        Path | None, Parameter(help="File of a conversation that survives a crash: recorded message by message.")
    ] = None
    resume: Annotated[
        bool | None, Parameter(help="With --session: finish an interrupted turn first, or leave it as it is.")
    ] = None
    drop_last: Annotated[
        bool, Parameter(negative="", help="Take back the last turn first: what was said, and all that came of it.")
    ] = False


NOT_KEPT = Keep()


def chat(
    prompt: Annotated[str | None, inputs.STDIN_TOO, Parameter(help="What to say; - reads standard input.")] = None,
    /,
    *,
    model: inputs.ModelFlag = None,
    system: Annotated[str | None, Parameter(help="Instructions to the model.")] = None,
    image: Annotated[
        list[str] | None, Parameter(negative="", help="URL or file of an image to show; repeatable.")
    ] = None,
    option: inputs.OptionFlags = None,
    keep: Keep = NOT_KEPT,
    base_url: Annotated[str | None, Parameter(help="Another endpoint of the same kind.")] = None,
    as_json: inputs.JSONFlag = False,
) -> int:
    """Talk to a model: one PROMPT, a pipe, or a loop on a terminal.

    The text goes to standard output as it comes; calls, results, usage and losses to standard error.
    """
    output = Output(machine=as_json)
    options = inputs.load_options(option)
    is_terminal = prompt is None and sys.stdin is not None and sys.stdin.isatty()
    if is_terminal and as_json and not keep.resume:
        raise UsageError("--json answers one prompt; give a PROMPT, or pipe one")
    with (
        sabir.adapter(inputs.choose_model(model), base_url=base_url) as llm,
        _kept(llm, options, output, keep) as kept,
    ):
        chat = _Chat(kept, output, system)
        asks = not is_terminal and (prompt is not None or not keep.resume)
        message = inputs.content(prompt if prompt not in (None, "-") else inputs.read_prompt(), image) if asks else None
        if keep.drop_last:
            chat.drop_last()
        finished = chat.finish(keep.resume)
        if message is not None:
            finished = chat.turn(message)
        if finished is None or (is_terminal and not as_json):
            return chat.loop(image)
        if as_json:
            output.document(chat.document(finished))
        return Exit.FAILED if finished.last.failed else Exit.OK


def _kept(llm: sabir.ModelAdapter, options: Sequence[sabir.Option], output: Output, keep: Keep) -> "Kept":
    from sabir_cli.keeping import Kept, Recorded

    if keep.session is None:
        return Kept(llm, options, output, keep.history)
    if keep.history is not None:
        raise UsageError("--history and --session both keep the conversation; give one")
    return Recorded(llm, options, output, keep.session)


class _Chat:
    """A conversation with one model, as a user holds it."""

    def __init__(self, kept: "Kept", output: Output, system: str | None) -> None:
        self.kept = kept
        self.output = output
        self.opening = [] if system is None else [sabir.system(system)]
        if self.opening and kept.is_resumable and kept.is_begun:
            raise UsageError("--system begins a conversation, and the one in this file has begun; leave it out")

    def finish(self, resume: bool | None) -> "Turn | None":
        """Finish the interrupted turn, as `--resume` says; raises UsageError without that option."""
        if not self.kept.is_resumable:
            if resume is not None:
                raise UsageError("--resume finishes what a session holds; give its file: --session FILE")
            return None
        if resume and self.kept.is_begun:
            turn = self.kept.turn()
            if not turn.heard:  # it was finished: its record has the answer
                self.output.write(turn.last.reply.text)
                self.output.end_line()
            return turn
        if resume:
            raise UsageError("--resume: nothing was said in this file yet; leave it out to begin")
        if resume is None and self.kept.is_interrupted:
            remedy = "--resume finishes it first, --no-resume leaves it as it is, --drop-last takes it back"
            raise UsageError(f"the last turn in this file was interrupted; {remedy}")
        return None

    def drop_last(self) -> None:
        """Take back the last turn, and say which."""
        self.output.note(f"taken back: {one_line(self.kept.drop_last(), 60)}")

    def turn(self, message: sabir.Message) -> "Turn":
        """Say something and hear all of the answer."""
        opening, self.opening = self.opening, []
        try:
            return self.kept.turn(*opening, message)
        except BaseException:
            if not self.kept.is_begun:
                self.opening = opening
            raise

    def loop(self, images: Sequence[str] | None) -> int:
        """Turns until the user leaves. A failed or interrupted turn is forgotten, and the next one begins."""
        self.output.note(f"{self.kept.llm.target} · /quit or Ctrl-D leaves, Ctrl-C stops a reply, {DROP} takes it back")
        while (text := self._ask()) is not None:
            if not text.strip():
                continue
            try:
                if text.strip() == DROP:
                    self.drop_last()
                    continue
                self.turn(inputs.content(text, images))
                images = None
            except KeyboardInterrupt:
                self.output.note(f"stopped; {self.kept.FORGOTTEN}")
            except UsageError as error:
                self.output.error(str(error))
            except (sabir.CallError, sabir.errors.OutputError, sabir.RenderingRefused) as error:
                self.output.error(f"{error} ({self.kept.FORGOTTEN})")
        return Exit.OK

    def _ask(self) -> str | None:
        """The user's input; None if the user leaves. Ctrl-C drops a line, and leaves on an empty one."""
        with suppress(ImportError):
            import readline  # noqa: F401  # the import itself lets `input` edit lines, where the platform can
        try:
            text = input("you> ")
        except (EOFError, KeyboardInterrupt):
            self.output.note("")
            return None
        return None if text.strip() in QUIT else text

    def document(self, turn: "Turn") -> dict[str, Any]:  # whatever JSON holds
        """The turn as `--json` gives it; `messages` is a history that `sabir render` reads."""
        last = turn.last
        reply = last.reply.model_dump(mode="json", exclude={"messages", "alternatives", "details_json"})
        messages = [message.model_dump(mode="json", exclude_none=True) for message in turn.messages]
        return {"text": last.reply.text, **reply, "tokens_per_second": last.rate, "messages": messages}
