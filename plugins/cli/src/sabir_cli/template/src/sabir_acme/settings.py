"""Settings that only Acme has: `sabir.Settings(vendor={"acme": {"tier": "fast"}})`.

Change: the fields, with the vendor's own names. Do not repeat neutral settings, such as `temperature`. Users can send
fields that are not here in `extra_body`.
"""

from typing import Literal

from sabir.authoring import Frozen


class AcmeSettings(Frozen):
    """Vendor settings of Acme. An unknown name or an invalid value raises SettingsInvalid before anything is sent."""

    tier: Literal["fast", "thrifty"] | None = None
    """The processing tier. None means the vendor's default."""
