"""Differences of a request from a recorded one: by path if both bodies are JSON, otherwise the first different byte.

temperature: recorded 0, sent 1
messages[1].content: recorded 'Hi', sent 'Hello'
seed: not recorded, sent 7

A placeholder in a recorded request matches any text, because the scrubbed text is unknown.
"""

import json
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import islice
from typing import Any

from sabir_testing.reading import Place, shown_place
from sabir_testing.scrubbing import HOST, PLACEHOLDER

MOST_SHOWN = 6
"""The largest number of differences in an error message."""
_WIDTH = 60
_ABSENT = object()


def is_same_text(recorded: str, asked: str) -> bool:
    """Return whether two texts are equal. Placeholders in the recorded text match any text."""
    if recorded == asked:
        return True
    if PLACEHOLDER not in recorded and HOST not in recorded:
        return False
    return _pattern(recorded).fullmatch(asked) is not None


def body_differences(recorded: bytes, asked: bytes) -> Iterator[str]:
    """Yield the differences of two bodies in words; nothing if they are equal."""
    if recorded == asked:
        return
    try:
        values = json.loads(recorded), json.loads(asked)
    except ValueError:
        yield from _byte_differences(recorded, asked)
    else:
        yield from value_differences(*values)


def value_differences(recorded: Any, asked: Any, place: Place = ()) -> Iterator[str]:
    """Yield the differences of two JSON values in words. 1 and 1.0 are equal, 1 and true are not."""
    if recorded == PLACEHOLDER and asked is not _ABSENT:
        return
    if isinstance(recorded, dict) and isinstance(asked, dict):
        names = {name: _asked_name(name, recorded, asked) for name in recorded}
        for name, other in names.items():
            yield from value_differences(recorded[name], asked.get(other, _ABSENT), (*place, name))
        for other in [other for other in asked if other not in names.values()]:
            yield from value_differences(_ABSENT, asked[other], (*place, other))
    elif isinstance(recorded, list) and isinstance(asked, list):
        for position in range(max(len(recorded), len(asked))):
            one, two = (each[position] if position < len(each) else _ABSENT for each in (recorded, asked))
            yield from value_differences(one, two, (*place, position))
    elif not _is_same(recorded, asked):
        yield f"{shown_place(place) or 'the body'}: {_described('recorded', recorded)}, {_described('sent', asked)}"


def listed(differences: Iterator[str]) -> str:
    """Return the first differences, one on a line."""
    lines = list(islice(differences, MOST_SHOWN + 1))
    if len(lines) > MOST_SHOWN:
        lines[MOST_SHOWN:] = ["…"]
    return "\n".join(f"  {line}" for line in lines)


def _asked_name(name: str, recorded: Mapping[str, Any], asked: Mapping[str, Any]) -> str:
    """Return the name in the request for a recorded field. A scrubbed name matches an additional field."""
    if name in asked or PLACEHOLDER not in name:
        return name
    others = (other for other in asked if other not in recorded)
    return next((other for other in others if is_same_text(name, other)), name)


def _is_same(recorded: object, asked: object) -> bool:
    if isinstance(recorded, str) and isinstance(asked, str):
        return is_same_text(recorded, asked)
    return isinstance(recorded, bool) == isinstance(asked, bool) and recorded == asked


def _described(word: str, value: object) -> str:
    if value is _ABSENT:
        return f"not {word}"
    text = repr(value) if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return f"{word} {text if len(text) <= _WIDTH else text[: _WIDTH - 1] + '…'}"


def _byte_differences(recorded: bytes, asked: bytes) -> Iterator[str]:
    one, other = (body.decode("utf-8", "surrogateescape") for body in (recorded, asked))
    if is_same_text(one, other):
        return
    pairs = zip(recorded, asked, strict=False)
    at = next((at for at, (mine, yours) in enumerate(pairs) if mine != yours), min(len(recorded), len(asked)))
    yield f"from byte {at} on: recorded {_beginning(recorded[at:])}, sent {_beginning(asked[at:])}"


def _beginning(body: bytes) -> str:
    return repr(body[:30]) if body else "nothing"


@lru_cache(maxsize=256)
def _pattern(recorded: str) -> re.Pattern[str]:
    begun = "|".join(
        PLACEHOLDER[:length] for length in range(len(PLACEHOLDER) - 1, 0, -1)
    )  # cut to the secret's length
    pieces = re.split(f"((?:{PLACEHOLDER})+(?:{begun})?|{re.escape(HOST)})", recorded)
    scrubbed = [r"[^/\s\"'<>]*" if piece == HOST else ".*?" for piece in pieces[1::2]]
    kept = [re.escape(piece) for piece in pieces[::2]]
    return re.compile("".join(each for pair in zip(kept, [*scrubbed, ""], strict=True) for each in pair), re.DOTALL)
