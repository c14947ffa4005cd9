"""What holds for every conversation: one state whichever way it is reached, and nothing lost on the way."""

from collections.abc import Iterator, Sequence
from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sabir_session import (
    InnerMessage,
    RecordConflict,
    ReducerContext,
    Session,
    Snapshot,
    SQLiteStore,
    Store,
    get_inner_messages,
    get_latest_evaluation_id,
    get_pending_tool_calls,
    inner_message_append,
)

from tests.session.histories import arrivals, histories, records
from tests.session.support import ListJournal, asked, minutes, record_all, recording, system

EXAMPLES = max(50, settings().max_examples // 4)
"""Whole histories are drawn here, each of many messages; a quarter of the usual number takes as long."""

NAMES = count()


def pure_fold(arrived: Sequence[InnerMessage]) -> tuple[InnerMessage, ...]:
    items: tuple[InnerMessage, ...] = ()
    for record in arrived:
        items = inner_message_append(items, record, context=ReducerContext())
    return items


def kept(store: Store, name: str) -> list[tuple[str, str]]:
    return list(store.journal(name).read())


def bodies(history: Sequence[InnerMessage]) -> list[tuple[str, str]]:
    return [("sabir.message", record.model_dump_json()) for record in history]


@settings(max_examples=EXAMPLES)
@given(arrivals(), st.integers(1, 5))
def test_a_session_holds_what_the_pure_reducer_makes_of_the_same_arrivals(
    arrived: list[InnerMessage], looked_at: int
) -> None:
    """WI-14 … WI-17, D-12, D-13, UP-13: in any order, with duplicates, and whenever somebody looks."""
    session = recording()
    for index, record in enumerate(arrived):
        session.mutate(InnerMessage).append(record)
        if index % looked_at == 0:
            assert session.select_all(InnerMessage) == pure_fold(arrived[: index + 1])

    assert session.select_all(InnerMessage) == pure_fold(arrived)


@settings(max_examples=EXAMPLES)
@given(st.lists(records(), max_size=12))
def test_a_session_refuses_what_the_pure_reducer_refuses(arrived: list[InnerMessage]) -> None:
    """D-12: two records for one place, and nothing of the second one is left."""
    session, items = recording(), pure_fold([])
    for record in arrived:
        try:
            items = inner_message_append(items, record, context=ReducerContext())
        except RecordConflict:
            with pytest.raises(RecordConflict):
                session.mutate(InnerMessage).append(record)
        else:
            session.mutate(InnerMessage).append(record)
        assert session.select_all(InnerMessage) == items


@settings(max_examples=EXAMPLES)
@given(arrivals(12), st.randoms())
def test_what_is_recorded_does_not_depend_on_the_order_of_arrival(arrived: list[InnerMessage], random: object) -> None:
    """WI-16, WI-27, WI-38, UP-13: neither the records of an evaluation nor what of it is pending, which is what the
    status of each call says."""
    shuffled = list(arrived)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    first, second = recording(), recording()
    record_all(first, arrived)
    record_all(second, shuffled)

    for evaluation in "abc":
        assert get_inner_messages(first, evaluation) == get_inner_messages(second, evaluation)
        pending = get_pending_tool_calls(first, evaluation)
        assert pending == get_pending_tool_calls(second, evaluation)
        calls = [call for record in get_inner_messages(first, evaluation) for call in record.tool_calls]
        assert list(pending) == [each for each in calls if each.status == "pending"]


@settings(max_examples=EXAMPLES)
@given(st.permutations("abcd"), st.lists(st.integers(-9, 9), min_size=8, max_size=8), st.sets(st.sampled_from("abcd")))
def test_no_clock_decides_which_evaluation_is_the_latest(begun: list[str], clocks: list[int], ended: set[str]) -> None:
    """WI-37, D-14: the unfinished one that came last, else the last that came; a copy of any kind says the same."""
    journal, restored, moments = ListJournal(), recording(), iter(map(minutes, clocks))
    session = recording(journal)
    record_all(session, [system(name, created_at=next(moments)) for name in begun])
    ends = [asked(1, evaluation=name, turn=1, finish_reason="stop", created_at=next(moments)) for name in ended]
    record_all(session, ends)
    restored.mutate().rollback(Snapshot.from_json(session.snapshot().to_json()))

    latest = [name for name in begun if name not in ended or ended >= set(begun)][-1]
    copies = (session, recording(journal), session.clone(), restored)
    assert [get_latest_evaluation_id(each) for each in copies] == [latest] * 4


@settings(max_examples=EXAMPLES)
@given(histories())
def test_a_snapshot_comes_back_as_it_was(history: list[InnerMessage]) -> None:
    """WI-32, UP-12, UP-26: through its text, into a new session, byte for byte."""
    session, other = recording(), recording()
    record_all(session, history)
    text = session.snapshot().to_json()

    other.mutate().rollback(Snapshot.from_json(text))

    assert other.select_all(InnerMessage) == session.select_all(InnerMessage)
    assert Snapshot.from_json(text).to_json() == text
    assert other.snapshot().slices == session.snapshot().slices


@settings(max_examples=EXAMPLES)
@given(histories(), histories(), st.data())
def test_neither_of_a_clone_and_its_original_sees_what_the_other_takes(
    history: list[InnerMessage], further: list[InnerMessage], data: st.DataObject
) -> None:
    """UP-27: a clone goes its own way."""
    session = recording()
    record_all(session, history)
    clone = session.clone()
    before = clone.select_all(InnerMessage)

    taken = {(record.evaluation_id, record.sequence) for record in history}
    fresh = [record for record in further if (record.evaluation_id, record.sequence) not in taken]
    goes = data.draw(st.sampled_from([session, clone]))
    record_all(goes, fresh)

    stays: Session = clone if goes is session else session
    assert stays.select_all(InnerMessage) == before
    assert goes.select_all(InnerMessage) == pure_fold([*before, *fresh])


@pytest.fixture(scope="module")
def store() -> Iterator[SQLiteStore]:
    """One for all examples, each of which has journals of its own."""
    with SQLiteStore(":memory:") as opened:
        yield opened


@settings(max_examples=EXAMPLES)
@given(history=histories())
def test_a_journal_gives_back_what_was_appended(store: SQLiteStore, history: list[InnerMessage]) -> None:
    """WI-32, UP-12: the same records, the same order, the same state, a provider's own data byte for byte."""
    name = f"journal {next(NAMES)}"
    session = recording(store.journal(name))
    record_all(session, history)

    assert kept(store, name) == bodies(history)
    again = recording(store.journal(name))
    assert again.select_all(InnerMessage) == session.select_all(InnerMessage)
    assert again.snapshot().slices == session.snapshot().slices


@settings(max_examples=EXAMPLES)
@given(moves=st.lists(st.tuples(st.sampled_from(["append", "fork", "delete"]), st.integers(0, 9), st.integers(0, 9))))
def test_a_fork_has_the_past_and_goes_its_own_way(store: SQLiteStore, moves: list[tuple[str, int, int]]) -> None:
    """Fork law: equal up to `at`; later appends and deletions of either are not seen by the other, however deep."""
    prefix, numbers = f"tree {next(NAMES)} ", count()
    expected: dict[str, list[tuple[str, str]]] = {f"{prefix}root": []}
    store.journal(f"{prefix}root")
    for move, which, at in moves:
        name = sorted(expected)[which % len(expected)]
        if move == "append":
            expected[name].append(("k", str(next(numbers))))
            store.journal(name).append(*expected[name][-1])
        elif move == "fork":
            other, length = f"{prefix}{next(numbers)}", at % (len(expected[name]) + 1)
            store.fork(name, other, length)
            expected[other] = expected[name][:length]
        elif len(expected) > 1:
            store.delete(name)
            del expected[name]

    assert {name for name in store.names() if name.startswith(prefix)} == set(expected)
    assert {name: kept(store, name) for name in expected} == expected
