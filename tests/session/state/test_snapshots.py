"""Snapshots: what they look like, what they refuse, and what a rollback does to states and to logs."""

import json
import sys
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import pytest
from sabir_session import (
    InnerMessage,
    RecordingFailed,
    Session,
    Snapshot,
    SnapshotRestoreError,
    SnapshotSerializationError,
    append_item,
    replace_latest,
)

from tests.session.support import (
    FullJournal,
    ListJournal,
    Note,
    Plan,
    asked,
    record_all,
    recording,
    statuses,
    system,
    told,
)

NEWER = {
    "role": "assistant", "content": "hm", "evaluation_id": "e", "sequence": 0, "mood": {"calm": None},
    "created_at": "2026-05-04T12:00:00Z", "message_id": "5f0d9a1e-8f7b-4c52-9a51-0d3f6f2e7a10",
    "tool_calls": [{"call_id": "c1", "name": "weather", "arguments": "{}", "priority": 3}],
    "messages": [{"schema": 1, "id": "m1", "policy": "llm", "tone": None, "payload": {"kind": "parts", "parts": [
        {"kind": "smell", "of": ["rain", None], "strength": 1.5}, {"kind": "text", "text": "hm", "font": "serif"}]}}],
}  # fmt: skip
"""A record with a kind of part and with fields that this version does not know, some of them null."""
OWN = "sabir.message"


def taking_notes(session: Session | None = None) -> Session:
    session = session or recording()
    session.mutate(Plan).register(Plan, replace_latest)
    session.mutate(Note).register(Note, append_item)
    return session


def snapshot_of(*items: dict[str, Any], **fields: Any) -> str:
    taken = {"slice_type": OWN, "item_type": OWN, "kind": "log", "items": items, **fields}
    return json.dumps({"schema": 1, "created_at": "2026-05-04T12:00:00Z", "slices": [taken]})


def test_a_snapshot_is_json_with_one_entry_a_message() -> None:
    """WI-04, WI-30, WI-31: slices with the names of their types, and their items one by one, with plain keys."""
    session = recording()
    record_all(session, [system(), asked(1, "c1"), told(2, "c1")])
    document = json.loads(session.snapshot().to_json())

    assert document["schema"] == 2
    ((taken),) = document["slices"]
    assert (taken["slice_type"], taken["item_type"], len(taken["items"])) == (OWN, OWN, 3)
    told_of = taken["items"][2]
    assert (told_of["role"], told_of["sequence"], told_of["tool_call_id"]) == ("tool", 2, "c1")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "not JSON"),
        ("{", "not JSON"),
        (b"\xff", "not JSON"),
        ('{"schema": 1, "slices": NaN}', "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("[]", "not a snapshot"),
        ("{}", "not a snapshot"),
        ('{"schema": 1, "slices": {}}', "not a snapshot"),
        ('{"schema": 1, "slices": [7]}', "not a snapshot"),
        ('{"schema": 1, "slices": [{"slice_type": "a:B", "items": []}]}', "not a snapshot"),
        ('{"slices": []}', "schema None"),
        ('{"schema": "1", "slices": []}', "schema '1'"),
        ('{"schema": true, "slices": []}', "schema True"),
        ('{"schema": 0, "slices": []}', "schema 0"),
        ('{"schema": 3, "slices": []}', "but this version reads up to 2; upgrade"),
    ],
)
def test_what_is_no_snapshot_is_refused(text: str | bytes, reason: str) -> None:
    """WI-33: bad JSON, a wrong shape, another schema."""
    with pytest.raises(SnapshotRestoreError, match=reason) as caught:
        Snapshot.from_json(text)

    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        snapshot_of(slice_type="tests.session.support:Note"),
        snapshot_of(item_type="tests.session.support:Note"),
        snapshot_of(slice_type="nowhere:Nothing"),
        snapshot_of({"role": "system"}),
        snapshot_of({**NEWER, "created_at": "2026-05-04T12:00:00"}),
        snapshot_of({**NEWER, "role": "narrator"}),
        snapshot_of({**NEWER}, {**NEWER, "content": "another"}),
        snapshot_of({**NEWER}, {**NEWER, "message_id": str(UUID(int=1))}),
        json.dumps({"schema": 1, "slices": [json.loads(snapshot_of())["slices"][0]] * 2}),
    ],
    ids=["not registered", "item type", "unknown", "fields", "naive", "role", "same id", "same place", "twice"],
)
def test_a_snapshot_that_does_not_fit_leaves_the_session_as_it_was(text: str) -> None:
    """WI-33, UP-25: neither logs nor states change, and nobody is told."""
    session, seen = recording(), []
    session.mutate(Plan).register(Plan, replace_latest)
    session.mutate(Plan).append(Plan("walk"))
    session.observe(Plan, lambda old, new: seen.append(new))
    session.observe(InnerMessage, lambda old, new: seen.append(new))

    with pytest.raises(SnapshotRestoreError):
        session.mutate().rollback(Snapshot.from_json(text))

    assert session.select_all(Plan) == (Plan("walk"),)
    assert session.select_all(InnerMessage) == ()
    assert seen == []


