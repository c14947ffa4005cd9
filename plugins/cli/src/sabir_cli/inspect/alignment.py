"""Find out which items of a request's body belong to which messages, for every dialect alike.

    messages     system │ user │ call call result result │ assistant │ user        spans: no call is open between them
    body         item 0 │   1  │   2         3      4    │     5     │   6
                        ▲ rendering the messages up to here gives 2 items, which the whole rendering begins with

A closed beginning of a conversation is rendered in the same way, whatever follows (law 4). So the beginnings say where
each span ends in the body, and no dialect needs to be known.
"""

from collections.abc import Collection, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import sabir
from sabir.authoring import JSONValue, decode_json, side_of


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


def item_ends(
    adapter: sabir.ModelAdapter,
    messages: Sequence[sabir.Message],
    spans: Sequence[MessageSpan],
    whole: RequestItems,
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
                least = max(least, _common_items(adapter.render(messages[: span.stop], **call), whole))
        ends.append(least)
    return ends


def _common_items(rendering: sabir.Rendering, whole: RequestItems) -> int:
    """Return how many items the requests have in common at the beginning, cache markers apart.

    If more than the last item differs, the items before it were rendered for another end of the conversation. Then
    their number counts.
    """
    items, markers = read_items(rendering).items, rendering.cache_markers
    pairs = zip(items, whole.items, strict=False)
    same = next((at for at, (one, other) in enumerate(pairs) if not _is_same(one, other, markers)), len(items))
    return min(same if len(items) - same <= 1 else len(items), len(whole.items))


def _is_same(one: JSONValue, other: JSONValue, markers: Collection[str]) -> bool:
    return bool(one == other) or without_fields(one, markers) == without_fields(other, markers)


def without_fields(tree: JSONValue, names: Collection[str]) -> JSONValue:
    """Return a JSON value without the fields of these names, at any depth."""
    if isinstance(tree, dict):
        return {name: without_fields(inner, names) for name, inner in tree.items() if name not in names}
    return [without_fields(inner, names) for inner in tree] if isinstance(tree, list) else tree
