"""The reducers that most slices need.

append_item      (a, b), c ──▶ (a, b, c)    a log, where nobody says otherwise
replace_latest   (a,),   c ──▶ (c,)         a state of one value
"""

from typing import Generic, TypeVar

from sabir_session.folds import ReducerContext, kept_by

Item = TypeVar("Item")


class Appended(Generic[Item]):
    """The fold of `append_item`: a list, and the tuple that is made of it when asked for."""

    def __init__(self) -> None:
        self._held: list[Item] = []
        self._items: tuple[Item, ...] | None = ()

    def plan(self, event: Item, context: ReducerContext) -> tuple[Item] | None:
        """Every item is taken."""
        return (event,)

    def commit(self, plan: tuple[Item]) -> None:
        """Append it."""
        self._held.append(plan[0])
        self._items = None

    def items(self) -> tuple[Item, ...]:
        """The items, as a tuple that is kept until the next one comes."""
        if self._items is None:
            self._items = tuple(self._held)
        return self._items

    def arrived(self) -> tuple[Item, ...]:
        """The items."""
        return self.items()

    def covers(self, items: tuple[Item, ...]) -> bool:
        """Whether the list begins with these."""
        return self.items()[: len(items)] == items

    def missing(self, items: tuple[Item, ...]) -> tuple[Item, ...]:
        """What follows in the longer list."""
        return items[len(self._held) :]


@kept_by(Appended, kind="log")
def append_item(items: tuple[Item, ...], event: Item, *, context: ReducerContext) -> tuple[Item, ...]:
    """Put the item at the end."""
    return (*items, event)


def replace_latest(items: tuple[Item, ...], event: Item, *, context: ReducerContext) -> tuple[Item, ...]:
    """Hold this item alone."""
    return (event,)
