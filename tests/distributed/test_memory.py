"""What a worker remembers of requests that are over, and what it forgets."""

from sabir_distributed.memory import NOTHING, Memory


def test_answers_are_remembered_and_the_unknown_are_not() -> None:
    """A cancelled request is known, and has no answer."""
    memory = Memory()
    memory.keep("a", b"answer")
    memory.keep("b", NOTHING)

    assert (memory.recall("a"), memory.recall("b"), memory.recall("c")) == (b"answer", NOTHING, None)


def test_the_oldest_are_forgotten_beyond_a_number() -> None:
    """A worker runs for months."""
    memory = Memory(requests=2)
    for id in "abc":
        memory.keep(id, b"1")

    assert [memory.recall(id) for id in "abc"] == [None, b"1", b"1"]


def test_the_oldest_are_forgotten_beyond_a_size() -> None:
    """Answers may be large; what one replaces no longer counts."""
    memory = Memory(size=10)
    memory.keep("a", b"12345")
    memory.keep("a", b"1234")
    memory.keep("b", b"123456")
    assert memory.recall("a") == b"1234"

    memory.keep("c", b"1")

    assert [memory.recall(id) for id in "abc"] == [None, b"123456", b"1"]
