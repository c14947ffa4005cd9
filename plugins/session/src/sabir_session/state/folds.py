"""Reducers, and folds: a fold holds the reducers' result for all events so far, updated with each event.

    reducer   (items, event) ──▶ items        pure; defines the result
    fold      plan(event) ──▶ the change, or None if nothing changes; raises the reducer's errors
                  │ the journal is written here
              commit(plan)                    cannot fail

Law: a fold's items equal those of its pure reducer applied to the same events. With a fold, each event costs the same,
from the first to the ten thousandth: a pure reducer copies its tuple each time.

    append_item      (a, b), c ──▶ (a, b, c)    a log by default
    replace_latest   (a,),   c ──▶ (c,)         a state of one value
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, Literal, Protocol, TypeAlias, TypeVar

from sabir_session.errors import SliceNotRegistered

SliceKind: TypeAlias = Literal["state", "log"]
"""State is set back by a rollback; a log only grows, and goes to the journal."""

Item = TypeVar("Item")
Event_contra = TypeVar("Event_contra", contravariant=True)
Plan: TypeAlias = Any
"""A change planned by a fold; only that fold reads it, hence Any."""


class Selecting(Protocol):
    """The queries that a reducer may make of its session."""

    def select_all(self, item_type: type[Item]) -> tuple[Item, ...]:
        """The items of a slice."""


@dataclass(frozen=True)
class ReducerContext:
    """A reducer's context: the session in which it runs, None if it is called without one."""

    session: Selecting | None = None


class Reducer(Protocol[Item, Event_contra]):
    """A pure function: the items of a slice after an event. It returns the same tuple if nothing changes."""

    def __call__(self, items: tuple[Item, ...], event: Event_contra, /, *, context: ReducerContext) -> tuple[Item, ...]:
        """The items after the event."""


class Fold(Protocol[Item]):
    """A slice's content, updated event by event."""

    def plan(self, event: Any, context: ReducerContext) -> Plan | None:
        """The change for `commit`, or None if the event changes nothing; has no effect itself."""

    def commit(self, plan: Plan) -> None:
        """Make the planned change; nothing may have been committed in between."""

    def items(self) -> tuple[Item, ...]:
        """The items, in the slice's order."""

    def arrived(self) -> tuple[Item, ...]:
        """The items in the order of arrival, as far as another slice needs it to become equal."""

    def covers(self, items: tuple[Item, ...]) -> bool:
        """Whether these items are an earlier state of this log, or its present one."""

    def missing(self, items: tuple[Item, ...]) -> tuple[Item, ...]:
        """The items of a later state of this log that are not here yet."""


class PureFold(Generic[Item]):
    """The fold of any pure reducers: a tuple, and the next one."""

    def __init__(self, reducers: Mapping[type, Reducer[Item, Any]], items: tuple[Item, ...] = ()) -> None:
        self._reducers = reducers
        self._items = items

    def plan(self, event: Any, context: ReducerContext) -> tuple[Item, ...] | None:
        """The next tuple, or None where it equals this one."""
        reduced = reducer_for(self._reducers, event)(self._items, event, context=context)
        if not isinstance(reduced, tuple):
            raise TypeError(f"a reducer returned {type(reduced).__name__}; it returns the slice's items as a tuple")
        unchanged = reduced is self._items or (len(reduced) == len(self._items) and reduced == self._items)
        return None if unchanged else reduced

    def commit(self, plan: tuple[Item, ...]) -> None:
        """Hold the next tuple."""
        self._items = plan

    def items(self) -> tuple[Item, ...]:
        """The tuple."""
        return self._items

    def arrived(self) -> tuple[Item, ...]:
        """The tuple."""
        return self.items()

    def covers(self, items: tuple[Item, ...]) -> bool:
        """Whether the tuple begins with these."""
        return self.items()[: len(items)] == items

    def missing(self, items: tuple[Item, ...]) -> tuple[Item, ...]:
        """The rest of the longer tuple."""
        return items[len(self.items()) :]


def reducer_for(reducers: Mapping[type, Reducer[Item, Any]], event: object) -> Reducer[Item, Any]:
    """The reducer of an event's type; raises SliceNotRegistered, which names the types with reducers."""
    try:
        return reducers[type(event)]
    except KeyError:
        known = ", ".join(sorted(each.__name__ for each in reducers))
        name = type(event).__name__
        raise SliceNotRegistered(f"no reducer takes {name} here, only {known}; register one for {name}") from None


@dataclass(frozen=True)
class Declared:
    """A reducer's declaration: its fold, and the default kind of its slice."""

    fold: Callable[[], Fold[Any]]
    kind: SliceKind


_DECLARED: dict[object, Declared] = {}

Function = TypeVar("Function", bound=Callable[..., Any])


def kept_by(fold: Callable[[], Fold[Any]], *, kind: SliceKind) -> Callable[[Function], Function]:
    """Declare the fold of a pure reducer and the kind of its slices."""

    def declare(reducer: Function) -> Function:
        _DECLARED[reducer] = Declared(fold, kind)
        return reducer

    return declare


def declared(reducer: object) -> Declared | None:
    """A reducer's declaration, or None."""
    try:
        return _DECLARED.get(reducer)
    except TypeError:  # a callable without a hash
        return None


def fold_of(item_type: type[Item], reducers: Mapping[type, Reducer[Item, Any]], items: tuple[Item, ...]) -> Fold[Item]:
    """A fold of these reducers that holds these items."""
    own = declared(reducers[item_type]) if set(reducers) == {item_type} else None
    if own is None:
        return PureFold(reducers, items)
    fold: Fold[Item] = own.fold()
    extend(fold, items)
    return fold


def extend(fold: Fold[Item], items: tuple[Item, ...]) -> None:
    """Add to a fold the items that it lacks of a later state of its log, one after another."""
    for item in fold.missing(items):
        plan = fold.plan(item, ReducerContext())
        if plan is not None:
            fold.commit(plan)


class Appended(PureFold[Item]):
    """The fold of `append_item`: a list, and the tuple that is made of it when asked for."""

    def __init__(self) -> None:
        super().__init__({})
        self._held: list[Item] = []

    def plan(self, event: Item, context: ReducerContext) -> tuple[Item, ...]:
        """Every item is taken."""
        return (event,)

    def commit(self, plan: tuple[Item, ...]) -> None:
        """Append it."""
        self._held += plan

    def items(self) -> tuple[Item, ...]:
        """The items, as a tuple that is kept until the next one comes."""
        if len(self._items) != len(self._held):
            self._items = tuple(self._held)
        return self._items


@kept_by(Appended, kind="log")
def append_item(items: tuple[Item, ...], event: Item, *, context: ReducerContext) -> tuple[Item, ...]:
    """Put the item at the end."""
    return (*items, event)


def replace_latest(items: tuple[Item, ...], event: Item, *, context: ReducerContext) -> tuple[Item, ...]:
    """Hold this item alone."""
    return (event,)
