"""Slices: items of one type, the reducers that make them, and whether they are state or a log.

    reducer   (items, event) ──▶ items        pure; defines the result
    fold      plan(event) ──▶ the change, or None if nothing changes; raises the reducer's errors
                  │ a log's journal is written here
              commit(plan)                    cannot fail

Law: a fold's items equal those of its pure reducer applied to the same events. With a fold of its own, each event costs
the same, from the first to the ten thousandth: a pure reducer copies its tuple each time.

    append_item      (a, b), c ──▶ (a, b, c)    a log by default
    replace_latest   (a,),   c ──▶ (c,)         a state of one value
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

from sabir_session.errors import SliceConflict, SliceNotRegistered, SnapshotRestoreError, SnapshotSerializationError
from sabir_session.state.codec import Codec, SliceKind, SliceSnapshot, names_of

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


class Fold(Generic[Item]):
    """A slice's content, updated event by event: here by any pure reducers, a tuple and the next one."""

    def __init__(self, reducers: Mapping[type, Reducer[Item, Any]], items: tuple[Item, ...] = ()) -> None:
        self._reducers = reducers
        self._items = items

    def plan(self, event: Any, context: ReducerContext) -> Plan | None:
        """The change for `commit`, or None if the event changes nothing; has no effect itself.

        Raises the reducer's errors, and SliceNotRegistered for an event without a reducer.
        """
        reducer = self._reducers.get(type(event))
        if reducer is None:
            known = ", ".join(sorted(each.__name__ for each in self._reducers))
            name = type(event).__name__
            raise SliceNotRegistered(f"no reducer takes {name} here, only {known}; register one for {name}")
        reduced = reducer(self._items, event, context=context)
        if not isinstance(reduced, tuple):
            raise TypeError(f"a reducer returned {type(reduced).__name__}; it returns the slice's items as a tuple")
        unchanged = reduced is self._items or (len(reduced) == len(self._items) and reduced == self._items)
        return None if unchanged else reduced

    def commit(self, plan: Plan) -> None:
        """Make the planned change; nothing may have been committed in between."""
        self._items = plan

    def items(self) -> tuple[Item, ...]:
        """The items, in the slice's order."""
        return self._items

    def arrived(self) -> tuple[Item, ...]:
        """The items in the order of arrival, as far as another slice needs it to become equal."""
        return self.items()

    def last(self) -> Item | None:
        """Return the item that arrived last; None if there is none."""
        items = self.items()
        return items[-1] if items else None

    def covers(self, items: tuple[Item, ...]) -> bool:
        """Whether these items are an earlier state of this log, or its present one."""
        return self.items()[: len(items)] == items

    def missing(self, items: tuple[Item, ...]) -> tuple[Item, ...]:
        """The items of a later state of this log that are not here yet."""
        return items[len(self.items()) :]

    def extend(self, items: tuple[Item, ...]) -> None:
        """Add the items that are missing of a later state of this log, one after another."""
        for item in self.missing(items):
            plan = self.plan(item, ReducerContext())
            if plan is not None:
                self.commit(plan)


@dataclass(frozen=True)
class Declared:
    """A reducer's declaration: its fold, and the default kind of its slice."""

    fold: Callable[[], Fold[Any]]
    kind: SliceKind


_DECLARED: list[tuple[object, Declared]] = []

Function = TypeVar("Function", bound=Callable[..., Any])


def kept_by(fold: Callable[[], Fold[Any]], *, kind: SliceKind) -> Callable[[Function], Function]:
    """Declare the fold of a pure reducer and the kind of its slices."""

    def declare(reducer: Function) -> Function:
        _DECLARED.append((reducer, Declared(fold, kind)))
        return reducer

    return declare


def declared(reducer: object) -> Declared | None:
    """A reducer's declaration, or None."""
    return next((own for known, own in _DECLARED if known is reducer), None)


class Appended(Fold[Item]):
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


