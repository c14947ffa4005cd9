"""The wire of Cohere's v2 chat: what it takes, as tables, and its pure functions under one name.

    system, user   one message a turn                assistant   one message a turn: content, plan, calls, citations
    results        one `tool` message each           images      by URL or bytes, of users alone

https://docs.cohere.com/reference/chat
"""

import re

from sabir.authoring import Calls, Dialect, IdentifierRule, MediaRule, Roles, Tables

from sabir_cohere.decode import decode
from sabir_cohere.encode import encode_request, encode_turn
from sabir_cohere.errors import ERRORS
from sabir_cohere.stream import ChatDecoder

NAME = "cohere.chat"

TABLES = Tables(
    roles=Roles(
        native={"assistant": frozenset({"reasoning", "opaque"})},
        citations="native",
        later_system="user",
        reasoning="with_state",
    ),
    media={("user", "image"): MediaRule(url="", data=r"image/(png|jpe?g|webp|gif)")},
    calls=Calls(
        ids=IdentifierRule(characters=r"[A-Za-z0-9_.:-]", longest=128),
        names=IdentifierRule(characters="[A-Za-z0-9_]", first="[A-Za-z_]"),
    ),
)
"""Images: https://docs.cohere.com/docs/image-inputs; names: the SDK's cohere.types.tool.Tool. The vendor's own ids are
an option's name with a dozen characters behind it. Instructions stand at the start alone ("system turn must be the
first", https://docs.cohere.com/reference/errors). Thoughts and plans are no secret of the vendor's, but they go back
only to the line of models that had them."""


def family(model: str) -> str:
    """A model's line: its name without the month at its end."""
    return re.sub(r"-\d\d-\d{4}$", "", model)


CHAT = Dialect(
    name=NAME,
    tables=TABLES,
    path=lambda target: "/v2/chat",
    family=family,
    encode_turn=encode_turn,
    encode_request=encode_request,
    decode=decode,
    decoder=ChatDecoder,
    decode_error=ERRORS.decode,
)
"""The dialect `cohere.chat`."""
