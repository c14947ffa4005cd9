"""Spellings: the forms in which bodies, headers and URLs may contain a known secret.

unchanged     percent-encoded     escaped in JSON     a UUID in upper or lower case, with and without dashes     base64

A long secret is replaced everywhere. Short secrets and numbers are replaced only if they are separate words
(`Spelling.is_word`), because they may be a part of harmless texts.
"""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from urllib.parse import quote, quote_plus

from sabir_testing.reading import base64_runs

SHORTEST_SECRET = 8
"""The shortest value, in characters, that counts as a secret because of its name. Shorter texts are too common."""
SHORTEST_NUMBER = 4
"""The fewest digits of a key that is a number. Shorter numbers are probably counts."""
_UUID = re.compile(r"[0-9a-fA-F]{8}-?(?:[0-9a-fA-F]{4}-?){3}[0-9a-fA-F]{12}")


def is_telling(secret: str) -> bool:
    """Return whether a secret is long enough, and not a number, so that it can be replaced within other texts."""
    return len(secret) >= SHORTEST_SECRET and not secret.isdigit()


@dataclass(frozen=True)
class Spelling:
    """One form of a secret, and the text that replaces it."""

    text: str
    replacement: str
    is_word: bool = False

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        edges = (r"(?<![0-9A-Za-z])", r"(?![0-9A-Za-z])") if self.is_word else ("", "")
        return re.compile(re.escape(self.text).join(edges))

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Return the start and end of each occurrence in a text."""
        return [match.span() for match in self._pattern.finditer(text)] if self.text in text else []

    def replace_in(self, text: str) -> str:
        """Return a text with every occurrence replaced."""
        return self._pattern.sub(lambda _: self.replacement, text) if self.text in text else text


def spellings(secret: str, replacement: str, *, is_word: bool = False) -> set[Spelling]:
    """Return the spellings of a secret in URLs, JSON and other formats."""
    same = {secret}
    if _UUID.fullmatch(secret):
        bare = secret.replace("-", "")
        dashed = "-".join((bare[:8], bare[8:12], bare[12:16], bare[16:20], bare[20:]))
        same |= {case(each) for each in (bare, dashed) for case in (str.lower, str.upper)}
    escaped = {spelt for each in same for spelt in (json.dumps(each)[1:-1], json.dumps(each, ensure_ascii=False)[1:-1])}
    quoted = {spelt for each in same for spelt in (quote(each, safe=""), quote_plus(each))}
    forms = same | escaped | quoted | {each.replace("/", r"\/") for each in escaped}
    return {Spelling(each, replacement, is_word) for each in forms}


def replace_all(text: str, known: Iterable[Spelling]) -> str:
    """Return a text with all known spellings replaced, also within base64, in the order of `known`."""
    known = list(known)
    for spelling in known:
        text = spelling.replace_in(text)
    for run in reversed(list(base64_runs(text))):
        content = run.content.decode("latin-1")
        scrubbed = content
        for spelling in known:
            scrubbed = _as_bytes(spelling).replace_in(scrubbed)
        if scrubbed != content:
            text = text[: run.start] + run.encode(scrubbed.encode("latin-1")) + text[run.end :]
    return text


def _as_bytes(spelling: Spelling) -> Spelling:
    """Return the spelling for a text that was decoded as Latin-1, one letter for each byte."""
    if spelling.text.isascii():
        return spelling
    return Spelling(spelling.text.encode("utf-8", "replace").decode("latin-1"), spelling.replacement, spelling.is_word)
