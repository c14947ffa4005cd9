"""Slices: lists of items of one type, with their reducers and their kind, state or log.

    reducer   (items, event) ──▶ items        a function without side effects; defines the result
    fold      plan(event) ──▶ the change, or None if nothing changes; raises the reducer's errors
                  │ a log's journal is written here
              commit(plan)                    cannot fail

Law: the items of a fold equal the items that its pure reducer returns for the same events. A pure reducer copies all
items at each event. A fold of its own makes the cost of an event independent of the number of items.

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
"""A change that `SliceFold.plan` returns for `SliceFold.commit`. It is Any because each class of folds has another."""


class SliceReader(Protocol):
    """The queries that a reducer may use."""

    def select_all(self, item_type: type[Item]) -> tuple[Item, ...]:
        """Return the items of the slice of a type; () if there is no such slice."""


@dataclass(frozen=True)
class ReducerContext:
    """The argument `context` of a reducer.

    `session` is the session of the slice, for reading other slices with `select_all`. It is None outside of a session,
    and while a rollback checks the items of a log.
    """

    session: SliceReader | None = None


class Reducer(Protocol[Item, Event_contra]):
    """Protocol of a function that computes the new items of a slice (a list of items of one type) from an event.

    The function must have no side effects. If nothing changes, it should return the same tuple.
    """

    def __call__(self, items: tuple[Item, ...], event: Event_contra, /, *, context: ReducerContext) -> tuple[Item, ...]:
        """Return the items of the slice after the event. `items` are the items before the event."""


class SliceFold(Generic[Item]):
    """The items of a slice, updated event by event. This base class calls the reducer of the event's type."""

    def __init__(self, reducers: Mapping[type, Reducer[Item, Any]], items: tuple[Item, ...] = ()) -> None:
        self._reducers = reducers
        self._items = items

    def plan(self, event: Any, context: ReducerContext) -> Plan | None:
        """Return the change for `commit`, or None if the event changes nothing. `plan` does not change the items.

        Raises the reducer's errors, SliceNotRegistered for an event without a reducer, and TypeError if the reducer
        does not return a tuple.
        """
        reducer = self._reducers.get(type(event))
        if reducer is None:
            known = ", ".join(sorted(each.__name__ for each in self._reducers))
            name = type(event).__name__
            raise SliceNotRegistered(
                f"the slice has no reducer for {name}, only for {known}; register a reducer for {name}"
            )
        reduced = reducer(self._items, event, context=context)
        if not isinstance(reduced, tuple):
            raise TypeError(
                f"a reducer returned a {type(reduced).__name__}; it must return the items of the slice as a tuple"
            )
        unchanged = reduced is self._items or (len(reduced) == len(self._items) and reduced == self._items)
        return None if unchanged else reduced

    def commit(self, plan: Plan) -> None:
        """Make a planned change. No other change may have been committed since `plan`."""
        self._items = plan

    def items(self) -> tuple[Item, ...]:
        """Return the items, in the order of the slice."""
        return self._items

    def arrived(self) -> tuple[Item, ...]:
        """Return the items; of a log, in an order in which an empty log can add them and become equal to this log."""
        return self.items()

    def last(self) -> Item | None:
        """Return the last item, by default in the order of the slice; None if there is none."""
        items = self.items()
        return items[-1] if items else None

    def covers(self, items: tuple[Item, ...]) -> bool:
        """Return whether the items of this object begin with `items`."""
        return self.items()[: len(items)] == items

    def missing(self, items: tuple[Item, ...]) -> tuple[Item, ...]:
        """Return the items of a longer version of this log that are not here yet."""
        return items[len(self.items()) :]

    def extend(self, items: tuple[Item, ...]) -> None:
        """Add the missing items of a longer version of this log, one after another."""
        for item in self.missing(items):
            plan = self.plan(item, ReducerContext())
            if plan is not None:
                self.commit(plan)


@dataclass(frozen=True)
class FoldDeclaration:
    """The class of folds for a reducer, and the default kind of its slices."""

    fold: Callable[[], SliceFold[Any]]
    kind: SliceKind


_DECLARATIONS: list[tuple[object, FoldDeclaration]] = []

Function = TypeVar("Function", bound=Callable[..., Any])


def uses_fold(fold: Callable[[], SliceFold[Any]], *, kind: SliceKind) -> Callable[[Function], Function]:
    """Return a decorator that declares, for a reducer, which folds its slices use and their default kind."""

    def declare(reducer: Function) -> Function:
        _DECLARATIONS.append((reducer, FoldDeclaration(fold, kind)))
        return reducer

    return declare


def find_declaration(reducer: object) -> FoldDeclaration | None:
    """Return what `uses_fold` declared for a reducer, or None."""
    return next((own for known, own in _DECLARATIONS if known is reducer), None)


class AppendFold(SliceFold[Item]):
    """The fold of `append_item`: a list, converted to a tuple when it is read."""

    def __init__(self) -> None:
        super().__init__({})
        self._appended: list[Item] = []

    def plan(self, event: Item, context: ReducerContext) -> tuple[Item, ...]:
        """Return the item as the change."""
        return (event,)

    def commit(self, plan: tuple[Item, ...]) -> None:
        """Append the item."""
        self._appended += plan

    def items(self) -> tuple[Item, ...]:
        """Return the items as a tuple, which is cached until an item is added."""
        if len(self._items) != len(self._appended):
            self._items = tuple(self._appended)
        return self._items


