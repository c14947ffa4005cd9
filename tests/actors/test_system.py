"""The system: routing, dead letters, stopping (CH-41)."""

import asyncio
import gc
from typing import Any

import pytest
from sabir_actors import Actor, ActorError, ActorSystem, ThreadClient
from sabir_testing.scripted import Gate, always, delayed

from tests.actors.support import ask, begun, failed, said, scripted


async def test_a_message_without_receiver_is_a_value_error() -> None:  # CH-41
    with pytest.raises(ValueError, match="Message must have a receiver") as caught:
        await ActorSystem().send_message(ask("HEARTBEAT", None))
    assert isinstance(caught.value, ActorError)


async def test_an_unknown_receiver_is_an_error_and_a_dead_letter() -> None:  # CH-41
    system = ActorSystem()
    answers = [await system.send_message(ask("HEARTBEAT", "nobody", f"m{number}")) for number in range(1002)]
    assert {failed(each)[0] for each in answers} == {"UNKNOWN_ACTOR"} and answers[-1].message_id == "m1001"
    assert [system.dead_letters[0].id, system.dead_letters[-1].id, len(system.dead_letters)] == ["m2", "m1001", 1000]
    with pytest.raises(ActorError, match="no actor has the id 'nobody'"):
        system.get_actor("nobody")


def test_a_misspelt_observer_is_refused() -> None:
    with pytest.raises(TypeError, match=r"ActorSystem\(\) has no argument `tracer`; did you mean `trace`\?"):
        ActorSystem(tracer=print)  # type: ignore[call-arg]


def test_ids_are_taken_once() -> None:
    system = ActorSystem()
    system.add(Actor("echo", system))
    with pytest.raises(ActorError, match="an actor 'echo' already exists"):
        system.add(Actor("echo", system))


async def test_a_system_that_stops_leaves_no_task_behind() -> None:
    before, unseen = asyncio.all_tasks(), list[dict[str, Any]]()
    asyncio.get_running_loop().set_exception_handler(lambda _, context: unseen.append(context))
    gate = Gate()
    system, _ = scripted(always(delayed(said(), gate)))
    async with system:
        _, thread_id = await begun(system, name="client")
        await gate.reached()
        asked = ask("HEARTBEAT", f"{thread_id}/agents")
        assert (await system.send_message(asked)).data["status"] == "alive"
        waits = ask("PROCESS_WITH_AGENT", f"{thread_id}/agents", input="Hello")
        waiting = asyncio.ensure_future(system.send_message(waits))
        await asyncio.sleep(0)
    assert failed(await waiting)[0] == "STOPPED"
    assert system.actors() == ()
    assert asyncio.all_tasks() == before
    gc.collect()
    assert unseen == []


async def test_states_are_told_while_the_threads_actor_handles_another_message() -> None:  # CH-32
    system, _ = scripted(always(said()))
    async with system:
        client = ThreadClient(system, "client")
        thread_id = await client.create("user", "Hello")
        async with system.threads._turn_lock:
            starting = asyncio.ensure_future(client.start(thread_id))
            assert (await client.status(thread_id)).status == "created"
            assert (await system.send_message(ask("HEARTBEAT", "threads"))).data["load"] == 1 / 1000
            assert not starting.done()
        assert (await starting).status == "processing"
        await client.result(thread_id, every=0.01)
