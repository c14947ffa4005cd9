"""The API `lantern.say`: tables of the content that it accepts, and the dialect, which lists its functions.

    POST /say     {"model", "brief"?, "talk": […], "tools"?, …, "stream"?} ─▶ an answer, see decode.py
                                                                            ─▶ or lines, see stream.py

Core adapts everything that the tables do not accept, and reports a loss for each change.
"""

from sabir.authoring import Calls, Dialect, IdentifierRule, JSONLines, MediaRule, Roles, Tables

from sabir_lantern.decode import decode
from sabir_lantern.encode import encode_request, encode_turn
from sabir_lantern.errors import ERRORS
from sabir_lantern.history import decode_history
from sabir_lantern.stream import SayDecoder

NAME = "lantern.say"
CONTENT_TYPE = "application/x-ndjson"
TABLES = Tables(
    roles=Roles(
        native={"assistant": frozenset({"reasoning", "opaque"}), "user": frozenset({"opaque"})},
        leading_system="hoisted",
        later_system="user",
        reasoning="with_state",
    ),
    media={("user", "image"): MediaRule(data=r"image/(png|jpeg|gif|webp)")},
    calls=Calls(ids=IdentifierRule(longest=40), names=IdentifierRule(longest=64), results="with_user"),
)
"""Which content the API accepts: images of a human as base64, and no other media."""


def family(model: str) -> str:
    """Return the line of a model, such as "small" for "small-2". Models of one line accept each other's seals."""
    return model.partition("-")[0]


SAY = Dialect(
    name=NAME,
    tables=TABLES,
    path=lambda target: "/say",
    messages_field="talk",
    framings={CONTENT_TYPE: JSONLines},
    family=family,
    encode_turn=encode_turn,
    encode_request=encode_request,
    decode=decode,
    decoder=SayDecoder,
    decode_error=ERRORS.decode,
    decode_history=decode_history,
)
"""The dialect `lantern.say`. Each function is defined in the module from which it is imported above."""
