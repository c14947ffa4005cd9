"""What binds messages to their maker: texts of its state and of its own blocks, by which a leak into a request is seen.

state {"signature": "c2lnbmF0dXJl…"}, block {"id": "ws_1f3a…"} ─▶ bound_texts ─▶ each stands in a body, or does not
"""

import json
import re
from collections.abc import Iterable, Iterator

from sabir.base.losses import Loss
from sabir.base.models import load_as
from sabir.base.values import JSONValue
from sabir.vocabulary.messages import Message

from sabir_testing.marks import strings

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
    """State beside a text, a medium, a refusal or a call of which a string is missing in a body, and no loss tells."""
    held, told = "\n".join(strings(json.loads(body))), {(loss.message_id, loss.path) for loss in losses}
    return [
        f"the state beside {path} of a message by {message.policy!r}"
        for message in messages
        for path, state in _beside(message)
        if any(text not in held for text in strings(state))
        and told.isdisjoint((message.id, each) for each in ("", path, f"{path}.state"))
    ]


def _beside(message: Message) -> Iterator[tuple[str, JSONValue]]:
    """The states of a message beside what goes along, by their places."""
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
    """What a message says to everybody."""
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
    """The message with nothing that binds it: no state, no block, no thought."""
    data = message.model_dump(mode="json")
    data["payload"].pop("state", None)
    if message.kind == "parts":
        kept = [part for part in data["payload"]["parts"] if part["kind"] not in ("opaque", "reasoning")]
        for part in kept:
            part.pop("state", None)
        data["payload"]["parts"] = kept or [{"kind": "text", "text": ""}]
    return load_as(Message.model_validate, data)
