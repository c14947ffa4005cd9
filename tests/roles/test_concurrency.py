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

from tests.roles.support import asked_and_answered

TASKS, THREADS, EACH = 100, 8, 100


@pytest.fixture(autouse=True)
def eager_threads() -> Iterator[None]:
    """Threads that give way to each other after a few instructions."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(usual)


async def test_a_hundred_tasks_lose_nothing() -> None:
    """LA-65: all are there, once, and both views are of one order; clearing beside them leaves the system message."""
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
    """What each thread's work gives; all begin together."""
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


def test_a_system_message_that_is_replaced_is_never_missing() -> None:
    """While threads replace it, others read a manager that has just one, and find every other message by its id."""
    manager = asked_and_answered()
    ids = manager.progression[1:]

    def work(thread: int) -> None:
        for number in range(EACH):
            if thread % 2:
                manager.set_system(System.create(f"{thread} {number}"))
            else:
                assert len(manager.to_chat_msgs(ids)) == len(ids)
                assert [each.policy for each in manager.to_messages()].count("system") == 1

    at_once(work)
    assert len(manager) == len(ids) + 1


def test_an_edit_is_in_what_is_sent_after_it() -> None:
    """Each thread edits a message of its own while the others send; nobody gets a stale one, nor one half made."""
    manager = MessageManager(Instruction.create(f"{thread} start") for thread in range(THREADS))
    messages = manager.instructions

    def edit(thread: int) -> None:
        for number in range(EACH):
            said = f"{thread} {number}"
            messages[thread].content["instruction"] = said
            assert manager.to_messages()[thread].text == said

    at_once(edit)
    assert [each.text for each in manager.to_messages()] == [f"{thread} {EACH - 1}" for thread in range(THREADS)]


def test_threads_that_edit_one_message_leave_the_last_word() -> None:
    """Whichever was last: what is sent is what the message says."""
    manager = MessageManager([Instruction.create("start")])
    asked = manager.instructions[0]
    for turn in range(20):

        def edit(thread: int, turn: int = turn) -> None:
            for number in range(10):
                asked.content["instruction"] = f"{turn} {thread} {number}"
                manager.to_messages()

        at_once(edit)
        assert manager.to_messages()[0].text == asked.instruction


def test_an_edit_in_the_midst_of_making_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """A message that changes after it was read, and before it is sent, is made again for whoever asks next."""
    manager = MessageManager([Instruction.create("one")])
    asked, make, threads = manager.instructions[0], RoledMessage._make, list[threading.Thread]()

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

    monkeypatch.setattr(RoledMessage, "_make", edited_meanwhile)
    first = manager.to_messages()
    threads[0].join(30)

    assert [first[0].text, manager.to_messages()[0].text] == ["one", "two"]


def test_one_thread_at_a_time_makes_a_message(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether it asks for the messages or for the losses: of one change comes one message."""
    manager, make = asked_and_answered(), RoledMessage._make
    making: list[RoledMessage] = []
    at_the_same_time: list[int] = []

    def slowly(copy: RoledMessage) -> Any:
        making.append(copy)
        at_the_same_time.append(len(making))
        time.sleep(0.001)
        made = make(copy)
        making.pop()
        return made

    monkeypatch.setattr(RoledMessage, "_make", slowly)

    def work(thread: int) -> None:
        for _ in range(3):
            _ = manager.losses if thread % 2 else manager.to_messages()

    at_once(work)
    assert at_the_same_time == [1] * len(manager)


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
