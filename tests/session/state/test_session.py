"""Sessions: typed slices, reducers that alone change them, observers, clones, and the bus."""

import logging
import threading
from functools import partial

import pytest
from sabir_session import (
    InnerMessage,
    InProcessEventBus,
    ObserverInvalid,
    ReducerContext,
    Session,
    SessionError,
    SliceConflict,
    SliceNotRegistered,
    SQLiteStore,
    append_item,
    enable_inner_message_recording,
    evaluate_sync,
    get_inner_messages,
    inner_message_append,
    replace_latest,
)
from sabir_testing import ScriptedAdapter

from tests.session.support import Note, Plan, Step, asked, record_all, recording, system


def planned(items: tuple[Plan, ...], event: Step, *, context: ReducerContext) -> tuple[Plan, ...]:
    """Adds a step to the latest plan; an empty step changes nothing."""
    if not event.text:
        return items
    latest = items[-1]
    return (*items[:-1], Plan(latest.goal, (*latest.steps, event.text)))


def planning(bus: InProcessEventBus | None = None) -> Session:
    session = Session(bus)
    session.mutate(Plan).register(Plan, replace_latest)
    session.mutate(Plan).register(Step, planned)
    return session


def test_a_slice_that_nobody_registered_is_empty_and_takes_nothing() -> None:
    """WI-19; WI-05: without a reducer nothing is stored, and nobody believes that it was."""
    session = Session()

    assert session.select_all(InnerMessage) == ()
    with pytest.raises(SliceNotRegistered, match=r"no slice InnerMessage; call session\.mutate\(InnerMessage\)"):
        session.mutate(InnerMessage).append(system())
    with pytest.raises(SliceNotRegistered, match="no reducer for Note, only for Plan, Step"):
        planning().mutate(Plan).dispatch(Note("x"))


def test_wi_05_giving_a_session_is_the_registration() -> None:
    """Nobody registers a reducer; without a session nothing is stored, and the evaluation is the same."""
    session = Session()
    recorded = evaluate_sync(ScriptedAdapter("Hello."), "Say hello.", session=session)
    unrecorded = evaluate_sync(ScriptedAdapter("Hello."), "Say hello.")

    assert session.is_registered(InnerMessage)
    assert [record.content for record in get_inner_messages(session)][-2:] == ["Say hello.", "Hello."]
    assert recorded.text == unrecorded.text == "Hello."


def test_what_is_no_bus_and_what_is_no_journal_is_refused_at_once() -> None:
    """UP-30: a store, a path, a journal in the place of the bus: named where it is given, not at a first record."""
    with SQLiteStore(":memory:") as store:
        remedy = r"; pass a journal as Session\(journal=store\.journal\(name\)\)"
        for journal in (store, "chats.db"):
            name = type(journal).__name__
            with pytest.raises(SessionError, match=f"journal is of type {name}; .* append and read{remedy}"):
                Session(journal=journal)  # type: ignore[arg-type]
        with pytest.raises(SessionError, match=f"bus is of type StoredJournal; .* subscribe and publish{remedy}"):
            Session(store.journal("monday"))  # type: ignore[arg-type]

        assert Session(journal=store.journal("monday")).has_journal
    assert not Session().has_journal


def test_an_observer_that_nothing_would_await_is_refused() -> None:
    """WI-20: a coroutine function, also behind a partial or an object; handlers of a bus alike."""

    async def observe(old: object, new: object) -> None:
        raise AssertionError("never awaited")

    class Observer:
        async def __call__(self, old: object, new: object) -> None:
            raise AssertionError("never awaited")

    session = recording()
    for wrong in (observe, partial(observe, None), Observer()):
        with pytest.raises(ObserverInvalid, match="is a coroutine function, which nothing would await; pass a sync"):
            session.observe(InnerMessage, wrong)
        with pytest.raises(ObserverInvalid):
            session.bus.subscribe(InnerMessage, wrong)


def test_observers_are_not_called_where_nothing_changes() -> None:
    """UP-27, WI-15, WI-20: duplicates, and events that leave a state as it is."""
    recorded, planned_session, seen = recording(), planning(), []
    record_all(recorded, [first := system()])
    planned_session.mutate(Plan).append(Plan("walk"))
    recorded.observe(InnerMessage, lambda old, new: seen.append(new))
    planned_session.observe(Plan, lambda old, new: seen.append(new))

    record_all(recorded, [first])
    planned_session.mutate(Plan).dispatch(Step(""))
    planned_session.mutate(Plan).append(Plan("walk"))

    assert seen == []


def test_a_failing_observer_is_logged_and_stops_neither_the_change_nor_the_others(
    caplog: pytest.LogCaptureFixture,
) -> None:
    session, called = recording(), []

    def fails(old: object, new: object) -> None:
        raise RuntimeError("disk full")

    session.observe(InnerMessage, fails)
    session.observe(InnerMessage, lambda old, new: called.append(len(new)))
    with caplog.at_level(logging.ERROR, "sabir.session"):
        record_all(session, [system(), asked(1)])

    assert called == [1, 2]
    assert [record.getMessage() for record in caplog.records] == [
        f"observer {fails.__qualname__} of InnerMessage failed: RuntimeError: disk full; the change was made"
    ] * 2
    assert "disk full" in caplog.text


