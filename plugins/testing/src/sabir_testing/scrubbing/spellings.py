"""A secret that is known, in every way in which a body, a header or a URL may write it.

as it is     in percents     escaped in JSON     a UUID in either case, with and without dashes     in base64

A long text goes wherever it stands. A short one and a number stand in too many places, so they go only as words of
their own: `Spelling.is_word`.
"""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from urllib.parse import quote, quote_plus

from sabir_testing.reading import encoded

SHORTEST_SECRET = 8
"""Characters that a value found by the look of its name has at least: shorter ones stand in too many places."""
SHORTEST_NUMBER = 4
"""Digits that a key has at least which is a number: less are a count."""
_UUID = re.compile(r"[0-9a-fA-F]{8}-?(?:[0-9a-fA-F]{4}-?){3}[0-9a-fA-F]{12}")


def is_telling(secret: str) -> bool:
    """Whether a text is long and odd enough to be known again in the midst of others."""
    return len(secret) >= SHORTEST_SECRET and not secret.isdigit()


@dataclass(frozen=True)
class Spelling:
    """One way to write something that goes, and what stands there instead."""

    text: str
    instead: str
    is_word: bool = False

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        edges = (r"(?<![0-9A-Za-z])", r"(?![0-9A-Za-z])") if self.is_word else ("", "")
        return re.compile(re.escape(self.text).join(edges))

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Where it stands, from and to."""
        return [match.span() for match in self._pattern.finditer(text)] if self.text in text else []

    def replaced(self, text: str) -> str:
        """The text without it."""
        return self._pattern.sub(lambda _: self.instead, text) if self.text in text else text


def spellings(secret: str, instead: str, *, is_word: bool = False) -> set[Spelling]:
    """A secret as URLs, JSON and other systems write it."""
    same = {secret}
    if _UUID.fullmatch(secret):
        bare = secret.replace("-", "")
        dashed = "-".join((bare[:8], bare[8:12], bare[12:16], bare[16:20], bare[20:]))
        same |= {case(each) for each in (bare, dashed) for case in (str.lower, str.upper)}
    escaped = {spelt for each in same for spelt in (json.dumps(each)[1:-1], json.dumps(each, ensure_ascii=False)[1:-1])}
    quoted = {spelt for each in same for spelt in (quote(each, safe=""), quote_plus(each))}
    found = same | escaped | quoted | {each.replace("/", r"\/") for each in escaped}
    return {Spelling(each, instead, is_word) for each in found}


def replace_all(text: str, known: Iterable[Spelling]) -> str:
    """The text without any of them, also where base64 in it holds one."""
    known = list(known)
    for spelling in known:
        text = spelling.replaced(text)
    for run in reversed(list(encoded(text))):
        held = run.held.decode("latin-1")
        left = held
        for spelling in known:
            left = _as_bytes(spelling).replaced(left)
        if left != held:
            text = text[: run.start] + run.written(left.encode("latin-1")) + text[run.end :]
    return text


def _as_bytes(spelling: Spelling) -> Spelling:
    """As it reads where each byte is read as a letter."""
    if spelling.text.isascii():
        return spelling
    return Spelling(spelling.text.encode("utf-8", "replace").decode("latin-1"), spelling.instead, spelling.is_word)
