"""The texts of a JSON value, wherever they stand: by them a case finds again what it gave or got.

{"a": ["x", {"b": 1}]}  ──leaves──▶  a, x, b, 1          objects ──▶ every object in it
"""

import json
from collections.abc import Iterator, Mapping

from sabir.authoring import JSONValue


def leaves(value: JSONValue) -> list[str]:
    """Every text in it, the names of fields and numbers too; no empty ones."""
    return list(_leaves(value, has_names=True))


def texts(value: JSONValue) -> list[str]:
    """Every text in it, numbers too, but no names of fields; no empty ones."""
    return list(_leaves(value, has_names=False))


def _leaves(value: JSONValue, *, has_names: bool) -> Iterator[str]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from [key] if has_names and key else []
            yield from _leaves(item, has_names=has_names)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _leaves(item, has_names=has_names)
    elif isinstance(value, str):
        yield from [value] if value else []
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield str(value)


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
    if isinstance(value, str):
        yield value
        yield from _inner(value)
    elif isinstance(value, Mapping):
        for key, each in value.items():
            yield key
            yield from every_string(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from every_string(each)


def _inner(text: str) -> Iterator[str]:
    """The strings of a JSON text: arguments and results often are such."""
    if text.startswith(("{", "[")):
        try:
            yield from every_string(json.loads(text))
        except ValueError:
            return