class Slice(Generic[Item]):
    """Items of one type, kept up by reducers."""

    def __init__(self, item_type: type[Item], kind: SliceKind, reducers: Mapping[type, Reducer[Item, Any]]) -> None:
        self.item_type = item_type
        names = names_of(item_type)
        self.type_id = names.name
        self.kinds = frozenset(names.all)
        """The names under which stored items are read; `type_id` is the one that is written."""
        self.kind = kind
        self.codec = Codec(item_type)
        self.reducers = dict(reducers)
        self.fold = self.fold_of(())

    def fold_of(self, items: tuple[Item, ...]) -> Fold[Item]:
        """A fold of this slice's reducers that holds these items."""
        own = declared(self.reducers[self.item_type]) if set(self.reducers) == {self.item_type} else None
        if own is None:
            return Fold(self.reducers, items)
        fold: Fold[Item] = own.fold()
        fold.extend(items)
        return fold

    def join(self, event_type: type, reducer: Reducer[Item, Any], kind: SliceKind | None) -> bool:
        """Add a reducer; False if it is already there; `kind` is None if not given.

        Raises SliceConflict if a reducer of such events cannot join, or if another one is there.
        """
        name = self.item_type.__name__
        if kind not in (None, self.kind):
            raise SliceConflict(f"{name} is registered as a {self.kind}, not a {kind}; register it as one of them")
        if self.kind == "log" and event_type is not self.item_type:
            raise SliceConflict(f"the log of {name} takes {name} alone, not {event_type.__name__}; register a state")
        present = self.reducers.get(event_type)
        if present is not None and present == reducer:
            return False
        if present is not None:
            what = f"events {event_type.__name__} of the slice {name}"
            raise SliceConflict(f"{what} have a reducer already, and it is another; keep one of them")
        self.reducers[event_type] = reducer
        self.fold = self.fold_of(self.fold.items())
        return True

    def taken(self, items: tuple[Item, ...]) -> SliceSnapshot:
        """Make the snapshot of these items; raise SnapshotSerializationError for the first that cannot be written."""
        texts: list[str] = []
        for index, item in enumerate(items):
            try:
                texts.append(self.codec.encode(item))
            except ValueError as error:
                message = f"item {index} of the slice {self.type_id} cannot be written as JSON: {error}"
                raise SnapshotSerializationError(message) from None
        return SliceSnapshot(slice_type=self.type_id, item_type=self.type_id, kind=self.kind, items=tuple(texts))

    def decoded(self, snapshot: SliceSnapshot) -> tuple[Item, ...]:
        """Decode the items of a snapshot; raise SnapshotRestoreError for the first that is not of this type."""
        if snapshot.item_type not in self.kinds:
            reason = f"the snapshot of the slice {self.type_id} has items of the type {snapshot.item_type!r}"
            raise SnapshotRestoreError(f"{reason}, not of its own")
        items: list[Item] = []
        for index, text in enumerate(snapshot.items):
            try:
                items.append(self.codec.decode(text))
            except ValueError as error:
                message = f"item {index} of the slice {self.type_id} cannot be read: {error}"
                raise SnapshotRestoreError(message) from None
        return tuple(items)

    def set_to(self, items: tuple[Item, ...]) -> Fold[Item]:
        """A fold with a snapshot's items; raises SnapshotRestoreError if the reducer refuses them."""
        try:
            return self.fold_of(items)
        except Exception as error:
            shown = f"the {self.kind} {self.type_id} refuses what the snapshot holds"
            raise SnapshotRestoreError(f"{shown}: {error}") from error

    def moved_to(self, items: tuple[Item, ...]) -> tuple[Item, ...]:
        """The items that a log lacks of a snapshot: none if the log is as long or longer.

        Raises SnapshotRestoreError if the two diverge: neither is the beginning of the other.
        """
        if self.fold.covers(items):
            return ()
        if not self.set_to(items).covers(self.fold.items()) or not self._reaches(items):
            shown = f"the log {self.type_id} and the snapshot's part: neither begins with the other"
            raise SnapshotRestoreError(f"{shown}; use a new session")
        return self.fold.missing(items)

    def _reaches(self, goal: tuple[Item, ...]) -> bool:
        """Whether the log would equal the snapshot's after it takes the missing items."""
        reached = self.fold_of(self.fold.items())
        try:
            reached.extend(goal)
        except Exception:  # any error of a reducer for an item out of place
            return False
        return reached.covers(goal)
