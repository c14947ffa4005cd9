"""The generateContent API: tables of the content that it accepts, and the dialect `google.generate_content`.

    leading system   in the field systemInstruction      later system   sent as a user message
    media            bytes, URLs and uploaded files      the model      is in the path, not in the body

https://ai.google.dev/api/generate-content
"""

import re
from dataclasses import replace
from functools import partial
from typing import get_args

from sabir.authoring import Calls, Dialect, IdentifierRule, MediaRule, Modality, Roles, Tables, read_count

from sabir_google.decode import decode
from sabir_google.encode import encode_turn
from sabir_google.errors import ERRORS
from sabir_google.history import decode_history
from sabir_google.native import NAME, NATIVE, VERTEX, VERTEX_NATIVE
from sabir_google.request import encode_count, encode_request, path, stream_path
from sabir_google.settings import MEDIA_HINTS, GoogleOptionHints
from sabir_google.stream import GenerateContentDecoder

IMAGES = r"image/(png|jpe?g|webp|heic|heif)"
"""MIME types of the images that the models read. https://ai.google.dev/gemini-api/docs/image-understanding"""
SOUNDS = r"audio/(wav|x-wav|wave|vnd\.wave|mp3|mpeg|mpga|mp4|m4a|aiff|aac|ogg|flac|opus|pcm|webm)"
"""MIME types of the sounds that the models read. https://ai.google.dev/gemini-api/docs/audio-understanding"""
VIDEOS = r"video/(mp4|mpeg|mov|quicktime|avi|x-flv|mpg|webm|wmv|3gpp)"
"""MIME types of the videos that the models read. https://ai.google.dev/gemini-api/docs/video-understanding"""
DOCUMENTS = r"application/(pdf|json|xml|rtf)|text/.+"
"""MIME types of the documents that the models read. Of documents other than PDF, only the text is read.
https://ai.google.dev/gemini-api/docs/document-processing
"""
_ANSWERS = r"image/(png|jpe?g|webp)"
"""MIME types of the images that a function response may contain. https://ai.google.dev/gemini-api/docs/function-calling"""


def _rule(modality: Modality, mimes: str) -> MediaRule:
    return MediaRule(url=mimes, data=mimes, file=mimes, parameters=True, hints=MEDIA_HINTS.get(modality))


ROLES = Roles(
    native={"assistant": frozenset({"reasoning", "opaque"}), "user": frozenset({"opaque"})},
    leading_system="hoisted", later_system="user",
)  # fmt: skip
CALLS = Calls(
    ids=IdentifierRule(characters=r"[\s\S]", longest=4096), hints=GoogleOptionHints,
    names=IdentifierRule(characters=r"[A-Za-z0-9_.:-]", longest=128, first=r"[A-Za-z_]"),
)  # fmt: skip
TABLES = Tables(
    ROLES,
    {
        ("user", "image"): _rule("image", IMAGES),
        ("user", "audio"): _rule("audio", SOUNDS),
        ("user", "video"): _rule("video", VIDEOS),
        ("user", "document"): _rule("document", DOCUMENTS),
        ("results", "image"): _rule("image", _ANSWERS),
        ("results", "document"): _rule("document", r"application/pdf|text/plain"),
        **{("assistant", modality): MediaRule(data="", parameters=True) for modality in get_args(Modality)},
    },
    CALLS,
    variants={VERTEX: lambda tables: replace(tables, native=VERTEX_NATIVE)},
    native=NATIVE,
)
"""The content that the API accepts. An assistant's media are sent back only if this API created them. Other media
become placeholders, or are dropped if the setting `unsupported_media` is "drop". The rule for ids accepts every text of
at most 4096 characters, because ids of other providers are not sent.
"""

_MODEL = re.compile(r"^(?:.*/)?([^/]+?)(?:-\d{3}|-\d{2}-\d{2,4}|-preview|-exp|-latest)*$")


def family(model: str) -> str:
    """Return the model's name without its folder and without suffixes of a release, such as "-001" or "-preview"."""
    return _MODEL.sub(r"\1", model)


GENERATE_CONTENT = Dialect(
    name=NAME,
    tables=TABLES,
    path=path,
    stream_path=stream_path,
    messages_field="contents",
    streaming_fields={},
    family=family,
    encode_turn=encode_turn,
    encode_request=encode_request,
    decode=decode,
    decoder=GenerateContentDecoder,
    decode_error=ERRORS.decode,
    decode_history=decode_history,
    prompt_fields=("cachedContent", "systemInstruction", "tools", "toolConfig"),
    quirks={VERTEX: "the service is Vertex AI, not the Gemini API"},
    encode_count=encode_count,
    decode_count=partial(read_count, field="totalTokens", dialect=NAME),
)
"""The dialect `google.generate_content`."""
