"""The wire of Messages: what it takes, as tables, and its pure functions under one name.

    leading system   top level `system`          later system   a message where the user's side ends, if the model can
    assistant        text, thinking, calls       results        text, images, documents, with an error flag

https://platform.claude.com/docs/en/api/messages/create
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from sabir import DecodedHistory, Reply, Target
from sabir.authoring import Decoder, DecodeScope, IdentifierRule, JSONValue, MediaRule, RequestScope, Tables, read_count
from sabir.errors import CallError

from sabir_anthropic.decode import NAME, decode
from sabir_anthropic.encode import encode_turn
from sabir_anthropic.errors import decode_error
from sabir_anthropic.history import decode_history
from sabir_anthropic.request import COMPATIBLE, encode_request
from sabir_anthropic.settings import DocumentHints, OptionHints
from sabir_anthropic.stream import MessagesDecoder

IMAGES = r"image/(jpeg|jpg|png|gif|webp)"
"""MIME types of the images that the models read. https://platform.claude.com/docs/en/build-with-claude/vision"""
DOCUMENTS = r"application/pdf|text/.+|application/(json|xml|csv|x-ndjson)"
"""MIME types of documents as bytes: PDF, and what is text. https://platform.claude.com/docs/en/build-with-claude/files"""
CLOUD = "cloud"
"""Quirk of Bedrock and Vertex: media as bytes alone, and no late system message."""


_IMAGE = MediaRule(url="", data=IMAGES, file="")
_DOCUMENT = MediaRule(url="application/pdf", data=DOCUMENTS, file="", hints=DocumentHints)

_TABLES = Tables(
    media={
        ("user", "image"): _IMAGE,
        ("user", "document"): _DOCUMENT,
        ("results", "image"): _IMAGE,
        ("results", "document"): _DOCUMENT,
    },
    native={
        "assistant": frozenset({"reasoning", "opaque"}),
        "user": frozenset({"opaque"}),
        "results": frozenset({"opaque"}),
    },
    call_ids=IdentifierRule(longest=64),
    option_names=IdentifierRule(longest=128),
    citations="native",
    leading_system="hoisted",
    later_system="after_user",
    reasoning="with_state",
    unfinished_pairs="kept_at_the_end",
    option_hints=OptionHints,
)
_IN_BYTES = {place: replace(rule, url=None, file=None) for place, rule in _TABLES.media.items()}
TABLES = replace(
    _TABLES,
    variants={
        CLOUD: replace(_TABLES, media=_IN_BYTES, later_system="user"),
        COMPATIBLE: replace(_TABLES, later_system="user"),
    },
)

COUNTED = frozenset(
    {
        "cache_control", "context_management", "mcp_servers", "messages", "model", "output_config", "speed", "system",
        "thinking", "tool_choice", "tools",
    }
)  # fmt: skip
"""Fields of a request that the counting endpoint takes."""

_CLOUD_NAME = re.compile(r"^(?:[a-z-]+\.)?anthropic\.|-v\d+(?::\d+)?$|@\w+$")
_SNAPSHOT = re.compile(r"-(?:\d{8}|latest)$")


@dataclass(frozen=True, slots=True)
class MessagesDialect:
    """The dialect `anthropic.messages`."""

    name: str = NAME
    tables: Tables = TABLES
    messages_field: str = "messages"
    streaming_fields: Mapping[str, JSONValue] = field(default_factory=lambda: {"stream": True})

    def path(self, target: Target, *, streaming: bool) -> str:
        """The same for every model; the clouds' clients put the model into it."""
        return "/v1/messages"

    def family(self, model: str) -> str:
        """The model without a cloud's prefix and suffix and its snapshot's date: a signature is bound to its model."""
        return _SNAPSHOT.sub("", _CLOUD_NAME.sub("", model))

    encode_turn = staticmethod(encode_turn)
    """The turn's messages; see encode."""

    def encode_request(self, scope: RequestScope) -> Mapping[str, JSONValue]:
        """Model, settings, options and hoisted system text; see request."""
        return encode_request(scope)

    def encode_count(self, body: Mapping[str, JSONValue], target: Target) -> tuple[str, Mapping[str, JSONValue]] | None:
        """The vendor's own count, of what it takes of a request."""
        return "/v1/messages/count_tokens", {name: value for name, value in body.items() if name in COUNTED}

    def decode_count(self, body: bytes) -> int:
        """The input tokens that the vendor counted; ResponseInvalid for anything else."""
        return read_count(body, "input_tokens", self.name)

    def decode(self, body: bytes, scope: DecodeScope) -> Reply:
        """A whole response → reply; see decode."""
        return decode(body, scope)

    def decoder(self, scope: DecodeScope) -> Decoder:
        """A decoder for one stream; see stream."""
        return MessagesDecoder(scope)

    def decode_history(self, body: bytes, scope: DecodeScope) -> DecodedHistory:
        """A stored request → messages, options and settings; see history."""
        return decode_history(body, scope)

    def decode_error(self, status: int, headers: Mapping[str, str], body: bytes, provider: str) -> CallError:
        """The error that a response of status ≥ 400 stands for; see errors."""
        return decode_error(status, headers, body, provider)


MESSAGES = MessagesDialect()
