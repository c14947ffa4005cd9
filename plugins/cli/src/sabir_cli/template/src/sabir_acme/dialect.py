"""The wire `acme.chat`: what it takes, as tables, and its pure functions under one name.

    POST /chat     {"model", "instructions"?, "turns": […], "tools"?, …, "stream"?} ─▶ an answer, see decode.py
    POST /count    the same body ─▶ {"tokens": 12}

Change: TABLES first, by the vendor's reference. Media that no row takes become placeholders, parts that no `native`
names are left out, ids and names that a rule does not take are rewritten, each with a loss that says so.
"""

from collections.abc import Mapping

from sabir import Target
from sabir.authoring import IdentifierRule, JSONValue, MediaRule, Tables, read_count

from sabir_acme.decode import decode
from sabir_acme.encode import encode_request, encode_turn
from sabir_acme.errors import decode_error
from sabir_acme.history import decode_history
from sabir_acme.stream import ChatDecoder

IMAGES = MediaRule(url="", data=r"image/(png|jpeg|gif|webp)")
TABLES = Tables(
    media={
        ("user", "image"): IMAGES,
        ("user", "audio"): MediaRule(data=r"audio/(wav|mpeg)"),
        ("user", "document"): MediaRule(data=r"application/pdf|text/plain"),
        ("results", "image"): IMAGES,
    },
    native={"assistant": frozenset({"reasoning", "refusal", "opaque"}), "user": frozenset({"opaque"})},
    call_ids=IdentifierRule(longest=40),
    option_names=IdentifierRule(longest=64),
    leading_system="hoisted",
    later_system="user",
    reasoning="with_state",
)
"""Every field of Tables is explained where it is defined, in sabir.authoring."""


class ChatDialect:
    """Each function stands in the module from which it is imported here."""

    name = "acme.chat"
    tables = TABLES
    messages_field = "turns"
    streaming_fields: Mapping[str, JSONValue] = {"stream": True}
    encode_turn = staticmethod(encode_turn)
    encode_request = staticmethod(encode_request)
    decode = staticmethod(decode)
    decoder = staticmethod(ChatDecoder)
    decode_history = staticmethod(decode_history)
    decode_error = staticmethod(decode_error)

    def path(self, target: Target, *, streaming: bool) -> str:
        """The same for every model."""
        return "/chat"

    def family(self, model: str) -> str:
        """The line of a model, `small` of `small-2`: its members read each other's sealed thoughts."""
        return model.partition("-")[0]

    def encode_count(self, body: Mapping[str, JSONValue], target: Target) -> tuple[str, Mapping[str, JSONValue]] | None:
        """Where and how the vendor counts a request's tokens; None where it cannot."""
        return "/count", body

    def decode_count(self, body: bytes) -> int:
        """The tokens that the vendor counted."""
        return read_count(body, "tokens", self.name)
