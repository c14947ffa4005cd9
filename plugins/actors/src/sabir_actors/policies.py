"""When an actor that failed is restarted."""

from dataclasses import dataclass


@dataclass(frozen=True)
class RestartPolicy:
    """When an actor is restarted: at most `limit` times in `window` seconds, after pauses that double.

    The first pause is `first_pause` seconds, the longest `longest_pause`.
    """

    limit: int = 3
    window: float = 60.0
    first_pause: float = 0.1
    longest_pause: float = 10.0

    def pause(self, restarts: int) -> float:
        """Seconds before the restart after so many."""
        return float(min(self.first_pause * 2.0**restarts, self.longest_pause))
