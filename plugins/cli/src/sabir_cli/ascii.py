"""Output in an encoding that lacks some of our signs: ASCII replaces them, and no text raises an error."""

import codecs
import io
import locale

ASCII = str.maketrans({
    "·": "-", "…": "...", "▶": ">", "▸": ">", "→": "->", "─": "-", "━": "-", "│": "|", "•": "*", "×": "x",
    "–": "-", "—": "-", "‘": "'", "’": "'", "“": '"', "”": '"', "\N{NO-BREAK SPACE}": " ",
})  # fmt: skip
"""What stands for a sign of ours where an encoding lacks it; for every other character that is a question mark."""


def use_ascii_where_needed(stream: object) -> None:
    """Have a stream of text write what its encoding lacks as ASCII instead of raising an error.

    A terminal in a locale of ASCII is sent nothing else, though Python's UTF-8 mode would encode everything.
    """
    if isinstance(stream, io.TextIOWrapper):
        codecs.register_error("sabir.ascii", _replaced)
        is_ascii = stream.isatty() and codecs.lookup(locale.getencoding()).name == "ascii"
        stream.reconfigure(encoding="ascii" if is_ascii else None, errors="sabir.ascii")


def _replaced(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lacking = error.object[error.start : error.end].translate(ASCII)
    return "".join(sign if sign.isascii() else "?" for sign in lacking), error.end
