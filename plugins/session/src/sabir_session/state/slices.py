"""One slice of a session: items of one type, the reducers that make them, and whether they are state or a log.

register(E, reducer) ─▶ reducers ─▶ fold
event ─▶ plan ─▶ (a log: journal) ─▶ commit
"""

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from sabir_session.errors import SliceConflict, SnapshotRestoreError
from sabir_session.state.codec import Codec, kind_of
from sabir_session.state.folds import Fold, Reducer, SliceKind, declared, extend, fold_of
from sabir_session.state.snapshots import SliceSnapshot

Item = TypeVar("Item")


class Slice(Generic[Item]):
    """Items of one type, kept up by reducers."""

    def __init__(self, item_type: type[Item], kind: SliceKind) -> None:
        self.item_type = item_type
        self.type_id = kind_of(item_type)
        self.kind: SliceKind = kind
        self.codec = Codec(item_type)
        self.reducers: dict[type, Reducer[Item, Any]] = {}
        self.fold: Fold[Item]

    def check_kind(self, event_type: type, kind: SliceKind | None) -> None:
        """Raise SliceConflict if a reducer of such events cannot join this slice; `kind` is None if not given."""
        name = self.item_type.__name__
        if kind not in (None, self.kind):
            raise SliceConflict(f"{name} is registered as a {self.kind}, not a {kind}; register it as one of them")
        if self.kind == "log" and event_type is not self.item_type:
            raise SliceConflict(f"the log of {name} takes {name} alone, not {event_type.__name__}; register a state")

    def join(self, event_type: type, reducer: Reducer[Item, Any]) -> bool:
        """Add a reducer; False if it is already there; raises SliceConflict if another one is."""
        present = self.reducers.get(event_type)
        if present is not None:
            if present == reducer:
                return False
            what = f"events {event_type.__name__} of the slice {self.item_type.__name__}"
            raise SliceConflict(f"{what} have a reducer already, and it is another; keep one of them")
        items = self.fold.items() if self.reducers else ()
        self.reducers[event_type] = reducer
        self.fold = fold_of(self.item_type, self.reducers, items)
        return True

    def filled(self, items: tuple[Item, ...]) -> "Slice[Item]":
        """A slice with the same reducers that holds these items."""
        other = Slice(self.item_type, self.kind)
        other.reducers = dict(self.reducers)
        other.fold = fold_of(self.item_type, other.reducers, items)
        return other

    def decoded(self, held: SliceSnapshot) -> tuple[Item, ...]:
        """The items of a snapshot; raises SnapshotRestoreError, which names the first item that is not of this type."""
        if held.item_type != self.type_id:
            raise SnapshotRestoreError(
                f"the slice {self.type_id} holds items of the type {held.item_type!r}, not its own"
            )
        items: list[Item] = []
        for index, text in enumerate(held.items):
            try:
                items.append(self.codec.decode(text))
            except ValueError as error:
                raise SnapshotRestoreError(
                    f"item {index} of the slice {self.type_id} cannot be read: {error}"
                ) from None
        return tuple(items)

    def set_to(self, items: tuple[Item, ...]) -> Fold[Item]:
        """A fold with a snapshot's state; raises SnapshotRestoreError if the reducer refuses it."""
        try:
            return fold_of(self.item_type, self.reducers, items)
        except Exception as error:
            raise SnapshotRestoreError(f"the state {self.type_id} refuses what the snapshot holds: {error}") from error

    def moved_to(self, items: tuple[Item, ...]) -> tuple[Item, ...]:
        """The items that a log lacks of a snapshot: none if the log is as long or longer.

        Raises SnapshotRestoreError if the two diverge: neither is the beginning of the other.
        """
        if self.fold.covers(items):
            return ()
        try:
            goal = self.filled(items)
        except Exception as error:
            raise SnapshotRestoreError(f"the log {self.type_id} refuses what the snapshot holds: {error}") from error
        if not goal.fold.covers(self.fold.items()) or not self._reaches(items):
            raise SnapshotRestoreError(
                f"the log {self.type_id} and the snapshot's part: neither begins with the other; use a new session"
            )
        return self.fold.missing(items)

    def _reaches(self, goal: tuple[Item, ...]) -> bool:
        """Whether the log would equal the snapshot's after it takes the missing items."""
        reached = self.filled(self.fold.items())
        try:
            extend(reached.fold, goal)
        except Exception:  # any error of a reducer for an item out of place
            return False
        return reached.fold.covers(goal)


def kind_for(reducer: Callable[..., Any], kind: SliceKind | None) -> SliceKind:
    """The kind of a slice: the given one, else the one that its reducer declares, else a state."""
    own = declared(reducer)
    return kind or (own.kind if own else "state")
