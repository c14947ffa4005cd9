"""Stored requests in a file, in whichever of these shapes they were kept; what tells them apart is the dialect.

    {…}                 one request, as it is
    {…} {…} or [{…}]    JSON Lines, or an array, of requests: objects that have the dialect's `messages_field`
    [message, …]        messages without a request around them ──▶ {"<messages_field>": [message, …]}

Bytes stay bytes: what is broken in them is the dialect's to mend, and to report.
"""

import json
import re
from collections.abc import Sequence
from typing import NamedTuple, NoReturn

from sabir import DecodedHistory
from sabir.authoring import JSONValue, one_line
from sabir.errors import HistoryInvalid

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
