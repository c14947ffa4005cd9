"""The output of commands, and how they end: answers on standard output, everything about them on standard error.

    out  ◀── the requested output: text, tables, JSON      a pipe gets only this
    err  ◀── calls, results, usage, losses, errors         dim on a terminal, plain elsewhere

With `--json` standard output holds one JSON document and standard error only errors. Colours follow the terminal and
NO_COLOR, widths the terminal and COLUMNS, which rich handles. A model's or a server's text cannot control a terminal:
control characters are shown, not obeyed. A pipe gets a model's text unchanged.

    error ──exit_of──▶ code      error ──explain──▶ one line      what codes mean ──help_text──▶ the help page
"""

import codecs
import io
import json
import locale
import stat
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from enum import IntEnum
from pathlib import Path
from typing import Any, NamedTuple, NoReturn
from uuid import uuid4

from cyclopts import CycloptsError, UnusedCliTokensError
from cyclopts.completion import ShellDetectionError
from pydantic import ValidationError
from rich.console import Console, RenderableType
from rich.text import Text
from sabir import CallError, Loss, RenderingRefused, SabirError
from sabir.authoring import describe_validation_error, one_line, printable
from sabir.errors import OutputError, PluginError

LOSS_STYLES = {
    "dropped": "red", "downgraded": "yellow", "relocated": "cyan",
    "rewritten": "dim", "synthesized": "dim", "withheld": "dim",
}  # fmt: skip


class _Stream(Console):
    """A console on which a closed pipe raises an error."""

    def on_broken_pipe(self) -> NoReturn:
        """Let the error boundary end the process quietly."""
        raise BrokenPipeError


class Output:
    """The two streams of one command; `machine` says that standard output is for `--json` alone."""

    def __init__(self, *, machine: bool = False) -> None:
        self.out: Console = _Stream(highlight=False)
        self.err: Console = _Stream(stderr=True, highlight=False)
        self.machine = machine
        self._within_line = False
        self._reported: set[Loss] = set()

    def show(self, *renderables: RenderableType) -> None:
        """Something for people, on standard output."""
        self.end_line()
        if not self.machine:
            self.out.print(*renderables, sep="\n")

    def begin(self, text: Text) -> None:
        """The beginning of a line on standard output, which streamed text goes on."""
        self.end_line()
        if not self.machine:
            self.out.print(text, end="")
            self._within_line = True

    @contextmanager
    def waiting(self, what: str) -> Iterator[Callable[[], None]]:
        """Show on a terminal that something is awaited, until the function given is called."""
        if self.machine or self._within_line or not (self.err.is_terminal and self.out.is_terminal):
            yield lambda: None
            return
        spinner = "line" if self.err.options.ascii_only else "dots"
        with self.err.status(Text(printable(what), style="dim"), spinner=spinner) as status:
            yield status.stop

    def write(self, text: str) -> None:
        """A piece of a model's text, as it comes."""
        if self.machine or not text:
            return
        self.out.file.write(printable(text) if self.out.is_terminal else text)
        self.out.file.flush()
        self._within_line = not text.endswith("\n")

    def end_line(self) -> None:
        """Begin a new line after streamed text, if it did not end in one."""
        if self._within_line:
            self._within_line = False
            self.out.file.write("\n")
            self.out.file.flush()

    def note(self, text: str, style: str = "dim") -> None:
        """One remark in one line, on standard error; a terminal's width folds it between words."""
        if not self.machine:
            self.end_line()
            self.err.print(Text(printable(text), style=style), soft_wrap=not self.err.is_terminal)

    def losses(self, losses: Iterable[Loss]) -> None:
        """The losses, a line each, on standard error; each once, however often the content is sent."""
        for loss in losses:
            if loss not in self._reported:
                self._reported.add(loss)
                self.note(f"loss   {loss}", LOSS_STYLES[loss.kind])

    def document(self, value: Any) -> None:  # whatever JSON holds
        """The document of `--json`."""
        self.data(json.dumps(value, ensure_ascii=False, indent=2) + "\n")

    def data(self, text: str) -> None:
        """A text for programs: in UTF-8 as JSON must be, whatever the encoding of the stream; a terminal is shown it.

        https://www.rfc-editor.org/rfc/rfc8259#section-8.1
        """
        self.end_line()
        if sys.stdout.isatty() or not hasattr(sys.stdout, "buffer"):
            sys.stdout.write(printable(text))
        else:
            sys.stdout.flush()
            sys.stdout.buffer.write(text.encode("utf-8", "replace"))
        sys.stdout.flush()

    def error(self, text: str) -> None:
        """An error in one line, on standard error, with `--json` too; a terminal's width folds it between words."""
        self.end_line()
        line = Text.assemble(("sabir: ", "bold red"), one_line(text))
        self.err.print(line, soft_wrap=not self.err.is_terminal)


