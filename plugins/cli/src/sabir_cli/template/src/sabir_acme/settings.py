"""Settings that only Acme has: `sabir.Settings(vendor={"acme": {"tier": "fast"}})`.

Change: the fields, by the vendor's own names. What a neutral setting says is not repeated here; what neither knows
can still be sent as `extra_body`.
"""

from typing import Literal

from sabir.authoring import Frozen


class AcmeSettings(Frozen):
    """Strict: a name that is not here is refused before anything is sent."""

    tier: Literal["fast", "thrifty"] | None = None
