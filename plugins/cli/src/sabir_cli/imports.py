"""`sabir import`: a conversation that another program stored in a vendor's shape, as sabir's own history.

FILE ──stored──▶ requests ──dialect.decode_history──▶ DecodedHistory ──▶ a history, or the whole as JSON

Nothing is sent, and FILE is never written to.
"""

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, NamedTuple

import sabir
from cyclopts import Parameter
from sabir import RenderingRefused
from sabir.authoring import one_line

from sabir_cli.dialects import spoken_dialects
from sabir_cli.exits import Exit, UsageError
from sabir_cli.inputs import STDIN_TOO, JSONFlag, read_bytes
from sabir_cli.output import Output
from sabir_cli.stored import Request, Value, as_requests, read_values


class Imported(NamedTuple):
    """One request, and its contents."""

    request: Request
    history: sabir.DecodedHistory

    def losses(self) -> Iterator[sabir.Loss]:
        """The losses; in a file of several requests, each names its request."""
        for loss in self.history.losses:
            path = f"{self.request.place} {loss.path}".strip()
            yield loss.model_copy(update={"path": path}) if self.request.place else loss


def import_(
    file: Annotated[str, STDIN_TOO, Parameter(help="A stored request, as JSON; - reads standard input.")],
    /,
    *,
    dialect: Annotated[
        str | None,
        Parameter(name="--from", help="provider.dialect that the request was written in; else the one that reads it."),
    ] = None,
    output: Annotated[
        Path | None,
        Parameter(name=["-o", "--output"], help="File for the history, or a folder for those of several requests."),
    ] = None,
    force: Annotated[bool, Parameter(negative="", help="Replace what --output names.")] = False,
    strict: Annotated[
        bool, Parameter(negative="", help="Write no history, and exit 1, if anything was dropped or downgraded.")
    ] = False,
    as_json: JSONFlag = False,
) -> int:
    """Read a conversation that was stored in a vendor's shape, as a history of sabir's own.

    The history is the messages; --json gives options, settings, model and losses
    too. Either is what `sabir render` takes. For example:

    sabir import old.json --from openai.chat --output talk.json

    sabir import old.json --from openai.chat | sabir render - -m openai:gpt-5
    """
    console = Output(machine=as_json)
    source = "standard input" if file == "-" else repr(file)
    found = _read(file, source, dialect, console)
    targets = _targets(output, file, len(found), source, as_json=as_json)
    _refuse_overwriting(targets, file, force)
    _report(found, console)
    if as_json:
        console.document(found[0].history.model_dump(mode="json", exclude_none=True))
    if strict:
        RenderingRefused.check(
            [loss for each in found for loss in each.losses()], True, f"--strict: importing {source}"
        )
    for each, target in zip(found, targets, strict=False):
        sabir.save(target, each.history.messages)
        console.note(f"wrote  {target}")
    if any(each.history.options or each.history.settings != sabir.Settings() for each in found):
        console.note("a history holds messages alone; --json gives options and settings too")
    if not targets and not as_json:
        console.data(sabir.dumps(found[0].history.messages))
    return Exit.OK


def _read(file: str, source: str, dialect: str | None, console: Output) -> list[Imported]:
    """Every request in a file; HistoryInvalid names the file."""
    asked = None if dialect is None else sabir.dialect(dialect)
    try:
        values = read_values(read_bytes(file, "a FILE"))
        if asked is None:
            asked, found = _recognise(values, console)
        else:
            found = _read_as(asked, values)
    except sabir.errors.HistoryInvalid as error:
        raise sabir.errors.HistoryInvalid(f"{source}: {error}") from None
    if any(each.request.is_wrapped for each in found):
        field = asked.dialect.messages_field
        console.note(f"{source} holds messages alone; they were read as {field!r} of {asked.dialect.name}")
    return found


def _read_as(dialect: sabir.PureDialect, values: Sequence[Value]) -> list[Imported]:
    """The requests as a dialect reads them; HistoryInvalid says which one it does not."""
    found = []
    for request in as_requests(values, dialect.dialect.messages_field):
        try:
            found.append(Imported(request, dialect.decode_history(request.body)))
        except sabir.errors.HistoryInvalid as error:
            raise sabir.errors.HistoryInvalid(f"{request.place}: {error}" if request.place else str(error)) from None
    return found


def _recognise(values: Sequence[Value], console: Output) -> tuple[sabir.PureDialect, list[Imported]]:
    """The one installed dialect that reads the requests, and what it read; HistoryInvalid where it is not one."""
    spoken, faults = spoken_dialects(sabir.providers())
    for fault in faults:
        console.note(fault)
    read: dict[str, tuple[sabir.PureDialect, list[Imported]]] = {}
    for each in spoken:
        candidate = sabir.dialect(each.speaker.full_name)
        with suppress(sabir.errors.HistoryInvalid):
            read[each.speaker.full_name] = candidate, _read_as(candidate, values)
    if len(read) == 1:
        ((name, only),) = read.items()
        console.note(f"read as {name}, the one installed dialect that takes it")
        return only
    if read:
        raise sabir.errors.HistoryInvalid(f"it may be of {' or '.join(read)}; say which with --from")
    installed = ", ".join(each.speaker.full_name for each in spoken) or "none"
    raise sabir.errors.HistoryInvalid(f"no installed dialect reads it ({installed}); name one with --from to see why")


def _targets(output: Path | None, file: str, count: int, source: str, *, as_json: bool) -> list[Path]:
    """The files to write; a folder gets a numbered one for each request. UsageError for several in one place."""
    if output is not None and output.is_dir():
        stem = "request" if file == "-" else Path(file).stem
        targets = [output / f"{stem}-{number:0{len(str(count))}}.json" for number in range(1, count + 1)]
    else:
        targets = [] if output is None else [output]
    if count > 1 and as_json:
        raise UsageError(f"{source} holds {count} requests, --json gives one; leave it out, and give --output FOLDER")
    if count > max(1, len(targets)):
        remedy = "give --output a folder that is there, and each becomes a file in it"
        raise UsageError(f"{source} holds {count} requests; {remedy}")
    return targets


def _refuse_overwriting(targets: Iterable[Path], file: str, force: bool) -> None:
    """UsageError for a file that is there already, unless it may be replaced; the input never may."""
    with suppress(OSError, ValueError):
        read = os.fstat(sys.stdin.fileno()) if file == "-" else os.stat(file)
        same = next((each for each in targets if each.exists() and os.path.samestat(each.stat(), read)), None)
        if same is not None:
            raise UsageError(f"--output {str(same)!r} is the file that is read; name another")
    for target in targets:
        if target.exists() and not target.is_file():
            raise UsageError(f"--output {str(target)!r} is no file; name one, or leave it out for standard output")
        if target.exists() and not force:
            raise UsageError(f"--output {str(target)!r} is there already; name another, or add --force")


def _report(found: Sequence[Imported], console: Output) -> None:
    """The losses, a line each, and a line for each request of what it held."""
    for each in found:
        console.losses(each.losses())
    for each in found:
        place = f"{each.request.place}: " if each.request.place else ""
        console.note(f"read   {place}{_summary(each.history)}")


def _summary(history: sabir.DecodedHistory) -> str:
    """What a request held, in one line."""
    held = [_count(len(history.messages), "message")]
    if history.options:
        held.append(_count(len(history.options), "option"))
    if history.model:
        held.append(f"model {one_line(history.model, 60)}")
    return f"{', '.join(held)}; {_count(len(history.losses), 'loss', 'losses')}"


def _count(number: int, one: str, several: str = "") -> str:
    return f"{number} {one if number == 1 else several or f'{one}s'}"
