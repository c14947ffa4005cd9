"""The `sabir` command: its parts, further commands, and the boundary at which an error becomes one line and a code.

    tokens ──▶ app ──▶ a command ──▶ code
                └── any error ──▶ "sabir: what is wrong; how to mend it" ──▶ code (see output.py)

Further commands come from the entry-point group `sabir.commands`, each loaded alone, and only when it is asked for:

    sabir acme …  ──▶ loads `acme`              sabir --help ──▶ loads all, to say what they do

An entry point names a typed function, whose signature and docstring become the command, or a cyclopts App. A broken
one, and one that does not finish loading, stands in the help page as broken and stops no other; asked for, it fails
in one line.
"""

import os
import sys
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib.metadata import EntryPoint, version
from typing import Annotated

import sabir
from cyclopts import App, Parameter
from sabir.authoring import load_entry_point, one_line
from sabir.errors import PluginError

from sabir_cli.chat import chat, chats
from sabir_cli.configure import config
from sabir_cli.demo import demo
from sabir_cli.imports import import_
from sabir_cli.new_plugin import new_plugin
from sabir_cli.output import DEBUG_VARIABLE, Exit, Output, exit_of, explain, help_text, use_ascii_where_needed
from sabir_cli.providers import models, providers
from sabir_cli.render import render
from sabir_cli.telling import telling

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
    for command in (chat, chats, config, demo, import_, models, new_plugin, providers, render):
        app.command(command)
    app.register_install_completion_command(help="Install completion for your shell (bash, zsh, fish, PowerShell).")
    return app


def main(tokens: Sequence[str] | None = None) -> int:
    """Run a command line (the process's own by default) and return its exit code; raises nothing."""
    tokens = sys.argv[1:] if tokens is None else list(tokens)
    for stream in (sys.stdout, sys.stderr):
        use_ascii_where_needed(stream)
    output = Output()
    try:
        app = build(output)
        attach(app, tokens, output)
        with telling(output, tokens):
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
        if code is Exit.PIPE:  # the interpreter's last flush goes nowhere
            # https://docs.python.org/3/library/signal.html#note-on-sigpipe
            with suppress(ValueError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        elif code is Exit.INTERRUPTED:
            output.err.print()
        else:
            if os.environ.get(DEBUG_VARIABLE):
                traceback.print_exception(error)
            output.error(explain(error))
    return code


def attach(app: App, tokens: Sequence[str], output: Output) -> None:
    """Add the installed commands that the command line may mean."""
    asked = next((token for token in tokens if not token.startswith("-")), None)
    if asked is not None and asked in app:
        return
    try:
        points = sabir.commands()
    except PluginError as error:
        output.error(f"no further command was loaded: {error}")
        return
    meant = [point for point in points if point.name == asked]
    for point in meant or points:
        if point.name in app:
            output.error(f"command {point.name!r} of {_source(point)} was left out: sabir has one of that name")
        else:
            _add(app, point, named=bool(meant))


def _add(app: App, point: EntryPoint, *, named: bool) -> None:
    try:
        loaded = load_entry_point(point, named=named)
        with PluginError.blaming(f"{point.name!r} is no command"):
            if not callable(loaded):
                raise TypeError(f"{point.value} is {type(loaded).__name__}, neither a function nor a cyclopts App")
            app.command(loaded, name=point.name)
    except PluginError as error:
        reason = one_line(error.__cause__, 200) if error.__cause__ else str(error)
        app.command(_broken(point, reason), name=point.name, help=f"Broken: {reason}")


def _broken(point: EntryPoint, reason: str) -> Callable[..., None]:
    def fail(*arguments: Annotated[str, Parameter(allow_leading_hyphen=True)]) -> None:
        remedy = "reinstall or remove it"
        raise PluginError(f"command {point.name!r} of {_source(point)} cannot be loaded: {reason}; {remedy}")

    return fail


def _source(point: EntryPoint) -> str:
    return f"{point.dist.name} {point.dist.version}" if point.dist else point.value
