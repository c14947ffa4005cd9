"""A response → reply: every output item gives its blocks, in order, and nothing of it is lost.

    message                 a text or a refusal for each content part, its annotations as citations
    reasoning               its summary's and content's text; the whole item is the state
    function_call           an option call with its argument text as it came
    image_generation_call   the image it holds
    every other item        an opaque part, verbatim; a call of the vendor's own and its output are a pair

What a part does not say itself is in its state, so that encoding gives the item back (law 3).
"""

from collections.abc import Callable, Collection, Mapping
from typing import Any, Literal, TypeAlias

from pydantic import ValidationError

from sabir.events import ReplyEnd
from sabir.fold import ReplyBuilder, decode_call
from sabir.losses import Loss
from sabir.media import DATA_URL_CAP, MediaRefused
from sabir.messages import OptionCallPayload
from sabir.parts import Citation, KnownPart, MediaPart, OpaquePart, ReasoningPart, RefusalPart, TextPart
from sabir.reply import FinishReason, Reply, Usage
from sabir.scope import DecodeScope
from sabir.values import JSONValue

Block: TypeAlias = KnownPart | OptionCallPayload
Item: TypeAlias = Mapping[str, Any]
"""A JSON object of the wire; what its fields hold is not trusted, hence Any."""

DIALECT = "openai.responses"
