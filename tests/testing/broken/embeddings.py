"""Providers with the operation "embeddings" that is broken in one way each."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from sabir.authoring import Decoded, DecodeScope, EmbeddingCall, EmbeddingVectors, Operation, RequestScope
from sabir.errors import CallError
from sabir_openai.embeddings import EMBEDDINGS
from sabir_testing import FULL

from tests.testing.harness import Breakage

BODY = '{"data": [{"index": 0, "embedding": [1, 0]}, {"index": 1, "embedding": [0, 1]}], "usage": {"prompt_tokens": 2}}'
ATTRIBUTES: Mapping[str, Any] = {"embedding_responses": {BODY: [[1, 0], [0, 1]]}}


def embedding(attributes: Mapping[str, Any] = ATTRIBUTES, **functions: Callable[..., Any]) -> Breakage:
    """Acme with OpenAI's operation, of which some fields are others: functions are given OpenAI's own first."""
    changes: dict[str, Any] = {name: partial(each, getattr(EMBEDDINGS, name)) for name, each in functions.items()}
    operation: Operation[EmbeddingCall, EmbeddingVectors] = replace(EMBEDDINGS, name="acme.embeddings", **changes)

    def with_operation(provider: Any) -> Any:
        provider.operations = lambda: {"embeddings": operation}
        return provider

    declared = {**carried(), "embeddings": FULL}
    return Breakage(provider=with_operation, attributes={"capabilities": declared, **attributes})


def carried() -> Mapping[str, Any]:
    """What the sound suite declares."""
    from tests.testing.harness import sound

    return sound().capabilities


def reversed_texts(own: Any, call: EmbeddingCall, scope: RequestScope) -> Any:
    return own(replace(call, texts=call.texts[::-1]), scope)


def without(name: str) -> Callable[..., Any]:
    """An encoder that forgets an argument of the call, without a loss."""
    return lambda own, call, scope: own(replace(call, **{name: None}), scope)


def first_vector(own: Any, body: bytes, scope: DecodeScope) -> Decoded[EmbeddingVectors]:
    decoded = own(body, scope)
    size = 4 * decoded.output.dimensions
    return Decoded(EmbeddingVectors(decoded.output.buffer[:size], decoded.output.dimensions), decoded.usage)


def without_status(own: Any, status: int, headers: Any, body: bytes, provider: str) -> CallError:
    return CallError("no", provider=provider)


BROKEN: Mapping[str, Breakage] = {
    "test_embeddings_have_their_grade": replace(embedding(), attributes=ATTRIBUTES),
    "test_an_embedding_request_has_the_texts_in_order": embedding(encode=reversed_texts),
    "test_an_embedding_request_loses_no_dimensions_silently": embedding(encode=without("dimensions")),
    "test_an_embedding_request_loses_no_kind_silently": embedding(encode=without("kind")),
    "test_embeddings_are_decoded_completely": embedding(decode=first_vector),
    "test_an_embedding_error_is_a_call_error": embedding(decode_error=without_status),
}
SOUND = embedding()
"""Acme with a sound operation."""