@uses_fold(AppendFold, kind="log")
def append_item(items: tuple[Item, ...], event: Item, *, context: ReducerContext) -> tuple[Item, ...]:
    """Return `items` with `event` added at the end. A reducer whose slices are logs by default."""
    return (*items, event)


def replace_latest(items: tuple[Item, ...], event: Item, *, context: ReducerContext) -> tuple[Item, ...]:
    """Return `(event,)`. A reducer for a state of one value, where each new value replaces the value before."""
    return (event,)


class Slice(Generic[Item]):
    """Items of one type, with the reducers that change them."""

    def __init__(self, item_type: type[Item], kind: SliceKind, reducers: Mapping[type, Reducer[Item, Any]]) -> None:
        self.item_type = item_type
        names = names_of(item_type)
        self.stored_name = names.name
        self.stored_names = frozenset(names.all)
        """All stored names of the type, for reading. `stored_name` is the name for writing."""
        self.kind = kind
        self.codec = Codec(item_type)
        self.reducers = dict(reducers)
        self.fold = self.build_fold(())

    def build_fold(self, items: tuple[Item, ...]) -> SliceFold[Item]:
        """Return a new fold with the reducers of this slice and these items."""
        has_own_events_only = set(self.reducers) == {self.item_type}
        declaration = find_declaration(self.reducers[self.item_type]) if has_own_events_only else None
        if declaration is None:
            return SliceFold(self.reducers, items)
        fold: SliceFold[Item] = declaration.fold()
        fold.extend(items)
        return fold

    def add_reducer(self, event_type: type, reducer: Reducer[Item, Any], kind: SliceKind | None) -> bool:
        """Add a reducer for events of a type. Return False if the same reducer is already registered.

        Raises SliceConflict if `kind` differs from the slice's kind, if the events have another reducer already, and if
        the events of a log are not its items.
        """
        name = self.item_type.__name__
        if kind not in (None, self.kind):
            raise SliceConflict(f"{name} is registered as a {self.kind}, not a {kind}; register it with one kind only")
        if self.kind == "log" and event_type is not self.item_type:
            raise SliceConflict(
                f"the log of {name} accepts {name} only, not {event_type.__name__}; register {name} as a state"
            )
        present = self.reducers.get(event_type)
        if present is not None and present == reducer:
            return False
        if present is not None:
            what = f"the slice {name} already has another reducer for {event_type.__name__}"
            raise SliceConflict(f"{what}; register one reducer only")
        self.reducers[event_type] = reducer
        self.fold = self.build_fold(self.fold.items())
        return True

    def snapshot_of(self, items: tuple[Item, ...]) -> SliceSnapshot:
        """Return the snapshot of these items. Raises SnapshotSerializationError if an item cannot be written."""
        texts: list[str] = []
        for index, item in enumerate(items):
            try:
                texts.append(self.codec.encode(item))
            except ValueError as error:
                message = f"item {index} of the slice {self.stored_name} cannot be written as JSON: {error}"
                raise SnapshotSerializationError(message) from None
        name = self.stored_name
        return SliceSnapshot(slice_type=name, item_type=name, kind=self.kind, items=tuple(texts))

    def decode_items(self, snapshot: SliceSnapshot) -> tuple[Item, ...]:
        """Return the items of a snapshot. Raises SnapshotRestoreError if an item is not of this type."""
        if snapshot.item_type not in self.stored_names:
            reason = f"the slice {self.stored_name} of the snapshot has items of another type, {snapshot.item_type!r}"
            raise SnapshotRestoreError(f"{reason}; use an unchanged snapshot")
        items: list[Item] = []
        for index, text in enumerate(snapshot.items):
            try:
                items.append(self.codec.decode(text))
            except ValueError as error:
                message = f"item {index} of the slice {self.stored_name} cannot be read: {error}"
                raise SnapshotRestoreError(message) from None
        return tuple(items)

    def restored_fold(self, items: tuple[Item, ...]) -> SliceFold[Item]:
        """Return a new fold with a snapshot's items. Raises SnapshotRestoreError if the reducer raises for an item."""
        try:
            return self.build_fold(items)
        except Exception as error:
            fault = f"the reducer of the {self.kind} {self.stored_name} refuses the items of the snapshot"
            raise SnapshotRestoreError(f"{fault}: {error}") from error

    def find_missing(self, items: tuple[Item, ...]) -> tuple[Item, ...]:
        """Return the items of a snapshot that the log lacks; () if the log is as long or longer.

        Raises SnapshotRestoreError unless one of the two is the beginning of the other.
        """
        if self.fold.covers(items):
            return ()
        if not self.restored_fold(items).covers(self.fold.items()) or not self._can_reach(items):
            difference = f"the log {self.stored_name} differs from the snapshot's: neither begins with the other"
            raise SnapshotRestoreError(f"{difference}; restore the snapshot in a new session")
        return self.fold.missing(items)

    def _can_reach(self, goal: tuple[Item, ...]) -> bool:
        """Return whether the log equals the snapshot's log when the missing items are added."""
        reached = self.build_fold(self.fold.items())
        try:
            reached.extend(goal)
        except Exception:  # any error of a reducer for an item out of place
            return False
        return reached.covers(goal)
