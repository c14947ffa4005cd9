"""SupervisorActor: what is done about errors: restart, with growing pauses and a limit, then escalate.

ERROR_NOTIFICATION ─▶ can a retry mend it? ─no─▶ "escalate"
                          │yes
                          ├ restarts within the window < limit ─▶ pause, RESTART ─▶ "restart"
                          └ else ─▶ "escalate"
"""

import asyncio
from collections import defaultdict, deque
from time import monotonic
from typing import TYPE_CHECKING

from sabir.errors import one_line

from sabir_actors import data as typed
from sabir_actors.actor import Actor, Handled, logger
from sabir_actors.policies import RestartPolicy
from sabir_actors.protocol import ErrorResponse, Message, Response, data_of

if TYPE_CHECKING:
    from sabir_actors.system import ActorSystem


class SupervisorActor(Actor):
    """Restarts the actors that it supervises, or says that nothing is to be gained by it."""

    def __init__(self, actor_id: str, system: "ActorSystem", policy: RestartPolicy | None = None) -> None:
        super().__init__(actor_id, system)
        self.policy = policy or RestartPolicy()
        self.supervised: set[str] = set()
        self._restarts: defaultdict[str, deque[float]] = defaultdict(deque)

    # Errors of several actors are met at once: each waits for its own pause.
    immediate = Actor.immediate | {"ERROR_NOTIFICATION"}

    async def on_supervise(self, message: Message) -> Handled:
        """Supervise an actor from now on (CH-33)."""
        actor_id = data_of(message, typed.OfActor).actor_id
        self.system.get_actor(actor_id)
        self.supervised.add(actor_id)
        return typed.SupervisionStarted(actor_id=actor_id)

    async def on_restart(self, message: Message) -> Handled:
        """Restart another actor, or itself (CH-34)."""
        wanted = data_of(message, typed.ActorReason)
        if wanted.actor_id == self.actor_id:
            return await super().on_restart(message)
        response = await self._restart(wanted.actor_id, wanted.reason, message.correlation_id)
        return message.response(response.data) if not isinstance(response, ErrorResponse) else response

    async def on_error_notification(self, message: Message) -> Handled:
        """Restart the actor that failed, or escalate (CH-36). `data` may name by `culprit` who is to be restarted."""
        told = data_of(message, typed.ErrorNotification)
        extra = told.model_extra or {}
        culprit = extra.get("culprit") or told.actor_id
        logger.warning("%s failed: %s", told.actor_id, one_line(told.error_message, 200))
        if not extra.get("retryable", False) or not self._may_restart(culprit):
            return typed.ErrorAcknowledged(actor_id=told.actor_id, action_taken="escalate")
        await asyncio.sleep(self.policy.pause(len(self._restarts[culprit]) - 1))
        await self._restart(culprit, "error_recovery", message.correlation_id)
        return typed.ErrorAcknowledged(actor_id=told.actor_id, action_taken="restart")

    def _may_restart(self, actor_id: str) -> bool:
        """Whether one more restart is within the limit; counts it."""
        times, now = self._restarts[actor_id], monotonic()
        while times and times[0] < now - self.policy.window:
            times.popleft()
        if len(times) >= self.policy.limit:
            return False
        times.append(now)
        return True

    async def _restart(self, actor_id: str, reason: str, correlation_id: str | None) -> Response:
        return await self.system.send_message(
            Message(
                type="RESTART",
                data={"actor_id": actor_id, "reason": reason},
                sender=self.actor_id,
                receiver=actor_id,
                correlation_id=correlation_id,
            )
        )

    def forget(self, actor_id: str) -> None:
        """Supervise an actor no longer: it was let go."""
        self.supervised.discard(actor_id)
        self._restarts.pop(actor_id, None)
