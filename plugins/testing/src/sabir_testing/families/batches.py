"""The cases of operations and their limits, and of batches. For a provider without them, nothing is checked.

provider.operations ──▶ limits; names of operations that belong together
two requests and a refused one ──create──▶ status ──results──▶ two replies and an error
                                            only if the service is on this machine (`asks_live`)
"""

from collections.abc import Mapping
from typing import Any

from sabir.authoring import BatchAnswer, BatchOrder, BatchRequest, BatchStatus, Operation, OperationClient, Provider
from sabir.errors import InvalidRequest

from sabir_testing.histories.samples import message_by
from sabir_testing.kit.asking import RecordingProvider
from sabir_testing.kit.failures import expect
from sabir_testing.kit.service import Service
from sabir_testing.kit.suite import AdapterUnderTest, Suite, since_api

NEEDED = ("batches.create", "batches.status", "batches.cancel")
"""The operations without which a batch cannot be used. The operation that reads the results has any name."""
TEXTS: Mapping[str, str] = {"kit-first": "One kit word.", "kit-second": "Another kit word."}
"""Key of a request in a batch → the user's text."""
REFUSED = "kit-refused"
"""The key of the request that the service refuses."""

Operations = Mapping[str, Operation[Any, Any]]


@since_api(2)
class BatchCases(Suite):
    """The test cases of the family `contract` about operations and batches."""

    family = "contract"

    def test_the_operations_of_batches_belong_together(self, subject: AdapterUnderTest) -> None:
        """If `provider.operations()` has an operation of batches, it has all that a program needs to create, observe
        and cancel one. The name of each operation is the provider's or vendor's name, a dot, and its key.
        """
        operations = _operations_of(subject)
        missing = [name for name in NEEDED if operations and name not in operations]
        expect(not missing, f"Provider.operations() has operations of batches, but not {', '.join(missing)}; add them")
        for key, operation in operations.items():
            what = f"the operation {key!r} is called {operation.name!r}; expected a name like 'acme.{key}'"
            expect(operation.name.partition(".")[2] == key, what)

    def test_the_limits_of_operations_are_positive(self, subject: AdapterUnderTest) -> None:
        """The limits of each operation in `provider.operations()` have names, and are whole numbers from 1. With the
        limit 0, a program could not send anything.
        """
        every: Operations = getattr(subject.provider, "operations", dict)()
        for key, operation in every.items():
            limits = operation.limits.items()
            wrong = {name: limit for name, limit in limits if not name or type(limit) is not int or limit < 1}
            expect(not wrong, f"the operation {key!r} has the limits {wrong}; expected names and whole numbers from 1")

    def test_a_batch_is_answered(self, subject: AdapterUnderTest) -> None:
        """A batch of two requests and one that the service refuses, sent to a service on this machine, ends, and the
        numbers in its status are those of its requests. Its results are for each key the reply to the key's own text
        (compared with `answers_repeat`), or the error. For a service elsewhere, nothing is sent.
        """
        operations = _operations_of(subject)
        if not subject.suite.asks_live or not operations or "batches.upload" in operations:
            return
        provider = RecordingProvider(subject.provider)
        status = _create_batch(subject, provider, operations)
        if not status.is_final:
            return
        facts = (status.phase, status.total, status.succeeded, status.failed)
        what = f"the batch of two requests and one that is refused has the status {facts}; expected"
        expect(facts == ("ended", 3, 2, 1), f"{what} ('ended', 3, 2, 1)")
        answers = [
            answer
            for each in status.results
            for answer in _answers(subject, provider, operations, each.operation, each.id)
        ]
        keys = [answer.key for answer in answers]
        expect(sorted(keys) == sorted((*TEXTS, REFUSED)), f"the results of the batch have the keys {keys}")
        for answer in answers:
            (_check_refusal if answer.key == REFUSED else _check_reply)(subject, answer)
        statuses = [response.exchange().status for response in provider.answers]
        what = f"the responses of operations to a service on this machine have the statuses {statuses}; expected 200"
        expect(set(statuses) == {200}, what)


def _create_batch(subject: AdapterUnderTest, provider: Provider, operations: Operations) -> BatchStatus:
    """Create the batch of a request for each text, and of one that is refused. Return its status, which `create`,
    `status` and, once it is over, `cancel` report alike.
    """
    refused = Service(subject).question("bad_request")
    renderings = {key: subject.must_render([message_by("user", text)]) for key, text in TEXTS.items()}
    renderings[REFUSED] = subject.must_render(refused.messages, (), refused.settings)
    requests = tuple(BatchRequest(key, each.path, each.body_bytes) for key, each in renderings.items())
    created: BatchStatus = (
        _client_of(subject, provider, operations, "batches.create").call_sync(BatchOrder(requests)).output
    )
    status: BatchStatus = _client_of(subject, provider, operations, "batches.status").call_sync(created.id).output
    expect(status.id == created.id, f"the status of the batch {created.id!r} has the id {status.id!r}")
    if status.is_final:
        cancelled = _client_of(subject, provider, operations, "batches.cancel").call_sync(status.id).output
        what = f"cancelling the batch {status.id!r}, which is over, returns {cancelled}; expected {status}, or None"
        expect(cancelled in (None, status), what)
    return status


def _check_reply(subject: AdapterUnderTest, answer: BatchAnswer) -> None:
    """Raise ConformanceFailure if an answer of a batch is not the reply to the text of its key."""
    reply = subject.dialect.decode(answer.body, subject.scope()) if answer.status == 200 else None
    what = f"the answer to {answer.key!r} in the results of the batch has the status {answer.status}"
    is_reply = reply is not None and bool(reply.messages)
    expect(is_reply, f"{what}; expected a body that decode reads", details={"the body": answer.body})
    if subject.suite.answers_repeat and reply is not None:
        alone = subject.adapter.complete_sync([message_by("user", TEXTS[answer.key])])
        what = f"the answer to {answer.key!r} in the results of the batch is {reply.text!r}, but without a batch"
        expect(reply.text == alone.text, f"{what} {alone.text!r}; expected the same")


def _check_refusal(subject: AdapterUnderTest, answer: BatchAnswer) -> None:
    """Raise ConformanceFailure if an answer of a batch is not the error of a refused request."""
    what = f"the answer to the refused request in the results of the batch has the status {answer.status}"
    expect(answer.status >= 400, f"{what}; expected the status of the error", details={"the body": answer.body})
    error = subject.dialect.decode_error(answer.status, {}, answer.body, subject.target.provider)
    what = f"the body of the refused request in the results of the batch is decoded to {error!r}; expected an"
    expect(isinstance(error, InvalidRequest), f"{what} InvalidRequest", details={"the body": answer.body})


def _operations_of(subject: AdapterUnderTest) -> Operations:
    """Return the provider's operations of batches; {} if it has none."""
    operations: Operations = getattr(subject.provider, "operations", dict)()
    return {key: operation for key, operation in operations.items() if key.startswith("batches.")}


def _client_of(
    subject: AdapterUnderTest, provider: Provider, operations: Operations, key: str
) -> OperationClient[Any, Any]:
    return OperationClient(provider, operations[key], subject.target.model, subject.adapter.access)


def _answers(
    subject: AdapterUnderTest, provider: Provider, operations: Operations, key: str, results_id: str
) -> list[BatchAnswer]:
    expect(key in operations, f"the status of the batch names the operation {key!r}, which the provider does not have")
    client = _client_of(subject, provider, operations, key)
    return list(client.each_sync(results_id) if operations[key].reads_lines else client.call_sync(results_id).output)
