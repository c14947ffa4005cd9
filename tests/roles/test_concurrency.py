"""Tasks and threads on one manager: nothing is lost, one order holds, and what is sent is never stale (LA-65)."""

import asyncio
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from sabir_roles import Instruction, MessageManager, RoledMessage, System

TASKS, THREADS, EACH = 100, 8, 100


@pytest.fixture(autouse=True)
def eager_threads() -> Iterator[None]:
    """Threads that give way to each other after a few instructions."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(usual)


async def test_a_hundred_tasks_lose_nothing() -> None:  # LA-65
    manager = MessageManager(system=System.create("Be brief."))

    async def add(number: int) -> RoledMessage:
        await asyncio.sleep(0)
        return await manager.a_add_message(instruction=f"task {number}")

    added = await asyncio.gather(*(add(number) for number in range(TASKS)))

    assert {id(each) for each in manager.messages[1:]} == {id(each) for each in added}
    assert len(manager) == TASKS + 1
    assert [each.id for each in manager.to_messages()] == manager.progression
    await asyncio.gather(*(manager.aclear_messages() for _ in range(TASKS)))
    assert [type(each) for each in manager] == [System]


def at_once(work: Callable[[int], Any], threads: int = THREADS) -> list[Any]:
    barrier = threading.Barrier(threads)

    def begin(number: int) -> Any:
        barrier.wait(30)
        return work(number)

    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(begin, range(threads)))


def test_eight_threads_lose_nothing_and_keep_one_order() -> None:
    """Each thread's own stand in its order; what was sent once is the beginning of what is sent later."""
    manager = MessageManager()

    def add(thread: int) -> list[list[str]]:
        seen = []
        for number in range(EACH):
            manager.add_message(instruction=f"{thread} {number}")
            if number % 10 == 0:
                seen.append([each.id for each in manager.to_messages()])
        return seen

    snapshots = [seen for found in at_once(add) for seen in found]
    whole = [each.id for each in manager.to_messages()]

    assert whole == manager.progression
    assert len(set(whole)) == THREADS * EACH
    assert all(whole[: len(seen)] == seen for seen in snapshots)
    for thread in range(THREADS):
        own = [each.text for each in manager if each.text.startswith(f"{thread} ")]
        assert own == [f"{thread} {number}" for number in range(EACH)]


def test_an_edit_in_the_midst_of_making_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """A message that changes after it was read, and before it is sent, is made again for whoever asks next."""
    manager = MessageManager([Instruction.create("one")])
    asked, make, threads = manager.instructions[0], RoledMessage._build, list[threading.Thread]()

    def edit() -> None:
        asked.content["instruction"] = "two"

    def edited_meanwhile(copy: RoledMessage) -> Any:
        made = make(copy)
        if not threads:
            threads.append(threading.Thread(target=edit))
            threads[0].start()
            while asked.instruction != "two":
                time.sleep(0)
        return made

    monkeypatch.setattr(RoledMessage, "_build", edited_meanwhile)
    first = manager.to_messages()
    threads[0].join(30)

    assert [first[0].text, manager.to_messages()[0].text] == ["one", "two"]


def test_threads_that_extend_one_instruction_lose_nothing() -> None:
    """What reads the context and then changes it is one step; so for images."""
    instruction = Instruction.create("x")

    def extend(number: int) -> None:
        for each in range(EACH):
            instruction.extend_context(f"{number} {each}")
            instruction.extend_images([f"https://example.com/{number}/{each}.png"])
            instruction.update(context=f"update {number} {each}")

    at_once(extend, 4)
    assert len(instruction.context) == len(set(instruction.context)) == 4 * EACH * 2
    assert len(instruction.images) == len(set(instruction.images)) == 4 * EACH


def test_two_managers_that_share_a_message_wait_for_neither() -> None:
    """A change in the one is told to the other, whatever that is doing."""
    shared = Instruction.create("x")
    managers = [MessageManager([shared]), MessageManager([shared])]

    def change(number: int) -> None:
        for each in range(EACH):
            managers[number].add_message(instruction=shared, guidance=f"{number} {each}")
            managers[number].to_messages()

    threads = [threading.Thread(target=change, args=(number,), daemon=True) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads)
    assert managers[0].to_messages() == managers[1].to_messages()
