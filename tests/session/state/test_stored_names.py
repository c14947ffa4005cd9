"""Items are stored under names that outlive the place and the name of their class."""

from dataclasses import make_dataclass
from typing import Any

import pytest
from sabir_session import InnerMessage, Session, SliceConflict, SnapshotRestoreError, append_item, replace_latest
from sabir_session.state.codec import names_of

from tests.session.support import ListJournal, Note, Opener, recording, system


def note_class(module: str, name: str = "Note", **names: Any) -> type[Any]:
    """A class of items, as it would be in that module."""
    made = make_dataclass(name, [("text", str)], namespace=names, frozen=True)
    made.__module__ = module  # from Python 3.12 on, make_dataclass itself names the module that called it
    return made


BEFORE = note_class("app.notes")
NAMED = note_class("app.notes", stored_as="app.note")
MOVED = note_class("app.memos", "Memo", stored_as="app.note", stored_before=("app.notes:Note",))
UNNAMED_AGAIN = note_class("app.memos", "Memo", stored_before=("app.note", "app.notes:Note"))
HISTORY = (BEFORE, NAMED, MOVED, UNNAMED_AGAIN)
"""One class in the course of time."""


def notes_in(session: Session, kind: type[Any]) -> list[str]:
    session.mutate(kind).register(kind, append_item)
    return [note.text for note in session.select_all(kind)]


def test_a_log_is_read_whatever_its_class_was_called(open_store: Opener) -> None:
    with open_store() as store:
        for number, kind in enumerate(HISTORY):
            session = Session(journal=store.journal("a"))
            assert notes_in(session, kind) == [str(each) for each in range(number)]
            session.mutate(kind).append(kind(str(number)))
        kinds = [kind for kind, _ in store.journal("a").read()]
    assert kinds == ["app.notes:Note", "app.note", "app.note", "app.memos:Memo"]


@pytest.mark.parametrize("later", HISTORY[1:])
@pytest.mark.parametrize("reducer", [append_item, replace_latest])
def test_a_snapshot_is_restored_whatever_its_class_was_called(later: type[Any], reducer: Any) -> None:
    session, other = Session(), Session()
    session.mutate(BEFORE).register(BEFORE, reducer)
    session.mutate(BEFORE).append(BEFORE("one"))
    other.mutate(later).register(later, reducer)

    other.mutate().rollback(session.snapshot())

    assert other.select_all(later) == (later("one"),)
    assert other.snapshot().slices[0].slice_type == names_of(later).name


def test_a_snapshot_with_one_slice_under_two_names_is_refused() -> None:
    session = Session()
    session.mutate(NAMED).register(NAMED, append_item)
    snapshot = session.snapshot()
    twice = [snapshot.slices[0], snapshot.slices[0].model_copy(update={"slice_type": "app.notes:Note"})]

    with pytest.raises(SnapshotRestoreError, match="or the snapshot has it twice"):
        session.mutate().rollback(snapshot.model_copy(update={"slices": tuple(twice)}))


@pytest.mark.parametrize("other", [NAMED, MOVED, UNNAMED_AGAIN])
def test_two_classes_cannot_share_a_name_that_is_read(other: type[Any]) -> None:
    session = Session()
    session.mutate(BEFORE).register(BEFORE, append_item)
    with pytest.raises(SliceConflict, match=r"the stored name 'app\.notes:Note'; change `stored_as` of one"):
        session.mutate(other).register(other, append_item)


def test_messages_do_not_depend_on_where_their_class_is() -> None:
    """The name before stored names is read, and not written."""
    journal = ListJournal()
    session = recording(journal)
    session.mutate(InnerMessage).append(system())
    assert [kind for kind, _ in journal.lines] == ["sabir.message"]

    older = ListJournal([("sabir_session:InnerMessage", body) for _, body in journal.lines])
    assert recording(older).select_all(InnerMessage) == session.select_all(InnerMessage)
    assert names_of(InnerMessage).all == ("sabir.message", "sabir_session:InnerMessage")
    assert names_of(Note).all == ("tests.session.support:Note",)
