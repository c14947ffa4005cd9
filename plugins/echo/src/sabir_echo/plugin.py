"""The provider `echo` and its service, which is a function in this process, so that nothing is sent over a network.

A line `call <option> <arguments>` calls an offered option, the text `fail <status>` returns that HTTP status, and any
other text is returned unchanged.
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
"""A line that calls an option."""


class Echo:
    """The provider `echo`. The entry point names the instance `echo` below."""

    name = "echo"
    api_version = 1
    dialects = ("plain",)
    credentials: tuple[Credential, ...] = ()
    request_ids = ()

    def dialect(self, short_name: str) -> Dialect:
        """Return the provider's only dialect."""
        return PLAIN

    def endpoint(self, access: Access) -> str:
        """Return the endpoint's name; a real provider returns its URL."""
        return "echo:"

    def connect(self, access: Access) -> InProcessConnection:
        """Return a connection to this process; a real provider creates its SDK client at the first request."""
        return InProcessConnection(serve)

    def quirks(self, access: Access) -> frozenset[str]:
        """Return no quirks."""
        return frozenset()

    def models(self) -> tuple[ModelInfo, ...]:
        """Return one row for all model names; no model of this provider reads media."""
        return (ModelInfo(prefix="", family="echo", modalities=()),)


def serve(request: WireRequest) -> InProcessResponse:
    """Return the response to a request: the text of its last message, a call, or a failure."""
    asked = json.loads(request.body)
    said = next(item["text"] for item in reversed(asked["messages"]) if "text" in item)
    if failure := re.fullmatch(r"fail ([45]\d\d)", said):
        return InProcessResponse(int(failure[1]), [json.dumps({"error": f"you asked for {failure[1]}"}).encode()])
    pieces = answer(asked, said)
    events = [f"data: {json.dumps(piece)}\n\n".encode() for piece in pieces]
    return InProcessResponse(200, events if request.streaming else [json.dumps(pieces).encode()])


def answer(asked: JSONValue, said: str) -> list[JSONValue]:
    """Return the pieces of an answer: a call if the text calls an offered option, else at most the allowed words."""
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
