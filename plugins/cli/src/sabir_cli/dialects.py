"""The installed dialects, and the providers that speak them.

providers ──▶ (provider, short name) … ──▶ one Spoken a dialect: its own provider's, and the gateways' names
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import sabir
from sabir.authoring import Dialect, Tables
from sabir.errors import PluginError

SIDES = ("system", "user", "assistant", "results")


class Speaker(NamedTuple):
    """One provider with its own short name for a dialect."""

    provider: str
    short_name: str

    @property
    def full_name(self) -> str:
        """`provider.short_name`, as a model string begins."""
        return f"{self.provider}.{self.short_name}"


@dataclass(frozen=True)
class Spoken:
    """A dialect, its shown speaker, and its other speakers."""

    dialect: Dialect
    carries: dict[str, Any]
    """What it supports besides text, as JSON."""
    speaker: Speaker
    others: tuple[Speaker, ...]

    @property
    def other_providers(self) -> tuple[str, ...]:
        """The names of the other providers that speak it."""
        return tuple(dict.fromkeys(other.provider for other in self.others))


def spoken_dialects(found: Iterable[sabir.ProviderStatus]) -> tuple[list[Spoken], list[str]]:
    """Every dialect of the providers that work, once, sorted by name; and errors, a line each.

    A dialect is named after the provider that it belongs to: that one speaks for it, else the first that does.
    """
    speakers: dict[str, list[Speaker]] = {}
    dialects: dict[str, tuple[Dialect, dict[str, Any]]] = {}
    faults: list[str] = []
    for status in found:
        if status.state == "failed":
            faults.append(f"{status.name} failed: {status.error}")
        for short_name in status.dialects:
            speaker = Speaker(status.name, short_name)
            try:
                with PluginError.blaming(f"{speaker.full_name} failed"):
                    dialect = sabir.provider(status.name).dialect(short_name)
                    name, carries = str(dialect.name), capabilities(dialect.tables)
            except PluginError as error:
                faults.append(str(error))
                continue
            dialects.setdefault(name, (dialect, carries))
            speakers.setdefault(name, []).append(speaker)
    return [_spoken(*dialects[name], speakers[name]) for name in sorted(speakers)], faults


def capabilities(tables: Tables) -> dict[str, Any]:  # whatever JSON holds
    """What a dialect carries besides text, read from its tables."""
    media: dict[str, dict[str, list[str]]] = {}
    for (side, modality), rule in sorted(tables.media.items(), key=lambda row: SIDES.index(row[0][0])):
        forms = [form for form in ("url", "data", "file") if getattr(rule, form) is not None]
        media.setdefault(side, {})[modality] = forms
    native = {side: sorted(kinds) for side, kinds in tables.roles.native.items() if kinds}
    return {"media": media, "native": native, "citations": tables.roles.citations == "native"}


def _spoken(dialect: Dialect, carries: dict[str, Any], speakers: list[Speaker]) -> Spoken:
    owner = next((each for each in speakers if each.full_name == dialect.name), speakers[0])
    return Spoken(dialect, carries, owner, tuple(each for each in speakers if each != owner))
