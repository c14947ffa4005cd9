"""The Messages API: tables of the content that it accepts, and the dialect `anthropic.messages`.

    leading system   the field `system`          later system   a system message at the end of the user's turn
    assistant        text, thinking, calls       results        text, images, documents, with an error flag

A later system message at another position is sent as a user message. For Bedrock, Vertex AI, other vendors' endpoints
and models that reject "later_system", every later system message is sent as a user message.

https://platform.claude.com/docs/en/api/messages/create
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from sabir.authoring import Calls, Dialect, EventFrames, IdentifierRule, MediaRule, Roles, Tables, read_count

from sabir_anthropic.decode import decode
from sabir_anthropic.encode import encode_turn
from sabir_anthropic.errors import ERRORS
from sabir_anthropic.history import decode_history
from sabir_anthropic.native import NAME, NATIVE
from sabir_anthropic.request import (
    AUTOMATIC_CACHE,
    COMPATIBLE,
    PATH,
    TOP_LEVEL_CACHE,
    encode_count,
    encode_request,
)
from sabir_anthropic.settings import AnthropicDocumentHints, AnthropicOptionHints
from sabir_anthropic.stream import MessagesDecoder, frame_event

IMAGES = r"image/(jpeg|jpg|png|gif|webp)"
"""MIME types of the images that the models read. https://platform.claude.com/docs/en/build-with-claude/vision"""
DOCUMENTS = r"application/pdf|text/.+|application/(json|xml|csv|x-ndjson)"
"""MIME types of the documents that can be sent as bytes: PDF and text types.
https://platform.claude.com/docs/en/build-with-claude/files
"""
EVENT_STREAM = "application/vnd.amazon.eventstream"
"""The content type of Bedrock's streams: events in binary frames.
https://docs.aws.amazon.com/AmazonS3/latest/API/RESTSelectObjectAppendix.html
"""
CLOUD = "cloud"
"""Quirk of Bedrock and Vertex AI."""
QUIRKS: Mapping[str, str] = {
    CLOUD: "media are accepted as bytes only, no late system messages, and not all of the vendor's own tools",
    COMPATIBLE: "another vendor's endpoint, which knows neither the newer version of the API nor Anthropic's tools",
    AUTOMATIC_CACHE: "every prompt is cached without markers, for a time that requests cannot choose",
    TOP_LEVEL_CACHE: "only a cache marker in the request's field `cache_control` has an effect",
}
"""Quirk → how an endpoint with this quirk differs from Anthropic's API."""

_IMAGE = MediaRule(url="", data=IMAGES, file="")
_DOCUMENT = MediaRule(url="application/pdf", data=DOCUMENTS, file="", hints=AnthropicDocumentHints)

_ROLES = Roles(
    native={
        "assistant": frozenset({"reasoning", "opaque"}),
        "user": frozenset({"opaque"}), "results": frozenset({"opaque"}),
    },
    leading_system="hoisted", later_system="after_user", citations="native", reasoning="with_state",
)  # fmt: skip
_CALLS = Calls(
    ids=IdentifierRule(longest=64), names=IdentifierRule(longest=128), hints=AnthropicOptionHints,
    unfinished_pairs="kept_at_the_end",
)  # fmt: skip
_TABLES = Tables(_ROLES, {
    ("user", "image"): _IMAGE, ("user", "document"): _DOCUMENT,
    ("results", "image"): _IMAGE, ("results", "document"): _DOCUMENT,
}, _CALLS, native=NATIVE)  # fmt: skip
_OLDER = replace(_TABLES, roles=replace(_ROLES, later_system="user"), native={})
"""The tables for endpoints that know neither late system messages nor Anthropic's own tools."""
_IN_BYTES = {place: replace(rule, url=None, file=None) for place, rule in _TABLES.media.items()}
"""The media rules for the clouds, which accept media as bytes only."""
TABLES = replace(_TABLES, variants={CLOUD: replace(_OLDER, media=_IN_BYTES), COMPATIBLE: _OLDER})

_CLOUD_NAME = re.compile(r"^(?:arn:.*/)?(?:[a-z-]+\.)?anthropic\.|-v\d+(?::\d+)?$|@\w+$")
_SNAPSHOT = re.compile(r"-(?:\d{8}|latest)$")


def family(model: str) -> str:
    """Return the model's name without a cloud's prefix and suffix and without the date of its snapshot.

    Signatures are sent back only to models of the same family.
    """
    return _SNAPSHOT.sub("", _CLOUD_NAME.sub("", model))


MESSAGES = Dialect(
    name=NAME,
    tables=TABLES,
    path=lambda target: PATH,  # the SDK's clients for clouds use another path, which contains the model
    family=family,
    encode_turn=encode_turn,
    encode_request=encode_request,
    decode=decode,
    decoder=MessagesDecoder,
    framings={EVENT_STREAM: partial(EventFrames, frame_event)},
    decode_error=ERRORS.decode,
    decode_history=decode_history,
    # https://platform.claude.com/docs/en/build-with-claude/prompt-caching#what-invalidates-the-cache
    prompt_fields=("tools", "speed", "system", "tool_choice", "thinking", "output_config"),
    cache_markers=("cache_control",),
    quirks=QUIRKS,
    encode_count=encode_count,
    decode_count=partial(read_count, field="input_tokens", dialect=NAME),
)
"""The dialect `anthropic.messages`."""
