"""Print ASCII replacements for characters that the output's encoding cannot represent, so that printing never fails."""

import codecs
import io
import locale

ASCII = str.maketrans({
    "·": "-", "…": "...", "▶": ">", "▸": ">", "→": "->", "─": "-", "━": "-", "│": "|", "•": "*", "×": "x",
    "–": "-", "—": "-", "‘": "'", "’": "'", "“": '"', "”": '"', "\N{NO-BREAK SPACE}": " ",
})  # fmt: skip
"""Character that sabir's texts use → its ASCII replacement. Any other unsupported character becomes a question mark."""


def use_ascii_where_needed(stream: object) -> None:
    """Change a text stream so that it replaces unsupported characters by ASCII instead of raising an error.

    A terminal in an ASCII locale gets ASCII only, even in Python's UTF-8 mode, which would encode everything. Streams
    that are not an `io.TextIOWrapper` are not changed.
    """
    if isinstance(stream, io.TextIOWrapper):
        codecs.register_error("sabir.ascii", _replace_unencodable)
        is_ascii = stream.isatty() and codecs.lookup(locale.getencoding()).name == "ascii"
        stream.reconfigure(encoding="ascii" if is_ascii else None, errors="sabir.ascii")


def _replace_unencodable(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    replaced = error.object[error.start : error.end].translate(ASCII)
    return "".join(character if character.isascii() else "?" for character in replaced), error.end
