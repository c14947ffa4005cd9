"""Content that reports its changes: JSON values in a dict whose owner is called after each change at any depth.

    given value ──hold──▶ Held (a dict) · HeldList (a list)     copies: nothing is shared with the given value
    held["context"].append(…) ──▶ owner.touch()                 so that the message is made again

Values are JSON: models, dates, tuples and sets are converted when they are put in; a value that JSON cannot hold is
refused then, in one line.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from typing import Any, Protocol, SupportsIndex, TypeAlias

from sabir.authoring import encode_json
from sabir.errors import NotJSON

from sabir_roles.errors import RoleError

Touch: TypeAlias = Callable[[], None]
"""The function that is called after each change."""


MOST_LEVELS = 100
"""So deep is copied; JSON texts are refused beyond."""


class Watcher(Protocol):
    """An object that caches the core messages of working copies."""

    def changed(self, message_id: str) -> None:
        """Note that the message must be made again."""


def plain(value: object) -> Any:  # any JSON value
    """A copy of a value as plain JSON; raises RoleError if JSON cannot hold it."""
    if value is None or isinstance(value, bool | int):
        return value
    try:
        return json.loads(encode_json(value[:] if isinstance(value, str) else copied(value)))
    except NotJSON as error:
        raise RoleError(f"{error}; give JSON values") from None


def copied(value: Any, levels: int = MOST_LEVELS) -> Any:
    """A value whose objects and arrays are copies, its sets arrays in the order of their JSON; the rest as it is."""
    if levels:
        if isinstance(value, Mapping):
            return {name: copied(each, levels - 1) for name, each in value.items()}
        if isinstance(value, list | tuple):
            return [copied(each, levels - 1) for each in value]
        if isinstance(value, set | frozenset):
            return sorted((copied(each, levels - 1) for each in value), key=encode_json)
    return value


def hold(value: object, touch: Touch) -> Any:  # any JSON value
    """A value as its owner holds it."""
    return _wrapped(plain(value), touch)


def _wrapped(value: Any, touch: Touch) -> Any:
    if isinstance(value, dict):
        return Held(value, touch)
    return HeldList(value, touch) if isinstance(value, list) else value


def _telling(change: Any) -> Any:  # a method of dict or list; the copy of it takes and gives the same
    """A method that changes a dict or a list, and then calls its owner."""

    @wraps(change)
    def changed(self: Any, *given: Any, **named: Any) -> Any:
        found = change(self, *given, **named)
        self._touch()
        return found

    return changed


class Held(dict[str, Any]):
    """A JSON object that reports each change to its owner; it compares equal to the same plain dict."""

    __slots__ = ("_touch",)

    def __init__(self, items: Mapping[str, Any], touch: Touch) -> None:
        self._touch = touch
        super().__init__({name: _wrapped(value, touch) for name, value in items.items()})

    def __setitem__(self, name: str, value: Any) -> None:
        """Set one value, as JSON."""
        super().__setitem__(plain_name(name), hold(value, self._touch))
        self._touch()

    __delitem__ = _telling(dict.__delitem__)
    """Take one value away."""

    def update(self, *given: Any, **named: Any) -> None:
        """Set several values; all or none."""
        changed = hold(dict(*given, **named), self._touch)
        super().update(changed)
        self._touch()

    def __ior__(self, other: Any) -> "Held":  # type: ignore[override,misc]  # dict's own takes iterables of pairs too
        """Set several values."""
        self.update(other)
        return self

    def setdefault(self, name: str, default: Any = None) -> Any:
        """The value of a name; set to `default` if there is none."""
        if name not in self:
            self[name] = default
        return self[name]

    pop = _telling(dict.pop)
    """Take one value away, and give it."""
    popitem = _telling(dict.popitem)
    """Take the last value away, and give it with its name."""
    clear = _telling(dict.clear)
    """Take all values away."""

    def __copy__(self) -> dict[str, Any]:
        """A plain dict of the same values."""
        return dict(self)

    def __deepcopy__(self, memo: object) -> Any:
        """A plain copy."""
        return plain(self)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle as a plain dict."""
        return dict, (plain(self),)


class HeldList(list[Any]):
    """A JSON array that reports each change to its owner; it compares equal to the same plain list."""

    __slots__ = ("_touch",)

    def __init__(self, items: Iterable[Any], touch: Touch) -> None:
        self._touch = touch
        super().__init__(_wrapped(value, touch) for value in items)

    def __setitem__(self, place: Any, value: Any) -> None:
        """Set one value, or those of a slice."""
        super().__setitem__(place, hold(value, self._touch))
        self._touch()

    __delitem__ = _telling(list.__delitem__)
    """Take values away."""

    def append(self, value: Any) -> None:
        """Add a value at the end."""
        super().append(hold(value, self._touch))
        self._touch()

    def extend(self, values: Iterable[Any]) -> None:
        """Add values at the end; all or none."""
        super().extend(hold(list(values), self._touch))
        self._touch()

    def __iadd__(self, values: Iterable[Any]) -> "HeldList":  # type: ignore[misc]
        """Add values at the end."""
        self.extend(values)
        return self

    def __imul__(self, times: SupportsIndex) -> "HeldList":
        """Repeat the values."""
        self[:] = plain(self) * times.__index__()
        return self

    def insert(self, place: SupportsIndex, value: Any) -> None:
        """Add a value at a place."""
        super().insert(place, hold(value, self._touch))
        self._touch()

    pop = _telling(list.pop)
    """Take one value away, and give it."""
    remove = _telling(list.remove)
    """Take the first of such values away."""
    clear = _telling(list.clear)
    """Take all values away."""
    reverse = _telling(list.reverse)
    """Turn the order around."""
    sort = _telling(list.sort)
    """Put the values in order, as `list.sort`."""

    def __copy__(self) -> list[Any]:
        """A plain list of the same values."""
        return list(self)

    def __deepcopy__(self, memo: object) -> Any:
        """A plain copy."""
        return plain(self)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle as a plain list."""
        return list, (plain(self),)


def plain_name(name: object) -> str:
    """The name of a value; raises RoleError if it is not a string."""
    if isinstance(name, str):
        return name
    raise RoleError(f"{name!a} names a value of content; names are strings")
