"""The provider `echo`, and the service behind it: a function of this process, so that nothing leaves it.

A line `call <option> <arguments>` chooses an offered option, `fail <status>` fails, any other text comes back as it
was.
"""

import json
import re

from sabir import ModelInfo
from sabir.authoring import (
    Access,
    Credential,
    Dialect,
    InProcessConnection,
    InProcessResponse,
    JSONValue,
    Provider,
    WireRequest,
)

from sabir_echo.dialect import PLAIN

CALL = re.compile(r"^call (?P<name>\S+) (?P<arguments>.*)$", re.MULTILINE)
"""A line that chooses an option."""


class Echo:
    """The provider; `echo` is the instance that the entry point names."""

    name = "echo"
    api_version = 1
    dialects = ("plain",)
    credentials: tuple[Credential, ...] = ()
    request_ids = ()

    def dialect(self, short_name: str) -> Dialect:
        """The only one."""
        return PLAIN

    def endpoint(self, access: Access) -> str:
        """The endpoint's name; a real provider returns its URL."""
        return "echo:"

    def connect(self, access: Access) -> InProcessConnection:
        """A connection to this process; a real provider makes its SDK client here, at the first send."""
        return InProcessConnection(serve)

    def quirks(self, access: Access) -> frozenset[str]:
        """None."""
        return frozenset()

    def models(self) -> tuple[ModelInfo, ...]:
        """One row for any name: no model here reads media."""
        return (ModelInfo(prefix="", family="echo", modalities=()),)


def serve(request: WireRequest) -> InProcessResponse:
    """The answer to the last message."""
    asked = json.loads(request.body)
    said = next(item["text"] for item in reversed(asked["messages"]) if "text" in item)
    if failure := re.fullmatch(r"fail ([45]\d\d)", said):
        return InProcessResponse(int(failure[1]), [json.dumps({"error": f"you asked for {failure[1]}"}).encode()])
    pieces = answer(asked, said)
    events = [f"data: {json.dumps(piece)}\n\n".encode() for piece in pieces]
    return InProcessResponse(200, events if request.streaming else [json.dumps(pieces).encode()])


def answer(asked: JSONValue, said: str) -> list[JSONValue]:
    """The pieces of an answer: a call if the text asks for an offered option, else as many words as are allowed."""
    words = re.split(r"(?<=\s)(?=\S)", said)
    pieces: list[JSONValue] = [{"text": word} for word in words[: asked["settings"].get("max_output_tokens")]]
    finish = "done" if len(pieces) == len(words) else "limit"
    offered = {option["name"] for option in asked["options"]}
    calls = [call.groupdict() for call in CALL.finditer(said)]
    if calls and {call["name"] for call in calls} <= offered:
        first = len(asked["messages"])
        pieces = [{"call": {"id": f"call-{first + at}", **call}} for at, call in enumerate(calls)]
        finish = "call"
    heard = sum(len(item.get("text", "").split()) for item in asked["messages"])
    return [*pieces, {"finish": finish, "usage": {"input_tokens": heard, "output_tokens": len(pieces)}}]


echo: Provider = Echo()
