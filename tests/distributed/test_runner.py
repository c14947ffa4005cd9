"""A context whose policies run at workers: the same answers, errors with names, one of each (RN-28 … RN-31, RN-21)."""

import asyncio
import datetime
import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import nats
import pytest
import sabir
from nats.aio.client import Client
from nats.aio.msg import Msg
from sabir import Message
from sabir.history import loads
from sabir_distributed import (
    CallSettings,
    DistributedRunner,
    EnvelopeInvalid,
    NoServer,
    NoWorkers,
    PayloadTooLarge,
    RequestTimedOut,
    Worker,
    WorkerSettings,
)
from sabir_runtime import InMemoryRunner, PolicyFailed, PolicyInvalid, RuntimeFault, UnknownOption

from tests.distributed.contexts import Desk, NewerDesk
from tests.distributed.support import QUICK, Gate, Gated, flushed, soon, until
from tests.distributed.test_envelopes import NEWER
from tests.servers.nats import nats_server

HISTORY = [sabir.system("Be brief."), sabir.user("ab", sabir.image("https://example.org/a.png")), sabir.user("hm")]


@pytest.fixture
async def desk(url: str, name: str) -> AsyncIterator[Desk]:
    """A context at a worker."""
    async with Worker(Desk, url, name=name), DistributedRunner(url, name=name, settings=QUICK) as runner:
        yield Desk(runner)


@pytest.fixture
async def client(url: str) -> AsyncIterator[Client]:
    """A bare client, to see what is on the wire and to speak there."""
    client = await nats.connect(url)
    yield client
    await client.close()


def contents(messages: list[Message]) -> list[Any]:
    """What messages say, without the ids that differ each time."""
    return [(message.policy, message.role_hint_for_llm, message.payload) for message in messages]


@pytest.mark.parametrize(
    ("policy", "options", "arguments"),
    [
        ("echo", None, {"times": 3}),
        ("give_back", None, {}),
        ("tell_options", ["echo", "double"], {}),
        ("tell_options", [], {}),
        ("tell_options", None, {}),
        ("tell_day", None, {"day": datetime.date(2026, 2, 28)}),
        ("choose", ["double", "broken"], {}),
        ("choose", None, {}),
    ],
)
async def test_the_same_policies_answer_alike_here_and_there(
    desk: Desk, policy: str, options: list[str] | None, arguments: dict[str, Any]
) -> None:
    """RN-21: options are answered at the worker: results in call order, failures and refusals as results (UP-05)."""
    here = Desk(InMemoryRunner())

    expected = await getattr(here, policy)(HISTORY, options, **arguments)
    got = await soon(getattr(desk, policy)(HISTORY, options, **arguments))

    assert contents(got) == contents(expected)
    assert isinstance(got, list)


async def test_messages_come_back_unchanged_with_what_is_unknown_in_them(desk: Desk) -> None:
    """RN-29: through caller, worker and back."""
    history = [*HISTORY, *loads(NEWER)]

    assert await soon(desk.give_back(history)) == history


async def test_an_option_is_named_by_its_attribute(url: str, name: str) -> None:
    """D-09: two contexts bind the same name to different functions."""
    async with Worker(NewerDesk, url, name=name), DistributedRunner(url, name=name) as runner:
        (said,) = await soon(NewerDesk(runner).echo("x", ["twice"]))

    assert said.text == "['twice']"


async def test_two_contexts_answer_side_by_side_each_to_its_own_callers(url: str, name: str) -> None:
    """Two versions of a context: the name tells them apart, one server carries both."""
    older, newer = f"{name}-v1", f"{name}-v2"
    async with Worker(Desk, url, name=older), Worker(NewerDesk, url, name=newer):
        async with DistributedRunner(url, name=older) as runner, DistributedRunner(url, name=newer) as other:
            said = await soon(asyncio.gather(*(Desk(runner).echo("x") for _ in range(20))))
            newly = await soon(asyncio.gather(*(NewerDesk(other).echo("x") for _ in range(20))))

    assert {message.text for (message,) in said} == {"x"}
    assert {message.text for (message,) in newly} == {"None"}


async def test_a_context_goes_by_the_name_of_its_class(url: str) -> None:
    """On both sides, unless a name is given."""
    gate = Gate()
    gate.opened.set()
    async with Worker(gate.context, url) as worker, DistributedRunner(url) as runner:
        (said,) = await soon(Gated(runner).wait("x"))

    assert (worker.name, said.text) == ("Gated", "X")


