"""The policy for failures and restarts of actors."""

from dataclasses import dataclass


@dataclass(frozen=True)
class RestartPolicy:
    """When an actor is restarted: at most `limit` times in `window` seconds, after pauses that double.

    The first pause is `first_pause` seconds, the longest `longest_pause`. A phase asks its agent once more after each
    restart, so at most `limit` + 1 times. A message may take `timeout` seconds, its wait in the mailbox included; one
    that runs a phase may take that long for each time that its agent is asked.

    A RESTART waits `patience` seconds for messages that are being handled, then it interrupts them. Leaving a system
    waits `leaving` seconds for them; then it interrupts them and everything that does not close, which takes at most
    5 seconds more.
    """

    limit: int = 3
    window: float = 60.0
    first_pause: float = 0.1
    longest_pause: float = 10.0
    timeout: float = 600.0
    patience: float = 1.0
    leaving: float = 5.0

    def pause(self, restarts: int, wanted: float = 0.0) -> float:
        """Seconds before the next restart.

        `restarts` counts earlier ones, `wanted` is the failed provider's requested wait.
        """
        doubled = self.first_pause * 2.0 ** min(restarts, 100)
        return float(min(max(doubled, wanted), self.longest_pause))
