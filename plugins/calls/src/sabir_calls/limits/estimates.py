"""An estimate of the tokens of a request, from its bytes alone.

body ──without media──▶ characters / 4  +  1,000 for each medium  +  the largest reply
"""

import re
from collections.abc import Callable, Mapping
from typing import TypeAlias

from sabir import Rendering

Estimate: TypeAlias = Callable[[Rendering], int]
"""A function that returns the expected tokens of a request, input and output together."""

TOKENS_OF_A_MEDIUM = 1_000
"""The tokens that the estimate assumes for an image or another medium that the request contains as base64."""
TOKENS_OF_A_REPLY = 1_000
"""The tokens that the estimate assumes for a reply if it finds no limit in the request."""
_CHARACTERS_OF_A_TOKEN = 4
_BASE64 = re.compile(rb"[A-Za-z0-9+/_-]{1000,}={0,2}")
_LIMITS = ("max_output_tokens", "max_completion_tokens", "max_tokens", "maxOutputTokens")
"""Fields in which requests limit the reply, of most vendors; Google's is inside `generationConfig`."""


def estimate_tokens(rendering: Rendering) -> int:
    """Return the estimated tokens of a request, input and output together. Needs no network.

    Four bytes of the body count as one token, and each base64 text of 1,000 characters or more as 1,000 tokens. The
    output counts as the largest output that the request allows, or as 1,000 tokens if the request sets no limit, or
    sets it in a field that this function does not know.

    >>> import sabir
    >>> from sabir_calls import estimate_tokens
    >>> estimate_tokens(sabir.adapter("openai:gpt-5").render("Hello!", settings=sabir.Settings(max_output_tokens=50)))
    97
    """
    text, media = _BASE64.subn(b"", rendering.body_bytes)
    return len(text) // _CHARACTERS_OF_A_TOKEN + media * TOKENS_OF_A_MEDIUM + _largest_reply(rendering)


def _largest_reply(rendering: Rendering) -> int:
    if not any(name.encode() in rendering.body_bytes for name in _LIMITS):
        return TOKENS_OF_A_REPLY
    body = rendering.body
    fields = body if isinstance(body, Mapping) else {}
    config = fields.get("generationConfig")
    fields = {**fields, **config} if isinstance(config, Mapping) else fields
    limits = (fields.get(name) for name in _LIMITS)
    return next((limit for limit in limits if type(limit) is int), TOKENS_OF_A_REPLY)
