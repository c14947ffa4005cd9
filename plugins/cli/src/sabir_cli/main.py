"""The `sabir` command: its parts, and the boundary at which every error becomes one line and an exit code.

tokens ──▶ app ──▶ a command ──▶ code
            └── any error ──▶ "sabir: what is wrong; how to mend it" ──▶ code (see exits.py)
"""

import io
import os
import sys
import traceback
from collections.abc import Sequence
from contextlib import suppress
from importlib.metadata import version

from cyclopts import App

from sabir_cli.chat import chat
from sabir_cli.commands import attach
from sabir_cli.demo import demo
from sabir_cli.exits import DEBUG_VARIABLE, Exit, exit_of, explain, help_text
from sabir_cli.imports import import_
from sabir_cli.models import models
from sabir_cli.new_plugin import new_plugin
from sabir_cli.output import Output
from sabir_cli.providers import providers
from sabir_cli.render import render

HELP = "One typed message vocabulary for language models; every provider a plugin."


def build(output: Output) -> App:
    """The command with its own subcommands."""
    app = App(
        name="sabir",
        help=HELP,
        help_format="plaintext",
        help_epilogue=help_text(),
        version=lambda: f"sabir-cli {version('sabir-cli')}, sabir {version('sabir')}",
        console=output.out,
        error_console=output.err,
        exit_on_error=False,
        print_error=False,
        result_action="return_value",
        suppress_keyboard_interrupt=False,
    )
    for command in (chat, demo, import_, models, new_plugin, providers, render):
        app.command(command)
    app.register_install_completion_command(help="Install completion for your shell (bash, zsh, fish, PowerShell).")
    return app


def main(tokens: Sequence[str] | None = None) -> int:
    """Run a command line (the process's own by default) and return its exit code; raises nothing."""
    tokens = sys.argv[1:] if tokens is None else list(tokens)
    _tolerate_narrow_encodings()
    output = Output()
    try:
        app = build(output)
        attach(app, tokens, output)
        result = app(tokens)
        sys.stdout.flush()
    except SystemExit as left:  # a command of another package may leave this way
        return left.code if isinstance(left.code, int) else Exit.FAILED if left.code else Exit.OK
    except BaseException as error:
        return _report(error, output)
    return int(result) if isinstance(result, int) else Exit.OK


def _report(error: BaseException, output: Output) -> int:
    """Print the error in one line; returns its exit code."""
    code = exit_of(error)
    with suppress(OSError):
        if code is Exit.PIPE:
            _abandon_standard_output()
        elif code is Exit.INTERRUPTED:
            output.err.print()
        else:
            if os.environ.get(DEBUG_VARIABLE):
                traceback.print_exception(error)
            output.error(explain(error))
    return code


def _tolerate_narrow_encodings() -> None:
    """A terminal that cannot show a character gets a question mark instead of an error."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def _abandon_standard_output() -> None:
    """Let the interpreter's last flush go nowhere: https://docs.python.org/3/library/signal.html#note-on-sigpipe."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
