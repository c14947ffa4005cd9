"""The Responses API: tables of the content that it accepts, and the dialect `openai.responses`.

    system, user   a message item each               assistant   an item for each block
    results        one function_call_output each     images      an assistant's image is sent as its generation call

https://developers.openai.com/api/reference/resources/responses
"""

import re
from dataclasses import replace
from functools import partial

from sabir.authoring import Calls, Dialect, IdentifierRule, MediaRule, Roles, Tables, read_count

from sabir_openai.chat_dialect import IMAGES, QUIRKS
from sabir_openai.chat_native import OPENROUTER_NATIVE
from sabir_openai.errors import ERRORS
from sabir_openai.responses_decode import decode
from sabir_openai.responses_encode import encode_turn
from sabir_openai.responses_history import decode_history
from sabir_openai.responses_native import NAME, NATIVE, XAI_NATIVE
from sabir_openai.responses_request import PATH, encode_count, encode_request
from sabir_openai.responses_stream import ResponsesDecoder
from sabir_openai.settings import FileHints, ImageHints, ResponsesOptionHints

DOCUMENTS = r"text/.+|application/(pdf|json|xml|rtf|csv|x-ndjson|msword|vnd\.(ms-|oasis|openxmlformats).+)"
"""MIME types of the documents that the API accepts. https://developers.openai.com/api/docs/guides/file-inputs"""
_IMAGE = MediaRule(url="", data=IMAGES, file="", parameters=True, hints=ImageHints)
_DOCUMENT = MediaRule(url=DOCUMENTS, data=DOCUMENTS, file="", parameters=True, hints=FileHints)

TABLES = Tables(
    Roles(native={"assistant": frozenset({"reasoning", "refusal", "opaque"}), "user": frozenset({"opaque"})},
          citations="native"),
    {
        ("user", "image"): _IMAGE, ("user", "document"): _DOCUMENT,
        ("results", "image"): _IMAGE, ("results", "document"): _DOCUMENT,
        ("assistant", "image"): MediaRule(data=""),
    },
    Calls(ids=IdentifierRule(longest=64), names=IdentifierRule(longest=128), hints=ResponsesOptionHints,
          stored_by=frozenset({"conversation", "previous_response_id"})),
    variants={
        "xai_tools": lambda tables: replace(tables, native=XAI_NATIVE),
        "openrouter_tools": lambda tables: replace(tables, native=OPENROUTER_NATIVE),
    },
    native=NATIVE,
)  # fmt: skip
"""The content that the API accepts. An assistant's image is sent back as the call that created the image. Images of
another API become placeholders, or are dropped if the setting `unsupported_media` is "drop".
"""

_SNAPSHOT = re.compile(r"-\d{4}-\d{2}-\d{2}$")


def family(model: str) -> str:
    """Return the model's name without the date of its snapshot. Encrypted reasoning is sent back only to models of the
    same family, because no other model can read it.
    """
    return _SNAPSHOT.sub("", model)


RESPONSES = Dialect(
    name=NAME,
    tables=TABLES,
    path=lambda target: PATH,
    messages_field="input",
    family=family,
    encode_turn=encode_turn,
    encode_request=encode_request,
    decode=decode,
    decoder=ResponsesDecoder,
    decode_error=ERRORS.decode,
    decode_history=decode_history,
    # A schema and an effort become part of the system text.
    prompt_fields=("text", "reasoning", "tools", "instructions", "previous_response_id", "conversation", "prompt"),
    cache_markers=("cache_control", "prompt_cache_breakpoint"),
    quirks=QUIRKS,
    encode_count=encode_count,
    decode_count=partial(read_count, field="input_tokens", dialect=NAME),
)
"""The dialect `openai.responses`."""
