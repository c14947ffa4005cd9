"""`sabir render`: show the request that would send a saved conversation to each model, without key and network.

    FILE ──▶ messages, or the output of `sabir import --json` ──render for each -m──▶ views

    View ──┐
    View ──┼──fits?──▶ columns │ a stack       each: target, body, losses
    View ──┘

A body is shown as JSON, with small objects on one or a few lines. Only the beginning of base64 data is shown.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import sabir
from cyclopts import Parameter
from pydantic import ValidationError
from rich.cells import cell_len
from rich.console import Console, Group, RenderableType
from rich.highlighter import JSONHighlighter
from rich.padding import Padding
from rich.table import Table
from rich.text import Text
from sabir import DecodedHistory, Loss, Rendering
from sabir.authoring import JSONValue, decode_json, describe_validation_error, load_stored, printable
from sabir.errors import HistoryInvalid, NotJSON

from sabir_cli.dialects import target_label
from sabir_cli.exits import Exit
from sabir_cli.facts import open_adapter
from sabir_cli.imports import is_document
from sabir_cli.inputs import STDIN_TOO, JSONFlag, OptionFlags, choose_model, load_options, read_bytes
from sabir_cli.losses import describe_loss, explain_with
from sabir_cli.output import LOSS_STYLES, Output

STRICT = frozenset({"dropped", "downgraded"})
"""Kinds of loss for which `--strict` makes the command exit with 1."""


NARROWEST = 56
"""Minimum width, in columns, of a body that is shown next to another body."""
LEAF_LINES = 3
"""The maximum number of lines in which an object without inner objects is folded. In a longer object, each field
begins a line.
"""
LONGEST_DATA = 96
"""Maximum length, in characters, of a string without spaces that is shown completely."""

_highlight = JSONHighlighter()


@dataclass(frozen=True)
class View:
    """The result for one model: a rendering, or the error if the history could not be rendered. `title` is the model
    string, and `note` a further line.
    """

    title: str
    rendering: Rendering | None = None
    error: str | None = None
    note: str | None = None
    messages: Sequence[sabir.Message] = ()
    """The messages of the request, in order, which the texts of losses quote."""

    @property
    def losses(self) -> tuple[Loss, ...]:
        """The rendering's losses; () without a rendering."""
        return self.rendering.losses if self.rendering else ()

    def document(self) -> dict[str, Any]:  # any JSON
        """Return the view as a JSON object for `--json`: the complete body and the losses, or the error."""
        if self.rendering is None:
            return {"target": self.title, "error": self.error}
        target = self.rendering.target
        return {
            "target": str(target),
            "dialect": target.dialect,
            "endpoint": target.endpoint,
            "path": self.rendering.path,
            "body": decode_json(self.rendering.body_bytes),
            "losses": [loss.model_dump() for loss in self.losses],
        }


