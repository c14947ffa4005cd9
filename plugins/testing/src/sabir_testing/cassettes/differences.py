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

from sabir_testing.reading import JSONPath, format_path
from sabir_testing.scrubbing import HOST, PLACEHOLDER

MOST_SHOWN = 6
"""The largest number of differences in an error message."""
_LONGEST_VALUE = 60
_ABSENT = object()


def is_same_text(recorded: str, sent: str) -> bool:
    """Return whether two texts are equal. Placeholders in the recorded text match any text."""
    if recorded == sent:
        return True
    if PLACEHOLDER not in recorded and HOST not in recorded:
        return False
    return _pattern(recorded).fullmatch(sent) is not None


def body_differences(recorded: bytes, sent: bytes) -> Iterator[str]:
    """Describe each difference between two JSON bodies. For other bodies, describe the first different byte. A
    placeholder in the recorded body matches any text.
    """
    if recorded == sent:
        return
    try:
        values = json.loads(recorded), json.loads(sent)
    except ValueError:
        yield from _byte_differences(recorded, sent)
    else:
        yield from value_differences(*values)


def value_differences(recorded: Any, sent: Any, path: JSONPath = ()) -> Iterator[str]:
    """Describe each difference between two JSON values. 1 and 1.0 are equal, 1 and true are not. A recorded value that
    is the placeholder equals any value.
    """
    if recorded == PLACEHOLDER and sent is not _ABSENT:
        return
    if isinstance(recorded, dict) and isinstance(sent, dict):
        names = {name: _matching_name(name, recorded, sent) for name in recorded}
        for name, other in names.items():
            yield from value_differences(recorded[name], sent.get(other, _ABSENT), (*path, name))
        for other in [other for other in sent if other not in names.values()]:
            yield from value_differences(_ABSENT, sent[other], (*path, other))
    elif isinstance(recorded, list) and isinstance(sent, list):
        for position in range(max(len(recorded), len(sent))):
            one, two = (each[position] if position < len(each) else _ABSENT for each in (recorded, sent))
            yield from value_differences(one, two, (*path, position))
    elif not _is_same(recorded, sent):
        sides = _describe_side("recorded", recorded), _describe_side("sent", sent)
        yield f"{format_path(path) or 'the body'}: {', '.join(sides)}"


def list_differences(differences: Iterator[str]) -> str:
    """Return the first differences, one on a line."""
    lines = list(islice(differences, MOST_SHOWN + 1))
    if len(lines) > MOST_SHOWN:
        lines[MOST_SHOWN:] = ["…"]
    return "\n".join(f"  {line}" for line in lines)


def _matching_name(name: str, recorded: Mapping[str, Any], sent: Mapping[str, Any]) -> str:
    """Return the sent name for a recorded field name. A scrubbed name matches a name that was not recorded."""
    if name in sent or PLACEHOLDER not in name:
        return name
    others = (other for other in sent if other not in recorded)
    return next((other for other in others if is_same_text(name, other)), name)


def _is_same(recorded: object, sent: object) -> bool:
    if isinstance(recorded, str) and isinstance(sent, str):
        return is_same_text(recorded, sent)
    return isinstance(recorded, bool) == isinstance(sent, bool) and recorded == sent


def _describe_side(word: str, value: object) -> str:
    if value is _ABSENT:
        return f"not {word}"
    text = repr(value) if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return f"{word} {text if len(text) <= _LONGEST_VALUE else text[: _LONGEST_VALUE - 1] + '…'}"


def _byte_differences(recorded: bytes, sent: bytes) -> Iterator[str]:
    one, other = (body.decode("utf-8", "surrogateescape") for body in (recorded, sent))
    if is_same_text(one, other):
        return
    shorter = min(len(recorded), len(sent))
    at = next((at for at in range(shorter) if recorded[at] != sent[at]), shorter)
    yield f"from byte {at} on: recorded {_first_bytes(recorded[at:])}, sent {_first_bytes(sent[at:])}"


def _first_bytes(body: bytes) -> str:
    return repr(body[:30]) if body else "nothing"


@lru_cache(maxsize=256)
def _pattern(recorded: str) -> re.Pattern[str]:
    cut_placeholder = "|".join(
        PLACEHOLDER[:length] for length in range(len(PLACEHOLDER) - 1, 0, -1)
    )  # cut to the secret's length
    pieces = re.split(f"((?:{PLACEHOLDER})+(?:{cut_placeholder})?|{re.escape(HOST)})", recorded)
    scrubbed = [r"[^/\s\"'<>]*" if piece == HOST else ".*?" for piece in pieces[1::2]]
    literals = [re.escape(piece) for piece in pieces[::2]]
    return re.compile("".join(each for pair in zip(literals, [*scrubbed, ""], strict=True) for each in pair), re.DOTALL)
