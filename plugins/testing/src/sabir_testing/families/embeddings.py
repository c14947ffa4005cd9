"""The cases of the operation "embeddings". For a provider without the operation, only its grade is checked.

call ──encode──▶ request: the texts in order; kind and dimensions, or a loss for each
response of the suite ──decode──▶ its vectors, all of them, in the order of the texts
"""

import json
from array import array
from collections.abc import Mapping

from sabir.authoring import Access, EmbeddingCall, EmbeddingVectors, Operation, OperationClient
from sabir.errors import CallError

from sabir_testing.kit.capabilities import FULL, REFUSED
from sabir_testing.kit.failures import expect
from sabir_testing.kit.suite import AdapterUnderTest, Suite, since_api

NAME = "embeddings"
TEXTS = ("kit text alpha", "kit text beta", "kit text gamma")
DIMENSIONS = 977
"""A number that occurs nowhere else in a request."""
ERROR_STATUS = 400

Embeddings = Operation[EmbeddingCall, EmbeddingVectors]


@since_api(2)
class EmbeddingCases(Suite):
    """The test cases of the family `embeddings`."""

    family = "embeddings"

    def test_embeddings_have_their_grade(self, subject: AdapterUnderTest) -> None:
        """The capability "embeddings" is FULL if `provider.operations()` has an operation of this name, else REFUSED.
        The operation's name is the provider's or vendor's name, a dot, and "embeddings", so that telemetry knows it.
        """
        operation = _operation_of(subject)
        subject.grade(NAME, FULL if operation else REFUSED)
        if operation is not None:
            what = f"the operation is called {operation.name!r}; expected a name like 'acme.embeddings'"
            expect(operation.name.partition(".")[2] == NAME, what)

    def test_an_embedding_request_has_the_texts_in_order(self, subject: AdapterUnderTest) -> None:
        """A request contains each text of its call once, in the order of the call, because the vectors come back in
        this order.
        """
        if operation := _operation_of(subject):
            body = _body(subject, operation, EmbeddingCall(TEXTS))
            places = [body.find(text) for text in TEXTS]
            is_ordered = -1 not in places and places == sorted(places) and all(body.count(text) == 1 for text in TEXTS)
            expect(is_ordered, "the request does not have each text once, in order", details={"the request": body})

    def test_an_embedding_request_loses_no_dimensions_silently(self, subject: AdapterUnderTest) -> None:
        """`dimensions` is a number of the request, or a loss with the path "dimensions" reports that the model has a
        fixed length.
        """
        if operation := _operation_of(subject):
            call = EmbeddingCall(TEXTS, dimensions=DIMENSIONS)
            is_sent = str(DIMENSIONS) in _body(subject, operation, call)
            _expect_sent_or_lost(subject, operation, call, "dimensions", is_sent=is_sent)

    def test_an_embedding_request_loses_no_kind_silently(self, subject: AdapterUnderTest) -> None:
        """The requests for queries and for documents differ, or a loss with the path "kind" reports that the model
        embeds both alike.
        """
        if operation := _operation_of(subject):
            query, document = EmbeddingCall(TEXTS, kind="query"), EmbeddingCall(TEXTS, kind="document")
            is_sent = _body(subject, operation, query) != _body(subject, operation, document)
            _expect_sent_or_lost(subject, operation, query, "kind", is_sent=is_sent)

    def test_embeddings_are_decoded_completely(self, subject: AdapterUnderTest) -> None:
        """The bodies in the suite's `embedding_responses` are decoded to the vectors that the suite states, in their
        order. Without such bodies, this case checks nothing.
        """
        if operation := _operation_of(subject):
            for body, vectors in subject.suite.embedding_responses.items():
                decoded = operation.decode(body.encode(), subject.scope())
                expected = b"".join(array("f", vector).tobytes() for vector in vectors)
                is_complete = decoded.output.buffer == expected and decoded.output.dimensions == len(vectors[0])
                expect(is_complete, f"decoded {decoded.output}, not the stated vectors", details={"the response": body})

    def test_an_embedding_error_is_a_call_error(self, subject: AdapterUnderTest) -> None:
        """`decode_error` returns a CallError with the status and the provider's name, also for a body that is not
        JSON.
        """
        if operation := _operation_of(subject):
            for body in (b"<html>", b"{}", b""):
                error = operation.decode_error(ERROR_STATUS, {}, body, subject.target.provider)
                facts = isinstance(error, CallError), error.status, error.provider
                what = f"the error for {body!r} is {error!r}; expected a CallError with status and provider"
                expect(facts == (True, ERROR_STATUS, subject.target.provider), what)


def _operation_of(subject: AdapterUnderTest) -> Embeddings | None:
    operations: Mapping[str, Embeddings] = getattr(subject.provider, "operations", dict)()
    return operations.get(NAME)


def _client(subject: AdapterUnderTest, operation: Embeddings) -> OperationClient[EmbeddingCall, EmbeddingVectors]:
    access: Access = subject.adapter.access
    return OperationClient(subject.provider, operation, subject.suite.embedding_model or subject.target.model, access)


def _body(subject: AdapterUnderTest, operation: Embeddings, call: EmbeddingCall) -> str:
    body = _client(subject, operation).render(call).body_bytes
    return json.dumps(json.loads(body), ensure_ascii=False)


def _expect_sent_or_lost(
    subject: AdapterUnderTest, operation: Embeddings, call: EmbeddingCall, name: str, *, is_sent: bool
) -> None:
    losses = _client(subject, operation).render(call).losses
    is_lost = any(loss.path == name for loss in losses)
    both = "both" if is_sent else "neither"
    expect(is_sent != is_lost, f"{name!r} must be either sent or reported as a loss, not {both}", losses=losses)
