"""The cases of the operation "embeddings". For a provider without the operation, only its grade is checked.

call ──encode──▶ request: the model, the texts in order; kind and dimensions, or a loss for each
response of the suite ──decode──▶ its vectors, all of them, in the order of the texts, and its number of tokens
"""

import json
import re
from array import array
from collections.abc import Mapping
from urllib.parse import unquote

from sabir import Rendering, Settings, Usage
from sabir.authoring import Access, EmbeddingCall, EmbeddingVectors, Operation, OperationClient
from sabir.errors import CallError, SettingsInvalid

from sabir_testing.families.changed_replies import side_of_usage
from sabir_testing.kit.capabilities import FULL, REFUSED
from sabir_testing.kit.failures import ConformanceFailure, expect
from sabir_testing.kit.suite import AdapterUnderTest, Suite, since_api
from sabir_testing.reading import format_path, paths_in, walk

NAME = "embeddings"
TEXTS = ("kit text alpha", "kit text beta", "kit text gamma")
DIMENSIONS = (977, 9_770_001)
"""Numbers that occur nowhere else in a request. No model has vectors of the second length."""
UNKNOWN_SETTING = "kit_no_such_setting"
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

    def test_an_embedding_request_names_its_model(self, subject: AdapterUnderTest) -> None:
        """The model is in the body or in the path of a request, whose path begins with a slash. Each field of the body
        has a name.
        """
        if operation := _operation_of(subject):
            client = _client(subject, operation)
            request, model = client.render(EmbeddingCall(TEXTS, dimensions=DIMENSIONS[0])), client.target.model
            what = f"the path of an embedding request is {request.path!r}; expected a path such as '/embeddings'"
            expect(re.match(r"/[^\s/]", request.path), what)
            what = f"the model {model!r} is neither in the path {request.path!r} nor in the body; add it to one"
            expect(model in unquote(request.path) or model in _body_text(request), what, rendering=request)
            unnamed = [path for path in paths_in(json.loads(request.body_bytes)) if path and path[-1] == ""]
            where = " and ".join(format_path(path[:-1]) or "the body itself" for path in unnamed)
            what = f"a field of an embedding request has an empty name, in {where}; name the field"
            expect(not unnamed, what, rendering=request)

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
        fixed length, or shorter vectors. This is tested with a usual length and with one that no model has.
        """
        if operation := _operation_of(subject):
            for dimensions in DIMENSIONS:
                call = EmbeddingCall(TEXTS, dimensions=dimensions)
                is_sent = str(dimensions) in _body(subject, operation, call)
                _expect_sent_or_lost(subject, operation, call, "dimensions", is_sent=is_sent)

    def test_an_embedding_request_of_texts_loses_nothing(self, subject: AdapterUnderTest) -> None:
        """A call without `kind` and `dimensions` has no losses."""
        if operation := _operation_of(subject):
            losses = _client(subject, operation).render(EmbeddingCall(TEXTS)).losses
            what = "an embedding request reports losses, although the call sets neither `kind` nor `dimensions`"
            expect(not losses, f"{what}; add a loss only for what is not None", losses=losses)

    def test_an_embedding_request_loses_no_kind_silently(self, subject: AdapterUnderTest) -> None:
        """The requests for queries and for documents differ, or a loss with the path "kind" reports that the model
        embeds both alike.
        """
        if operation := _operation_of(subject):
            query, document = EmbeddingCall(TEXTS, kind="query"), EmbeddingCall(TEXTS, kind="document")
            is_sent = _body(subject, operation, query) != _body(subject, operation, document)
            _expect_sent_or_lost(subject, operation, query, "kind", is_sent=is_sent)

    def test_an_unknown_setting_of_embeddings_is_refused(self, subject: AdapterUnderTest) -> None:
        """An unknown vendor setting of an embedding request raises SettingsInvalid, which names the setting."""
        if operation := _operation_of(subject):
            settings = Settings(vendor={subject.target.provider: {UNKNOWN_SETTING: 1}})
            try:
                rendering = _client(subject, operation, settings).render(EmbeddingCall(TEXTS))
            except SettingsInvalid as error:
                what = (
                    f"the SettingsInvalid for the unknown vendor setting {UNKNOWN_SETTING!r} does not name it: {error}"
                )
                expect(UNKNOWN_SETTING in str(error), what)
                return
            what = f"an embedding request accepts the unknown vendor setting {UNKNOWN_SETTING!r}; raise SettingsInvalid"
            raise ConformanceFailure(what, rendering=rendering)

    def test_embeddings_are_decoded_completely(self, subject: AdapterUnderTest) -> None:
        """The bodies in the suite's `embedding_responses` are decoded to the vectors that the suite states, in their
        order. If a number in a body has a name such as "input_tokens" or "prompt_tokens", `usage.input_tokens` is a
        number of the body, and `usage.output_tokens` is 0 or None. Without such bodies, this case checks nothing.
        """
        if operation := _operation_of(subject):
            for body, vectors in subject.suite.embedding_responses.items():
                decoded = operation.decode(body.encode(), subject.scope())
                expected = b"".join(array("f", vector).tobytes() for vector in vectors)
                is_complete = decoded.output.buffer == expected and decoded.output.dimensions == len(vectors[0])
                expect(is_complete, f"decoded {decoded.output}, not the stated vectors", details={"the response": body})
                _check_embedding_usage(decoded.usage, body)

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


def _client(
    subject: AdapterUnderTest, operation: Embeddings, settings: Settings | None = None
) -> OperationClient[EmbeddingCall, EmbeddingVectors]:
    access: Access = subject.adapter.access
    model = subject.suite.embedding_model or subject.target.model
    return OperationClient(subject.provider, operation, model, access, settings=settings)


def _body(subject: AdapterUnderTest, operation: Embeddings, call: EmbeddingCall) -> str:
    return _body_text(_client(subject, operation).render(call))


def _body_text(request: Rendering) -> str:
    return json.dumps(json.loads(request.body_bytes), ensure_ascii=False)


def _check_embedding_usage(usage: Usage, body: str) -> None:
    """Raise ConformanceFailure if the number of input tokens in a response is not read, or output tokens are."""
    leaves = [leaf for leaf in walk(json.loads(body)) if leaf.path and not leaf.is_name]
    named = {leaf.value for leaf in leaves if side_of_usage(str(leaf.path[-1])) == "input_tokens"}
    counts = [count for count in named if isinstance(count, int)]
    actual = usage.input_tokens
    what = f"usage.input_tokens of embeddings is {actual}; expected {' or '.join(map(str, counts))}, from the"
    expect(not counts or actual in counts, f"{what} response", details={"the response": body})
    what = f"usage.output_tokens of embeddings is {usage.output_tokens}; expected 0 or None, because vectors are not"
    expect(not usage.output_tokens, f"{what} tokens", details={"the response": body})


def _expect_sent_or_lost(
    subject: AdapterUnderTest, operation: Embeddings, call: EmbeddingCall, name: str, *, is_sent: bool
) -> None:
    losses = _client(subject, operation).render(call).losses
    is_lost = any(loss.path == name for loss in losses)
    both = "both" if is_sent else "neither"
    expect(is_sent != is_lost, f"{name!r} must be either sent or reported as a loss, not {both}", losses=losses)
