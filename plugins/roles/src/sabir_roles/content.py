"""Content of a message: a dict of JSON values that calls a function after each change, at any depth.

    value ──watch──▶ WatchedDict · WatchedList        copies, which share nothing with the value
    content["context"].append(…) ──▶ touch()          so that the core message is built again

Values are JSON. Models, dates, tuples and sets are converted when they are stored. Other values raise RoleError.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from typing import Any, Protocol, SupportsIndex, TypeAlias

from sabir.authoring import encode_json
from sabir.errors import NotJSON

from sabir_roles.errors import RoleError

Touch: TypeAlias = Callable[[], None]
"""The function that content calls after each change."""


MOST_LEVELS = 100
"""The maximum depth of content. Deeper values raise RoleError."""


class Watcher(Protocol):
    """An object that caches the core messages of editable messages."""

    def changed(self, message_id: str) -> None:
        """Note that the core message of the message with this id must be built again."""


def json_copy(value: object) -> Any:  # any JSON value
    """Return a copy of a value as JSON values (dicts, lists and so on). Sets become lists. Raises RoleError if JSON
    cannot represent the value.
    """
    if value is None or isinstance(value, bool | int):
        return value
    try:
        return json.loads(encode_json(value[:] if isinstance(value, str) else copy_containers(value)))
    except NotJSON as error:
        raise RoleError(f"{error}; use JSON values") from None


def copy_containers(value: Any, levels: int = MOST_LEVELS) -> Any:
    """Return a value with its mappings and lists copied, up to `levels` deep, and with sets as sorted lists."""
    if levels:
        if isinstance(value, Mapping):
            return {name: copy_containers(each, levels - 1) for name, each in value.items()}
        if isinstance(value, list | tuple):
            return [copy_containers(each, levels - 1) for each in value]
        if isinstance(value, set | frozenset):
            return sorted((copy_containers(each, levels - 1) for each in value), key=encode_json)
    return value


def watch(value: object, touch: Touch) -> Any:  # any JSON value
    """Return a copy of a value as JSON values, whose dicts and lists call `touch` after each change."""
    return _wrap(json_copy(value), touch)


def _wrap(value: Any, touch: Touch) -> Any:
    if isinstance(value, dict):
        return WatchedDict(value, touch)
    return WatchedList(value, touch) if isinstance(value, list) else value


def _with_touch(change: Any) -> Any:  # a method of dict or list; the new method has the same arguments
    """Return a method that calls `change`, a method of dict or list, and then `_touch`."""

    @wraps(change)
    def changed(self: Any, *args: Any, **named: Any) -> Any:
        returned = change(self, *args, **named)
        self._touch()
        return returned

    return changed


class WatchedDict(dict[str, Any]):
    """A JSON object that calls a function after each change. It is equal to a dict with the same items."""

    __slots__ = ("_touch",)

    def __init__(self, items: Mapping[str, Any], touch: Touch) -> None:
        self._touch = touch
        super().__init__({name: _wrap(value, touch) for name, value in items.items()})

    def __setitem__(self, name: str, value: Any) -> None:
        """Set the value of a name, converted to JSON. Raises RoleError if JSON cannot represent the value."""
        super().__setitem__(check_name(name), watch(value, self._touch))
        self._touch()

    __delitem__ = _with_touch(dict.__delitem__)
    """Remove the value of a name."""

    def update(self, *args: Any, **named: Any) -> None:
        """Set several values, with the arguments of `dict.update`. If a value is invalid, none is set."""
        super().update(watch(dict(*args, **named), self._touch))
        self._touch()

    def __ior__(self, other: Any) -> "WatchedDict":  # type: ignore[override,misc]  # dict's own takes iterables of pairs too
        """Set several values."""
        self.update(other)
        return self

    def setdefault(self, name: str, default: Any = None) -> Any:
        """Return the value of a name. If the name is missing, set its value to `default` first."""
        if name not in self:
            self[name] = default
        return self[name]

    pop = _with_touch(dict.pop)
    """Remove the value of a name and return it, as `dict.pop` does."""
    popitem = _with_touch(dict.popitem)
    """Remove the last item and return it as (name, value)."""
    clear = _with_touch(dict.clear)
    """Remove all values."""

    def __copy__(self) -> dict[str, Any]:
        """Return a plain dict of the same values."""
        return dict(self)

    def __deepcopy__(self, memo: object) -> Any:
        """Return a plain copy."""
        return json_copy(self)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle as a plain dict."""
        return dict, (json_copy(self),)


class WatchedList(list[Any]):
    """A JSON array that calls a function after each change. It is equal to a list with the same items."""

    __slots__ = ("_touch",)

    def __init__(self, items: Iterable[Any], touch: Touch) -> None:
        self._touch = touch
        super().__init__(_wrap(value, touch) for value in items)

    def __setitem__(self, index: Any, value: Any) -> None:
        """Set a value, or the values of a slice. Raises RoleError if JSON cannot represent them."""
        super().__setitem__(index, watch(value, self._touch))
        self._touch()

    __delitem__ = _with_touch(list.__delitem__)
    """Remove the value at a position, or the values of a slice."""

    def append(self, value: Any) -> None:
        """Add a value at the end."""
        super().append(watch(value, self._touch))
        self._touch()

    def extend(self, values: Iterable[Any]) -> None:
        """Add values at the end. If one is invalid, none is added."""
        super().extend(watch(list(values), self._touch))
        self._touch()

    def __iadd__(self, values: Iterable[Any]) -> "WatchedList":  # type: ignore[misc]
        """Add values at the end."""
        self.extend(values)
        return self

    def __imul__(self, times: SupportsIndex) -> "WatchedList":
        """Repeat the values `times` times, in place."""
        self[:] = json_copy(self) * times.__index__()
        return self

    def insert(self, index: SupportsIndex, value: Any) -> None:
        """Insert a value before a position."""
        super().insert(index, watch(value, self._touch))
        self._touch()

    pop = _with_touch(list.pop)
    """Remove the value at a position, by default the last, and return it."""
    remove = _with_touch(list.remove)
    """Remove the first value equal to the argument. Raises ValueError if there is none, as `list.remove` does."""
    clear = _with_touch(list.clear)
    """Remove all values."""
    reverse = _with_touch(list.reverse)
    """Reverse the order."""
    sort = _with_touch(list.sort)
    """Sort the values, as `list.sort` does."""

    def __copy__(self) -> list[Any]:
        """Return a plain list of the same values."""
        return list(self)

    def __deepcopy__(self, memo: object) -> Any:
        """Return a plain copy."""
        return json_copy(self)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle as a plain list."""
        return list, (json_copy(self),)


def check_name(name: object) -> str:
    """Return a name of a value in content. Raises RoleError if it is not a string."""
    if isinstance(name, str):
        return name
    raise RoleError(f"the name {name!a} of a value in content is not a string; use strings as names")
