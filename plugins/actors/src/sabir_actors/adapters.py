"""The adapters of a system: one for each model, shared by the agents of all threads.

take(model) ─▶ in use ─▶ give_back(…)                the adapter stays open for the next agent
                    └──▶ give_back(…, anew=True)     the next agent gets a new adapter; the old one closes after its
                    last
                                                     user gave it back
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sabir import Adapter


@dataclass(eq=False)
class Shared:
    """An adapter and the number of its present users (agent managers)."""

    adapter: "Adapter"
    users: int = 0


class Adapters:
    """Creates, shares and closes adapters by model string. `make` creates an adapter."""

    def __init__(self, make: "Callable[[str], Adapter]") -> None:
        self._make = make
        self._current: dict[str, Shared] = {}
        self._retired: set[Shared] = set()

    def take(self, model: str) -> Shared:
        """Return the adapter of a model, a new one if there is none. End its use with `give_back`. Raises the errors of
        creating an adapter.
        """
        shared = self._current.get(model)
        if shared is None:
            shared = self._current[model] = Shared(self._make(model))
        shared.users += 1
        return shared

    async def give_back(self, model: str, shared: Shared, *, anew: bool = False) -> None:
        """End the use of an adapter. With `anew`, the next `take` creates a new adapter, and the old adapter is closed
        after its last use.
        """
        shared.users -= 1
        if anew and self._current.get(model) is shared:
            del self._current[model]
            self._retired.add(shared)
        if shared in self._retired and not shared.users:
            self._retired.discard(shared)
            await shared.adapter.aclose()

    async def aclose(self) -> None:
        """Close all adapters."""
        open_ones = [*self._current.values(), *self._retired]
        self._current.clear()
        self._retired.clear()
        for shared in open_ones:
            await shared.adapter.aclose()
