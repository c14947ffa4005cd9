"""The adapters of a system: one for each model, shared by the agents of all threads, so that they share connections.

take(model) ─▶ used ─▶ give_back(…)                the adapter stays open for the next agent
                  └──▶ give_back(…, anew=True)     the next agent gets a new one; this one closes after its last user
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sabir import Adapter


@dataclass(eq=False)
class Shared:
    """An adapter, and the number of its users."""

    adapter: "Adapter"
    users: int = 0


class Adapters:
    """Adapters by the names of their models; `make` makes one."""

    def __init__(self, make: "Callable[[str], Adapter]") -> None:
        self._make = make
        self._current: dict[str, Shared] = {}
        self._retired: set[Shared] = set()

    def take(self, model: str) -> Shared:
        """The adapter of a model, to be given back; raises the errors of making it."""
        shared = self._current.get(model)
        if shared is None:
            shared = self._current[model] = Shared(self._make(model))
        shared.users += 1
        return shared

    async def give_back(self, model: str, shared: Shared, *, anew: bool = False) -> None:
        """Use an adapter no longer; with `anew`, the next `take` makes a new one."""
        shared.users -= 1
        if anew and self._current.get(model) is shared:
            del self._current[model]
            self._retired.add(shared)
        if shared in self._retired and not shared.users:
            self._retired.discard(shared)
            await shared.adapter.aclose()

    async def aclose(self) -> None:
        """Close every adapter."""
        open_ones = [*self._current.values(), *self._retired]
        self._current.clear()
        self._retired.clear()
        for shared in open_ones:
            await shared.adapter.aclose()
