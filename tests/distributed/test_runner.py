"""A context whose policies run at workers: the same answers, errors with names (RN-19, RN-21, RN-28 … RN-31)."""

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest
import sabir
from nats.aio.client import Client
from nats.aio.msg import Msg
from sabir.vocabulary.history import loads
from sabir_runtime import BaseContext, Batch, InMemoryRunner, RuntimeFault, UnknownOption
from sabir_runtime.distributed import (
    CallSettings,
    DistributedRunner,
    EnvelopeInvalid,
    NoWorkers,
    PayloadTooLarge,
    Worker,
)

from tests.distributed.contexts import Desk, Names, NewerDesk, call_of
from tests.distributed.support import QUICK, Own, Place, flushed, own, soon
from tests.distributed.test_envelopes import NEWER
from tests.servers.nats import nats_server


async def test_two_contexts_answer_side_by_side_each_to_its_own_callers(place: Place) -> None:
    """One server carries two versions of a context, which bind one attribute to different functions (D-09)."""
    older, newer = (replace(place, name=f"{place.name}-{version}") for version in ("v1", "v2"))
    async with older.worker(Desk), newer.worker(NewerDesk):
        async with older.runner() as runner, newer.runner() as other:
            said = await soon(asyncio.gather(*(Desk(runner).echo("x") for _ in range(20))))
            newly = await soon(asyncio.gather(*(NewerDesk(other).echo("x") for _ in range(20))))

    assert {message.text for (message,) in said} == {"x"}
    assert {message.text for (message,) in newly} == {"None"}


async def test_a_request_is_one_message_that_anybody_can_answer(client: Client, place: Place) -> None:  # RN-28
    asked: list[dict[str, Any]] = []

    async def answer(message: Msg) -> None:
        document = json.loads(message.data)
        asked.append(document)
        said = {"policy": "parrot", "payload": {"kind": "parts", "parts": [{"kind": "text", "text": "hello"}]}}
        reply = {"schema": 1, "kind": "answered", "id": document["id"], "worker": "w", "result": [said], "newer": 1}
        await message.respond(json.dumps(reply).encode())

    await client.subscribe(f"sabir.{place.name}.echo", cb=answer)
    await flushed(client)
    async with place.runner() as runner:
        (said,) = await soon(Desk(runner).echo("hi", ["double"], times=2))

    (document,) = asked
    assert said.text == "hello"
    assert (document["context"], document["policy"], document["options"]) == (place.name, "echo", ["double"])
    assert json.loads(document["arguments"]) == {"times": 2}
    assert 0 < document["seconds_left"] <= CallSettings().timeout


@pytest.mark.parametrize("name", ["", "a.b", "two words", "all*", ">"])
def test_a_name_that_no_subject_can_hold_is_refused(name: str) -> None:
    """A dot or a wildcard would reach other contexts' workers."""
    for make in (
        lambda: DistributedRunner("nats://127.0.0.1:1", name=name),
        lambda: Worker(Desk, "nats://x", name=name),
    ):
        with pytest.raises(RuntimeFault, match="is not a valid name of a context"):
            make()


async def test_no_request_tells_the_id_of_another(client: Client, place: Place) -> None:
    """Whoever serves one policy of a caller's learns nothing of what it asks of others: no two ids begin alike."""
    ids: list[str] = []

    async def hear(message: Msg) -> None:
        ids.append(json.loads(message.data)["id"])

    await client.subscribe(f"sabir.{place.name}.*", cb=hear)
    await flushed(client)
    async with place.worker(Desk), place.runner() as runner:
        for _ in range(3):
            await soon(Desk(runner).echo("x"))
        await flushed(client)

    assert len({id[:8] for id in ids}) == len({id[-8:] for id in ids}) == 3


async def test_an_answer_that_cannot_be_read_is_an_error_of_its_own(client: Client, place: Place) -> None:  # RN-31
    async def answer(message: Msg) -> None:
        await message.respond(b'{"schema": 2, "kind": "answered"}')

    await client.subscribe(f"sabir.{place.name}.echo", cb=answer)
    await flushed(client)
    async with place.runner() as runner:
        with pytest.raises(EnvelopeInvalid, match="has schema 2, but this version reads schema 1"):
            await soon(Desk(runner).echo("hi"))


async def test_an_option_that_would_end_the_process_fails(place: Place) -> None:  # RN-21, UP-05, RN-31
    """It runs in a task of its own; the worker goes on."""

    async def interrupt(ctx: BaseContext, observations: Batch, options: Names = None) -> Batch:
        raise KeyboardInterrupt

    async def choose(ctx: BaseContext, observations: Batch, options: Names = None) -> Batch:
        return [call_of("interrupt", "a"), call_of("interrupt", "b")]

    policies = {"interrupt": interrupt, "choose": choose}
    async with place.worker(own(**policies)), place.runner() as runner:
        batch = await soon(Own(runner, **policies).choose("x", ["interrupt"]))

    assert [message.result.error_type for message in batch if message.result] == ["KeyboardInterrupt"] * 2


async def test_what_the_other_side_does_not_have_is_refused_there_by_name(place: Place) -> None:
    async with place.worker(NewerDesk) as worker, place.runner(QUICK) as runner:
        ctx = Desk(runner)
        with pytest.raises(UnknownOption, match=rf"worker {worker.id} refused the request: NewerDesk binds no policy"):
            await soon(ctx.echo("x", ["double"]))
        with pytest.raises(NoWorkers, match=rf"policy 'double' of '{place.name}'"):
            await soon(ctx.double("x", number=1))


async def test_what_is_large_is_compressed_and_what_stays_too_large_names_the_limit(name: str) -> None:  # RN-29
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
