"""What the actors of a system share: models, options, settings, chains, a store, adapters, limits, observers."""

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Unpack

from sabir import Adapter, Option, Settings
from sabir import adapter as make_adapter
from sabir.authoring import OptionLike, show_arguments
from sabir_session import Store

from sabir_actors.adapters import Adapters
from sabir_actors.apart import StoreThread
from sabir_actors.errors import ActorError, ErrorCode
from sabir_actors.observers import Observers
from sabir_actors.phases import AEIOUY_CHAIN, Chain
from sabir_actors.policies import RestartPolicy
from sabir_actors.protocol import AnyMessage
from sabir_actors.queues import ThreadQueue

SUPERVISOR = "supervisor"
"""Id of the supervisor that every system has."""
DEAD_LETTERS = 1000
"""How many messages without a receiver are kept for inspection; all are counted."""


@show_arguments
class SharedResources:
    """The resources that a system has for its actors; raises ActorError for a queue without a store."""

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
        """The model of agents whose phase names none."""
        self.options: Mapping[str, Option] = {option.name: option for option in Option.all_of(options)}
        self.settings = settings
        self.chains: Mapping[str, Chain] = {chain.name: chain for chain in (AEIOUY_CHAIN, *chains)}
        self.store = store
        self.apart = StoreThread()
        """Runs what uses a store or a journal, so that the event loop does not wait for it."""
        if queue is not None and store is None:
            reason = "a queue gives threads to processes that share a store; give ActorSystem(store=…) that store"
            raise ActorError(ErrorCode.INVALID_CONFIG, reason)
        self.queue = queue
        self.recovers = recovers
        self.adapters = Adapters(adapters)
        """The adapters of agents."""
        self.dead_letters: deque[AnyMessage] = deque(maxlen=DEAD_LETTERS)
        self.dead_count = 0
        """How many messages had no receiver."""
        self.supervisor_id: str | None = SUPERVISOR
        self.restarts = restarts or RestartPolicy()
        self.watch = observers.get("watch")
        self._trace = observers.get("trace")
        self._spans = observers.get("spans")
