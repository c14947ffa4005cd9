"""The reducers that most slices need.

append_item      (a, b), c ──▶ (a, b, c)    a log, where nobody says otherwise
replace_latest   (a,),   c ──▶ (c,)         a state of one value
"""

from typing import TypeVar

from sabir_session.state.folds import PureFold, ReducerContext, kept_by

Item = TypeVar("Item")


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