async def test_a_request_is_one_message_that_anybody_can_answer(client: Client, url: str, name: str) -> None:
    """RN-28: {policy, observations, options, arguments}, and `result` in the answer; JSON, whoever wrote the worker."""
    asked: list[dict[str, Any]] = []

    async def answer(message: Msg) -> None:
        document = json.loads(message.data)
        asked.append(document)
        said = {"policy": "parrot", "payload": {"kind": "parts", "parts": [{"kind": "text", "text": "hello"}]}}
        reply = {"schema": 1, "kind": "answered", "id": document["id"], "worker": "w", "result": [said], "newer": 1}
        await message.respond(json.dumps(reply).encode())

    await client.subscribe(f"sabir.{name}.echo", cb=answer)
    await flushed(client)
    async with DistributedRunner(url, name=name) as runner:
        (said,) = await soon(Desk(runner).echo("hi", ["double"], times=2))

    (document,) = asked
    assert said.text == "hello"
    assert (document["context"], document["policy"], document["options"]) == (name, "echo", ["double"])
    assert json.loads(document["arguments"]) == {"times": 2}
    assert 0 < document["seconds_left"] <= CallSettings().timeout


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


async def test_nobody_at_all_is_an_error_after_the_patience(url: str, name: str) -> None:
    """With the remedy."""
    async with DistributedRunner(url, name=name, settings=QUICK) as runner:
        with pytest.raises(NoWorkers, match=rf"policy 'echo' of '{name}': no worker answers.*sabir worker"):
            await soon(Desk(runner).echo("x"))


async def test_a_worker_that_comes_within_the_patience_answers(url: str, name: str) -> None:
    """Workers and callers may start in any order."""
    async with DistributedRunner(url, name=name, settings=CallSettings(patience=20)) as runner:
        asked = asyncio.ensure_future(Desk(runner).echo("x"))
        await until(lambda: runner._line is not None and runner._line._exchanges)
        async with Worker(Desk, url, name=name):
            assert (await soon(asked))[0].text == "x"


async def test_a_call_that_takes_too_long_is_an_error_and_is_stopped_at_the_worker(url: str, name: str) -> None:
    """The worker learns how long the caller waits, and hears when it gave up."""
    gate = Gate()
    settings = CallSettings(timeout=0.5)
    async with Worker(gate.context, url, name=name, settings=WorkerSettings(accept_after=0.0)) as worker:
        async with DistributedRunner(url, name=name, settings=settings) as runner:
            with pytest.raises(RequestTimedOut, match=rf"no answer within 0.5 s; worker {worker.id} was at it"):
                await soon(Gated(runner).wait("x"))
            await until(lambda: gate.cancelled)

    assert (gate.began, gate.ended) == (["x"], [])


async def test_a_call_outlasts_every_silence_while_its_worker_beats(client: Client, url: str, name: str) -> None:
    """A long policy is no dead worker, and what is no beat disturbs nothing."""
    gate = Gate()
    strict = CallSettings(silence=0.6, attempts=1)
    async with Worker(gate.context, url, name=name, settings=WorkerSettings(accept_after=0.0, beat=0.05)) as worker:
        async with DistributedRunner(url, name=name, settings=strict) as runner:
            asked = asyncio.ensure_future(Gated(runner).wait("x"))
            await until(lambda: runner._line is not None and runner._line._exchanges)
            assert runner._line is not None
            (exchange,) = runner._line._exchanges.values()
            await client.publish(f"{runner._line._inbox}.alive", b"no beat")
            await until(lambda: exchange.worker == worker.id)
            first = exchange._due
            await until(lambda: asked.done() or exchange._due > first + 0.8)
            gate.opened.set()
            (said,) = await soon(asked)

    assert said.text == "X"


async def test_a_cancelled_call_is_cancelled_at_its_worker(url: str, name: str) -> None:
    """Before it was accepted as well as after: every worker of the context hears of it."""
    gate = Gate()
    patient = WorkerSettings(accept_after=1000)
    async with Worker(gate.context, url, name=name, settings=patient), Worker(Desk, url, name=f"{name}-other"):
        async with DistributedRunner(url, name=name) as runner:
            asked = asyncio.ensure_future(Gated(runner).wait("x"))
            await until(lambda: gate.began)
            asked.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asked
            await until(lambda: gate.cancelled)


async def test_calls_beyond_the_limit_in_flight_wait_for_a_place(url: str, name: str) -> None:
    """Back-pressure on the caller's side: the worker never sees more at once."""
    gate = Gate()
    settings = CallSettings(in_flight=3)
    async with Worker(gate.context, url, name=name), DistributedRunner(url, name=name, settings=settings) as runner:
        ctx = Gated(runner)
        asked = [asyncio.ensure_future(ctx.wait(str(number))) for number in range(9)]
        await until(lambda: len(gate.began) == 3)
        await soon(_round_trip(runner))
        assert len(gate.began) == 3

        gate.opened.set()
        said = await soon(asyncio.gather(*asked))

    assert [message.text for (message,) in said] == [str(number) for number in range(9)]


