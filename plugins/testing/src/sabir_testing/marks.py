"""A mark in every place that holds text, by which it is known again wherever it went.

history ──mark──▶ "mark0.", "mark1.", … ──render──▶ places(items)  where each stands in the messages
                                                    unheard(…)     what is neither in the body nor in the losses
"""

import json
import re
from collections.abc import Iterator, Sequence
from itertools import count
from typing import Any, NamedTuple

from sabir.base.losses import Loss
from sabir.base.values import JSONValue
from sabir.vocabulary.messages import Message

Place = tuple[int, ...]
"""Positions in arrays, from the outermost inwards; what stands in one object has no order."""

_MARK = re.compile(r"mark\d+\.")
_TEXTS = ("text", "refusal")


class Marked(NamedTuple):
    """A message with a mark in every place of it that holds text, and those marks."""

    message: Message
    marks: tuple[str, ...]
    spoken: tuple[str, ...] = ()
    """Those that are not thoughts: where the message is sent at all, they are in it."""


def mark(history: Sequence[Message]) -> list[Marked]:
    """The history with marks for its texts, arguments, results and errors; all else stays as it is.

    Texts without a character stay without one, as do thoughts that their maker hides.
    """
    numbers = count()
    return [_mark(message, numbers) for message in history]


def _mark(message: Message, numbers: Iterator[int]) -> Marked:
    data = message.model_dump(mode="json")
    payload, found, thoughts = data["payload"], list[str](), set[str]()

    def fresh() -> str:
        found.append(f"mark{next(numbers)}.")
        return found[-1]

    for part in payload.get("parts", ()):
        if part["kind"] in _TEXTS:
            part["text"] = fresh()
        elif part["kind"] == "reasoning" and part["text"]:
            part["text"] = fresh()
            thoughts.add(part["text"])
    if payload["kind"] == "option_call":
        payload |= {"arguments": {"a": fresh()}, "raw_arguments": None, "invalid_arguments": False}
    elif payload["kind"] == "option_result" and payload["is_error"]:
        payload["error_message"] = fresh()
    elif payload["kind"] == "option_result" and not payload["parts"]:
        payload["result"] = fresh()
    return Marked(Message.model_validate(data), tuple(found), tuple(each for each in found if each not in thoughts))


def messages(marked: Sequence[Marked]) -> list[Message]:
    """The messages alone."""
    return [each.message for each in marked]


def places(value: JSONValue) -> dict[str, list[Place]]:
    """Where each mark stands in a value; a mark may stand within a longer string."""
    found: dict[str, list[Place]] = {}
    _walk(value, (), found)
    return found


def _walk(value: Any, place: Place, found: dict[str, list[Place]]) -> None:
    if isinstance(value, str):
        for each in _MARK.findall(value):
            found.setdefault(each, []).append(place)
    elif isinstance(value, dict):
        for member in value.values():
            _walk(member, place, found)
    elif isinstance(value, list):
        for at, member in enumerate(value):
            _walk(member, (*place, at), found)


def strings(value: JSONValue) -> Iterator[str]:
    """Every string in a value, the names of fields aside."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for member in value.values():
            yield from strings(member)
    elif isinstance(value, list | tuple):
        for member in value:
            yield from strings(member)


class Unheard(NamedTuple):
    """A mark that is nowhere, with the number (from 1) and the policy of its message."""

    text: str
    number: int
    policy: str

    def __str__(self) -> str:
        return f"the text {self.text!r} of message {self.number} ({self.policy})"


def unheard(marked: Sequence[Marked], body: bytes, losses: Sequence[Loss]) -> list[Unheard]:
    """The marks that are not in a body and whose message no loss names (law 2)."""
    held = "\n".join(strings(json.loads(body))) if body else ""
    told = {loss.message_id for loss in losses}
    return [
        Unheard(text, number, each.message.policy)
        for number, each in enumerate(marked, start=1)
        if each.message.id not in told
        for text in each.marks
        if text not in held
    ]
