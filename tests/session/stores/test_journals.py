"""Journals in both stores: written before a log changes, read when it is registered, never written by two at once."""

from collections.abc import Iterator

import pytest
from sabir_session import (
    InnerMessage,
    JournalExists,
    JournalInvalid,
    JournalMissing,
    PositionTaken,
    RecordingFailed,
    Session,
    Store,
    StoreError,
    append_item,
    enable_inner_message_recording,
)

from tests.session.support import (
    FullJournal,
    ListJournal,
    Note,
    Opener,
    asked,
    record_all,
    recording,
    statuses,
    system,
    told,
)

OWN = "sabir.message"


@pytest.fixture
def store(open_store: Opener) -> Iterator[Store]:
    with open_store() as store:
        yield store


def texts(store: Store, name: str) -> list[str]:
    return [body for _, body in store.journal(name).read()]


def filled(store: Store, name: str, count: int) -> None:
    journal = store.journal(name)
    for number in range(count):
        journal.append("k", str(number))


def test_a_record_that_the_journal_does_not_take_is_not_in_the_session() -> None:
    """UP-30: never silent, and nothing changed; once there is room, the same record is taken."""
    journal = FullJournal(limit=2)
    session, seen = recording(journal), []
    record_all(session, [system(), asked(1, "c1")])
    session.observe(InnerMessage, lambda old, new: seen.append(len(new)))

    with pytest.raises(RecordingFailed, match="no space left on device; nothing changed"):
        record_all(session, [answer := told(2, "c1")])
    assert len(session.select_all(InnerMessage)) == 2
    assert statuses(session) == {"c1": "pending"}
    assert seen == []

    journal.limit = 9
    record_all(session, [answer])
    assert statuses(session) == {"c1": "completed"}


def test_a_record_that_cannot_be_written_is_not_taken_either() -> None:
    session = Session(journal=ListJournal())
    session.mutate(Note).register(Note, append_item)

    with pytest.raises(RecordingFailed, match="cannot be written as JSON"):
        session.mutate(Note).append(Note(object()))  # type: ignore[arg-type]

    assert session.select_all(Note) == ()


def test_every_log_loads_its_own_kind_and_the_order_of_registration_does_not_matter(store: Store) -> None:
    """WI-34: a journal may hold several logs, and kinds that nobody here knows."""
    session = recording(store.journal("monday"))
    session.mutate(Note).register(Note, append_item)
    session.mutate(Note).append(Note("a"))
    record_all(session, [system()])
    store.journal("monday").append("nowhere:Nothing", "no json at all")

    other = Session(journal=store.journal("monday"))
    other.mutate(Note).register(Note, append_item)
    assert other.select_all(InnerMessage) == ()
    other.mutate(Note).append(Note("b"))

    third = recording(store.journal("monday"))
    third.mutate(Note).register(Note, append_item)
    assert third.select_all(Note) == (Note("a"), Note("b"))
    assert third.select_all(InnerMessage) == session.select_all(InnerMessage)


@pytest.mark.parametrize(
    ("bodies", "reason"),
    [
        (["{"], "record 0 of the journal"),
        (["{}"], "role: Field required"),
        ([system(sequence=0).model_dump_json(), system(sequence=0).model_dump_json()], "record 1 .* already exists"),
    ],
)
def test_a_damaged_journal_is_an_error_and_the_slice_is_not_registered(bodies: list[str], reason: str) -> None:
    """UP-16, UP-30: a conversation is loaded whole or not at all."""
    journal = ListJournal()
    for body in bodies:
        journal.append(OWN, body)
    session = Session(journal=journal)

    with pytest.raises(JournalInvalid, match=reason):
        enable_inner_message_recording(session)

    assert not session.is_registered(InnerMessage)


def test_a_journal_keeps_any_text_byte_for_byte(store: Store) -> None:
    """UP-12: also what a database might take for something else."""
    bodies = [
        '{"a": 1.50, "a": 2}',
        "",
        "\\u0000 \\ud83d",
        "é\N{GRINNING FACE}\u2028\r\n",
        "'; DROP TABLE a",
        "%s ? {}",
    ]
    journal = store.journal("any 'name' \N{GRINNING FACE}")
    for body in bodies:
        journal.append("m:K", body)

    assert texts(store, journal.name) == bodies
    assert len(journal) == len(bodies)


def test_two_sessions_on_one_journal_object_do_not_interleave(store: Store) -> None:
    """UP-30: the one that lacks a record is refused, as two writers with a journal each are; what is there loads."""
    journal = store.journal("monday")
    first = recording(journal)
    record_all(first, [system()])
    second = recording(journal)
    record_all(first, [asked(1, "c1")])

    for _ in range(2):
        with pytest.raises(RecordingFailed, match="record 1 of the journal was written by another session"):
            record_all(second, [asked(1, "c2")])
    assert len(second.select_all(InnerMessage)) == 1
    record_all(first, [told(2, "c1")])

    third = recording(journal)
    record_all(third, [asked(3, "c3")])
    assert recording(store.journal("monday")).select_all(InnerMessage) == third.select_all(InnerMessage)


