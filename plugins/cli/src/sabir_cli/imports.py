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


class FileValue(NamedTuple):
    """One JSON value in a file: its position, such as "line 3", its text, and the parsed value."""

    position: str
    text: str
    parsed: JSONValue


class FileRequest(NamedTuple):
    """One stored request. `position` is its position in a file of several requests, otherwise "".

    If `is_wrapped` is True, the file contains messages only, and `body` is a request that was created from them.
    """

    position: str
    body: bytes
    is_wrapped: bool = False


class Imported(NamedTuple):
    """One request, and the history decoded from it."""

    request: FileRequest
    history: DecodedHistory

    def losses(self) -> Iterator[sabir.Loss]:
        """Yield the losses of decoding. For a file of several requests, the path of each loss begins with its request's
        position.
        """
        for loss in self.history.losses:
            path = f"{self.request.position} {loss.path}".strip()
            yield loss.model_copy(update={"path": path}) if self.request.position else loss


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
        bool, Parameter(negative="", help="If anything was dropped or downgraded, exit 1 and write nothing but --json.")
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
    requests = _read_requests(file, source, dialect, console)
    targets = _target_files(output, file, len(requests), source, as_json=as_json)
    _refuse_overwriting(targets, file, force)
    _print_summary(requests, console)
    if as_json:
        console.document(requests[0].history.model_dump(mode="json", exclude_none=True))
    if strict:
        lost = [loss for each in requests for loss in each.losses()]
        RenderingRefused.check(lost, True, f"--strict: importing {source}")
    for each, target in zip(requests, targets, strict=False):
        sabir.save(target, each.history.messages)
        console.note(f"wrote  {target}")
    if any(each.history.options or each.history.settings != sabir.Settings() for each in requests):
        console.note("only messages are written; --json prints options and settings too")
    if not targets and not as_json:
        console.data(sabir.dumps(requests[0].history.messages))
    return Exit.OK


def _read_requests(file: str, source: str, dialect: str | None, console: Output) -> list[Imported]:
    """Return every request in a file, decoded. Raises HistoryInvalid, which names the file, and UsageError for a file
    that cannot be read.
    """
    pure_dialect = None if dialect is None else sabir.dialect(dialect)
    try:
        values = read_values(read_bytes(file, "a FILE"))
        if pure_dialect is None:
            pure_dialect, requests = _recognise(values, console)
        else:
            requests = _decode_requests(pure_dialect, values)
    except HistoryInvalid as error:
        raise HistoryInvalid(f"{source}: {error}") from None
    if any(each.request.is_wrapped for each in requests):
        field, name = pure_dialect.dialect.messages_field, pure_dialect.dialect.name
        console.note(f"{source} contains messages only; they were read as the field {field!r} of {name}")
    return requests


def _decode_requests(dialect: sabir.PureDialect, values: Sequence[FileValue]) -> list[Imported]:
    """Decode the requests with a dialect. Raises HistoryInvalid with the position of the request that is invalid."""
    requests = []
    for request in as_requests(values, dialect.dialect.messages_field):
        try:
            requests.append(Imported(request, dialect.decode_history(request.body)))
        except HistoryInvalid as error:
            raise HistoryInvalid(f"{request.position}: {error}" if request.position else str(error)) from None
    return requests


def _recognise(values: Sequence[FileValue], console: Output) -> tuple[sabir.PureDialect, list[Imported]]:
    """Find the only installed dialect that can read the requests. Return it and the decoded requests.

    Raises HistoryInvalid if no dialect or several dialects can read the requests.
    """
    spoken, faults = spoken_dialects(sabir.providers())
    for fault in faults:
        console.note(fault)
    candidates: dict[str, tuple[sabir.PureDialect, list[Imported]]] = {}
    for each in spoken:
        candidate = sabir.dialect(each.speaker.full_name)
        with suppress(HistoryInvalid):
            candidates[each.speaker.full_name] = candidate, _decode_requests(candidate, values)
    if len(candidates) == 1:
        ((name, only),) = candidates.items()
        console.note(f"read as {name}, the only installed dialect that can read the file")
        return only
    if candidates:
        raise HistoryInvalid(f"several dialects can read it; choose {' or '.join(candidates)} with --from")
    installed = ", ".join(each.speaker.full_name for each in spoken) or "none"
    raise HistoryInvalid(f"no installed dialect ({installed}) can read it; choose one with --from to see its error")


def _target_files(output: Path | None, file: str, count: int, source: str, *, as_json: bool) -> list[Path]:
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
        source_stat = os.fstat(sys.stdin.fileno()) if file == "-" else os.stat(file)
        same = next((each for each in targets if each.exists() and os.path.samestat(each.stat(), source_stat)), None)
        if same is not None:
            raise UsageError(f"--output {str(same)!r} is the input file; choose another file")
    for target in targets:
        otherwise, remedy = ", or remove --output to write to standard output", ", or add --force"
        refuse_replacing(f"--output {str(target)!r}", target, may_replace=force, otherwise=otherwise, remedy=remedy)


