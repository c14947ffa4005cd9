"""The adapters of a system: one for each model, shared by the agents of all threads.

acquire(model) ─▶ in use ─▶ release(…)                  the adapter stays open for the next agent
                       └──▶ release(…, replace=True)    the next agent gets a new adapter; the old adapter is closed
                                                        after its last use
"""

from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sabir import Adapter


@dataclass(eq=False)
class SharedAdapter:
    """An adapter and the number of its present users (agent managers)."""

    adapter: "Adapter"
    users: int = 0


class Adapters:
    """Creates, shares and closes adapters by model string. `make` creates an adapter."""

    def __init__(self, make: "Callable[[str], Adapter]") -> None:
        self._make = make
        self._current: dict[str, SharedAdapter] = {}
        self._retired: set[SharedAdapter] = set()

    def acquire(self, model: str) -> SharedAdapter:
        """Return the adapter of a model, a new one if there is none. End its use with `release`. Raises the errors of
        creating an adapter.
        """
        shared = self._current.get(model)
        if shared is None:
            shared = self._current[model] = SharedAdapter(self._make(model))
        shared.users += 1
        return shared

    async def release(self, model: str, shared: SharedAdapter, *, replace: bool = False) -> None:
        """End the use of an adapter. With `replace`, the next `acquire` creates a new adapter, and the old adapter is
        closed after its last use.
        """
        shared.users -= 1
        if replace and self._current.get(model) is shared:
            del self._current[model]
            self._retired.add(shared)
        if shared in self._retired and not shared.users:
            self._retired.discard(shared)
            await shared.adapter.aclose()

    async def aclose(self) -> None:
        """Close all adapters, also if one of them fails to close. Raises the last error."""
        open_adapters = [*self._current.values(), *self._retired]
        self._current.clear()
        self._retired.clear()
        async with AsyncExitStack() as closing:
            for shared in open_adapters:
                closing.push_async_callback(shared.adapter.aclose)
