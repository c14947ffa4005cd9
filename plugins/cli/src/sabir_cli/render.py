"""`sabir render`: what a saved conversation looks like on the wire of one model or several, without key and network.

FILE ──▶ messages, or all that `sabir import --json` gave ──render for each -m──▶ bodies and losses, side by side
"""

from collections.abc import Iterator, Sequence
from typing import Annotated

import sabir
from cyclopts import Parameter
from pydantic import ValidationError
from sabir.authoring import decode_json, describe, load_as

from sabir_cli.bodies import View, show
from sabir_cli.exits import Exit
from sabir_cli.inputs import STDIN_TOO, JSONFlag, OptionFlags, choose_model, load_options, read_bytes
from sabir_cli.output import Output
from sabir_cli.stored import is_document

STRICT = frozenset({"dropped", "downgraded"})
"""Kinds of loss that `--strict` refuses."""


def render(
    file: Annotated[str, STDIN_TOO, Parameter(help="A history, or what import --json gave; - reads standard input.")],
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
    history = _with_options(_read(file), load_options(option))
    adapters = [sabir.adapter(name) for name in model or [choose_model(None)]]
    views = [_view(adapter, history) for adapter in adapters]
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


def _read(file: str) -> sabir.DecodedHistory:
    """The messages of a history, or the whole of what was imported; HistoryInvalid names the file."""
    data = read_bytes(file, "a FILE")
    try:
        whole = _document(data)
        return whole if whole is not None else sabir.DecodedHistory(messages=tuple(sabir.loads(data)))
    except sabir.errors.HistoryInvalid as error:
        source = "standard input" if file == "-" else repr(file)
        raise sabir.errors.HistoryInvalid(f"{source}: {error}") from None


def _document(data: bytes) -> sabir.DecodedHistory | None:
    """What `sabir import --json` gave; None where the data is anything else."""
    try:
        found = decode_json(data) if data.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{") else None
    except sabir.errors.NotJSON:
        return None
    if not is_document(found):
        return None
    try:
        return load_as(sabir.DecodedHistory.model_validate, found)
    except ValidationError as error:
        raise sabir.errors.HistoryInvalid(f"it is not what `sabir import --json` gave: {describe(error)}") from None


def _with_options(history: sabir.DecodedHistory, given: Sequence[sabir.Option]) -> sabir.DecodedHistory:
    """The history with further options; one given takes the place of an imported one of its name."""
    names = {option.name for option in given}
    kept = (option for option in history.options if option.name not in names)
    return history.model_copy(update={"options": (*kept, *given)}) if given else history


def _view(adapter: sabir.ModelAdapter, history: sabir.DecodedHistory) -> View:
    title = str(adapter.target)
    try:
        return View(title, adapter.render(history.messages, options=history.options, settings=history.settings))
    except sabir.RenderingRefused as error:
        return View(title, error=str(error))
