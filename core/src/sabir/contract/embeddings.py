"""The call and the value of the operation "embeddings", which provider packages and sabir-embeddings share.

EmbeddingCall(texts, kind, dimensions) ──encode──▶ request      body ──decode──▶ EmbeddingVectors(buffer, dimensions)
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

EmbeddingKind: TypeAlias = Literal["query", "document"]
"""What a text is in a search. Some models embed queries and documents differently."""


@dataclass(frozen=True, slots=True)
class EmbeddingCall:
    """The texts of one request. `kind` and `dimensions` (the length of each vector) are None for the model's defaults.

    `first_index` is the position of the first text in the list that the user passed, for the paths of losses.
    """

    texts: Sequence[str]
    kind: EmbeddingKind | None = None
    dimensions: int | None = None
    first_index: int = 0


@dataclass(frozen=True, slots=True)
class EmbeddingVectors:
    """The vectors of one response, in the order of the request's texts.

    `buffer` has all vectors, one after the other, as 32-bit floats in the machine's byte order. `dimensions` is the
    length of each vector; 0 if there are none.
    """

    buffer: bytes
    dimensions: int

    @classmethod
    def join(cls, vectors: Sequence[bytes]) -> "EmbeddingVectors":
        """Return the vectors in one buffer. Raises ValueError if they differ in length, or are not 32-bit floats."""
        lengths = {len(vector) for vector in vectors}
        if len(lengths) > 1 or any(length % 4 or not length for length in lengths):
            raise ValueError(f"the vectors have {sorted(lengths)} bytes; expected the same multiple of 4 for all")
        return cls(b"".join(vectors), max(lengths, default=0) // 4)
