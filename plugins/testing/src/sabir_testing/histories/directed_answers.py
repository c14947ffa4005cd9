"""Answers, streams, failures and bodies that are tried before the random ones, so that no fault depends on the seed.

INVALID_ANSWERS    bodies that no service sends: JSON of each type, incomplete JSON, blank and binary data
ODD_HEADERS        headers without useful values
changed_bodies     a body with one of its values replaced by a value of each JSON type, one at a time
"""

from collections.abc import Iterator, Mapping
from typing import Any

from sabir.authoring import JSONValue

from sabir_testing.reading import paths_in, replace_at

INVALID_ANSWERS = (
    b'{"sol": 1', b"{", b"[", b'"', b'"OK"', b'""', b"true", b"false", b"0", b"1", b"-1.5", b"1e999", b"NaN", b" ",
    b"OK", b"\x00", b"\xff\xfe{\x00", "\u2028".encode(),
)  # fmt: skip
ODD_HEADERS: tuple[Mapping[str, str], ...] = (
    {},
    *({name: text}
      for name in ("retry-after", "date", "content-type", "x-request-id")
      for text in ("", "soon", "-1", "1e999", "nan", "\u0664", "Wed, 99 Mar 2026 10:00:00 GMT", "é", '"')),
    {"retry-after": "Wed, 11 Mar 2026 10:00:30 GMT", "date": "soon"},
)  # fmt: skip
OTHER_VALUES: tuple[JSONValue, ...] = (None, True, 0, -1, 1.5, 1e300, "", " ", "x", [], {}, [None], {"a": [1]})
"""A JSON value of each type, and extreme ones."""
MOST_PATHS = 60
"""The maximum number of changed values of one body."""


def changed_bodies(
    body: JSONValue, *, from_depth: int = 0, values: tuple[JSONValue, ...] = OTHER_VALUES
) -> Iterator[Any]:
    """Yield the body, and copies with one value, at least `from_depth` levels deep, replaced by each of `values`."""
    yield body
    for path in [path for path in paths_in(body) if len(path) >= from_depth][:MOST_PATHS]:
        yield from (replace_at(body, path, other) for other in values)
