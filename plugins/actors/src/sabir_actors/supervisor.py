"""SupervisorActor: restarts failed actors with growing pauses, up to a limit, and then escalates.

ERROR_NOTIFICATION ─▶ may a restart help? ─no─▶ "escalate"
                          │yes
                          ├ restarts within the window < limit ─▶ pause, RESTART ─▶ "restart"
                          └ else ─▶ "escalate"

A restart may help unless the notification contains `retryable: false`. An actor that was named in SUPERVISE is
restarted even then, within the limit.
"""

import asyncio
from collections import deque
from time import monotonic
from weakref import WeakKeyDictionary, WeakSet

from sabir.authoring import one_line

from sabir_actors import data as typed
from sabir_actors.actor import Actor, ActorHost, HandlerResult
from sabir_actors.errors import ActorError
from sabir_actors.observers import logger
from sabir_actors.protocol import ErrorResponse, Message, Response, data_of, raise_for_error


class SupervisorActor(Actor):
    """Restarts failed actors, within the limits of the system's RestartPolicy. Each ActorSystem has one supervisor,
    with the id "supervisor".

    An actor reports an error with ERROR_NOTIFICATION. The response's `action_taken` is "restart" if the actor was
    restarted, otherwise "escalate".
    """

    def __init__(self, actor_id: str, system: ActorHost) -> None:
        super().__init__(actor_id, system)
        self.policy = system.restarts
        self.supervised: WeakSet[Actor] = WeakSet()
        self._restarts: WeakKeyDictionary[Actor, deque[float]] = WeakKeyDictionary()

    # Errors of several actors are handled concurrently: each handler waits for its own pause.
    immediate = Actor.immediate | {"ERROR_NOTIFICATION"}

    async def on_supervise(self, message: Message) -> HandlerResult:
        """Handle SUPERVISE: from now on, restart an actor after any reported error, even if the error is not retryable,
        within the limits of RestartPolicy. Raises ActorError (UNKNOWN_ACTOR) for an unknown id.
        """
        actor_id = data_of(message, typed.OfActor).actor_id
        self.supervised.add(self.system.get_actor(actor_id))
        return typed.SupervisionStarted(actor_id=actor_id)

    async def on_restart(self, message: Message) -> HandlerResult:
        """Handle RESTART: restart the actor that the message names, which may be the supervisor itself. This restart
        has no pause and no limit. Raises ActorError if the actor is unknown or its restart fails.
        """
        request = data_of(message, typed.ActorReason)
        if request.actor_id == self.actor_id:
            return await super().on_restart(message)
        return raise_for_error(await self._restart(request.actor_id, request.reason, message.correlation_id)).data

    async def on_error_notification(self, message: Message) -> HandlerResult:
        """Handle ERROR_NOTIFICATION: restart the actor `culprit` (by default the failed actor `actor_id`), if this may
        help and the limit allows it. The response's `action_taken` is "restart" or "escalate".
        """
        notification = data_of(message, typed.ErrorNotification)
        logger.warning("%s failed: %s", notification.actor_id, one_line(notification.error_message, 200))
        action = "restart" if await self._try_restart(notification, message.correlation_id) else "escalate"
        return typed.ErrorAcknowledged(actor_id=notification.actor_id, action_taken=action)

    async def _try_restart(self, notification: typed.ErrorNotification, correlation_id: str | None) -> bool:
        """Restart the actor, after a pause, if this may help and the limit allows it. Return whether it was
        restarted.
        """
        extra = notification.model_extra or {}
        try:
            culprit = self.system.get_actor(str(extra.get("culprit") or notification.actor_id))
        except ActorError:
            return False
        is_restartable = extra.get("retryable", True) or culprit in self.supervised
        if not is_restartable or not self._may_restart(culprit):
            return False
        retry_after = extra.get("retry_after")
        await asyncio.sleep(
            self.policy.pause(
                len(self._restarts[culprit]) - 1, retry_after if isinstance(retry_after, int | float) else 0.0
            )
        )
        return not isinstance(await self._restart(culprit.actor_id, "error_recovery", correlation_id), ErrorResponse)

    def _may_restart(self, actor: Actor) -> bool:
        """Return whether the limit allows one more restart of an actor. If so, count this restart."""
        times, now = self._restarts.setdefault(actor, deque()), monotonic()
        while times and times[0] < now - self.policy.window:
            times.popleft()
        if len(times) >= self.policy.limit:
            return False
        times.append(now)
        return True

    async def _restart(self, actor_id: str, reason: str, correlation_id: str | None) -> Response:
        fields = {"actor_id": actor_id, "reason": reason}
        return await self.system.send_message(self._request("RESTART", fields, actor_id, correlation_id))
