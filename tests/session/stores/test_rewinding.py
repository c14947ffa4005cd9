"""Reading a conversation while another process takes its records back: never a false report of damage."""

import time

import pytest
from sabir_session import JournalInvalid, Store, StoreError

from tests.session.rewinder import NAME, read, rewinding
from tests.session.support import Opener

READS = 1000
LENGTHS = 11
"""So many different lengths show that the other process wrote next to the reads."""
SECONDS = 60


def test_reading_next_to_a_rewinding_writer_finds_no_damage(address: str, open_store: Opener) -> None:
    """Name, length and records are of one moment, in whatever order the writer works."""
    last = time.monotonic() + SECONDS
    with open_store() as store, rewinding(address):
        lengths = {read(store) for _ in range(READS)}
        while len(lengths) < LENGTHS:  # on a busy machine the writer needs longer than the reads
            assert time.monotonic() < last, "the writer did not write next to the reads"
            lengths.add(read(store))


def filled(store: Store, count: int) -> None:
    journal = store.journal(NAME)
    for number in range(count):
        journal.append("k", str(number))


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
