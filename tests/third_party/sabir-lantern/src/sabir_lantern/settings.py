"""Settings that only Lantern has: `sabir.Settings(vendor={"lantern": {"pace": "rush"}})`."""

from typing import Literal

from sabir.authoring import Frozen


class LanternSettings(Frozen):
    """Vendor settings of Lantern. An unknown name or an invalid value raises SettingsInvalid."""

    pace: Literal["rush", "idle"] | None = None
    """How soon the service works on the request. None means the account's default."""
