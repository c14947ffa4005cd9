"""Find out which items of a request's body belong to which messages, for every dialect alike.

    messages     system │ user │ call call result result │ assistant │ user        spans: no call is open between them
    body         item 0 │   1  │   2         3      4    │     5     │   6
                        ▲ rendering the messages up to here gives 2 items, which the whole rendering begins with

A closed beginning of a conversation is rendered in the same way, whatever follows (law 4). So the beginnings say where
each span ends in the body, and no dialect needs to be known.
"""

from bisect import bisect_right
from collections.abc import Collection, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import sabir
from pydantic_core import to_json
from sabir.authoring import JSONValue, decode_json, side_of

LONGEST_REST = 4_000
"""The maximum number of bytes at the end of a beginning that may differ from the whole request, such as brackets and
an unfinished item, for the bytes to be compared instead of the items.
"""


class MessageSpan(NamedTuple):
    """Neighbouring messages that are compared as one row: `messages[start:stop]`."""

    start: int
    stop: int


class RequestItems(NamedTuple):
    """The fields of a request's body before and after the messages, and the items of the messages."""

    head: dict[str, Any]  # any JSON
    field: str
    items: list[Any]  # any JSON


def split_spans(messages: Sequence[sabir.Message], speaks_as: str = "llm") -> list[MessageSpan]:
    """Return the spans of a conversation. A span ends where the side changes, but never between calls and results."""
    spans: list[MessageSpan] = []
    start = open_calls = 0
    for position, message in enumerate(messages):
        if position > start and open_calls <= 0 and _begins_span(messages[position - 1], message, speaks_as):
            spans.append(MessageSpan(start, position))
            start, open_calls = position, 0
        open_calls += (message.kind == "option_call") - (message.kind == "option_result")
    return [*spans, MessageSpan(start, len(messages))] if messages else []


def _begins_span(before: sabir.Message, message: sabir.Message, speaks_as: str) -> bool:
    sides = side_of(before, speaks_as), side_of(message, speaks_as)
    return sides[0] != sides[1] or sides[1] in ("user", "system")


def read_items(rendering: sabir.Rendering) -> RequestItems:
    """Return the parts of a request's body."""
    body = decode_json(rendering.body_bytes)
    field = rendering.prompt_fields[-1]
    items = body.get(field) if isinstance(body, dict) else None
    head = {name: content for name, content in body.items() if name != field} if isinstance(body, dict) else {}
    return RequestItems(head, field, items if isinstance(items, list) else [])


class WholeRequest:
    """The rendering of a whole conversation, with the place of each item in its bytes."""

    def __init__(self, rendering: sabir.Rendering, items: list[Any]) -> None:  # any JSON
        self.items = items
        self._bytes = rendering.body_bytes
        self._ends = _find_ends(rendering, items)

    def common_items(self, rendering: sabir.Rendering) -> int:
        """Return how many items a rendering of the beginning has in common with the whole, cache markers apart.

        If more than its last item differs, its items were rendered for another end of the conversation. Then their
        number counts.
        """
        length = _common_length(self._bytes, rendering.body_bytes)
        if self._ends and len(rendering.body_bytes) - length <= LONGEST_REST:
            return bisect_right(self._ends, length)
        items, markers = read_items(rendering).items, rendering.cache_markers
        pairs = zip(items, self.items, strict=False)
        same = next((at for at, (one, other) in enumerate(pairs) if not _is_same(one, other, markers)), len(items))
        return min(same if len(items) - same <= 1 else len(items), len(self.items))


def _find_ends(rendering: sabir.Rendering, items: list[Any]) -> list[int]:  # any JSON
    """Return where each item ends in the body's bytes. [] if the body has cache markers, which move, or if the bytes
    are not the items one after the other.
    """
    body = rendering.body_bytes
    if any(f'"{name}"'.encode() in body for name in rendering.cache_markers):
        return []
    opening = f'"{rendering.prompt_fields[-1]}":['.encode()
    position = body.find(opening) + len(opening)
    ends: list[int] = []
    for each in items:
        encoded = to_json(each)
        if not body.startswith(encoded, position):
            return []
        ends.append(position + len(encoded))
        position = ends[-1] + 1
    return ends


def _common_length(one: bytes, other: bytes) -> int:
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def item_ends(
    adapter: sabir.ModelAdapter,
    messages: Sequence[sabir.Message],
    spans: Sequence[MessageSpan],
    whole: WholeRequest,
    **call: Any,  # the options and settings of the rendering
) -> list[int]:
    """Return for each span how many of the items of the whole request belong to it and to the messages before it."""
    ends: list[int] = []
    least = 0
    for span in spans:
        if span.stop == len(messages):
            least = len(whole.items)
        else:
            with suppress(sabir.SabirError):  # nothing of the beginning can be sent
                least = max(least, whole.common_items(adapter.render(messages[: span.stop], **call)))
        ends.append(least)
    return ends


def _is_same(one: JSONValue, other: JSONValue, markers: Collection[str]) -> bool:
    return bool(one == other) or without_fields(one, markers) == without_fields(other, markers)


def without_fields(tree: JSONValue, names: Collection[str]) -> JSONValue:
    """Return a JSON value without the fields of these names, at any depth."""
    if isinstance(tree, dict):
        return {name: without_fields(inner, names) for name, inner in tree.items() if name not in names}
    return [without_fields(inner, names) for inner in tree] if isinstance(tree, list) else tree
