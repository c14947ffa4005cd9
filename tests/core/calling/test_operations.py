"""Operations besides chat: their requests are sent, retried, decoded and reported like those of a chat."""

import json
import logging
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest
import sabir
from sabir.authoring import DecodeScope, OperationClient, RequestScope, operation_client
from sabir.contract.operation import Decoded, Operation, OperationRequest
from sabir.errors import InvalidRequest, RenderingRefused, SettingsInvalid, StreamBroken
from sabir.vocabulary.reply import Usage

from tests.core.support import Answer, Loopback, Tiny, TinyDialect, failing

ONCE = sabir.Settings(retries=sabir.RetryPolicy(first_delay=0))


class Sum(NamedTuple):
    """The call: numbers to add, in a unit that the API does not have."""

    numbers: tuple[int, ...]
    unit: str = ""


def encode(call: Sum, scope: RequestScope) -> OperationRequest:
    if call.unit:
        scope.losses.add("dropped", "the API has no units", path="unit")
    return OperationRequest("/sum", {"model": scope.target.model, "numbers": list(call.numbers)})


def decode(body: bytes, scope: DecodeScope) -> Decoded[int]:
    fields = scope.read_object(body)
    return Decoded(fields["sum"], Usage(input_tokens=fields.get("tokens")), fields.get("model"))


def decode_error(status: int, headers: Any, body: bytes, provider: str) -> Any:
    return TinyDialect().decode_error(status, headers, body, provider)


SUM = Operation[Sum, int](name="tiny.sum", encode=encode, decode=decode, decode_error=decode_error)
EACH = Operation[Sum, int](name="tiny.each", encode=encode, decode=decode, decode_error=decode_error, reads_lines=True)
Clients = Callable[..., OperationClient[Sum, int]]


@pytest.fixture
def server() -> Iterator[Loopback]:
    """A server that answers with the answers of the list `answers`, the last one again and again."""
    answers: list[Answer] = []
    with Loopback(lambda path, body: answers.pop(0)) as loopback:
        loopback.answers = answers  # type: ignore[attr-defined]
        yield loopback


@pytest.fixture
def client(tiny: Tiny, server: Loopback) -> Iterator[Callable[..., OperationClient[Sum, int]]]:
    tiny.operations = lambda: {"sum": SUM, "each": EACH}  # type: ignore[attr-defined]
    opened: list[OperationClient[Sum, int]] = []

    def create(name: str, *answers: Answer, **how: Any) -> OperationClient[Sum, int]:
        server.answers += answers  # type: ignore[attr-defined]
        opened.append(operation_client("tiny:adder", name, base_url=server.url, settings=ONCE, **how))
        return opened[-1]

    yield create
    for each in opened:
        each.close()


def body_of(**fields: Any) -> Answer:
    return Answer([json.dumps(fields).encode()], headers={"x-request-id": "r1"})


async def test_a_call_returns_its_value_and_a_reply_without_messages(client: Clients, server: Loopback) -> None:
    llm = client("sum", failing(503), body_of(sum=5, tokens=2, model="adder-2"), body_of(sum=7))

    value, reply = llm.call_sync(Sum((2, 3), unit="m"))

    assert value == 5
    assert (reply.messages, reply.usage.input_tokens, reply.attempts) == ((), 2, 2)
    assert (reply.origin.dialect, reply.origin.reported_model) == ("tiny.sum", "adder-2")
    assert [loss.path for loss in reply.losses] == ["unit"]
    assert [json.loads(each.body) for each in server.received] == [{"model": "adder", "numbers": [2, 3]}] * 2
    async with llm:
        assert (await llm.call(Sum((3, 4)))).output == 7


def test_losses_are_refused_before_anything_is_sent(client: Clients, server: Loopback) -> None:
    with pytest.raises(RenderingRefused, match="the API has no units"):
        client("sum", strict=True).call_sync(Sum((1,), unit="m"))

    assert server.received == []


def test_an_error_of_the_operation_is_the_error_of_its_status(client: Clients) -> None:
    with pytest.raises(InvalidRequest, match="numbers are missing") as raised:
        client("sum", failing(400, "numbers are missing")).call_sync(Sum(()))

    assert (raised.value.provider, raised.value.status) == ("tiny", 400)


async def test_lines_are_read_as_they_arrive_in_any_chunks(client: Clients) -> None:
    chunks = [b'{"sum": 1}\n{"su', b'm": 2}', b"\n\n", b'{"sum": 3}']
    llm = client("each", failing(503), Answer(chunks), Answer(chunks))

    assert list(llm.each_sync(Sum(()))) == [1, 2, 3]
    async with llm:
        assert [value async for value in llm.each(Sum(()))] == [1, 2, 3]


def test_a_broken_answer_raises_after_the_lines_that_arrived(client: Clients) -> None:
    values = client("each", Answer([b'{"sum": 1}\n', b'{"su'], then="drop")).each_sync(Sum(()))

    assert next(values) == 1
    with pytest.raises(StreamBroken, match="broke off its answer"):
        next(values)


def test_hooks_and_logs_report_an_operation_like_a_chat(client: Clients, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "sabir"):
        client("sum", body_of(sum=1)).call_sync(Sum((1,), unit="m"))

    assert [record.getMessage() for record in caplog.records] == [
        "tiny:adder lost 1: dropped: unit: the API has no units"
    ]


def test_an_unknown_operation_is_refused_with_its_likely_name(client: Clients) -> None:
    client("sum")
    with pytest.raises(SettingsInvalid, match="has no operation 'sums'; did you mean 'sum'"):
        operation_client("tiny:adder", "sums")
    with pytest.raises(SettingsInvalid, match="provider 'local' has no operation 'sum'; its operations are none"):
        operation_client("local:m", "sum")
