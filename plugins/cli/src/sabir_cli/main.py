"""The command `sabir`: its own subcommands, the subcommands of other packages, and the handling of errors.

    tokens ──▶ app ──▶ a command ──▶ code
                └── any error ──▶ one line "sabir: the error; the remedy" and an exit code (see failures.py)

A command's module is imported when the command is used:

    sabir --help, sabir --version ──▶ help_page.py, which imports none of sabir's commands
    sabir chat …                  ──▶ sabir_cli.chat.command
    sabir acme …                  ──▶ the entry point `acme` of the group `sabir.commands`

An entry point names a cyclopts App, or a typed function whose signature and docstring become the command. A broken
entry point does not affect other commands. A call of its command prints one line and exits with Exit.PLUGIN.
"""

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib.metadata import EntryPoint
from typing import TYPE_CHECKING, Annotated

from sabir_cli import help_page
from sabir_cli.ascii import use_ascii_where_needed
from sabir_cli.exits import DEBUG_VARIABLE, Exit, help_text

if TYPE_CHECKING:
    from cyclopts import App

    from sabir_cli.output import Output

COMMANDS: Mapping[str, str] = {
    "chat": "sabir_cli.chat.command:chat",
    "chats": "sabir_cli.chat.chats:chats",
    "config": "sabir_cli.configure:config",
    "demo": "sabir_cli.demo:demo",
    "import": "sabir_cli.imports:import_",
    "inspect": "sabir_cli.inspect.command:inspect",
    "models": "sabir_cli.providers:models",
    "new-plugin": "sabir_cli.new_plugin:new_plugin",
    "providers": "sabir_cli.providers:providers",
    "render": "sabir_cli.render:render",
    "replay": "sabir_cli.replay.command:replay",
}
"""Subcommand → the `module:function` that runs it."""


def build(output: "Output") -> "App":
    """Return the cyclopts App `sabir` with its own subcommands, whose modules are imported when used."""
    from cyclopts import App

    app = App(
        name="sabir",
        help=help_page.HELP,
        help_format="plaintext",
        help_epilogue=help_text(),
        version=help_page.version_text,
        console=output.out,
        error_console=output.err,
        exit_on_error=False,
        print_error=False,
        result_action="return_value",
        suppress_keyboard_interrupt=False,
    )
    for name, function_path in COMMANDS.items():
        app.command(function_path, name=name)
    app.register_install_completion_command(help=help_page.FLAGS["--install-completion"])
    return app


def main(tokens: Sequence[str] | None = None) -> int:
    """Run a command line, by default `sys.argv[1:]`, and return its exit code. Every exception becomes an exit code."""
    tokens = sys.argv[1:] if tokens is None else list(tokens)
    for stream in (sys.stdout, sys.stderr):
        use_ascii_where_needed(stream)
    try:
        if text := help_page.requested_text(tokens, COMMANDS):
            sys.stdout.write(text)
            sys.stdout.flush()
            return Exit.OK
        result = _run_command(tokens)
        sys.stdout.flush()
    except SystemExit as exit_:  # raised for SIGTERM, and by commands of other packages
        return exit_.code if isinstance(exit_.code, int) else Exit.FAILED if exit_.code else Exit.OK
    except BaseException as error:
        return _print_error(error)
    return int(result) if isinstance(result, int) else Exit.OK


def _run_command(tokens: Sequence[str]) -> object:
    from sabir_cli.local_log import printing_local_log
    from sabir_cli.output import Output

    output = Output()
    app = build(output)
    add_plugin_commands(app, tokens, output)
    with printing_local_log(output, tokens), signals_raise():
        return app(tokens)


@contextmanager
def signals_raise() -> Iterator[None]:
    """Let SIGTERM and SIGHUP raise SystemExit in the `with` block, so that the terminal's cursor and echo are restored.

    Signals for which the calling program has set a handler keep it. Outside of the main thread, no signal is changed.
    """

    def raise_exit(number: int, _: object) -> None:
        raise SystemExit(128 + number)

    names = ("SIGTERM", "SIGHUP") if threading.current_thread() is threading.main_thread() else ()
    numbers = [getattr(signal, name) for name in names if hasattr(signal, name)]
    changed = [number for number in numbers if signal.getsignal(number) is signal.SIG_DFL]
    for number in changed:
        signal.signal(number, raise_exit)
    try:
        yield
    finally:
        for number in changed:
            signal.signal(number, signal.SIG_DFL)


def _print_error(error: BaseException) -> int:
    """Print the error in one line, and return its exit code.

    For Ctrl-C, an empty line is printed, and for a closed pipe nothing.
    """
    from sabir_cli.failures import exit_of, explain
    from sabir_cli.output import Output

    code = exit_of(error)
    with suppress(OSError):
        if code is Exit.PIPE:  # send to devnull what the interpreter flushes at exit
            # https://docs.python.org/3/library/signal.html#note-on-sigpipe
            with suppress(ValueError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        elif code is Exit.INTERRUPTED:
            Output().err.print()
        else:
            if os.environ.get(DEBUG_VARIABLE):
                import traceback

                traceback.print_exception(error)
            Output().error(explain(error))
    return code


def add_plugin_commands(app: "App", tokens: Sequence[str], output: "Output") -> None:
    """Add the commands of other packages to the app, unless the command line names one of sabir's own commands.

    If the command line names a command of another package, only this command is added.
    """
    named = next((token for token in tokens if not token.startswith("-")), None)
    if named in COMMANDS:
        return
    import sabir
    from sabir.errors import PluginError

    try:
        points = sabir.commands()
    except PluginError as error:
        output.error(f"the commands of other packages are not available: {error}")
        return
    matches = [point for point in points if point.name == named]
    for point in matches or points:
        if point.name in app:
            output.error(help_page.shadowed_text(point))
        else:
            _add_command(app, point, named=bool(matches))


def _add_command(app: "App", point: EntryPoint, *, named: bool) -> None:
    from sabir.authoring import load_entry_point, one_line
    from sabir.errors import PluginError

    try:
        loaded = load_entry_point(point, named=named)
        with PluginError.blaming(f"{point.name!r} is not a command"):
            if not callable(loaded):
                raise TypeError(f"{point.value} is {type(loaded).__name__}, neither a function nor a cyclopts App")
            app.command(loaded, name=point.name)
    except PluginError as error:
        reason = one_line(error.__cause__, 200) if error.__cause__ else str(error)
        app.command(_broken_command(point, reason), name=point.name, help=f"Broken: {reason}")


def _broken_command(point: EntryPoint, reason: str) -> Callable[..., None]:
    from cyclopts import Parameter
    from sabir.errors import PluginError

    def fail(*arguments: Annotated[str, Parameter(allow_leading_hyphen=True)]) -> None:
        command = f"command {point.name!r} of {help_page.package_label(point)}"
        raise PluginError(f"{command} cannot be loaded: {reason}; reinstall or remove the package")

    return fail
