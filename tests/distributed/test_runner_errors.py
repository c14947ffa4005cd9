"""What goes wrong with a remote call is raised by name: a policy's fault, a refusal, too many bytes (RN-19, RN-31)."""

import pytest
import sabir
from nats.aio.client import Client
from nats.aio.msg import Msg
from sabir.vocabulary.history import loads
from sabir_runtime import BaseContext, Batch, InMemoryRunner, PolicyFailed, UnknownOption
from sabir_runtime.distributed import EnvelopeInvalid, NoWorkers, PayloadTooLarge

from tests.distributed.contexts import Desk, Names, NewerDesk, call_of
from tests.distributed.support import QUICK, Own, Place, flushed, own, soon
from tests.distributed.test_envelopes import NEWER
from tests.servers.nats import nats_server


async def test_an_answer_that_cannot_be_read_is_an_error_of_its_own(client: Client, place: Place) -> None:
    async def answer(message: Msg) -> None:
        await message.respond(b'{"schema": 2, "kind": "answered"}')

    await client.subscribe(f"sabir.{place.name}.echo", cb=answer)
    await flushed(client)
    async with place.runner() as runner:
        with pytest.raises(EnvelopeInvalid, match="has schema 2, but this version reads schema 1"):
            await soon(Desk(runner).echo("hi"))


async def test_what_would_end_a_process_is_answered_as_a_failure_with_its_cause(place: Place) -> None:
    async def interrupt(ctx: BaseContext, observations: Batch, options: Names = None) -> Batch:
        raise KeyboardInterrupt from LookupError("no such file")

    async def choose(ctx: BaseContext, observations: Batch, options: Names = None) -> Batch:
        return [call_of("interrupt", "a"), call_of("interrupt", "b")]

    policies = {"interrupt": interrupt, "choose": choose}
    async with place.worker(own(**policies)), place.runner() as runner:
        ctx = Own(runner, **policies)
        with pytest.raises(PolicyFailed, match=r"KeyboardInterrupt: the policy raised KeyboardInterrupt\(\)") as failed:
            await soon(ctx.interrupt("x"))
        batch = await soon(ctx.choose("x", ["interrupt"]))

    assert isinstance(failed.value.__cause__, LookupError) and str(failed.value.__cause__) == "no such file"
    assert [message.result.error_type for message in batch if message.result] == ["KeyboardInterrupt"] * 2


async def test_what_the_other_side_does_not_have_is_refused_there_by_name(place: Place) -> None:
    async with place.worker(NewerDesk) as worker, place.runner(QUICK) as runner:
        ctx = Desk(runner)
        with pytest.raises(UnknownOption, match=rf"worker {worker.id} refused the request: NewerDesk binds no policy"):
            await soon(ctx.echo("x", ["double"]))
        with pytest.raises(NoWorkers, match=rf"policy 'double' of '{place.name}'"):
            await soon(ctx.double("x", number=1))


async def test_what_is_large_is_compressed_and_what_stays_too_large_names_the_limit(name: str) -> None:
    long = sabir.user("to be or not to be " * 10_000)
    ((large,), (small,)) = [await Desk(InMemoryRunner()).enlarge("x", size=size) for size in (100_000, 10)]
    with nats_server(max_payload=20_000) as url:
        place = Place(url, name)
        async with place.worker(Desk), place.runner() as runner:
            ctx = Desk(runner)
            history = [long, *loads(NEWER)]
            assert await soon(ctx.give_back(history)) == history
            limit = (
                r"policy '{}'.* has [\d,]+ bytes, [\d,]+ compressed; the server accepts 20,000; increase max_payload"
            )
            with pytest.raises(PayloadTooLarge, match="request for " + limit.format("echo")):
                await soon(ctx.echo([large]))
            with pytest.raises(PayloadTooLarge, match="the answer of " + limit.format("enlarge")):
                await soon(ctx.enlarge("x", size=100_000))
            assert (await soon(ctx.echo([small])))[0].text == small.text
