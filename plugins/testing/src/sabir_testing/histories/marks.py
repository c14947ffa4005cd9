"""Texts that identify a history's messages in a request: the kit's marks, and bound state.

history ──mark──▶ "mark0.", "mark1.", … ──render──▶ places(items)  where each stands in the messages
                                                    unheard(…)     marks that are neither in the body nor in the losses
state {"signature": "c2lnbmF0dXJl…"}, block {"id": "ws_1f3a…"} ─▶ bound_texts ─▶ each stands in a body, or does not
"""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import count
from typing import NamedTuple

from sabir import Loss, Message
from sabir.authoring import JSONValue, load_as

from sabir_testing.reading import strings, walk

Place = tuple[int, ...]
"""Positions in arrays, from the outermost inwards; what stands in one object has no order."""

_MARK = re.compile(r"mark\d+\.")
_TEXTS = ("text", "refusal")


class Marked(NamedTuple):
    """A message with a mark in every place of it that holds text, and those marks."""

    message: Message
    marks: tuple[str, ...]
    spoken: tuple[str, ...] = ()
    """The marks outside of thoughts: if the message is sent, they are in it."""


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
    for leaf in walk(value):
        if isinstance(leaf.value, str) and not leaf.is_name:
            place = tuple(step for step in leaf.place if isinstance(step, int))
            for each in _MARK.findall(leaf.value):
                found.setdefault(each, []).append(place)
    return found


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


SHORTEST = 8
"""Characters below which a text may stand in a body by chance."""
_WORD = re.compile(r"[a-z_. -]+|[A-Z_]+")
"""A word of a wire, such as `completed`: it binds nothing."""


def bound_texts(messages: Iterable[Message]) -> set[str]:
    """The texts that are in the state and the blocks of messages and nowhere else in them."""
    listed = list(messages)
    said = "\n".join(text for message in listed for text in strings(_said(message)))
    found = {text for message in listed for value in _states(message) for text in strings(value)}
    return {text for text in found if len(text) >= SHORTEST and not _WORD.fullmatch(text) and text not in said}


def bound_in(body: bytes, texts: Iterable[str]) -> list[str]:
    """Those of some texts that stand in a body, in the order of the alphabet."""
    held = "\n".join(strings(json.loads(body)))
    return sorted(text for text in texts if text in held)


def untold(messages: Iterable[Message], body: bytes, losses: Iterable[Loss]) -> list[str]:
    """State beside a text, a medium, a refusal or a call with a string that is neither in a body nor in a loss."""
    held, told = "\n".join(strings(json.loads(body))), {(loss.message_id, loss.path) for loss in losses}
    return [
        f"the state beside {path} of a message by {message.policy!r}"
        for message in messages
        for path, state in _beside(message)
        if any(text not in held for text in strings(state))
        and told.isdisjoint((message.id, each) for each in ("", path, f"{path}.state"))
    ]


def _beside(message: Message) -> Iterator[tuple[str, JSONValue]]:
    """The states of a message's other content, by their places."""
    if message.call is not None:
        yield "payload", message.call.state
    for index, part in enumerate(message.parts):
        if part.kind in ("text", "media", "refusal"):
            yield f"parts[{index}]", part.state


def _states(message: Message) -> Iterator[JSONValue]:
    if message.call is not None:
        yield message.call.state
    for part in message.parts:
        match part.kind:
            case "opaque":
                yield part.block
            case "unknown":
                continue
            case _:
                yield part.state


def _said(message: Message) -> JSONValue:
    """The content of a message for any provider."""
    data = message.model_dump(mode="json")
    payload = data["payload"]
    payload.pop("state", None)
    payload["parts"] = [
        {name: value for name, value in part.items() if name != "state"}
        for part in payload.get("parts", ())
        if part["kind"] != "opaque"
    ]
    return [payload]


def without_bound(message: Message) -> Message:
    """The message without bound state: no state, no block, no thought."""
    data = message.model_dump(mode="json")
    data["payload"].pop("state", None)
    if message.kind == "parts":
        kept = [part for part in data["payload"]["parts"] if part["kind"] not in ("opaque", "reasoning")]
        for part in kept:
            part.pop("state", None)
        data["payload"]["parts"] = kept or [{"kind": "text", "text": ""}]
    return load_as(Message.model_validate, data)
