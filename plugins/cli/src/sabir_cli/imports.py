"""`sabir import`: convert a conversation that another program stored in a vendor's format to sabir's messages.

FILE ──▶ requests ──dialect.decode_history──▶ DecodedHistory ──▶ messages, or with --json all contents

    {…}                 one request
    {…} {…} or [{…}]    JSON Lines, or an array, of requests: objects that have the dialect's `messages_field`
    [message, …]        messages without a request around them ──▶ {"<messages_field>": [message, …]}

Nothing is sent, and FILE is never changed. Invalid UTF-8 is passed to the dialect, which replaces it and reports a
loss.
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
"""The error handler for decoding and encoding that preserves bytes that are not UTF-8."""


class Value(NamedTuple):
    """One JSON value in a file: its place, such as "line 3", its text, and the parsed value."""

    place: str
    text: str
    found: JSONValue


class Request(NamedTuple):
    """One stored request. `place` is its place in a file of several requests, otherwise "".

    `is_wrapped` means that the file contains messages only, so that `body` was created from them.
    """

    place: str
    body: bytes
    is_wrapped: bool = False


class Imported(NamedTuple):
    """One request, and the history decoded from it."""

    request: Request
    history: DecodedHistory

    def losses(self) -> Iterator[sabir.Loss]:
        """Yield the losses of decoding. For a file of several requests, the path of each loss begins with its request's
        place.
        """
        for loss in self.history.losses:
            path = f"{self.request.place} {loss.path}".strip()
            yield loss.model_copy(update={"path": path}) if self.request.place else loss


def import_(
    file: Annotated[str, STDIN_TOO, Parameter(help="JSON file of a request or its messages; - reads standard input.")],
    /,
    *,
    dialect: Annotated[
        str | None,
        Parameter(
            name="--from",
            help="provider.dialect of the file. Default: the dialect that can read it, if there is only one.",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        Parameter(name=["-o", "--output"], help="File to write, or an existing folder, which several requests need."),
    ] = None,
    force: Annotated[bool, Parameter(negative="", help="Overwrite the file --output.")] = False,
    strict: Annotated[
        bool, Parameter(negative="", help="Write nothing, and exit 1, if anything was dropped or downgraded.")
    ] = False,
    as_json: JSONFlag = False,
) -> int:
    """Convert a conversation stored in a vendor's format to sabir's messages.

    The output has the messages only. With --json it also has options,
    settings, model and losses. `sabir render` reads both. For example:

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
        console.note("only messages are written; --json prints options and settings too")
    if not targets and not as_json:
        console.data(sabir.dumps(found[0].history.messages))
    return Exit.OK


def _read(file: str, source: str, dialect: str | None, console: Output) -> list[Imported]:
    """Return every request in a file, decoded. Raises HistoryInvalid, which names the file, and UsageError for a file
    that cannot be read.
    """
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
        console.note(f"{source} contains messages only; they were read as the field {field!r} of {asked.dialect.name}")
    return found


def _read_as(dialect: sabir.PureDialect, values: Sequence[Value]) -> list[Imported]:
    """Decode the requests with a dialect. Raises HistoryInvalid, which names the request that cannot be read."""
    found = []
    for request in as_requests(values, dialect.dialect.messages_field):
        try:
            found.append(Imported(request, dialect.decode_history(request.body)))
        except HistoryInvalid as error:
            raise HistoryInvalid(f"{request.place}: {error}" if request.place else str(error)) from None
    return found


def _recognise(values: Sequence[Value], console: Output) -> tuple[sabir.PureDialect, list[Imported]]:
    """Return the only installed dialect that can read the requests, and the decoded requests.

    Raises HistoryInvalid if no dialect or several dialects can read the requests.
    """
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
        console.note(f"read as {name}, the only installed dialect that can read the file")
        return only
    if read:
        raise HistoryInvalid(f"several dialects can read it; choose {' or '.join(read)} with --from")
    installed = ", ".join(each.speaker.full_name for each in spoken) or "none"
    raise HistoryInvalid(f"no installed dialect ({installed}) can read it; choose one with --from to see its error")


