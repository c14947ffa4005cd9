"""The help page and the version, which appear fast because no command is imported.

    "module:function" ──find the file──▶ its source ──ast──▶ the first paragraph of the function's docstring

A command of another package that cannot be read this way, such as a cyclopts App, is imported. If this fails, the page
shows the command as broken.
"""

import ast
import re
import shutil
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from importlib.machinery import PathFinder
from importlib.metadata import EntryPoint, entry_points, version
from importlib.util import find_spec
from pathlib import Path

from sabir.authoring import printable

from sabir_cli.exits import help_text

HELP = "Talk to models of any vendor, and convert conversations between their APIs."
GROUP = "sabir.commands"
FLAGS: Mapping[str, str] = {
    "--help, -h": "Show this page.",
    "--install-completion": "Install completion for your shell (bash, zsh, fish, PowerShell).",
    "--version": "Show the version.",
}
"""Flags of `sabir` itself → their help."""
WIDEST = 100
"""Maximum width of the help page in columns."""


def requested_text(tokens: Sequence[str], commands: Mapping[str, str]) -> str:
    """Return the help page or the version if the command line asks for it, else "".

    `commands` maps sabir's own subcommands to the `module:function` that each runs.
    """
    if list(tokens) == ["--version"]:
        return f"{version_text()}\n"
    return render_page(commands) if not tokens or tokens[0] in ("--help", "-h") else ""


def version_text() -> str:
    """Return a line with the versions of sabir-cli and sabir."""
    return f"sabir-cli {version('sabir-cli')}, sabir {version('sabir')}"


def render_page(commands: Mapping[str, str]) -> str:
    """Return the help page: all commands, also of other packages, the flags, and the exit codes.

    Prints a line on standard error for a command of another package that has the name of one of `commands`.
    """
    summaries = {name: summary(path) or "" for name, path in commands.items()}
    for point in _plugin_commands():
        if point.name in commands:
            sys.stderr.write(f"sabir: {shadowed_text(point)}\n")
        else:
            summaries[point.name] = summary(point.value) or _imported_summary(point)
    commands_table, flags_table = _two_columns(dict(sorted(summaries.items()))), _two_columns(FLAGS)
    parts = (HELP, "Commands:", commands_table, "Flags:", flags_table, help_text())
    return "Usage: sabir COMMAND\n\n{}\n\n{}\n{}\n\n{}\n{}\n\n{}\n".format(*parts)


def summary(function_path: str) -> str | None:
    """Read the source file of a `module:function`, and return the first paragraph of its docstring in one line.

    None if the file cannot be found or parsed, or the function has no docstring.
    """
    module_name, _, function = function_path.partition(":")
    try:
        source = _source_file(module_name.strip())
        tree = ast.parse(source.read_bytes()) if source else ast.Module([], [])
    except (OSError, SyntaxError, ValueError, ImportError):
        return None
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == function.strip():
            text = ast.get_docstring(node)
            return printable(" ".join(text.partition("\n\n")[0].split())) if text else None
    return None


def shadowed_text(point: EntryPoint) -> str:
    """Return an error text: another package's command is not available, because sabir has a command of its name."""
    return (
        f"command {point.name!r} of {package_label(point)} is not available, because sabir has a command of that name"
    )


def package_label(point: EntryPoint) -> str:
    """Return the name and version of an entry point's package; its `module:function` if the package is unknown."""
    return f"{point.dist.name} {point.dist.version}" if point.dist else point.value


def _source_file(module_name: str) -> Path | None:
    """Return the source file of a module without importing the module or its parent packages; None if not found."""
    top, *inner = module_name.split(".")
    spec = find_spec(top)
    for name in inner:
        folders = spec.submodule_search_locations if spec else None
        spec = PathFinder.find_spec(name, folders) if folders else None
    return Path(spec.origin) if spec and spec.origin and spec.origin.endswith(".py") else None


def _plugin_commands() -> Iterator[EntryPoint]:
    points = dict.fromkeys(entry_points(group=GROUP))
    if len({point.name for point in points}) == len(points):
        yield from points
        return
    import sabir
    from sabir.errors import PluginError

    try:
        yield from sabir.commands()
    except PluginError as error:
        sys.stderr.write(f"sabir: the commands of other packages are not available: {error}\n")


def _imported_summary(point: EntryPoint) -> str:
    """Import a command and return the first paragraph of its help, or "Broken: …" with the reason if that fails."""
    from sabir.authoring import load_entry_point, one_line
    from sabir.errors import PluginError

    try:
        command = load_entry_point(point, named=False)
    except PluginError as error:
        return f"Broken: {one_line(error.__cause__, 200) if error.__cause__ else error}"
    if not callable(command):
        return f"Broken: {point.value} is {type(command).__name__}, neither a function nor a cyclopts App"
    text = getattr(command, "help", None) or getattr(command, "__doc__", None) or ""
    return printable(" ".join(re.split(r"\n\s*\n", str(text).strip())[0].split()))


def _two_columns(rows: Mapping[str, str]) -> str:
    """Return names and texts in two columns, folded at the terminal's width; on a narrow terminal, each text below its
    name.
    """
    width = min(shutil.get_terminal_size().columns, WIDEST)
    column = max(map(len, rows)) + 4
    is_narrow = width < column + 30
    indent = " " * (4 if is_narrow else column)
    lines = []
    for name, text in rows.items():
        first = f"  {name}" if is_narrow else f"  {name}".ljust(column)
        folded = textwrap.wrap(text, max(20, width - len(indent)), break_on_hyphens=False) or [""]
        lines += (
            [first, *(indent + line for line in folded)]
            if is_narrow
            else [(first + folded[0]).rstrip(), *(indent + line for line in folded[1:])]
        )
    return "\n".join(lines)