def _print_summary(imported: Sequence[Imported], console: Output) -> None:
    """Print a line for each loss, and for each request a line with the number of messages, options and losses."""
    for each in imported:
        console.losses(each.losses())
    for request, history in imported:
        contents = [_counted(history.messages, "message", "messages")]
        if history.options:
            contents.append(_counted(history.options, "option", "options"))
        if history.model:
            contents.append(f"model {one_line(history.model, 60)}")
        prefix = f"{request.position}: " if request.position else ""
        console.note(f"read   {prefix}{', '.join(contents)}; {_counted(history.losses, 'loss', 'losses')}")


def _counted(things: Sequence[object], one: str, several: str) -> str:
    return f"{len(things)} {one if len(things) == 1 else several}"


def read_values(data: bytes) -> list[FileValue]:
    """Return the JSON values in a file, at least one.

    Raises HistoryInvalid for invalid JSON, another encoding than UTF-8, an empty file, and a file that sabir wrote.
    """
    encoding = json.detect_encoding(data)
    if not encoding.startswith("utf-8"):
        raise HistoryInvalid(f"the file is {encoding.upper()} text; convert it to UTF-8")
    text = data.decode("utf-8-sig", _BYTES)
    values: list[FileValue] = []
    line, start = 1, _skip_space(text, 0)
    line += text.count("\n", 0, start)
    while start < len(text):
        parsed, end = _parse(text, start, line)
        values.append(FileValue(f"line {line}", text[start:end], parsed))
        following = _skip_space(text, end)
        line += text.count("\n", start, following)
        start = following
    if not values:
        raise HistoryInvalid("the file is empty; expected the body of a request")
    _refuse_sabir_file(values)
    return values


def as_requests(values: Sequence[FileValue], messages_field: str) -> list[FileRequest]:
    """Return the requests in a file with these values. A single object is a request. Several objects, or an array, are
    requests if they have the field `messages_field`, otherwise the messages of one request.

    Raises HistoryInvalid for values that are not objects.
    """
    is_array = len(values) == 1 and isinstance(values[0].parsed, list)
    items = _array_items(values[0]) if is_array else list(values)
    invalid = next((item for item in items if not isinstance(item.parsed, dict)), None)
    if invalid is not None:
        excerpt = ascii(one_line(invalid.text, 40))
        raise HistoryInvalid(f"{invalid.position} is {excerpt}; expected an object: a request, or a message")
    if not is_array and len(items) == 1:
        return [FileRequest("", _encode_text(items[0].text))]
    if _are_requests(items, messages_field):
        is_alone = len(items) == 1
        return [FileRequest("" if is_alone else item.position, _encode_text(item.text)) for item in items]
    array_text = values[0].text if is_array else f"[{','.join(item.text for item in items)}]"
    return [FileRequest("", _encode_text(f"{{{json.dumps(messages_field)}:{array_text}}}"), is_wrapped=True)]


def is_document(parsed: JSONValue) -> bool:
    """Return whether a JSON value is an object with exactly the fields of the output of `sabir import --json`."""
    return isinstance(parsed, dict) and parsed.keys() == DecodedHistory.model_fields.keys()


def _are_requests(items: Sequence[FileValue], messages_field: str) -> bool:
    """Return whether objects are requests and not messages.

    They are if one has an array in `messages_field`, which no message has, or if all have a value in that field.
    """
    fields = [item.parsed.get(messages_field) for item in items]
    return any(isinstance(field, list) for field in fields) or (bool(fields) and None not in fields)


def _array_items(array: FileValue) -> list[FileValue]:
    """Return the items of an array, each with its position and text."""
    items, start = [], _skip_space(array.text, 1)
    for index, parsed in enumerate(array.parsed):
        _, end = _PARSER.raw_decode(array.text, start)
        items.append(FileValue(f"[{index}]", array.text[start:end], parsed))
        start = _skip_space(array.text, _skip_space(array.text, end) + 1)
    return items


def _refuse_sabir_file(values: Sequence[FileValue]) -> None:
    """Raise HistoryInvalid if sabir wrote the file, because such a file needs no import."""
    first = values[0].parsed
    if isinstance(first, list) and first:
        first = first[0]
    if isinstance(first, dict) and ({"policy", "payload"} <= first.keys() or is_document(first)):
        remedy = "use it with `sabir render`, or a file of messages with `sabir chat --from`"
        raise HistoryInvalid(f"sabir wrote this file, so it needs no import; {remedy}")


def _parse(text: str, start: int, line: int) -> tuple[JSONValue, int]:
    try:
        parsed, end = _PARSER.raw_decode(text, start)
    except json.JSONDecodeError as error:
        position = f"line {line + text.count(chr(10), start, error.pos)}"
        raise HistoryInvalid(f"{position} is not JSON: {error.msg}; expected a request's body, in UTF-8") from None
    except RecursionError:
        raise HistoryInvalid(f"line {line} is nested too deeply; expected a request's body") from None
    except ValueError as error:
        raise HistoryInvalid(f"line {line} is not JSON: {one_line(str(error), 120)}") from None
    return parsed, end


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number; write null, or remove the field")


_PARSER = json.JSONDecoder(parse_constant=_refuse_constant)


def _skip_space(text: str, start: int) -> int:
    match = _SPACE.match(text, start)
    return match.end() if match else start


def _encode_text(text: str) -> bytes:
    return text.encode("utf-8", _BYTES)
