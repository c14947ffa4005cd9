"""`sabir import`: a conversation that another program stored in a vendor's shape, as sabir's own history.

FILE ──▶ requests ──dialect.decode_history──▶ DecodedHistory ──▶ a history, or the whole as JSON

    {…}                 one request, as it is
    {…} {…} or [{…}]    JSON Lines, or an array, of requests: objects that have the dialect's `messages_field`
    [message, …]        messages without a request around them ──▶ {"<messages_field>": [message, …]}

Nothing is sent, and FILE is never written to. Bytes stay bytes: what is broken in them is the dialect's to mend, and to
report.
"""

import json
import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, NamedTuple, NoReturn

import sabir
from cyclopts import Parameter
from sabir import DecodedHistory, RenderingRefused
from sabir.authoring import JSONValue, one_line
from sabir.errors import HistoryInvalid

from sabir_cli.exits import Exit
from sabir_cli.inputs import STDIN_TOO, JSONFlag, read_bytes
from sabir_cli.output import Output, UsageError, refuse_replacing
from sabir_cli.providers import spoken_dialects

_SPACE = re.compile(r"[ \t\r\n]*")
_BYTES = "surrogateescape"
"""How bytes that are no UTF-8 pass through text unchanged."""


class Value(NamedTuple):
    """One JSON value of a file: where it stands, its text, and what it is."""

    place: str
    text: str
    found: JSONValue


class Request(NamedTuple):
    """One stored request. `place` says where it stands in a file of several; `is_wrapped`, that it was messages."""

    place: str
    body: bytes
    is_wrapped: bool = False


class Imported(NamedTuple):
    """One request, and its contents."""

    request: Request
    history: DecodedHistory

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
        lost = [loss for each in found for loss in each.losses()]
        RenderingRefused.check(lost, True, f"--strict: importing {source}")
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
    except HistoryInvalid as error:
        raise HistoryInvalid(f"{source}: {error}") from None
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
        except HistoryInvalid as error:
            raise HistoryInvalid(f"{request.place}: {error}" if request.place else str(error)) from None
    return found


def _recognise(values: Sequence[Value], console: Output) -> tuple[sabir.PureDialect, list[Imported]]:
    """The one installed dialect that reads the requests, and what it read; HistoryInvalid where it is not one."""
    spoken, faults = spoken_dialects(sabir.providers())
    for fault in faults:
        console.note(fault)
    read: dict[str, tuple[sabir.PureDialect, list[Imported]]] = {}
    for each in spoken:
        candidate = sabir.dialect(each.speaker.full_name)
        with suppress(HistoryInvalid):
            read[each.speaker.full_name] = candidate, _read_as(candidate, values)
    if len(read) == 1:
        ((name, only),) = read.items()
        console.note(f"read as {name}, the one installed dialect that takes it")
        return only
    if read:
        raise HistoryInvalid(f"it may be of {' or '.join(read)}; say which with --from")
    installed = ", ".join(each.speaker.full_name for each in spoken) or "none"
    raise HistoryInvalid(f"no installed dialect reads it ({installed}); name one with --from to see why")


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
        otherwise, remedy = ", or leave it out for standard output", ", or add --force"
        refuse_replacing(f"--output {str(target)!r}", target, may_replace=force, otherwise=otherwise, remedy=remedy)


def _report(found: Sequence[Imported], console: Output) -> None:
    """The losses, a line each, and a line for each request of what it held."""
    for each in found:
        console.losses(each.losses())
    for request, history in found:
        held = [_count(history.messages, "message", "messages")]
        if history.options:
            held.append(_count(history.options, "option", "options"))
        if history.model:
            held.append(f"model {one_line(history.model, 60)}")
        place = f"{request.place}: " if request.place else ""
        console.note(f"read   {place}{', '.join(held)}; {_count(history.losses, 'loss', 'losses')}")


def _count(held: Sequence[object], one: str, several: str) -> str:
    return f"{len(held)} {one if len(held) == 1 else several}"


