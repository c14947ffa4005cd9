"""Whether a value stays the same when it is written as JSON and read back; where it holds a secret.

    difference(value, read again)   ""                      the same, types included
                                    "[0].city is a str"     the place of a difference, and the value there
    secret_in(value)                ".login.password"       the place of a secret; None if there is none

Equality is not enough: `True == 1`, and an enum's member may equal its text.
"""

import dataclasses
from collections import deque
from collections.abc import Collection, Iterator, Mapping, Set
from datetime import datetime, time
from typing import TypeAlias

from pydantic import BaseModel, Secret, SecretBytes, SecretStr

Parts: TypeAlias = list[tuple[str, object]]
"""The parts of a value, each with its place in it."""


def difference(was: object, now: object, place: str = "") -> str:
    """Where two values first differ, in words; empty where they are the same."""
    at = place.lstrip(".") or "it"
    if type(was) is not type(now):
        return f"{at}, of type {type(was).__name__}, becomes one of type {type(now).__name__}"
    if lost := _lost(was, now):
        return f"{at} {lost}"
    parts, others = _parts_of(was), _parts_of(now)
    if parts is None or others is None:
        return "" if was == now or (was != was and now != now) else f"{at} becomes another {type(was).__name__}"  # noqa: PLR0124  # NaN
    if len(parts) != len(others):
        return f"{at}, of {len(parts)} values, becomes one of {len(others)}"
    found = (difference(part, other, place + name) for (name, part), (_, other) in zip(parts, others, strict=True))
    return next(filter(None, found), "")


def _lost(was: object, now: object) -> str:
    """What a value loses although it stays equal, in words."""
    if isinstance(was, Iterator):
        return "is an iterator, which can be read once"
    if isinstance(was, datetime | time) and was.tzinfo is not None and was.tzinfo.utcoffset(None) is None:
        return f"is in the time zone {was.tzinfo}, and becomes one with a fixed offset or none"
    if isinstance(was, deque) and isinstance(now, deque) and was.maxlen != now.maxlen:
        return f"has a maxlen of {was.maxlen}, and becomes one of {now.maxlen}"
    return ""


def secret_in(value: object, place: str = "") -> str | None:
    """The place of a pydantic secret in a value, "" for the value itself; None if there is none."""
    if isinstance(value, Secret | SecretStr | SecretBytes):
        return place
    found = (secret_in(part, place + name) for name, part in _parts_of(value) or ())
    return next((each for each in found if each is not None), None)


def _parts_of(value: object) -> Parts | None:
    """The parts of a value; None for a value without parts."""
    if isinstance(value, str | bytes | bytearray | memoryview):
        return None
    if isinstance(value, BaseModel):
        held = {name: getattr(value, name) for name in type(value).model_fields}
        held |= (value.__pydantic_extra__ or {}) | (value.__pydantic_private__ or {})
        return [(f".{name}", item) for name, item in held.items()]
    if dataclasses.is_dataclass(value):
        return [(f".{field.name}", getattr(value, field.name, None)) for field in dataclasses.fields(value)]
    if isinstance(value, Mapping):
        return [(f"[{key!r}]", part) for key, item in value.items() for part in (key, item)]
    if isinstance(value, Set):
        return [("{…}", item) for item in sorted(value, key=lambda each: (hash(each), repr(each)))]
    if isinstance(value, Collection):
        return [(f"[{index}]", item) for index, item in enumerate(value)]
    return None