ASCII = str.maketrans({
    "·": "-", "…": "...", "▶": ">", "▸": ">", "→": "->", "─": "-", "━": "-", "│": "|", "•": "*", "×": "x",
    "–": "-", "—": "-", "‘": "'", "’": "'", "“": '"', "”": '"', "\N{NO-BREAK SPACE}": " ",
})  # fmt: skip
"""What stands for a sign of ours where an encoding lacks it; for every other character that is a question mark."""


def use_ascii_where_needed(stream: object) -> None:
    """Have a stream of text write what its encoding lacks as ASCII instead of raising an error.

    A terminal in a locale of ASCII is sent nothing else, though Python's UTF-8 mode would encode everything.
    """
    if isinstance(stream, io.TextIOWrapper):
        codecs.register_error("sabir.ascii", _replaced)
        is_ascii = stream.isatty() and codecs.lookup(locale.getencoding()).name == "ascii"
        stream.reconfigure(encoding="ascii" if is_ascii else None, errors="sabir.ascii")


def _replaced(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lacking = error.object[error.start : error.end].translate(ASCII)
    return "".join(sign if sign.isascii() else "?" for sign in lacking), error.end


DEBUG_VARIABLE = "SABIR_DEBUG"
"""Set it, and faults of a program show their traceback."""


class Exit(IntEnum):
    """How the process ended."""

    OK = 0
    FAILED = 1
    USAGE = 2
    PLUGIN = 3
    CALL = 4
    BUG = 70
    INTERRUPTED = 130
    PIPE = 141


class UsageError(SabirError):
    """The command line asks for something that cannot be; the message says what to write instead."""


class Row(NamedTuple):
    """One code, its meaning, and the errors that end in it."""

    code: Exit
    meaning: str
    errors: tuple[type[BaseException], ...] = ()


ROWS = (
    Row(Exit.OK, "done"),
    Row(Exit.FAILED, "losses that --strict refuses, or a reply that failed", (RenderingRefused, OutputError)),
    Row(Exit.PLUGIN, "a provider or a plugin is missing or broken", (PluginError,)),
    Row(Exit.CALL, "a call to a provider failed", (CallError,)),
    Row(
        Exit.USAGE,
        "wrong arguments or input: a file, a history, an option, a setting",
        (CycloptsError, ShellDetectionError, SabirError, ValidationError, OSError),
    ),
    Row(Exit.INTERRUPTED, "interrupted", (KeyboardInterrupt,)),
    Row(Exit.PIPE, "nobody reads the output any more", (BrokenPipeError,)),
    Row(Exit.BUG, "a fault of this program or of a plugin; SABIR_DEBUG=1 shows where", (Exception,)),
)
"""Errors are looked up by their most specific class, wherever it stands."""


def exit_of(error: BaseException) -> Exit:
    """The code of an error: that of the first of its classes, most specific first, that a row names."""
    for kind in type(error).__mro__:
        for row in ROWS:
            if kind in row.errors:
                return row.code
    return Exit.BUG


def explain(error: BaseException) -> str:
    """An error's text for the user: what is wrong, and the remedy."""
    if isinstance(error, CycloptsError):
        command = " ".join(("sabir", *(error.command_chain or ())))
        if isinstance(error, UnusedCliTokensError) and error.unused_tokens:
            return f"{error.unused_tokens[0]!r} is too many; quote a text of several words (see `{command} --help`)"
        return f"{str(error).rstrip('.')} (see `{command} --help`)"
    if isinstance(error, ValidationError):
        return f"{error.title}: {describe_validation_error(error)}"
    if isinstance(error, SabirError):
        return str(error)
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename!r}: {error.strerror}" if error.filename else error.strerror
    if exit_of(error) is Exit.BUG:
        return f"unexpected {type(error).__name__}: {error}; set {DEBUG_VARIABLE}=1 to see where"
    return str(error)


def help_text() -> str:
    """The table as the help page shows it."""
    rows = sorted(ROWS, key=lambda row: row.code)
    return "Exit codes:\n" + "\n".join(f"{row.code.value:>5}  {row.meaning}" for row in rows)


def refuse_replacing(named: str, path: Path, *, may_replace: bool, otherwise: str = "", remedy: str = "") -> None:
    """Raise UsageError for a path that is no file, or a file that may not be replaced.

    `otherwise` and `remedy` say what else may be given in each case.
    """
    if path.exists() and not path.is_file():
        raise UsageError(f"{named} is no file; name one{otherwise}")
    if path.exists() and not may_replace:
        raise UsageError(f"{named} is there already; name another{remedy}")


def replace_file(path: Path, text: str) -> None:
    """Write a file whole or not at all, beside it first; it keeps its permissions. Raises OSError."""
    temporary = path.with_name(f".{path.name}.{uuid4().hex}")
    try:
        temporary.touch()
        if path.exists():
            temporary.chmod(stat.S_IMODE(path.stat().st_mode))  # before it has any content
        temporary.write_text(text, "utf-8")
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
