"""Reads a provider's answer: any bytes become JSON of a known shape, or one of the library's errors (law 10).

a scope's read_object ──▶ dict      text() · items() · fields() · first_count()  take a value of one type, else nothing
                                    without() · left_over()  what nothing else holds
count ──read_count──▶ tokens
"""

from collections.abc import Collection, Mapping
from typing import Any

from sabir.base.errors import NotJSON
from sabir.base.failures import ResponseInvalid
from sabir.base.values import JSONValue, decode_json

Fields = Mapping[str, Any]
"""A JSON object of the wire; the types of its fields are not trusted, hence Any."""

_SHOWN = 120


def text(value: JSONValue) -> str:
    """The value if it is a string, else the empty string."""
    return value if isinstance(value, str) else ""


def fields(value: JSONValue) -> Fields:
    """The value if it is an object, else an empty object."""
    return value if isinstance(value, dict) else {}


def items(value: JSONValue) -> list[Any]:
    """The value if it is an array, else an empty array."""
    return value if isinstance(value, list) else []


def left_over(found: Fields, known: Collection[str]) -> dict[str, Any]:
    """The fields that are not among `known`; fields that are null are left out."""
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


def read_count(body: bytes, field: str, dialect: str) -> int:
    """The tokens that a vendor counted, in that field of its answer; raises ResponseInvalid for any other answer."""
    try:
        counted = first_count(fields(decode_json(body)).get(field))
    except NotJSON:
        counted = None
    if counted is None:
        raise ResponseInvalid(f"{dialect} answered a count with {body[:_SHOWN]!r}; expected {field}")
    return counted
