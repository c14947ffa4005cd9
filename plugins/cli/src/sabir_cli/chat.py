"""`sabir chat`: talk to a model, once or in a loop.

PROMPT, or a pipe ──▶ one turn ──▶ text          no PROMPT on a terminal ──▶ a loop, until /quit or Ctrl-D
"""

import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import sabir
from cyclopts import Parameter

from sabir_cli.conversation import Spoken, converse
from sabir_cli.exits import Exit, UsageError
from sabir_cli.inputs import (
    STDIN_TOO,
    JSONFlag,
    ModelFlag,
    OptionFlags,
    choose_model,
    content,
    load_options,
    read_prompt,
)
from sabir_cli.output import Output

QUIT = ("/quit", "/exit")


def chat(
    prompt: Annotated[str | None, STDIN_TOO, Parameter(help="What to say; - reads standard input.")] = None,
    /,
    *,
    model: ModelFlag = None,
    system: Annotated[str | None, Parameter(help="Instructions to the model.")] = None,
    image: Annotated[
        list[str] | None, Parameter(negative="", help="URL or file of an image to show; repeatable.")
    ] = None,
    option: OptionFlags = None,
    history: Annotated[
        Path | None, Parameter(help="File of a conversation: it is continued, and saved after each turn.")
    ] = None,
    base_url: Annotated[str | None, Parameter(help="Another endpoint of the same kind.")] = None,
    as_json: JSONFlag = False,
) -> int:
    """Talk to a model: one PROMPT, a pipe, or a loop on a terminal.

    The text goes to standard output as it comes; calls, results, usage and losses to standard error.
    """
    output = Output(machine=as_json)
    options = load_options(option)
    is_loop = prompt is None and sys.stdin is not None and sys.stdin.isatty()
    if is_loop and as_json:
        raise UsageError("--json answers one prompt; give a PROMPT, or pipe one")
    with sabir.adapter(choose_model(model), base_url=base_url) as llm:
        session = _Session(llm, options, output, history)
        if system is not None:
            session.messages.append(sabir.system(system))
        if is_loop:
            return session.loop(image)
        text = prompt if prompt is not None and prompt != "-" else read_prompt()
        spoken = session.turn(content(text, image))
        if as_json:
            output.document(session.document(spoken))
        return Exit.FAILED if spoken.failed else Exit.OK


class _Session:
    """A conversation with one model, and the file that keeps it."""

    def __init__(
        self, llm: sabir.ModelAdapter, options: Sequence[sabir.Option], output: Output, history: Path | None
    ) -> None:
        self.llm = llm
        self.options = options
        self.output = output
        self.history = history
        self.messages = _begin(history)

    def turn(self, message: sabir.Message) -> Spoken:
        """Say something and hear all of the answer; what fails leaves the conversation as it was."""
        messages = [*self.messages, message]
        last: Spoken | None = None
        for last in converse(self.llm, messages, self.options, self.output):
            self.output.note(f"usage  {last.summary()}")
        assert last is not None
        self.messages = messages
        if self.history is not None:
            sabir.save(self.history, self.messages)
        return last

    def loop(self, images: Sequence[str] | None) -> int:
        """Turns until the user leaves. A failed or interrupted turn is forgotten, and the next one is asked for."""
        self.output.note(f"{self.llm.target} · /quit or Ctrl-D leaves, Ctrl-C stops a reply")
        while (text := self._ask()) is not None:
            if not text.strip():
                continue
            message = content(text, images)
            try:
                self.turn(message)
                images = None
            except KeyboardInterrupt:
                self.output.note("stopped; this turn is forgotten")
            except (sabir.CallError, sabir.OutputError, sabir.RenderingRefused) as error:
                self.output.error(f"{error} (this turn is forgotten)")
        return Exit.OK

    def _ask(self) -> str | None:
        """What the user types; None where he leaves. Ctrl-C gives up a line, and leaves from an empty one."""
        import_line_editing()
        try:
            text = input("you> ")
        except (EOFError, KeyboardInterrupt):
            self.output.note("")
            return None
        return None if text.strip() in QUIT else text

    def document(self, last: Spoken) -> dict[str, Any]:  # whatever JSON holds
        """The turn as `--json` gives it; `messages` is a history that `sabir render` reads."""
        reply = last.reply.model_dump(mode="json", exclude={"messages", "alternatives", "details_json"})
        messages = [message.model_dump(mode="json", exclude_none=True) for message in self.messages]
        return {"text": last.reply.text, **reply, "tokens_per_second": last.rate, "messages": messages}


def _begin(history: Path | None) -> list[sabir.Message]:
    if history is None:
        return []
    if history.exists():
        return sabir.load(history)
    if not history.parent.is_dir():
        raise UsageError(f"--history {str(history)!r}: there is no folder {str(history.parent)!r}; make it first")
    return []


def import_line_editing() -> None:
    """Let `input` edit lines and remember them, where the platform can."""
    with suppress(ImportError):
        import readline  # noqa: F401  # importing it is what does it
