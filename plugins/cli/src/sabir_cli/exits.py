"""Exit codes: one table for the process, for `--help` and for the README.

error ──exit_of──▶ code      error ──explain──▶ one line      what codes mean ──help_text──▶ the help page
"""

from enum import IntEnum
from typing import NamedTuple

from cyclopts import CycloptsError, UnusedCliTokensError
from cyclopts.completion import ShellDetectionError
from pydantic import ValidationError
from sabir import CallError, RenderingRefused, SabirError
from sabir.authoring import describe
from sabir.errors import OutputError, PluginError

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
        return f"{error.title}: {describe(error)}"
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
