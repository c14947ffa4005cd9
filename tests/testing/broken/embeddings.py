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


def clamped(own: Any, call: EmbeddingCall, scope: RequestScope) -> Any:
    """More dimensions than the model has are not sent, without a loss."""
    return own(replace(call, dimensions=min(call.dimensions, 4_096) if call.dimensions else None), scope)


def with_fields(change: Callable[[dict[str, Any]], dict[str, Any]]) -> Callable[..., Any]:
    """An encoder whose requests have other fields."""

    def encode(own: Any, call: EmbeddingCall, scope: RequestScope) -> Any:
        request = own(call, scope)
        return replace(request, body=change(dict(request.body)))

    return encode


def ignoring(own: Any, call: EmbeddingCall, scope: RequestScope) -> Any:
    """Vendor settings are neither read nor refused."""
    return own(call, replace(scope, vendor={}))


def anxious(own: Any, call: EmbeddingCall, scope: RequestScope) -> Any:
    """A kind is reported even if there is none."""
    scope.losses.add("dropped", "the API has no field for it", path="kind")
    return own(replace(call, kind=None), scope)


def uncounted(own: Any, body: bytes, scope: DecodeScope) -> Decoded[EmbeddingVectors]:
    """Tokens are counted as output."""
    decoded = own(body, scope)
    return Decoded(decoded.output, decoded.usage.model_copy(update={"input_tokens": 0, "output_tokens": 2}))


def first_vector(own: Any, body: bytes, scope: DecodeScope) -> Decoded[EmbeddingVectors]:
    decoded = own(body, scope)
    size = 4 * decoded.output.dimensions
    return Decoded(EmbeddingVectors(decoded.output.buffer[:size], decoded.output.dimensions), decoded.usage)


def without_status(own: Any, status: int, headers: Any, body: bytes, provider: str) -> CallError:
    return CallError("no", provider=provider)


NAMED = "test_an_embedding_request_names_its_model"
DIMENSIONS = "test_an_embedding_request_loses_no_dimensions_silently"
DECODED = "test_embeddings_are_decoded_completely"
BROKEN: Mapping[str, Breakage] = {
    "test_embeddings_have_their_grade": replace(embedding(), attributes=ATTRIBUTES),
    "test_an_embedding_request_has_the_texts_in_order": embedding(encode=reversed_texts),
    DIMENSIONS: embedding(encode=without("dimensions")),
    "test_an_embedding_request_loses_no_kind_silently": embedding(encode=without("kind")),
    "test_an_embedding_request_of_texts_loses_nothing": embedding(encode=anxious),
    NAMED: embedding(encode=with_fields(lambda body: {**body, "model": "other"})),
    "test_an_unknown_setting_of_embeddings_is_refused": embedding(encode=ignoring),
    DECODED: embedding(decode=first_vector),
    "test_an_embedding_error_is_a_call_error": embedding(decode_error=without_status),
}
FAULTS: Mapping[tuple[str, str], Breakage] = {
    (NAMED, "a field has no name"): embedding(encode=with_fields(lambda body: {**body, "": 1})),
    (NAMED, "the path has no slash"): embedding(encode=lambda own, *call: replace(own(*call), path="embeddings")),
    (DIMENSIONS, "too many become fewer"): embedding(encode=clamped),
    (DECODED, "tokens are not counted"): embedding(decode=uncounted),
}
"""(Case, the fault) → an adapter that the case stops."""
SOUND = embedding()
"""Acme with a sound operation."""
