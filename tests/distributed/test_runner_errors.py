"""What goes wrong with a remote call is raised by name: a policy's fault, a refusal, too many bytes (RN-19, RN-31)."""

import json
from collections.abc import Iterator

import pytest
import sabir
from nats.aio.client import Client
from nats.aio.msg import Msg
from sabir import Message
from sabir_distributed import (
    DistributedRunner,
    EnvelopeInvalid,
    NoWorkers,
    PayloadTooLarge,
    Worker,
)
from sabir_runtime import BaseContext, BaseRunner, Batch, InMemoryRunner, PolicyFailed, PolicyInvalid, UnknownOption

from tests.distributed.contexts import Desk, Names, NewerDesk, call_of
from tests.distributed.support import QUICK, flushed, soon
from tests.servers.nats import nats_server


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (b"not json", "no JSON"),
        (b'{"schema": 2, "kind": "answered"}', "has schema 2, and this version reads 1"),
        (b'{"schema": 1, "kind": "answered", "id": "x", "worker": "w", "result": 3}', "no envelope of schema 1"),
    ],
)
async def test_an_answer_that_cannot_be_read_is_an_error_of_its_own(
    client: Client, url: str, name: str, reply: bytes, reason: str
) -> None:
    """RN-31: no decode crash, and no waiting until the timeout."""

    async def answer(message: Msg) -> None:
        await message.respond(reply)

    await client.subscribe(f"sabir.{name}.echo", cb=answer)
    await flushed(client)
    async with DistributedRunner(url, name=name) as runner:
        with pytest.raises(EnvelopeInvalid, match=reason):
            await soon(Desk(runner).echo("hi"))


async def test_what_a_policy_raised_is_raised_here_by_its_name(desk: Desk) -> None:
    """RN-31: type, message and whether asking again may help."""
    with pytest.raises(PolicyFailed) as lasting:
        await soon(desk.fail("x"))
    with pytest.raises(PolicyFailed) as passing:
        await soon(desk.fail("x", passing=True))

    told = [(e.value.error_type, e.value.error_message, e.value.retryable) for e in (lasting, passing)]
    assert told == [("ZeroDivisionError", "no such quotient", False), ("Overheated", "too hot to answer", True)]


async def test_a_policy_that_would_end_its_process_fails_alone(desk: Desk) -> None:
    """A worker answers for many."""
    with pytest.raises(PolicyFailed, match=r"SystemExit\(3\)"):
        await soon(desk.leave("x"))

    assert (await soon(desk.echo("still there")))[0].text == "still there"


class Stop(BaseException):
    """What no handler of exceptions catches."""


class Hasty(BaseContext):
    """What is interrupted, called and chosen."""

    def __init__(self, runner: BaseRunner) -> None:
        super().__init__(runner)

        async def interrupt(ctx: Hasty, observations: Batch, options: Names = None) -> list[Message]:
            raise KeyboardInterrupt

        async def choose(ctx: Hasty, observations: Batch, options: Names = None) -> Batch:
            return [call_of("interrupt", "a"), call_of("interrupt", "b")]

        async def leave(ctx: Hasty, observations: Batch, options: Names = None) -> Batch:
            raise Stop("enough") from LookupError("no such file")

        self.interrupt, self.choose, self.leave = self._bind(interrupt), self._bind(choose), self._bind(leave)


async def test_an_interrupt_that_a_policy_raises_is_answered_as_its_failure(url: str, name: str) -> None:
    """RN-31: also that of an option, which runs in a task of its own; the worker goes on."""
    async with Worker(Hasty, url, name=name), DistributedRunner(url, name=name) as runner:
        with pytest.raises(PolicyFailed, match=r"KeyboardInterrupt: the policy raised KeyboardInterrupt\(\)"):
            await soon(Hasty(runner).interrupt("x"))
        batch = await soon(Hasty(runner).choose("x", ["interrupt"]))

    assert [message.result.error_type for message in batch if message.result] == ["KeyboardInterrupt"] * 2


