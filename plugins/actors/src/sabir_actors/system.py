"""The system: it makes actors, finds them, takes messages to them, and stops them.

    send_message(message) ─▶ the actor `message.receiver` ─▶ its Response        unknown receiver: a dead letter, ERROR

What an agent may ask with is the system's: a model, options by name, settings, chains of phases, and a store in which
threads outlive the process.
"""

import logging
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from typing import TYPE_CHECKING, Any, Self, TypeAlias, TypedDict, Unpack

from sabir import Adapter, Option, Settings
from sabir import adapter as make_adapter
from sabir.base.errors import one_line
from sabir.options.option import OptionLike, as_options
from sabir_session import Event, Store

from sabir_actors.actor import Actor
from sabir_actors.adapters import Adapters
from sabir_actors.errors import ActorError, ErrorCode
from sabir_actors.phases import AEIOUY_CHAIN, Chain
from sabir_actors.policies import RestartPolicy
from sabir_actors.protocol import AnyMessage, ErrorResponse, Message, Response
from sabir_actors.queues import ThreadQueue

if TYPE_CHECKING:
    from sabir_actors.threads import ThreadActor

logger = logging.getLogger("sabir.actors")
Spans: TypeAlias = Callable[[Message], AbstractContextManager[Callable[[Response], None]]]
"""Makes a block around the handling of a message, which is given the response: `sabir_otel.message_span` is one."""
THREADS, SUPERVISOR = "threads", "supervisor"
"""Ids of the actors that every system has."""
DEAD_LETTERS = 1000
"""Messages without a receiver that are kept for looking at; all are counted."""


class Observers(TypedDict, total=False):
    """Who is told of what happens in a system; none of them can stop an actor.

    `trace` is told of every message and response, `watch` of what agents say while they say it, with the message that
    they answer. `spans` makes a block around the handling of each message, in the task that handles it.
    """

    trace: Callable[[AnyMessage], None] | None
    watch: Callable[[Message, Event], None] | None
    spans: Spans | None