def test_an_observer_can_be_ended_also_during_a_round() -> None:
    """WI-20: the handle ends this one registration, and ending twice is harmless."""
    session, called = recording(), []

    def observer(old: object, new: object) -> None:
        called.append("again")

    handle = session.observe(InnerMessage, observer)
    session.observe(InnerMessage, observer)
    other = session.observe(InnerMessage, lambda old, new: handle())
    record_all(session, [system(), asked(1)])
    handle.unsubscribe()
    assert called == ["again"] * 3

    other()
    record_all(session, [asked(2)])
    session.observe(InnerMessage, observer)
    record_all(session, [asked(3)])
    assert called == ["again"] * 6


def test_an_observer_may_change_the_session_and_all_hear_of_changes_in_their_order() -> None:
    """UP-27: nobody is told of a later change before an earlier one."""
    session, seen = planning(), []

    def ends(old: tuple[Plan, ...], new: tuple[Plan, ...]) -> None:
        if len(new[0].steps) == 1:
            session.mutate(Plan).dispatch(Step("home"))

    session.mutate(Plan).append(Plan("walk"))
    session.observe(Plan, ends)
    session.observe(Plan, lambda old, new: seen.append(new[0].steps))
    session.mutate(Plan).dispatch(Step("out"))

    assert seen == [("out",), ("out", "home")]


def test_a_clone_holds_the_same_and_is_watched_by_nobody() -> None:
    """UP-27: neither observers nor the bus of the original."""
    bus, seen = InProcessEventBus(), []
    session = planning(bus)
    session.mutate(Plan).append(Plan("walk"))
    session.observe(Plan, lambda old, new: seen.append(new))
    clone = session.clone()

    bus.publish(Step("out"))
    clone.mutate(Plan).dispatch(Step("stay"))
    clone.bus.publish(Step("read"))

    assert seen == [(Plan("walk", ("out",)),)]
    assert session.select_all(Plan) == (Plan("walk", ("out",)),)
    assert clone.select_all(Plan) == (Plan("walk", ("stay", "read")),)


def test_what_a_handler_of_the_bus_raises_reaches_the_publisher_after_all_were_called() -> None:
    """UP-30: a record that was published and could not be written is not lost in silence."""
    bus, called = InProcessEventBus(), []

    def fails(event: object) -> None:
        raise OSError("disk full")

    bus.subscribe(Note, fails)
    bus.subscribe(Note, called.append)
    with pytest.raises(OSError, match="disk full"):
        bus.publish(Note("a"))
    bus.subscribe(Note, fails)
    with pytest.raises(ExceptionGroup, match="2 handlers of Note failed"):
        bus.publish(Note("b"))

    assert called == [Note("a"), Note("b")]


def test_registering_twice_is_as_good_as_once() -> None:
    """WI-21, WI-22, UP-26: by hand, by the convenience and by the bus alike; nothing is appended twice."""
    session = recording()
    enable_inner_message_recording(session)
    session.mutate(InnerMessage).register(InnerMessage, inner_message_append)
    session.bus.publish(system())

    assert len(session.select_all(InnerMessage)) == 1


def test_a_slice_that_is_registered_otherwise_is_an_error() -> None:
    """UP-26: what a slice is does not depend on who came first."""
    session = recording()

    with pytest.raises(SliceConflict, match="already has another reducer for"):
        session.mutate(InnerMessage).register(InnerMessage, append_item)
    with pytest.raises(SliceConflict, match="registered as a log, not a state"):
        session.mutate(InnerMessage).register(InnerMessage, inner_message_append, kind="state")
    with pytest.raises(SliceConflict, match="accepts InnerMessage only, not Step"):
        session.mutate(InnerMessage).register(Step, inner_message_append)  # type: ignore[arg-type]


def test_another_class_of_the_same_name_is_an_error() -> None:
    """WI-34: a stored name means one class."""
    session = Session()
    first, second = (type("Twin", (), {"__module__": "somewhere"}) for _ in range(2))
    session.mutate(first).register(first, append_item)

    with pytest.raises(SliceConflict, match="'somewhere:Twin'"):
        session.mutate(second).register(second, append_item)


def test_a_reducer_that_fails_or_returns_no_tuple_changes_nothing() -> None:
    """WI-14: reducers are pure, and what they return is checked."""
    session = planning()

    with pytest.raises(IndexError):
        session.mutate(Plan).dispatch(Step("before there is a plan"))
    session.mutate(Note).register(Note, lambda items, event, context: [*items, event])  # type: ignore[arg-type, misc]
    with pytest.raises(TypeError, match="a reducer returned a list"):
        session.mutate(Note).append(Note("x"))

    assert session.select_all(Plan) == session.select_all(Note) == ()


def test_many_threads_append_and_nothing_is_lost() -> None:
    """WI-03, WI-16: options run in threads, and record their results from there."""
    session, changes = recording(), []
    session.observe(InnerMessage, lambda old, new: changes.append(len(new) - len(old)))
    gate = threading.Barrier(8)

    def appends(thread: int) -> None:
        gate.wait()
        record_all(session, [asked(50 * thread + number) for number in range(50)])

    threads = [threading.Thread(target=appends, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert [item.sequence for item in session.select_all(InnerMessage)] == list(range(400))
    assert changes == [1] * 400