def read_values(data: bytes) -> list[Value]:
    """The JSON values in a file, one or more; raises HistoryInvalid for invalid JSON and for sabir's own histories."""
    encoding = json.detect_encoding(data)
    if not encoding.startswith("utf-8"):
        raise HistoryInvalid(f"it is {encoding.upper()} text; store it as UTF-8")
    text = data.decode("utf-8-sig", _BYTES)
    values: list[Value] = []
    line, start = 1, _skip_space(text, 0)
    line += text.count("\n", 0, start)
    while start < len(text):
        found, end = _parse(text, start, line)
        values.append(Value(f"line {line}", text[start:end], found))
        following = _skip_space(text, end)
        line += text.count("\n", start, following)
        start = following
    if not values:
        raise HistoryInvalid("it is empty; expected the body of a request")
    _refuse_own(values)
    return values


def as_requests(values: Sequence[Value], messages_field: str) -> list[Request]:
    """What the values are to the dialect whose requests have that field; HistoryInvalid for what can be neither."""
    is_array = len(values) == 1 and isinstance(values[0].found, list)
    items = _items(values[0]) if is_array else list(values)
    strange = next((item for item in items if not isinstance(item.found, dict)), None)
    if strange is not None:
        shown = ascii(one_line(strange.text, 40))
        raise HistoryInvalid(f"{strange.place} is {shown}; expected an object: a request, or a message")
    if not is_array and len(items) == 1:
        return [Request("", _encode(items[0].text))]
    if _are_requests(items, messages_field):
        is_alone = len(items) == 1
        return [Request("" if is_alone else item.place, _encode(item.text)) for item in items]
    listed = values[0].text if is_array else f"[{','.join(item.text for item in items)}]"
    return [Request("", _encode(f"{{{json.dumps(messages_field)}:{listed}}}"), is_wrapped=True)]


def is_document(found: JSONValue) -> bool:
    """Whether a JSON value is a whole DecodedHistory, as `sabir import --json` writes it."""
    return isinstance(found, dict) and found.keys() == DecodedHistory.model_fields.keys()


def _are_requests(items: Sequence[Value], messages_field: str) -> bool:
    """Whether objects are requests: a field of that name may be a message's too, but then it holds no array."""
    fields = [item.found.get(messages_field) for item in items]
    return any(isinstance(field, list) for field in fields) or (bool(fields) and None not in fields)


def _items(array: Value) -> list[Value]:
    """The items of an array, each with its own text."""
    items, start = [], _skip_space(array.text, 1)
    for index, found in enumerate(array.found):
        _, end = _PARSER.raw_decode(array.text, start)
        items.append(Value(f"[{index}]", array.text[start:end], found))
        start = _skip_space(array.text, _skip_space(array.text, end) + 1)
    return items


def _refuse_own(values: Sequence[Value]) -> None:
    """HistoryInvalid for what needs no import."""
    first = values[0].found
    if isinstance(first, list) and first:
        first = first[0]
    if isinstance(first, dict) and ({"policy", "payload"} <= first.keys() or is_document(first)):
        raise HistoryInvalid("it is sabir's own already; give it to `sabir render` as it is")


def _parse(text: str, start: int, line: int) -> tuple[JSONValue, int]:
    try:
        found, end = _PARSER.raw_decode(text, start)
    except json.JSONDecodeError as error:
        place = f"line {line + text.count(chr(10), start, error.pos)}"
        raise HistoryInvalid(f"{place} is no JSON: {error.msg}; expected a request's body, in UTF-8") from None
    except RecursionError:
        raise HistoryInvalid(f"line {line} is nested too deeply; expected a request's body") from None
    except ValueError as error:
        raise HistoryInvalid(f"line {line} is no JSON: {one_line(str(error), 120)}") from None
    return found, end


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON's; write null, or leave it out")


_PARSER = json.JSONDecoder(parse_constant=_refuse_constant)


def _skip_space(text: str, start: int) -> int:
    found = _SPACE.match(text, start)
    return found.end() if found else start


def _encode(text: str) -> bytes:
    return text.encode("utf-8", _BYTES)