def _targets(output: Path | None, file: str, count: int, source: str, *, as_json: bool) -> list[Path]:
    """Return the files to write: --output, or if this is a folder a numbered file in it for each request. [] without
    --output.

    Raises UsageError for several requests without a folder, or together with --json.
    """
    if output is not None and output.is_dir():
        stem = "request" if file == "-" else Path(file).stem
        targets = [output / f"{stem}-{number:0{len(str(count))}}.json" for number in range(1, count + 1)]
    else:
        targets = [] if output is None else [output]
    if count > 1 and as_json:
        raise UsageError(f"{source} contains {count} requests, and --json prints one; use --output FOLDER instead")
    if count > max(1, len(targets)):
        remedy = "write each to a file with --output FOLDER, which must exist"
        raise UsageError(f"{source} contains {count} requests; {remedy}")
    return targets


def _refuse_overwriting(targets: Iterable[Path], file: str, force: bool) -> None:
    """Check the files to write. Raises UsageError if a file exists already and `force` is False, or if it is the
    input.
    """
    with suppress(OSError, ValueError):
        read = os.fstat(sys.stdin.fileno()) if file == "-" else os.stat(file)
        same = next((each for each in targets if each.exists() and os.path.samestat(each.stat(), read)), None)
        if same is not None:
            raise UsageError(f"--output {str(same)!r} is the input file; choose another file")
    for target in targets:
        otherwise, remedy = ", or remove --output to write to standard output", ", or add --force"
        refuse_replacing(f"--output {str(target)!r}", target, may_replace=force, otherwise=otherwise, remedy=remedy)


def _report(found: Sequence[Imported], console: Output) -> None:
    """Print a line for each loss, and for each request a line with the number of messages, options and losses."""
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
    """Return the JSON values in a file, at least one.

    Raises HistoryInvalid for invalid JSON, another encoding than UTF-8, an empty file, and a file that sabir wrote.
    """
    encoding = json.detect_encoding(data)
    if not encoding.startswith("utf-8"):
        raise HistoryInvalid(f"the file is {encoding.upper()} text; convert it to UTF-8")
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
        raise HistoryInvalid("the file is empty; expected the body of a request")
    _refuse_own(values)
    return values


def as_requests(values: Sequence[Value], messages_field: str) -> list[Request]:
    """Return the requests in a file with these values. A single object is a request. Several objects, or an array, are
    requests if they have the field `messages_field`, otherwise the messages of one request.

    Raises HistoryInvalid for values that are not objects.
    """
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
    """Return whether a JSON value is an object with exactly the fields of the output of `sabir import --json`."""
    return isinstance(found, dict) and found.keys() == DecodedHistory.model_fields.keys()


def _are_requests(items: Sequence[Value], messages_field: str) -> bool:
    """Return whether objects are requests: one has an array in `messages_field`, or all have the field. (A message may
    have such a field too, but not with an array.)
    """
    fields = [item.found.get(messages_field) for item in items]
    return any(isinstance(field, list) for field in fields) or (bool(fields) and None not in fields)


def _items(array: Value) -> list[Value]:
    """Return the items of an array, each with its place and text."""
    items, start = [], _skip_space(array.text, 1)
    for index, found in enumerate(array.found):
        _, end = _PARSER.raw_decode(array.text, start)
        items.append(Value(f"[{index}]", array.text[start:end], found))
        start = _skip_space(array.text, _skip_space(array.text, end) + 1)
    return items


def _refuse_own(values: Sequence[Value]) -> None:
    """Check that sabir did not write the file. Raises HistoryInvalid if it did, because no import is needed then."""
    first = values[0].found
    if isinstance(first, list) and first:
        first = first[0]
    if isinstance(first, dict) and ({"policy", "payload"} <= first.keys() or is_document(first)):
        raise HistoryInvalid("sabir wrote this file, so it needs no import; use it with `sabir render` or --from")


def _parse(text: str, start: int, line: int) -> tuple[JSONValue, int]:
    try:
        found, end = _PARSER.raw_decode(text, start)
    except json.JSONDecodeError as error:
        place = f"line {line + text.count(chr(10), start, error.pos)}"
        raise HistoryInvalid(f"{place} is not JSON: {error.msg}; expected a request's body, in UTF-8") from None
    except RecursionError:
        raise HistoryInvalid(f"line {line} is nested too deeply; expected a request's body") from None
    except ValueError as error:
        raise HistoryInvalid(f"line {line} is not JSON: {one_line(str(error), 120)}") from None
    return found, end


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number; write null, or remove the field")


_PARSER = json.JSONDecoder(parse_constant=_refuse_constant)


def _skip_space(text: str, start: int) -> int:
    found = _SPACE.match(text, start)
    return found.end() if found else start


def _encode(text: str) -> bytes:
    return text.encode("utf-8", _BYTES)