def test_restoring_neither_imports_nor_makes_what_a_snapshot_names() -> None:
    """WI-34: the names of a snapshot are compared, never looked up."""
    made = []

    @dataclass(frozen=True)
    class Trap:
        text: str

        def __post_init__(self) -> None:
            made.append(self)

    named = f"{Trap.__module__}:{Trap.__qualname__}"
    for name in (named, "antigravity:fly", "os:system", "builtins:eval"):
        with pytest.raises(SnapshotRestoreError):
            recording().mutate().rollback(
                Snapshot.from_json(snapshot_of({"text": "x"}, slice_type=name, item_type=name))
            )

    assert made == []
    assert "antigravity" not in sys.modules


@pytest.mark.parametrize(
    "value",
    [object(), {1, 2}, (1, 2), float("nan"), float("inf"), b"\xff", "\ud83d", lambda: None],
    ids=lambda value: type(value).__name__,
)
def test_a_value_that_would_not_come_back_equal_is_refused_at_snapshot_time(value: object) -> None:
    """WI-35: what JSON cannot hold, and what it would hold as something else."""

    @dataclass(frozen=True)
    class Anything:
        value: Any

    session = Session()
    session.mutate(Anything).register(Anything, append_item)
    session.mutate(Anything).append(Anything(value))

    with pytest.raises(SnapshotSerializationError, match=r"item 0 of the slice .*Anything cannot be written as JSON"):
        session.snapshot()


def test_a_rollback_sets_states_and_keeps_logs() -> None:
    """WI-18, UP-28: what a tool did to its state is undone, and a new state becomes empty; what was said stays."""
    session = recording()
    empty = session.snapshot()
    taking_notes(session)
    record_all(session, [system()])
    session.mutate(Plan).append(Plan("walk"))
    before = session.snapshot()

    record_all(session, [asked(1, "c1"), told(2, "c1")])
    session.mutate(Plan).append(Plan("drive"))
    session.mutate(Note).append(Note("it rains"))
    session.mutate().rollback(before)

    assert session.select_all(Plan) == (Plan("walk"),)
    assert session.select_all(Note) == (Note("it rains"),)
    assert [each.sequence for each in session.select_all(InnerMessage)] == [0, 1, 2]
    assert statuses(session) == {"c1": "completed"}

    session.mutate().rollback(empty)
    assert session.select_all(Plan) == ()


def test_a_log_that_is_not_so_far_moves_forward() -> None:
    """UP-28, WI-28: also over a call that was answered, and a record that landed between."""
    session, other = recording(), recording()
    records = [system(), asked(1, "c1", "c2"), told(3, "c2"), told(2, "c1")]
    record_all(session, records)
    record_all(other, records[:3])

    other.mutate().rollback(session.snapshot())

    assert other.select_all(InnerMessage) == session.select_all(InnerMessage)


