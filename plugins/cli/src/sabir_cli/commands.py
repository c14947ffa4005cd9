"""Further commands, from the entry-point group `sabir.commands`: each loaded alone, and only when it is asked for.

    sabir acme …  ──▶ loads `acme`              sabir --help ──▶ loads all, to say what they do

An entry point names a typed function, whose signature and docstring become the command, or a cyclopts App. A broken
one, and one that does not finish loading, stands in the help page as broken and stops no other; asked for, it fails
in one line.
"""

from collections.abc import Callable, Sequence
from importlib.metadata import EntryPoint
from typing import Annotated

import sabir
from cyclopts import App, Parameter
from sabir.authoring import load_point, one_line
from sabir.errors import PluginError

from sabir_cli.output import Output


def attach(app: App, tokens: Sequence[str], output: Output) -> None:
    """Add the installed commands that the command line may mean."""
    asked = next((token for token in tokens if not token.startswith("-")), None)
    if asked is not None and asked in app:
        return
    try:
        points = sabir.commands()
    except sabir.errors.PluginError as error:
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
        loaded = load_point(point, named=named)
        with PluginError.blaming(f"{point.name!r} is no command"):
            if not callable(loaded):
                raise TypeError(f"{point.value} is {type(loaded).__name__}, neither a function nor a cyclopts App")
            app.command(loaded, name=point.name)
    except sabir.errors.PluginError as error:
        reason = one_line(error.__cause__, 200) if error.__cause__ else str(error)
        app.command(_broken(point, reason), name=point.name, help=f"Broken: {reason}")


def _broken(point: EntryPoint, reason: str) -> Callable[..., None]:
    def fail(*arguments: Annotated[str, Parameter(allow_leading_hyphen=True)]) -> None:
        remedy = "reinstall or remove it"
        raise sabir.errors.PluginError(
            f"command {point.name!r} of {_source(point)} cannot be loaded: {reason}; {remedy}"
        )

    return fail


def _source(point: EntryPoint) -> str:
    return f"{point.dist.name} {point.dist.version}" if point.dist else point.value
