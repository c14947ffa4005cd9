"""The embeddings API, as the operation `openai.embeddings`.

    texts    one array in the field `input`              vectors    base64 of 32-bit floats, or arrays of numbers
    kind     has no field, except at OpenRouter          dimensions the field `dimensions`; Mistral: `output_dimension`

Base64 is requested unless a gateway's row has facts about embeddings that do not list `encoding_format`. Decoding
accepts both forms, because some servers ignore the field.
https://developers.openai.com/api/reference/resources/embeddings
"""

import sys
from array import array
from binascii import a2b_base64
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from sabir import Usage
from sabir.authoring import (
    Decoded,
    DecodeScope,
    EmbeddingCall,
    EmbeddingVectors,
    Fields,
    JSONValue,
    Operation,
    OperationRequest,
    RequestScope,
    first_whole_number,
    list_or_empty,
    object_or_empty,
    text_or_empty,
)

from sabir_openai.errors import ERRORS
from sabir_openai.settings import EmbeddingSettings

PATH = "/embeddings"
SHORT_NAME = "embeddings"
"""The name of the operation in a row's entries, as one of their `dialects`."""
INPUT_TYPES = {"query": "search_query", "document": "search_document"}
"""Kind of a text → its name at endpoints with the quirk "input_type"."""
QUIRKS: Mapping[str, str] = {
    "input_type": "the kind of the texts is sent in the field `input_type`",
    "output_dimension": "the length of the vectors is called output_dimension",
}
"""Quirk → how an endpoint with this quirk differs from OpenAI's API."""


def encode(call: EmbeddingCall, scope: RequestScope, *, path: str = PATH) -> OperationRequest:
    """Return the request of a call. A kind is a loss, except at endpoints with a field for it."""
    body: dict[str, JSONValue] = {"model": scope.target.model, "input": list(call.texts)}
    if scope.model_info.status_of("encoding_format") == "accepted":
        body["encoding_format"] = "base64"
    if call.dimensions is not None and scope.supports("dimensions", "dimensions"):
        body["output_dimension" if "output_dimension" in scope.quirks else "dimensions"] = call.dimensions
    if call.kind is not None and "input_type" in scope.quirks:
        body["input_type"] = INPUT_TYPES[call.kind]
    elif call.kind is not None:
        scope.losses.add("dropped", f"{scope.target.provider} embeds queries and documents alike", path="kind")
    return OperationRequest(path, {**body, **scope.read_vendor(EmbeddingSettings)})


def read_floats(text: str) -> bytes:
    """Return a base64 text of 32-bit floats as bytes in the machine's byte order."""
    vector = a2b_base64(text)
    if sys.byteorder == "big":
        swapped = array("f", vector)
        swapped.byteswap()
        return swapped.tobytes()
    return vector


def read_int8(text: str) -> bytes:
    """Return a base64 text of signed bytes as 32-bit floats with the same values, from -128 to 127."""
    return array("f", array("b", a2b_base64(text))).tobytes()


def decode(
    body: bytes, scope: DecodeScope, *, read_base64: Callable[[str], bytes] = read_floats
) -> Decoded[EmbeddingVectors]:
    """Read the vectors of a response, sorted by their index, and the tokens. Raises the error that the body reports."""
    response = scope.read_object(body)
    if error := response.get("error"):
        raise ERRORS.report(error, scope)
    entries = [object_or_empty(each) for each in list_or_empty(response.get("data"))]
    vectors = [_read_vector(each.get("embedding"), read_base64) for each in _in_order(entries)]
    return Decoded(
        EmbeddingVectors.join(vectors), _read_usage(response.get("usage")), text_or_empty(response.get("model")) or None
    )


def _in_order(entries: Sequence[Fields]) -> Sequence[Fields]:
    """Return the entries in the order of the texts. Raises ValueError if an index is missing or occurs twice."""
    indexes = [each.get("index") for each in entries]
    if indexes == [*range(len(entries))] or not any(isinstance(index, int) for index in indexes):
        return entries
    by_index = dict(zip(indexes, entries, strict=True))
    if by_index.keys() != set(range(len(entries))):
        raise ValueError(f"the indexes of the vectors are not the numbers from 0 to {len(entries) - 1}")
    return [by_index[index] for index in range(len(entries))]


def _read_vector(vector: JSONValue, read_base64: Callable[[str], bytes]) -> bytes:
    if isinstance(vector, str):
        return read_base64(vector)
    return array("f", list_or_empty(vector)).tobytes()


def _read_usage(figures: JSONValue) -> Usage:
    usage = object_or_empty(figures)
    input_tokens = first_whole_number(usage.get("prompt_tokens"), usage.get("total_tokens"))
    if input_tokens is None:
        return Usage()
    return Usage.unchecked(usage, input_tokens=input_tokens, output_tokens=0)


EMBEDDINGS: Operation[EmbeddingCall, EmbeddingVectors] = Operation(
    name="openai.embeddings",
    encode=encode,
    decode=decode,
    decode_error=ERRORS.decode,
    # At most 2048 texts and 300,000 tokens. A token has at least one byte, so 300,000 bytes are never more tokens.
    limits={"texts": 2048, "bytes": 300_000},
)
"""The operation of OpenAI. https://developers.openai.com/api/reference/resources/embeddings/methods/create"""
_LOWEST_LIMITS: Mapping[str, int] = {"texts": 100, "bytes": 300_000}
"""Limits for endpoints that route to other vendors, whose limits differ. Google's of 100 texts is the lowest."""
_BY_PROVIDER: Mapping[str, Operation[EmbeddingCall, EmbeddingVectors]] = {
    # 256 texts: https://github.com/0xPlaygrounds/rig/blob/main/rig-core/src/providers/mistral/embedding.rs, tried live;
    # 16,384 tokens in all: https://docs.mistral.ai/capabilities/embeddings/text_embeddings
    "mistral": replace(EMBEDDINGS, limits={"texts": 256, "bytes": 16_384}),
    # https://docs.perplexity.ai/api-reference/embeddings-post.md: 512 texts, 120,000 tokens, signed bytes in base64.
    "perplexity": replace(
        EMBEDDINGS,
        encode=partial(encode, path="/v1/embeddings"),
        decode=partial(decode, read_base64=read_int8),
        limits={"texts": 512, "bytes": 120_000},
    ),
    "openrouter": replace(EMBEDDINGS, limits=_LOWEST_LIMITS),
    "vercel": replace(EMBEDDINGS, limits=_LOWEST_LIMITS),
    # Vectors arrive as arrays of numbers, and core accepts about 500,000 numbers in a response: 100 vectors of 4,096.
    **dict.fromkeys(("together", "fireworks", "lmstudio"), replace(EMBEDDINGS, limits=_LOWEST_LIMITS)),
}
"""Provider → its operation, if it differs from OpenAI's by more than facts of its row."""


def embeddings_of(provider: str) -> Operation[EmbeddingCall, EmbeddingVectors]:
    """Return the operation of a provider: OpenAI's with the provider's limits."""
    return _BY_PROVIDER.get(provider, EMBEDDINGS)
