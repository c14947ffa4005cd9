"""What a worker remembers of requests that are over, and what it forgets."""

from sabir_distributed.memory import NOTHING, Memory


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
