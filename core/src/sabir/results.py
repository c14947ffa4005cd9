"""What an option returned, as an option result holds it.

    JSON value                     ──▶ result
    text and media parts, messages ──▶ parts      (strings may stand among them)

Anything else is refused.
"""

from typing import Any

from sabir.errors import NotJSON
from sabir.messages import Message
from sabir.parts import MediaPart, Part, TextPart
from sabir.values import encode_json


def read_result(returned: object) -> dict[str, Any]:
    """The field of an option result that a returned value fills; NotJSON, in one line, for what no result can hold."""
    items = returned if isinstance(returned, list | tuple) else (returned,)
    if any(isinstance(item, TextPart | MediaPart | Message) for item in items):
        return {"parts": tuple(part for item in items for part in _parts_of(item))}
    return {"result": encode_json(returned, sort_keys=True)}


def _parts_of(item: object) -> tuple[Part, ...]:
    if isinstance(item, str):
        return (TextPart(text=item),)
    if isinstance(item, TextPart | MediaPart):
        return (item,)
    if isinstance(item, Message) and item.kind == "parts":
        foreign = [part.kind for part in item.parts if not isinstance(part, TextPart | MediaPart)]
        if not foreign:
            return item.parts
        raise NotJSON(f"a message with a part of kind {foreign[0]!r} is no result; return its text and media")
    raise NotJSON(f"{name_kind(item)} stands among parts; a result is one JSON value, or text and media parts")


def name_kind(value: object) -> str:
    """What something is, as an error names it: a message by its kind, anything else by its type."""
    return (
        f"a message of kind {value.kind!r}" if isinstance(value, Message) else f"a value of type {type(value).__name__}"
    )