async def test_waiting_for_a_place_ends_with_the_time_of_a_call(url: str, name: str) -> None:
    """Nobody waits for ever, and the error says for what."""
    gate = Gate()
    settings = CallSettings(in_flight=1, timeout=0.2)
    async with Worker(gate.context, url, name=name), DistributedRunner(url, name=name, settings=settings) as runner:
        ctx = Gated(runner)
        said = await soon(asyncio.gather(ctx.wait("a"), ctx.wait("b"), return_exceptions=True))

    assert [type(error) for error in said] == [RequestTimedOut, RequestTimedOut]
    assert "waited in vain for one of 1 places in flight" in str(said[1])


async def test_a_busy_worker_gets_everything_in_the_end(url: str, name: str) -> None:
    """Back-pressure on the worker's side: more calls than it takes at once all succeed, and it never has more."""
    async with Worker(Desk, url, name=name, settings=WorkerSettings(concurrency=2)) as worker:
        most = 0
        taken = worker._begin

        def begin(*given: Any) -> None:
            nonlocal most
            taken(*given)
            most = max(most, len(worker.requests))

        worker._begin = begin  # type: ignore[method-assign]
        async with DistributedRunner(url, name=name) as runner:
            ctx = Desk(runner)
            said = await soon(asyncio.gather(*(ctx.work("x", number=number) for number in range(40))))

    assert [int(message.text.split()[0]) for (message,) in said] == list(range(40))
    assert most == 2


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


async def test_a_missing_server_is_an_error_that_shows_no_password() -> None:
    """Within the patience, with where it should be and what to do."""
    runner = DistributedRunner("nats://ada:secret@127.0.0.1:1", settings=CallSettings(patience=0.2))
    with pytest.raises(
        NoServer, match=r"no NATS server at nats://127.0.0.1:1 within 0.2 s:.*start nats-server"
    ) as missing:
        await soon(Desk(runner).echo("x"))

    assert "secret" not in f"{missing.value} {runner!r}"
    await runner.aclose()


async def test_a_client_of_ones_own_is_used_and_left_open(client: Client, url: str, name: str) -> None:
    """Its owner chose its credentials, and closes it."""
    async with Worker(Desk, client, name=name):
        async with DistributedRunner(client, name=name) as runner:
            assert (await soon(Desk(runner).echo("x")))[0].text == "x"

    assert client.is_connected
    assert not client._subs


async def test_a_closed_runner_connects_again_when_it_is_asked_again(url: str, name: str) -> None:
    """Closing is for connections, not for good."""
    async with Worker(Desk, url, name=name):
        runner = DistributedRunner(url, name=name)
        ctx = Desk(runner)
        for _ in range(2):
            assert (await soon(ctx.echo("x")))[0].text == "x"
            await ctx.aclose()


async def test_closing_ends_what_is_under_way(url: str, name: str) -> None:
    """With a clear error, and not by waiting for what cannot come any more."""
    gate = Gate()
    async with Worker(gate.context, url, name=name):
        runner = DistributedRunner(url, name=name)
        asked = asyncio.ensure_future(Gated(runner).wait("x"))
        await until(lambda: gate.began)
        await runner.aclose()
        with pytest.raises(NoServer, match="the connection was closed"):
            await soon(asked)
        gate.opened.set()


def test_a_runner_serves_one_event_loop_after_the_other(url: str, name: str) -> None:
    """What was closed in one loop connects in the next; what is left open in a live one says so."""
    runner = DistributedRunner(url, name=name)
    ctx = Desk(runner)

    async def ask() -> str:
        async with Worker(Desk, url, name=name), runner:
            return (await soon(ctx.echo("x")))[0].text

    assert [asyncio.run(ask()) for _ in range(2)] == ["x", "x"]

    async def ask_from_two() -> None:
        async with Worker(Desk, url, name=name), runner:
            await soon(ctx.echo("x"))
            with pytest.raises(RuntimeFault, match="is connected in another event loop; use one runner for each"):
                await asyncio.to_thread(lambda: asyncio.run(_call(ctx)))

    asyncio.run(ask_from_two())


@pytest.mark.parametrize("name", ["", "a.b", "two words", "all*", ">"])
def test_a_name_that_no_subject_can_hold_is_refused(name: str) -> None:
    """A dot or a wildcard would reach other contexts' workers."""
    for make in (
        lambda: DistributedRunner("nats://127.0.0.1:1", name=name),
        lambda: Worker(Desk, "nats://x", name=name),
    ):
        with pytest.raises(RuntimeFault, match="is no name for a context"):
            make()


async def _call(ctx: Desk) -> list[Message]:
    return await ctx.echo("x")


async def _round_trip(runner: DistributedRunner) -> None:
    """Once to the server and back: what was sent before has arrived."""
    assert runner._line is not None
    await runner._line.connection.flush()