async def test_a_policy_that_would_end_its_process_fails_with_its_cause(url: str, name: str) -> None:
    """As any other failure does."""
    async with Worker(Hasty, url, name=name), DistributedRunner(url, name=name) as runner:
        with pytest.raises(PolicyFailed) as failed:
            await soon(Hasty(runner).leave("x"))

    assert failed.value.error_type == "Stop"
    assert isinstance(failed.value.__cause__, LookupError)
    assert str(failed.value.__cause__) == "no such file"


async def test_an_unknown_option_is_refused_before_anything_is_sent(url: str, name: str) -> None:
    """RN-19: nobody listens, and nobody has to."""
    async with DistributedRunner(url, name=name) as runner:
        with pytest.raises(UnknownOption, match="binds no policy 'elsewhere'"):
            await Desk(runner).echo("x", ["elsewhere"])


async def test_what_the_other_side_does_not_have_is_refused_there_by_name(url: str, name: str) -> None:
    """Version skew: the worker's context binds another set, and takes other arguments."""
    async with Worker(NewerDesk, url, name=name) as worker, DistributedRunner(url, name=name, settings=QUICK) as runner:
        ctx = Desk(runner)
        with pytest.raises(UnknownOption, match=rf"worker {worker.id} refused the request: NewerDesk binds no policy"):
            await soon(ctx.echo("x", ["double"]))
        with pytest.raises(NoWorkers, match=rf"policy 'double' of '{name}'"):
            await soon(ctx.double("x", number=1))


async def test_arguments_that_do_not_fit_there_are_refused(client: Client, url: str, name: str) -> None:
    """Version skew of a parameter's type: a clear error of the worker's, not the policy's."""
    async with Worker(Desk, url, name=name):
        request = {"schema": 1, "id": "r", "context": name, "policy": "tell_day", "observations": [], "seconds_left": 5}
        raw = await client.request(
            f"sabir.{name}.tell_day", json.dumps({**request, "arguments": '{"day": "soon"}'}).encode()
        )

    error = json.loads(raw.data)["error"]
    assert (error["type"], error["raised_by"]) == ("PolicyInvalid", "worker")
    assert "arguments of policy 'tell_day' do not fit" in error["message"]


async def test_arguments_that_json_cannot_hold_are_refused_here(desk: Desk) -> None:
    """Before anything is sent."""
    with pytest.raises(PolicyInvalid, match="argument 'times'"):
        await desk.echo("x", times=object())


@pytest.fixture(scope="module")
def small_url() -> Iterator[str]:
    """A server that carries little."""
    with nats_server(max_payload=20_000) as url:
        yield url


async def test_large_messages_are_compressed_to_fit(small_url: str, name: str) -> None:
    """To and fro; what was compressed comes back as it was."""
    long = sabir.user("to be or not to be " * 10_000)
    async with Worker(Desk, small_url, name=name), DistributedRunner(small_url, name=name) as runner:
        assert await soon(Desk(runner).give_back([long])) == [long]


async def test_a_request_that_is_too_large_names_the_limit(small_url: str, name: str) -> None:
    """The connection survives it."""
    async with Worker(Desk, small_url, name=name), DistributedRunner(small_url, name=name) as runner:
        ctx = Desk(runner)
        ((large,), (small,)) = [await Desk(InMemoryRunner()).enlarge("x", size=size) for size in (100_000, 10)]
        with pytest.raises(
            PayloadTooLarge, match=r"request for policy 'echo'.*server carries 20,000; raise max_payload"
        ):
            await soon(ctx.echo([large]))
        assert (await soon(ctx.echo([small])))[0].text == small.text


async def test_an_answer_that_is_too_large_names_the_limit(small_url: str, name: str) -> None:
    """The caller learns of it, not only the worker's log."""
    async with Worker(Desk, small_url, name=name), DistributedRunner(small_url, name=name) as runner:
        with pytest.raises(PayloadTooLarge, match=r"the answer of policy 'enlarge'.*server carries 20,000"):
            await soon(Desk(runner).enlarge("x", size=100_000))
