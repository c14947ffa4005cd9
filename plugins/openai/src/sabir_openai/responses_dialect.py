"""The wire of Responses: what it takes, as tables, and its pure functions under one name.

    system, user   a message item each               assistant   an item for each thing that the model did
    results        one function_call_output each     images out  go back as the call that made them

https://developers.openai.com/api/reference/resources/responses
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from sabir import DecodedHistory, Reply, Target
from sabir.authoring import Decoder, DecodeScope, IdentifierRule, JSONValue, MediaRule, RequestScope, Tables, read_count
from sabir.errors import CallError

from sabir_openai.errors import decode_error
from sabir_openai.media import IMAGES
from sabir_openai.responses_decode import decode
from sabir_openai.responses_encode import encode_turn
from sabir_openai.responses_history import decode_history
from sabir_openai.responses_request import encode_request
from sabir_openai.responses_stream import ResponsesDecoder
from sabir_openai.settings import FileHints, ImageHints, ResponsesOptionHints

DOCUMENTS = r"text/.+|application/(pdf|json|xml|rtf|csv|x-ndjson|msword|vnd\.(ms-|oasis|openxmlformats).+)"
"""MIME types of the documents that are read. https://developers.openai.com/api/docs/guides/file-inputs"""
_IMAGE = MediaRule(url="", data=IMAGES, file="", parameters=True, hints=ImageHints)
_DOCUMENT = MediaRule(url=DOCUMENTS, data=DOCUMENTS, file="", parameters=True, hints=FileHints)

TABLES = Tables(
    media={
        ("user", "image"): _IMAGE,
        ("user", "document"): _DOCUMENT,
        ("results", "image"): _IMAGE,
        ("results", "document"): _DOCUMENT,
        ("assistant", "image"): MediaRule(data=""),
    },
    native={"assistant": frozenset({"reasoning", "refusal", "opaque"}), "user": frozenset({"opaque"})},
    call_ids=IdentifierRule(longest=64),
    option_names=IdentifierRule(longest=128),
    citations="native",
    option_hints=ResponsesOptionHints,
)
"""Assistant images are taken because the call that made them goes back; one from elsewhere becomes a placeholder."""

COUNTED = frozenset(
    {
        "conversation", "input", "instructions", "model", "parallel_tool_calls", "previous_response_id", "reasoning",
        "text", "tool_choice", "tools", "truncation",
    }
)  # fmt: skip
"""Fields of a request that the counting endpoint takes."""

_SNAPSHOT = re.compile(r"-\d{4}-\d{2}-\d{2}$")


@dataclass(frozen=True, slots=True)
class ResponsesDialect:
    """The dialect `openai.responses`."""

    name: str = "openai.responses"
    tables: Tables = TABLES
    messages_field: str = "input"
    streaming_fields: Mapping[str, JSONValue] = field(default_factory=lambda: {"stream": True})

    def path(self, target: Target, *, streaming: bool) -> str:
        """The same for every model."""
        return "/responses"

    def family(self, model: str) -> str:
        """The model without its snapshot's date: encrypted reasoning is read by the model that wrote it alone."""
        return _SNAPSHOT.sub("", model)

    encode_turn = staticmethod(encode_turn)
    """The turn's items; see responses_encode."""

    def encode_request(self, scope: RequestScope) -> Mapping[str, JSONValue]:
        """Model, settings and options; see responses_request."""
        return encode_request(scope)

    def encode_count(self, body: Mapping[str, JSONValue], target: Target) -> tuple[str, Mapping[str, JSONValue]] | None:
        """The vendor's own count, of what it takes of a request."""
        return "/responses/input_tokens", {name: value for name, value in body.items() if name in COUNTED}

    def decode_count(self, body: bytes) -> int:
        """The input tokens that the vendor counted; ResponseInvalid for anything else."""
        return read_count(body, "input_tokens", self.name)

    def decode(self, body: bytes, scope: DecodeScope) -> Reply:
        """A whole response → reply; see responses_decode."""
        return decode(body, scope)

    def decoder(self, scope: DecodeScope) -> Decoder:
        """A decoder for one stream; see responses_stream."""
        return ResponsesDecoder(scope)

    def decode_history(self, body: bytes, scope: DecodeScope) -> DecodedHistory:
        """A stored request → messages, options and settings; see responses_history."""
        return decode_history(body, scope)

    def decode_error(self, status: int, headers: Mapping[str, str], body: bytes, provider: str) -> CallError:
        """The error that a response of status ≥ 400 stands for; see errors."""
        return decode_error(status, headers, body, provider)


RESPONSES = ResponsesDialect()
