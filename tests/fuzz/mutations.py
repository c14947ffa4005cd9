"""A body, changed: types swapped, names removed, values nested, repeated and moved, JSON cut, bytes flipped.

A body is its documents (one, or one an event) with what stands between them. Some changes leave it JSON, and some do
not. Those that do leave the text alone that `mark` put into it, and all that it stands in.
"""

import json
import random
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from typing import Any

from sabir_testing.reading import Document, JSONPath, documents, replace
from sabir_testing.reading import texts_with_paths as texts

MARK = "mark-7f3a-of-the-fuzz"
VALUES: Sequence[Any] = (
    *(None, True, False, 0, -1, 1.5, 10**400, 2**63, float("inf"), float("nan"), "", "x", "null", "{}", " "),
    *("\ud83d", "\0", "é" * 50, [], {}, [[]], [None], {"": None}, {"type": "text"}, {"text": {}}, [{}], [0, "x", {}]),
)
"""What may stand where something else belongs."""
KINDS = ("type", "object", "event")
"""Names of fields that say what the others are: a stream's reader passes over what it does not know."""


def decoded(body: bytes) -> list[Document]:
    return documents(body.decode("utf-8", "replace"))


def marked(lots: random.Random, body: bytes) -> tuple[bytes, int, JSONPath] | None:
    """The body with the mark at the end of one of its texts, and where; None for a body without any."""
    text = body.decode("utf-8", "replace")
    found = documents(text)
    places = [
        (number, place)
        for number, document in enumerate(found)
        for place, held in texts(document.value)
        if place and _at(document.value, place) == held
    ]
    if not places:
        return None
    number, place = lots.choice(places)
    value = deepcopy(found[number].value)
    _put(value, place, f"{_at(value, place)}{MARK}")
    return replace(text, [(found[number], value)]).encode("utf-8", "surrogatepass"), number, place


def changed(
    lots: random.Random, body: bytes, kept: tuple[int, JSONPath] | None = None, *, names_kinds: bool = True
) -> bytes:
    """The body with one to four of its values changed; what leads to `kept` stays, and kinds unless `names_kinds`."""
    text = body.decode("utf-8", "replace")
    found = documents(text)
    values = [deepcopy(document.value) for document in found]
    touched = set()
    for _ in range(lots.randint(1, 4)):
        if not values:
            break
        number = lots.randrange(len(values))
        way = kept[1] if kept is not None and kept[0] == number else None
        places = [place for place in _places(values[number], ()) if place and place != (way or ())[: len(place)]]
        places = [place for place in places if names_kinds or place[-1] not in KINDS]
        if places:
            lots.choice(CHANGES)(lots, values[number], lots.choice(places))
            touched.add(number)
    made = [(found[number], values[number]) for number in sorted(touched)]
    for document, value in sorted(made, key=lambda each: each[0].start, reverse=True):
        text = text[: document.start] + json.dumps(value) + text[document.end :]
    return text.encode("utf-8", "surrogatepass")


def broken(lots: random.Random, body: bytes) -> bytes:
    """The body cut, or with bytes flipped, removed, repeated."""
    held = bytearray(body)
    for _ in range(lots.randint(1, 3)):
        at = lots.randrange(len(held)) if held else 0
        match lots.randrange(5):
            case 0:
                del held[at:]
            case 1 if held:
                held[at] ^= 1 << lots.randrange(8)
            case 2:
                del held[at : at + lots.randint(1, 40)]
            case 3:
                held[at:at] = held[at : at + lots.randint(1, 40)]
            case _:
                held[at:at] = lots.randbytes(lots.randint(1, 4))
    return bytes(held)


def _replace(lots: random.Random, root: Any, place: JSONPath) -> None:
    _put(root, place, deepcopy(lots.choice(VALUES)))


def _remove(lots: random.Random, root: Any, place: JSONPath) -> None:
    del _at(root, place[:-1])[place[-1]]


def _nest(lots: random.Random, root: Any, place: JSONPath) -> None:
    value = _at(root, place)
    for _ in range(lots.choice((1, 1, 2, 60))):
        value = [value] if lots.random() < 0.5 else {lots.choice(("text", "content", "x")): value}
    _put(root, place, value)


def _repeat(lots: random.Random, root: Any, place: JSONPath) -> None:
    holder = _at(root, place[:-1])
    if isinstance(holder, list):
        holder.insert(lots.randint(0, len(holder)), deepcopy(_at(root, place)))
    else:
        holder[lots.choice(("x", "extra"))] = deepcopy(_at(root, place))


def _borrow(lots: random.Random, root: Any, place: JSONPath) -> None:
    """A value from elsewhere in the same document."""
    _put(root, place, deepcopy(_at(root, lots.choice(list(_places(root, ()))))))


CHANGES: list[Callable[[random.Random, Any, JSONPath], None]] = [_replace, _replace, _remove, _nest, _repeat, _borrow]


def _places(value: Any, place: JSONPath) -> Iterator[JSONPath]:
    yield place
    steps: Any = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, member in steps:
        yield from _places(member, (*place, step))


def _at(value: Any, place: JSONPath) -> Any:
    for step in place:
        value = value[step]
    return value


def _put(root: Any, place: JSONPath, value: Any) -> None:
    _at(root, place[:-1])[place[-1]] = value
