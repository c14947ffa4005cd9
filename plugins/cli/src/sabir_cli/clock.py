"""The option of the demonstration: what time it is in a city, computed from the clock and the time zone database.

"Paris" ──zone names end in cities──▶ Europe/Paris ──clock──▶ "14:03 on Saturday, 21 November 2026"
"""

import functools
import unicodedata
from datetime import datetime
from zoneinfo import ZoneInfo, available_timezones


def time_in(city: str) -> str:
    """The current time and date in a city."""
    now = datetime.now(ZoneInfo(find_zone(city)))
    return f"{now:%H:%M on %A}, {now.day} {now:%B %Y}"


def find_zone(city: str) -> str:
    """The time zone named after a city (or the name of a zone itself); LookupError where none is."""
    zones = _zones()
    name = _plain(city)
    for candidate in (name, name.partition(",")[0].strip()):
        if candidate in zones:
            return zones[candidate]
    raise LookupError(f"no time zone is named after {city!r}; name a larger city, or a zone such as Europe/Berlin")


@functools.cache
def _zones() -> dict[str, str]:
    """Plain names of cities, and of zones, to zones; a continent's name for a city wins over an old alias."""
    found: dict[str, str] = {}
    for zone in sorted(available_timezones(), key=lambda zone: ("/" not in zone, zone)):
        found.setdefault(_plain(zone.rpartition("/")[2]), zone)
        found.setdefault(_plain(zone), zone)
    return found


def _plain(name: str) -> str:
    letters = unicodedata.normalize("NFKD", name.casefold().replace("_", " ")).strip()
    return "".join(letter for letter in letters if not unicodedata.combining(letter))
