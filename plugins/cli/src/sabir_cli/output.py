"""The output of commands: answers on standard output, everything else on standard error.

    out  ◀── the requested output: text, tables, JSON      a pipe receives only this
    err  ◀── calls, results, usage, losses, errors         dim on a terminal, plain elsewhere

With `--json`, standard output gets one JSON document, and standard error only errors. The terminal and NO_COLOR
determine the colours, the terminal and COLUMNS the width; rich does this. A model's or a server's text cannot control a
terminal: control characters are shown as visible text. A pipe receives a model's text unchanged, except for characters
that the output's encoding cannot represent.

This module does not import pydantic or most of the library, because `sabir chat --help` imports it and must be fast.
"""

import json
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from rich.console import Console, RenderableType
from rich.text import Text
from sabir import SabirError
from sabir.authoring import one_line, printable

if TYPE_CHECKING:
    from sabir import Loss

LOSS_STYLES = {
    "dropped": "red", "downgraded": "yellow", "relocated": "cyan",
    "rewritten": "dim", "synthesized": "dim", "withheld": "dim",
}  # fmt: skip


class _OutputConsole(Console):
    """A console that raises BrokenPipeError when it writes to a closed pipe. rich's console would exit."""

    def on_broken_pipe(self) -> NoReturn:
        """Raise BrokenPipeError, which `main` turns into the exit code PIPE."""
        raise BrokenPipeError


class Output:
    """The two output streams of one command. With `machine` (the flag --json), only `document` and `data` write to
    standard output, and only `error` to standard error.
    """

    def __init__(self, *, machine: bool = False) -> None:
        self.out: Console = _OutputConsole(highlight=False)
        self.err: Console = _OutputConsole(stderr=True, highlight=False)
        self.machine = machine
        self._within_line = False
        self._reported: set[Loss] = set()

    def show(self, *renderables: RenderableType) -> None:
        """Print tables or texts for people on standard output, each on a new line; nothing with `--json`."""
        self.end_line()
        if not self.machine:
            self.out.print(*renderables, sep="\n")

    def begin(self, text: Text) -> None:
        """Print the beginning of a line on standard output, which `write` continues; nothing with `--json`."""
        self.end_line()
        if not self.machine:
            self.out.print(text, end="")
            self._within_line = True

    @contextmanager
    def waiting(self, text: str) -> Iterator[Callable[[], None]]:
        """Show a spinner with `text` in the `with` block. Yields a function that removes the spinner earlier.

        Without a terminal, with `--json`, and after an unfinished line of text, there is no spinner.
        """
        if self.machine or self._within_line or not (self.err.is_terminal and self.out.is_terminal):
            yield lambda: None
            return
        spinner = "line" if self.err.options.ascii_only else "dots"
        with self.err.status(Text(printable(text), style="dim"), spinner=spinner) as status:
            yield status.stop

    def write(self, text: str) -> None:
        """Print the next piece of a model's text on standard output at once; nothing with `--json`."""
        if self.machine or not text:
            return
        self.out.file.write(printable(text) if self.out.is_terminal else text)
        self.out.file.flush()
        self._within_line = not text.endswith("\n")

    def end_line(self) -> None:
        """End the unfinished line of streamed text, if there is one."""
        if self._within_line:
            self._within_line = False
            self.out.file.write("\n")
            self.out.file.flush()

    def note(self, text: str, style: str = "dim") -> None:
        """Print one line on standard error, folded at a terminal's width; nothing with `--json`."""
        if not self.machine:
            self.end_line()
            self.err.print(Text(printable(text), style=style), soft_wrap=not self.err.is_terminal)

    def losses(self, losses: "Iterable[Loss]", describe: "Callable[[Loss], str]" = str, *, again: bool = False) -> None:
        """Print a line for each loss on standard error; nothing with `--json`. A loss that was printed before is
        skipped, unless `again` is True.

        `describe` returns the text of a loss.
        """
        for loss in losses:
            if again or loss not in self._reported:
                self._reported.add(loss)
                self.note(f"loss   {describe(loss)}", LOSS_STYLES[loss.kind])

    def document(self, value: Any) -> None:  # any JSON
        """Print a value as indented JSON on standard output: the document of `--json`."""
        self.data(json.dumps(value, ensure_ascii=False, indent=2) + "\n")

    def data(self, text: str) -> None:
        """Print a text for programs on standard output. To a pipe or a file it is written in UTF-8, even if the stream
        has another encoding, because JSON requires UTF-8.

        A terminal gets printable text in its own encoding. https://www.rfc-editor.org/rfc/rfc8259#section-8.1
        """
        self.end_line()
        if sys.stdout.isatty() or not hasattr(sys.stdout, "buffer"):
            sys.stdout.write(printable(text))
        else:
            sys.stdout.flush()
            sys.stdout.buffer.write(text.encode("utf-8", "replace"))
        sys.stdout.flush()

    def error(self, text: str) -> None:
        """Print "sabir: " and an error in one line on standard error, also with `--json`. Folded at a terminal's
        width.
        """
        self.end_line()
        line = Text.assemble(("sabir: ", "bold red"), one_line(text))
        self.err.print(line, soft_wrap=not self.err.is_terminal)


class UsageError(SabirError):
    """Raised for wrong arguments or unusable input of a command. The text says what to write instead."""


def refuse_replacing(named: str, path: Path, *, may_replace: bool, otherwise: str = "", remedy: str = "") -> None:
    """Check a file to write. Raises UsageError if `path` exists and is not a file, or exists and may not be replaced.

    `named` is the file's name in the error. `otherwise` is an alternative for the first error, `remedy` for the second.
    """
    if path.exists() and not path.is_file():
        raise UsageError(f"{named} is not a file; choose a file{otherwise}")
    if path.exists() and not may_replace:
        raise UsageError(f"{named} exists already; choose another file{remedy}")
