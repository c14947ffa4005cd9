r"""Broken Unicode in what a provider sent: U+FFFD stands for it, so that the rest is not lost with it.

    invalid UTF-8                  b'"caf\xe9"'      ──▶  b'"caf\xef\xbf\xbd"'
    half a surrogate pair, escaped b'"\ud83d"'       ──▶  b'"\ufffd"'          whole pairs stay

Without this a reply could hold text that no request and no file can hold.
"""

import re

_ESCAPE = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[dD][89a-fA-F]..|\\.", re.DOTALL)
_WHOLE_PAIR = 12
_REPLACEMENT = r"\ufffd"


def mend(body: bytes) -> tuple[bytes, bool]:
    """The body as valid UTF-8 without lone surrogates, and whether anything had to be replaced."""
    try:
        text, was_invalid = body.decode(), False
    except UnicodeDecodeError:
        text, was_invalid = body.decode(errors="replace"), True
    text, was_broken = mend_escapes(text)
    return (text.encode(), True) if was_invalid or was_broken else (body, False)


def mend_escapes(text: str) -> tuple[str, bool]:
    """JSON text without escapes of half a surrogate pair, and whether there were any."""
    if r"\ud" not in text and r"\uD" not in text:
        return text, False
    mended = _ESCAPE.sub(_mend_escape, text)
    return mended, mended != text


def _mend_escape(escape: re.Match[str]) -> str:
    found = escape[0]
    is_half = len(found) > 2 and len(found) < _WHOLE_PAIR
    return _REPLACEMENT if is_half else found