def render(
    file: Annotated[
        str,
        STDIN_TOO,
        Parameter(help="A saved conversation, or the output of `sabir import --json`; - reads standard input."),
    ],
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
    """Show the request body for each model, and its losses. Nothing is sent."""
    output = Output(machine=as_json)
    history = _with_options(_read_history(file), load_options(option))
    adapters = [open_adapter(name) for name in model or [choose_model(None)]]
    views = [_render_for(adapter, history) for adapter in adapters]
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
        yield f"{', '.join(refused)} cannot accept this conversation; the reason is shown above"
    lost = [
        (view.title, describe_loss(loss, view.messages))
        for view in views
        for loss in view.losses
        if strict and loss.kind in STRICT
    ]
    if lost:
        more = f" (and {len(lost) - 1} more)" if len(lost) > 1 else ""
        yield f"--strict: {lost[0][0]} cannot accept everything: {lost[0][1]}{more}"


def _read_history(file: str) -> DecodedHistory:
    """Return the contents of a saved conversation or of the output of `sabir import --json`. Raises HistoryInvalid,
    which names the file, and UsageError for a file that cannot be read.
    """
    data = read_bytes(file, "a FILE")
    try:
        history = read_import_output(data)
        return history if history is not None else DecodedHistory(messages=tuple(sabir.loads(data)))
    except HistoryInvalid as error:
        source = "standard input" if file == "-" else repr(file)
        raise HistoryInvalid(f"{source}: {error}") from None


def read_import_output(data: bytes) -> DecodedHistory | None:
    """Return the contents of the output of `sabir import --json`; None for other data. Raises HistoryInvalid if the
    output was changed and is invalid.
    """
    try:
        fields = decode_json(data) if data.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{") else None
    except NotJSON:
        return None
    if not is_document(fields):
        return None
    try:
        return load_stored(DecodedHistory.model_validate, fields)
    except ValidationError as error:
        fault = describe_validation_error(error)
        remedy = "import the file again"
        raise HistoryInvalid(f"this is not the output of `sabir import --json`: {fault}; {remedy}") from None


def _with_options(history: DecodedHistory, options: Sequence[sabir.Option]) -> DecodedHistory:
    """Return the history with further options, which replace imported options of the same name."""
    names = {option.name for option in options}
    imported = (option for option in history.options if option.name not in names)
    return history.model_copy(update={"options": (*imported, *options)}) if options else history


def _render_for(adapter: sabir.ModelAdapter, history: DecodedHistory) -> View:
    title = target_label(adapter.target)
    try:
        rendering = adapter.render(history.messages, options=history.options, settings=history.settings)
        return View(title, rendering, messages=history.messages)
    except sabir.RenderingRefused as error:
        return View(title, error=explain_with(error, history.messages))


class Line(NamedTuple):
    """One line of a layout: its indentation and its text."""

    indent: int
    text: str


def show(console: Console, views: Sequence[View]) -> None:
    """Print the views, as many next to each other as the console's width allows."""
    columns = max(1, min(len(views), console.width // NARROWEST))
    for start in range(0, len(views), columns):
        if start:
            console.print()
        width = console.width // columns - (columns > 1)
        console.print(_views_side_by_side(views[start : start + columns], width, columns))


def _views_side_by_side(views: Sequence[View], width: int, columns: int) -> RenderableType:
    if columns == 1:
        return _panel(views[0], width)
    table = Table.grid(padding=(0, 1, 0, 0))
    for _ in range(columns):
        table.add_column(width=width, overflow="fold")
    table.add_row(*(_panel(view, width) for view in views))
    return table


def layout(value: JSONValue, width: int, *, is_shortened: bool = True) -> list[Line]:
    """Return the lines of a JSON value, with long strings without spaces shortened unless `is_shortened` is False.

    An object or array is in one line if it fits in `width`, or, without inner objects and arrays, in LEAF_LINES times
    the width. Otherwise each of its items begins a line.
    """
    return list(_layout_lines(shorten(value) if is_shortened else value, Line(0, ""), "", width))


def shorten(value: JSONValue) -> JSONValue:
    """Return a copy of a JSON value in which strings of more than LONGEST_DATA characters without spaces, such as
    base64, are cut to their beginning.
    """
    if isinstance(value, dict):
        return {key: shorten(item) for key, item in value.items()}
    if isinstance(value, list):
        return [shorten(item) for item in value]
    if isinstance(value, str) and len(value) > LONGEST_DATA and not any(space in value for space in " \n\t"):
        return f"{value[:40]}… ({len(value)} characters)"
    return value


def _panel(view: View, width: int) -> RenderableType:
    rows: list[RenderableType] = [Text(printable(view.title), style="bold")]
    if view.rendering is not None:
        request_line = f"{view.rendering.target.dialect} · POST {view.rendering.path}"
        rows += [Text(printable(request_line), style="dim"), *_body_lines(view.rendering, width)]
    if view.error is not None:
        rows.append(Text(printable(view.error), style="red"))
    else:
        rows += _loss_lines(view.losses, view.messages)
    if view.note:
        rows.append(Text(printable(view.note), style="dim"))
    return Group(*rows)


def _body_lines(rendering: Rendering, width: int) -> Iterator[RenderableType]:
    for line in layout(decode_json(rendering.body_bytes), width):
        text = _highlight(Text(printable(line.text), overflow="fold"))
        yield Padding(text, (0, 0, 0, line.indent), expand=False)


def _loss_lines(losses: Sequence[Loss], messages: Sequence[sabir.Message]) -> Iterator[RenderableType]:
    if losses:
        yield Text(f"losses: {len(losses)}", style="bold")
    for loss in losses:
        yield Padding(
            Text(printable(describe_loss(loss, messages)), style=LOSS_STYLES[loss.kind]), (0, 0, 0, 2), expand=False
        )


def _layout_lines(value: JSONValue, start: Line, end: str, width: int) -> Iterator[Line]:
    """Yield the lines of a value. The text of `start` (its key) comes before the value, and `end` (a comma or "")
    after it.
    """
    flat = start.text + json.dumps(value, ensure_ascii=False) + end
    items = list(_json_items(value))
    is_leaf = not any(isinstance(item, dict | list) for _, item in items)
    if not items or cell_len(flat) <= (width - start.indent) * (LEAF_LINES if is_leaf else 1):
        yield start._replace(text=flat)
        return
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    yield start._replace(text=start.text + opening)
    for number, (key, item) in enumerate(items, start=1):
        comma = "," if number < len(items) else ""
        yield from _layout_lines(item, Line(start.indent + 2, key), comma, width)
    yield start._replace(text=closing + end)


def _json_items(value: JSONValue) -> Iterator[tuple[str, JSONValue]]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield f"{json.dumps(key, ensure_ascii=False)}: ", item
    elif isinstance(value, list):
        for item in value:
            yield "", item