def test_a_journal_is_opened_or_made_and_listed(store: Store) -> None:
    """WI-51: names are the caller's own."""
    filled(store, "b", 2)
    store.journal("a")

    assert store.names() == ("a", "b")
    assert (len(store.journal("a")), len(store.journal("b"))) == (0, 2)


@pytest.mark.parametrize("at", [-1, 4])
def test_a_fork_is_refused_where_it_cannot_be(store: Store, at: int) -> None:
    """Fork law: errors name the offender, and nothing is made."""
    filled(store, "a", 3)
    with pytest.raises(StoreError, match=f"has 3 records; at={at}"):
        store.fork("a", "b", at)
    with pytest.raises(JournalExists, match="already has a journal 'a'"):
        store.fork("a", "a")
    with pytest.raises(JournalMissing, match=r"has no journal 'x'; its journals are: 'a'"):
        store.fork("x", "b")
    with pytest.raises(JournalMissing):
        store.delete("x")

    assert store.names() == ("a",)


def test_a_fork_is_one_row_however_long_the_past(store: Store) -> None:
    """Fork law, O(1): no record is copied, and no chain of forks is longer than it must be."""
    filled(store, "a", 200)
    for number in range(20):
        store.fork("a" if number == 0 else f"fork {number - 1}", f"fork {number}", 200 - number)

    assert store._query("SELECT count(*) FROM sabir_session_records") == [(200,)]
    assert {row[0] for row in store._query("SELECT parent FROM sabir_journals WHERE name <> 'a'")} == {1}
    assert texts(store, "fork 19") == [str(number) for number in range(181)]


def test_a_deleted_journal_leaves_nothing_but_what_its_forks_need(store: Store) -> None:
    """Fork law: what a fork has as its past stays, everything else goes, and at last all goes."""
    filled(store, "a", 5)
    store.fork("a", "b", 3)
    store.fork("b", "c", 2)
    store.delete("a")
    assert store.names() == ("b", "c")
    assert (texts(store, "b"), texts(store, "c")) == (["0", "1", "2"], ["0", "1"])
    assert store._query("SELECT count(*) FROM sabir_session_records") == [(3,)]

    store.journal("a").append("k", "new")
    assert texts(store, "a") == ["new"]

    for name in ("b", "c", "a"):
        store.delete(name)
    for table in ("sabir_session_records", "sabir_journals"):
        assert store._query(f"SELECT count(*) FROM {table}") == [(0,)]


@pytest.mark.parametrize("has_fork", [False, True])
def test_a_deleted_journal_takes_nothing_more(open_store: Opener, has_fork: bool) -> None:
    """UP-30: whoever still has it open is told, also where a new one has its name, and where a fork keeps its past."""
    with open_store() as here, open_store() as there:
        journal = here.journal("a")
        journal.append("k", "0")
        if has_fork:
            there.fork("a", "b")
        there.delete("a")
        there.journal("a")
        with pytest.raises(RecordingFailed, match="the journal 'a' was deleted"):
            journal.append("k", "1")

        assert texts(there, "a") == []


def test_a_record_that_is_gone_is_an_error(store: Store) -> None:
    """UP-16: a conversation with a hole is none."""
    filled(store, "a", 3)
    journal = store.journal("a")
    store._run_statement("DELETE FROM sabir_session_records WHERE body = ?", ("1",))

    with pytest.raises(JournalInvalid, match="record 1 of journal number 1 is missing; restore the store"):
        list(journal.read())


def test_a_closed_store_says_so(open_store: Opener) -> None:
    """UP-30: nothing is appended in silence to a store that was closed."""
    with open_store() as store:
        session = recording(store.journal("monday"))
    with pytest.raises(RecordingFailed, match="closed"):
        record_all(session, [system()])
    with pytest.raises(StoreError, match="could not list the journals"):
        store.names()

    assert session.select_all(InnerMessage) == ()


def test_reading_does_not_keep_others_from_writing(store: Store) -> None:
    """A journal is read in pieces, and what comes meanwhile is no part of what is read."""
    filled(store, "a", 150)
    journal = store.journal("a")
    reading = journal.read()
    next(reading)
    store.journal("a").append("k", "late")

    assert len(list(reading)) == 149


def test_who_comes_second_reads_what_the_first_one_wrote(store: Store) -> None:
    """The position is taken, which is an error of its own; from there on the records of the other one are read."""
    filled(store, "a", 3)
    store.fork("a", "b")
    for name in ("a", "b"):
        first, second = store.journal(name), store.journal(name)
        first.append("k", "won")
        with pytest.raises(PositionTaken, match=f"position 3 of the journal '{name}' was written by another"):
            second.append("k", "lost")
        anew = store.journal(name)
        assert list(anew.read(len(second))) == [("k", "won")]
        assert [len(list(anew.read(position))) for position in range(6)] == [4, 3, 2, 1, 0, 0]
