"""Split texts into requests by an API's limits. The order of the texts does not change.

texts ──"texts": 3, "bytes": 10──▶ [0:3] [3:4] [4:6] …       a text over "bytes" is in a request of its own
"""

from collections.abc import Iterator, Mapping, Sequence

TEXTS, BYTES = "texts", "bytes"
"""Names in `Operation.limits`: the most texts in a request, and the most bytes of all its texts in UTF-8."""


def split_texts(texts: Sequence[str], limits: Mapping[str, int]) -> Iterator[slice]:
    """Yield a slice of the texts for each request. Every text is in exactly one slice, and no slice is empty."""
    most_texts, most_bytes = limits.get(TEXTS, len(texts)), limits.get(BYTES)
    start, size = 0, 0
    for index, text in enumerate(texts):
        length = 0 if most_bytes is None else count_bytes(text)
        is_full = index - start >= most_texts or (most_bytes is not None and size + length > most_bytes)
        if is_full and index > start:
            yield slice(start, index)
            start, size = index, 0
        size += length
    if start < len(texts):
        yield slice(start, len(texts))


def count_bytes(text: str) -> int:
    """Return the length of a text in UTF-8."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
