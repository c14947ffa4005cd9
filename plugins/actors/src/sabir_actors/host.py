"""The host of actors: it has their shared resources, finds them, and delivers messages to them."""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from time import monotonic
from typing import Any, Unpack

from sabir import Adapter, Option, Settings
from sabir import adapter as make_adapter
from sabir.authoring import OptionLike, show_arguments
from sabir_session import Store

from sabir_actors.actor import CLEANUP, Actor
from sabir_actors.adapters import Adapters
from sabir_actors.apart import StoreThread
from sabir_actors.errors import ActorError, ErrorCode
from sabir_actors.observers import Observers, log, logger, spanned
from sabir_actors.phases import AEIOUY_CHAIN, Chain
from sabir_actors.policies import RestartPolicy
from sabir_actors.protocol import AnyMessage, Message, Response
from sabir_actors.queues import ThreadQueue

THREADS, SUPERVISOR = "threads", "supervisor"
"""Ids of the actors that every system has."""
DEAD_LETTERS = 1000
"""How many messages without a receiver are kept for inspection; all are counted."""


@show_arguments
class ActorHost:
    """Holds actors: it has their shared resources, finds them, and delivers messages to them."""

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
        self._leaves_at: float | None = None
        """The time at which messages that are being handled are interrupted, once the system stops."""
        self._actors: dict[str, Actor] = {}
        self._trace = observers.get("trace")
        self._spans = observers.get("spans")

    def add(self, actor: Actor) -> None:
        """Add an actor; raises ActorError if another has its id."""
        if self._actors.setdefault(actor.actor_id, actor) is not actor:
            raise ActorError(ErrorCode.INVALID_CONFIG, f"an actor {actor.actor_id!r} is here already; give another id")

    def remove(self, actor_id: str) -> None:
        """Remove an actor."""
        self._actors.pop(actor_id, None)

    def actors(self) -> tuple[str, ...]:
        """Ids of all actors, in the order in which they were added."""
        return tuple(self._actors)

    def get_actor(self, actor_id: str) -> Actor:
        """The actor of that id; raises ActorError (UNKNOWN_ACTOR) if there is none."""
        found = self._actors.get(actor_id)
        if found is None:
            raise ActorError(ErrorCode.UNKNOWN_ACTOR, f"no actor {actor_id!r} is here; see system.actors()")
        return found

    async def send_message(self, message: Message) -> Response:
        """Deliver a message to its receiver; returns the response, an ErrorResponse if the receiver is unknown.

        Raises ActorError, a ValueError, for a message without a receiver.
        """
        if not message.receiver:
            raise ActorError(ErrorCode.INVALID_MESSAGE, "Message must have a receiver; set receiver= to an actor's id")
        try:
            actor = self.get_actor(message.receiver)
        except ActorError as error:
            self.bury(message)
            return message.error(error)
        return await actor.receive(message)

    def bury(self, message: AnyMessage) -> None:
        """Keep and count a message without a receiver."""
        self.dead_letters.append(message)
        self.dead_count += 1
        logger.warning("no receiver for %s %s to %s", message.type, message.id, message.receiver)

    def log(self, message: AnyMessage) -> None:
        """Tell of one message on its way; the log has nothing of its contents."""
        log(message, self._trace)

    async def spanned(self, message: Message, answer: Callable[[Message], Coroutine[Any, Any, Response]]) -> Response:
        """What `answer` makes of a message, within the block that `spans` makes for it."""
        return await spanned(message, answer, self._spans)

    async def notify_supervisor(self, actor: Actor, message: Message, error: ActorError) -> Response | None:
        """Report an actor's error to the supervisor; returns its answer, None if there is no supervisor."""
        if self.supervisor_id not in self._actors or self.supervisor_id in (actor.actor_id, message.sender):
            return None
        details = {"message_id": message.id, "message_type": message.type, "retryable": error.retryable}
        said = {"actor_id": actor.actor_id, "error_message": str(error), "error_code": error.code.value, **details}
        told = actor._request("ERROR_NOTIFICATION", said, self.supervisor_id, message.correlation_id)
        return await self.send_message(told)

    async def stop(self) -> None:
        """Stop every actor, the latest first, and close their adapters.

        Messages that are being handled may end within the policy's `leaving` seconds; then all that are left are
        interrupted. What does not end within a second after that is left behind, and logged.
        """
        self._leaves_at = monotonic() + self.restarts.leaving
        await self.let_go(THREADS)  # its runs wait for the others
        if self.queue is not None:
            await self._bounded(self.queue.aclose(), "the queue")
        for actor_id in reversed(self.actors()):
            if not self._seconds_left():
                break
            await self.let_go(actor_id)
        await asyncio.gather(*map(self.let_go, self.actors()))
        await self._bounded(self.adapters.aclose(), "the adapters")

    async def let_go(self, actor_id: str) -> None:
        """Stop one actor, wait until it has answered its messages, and remove it.

        Messages that are being handled may end within the policy's `leaving` seconds; then they are interrupted.
        """
        actor = self._actors.get(actor_id)
        if actor is not None:
            await actor.stop()
            await actor.drained(self._seconds_left())
            self.remove(actor_id)

    def _seconds_left(self) -> float:
        """Return the seconds that messages may still take."""
        return self.restarts.leaving if self._leaves_at is None else max(0.0, self._leaves_at - monotonic())

    async def _bounded(self, closing: Coroutine[Any, Any, object], name: str) -> None:
        """Close a resource; interrupt the closing when the time of leaving is over."""
        task = asyncio.ensure_future(closing)
        try:
            await asyncio.wait([task], timeout=self._seconds_left() + CLEANUP)
        except asyncio.CancelledError:
            task.cancel()
            raise
        if task.done():
            task.result()
            return
        task.cancel()
        logger.warning("%s did not close in %g s; it is left behind", name, self.restarts.leaving)
