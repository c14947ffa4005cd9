"""Who begins, who waits, who is sent away, the longest on its way first; and what is remembered of what is over."""

import sabir
from sabir_runtime.distributed.envelopes import Request
from sabir_runtime.distributed.settings import WorkerSettings
from sabir_runtime.distributed.work_queue import NOTHING, Memory, Work, WorkQueue


def work(id: str, since: float = 0.0, size: int = 0) -> Work:
    request = Request(id=id, context="Desk", policy="llm", observations=(sabir.user("x"),), seconds_left=5)
    return Work(request, "_INBOX.ada.reply.1", ends=5.0, since=since, size=size)


def queue_of(waiting: int) -> WorkQueue:
    return WorkQueue(WorkerSettings(concurrency=1, waiting=waiting, held=100))


def ids(works: list[Work]) -> list[str]:
    return [each.request.id for each in works]


def test_a_full_queue_sends_its_youngest_away() -> None:
    queue = queue_of(waiting=1)
    old, older, young = work("old", 2.0), work("older", 1.0), work("young", 3.0)

    assert queue.wait(old) is None
    assert queue.wait(young) is young
    assert queue.wait(older) is old
    assert ids(queue.waiting) == ["older"]


def answers(memory: Memory, ids: str) -> list[bytes | None]:
    """What is remembered of each."""
    return [None if (kept := memory.find(id)) is None else kept.answer for id in ids]


def test_the_oldest_are_forgotten_beyond_a_number() -> None:
    """A worker runs for months. A cancelled request is known, and has no answer."""
    memory = Memory(requests=2)
    for id, answer in zip("abc", (b"1", b"2", NOTHING), strict=True):
        memory.add(id, answer)

    assert answers(memory, "abcd") == [None, b"2", NOTHING, None]


def test_an_answer_is_remembered_with_who_asked() -> None:
    memory = Memory(size=10)
    memory.add("a", b"12345", asker="ada")
    memory.add("b", b"1", asker="b")
    assert [kept and kept.asker for kept in map(memory.find, "ab")] == ["ada", "b"]

    memory.add("c", b"", asker="c")

    assert answers(memory, "abc") == [None, b"1", b""]


def test_the_oldest_are_forgotten_beyond_a_size() -> None:
    """Answers may be large; what one replaces no longer counts."""
    memory = Memory(size=10)
    memory.add("a", b"12345")
    memory.add("a", b"1234")
    memory.add("b", b"123456")
    assert answers(memory, "a") == [b"1234"]

    memory.add("c", b"1")

    assert answers(memory, "abc") == [None, b"123456", b"1"]
