"""Who begins, who waits, who is sent away, the longest on its way first; and what is remembered of what is over."""

import sabir
from sabir_distributed.envelopes import Request
from sabir_distributed.memory import NOTHING, Memory
from sabir_distributed.settings import WorkerSettings
from sabir_distributed.work import Work
from sabir_distributed.work_queue import WorkQueue


def work(id: str, since: float = 0.0, size: int = 0) -> Work:
    request = Request(id=id, context="Desk", policy="llm", observations=(sabir.user("x"),), seconds_left=5)
    return Work(request, "_INBOX.ada.reply.1", ends=5.0, since=since, size=size)


def queue_of(waiting: int) -> WorkQueue:
    return WorkQueue(WorkerSettings(concurrency=1, waiting=waiting, held=100))


def ids(works: list[Work]) -> list[str]:
    return [each.request.id for each in works]


def test_so_many_begin_and_the_rest_waits_by_age() -> None:
    """Not by when they came: one that was sent away takes up its turn again."""
    queue = queue_of(waiting=3)
    first = work("first")
    queue.begin(first)
    for each in (work("younger", 3.0), work("older", 1.0), work("between", 2.0)):
        assert queue.wait(each) is None

    assert not queue.has_place
    assert ids(queue.waiting) == ["older", "between", "younger"]
    following = queue.remove(first)
    assert following is not None
    assert ids([following]) == ids(list(queue.begun.values())) == ["older"]
    assert ids(queue.all()) == ["older", "between", "younger"]
    assert not queue.has_place


def test_a_full_queue_sends_its_youngest_away() -> None:
    """So nobody who is older waits for it; it may be the newcomer itself."""
    queue = queue_of(waiting=1)
    old, older, young = work("old", 2.0), work("older", 1.0), work("young", 3.0)

    assert queue.wait(old) is None
    assert queue.wait(young) is young
    assert queue.wait(older) is old
    assert ids(queue.waiting) == ["older"]


def test_a_queue_without_room_sends_everybody_away() -> None:
    """As a setting of 0 asks for."""
    one = work("one")

    assert queue_of(waiting=0).wait(one) is one


def test_whoever_waited_for_a_whole_beat_is_sent_away() -> None:
    """Another worker may have a place; those who came since the last beat stay."""
    queue = queue_of(waiting=3)
    queue.wait(work("early"))
    assert queue.remove_overdue() == []
    queue.wait(work("late"))

    assert ids(queue.remove_overdue()) == ["early"]
    assert ids(queue.waiting) == ["late"]
    assert ids(queue.remove_waiting()) == ["late"]
    assert queue.all() == []


def test_what_is_removed_while_it_waits_gives_nobody_a_place() -> None:
    """It had none."""
    queue = queue_of(waiting=3)
    begun, waits, next_one = work("begun"), work("waits", 1.0), work("next", 2.0)
    queue.begin(begun)
    queue.wait(waits)
    queue.wait(next_one)

    assert queue.find("waits") is waits
    assert queue.remove(waits) is None
    assert queue.find("waits") is None
    assert queue.remove(begun) is next_one
    assert queue.remove(next_one) is None
    assert queue.has_place


def test_so_many_bytes_are_held_at_once() -> None:
    """Requests that were sent small unpack to many bytes; one alone may have more than all the others together."""
    queue = queue_of(waiting=3)
    assert queue.can_hold(101)
    queue.begin(work("begun", size=50))
    queue.wait(work("in line", size=40))

    assert queue.can_hold(10)
    assert not queue.can_hold(11)


def answers(memory: Memory, ids: str) -> list[bytes | None]:
    """What is remembered of each."""
    return [None if (kept := memory.recall(id)) is None else kept.answer for id in ids]


def test_the_oldest_are_forgotten_beyond_a_number() -> None:
    """A worker runs for months. A cancelled request is known, and has no answer."""
    memory = Memory(requests=2)
    for id, answer in zip("abc", (b"1", b"2", NOTHING), strict=True):
        memory.keep(id, answer)

    assert answers(memory, "abcd") == [None, b"2", NOTHING, None]


def test_an_answer_is_remembered_with_who_asked() -> None:
    """Which counts towards the size, as others choose how long it is."""
    memory = Memory(size=10)
    memory.keep("a", b"12345", asker="ada")
    memory.keep("b", b"1", asker="b")
    assert [kept and kept.asker for kept in map(memory.recall, "ab")] == ["ada", "b"]

    memory.keep("c", b"", asker="c")

    assert answers(memory, "abc") == [None, b"1", b""]


def test_the_oldest_are_forgotten_beyond_a_size() -> None:
    """Answers may be large; what one replaces no longer counts."""
    memory = Memory(size=10)
    memory.keep("a", b"12345")
    memory.keep("a", b"1234")
    memory.keep("b", b"123456")
    assert answers(memory, "a") == [b"1234"]

    memory.keep("c", b"1")

    assert answers(memory, "abc") == [None, b"123456", b"1"]
