"""A scripted embedding model: vectors that a test defines, for programs that use sabir-embeddings.

model = ScriptedEmbeddings({"cat": [1, 0], "dog": [0.9, 0.1]}, limits={"texts": 1})
search(Embedder(model))                         the program under test
model.texts, model.sent[0].kind                 what the program sent
"""

import json
from array import array
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping, Sequence
from threading import Lock
from typing import TypeAlias, cast

import sabir
from sabir.authoring import (
    Access,
    Decoded,
    DecodeScope,
    EmbeddingCall,
    EmbeddingVectors,
    ErrorTable,
    InProcessConnection,
    InProcessResponse,
    Operation,
    OperationClient,
    OperationRequest,
    Provider,
    RequestScope,
    Strict,
    WireRequest,
)

from sabir_testing.scripted.gate import ScriptMismatch

VectorFunction: TypeAlias = Callable[[str], Sequence[float]]
"""Returns the vector of a text. It may raise a CallError, which the call then raises."""
_NAME = "scripted"


class ScriptedEmbeddings(OperationClient[EmbeddingCall, EmbeddingVectors]):
    """An embedding model for tests. Pass it to `sabir_embeddings.Embedder`. Sends nothing over a network.

    `vectors` maps texts to their vectors, or is a function from a text to its vector. `limits` are the limits of a
    request, as in `Operation.limits`, and `unsupported` names what the model lacks: "kind" or "dimensions". A text
    without a vector raises ScriptMismatch. Each word of a text counts as a token.

    >>> from sabir_embeddings import Embedder
    >>> from sabir_testing import ScriptedEmbeddings
    >>> model = ScriptedEmbeddings({"cat": [1, 0], "dog": [0.9, 0.1]})
    >>> vectors = Embedder(model).embed_sync(["dog", "cat"], kind="document")
    >>> vectors[1].tolist(), model.texts, model.sent[0].kind
    ([1.0, 0.0], ('dog', 'cat'), 'document')
    """

    def __init__(
        self,
        vectors: Mapping[str, Sequence[float]] | VectorFunction,
        *,
        limits: Mapping[str, int] | None = None,
        unsupported: Sequence[str] = (),
        strict: Strict = False,
    ) -> None:
        self._vectors, self._unsupported = vectors, unsupported
        self._sent: list[EmbeddingCall] = []
        self._lock = Lock()
        operation: Operation[EmbeddingCall, EmbeddingVectors] = Operation(
            name=f"{_NAME}.embeddings",
            encode=self._encode,
            decode=_decode,
            decode_error=ErrorTable().decode,
            limits=limits or {},
        )
        super().__init__(cast("Provider", _ScriptedProvider(self._serve)), operation, "model", Access(), strict=strict)

    @property
    def sent(self) -> tuple[EmbeddingCall, ...]:
        """The requests so far, in order."""
        return tuple(self._sent)

    @property
    def texts(self) -> tuple[str, ...]:
        """The texts of all requests so far, in order."""
        return tuple(text for call in self._sent for text in call.texts)

    def _encode(self, call: EmbeddingCall, scope: RequestScope) -> OperationRequest:
        for name in self._unsupported:
            if getattr(call, name) is not None:
                scope.losses.add("dropped", f"the scripted model has no {name}", path=name)
        return OperationRequest("/embeddings", {"texts": list(call.texts), "kind": call.kind, "size": call.dimensions})

    def _serve(self, request: WireRequest) -> InProcessResponse:
        body = json.loads(request.body)
        with self._lock:
            self._sent.append(EmbeddingCall(tuple(body["texts"]), body["kind"], body["size"]))
        vectors = [b64encode(array("f", self._vector(text)).tobytes()).decode() for text in body["texts"]]
        words = sum(len(text.split()) for text in body["texts"])
        return InProcessResponse(200, [json.dumps({"vectors": vectors, "words": words}).encode()])

    def _vector(self, text: str) -> Sequence[float]:
        if callable(self._vectors):
            return self._vectors(text)
        if text not in self._vectors:
            known = ", ".join(map(repr, self._vectors)) or "none"
            raise ScriptMismatch(f"the program embeds {text!r}, which has no vector; the script has {known}")
        return self._vectors[text]


def _decode(body: bytes, scope: DecodeScope) -> Decoded[EmbeddingVectors]:
    answer = scope.read_object(body)
    usage = sabir.Usage(input_tokens=answer["words"], output_tokens=0)
    return Decoded(EmbeddingVectors.join([b64decode(vector) for vector in answer["vectors"]]), usage)


class _ScriptedProvider:
    """The provider of a scripted embedding model."""

    name, request_ids = _NAME, ()

    def __init__(self, serve: Callable[[WireRequest], InProcessResponse]) -> None:
        self._serve = serve

    def connect(self, access: Access) -> InProcessConnection:
        """Return a connection to the script."""
        return InProcessConnection(self._serve)

    def endpoint(self, access: Access) -> str:
        """Return the name of the provider, because there is no URL."""
        return f"{_NAME}:"

    def quirks(self, access: Access) -> frozenset[str]:
        """Return no quirks."""
        return frozenset()

    def models(self) -> tuple[sabir.ModelInfo, ...]:
        """Return no models."""
        return ()
