"""The wire `acme.chat`: what it takes, as tables, and its pure functions under one name.

    POST /chat     {"model", "instructions"?, "turns": […], "tools"?, …, "stream"?} ─▶ an answer, see decode.py
    POST /count    the same body ─▶ {"tokens": 12}

Change: TABLES first, by the vendor's reference. Media that no row takes become placeholders, parts that no `native`
names are left out, ids and names that a rule does not take are rewritten, each with a loss that says so.
"""

from collections.abc import Mapping
from functools import partial

from sabir.authoring import Calls, Dialect, IdentifierRule, JSONValue, MediaRule, Roles, Tables, TurnScope, read_count

from sabir_acme.decode import decode
from sabir_acme.encode import encode_request, encode_turn
from sabir_acme.errors import ERRORS
from sabir_acme.history import decode_history
from sabir_acme.stream import ChatDecoder

NAME = "acme.chat"
IMAGES = MediaRule(url="", data=r"image/(png|jpeg|gif|webp)")
TABLES = Tables(
    roles=Roles(
        native={"assistant": frozenset({"reasoning", "refusal", "opaque"}), "user": frozenset({"opaque"})},
        leading_system="hoisted",
        later_system="user",
        reasoning="with_state",
    ),
    media={
        ("user", "image"): IMAGES,
        ("user", "audio"): MediaRule(data=r"audio/(wav|mpeg)"),
        ("user", "document"): MediaRule(data=r"application/pdf|text/plain"),
        ("results", "image"): IMAGES,
    },
    calls=Calls(ids=IdentifierRule(longest=40), names=IdentifierRule(longest=64)),
)
"""Every field of these tables is explained where it is defined, in sabir.authoring."""


def family(model: str) -> str:
    """The line of a model, `small` of `small-2`: its members read each other's sealed thoughts."""
    return model.partition("-")[0]


def encode_count(body: Mapping[str, JSONValue], scope: TurnScope) -> tuple[str, Mapping[str, JSONValue]]:
    """Where and how the vendor counts a request's tokens; leave it out where it cannot."""
    return "/count", body


CHAT = Dialect(
    name=NAME,
    tables=TABLES,
    path=lambda target: "/chat",
    messages_field="turns",
    family=family,
    encode_turn=encode_turn,
    encode_request=encode_request,
    decode=decode,
    decoder=ChatDecoder,
    decode_error=ERRORS.decode,
    decode_history=decode_history,
    encode_count=encode_count,
    decode_count=partial(read_count, field="tokens", dialect=NAME),
)
"""The dialect `acme.chat`; each function stands in the module from which it is imported here."""
