"""`sabir render`: what a saved conversation looks like on the wire of one model or several, without key and network.

FILE ──sabir.load──▶ messages ──render for each -m──▶ bodies and losses, side by side
"""

from collections.abc import Iterator, Sequence
from typing import Annotated

import sabir
from cyclopts import Parameter

from sabir_cli.bodies import View, show
from sabir_cli.exits import Exit
from sabir_cli.inputs import STDIN_TOO, JSONFlag, OptionFlags, choose_model, load_options, read_pipe
from sabir_cli.output import Output

STRICT = frozenset({"dropped", "downgraded"})
"""Kinds of loss that `--strict` refuses."""


def render(
    file: Annotated[str, STDIN_TOO, Parameter(help="A history saved by sabir; - reads standard input.")],
    /,
    *,
    model: Annotated[
        list[str] | None,
        Parameter(name=["-m", "--model"], negative="", help="provider[.dialect]:model; repeatable."),
    ] = None,
    option: OptionFlags = None,
    strict: Annotated[bool, Parameter(negative="", help="Exit 1 if anything was dropped or downgraded.")] = False,
    as_json: JSONFlag = False,
) -> int:
    """Show a conversation as wire bodies, with what each target cannot take. Nothing is sent."""
    output = Output(machine=as_json)
    messages = _read(file)
    options = load_options(option)
    adapters = [sabir.adapter(name) for name in model or [choose_model(None)]]
    views = [_view(adapter, messages, options) for adapter in adapters]
    if as_json:
        output.document([view.document() for view in views])
    else:
        show(output.out, views)
    refusals = list(_refusals(views, strict))
    for refusal in refusals:
        output.error(refusal)
    return Exit.FAILED if refusals else Exit.OK


def _refusals(views: Sequence[View], strict: bool) -> Iterator[str]:
    refused = [view.title for view in views if view.error is not None]
    if refused:
        yield f"{', '.join(refused)} cannot take this history at all"
    lost = [(view.title, loss) for view in views for loss in view.losses if strict and loss.kind in STRICT]
    if lost:
        more = f" (and {len(lost) - 1} more)" if len(lost) > 1 else ""
        yield f"--strict: {lost[0][0]} would lose something: {lost[0][1]}{more}"


def _read(file: str) -> list[sabir.Message]:
    if file != "-":
        return sabir.load(file)
    try:
        return sabir.loads(read_pipe("a FILE"))
    except sabir.HistoryInvalid as error:
        raise sabir.HistoryInvalid(f"standard input: {error}") from None


def _view(adapter: sabir.ModelAdapter, messages: list[sabir.Message], options: tuple[sabir.Option, ...]) -> View:
    title = str(adapter.target)
    try:
        return View(title, adapter.render(messages, options=options))
    except sabir.RenderingRefused as error:
        return View(title, error=str(error))
