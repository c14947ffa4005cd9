"""The API `acme.chat`: tables of the content that it accepts, and the dialect, which lists its functions.

    POST /chat     {"model", "instructions"?, "turns": […], "tools"?, …, "stream"?} ─▶ an answer, see decode.py
    POST /count    the same body ─▶ {"tokens": 12}

Change: TABLES first, from the vendor's reference. Core adapts everything that the tables do not accept, and reports a
loss for each change: media without a row become placeholders, reasoning, refusals and opaque parts that `native` does
not name are replaced or left out, and ids and names that do not fit a rule are rewritten.
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
"""Which content the API accepts. The docstrings of these classes in sabir.authoring explain every field."""


def family(model: str) -> str:
    """Return the model line of a model, such as "small" for "small-2". Models of one line get each other's signed
    reasoning back.
    """
    return model.partition("-")[0]


def encode_count(body: Mapping[str, JSONValue], scope: TurnScope) -> tuple[str, Mapping[str, JSONValue]]:
    """Return the path and the body of a request that counts the tokens of `body`. If the API cannot count, delete this
    function, and `encode_count` and `decode_count` in CHAT.
    """
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
"""The dialect `acme.chat`. Each function is defined in the module from which it is imported above."""
