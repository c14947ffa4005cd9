"""The decisions of a dialect, as data: its tables of roles, media and calls.

    roles    which parts each side takes; where system messages go; which of the model's own parts go back to it
    media    (side, modality) ──▶ which forms and MIME types that side takes
    calls    the characters and lengths of ids and names; hints of options; the place of results; calls without a result

Core decides by them before any function of the dialect runs, so that those functions see only what they can encode.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import sha256
from typing import Literal, TypeAlias

from pydantic import BaseModel

from sabir.vocabulary.media import MediaRule, Modality
from sabir.vocabulary.target import ModelInfo

Side: TypeAlias = Literal["system", "user", "assistant", "results"]
"""The side of a turn, as a wire sees it; results always follow the assistant turn whose calls they answer."""


@dataclass(frozen=True, slots=True)
class Roles:
    """Which parts each side takes besides text and media, and where system messages go.

    `native` maps a side to the part kinds that the dialect encodes for it: "reasoning", "refusal", "opaque".
    `citations` says whether a text part's citations go back to their maker, `reasoning` whether reasoning goes back
    without state too. A system message after the start renders as user where `later_system` is "user"; where it is
    "after_user", a system message at the end of the user's side is a system turn, and any other renders as user.
    """

    native: Mapping[Side, frozenset[str]] = field(default_factory=dict)
    leading_system: Literal["inline", "hoisted"] = "inline"
    later_system: Literal["inline", "user", "after_user"] = "inline"
    citations: Literal["native", "dropped"] = "dropped"
    reasoning: Literal["any", "with_state"] = "any"


_HASH_LENGTH = 12


@dataclass(frozen=True)
class IdentifierRule:
    """The identifiers that a wire takes: regular expressions for one character and for the first, and the length."""

    characters: str = r"[A-Za-z0-9_-]"
    longest: int = 64
    first: str = ""

    @cached_property
    def _whole(self) -> re.Pattern[str]:
        return re.compile(f"(?:{self.first or self.characters})(?:{self.characters}){{0,{self.longest - 1}}}")

    @cached_property
    def _foreign(self) -> re.Pattern[str]:
        return re.compile(f"(?!{self.characters})[\\s\\S]")

    def fitted(self, identifier: str) -> str:
        """The identifier if the wire takes it as it is; else an identifier derived from it."""
        return identifier if self._whole.fullmatch(identifier) else self.derived(identifier)

    def derived(self, identifier: str, occurrence: int = 0) -> str:
        """A valid identifier for any string: its valid characters, then twelve hexadecimal digits of its hash."""
        digest = sha256(f"{identifier}\0{occurrence}".encode("utf-8", "surrogatepass")).hexdigest()[:_HASH_LENGTH]
        kept = self._foreign.sub("_", identifier)[: max(self.longest - _HASH_LENGTH - 1, 0)]
        made = f"{kept}_{digest}" if kept else digest
        return made if self._whole.fullmatch(made) else f"x{made}"[: self.longest]


@dataclass(frozen=True, slots=True)
class Calls:
    """How a wire takes option calls, and the provider's own pairs of blocks.

    `ids` and `names` say which identifiers it takes. `hints` is a strict, frozen model of the vendor hints that an
    option may have.

    `incomplete` says what becomes of a call without a result once another turn begins, or the request ends: it is
    "left_out" (loss: dropped), and a later result brings the call to its own place; or it is "answered" in its place
    by an error (loss: synthesized), and a later result is dropped. `results` stand "apart", as a turn of their own, or
    "with_user": then the user's next messages are in the turn of the results, behind them.

    `unfinished_pairs` says whether a request may end with an opaque part that opens a pair but whose other half is
    missing, as it is where a provider paused in mid-turn.
    """

    ids: IdentifierRule = IdentifierRule()
    names: IdentifierRule = IdentifierRule()
    hints: type[BaseModel] | None = None
    incomplete: Literal["left_out", "answered"] = "left_out"
    results: Literal["apart", "with_user"] = "apart"
    unfinished_pairs: Literal["dropped", "kept_at_the_end"] = "dropped"


@dataclass(frozen=True, slots=True)
class Tables:
    """The three tables of a dialect; `variants` maps a quirk to the tables that endpoints of that quirk have instead.

    `media` maps (side, modality) to a rule; a missing row means that this side never takes that modality; the rows
    ("results", …) are for option results.
    """

    roles: Roles = Roles()
    media: Mapping[tuple[Side, Modality], MediaRule] = field(default_factory=dict)
    calls: Calls = Calls()
    variants: Mapping[str, "Tables"] = field(default_factory=dict)

    def at(self, quirks: frozenset[str], info: ModelInfo) -> "Tables":
        """The tables for a model at an endpoint of these quirks."""
        found = next((self.variants[quirk] for quirk in sorted(quirks) if quirk in self.variants), self)
        if "later_system" in info.rejects and found.roles.later_system != "user":
            found = replace(found, roles=replace(found.roles, later_system="user"))
        return found