class ActorSystem:
    """The actors of one process, and what they have in common; an asynchronous context manager.

    `model` is that of agents whose phase names none, `options` what agents may choose, by name, `settings` hold for
    all. `chains` are known beside the document's. `store` is where threads outlive the process: those that were
    interrupted go on at the start, unless `recovers` is False. `queue` gives threads to the processes that share a
    store, in place of this one (`sabir_actors.durable.DurableQueue`). `adapters` makes the adapter of a model,
    `restarts` says how long a message may take and when an actor is restarted. `observers` are told what happens.
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
        """The model of agents whose phase names none."""
        self.options: Mapping[str, Option] = {option.name: option for option in as_options(options)}
        self.settings = settings
        self.chains: Mapping[str, Chain] = {chain.name: chain for chain in (AEIOUY_CHAIN, *chains)}
        self.store = store
        if queue is not None and store is None:
            reason = "a queue gives threads to processes that share a store; give ActorSystem(store=…) that store"
            raise ActorError(ErrorCode.INVALID_CONFIG, reason)
        self.queue = queue
        self._recovers = recovers
        self.adapters = Adapters(adapters)
        """What agents ask by."""
        self.dead_letters: deque[AnyMessage] = deque(maxlen=DEAD_LETTERS)
        self.dead_count = 0
        """How many messages had no receiver."""
        self.supervisor_id: str | None = SUPERVISOR
        self.restarts = restarts or RestartPolicy()
        self.watch = observers.get("watch")
        self._actors: dict[str, Actor] = {}
        self._trace = observers.get("trace")
        self._spans = observers.get("spans")

    async def __aenter__(self) -> Self:
        """The system with its supervisor and its threads, of which those that were interrupted go on."""
        from sabir_actors.supervisor import SupervisorActor
        from sabir_actors.threads import ThreadActor

        threads = ThreadActor(THREADS, self, self.store)
        self.add(SupervisorActor(SUPERVISOR, self))
        self.add(threads)
        try:
            if self.queue is not None:
                await self.queue.open(threads.runs.perform)
                if self.queue.performs:
                    await threads.runs.sweep()
                    threads.runs.look()
            elif self._recovers:
                await threads.recover()
        except BaseException:
            await self.stop()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        """Stop every actor."""
        await self.stop()

    @property
    def threads(self) -> "ThreadActor":
        """The actor of all threads, once the system is at work."""
        from sabir_actors.threads import ThreadActor

        found = self.get_actor(THREADS)
        assert isinstance(found, ThreadActor)
        return found

    def add(self, actor: Actor) -> None:
        """Take an actor in; ActorError where another has its id."""
        if self._actors.setdefault(actor.actor_id, actor) is not actor:
            raise ActorError(ErrorCode.INVALID_CONFIG, f"an actor {actor.actor_id!r} is here already; give another id")

    def remove(self, actor_id: str) -> None:
        """Let an actor go."""
        self._actors.pop(actor_id, None)

    def actors(self) -> tuple[str, ...]:
        """Ids of all actors, in the order in which they came."""
        return tuple(self._actors)

    def get_actor(self, actor_id: str) -> Actor:
        """The actor of that id; ActorError (UNKNOWN_ACTOR) where there is none."""
        found = self._actors.get(actor_id)
        if found is None:
            raise ActorError(ErrorCode.UNKNOWN_ACTOR, f"no actor {actor_id!r} is here; see system.actors()")
        return found

    async def send_message(self, message: Message) -> Response:
        """Take a message to its receiver; the response, an ErrorResponse where the receiver is unknown (CH-41).

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
        """Keep a message that nobody takes, and count it."""
        self.dead_letters.append(message)
        self.dead_count += 1
        logger.warning("no receiver for %s %s to %s", message.type, message.id, message.receiver)

    def log(self, message: AnyMessage) -> None:
        """Tell of one message on its way; never of its contents (CH-45)."""
        logger.info(
            "%s %s from %s to %s (%s)",
            message.type, message.id, message.sender, message.receiver, message.correlation_id,
        )  # fmt: skip
        if self._trace is None:
            return
        try:
            self._trace(message)
        except Exception as error:  # a broken display stops no actor
            logger.warning("trace failed at %s: %s", message.type, one_line(f"{type(error).__name__}: {error}", 200))

    async def spanned(self, message: Message, answer: Callable[[Message], Coroutine[Any, Any, Response]]) -> Response:
        """What `answer` makes of a message, within the block that `spans` makes for it."""
        if self._spans is None:
            return await answer(message)
        with ExitStack() as stack:
            told = self._enter_span(stack, self._spans, message)
            response = await answer(message)
            if told is not None:
                told(response)
        return response

    def _enter_span(self, stack: ExitStack, spans: Spans, message: Message) -> Callable[[Response], None] | None:
        try:
            return stack.enter_context(spans(message))
        except Exception as error:  # broken telemetry stops no actor
            logger.warning("spans failed at %s: %s", message.type, one_line(f"{type(error).__name__}: {error}", 200))
            return None

    async def notify_supervisor(self, actor: Actor, message: Message, error: ActorError) -> Response | None:
        """Tell the supervisor of an actor's error; its answer, None where nobody supervises (CH-40)."""
        if self.supervisor_id not in self._actors or self.supervisor_id in (actor.actor_id, message.sender):
            return None
        details = {"message_id": message.id, "message_type": message.type, "retryable": error.retryable}
        said = {"actor_id": actor.actor_id, "error_message": str(error), "error_code": error.code.value, **details}
        return await self.send_message(
            Message(
                type="ERROR_NOTIFICATION",
                data=said,
                sender=actor.actor_id,
                receiver=self.supervisor_id,
                correlation_id=message.correlation_id,
            )
        )

    async def stop(self) -> None:
        """Stop every actor, the latest first, and close their adapters; what each is handling ends before it goes."""
        await self.let_go(THREADS)  # its runs wait for the others
        if self.queue is not None:
            await self.queue.aclose()
        for actor_id in reversed(self.actors()):
            await self.let_go(actor_id)
        await self.adapters.aclose()

    async def let_go(self, actor_id: str) -> None:
        """Stop one actor, wait until it has answered what it took in, and forget it."""
        actor = self._actors.get(actor_id)
        if actor is not None:
            await actor.stop()
            await actor.drained()
            self.remove(actor_id)


def raised(response: Response) -> Response:
    """The response; an ERROR is raised as the ActorError that it tells of."""
    if not isinstance(response, ErrorResponse):
        return response
    code = response.error_code if response.error_code in set(ErrorCode) else ErrorCode.FAILED
    said: dict[str, Any] = {k: v for k, v in response.data.items() if k not in ("error_message", "error_code")}
    retryable = bool(said.pop("retryable", False))
    raise ActorError(ErrorCode(code), response.error_message, retryable=retryable, **said)
