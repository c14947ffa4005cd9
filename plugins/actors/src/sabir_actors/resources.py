"""The resources that the actors of a system share: models, options, settings, chains, a store, adapters, limits."""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from inspect import signature
from typing import Any, Unpack

from sabir import Adapter, Option, Settings
from sabir import adapter as make_adapter
from sabir.authoring import OptionLike, show_arguments
from sabir_session import Store

from sabir_actors.adapters import Adapters
from sabir_actors.errors import ActorError, ErrorCode
from sabir_actors.observers import Observers, logger
from sabir_actors.phases import AEIOUY_CHAIN, Chain
from sabir_actors.protocol import AnyMessage
from sabir_actors.queues import ThreadQueue
from sabir_actors.restart_policy import RestartPolicy
from sabir_actors.store_thread import StoreThread

SUPERVISOR = "supervisor"
"""The id of the supervisor in every system."""
DEAD_LETTERS = 1000
"""The maximum number of messages in `dead_letters`. The oldest are removed first."""


@show_arguments
class SharedResources:
    """The resources that the actors of a system share. Base class of ActorSystem, whose docstring explains the
    arguments.
    """

    def __init__(
        self,
        model: str | None = None,
        *,
        options: Iterable[OptionLike] = (),
        settings: Settings | None = None,
        chains: Sequence[Chain] = (),
        store: Store | None = None,
        recovers: bool = True,
        queue: ThreadQueue | None = None,
        restarts: RestartPolicy | None = None,
        adapters: Callable[[str], Adapter] = make_adapter,
        **observers: Unpack[Observers],
    ) -> None:
        self.model = model
        """The model string for agents of phases without a model; None if every phase needs its own."""
        self.options: Mapping[str, Option] = {option.name: option for option in Option.all_of(options)}
        self.settings = settings
        self.chains: Mapping[str, Chain] = {chain.name: chain for chain in (AEIOUY_CHAIN, *chains)}
        self.store = store
        self.store_thread = StoreThread()
        """Runs functions that use the store in a thread, so that they do not block the event loop."""
        if queue is not None and store is None:
            reason = "a queue needs a store that all processes share; pass ActorSystem(store=…)"
            raise ActorError(ErrorCode.INVALID_CONFIG, reason)
        self.queue = queue
        self.recovers = recovers
        self.adapters = Adapters(adapters)
        """The adapters of the agents, one for each model."""
        self.dead_letters: deque[AnyMessage] = deque(maxlen=DEAD_LETTERS)
        """The latest messages to unknown receivers, at most DEAD_LETTERS."""
        self.supervisor_id: str | None = SUPERVISOR
        self.restarts = restarts or RestartPolicy()
        Settings.refuse_misnamed("ActorSystem", observers, tuple(signature(SharedResources).parameters))
        self.watch = observers.get("watch")
        self._trace = observers.get("trace")
        self._spans = observers.get("spans")


async def close_in_time(closing: Coroutine[Any, Any, object], name: str, seconds: float) -> None:
    """Close a resource. If this takes longer than `seconds`, cancel it and log a warning."""
    task = asyncio.ensure_future(closing)
    try:
        await asyncio.wait([task], timeout=seconds)
    except asyncio.CancelledError:
        task.cancel()
        raise
    if task.done():
        task.result()
        return
    task.cancel()
    logger.warning("%s did not close in %g s; not waiting any longer", name, seconds)
