"""The provider `echo` and its service, which is a function in this process, so that nothing is sent over a network.

If the last text contains lines `call <option> <arguments>` with offered options only, the reply is these calls. The
text `fail <status>` returns that HTTP status, from 400 to 599. Any other text is returned unchanged, but at most
`max_output_tokens` words.
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

from sabir_echo import batches, embeddings
from sabir_echo.dialect import PLAIN

CALL = re.compile(r"^call (?P<name>\S+) (?P<arguments>.*)$", re.MULTILINE)
"""Matches a line that calls an option."""


class Echo:
    """The provider `echo`. Its only instance, `echo` in this module, is the package's entry point."""

    name = "echo"
    api_version = 2
    dialects = ("plain",)
    credentials: tuple[Credential, ...] = ()
    request_ids = ()

    def dialect(self, short_name: str) -> Dialect:
        """Return the provider's only dialect, `echo.plain`."""
        return PLAIN

    def operations(self) -> batches.Operations:
        """Return the operations of batches and of embeddings."""
        return {**batches.BATCHES, "embeddings": embeddings.EMBEDDINGS}

    def endpoint(self, access: Access) -> str:
        """Return the endpoint's name "echo:". A real provider returns its URL."""
        return "echo:"

    def connect(self, access: Access) -> InProcessConnection:
        """Return a connection to `serve` in this process. A real provider returns one over clients of its SDK."""
        return InProcessConnection(serve)

    def quirks(self, access: Access) -> frozenset[str]:
        """Return an empty set, because all endpoints of this provider have the same API."""
        return frozenset()

    def models(self) -> tuple[ModelInfo, ...]:
        """Return one row for all model names. No model of this provider reads media."""
        return (ModelInfo(prefix="", family="echo", modalities=()),)


def serve(request: WireRequest) -> InProcessResponse:
    """Return the response to a request: words of the last text in its messages, option calls, or a failure.

    `batches.serve` answers requests for batches, and `embeddings.serve` requests for embeddings.
    """
    if request.path.startswith(batches.PATH):
        return batches.serve(request, serve)
    if request.path == embeddings.PATH:
        return embeddings.serve(request.body)
    body = json.loads(request.body)
    text = next(item["text"] for item in reversed(body["messages"]) if "text" in item)
    if failure := re.fullmatch(r"fail ([45]\d\d)", text):
        return InProcessResponse(int(failure[1]), [json.dumps({"error": f"you asked for {failure[1]}"}).encode()])
    pieces = answer(body, text)
    events = [f"data: {json.dumps(piece)}\n\n".encode() for piece in pieces]
    return InProcessResponse(200, events if request.streaming else [json.dumps(pieces).encode()])


def answer(body: JSONValue, text: str) -> list[JSONValue]:
    """Return the pieces of an answer to a request's body: the calls in `text` if all of them name offered options.

    Without calls, or if one names another option, return the words of `text`, at most `max_output_tokens` words. The
    last piece is the finish reason and the usage, in which a word or a call counts as a token.
    """
    words = re.split(r"(?<=\s)(?=\S)", text)
    pieces: list[JSONValue] = [{"text": word} for word in words[: body["settings"].get("max_output_tokens")]]
    finish = "done" if len(pieces) == len(words) else "limit"
    offered = {option["name"] for option in body["options"]}
    calls = [call.groupdict() for call in CALL.finditer(text)]
    if calls and {call["name"] for call in calls} <= offered:
        first = len(body["messages"])
        pieces = [{"call": {"id": f"call-{first + at}", **call}} for at, call in enumerate(calls)]
        finish = "call"
    input_words = sum(len(item.get("text", "").split()) for item in body["messages"])
    return [*pieces, {"finish": finish, "usage": {"input_tokens": input_words, "output_tokens": len(pieces)}}]


echo: Provider = Echo()
