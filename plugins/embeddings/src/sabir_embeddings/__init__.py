"""Vectors of texts, from the embedding model of any provider.

vectors = embedder("openai:text-embedding-3-small").embed_sync(texts, kind="document")
vectors.shape, vectors[0], numpy.asarray(vectors), vectors.usage, vectors.losses
"""

from sabir_embeddings.embedder import Embedder, embedder
from sabir_embeddings.vectors import Embeddings, Match

__all__ = ["Embedder", "Embeddings", "Match", "embedder"]
