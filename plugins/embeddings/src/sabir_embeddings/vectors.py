"""The vectors of a call in one buffer, and what the call reported.

buffer   text 0: 1536 floats │ text 1: 1536 floats │ …          reply   usage, origin and losses of all requests
   ├ view()            a memoryview of the shape (texts, dimensions)
   ├ numpy.asarray()   the same as an array, without a copy
   └ vectors[0]        the vector of one text
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from heapq import nlargest
from operator import mul
from typing import Any, NamedTuple

from sabir import Loss, Origin, Reply, Usage
from sabir.authoring import installed_hooks


class Match(NamedTuple):
    """A text near a vector, from `Embeddings.nearest`: its position in the list of texts, and the cosine of the angle
    between the two vectors, from -1 to 1.
    """

    position: int
    similarity: float


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Embeddings:
    """The vectors of texts, in the order of the texts. Returned by `Embedder.embed`.

    `vectors[i]` is a memoryview of the floats of text `i`, and `view()` of all of them. `numpy.asarray(vectors)` is an
    array without a copy. The vectors are as the provider returned them; not every model returns vectors of length 1.

    >>> from sabir_embeddings import embedder
    >>> vectors = embedder("echo:m").embed_sync(["red apple", "green apple", "blue sky"])
    >>> vectors.shape, vectors.nearest(vectors[0])[1].position
    ((3, 256), 1)
    """

    buffer: bytes
    """All vectors, one after the other, as 32-bit floats in the machine's byte order."""
    dimensions: int
    """The length of each vector; 0 if there are none."""
    reply: Reply
    """A reply without messages, with the sum of the usage and all losses of the requests. `sabir_prices.cost` reads it.
    """

    @property
    def shape(self) -> tuple[int, int]:
        """The number of vectors, and the length of each."""
        return len(self), self.dimensions

    @property
    def usage(self) -> Usage:
        """The tokens of all requests. A number is None if the provider did not report it for every request."""
        return self.reply.usage

    @property
    def origin(self) -> Origin:
        """The provider, operation, endpoint and model that returned the vectors."""
        return self.reply.origin

    @property
    def losses(self) -> tuple[Loss, ...]:
        """The losses of all requests, such as `dimensions` if the model ignores it. Equal losses are listed once."""
        return self.reply.losses

    @property
    def cost(self) -> Decimal | None:
        """The cost in US dollars if the package sabir-prices is installed and knows it, else None."""
        return installed_hooks().cost(self.reply)

    def view(self) -> "memoryview[float]":
        """Return a read-only view of the buffer with the format "f" and the shape of the vectors, without a copy."""
        floats = memoryview(self.buffer)
        return floats.cast("f", self.shape) if self.dimensions else floats.cast("f")

    @property
    def __array_interface__(self) -> dict[str, Any]:  # numpy's protocol: values of several types, hence Any
        """The buffer and its shape for numpy. https://numpy.org/doc/stable/reference/arrays.interface.html"""
        return {"shape": self.shape, "typestr": "=f4", "data": self.buffer, "version": 3}

    def nearest(self, vector: "Sequence[float] | memoryview[float]", count: int = 5) -> list[Match]:
        """Return the `count` texts whose vectors are most similar to `vector` by cosine, the most similar first.

        Computed in Python, about 10 million floats a second. For more vectors, use numpy or a database. Raises
        ValueError for a vector of another length.
        """
        if len(vector) != self.dimensions and len(self):
            raise ValueError(f"the vector has {len(vector)} numbers; expected {self.dimensions}, as these vectors have")
        target = list(vector)
        matches = (Match(position, _cosine(each.tolist(), target)) for position, each in enumerate(self))
        return nlargest(count, matches, key=lambda match: match.similarity)

    def __len__(self) -> int:
        """Return the number of vectors."""
        return len(self.buffer) // (4 * self.dimensions) if self.dimensions else 0

    def __getitem__(self, index: int) -> "memoryview[float]":
        """Return the vector of one text as a memoryview of floats, without a copy. Raises IndexError."""
        start = range(len(self))[index] * self.dimensions
        return memoryview(self.buffer).cast("f")[start : start + self.dimensions]

    def __iter__(self) -> "Iterator[memoryview[float]]":
        """Yield the vectors in the order of the texts."""
        return (self[index] for index in range(len(self)))

    def __repr__(self) -> str:
        """Return the shape, the model and the usage in one line."""
        return f"Embeddings(shape={self.shape}, model={self.origin.model!r}, usage={str(self.usage)!r})"


def _cosine(one: Sequence[float], other: Sequence[float]) -> float:
    lengths = math.hypot(*one) * math.hypot(*other)
    return sum(map(mul, one, other)) / lengths if lengths else 0.0
