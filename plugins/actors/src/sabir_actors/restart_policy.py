"""RestartPolicy: the time limits of messages, and the limits for restarts of actors."""

from dataclasses import dataclass


@dataclass(frozen=True)
class RestartPolicy:
    """Limits for restarts and times of actors. Passed to ActorSystem as `restarts`. All times are in seconds.

    The supervisor restarts a failed actor at most `limit` times within `window` seconds. The pauses before restarts
    double from `first_pause` up to `longest_pause`. A phase runs its agent again after each restart, so at most
    `limit` + 1 times.

    A message fails with TIMEOUT after `timeout` seconds, including its wait in the mailbox, unless its actor has
    another time limit (`longest`). A message that runs a phase has (`limit` + 1) * `timeout` seconds. A RESTART waits
    at most `patience` seconds for messages that are being handled, and then interrupts them. Leaving an ActorSystem
    interrupts running threads at once. It waits at most `leaving` seconds in total for all other messages that are
    being handled, and then interrupts them.

    >>> from sabir_actors import RestartPolicy
    >>> [RestartPolicy().pause(restarts) for restarts in range(3)]
    [0.1, 0.2, 0.4]
    """

    limit: int = 3
    window: float = 60.0
    first_pause: float = 0.1
    longest_pause: float = 10.0
    timeout: float = 600.0
    patience: float = 1.0
    leaving: float = 5.0

    def pause(self, restarts: int, wanted: float = 0.0) -> float:
        """Return the number of seconds to wait before the next restart, at most `longest_pause`.

        `restarts` is the number of earlier restarts. `wanted` is the number of seconds that a provider asked to wait
        (retry-after); if it is larger, it replaces the doubled pause.
        """
        doubled = self.first_pause * 2.0 ** min(restarts, 100)
        return float(min(max(doubled, wanted), self.longest_pause))
