"""Reading what a provider answered: any bytes become JSON of a known shape, or one of the library's errors (law 10).

body ──read_object──▶ dict          text() · items() · fields() · first_count()  take a value of one type, else nothing
                                    without() · left_over()  what nothing else holds
count ──read_count──▶ tokens
"""

import json
import re
from collections.abc import Collection, Mapping
from typing import Any

from sabir.base.errors import NotJSON
from sabir.base.failures import ResponseInvalid
from sabir.base.models import assemble
from sabir.base.values import JSONValue, decode_json, encode_json, parse_json
from sabir.contract.scope import DecodeScope
from sabir.vocabulary.reply import Usage

Fields = Mapping[str, Any]
"""A JSON object of the wire; what its fields hold is not trusted, hence Any."""

_SURROGATE = re.compile("[\ud800-\udfff]")
_SHOWN = 120


def read_object(body: bytes | str, scope: DecodeScope) -> dict[str, Any]:
    """The JSON object that a body or an event holds; ResponseInvalid for HTML, an empty body, broken JSON.

    Lone surrogates become U+FFFD: no text of the library may hold one.
    """
    try:
        found = parse_json(body)
    except ValueError:
        found = _read_broken(body)
    if isinstance(found, dict):
        return found
    shown = body.decode("utf-8", "replace") if isinstance(body, bytes) else body
    answer = ascii(shown[:_SHOWN]) if shown.strip() else "an empty body"
    raise scope.invalid(f"answered {answer}; expected a JSON object of {scope.target.dialect}: check the endpoint")


def _read_broken(body: bytes | str) -> JSONValue:
    """What is JSON but for its Unicode; None for all else."""
    try:
        return json.loads(_SURROGATE.sub("\ufffd", json.dumps(decode_json(body), ensure_ascii=False)))
    except NotJSON:
        return None


def text(value: JSONValue) -> str:
    """The value if it is a string, else the empty string."""
    return value if isinstance(value, str) else ""


def fields(value: JSONValue) -> Fields:
    """The value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def items(value: JSONValue) -> list[Any]:
    """The value if it is an array, else an empty one."""
    return value if isinstance(value, list) else []


def left_over(found: Fields, known: Collection[str]) -> dict[str, Any]:
    """The fields that nothing else of a reply holds; those without a value say nothing."""
    for name in found:
        if name not in known:
            break
    else:
        return {}
    return {name: value for name, value in found.items() if name not in known and value is not None}


def without(found: Fields, *names: str) -> dict[str, Any]:
    """An object without those fields."""
    rest = dict(found)
    for name in names:
        rest.pop(name, None)
    return rest


def first_count(*figures: JSONValue) -> int | None:
    """The first value that is a whole number, however it is written (70 or 70.0), or None."""
    for figure in figures:
        if type(figure) is int:
            return figure
        if type(figure) is float and figure % 1 == 0:
            return int(figure)
    return None


def usage_of(
    details: Fields,
    *,
    input_tokens: int | None,
    output_tokens: int | None,
    cache_read_tokens: int | None = None,
    cache_write_tokens: int | None = None,
    reasoning_tokens: int | None = None,
) -> Usage:
    """A usage of figures that `first_count` found, and the object in which the vendor gave them."""
    values = {
        "input_tokens": input_tokens,
        "output_tokens": output_tokens,
        "cache_read_tokens": cache_read_tokens,
        "cache_write_tokens": cache_write_tokens,
        "reasoning_tokens": reasoning_tokens,
        "details_json": encode_json(details),
    }
    return assemble(Usage, values, set(values))


def read_count(body: bytes, field: str, dialect: str) -> int:
    """The tokens that a vendor counted, in that field of its answer; ResponseInvalid for anything else."""
    try:
        counted = first_count(fields(decode_json(body)).get(field))
    except NotJSON:
        counted = None
    if counted is None:
        raise ResponseInvalid(f"{dialect} answered a count with {body[:_SHOWN]!r}; expected {field}")
    return counted
