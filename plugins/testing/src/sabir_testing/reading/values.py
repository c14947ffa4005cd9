"""The texts of a JSON value, wherever they stand: by them a case finds again what it gave or got.

{"a": ["x", {"b": 1}]}  ──leaves──▶  a, x, b, 1          objects ──▶ every object in it
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from sabir.authoring import JSONValue

Place = tuple[str | int, ...]
"""Names and positions from a value's root to what is in it."""


class Leaf(NamedTuple):
    """A value that holds no others, or the name of a field, and its place."""

    place: Place
    value: str | float | bool | None
    is_name: bool = False


def walk(value: Any, place: Place = ()) -> Iterator[Leaf]:
    """Every leaf of a JSON value in its order; a name stands before what it names, at the same place."""
    if isinstance(value, Mapping):
        for name, member in value.items():
            yield Leaf((*place, name), name, is_name=True)
            yield from walk(member, (*place, name))
    elif isinstance(value, list | tuple):
        for position, member in enumerate(value):
            yield from walk(member, (*place, position))
    else:
        yield Leaf(place, value)


def leaves(value: JSONValue, *, has_names: bool = True) -> list[str]:
    """Every text in it, the names of fields and numbers too; no empty ones."""
    found = (leaf.value for leaf in walk(value) if has_names or not leaf.is_name)
    return [str(each) for each in found if each not in ("", None) and not isinstance(each, bool)]


def texts(value: JSONValue) -> list[str]:
    """Every text in it, numbers too, but no names of fields; no empty ones."""
    return leaves(value, has_names=False)


def strings(value: JSONValue) -> Iterator[str]:
    """Every string in it, the names of fields aside."""
    return (leaf.value for leaf in walk(value) if isinstance(leaf.value, str) and not leaf.is_name)


def objects(value: JSONValue) -> list[Mapping[str, JSONValue]]:
    """Every object in it."""
    if isinstance(value, Mapping):
        return [value, *(found for item in value.values() for found in objects(item))]
    if isinstance(value, list | tuple):
        return [found for item in value for found in objects(item)]
    return []


def read(text: str | bytes) -> JSONValue:
    """A text as the JSON that it is, or as itself."""
    try:
        value: JSONValue = json.loads(text)
    except ValueError:
        return text.decode("utf-8", "replace") if isinstance(text, bytes) else text
    return value


def every_string(value: JSONValue) -> Iterator[str]:
    """Every string of a JSON value, its keys among them, and what stands in strings that are JSON themselves."""
    for leaf in walk(value):
        if isinstance(leaf.value, str):
            yield leaf.value
            yield from () if leaf.is_name else _inner(leaf.value)


def _inner(text: str) -> Iterator[str]:
    """The strings of a JSON text: arguments and results often are such."""
    if text.startswith(("{", "[")):
        try:
            yield from every_string(json.loads(text))
        except ValueError:
            return
