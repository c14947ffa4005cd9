"""Reading a conversation while another connection takes its records back: never a false report of damage.

thread: append · append · rewind · append …          test: store.journal("trip").read()
"""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread

import pytest
from sabir_session import JournalInvalid, Store, StoreError

from tests.session.support import Opener

NAME = "trip"
SHORTEST, LONGEST = 3, 80
"""The journal's records are between these numbers; record n has the body "n"."""
READS = 1000


@contextmanager
def rewinding(open_store: Opener) -> Iterator[None]:
    """Extend the journal to its longest, and take back all but the first records, until the block ends."""
    started, ended = Event(), Event()
    failures: list[BaseException] = []

    def write() -> None:
        try:
            with open_store() as store:
                filled(store, SHORTEST)
                started.set()
                while not ended.is_set():
                    length = filled(store, 7)
                    store.rewind(NAME, SHORTEST if length >= LONGEST - 7 else length - 2, length)
        except BaseException as error:
            failures.append(error)
            started.set()

    writer = Thread(target=write)
    writer.start()
    started.wait()
    try:
        yield
    finally:
        ended.set()
        writer.join()
    assert failures == []


def filled(store: Store, count: int) -> int:
    """Append records to the journal, and return its length."""
    journal = store.journal(NAME)
    for _ in range(count):
        journal.append("k", str(len(journal)))
    return len(journal)


def read(store: Store) -> int:
    """Read the journal once as another program would, check it, and return its length."""
    bodies = [body for _, body in store.journal(NAME).read()]
    assert bodies == [str(number) for number in range(len(bodies))]
    assert SHORTEST <= len(bodies) <= LONGEST
    return len(bodies)


def test_reading_next_to_a_rewinding_writer_finds_no_damage(open_store: Opener) -> None:
    """Name, length and records are of one moment, in whatever order the writer works."""
    with open_store() as store, rewinding(open_store):
        lengths = {read(store) for _ in range(READS)}
    assert len(lengths) > 10, "the writer did not write next to the reads"


def test_a_journal_that_was_taken_back_before_it_was_read_has_the_new_records(open_store: Opener) -> None:
    """Nothing of the old ones was seen, so the journal can go on after the new ones."""
    with open_store() as store, open_store() as elsewhere:
        filled(elsewhere, 3)
        journal = store.journal(NAME)
        elsewhere.rewind(NAME, 1, 3)
        elsewhere.journal(NAME).append("k", "new")

        assert [body for _, body in journal.read()] == ["0", "new"]
        journal.append("k", "last")
        assert [body for _, body in elsewhere.journal(NAME).read()] == ["0", "new", "last"]


@pytest.mark.parametrize("change", ["rewind", "delete"])
def test_records_that_were_read_and_then_taken_back_are_not_called_damaged(open_store: Opener, change: str) -> None:
    """The reader learns that somebody else removed them, not that the disk did."""
    with open_store() as store, open_store() as elsewhere:
        filled(elsewhere, 3)
        journal = store.journal(NAME)
        assert len(list(journal.read())) == 3
        if change == "rewind":
            elsewhere.rewind(NAME, 1, 3)
        else:
            elsewhere.delete(NAME)

        with pytest.raises(
            StoreError, match=r"another writer has removed records of the journal .*; open the journal again"
        ) as caught:
            journal.read()
        assert not isinstance(caught.value, JournalInvalid)
