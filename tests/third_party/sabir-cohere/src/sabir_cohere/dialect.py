"""The wire of Cohere's v2 chat: what it takes, as tables, and its pure functions under one name.

    system, user   one message a turn                assistant   one message a turn: content, plan, calls, citations
    results        one `tool` message each           images      by URL or bytes, of users alone

https://docs.cohere.com/reference/chat
"""

import re
from collections.abc import Mapping

from sabir import Target
from sabir.authoring import CountsNoTokens, IdentifierRule, JSONValue, MediaRule, ReadsNoRequests, Tables

from sabir_cohere.decode import decode
from sabir_cohere.encode import encode_request, encode_turn
from sabir_cohere.errors import decode_error
from sabir_cohere.stream import ChatDecoder


class ChatDialect(CountsNoTokens, ReadsNoRequests):
    """The dialect `cohere.chat`.

    Instructions stand at the start alone ("system turn must be the first", https://docs.cohere.com/reference/errors).
    Thoughts and plans are no secret of the vendor's, but they go back only to the line of models that had them.
    """

    name = "cohere.chat"
    tables = Tables(
        media={("user", "image"): MediaRule(url="", data=r"image/(png|jpe?g|webp|gif)")},
        native={"assistant": frozenset({"reasoning", "opaque"})},
        call_ids=IdentifierRule(characters=r"[A-Za-z0-9_.:-]", longest=128),
        option_names=IdentifierRule(characters="[A-Za-z0-9_]", first="[A-Za-z_]"),
        citations="native",
        later_system="user",
        reasoning="with_state",
    )
    """Images: https://docs.cohere.com/docs/image-inputs; names: the SDK's cohere.types.tool.Tool. The vendor's own ids
    are an option's name with a dozen characters behind it."""
    messages_field = "messages"
    streaming_fields: Mapping[str, JSONValue] = {"stream": True}
    encode_turn = staticmethod(encode_turn)
    encode_request = staticmethod(encode_request)
    decode = staticmethod(decode)
    decoder = staticmethod(ChatDecoder)
    decode_error = staticmethod(decode_error)

    def path(self, target: Target, *, streaming: bool) -> str:
        """The same for every model."""
        return "/v2/chat"

    def family(self, model: str) -> str:
        """A model's line: its name without the month at its end."""
        return re.sub(r"-\d\d-\d{4}$", "", model)


CHAT = ChatDialect()
