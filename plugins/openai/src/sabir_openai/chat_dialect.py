"""The wire of Chat Completions: what it takes, as tables, and its pure functions under one name.

    system, user   one message each                  assistant   one message a turn: content, then calls
    results        one `tool` message each, text     audio out   goes back by its id alone

Compatible endpoints deviate by the quirks listed in QUIRKS. https://developers.openai.com/api/reference/resources/chat
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from sabir import DecodedHistory, Reply, Target
from sabir.authoring import Decoder, DecodeScope, IdentifierRule, JSONValue, MediaRule, RequestScope, Tables
from sabir.errors import CallError, ResponseInvalid

from sabir_openai.chat_decode import decode
from sabir_openai.chat_encode import encode_turn
from sabir_openai.chat_history import decode_history
from sabir_openai.chat_request import encode_request
from sabir_openai.chat_stream import ChatDecoder
from sabir_openai.errors import decode_error
from sabir_openai.media import IMAGES, SOUNDS
from sabir_openai.settings import ChatFileHints, ChatOptionHints, ImageHints, MediaHints

_TABLES = Tables(
    media={
        ("user", "image"): MediaRule(url="", data=IMAGES, parameters=True, hints=ImageHints),
        ("user", "audio"): MediaRule(data=SOUNDS, hints=MediaHints),
        ("user", "document"): MediaRule(data="application/pdf", file="", parameters=True, hints=ChatFileHints),
        ("assistant", "audio"): MediaRule(data="", file=""),
    },
    native={"assistant": frozenset({"reasoning", "refusal", "opaque"})},
    call_ids=IdentifierRule(characters=r"[A-Za-z0-9_.:-]", longest=64),
    option_names=IdentifierRule(longest=64),
)
TABLES = replace(_TABLES, option_hints=ChatOptionHints, variants={"no_strict": _TABLES})
"""Assistant audio is taken because its id goes back; a sound from elsewhere becomes a placeholder."""

QUIRKS: Mapping[str, str] = {
    "max_tokens": "the output limit is called max_tokens, except for OpenAI's own reasoning models",
    "system_role": "instructions have the role system, never developer",
    "plain_text": "content without media is one string; a refusal is text",
    "joins_turns": "neighbouring messages of one side become one, for the roles must alternate",
    "echoes_reasoning": "an assistant's reasoning, and content of the endpoint's own kinds, goes back with it",
    "json_object": "a reply can be held to JSON, not to a schema",
    "random_seed": "the seed is called random_seed",
    "no_strict": "options are declared without `strict`",
}
"""Deviations of compatible endpoints, by name."""

_FAMILY = re.compile(r"(?:[^/]+/)*[A-Za-z]*")


@dataclass(slots=True, eq=False)
class ChatDialect:
    """The dialect `openai.chat`; an endpoint that rejects a field that streams ask for has a variant of its own."""

    name: str = "openai.chat"
    tables: Tables = TABLES
    messages_field: str = "messages"
    streaming_fields: Mapping[str, JSONValue] = field(
        default_factory=lambda: {"stream": True, "stream_options": {"include_usage": True}}
    )

    def path(self, target: Target, *, streaming: bool) -> str:
        """The same for every model."""
        return "/chat/completions"

    def family(self, model: str) -> str:
        """A model's maker and line, so that `deepseek-chat` and `deepseek-reasoner` read each other's reasoning."""
        match = _FAMILY.match(model)
        return match[0] if match else ""

    encode_turn = staticmethod(encode_turn)
    """The turn's messages; see chat_encode."""

    def encode_request(self, scope: RequestScope) -> Mapping[str, JSONValue]:
        """Model, settings and options; see chat_request."""
        return encode_request(scope)

    def encode_count(self, body: Mapping[str, JSONValue], target: Target) -> tuple[str, Mapping[str, JSONValue]] | None:
        """None: this wire cannot count a request's tokens."""
        return None

    def decode_count(self, body: bytes) -> int:
        """Never asked for; ResponseInvalid."""
        raise ResponseInvalid(f"{self.name} counts no tokens, so that it cannot have answered with a count")

    def decode(self, body: bytes, scope: DecodeScope) -> Reply:
        """A whole response → reply; see chat_decode."""
        return decode(body, scope)

    def decoder(self, scope: DecodeScope) -> Decoder:
        """A decoder for one stream; see chat_stream."""
        return ChatDecoder(scope)

    def decode_history(self, body: bytes, scope: DecodeScope) -> DecodedHistory:
        """A stored request → messages, options and settings; see chat_history."""
        return decode_history(body, scope)

    def decode_error(self, status: int, headers: Mapping[str, str], body: bytes, provider: str) -> CallError:
        """The error that a response of status ≥ 400 stands for; see errors."""
        return decode_error(status, headers, body, provider)


CHAT = ChatDialect()
