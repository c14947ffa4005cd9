"""The operation `echo.embeddings`: vectors from the words of a text, computed in this process. For tests and tutorials.

    request  {"model": …, "input": [text, …], "dimensions": 256}
    answer   {"vectors": [base64 of 32-bit floats, …], "usage": {"input_tokens": …}}

Each word, and each group of three letters in it, adds 1 or -1 at a position that a hash chooses. So texts that share
words have similar vectors, and other texts do not, whatever they mean. Vectors have the length 1.
"""

import json
import math
import re
from array import array
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping
from typing import TypeAlias
from zlib import crc32

from sabir import Usage
from sabir.authoring import (
    Decoded,
    DecodeScope,
    EmbeddingCall,
    EmbeddingVectors,
    InProcessResponse,
    Operation,
    OperationRequest,
    RequestScope,
)
from sabir.errors import SettingsInvalid

from sabir_echo.dialect import ERRORS

Operations: TypeAlias = Mapping[str, Operation[EmbeddingCall, EmbeddingVectors]]
PATH = "/echo/embeddings"
DIMENSIONS = 256
"""The length of the vectors if the call does not set it."""
MOST_DIMENSIONS = 4096
WORD = re.compile(r"\w+")


def encode(call: EmbeddingCall, scope: RequestScope) -> OperationRequest:
    """Return the request of a call. A kind is a loss. Raises SettingsInvalid for vendor settings."""
    if scope.vendor:
        raise SettingsInvalid(f"echo has no settings of its own; remove {', '.join(scope.vendor)}")
    if call.kind is not None:
        scope.losses.add("dropped", "echo embeds queries and documents alike", path="kind")
    dimensions = call.dimensions or DIMENSIONS
    if dimensions > MOST_DIMENSIONS:
        scope.losses.add("dropped", f"echo has at most {MOST_DIMENSIONS} dimensions", path="dimensions")
        dimensions = DIMENSIONS
    body = {"model": scope.target.model, "input": list(call.texts), "dimensions": dimensions}
    return OperationRequest(PATH, body)


def decode(body: bytes, scope: DecodeScope) -> Decoded[EmbeddingVectors]:
    """Read the vectors and the tokens of an answer."""
    answer = scope.read_object(body)
    usage = Usage(input_tokens=answer["usage"]["input_tokens"], output_tokens=0)
    return Decoded(EmbeddingVectors.join([b64decode(vector) for vector in answer["vectors"]]), usage)


def serve(body: bytes) -> InProcessResponse:
    """Return the response to a request."""
    request = json.loads(body)
    vectors = [b64encode(embed(text, request["dimensions"])).decode() for text in request["input"]]
    words = sum(len(WORD.findall(text)) for text in request["input"])
    answer = {"vectors": vectors, "usage": {"input_tokens": words}}
    return InProcessResponse(200, [json.dumps(answer).encode()])


def embed(text: str, dimensions: int) -> bytes:
    """Return the vector of a text as 32-bit floats. A text without words has a vector of zeros."""
    numbers = [0.0] * dimensions
    for feature, weight in _features(text):
        place = crc32(feature.encode("utf-8", "replace"))
        numbers[place % dimensions] += weight if place >> 31 else -weight
    length = math.sqrt(sum(number * number for number in numbers)) or 1.0
    return array("f", [number / length for number in numbers]).tobytes()


def _features(text: str) -> Iterator[tuple[str, float]]:
    """Yield the words of a text with the weight 1, and the groups of three letters in them with the weight 0.3."""
    for word in WORD.findall(text.casefold()):
        yield word, 1.0
        for start in range(len(word) - 2):
            yield f"~{word[start : start + 3]}", 0.3


EMBEDDINGS: Operation[EmbeddingCall, EmbeddingVectors] = Operation(
    name="echo.embeddings",
    encode=encode,
    decode=decode,
    decode_error=ERRORS.decode,
    limits={"texts": 100},
)
"""The operation of the provider `echo`."""