@pytest.mark.parametrize("further", ["snapshot", "log", "neither"])
def test_a_log_and_a_snapshot_that_part_are_an_error_and_nothing_changes(further: str) -> None:
    """UP-28: no record is dropped, whichever of the two has more."""
    first, here, there = system(), asked(1, "c1"), asked(1, "c2")
    session, other = taking_notes(), taking_notes()
    record_all(session, [first, here, *([told(2, "c1")] if further == "log" else [])])
    record_all(other, [first, there, *([told(2, "c2")] if further == "snapshot" else [])])
    session.mutate(Plan).append(Plan("walk"))
    before = session.snapshot().slices

    with pytest.raises(SnapshotRestoreError, match="the snapshot's: neither begins with the other"):
        session.mutate().rollback(other.snapshot())

    assert session.snapshot().slices == before


def test_a_log_of_any_type_moves_forward_stays_or_parts() -> None:
    session, other = taking_notes(Session()), taking_notes(Session())
    for text in "ab":
        session.mutate(Note).append(Note(text))
    short = session.snapshot()
    session.mutate(Note).append(Note("c"))

    other.mutate().rollback(session.snapshot())
    assert other.select_all(Note) == (Note("a"), Note("b"), Note("c"))
    other.mutate().rollback(short)
    assert other.select_all(Note) == (Note("a"), Note("b"), Note("c"))
    parted = taking_notes(Session())
    parted.mutate(Note).append(Note("z"))
    with pytest.raises(SnapshotRestoreError):
        parted.mutate().rollback(short)


def test_a_journal_that_fails_in_a_rollback_leaves_log_and_journal_equal_and_states_untouched() -> None:
    """UP-30, UP-28: what was written is in the log, and nothing else changed."""
    session, journal = taking_notes(), FullJournal(limit=2)
    record_all(session, [system(), asked(1, "c1"), told(2, "c1")])
    other = taking_notes(recording(journal))
    other.mutate(Plan).append(Plan("walk"))

    with pytest.raises(RecordingFailed, match="no space left"):
        other.mutate().rollback(session.snapshot())

    assert [each.sequence for each in other.select_all(InnerMessage)] == [0, 1]
    assert statuses(other) == {"c1": "pending"}
    assert other.select_all(Plan) == (Plan("walk"),)
    assert recording(journal).select_all(InnerMessage) == other.select_all(InnerMessage)


def test_what_a_newer_version_wrote_survives_record_journal_and_snapshot() -> None:
    """UP-12: unknown kinds of parts and unknown fields, at every depth, null or not; also when a status advances."""
    journal = ListJournal()
    journal.append(OWN, json.dumps(NEWER))
    session = recording(journal)
    record_all(session, [told(1, "c1")])
    restored = recording()
    restored.mutate().rollback(Snapshot.from_json(session.snapshot().to_json()))
    once_more = ListJournal()
    recording(once_more).mutate().rollback(restored.snapshot())

    completed = {**NEWER["tool_calls"][0], "status": "completed"}
    for text, calls in [
        (restored.snapshot().slices[0].items[0], [completed]),
        (once_more.lines[0][1], NEWER["tool_calls"]),  # as it was recorded
    ]:
        assert holds(json.loads(text), without_nulls({**NEWER, "tool_calls": calls}))
        assert json.loads(text)["mood"] == {"calm": None}
        assert json.loads(text)["messages"][0]["payload"]["parts"][0] == NEWER["messages"][0]["payload"]["parts"][0]


def without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: without_nulls(each) for name, each in value.items() if each is not None}
    return value


def holds(found: Any, expected: Any) -> bool:
    """Whether everything expected is there; known fields may be there besides."""
    if isinstance(expected, dict):
        return all(name in found and holds(found[name], each) for name, each in expected.items())
    if isinstance(expected, list):
        return len(found) == len(expected) and all(map(holds, found, expected))
    return bool(found == expected)
