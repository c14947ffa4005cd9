"""What no service would send, and what one might some day: for reading anything without surprise (law 10).

answers_of_nobody   cut JSON, texts, numbers, bytes        events_of_nobody   the same as a stream's events
mutated             a body with some values changed        odd_headers        headers that say nothing of use
"""

import json
from collections.abc import Iterator
from typing import Any

from hypothesis import strategies as st
from sabir.base.values import JSONValue

from sabir_testing.documents import Place
from sabir_testing.histories import Strategy, json_values, texts

INVENTED = ("sol", "luna", "stella")
"""Names of fields that no wire has."""
STATUSES = (400, 401, 403, 404, 408, 409, 413, 418, 422, 429, 500, 502, 503, 504, 529, 599)

json_objects: Strategy[dict[str, JSONValue]] = st.dictionaries(st.sampled_from(INVENTED), json_values, max_size=3)
_scalars = st.booleans() | st.integers() | texts
_cut = st.dictionaries(st.sampled_from(INVENTED), json_values, min_size=1, max_size=3).map(
    lambda value: json.dumps(value).encode()[:-1]
)
answers_of_nobody: Strategy[bytes] = st.one_of(
    _cut,
    st.binary(min_size=1, max_size=20),
    texts.filter(str.strip).map(str.encode),
    _scalars.map(lambda value: json.dumps(value).encode()),
)


def _event(data: bytes) -> bytes:
    return b"".join(b"data: %s\n" % line for line in data.splitlines()) + b"\n"


events_of_nobody: Strategy[bytes] = st.lists(answers_of_nobody.map(_event), min_size=1, max_size=4).map(b"".join)
odd_headers: Strategy[dict[str, str]] = st.dictionaries(
    st.sampled_from(["content-type", "retry-after", "x-request-id", "date"]), texts, max_size=3
)


@st.composite
def mutated(draw: Any, value: JSONValue, *, from_depth: int = 0) -> JSONValue:
    """The value with up to three values in it replaced by others, none of them nearer to the root than that."""
    for _ in range(draw(st.integers(0, 3))):
        places = [place for place in _places(value, ()) if len(place) >= from_depth]
        if places:
            value = _with(value, draw(st.sampled_from(places)), draw(json_values))
    return value


def _places(value: Any, place: Place) -> Iterator[Place]:
    yield place
    steps: Any = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, member in steps:
        yield from _places(member, (*place, step))


def _with(value: Any, place: Place, other: JSONValue) -> JSONValue:
    if not place:
        return other
    first, *rest = place
    if isinstance(value, dict):
        return {**value, first: _with(value[first], tuple(rest), other)}
    return [_with(member, tuple(rest), other) if at == first else member for at, member in enumerate(value)]
