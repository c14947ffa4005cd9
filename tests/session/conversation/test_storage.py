"""A conversation is kept where it was told to be: forked, taken back, closed, and held by one process."""

import gc
import os
import re
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import psycopg
import pytest
from sabir_session import (
    Conversation,
    ConversationBusy,
    ConversationNotFound,
    JournalExists,
    PostgresStore,
    RecordingFailed,
    Session,
    SQLiteStore,
    StoreError,
    enable_inner_message_recording,
    evaluate_sync,
    get_inner_messages,
)
from sabir_session.stores.journal import StoredJournal
from sabir_testing.scripted import ScriptedAdapter, calls

from tests.session.support import ROME, Opener, asked, minutes, record_all, recording, system, texts_of, weather


def test_the_last_turn_can_be_taken_back(place: dict[str, Any]) -> None:
    llm = ScriptedAdapter("Po.", calls(weather=ROME), "Rain.", "Rhine.", "Elbe.")
    chat = Conversation(llm, options=[weather], **place)
    chat.ask_sync("Name a river.")
    chat.ask_sync("Umbrella?")

    dropped = chat.drop_last()
    assert [message.kind for message in dropped] == ["parts", "option_call", "option_result", "parts"]
    assert (chat.ask_sync().text, chat.unfinished, len(llm.sent)) == ("Po.", False, 3)  # read from the records
    assert chat.ask_sync("Another.").text == "Rhine."
    assert texts_of(chat) == ["Name a river.", "Po.", "Another.", "Rhine."]
    if place:
        chat.close()
        again = Conversation(llm, **place)
        assert texts_of(again) == texts_of(chat)
        chat = again
    chat.drop_last()
    chat.drop_last()
    with pytest.raises(ConversationNotFound, match="there is no question to remove"):
        chat.drop_last()
    assert chat.messages == ()
    chat.close()


def test_a_fork_goes_its_own_way(place: dict[str, Any]) -> None:
    with Conversation(ScriptedAdapter("Po.", "Elbe.", "Rhine."), name="one", **place) as chat:
        chat.ask_sync("Name a river.")
        with chat.fork("two") as other:
            other.ask_sync("Go east.")
            chat.ask_sync("Go north.")
            assert (other.name, texts_of(other)) == ("two", ["Name a river.", "Po.", "Go east.", "Elbe."])
            assert texts_of(chat) == ["Name a river.", "Po.", "Go north.", "Rhine."]
        if place:
            with pytest.raises(JournalExists):
                chat.fork("two")


OPENING = "import sys; from sabir_session import Conversation; Conversation('echo:m', keep=sys.argv[1], name='trip')"


def open_elsewhere(path: Path) -> str:
    """Open the conversation `trip` in another process; what went wrong."""
    command = [sys.executable, "-c", OPENING, str(path)]
    return subprocess.run(command, capture_output=True, text=True, check=False).stderr


async def test_two_processes_cannot_hold_one_name(tmp_path: Path) -> None:
    """The first one has it until it closes the conversation, which is of no more use then; another name is free."""
    path = tmp_path / "c.db"
    async with Conversation("echo:m", keep=path, name="trip") as chat:
        await chat.ask("Hi")
        told = open_elsewhere(path)
    assert "ConversationBusy: another process has the conversation 'trip' open; close it there" in told
    with Conversation("echo:m", keep=path, name="other"):
        assert open_elsewhere(path) == ""
    with pytest.raises(StoreError, match="is closed; open it again"):
        await chat.ask("Hi")
    chat.close()


def test_a_record_that_cannot_be_written_leaves_what_was_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    append, places = StoredJournal.append, iter([True, True, False, True, False, True, True])

    def full(journal: StoredJournal, kind: str, body: str) -> None:
        if not next(places):
            raise OSError("no space left on device")
        append(journal, kind, body)

    monkeypatch.setattr(StoredJournal, "append", full)
    chat = Conversation(ScriptedAdapter("Po.", "Po.", "Rhine."), keep=tmp_path / "c.db")
    for question in ("Name a river.", "Another."):  # the reply to the first cannot be kept, then the second question
        with pytest.raises(RecordingFailed, match="no space left"):
            chat.ask_sync(question)
    assert (texts_of(chat), chat.unfinished) == (["Name a river.", "Po."], False)
    assert chat.ask_sync("Another.").text == "Rhine."
    chat.close()


def test_the_latest_object_of_a_process_writes(tmp_path: Path) -> None:
    """As in a notebook, whose cell runs again: the earlier object is refused once the later one has written."""
    llm = ScriptedAdapter("Po.", "Rhine.")
    earlier = Conversation(llm, keep=tmp_path / "c.db")
    earlier.ask_sync("Name a river.")
    later = Conversation(llm, keep=tmp_path / "c.db")
    later.ask_sync("Another.")
    for refused in (lambda: earlier.ask_sync("Another."), earlier.drop_last):
        with pytest.raises(ConversationBusy, match="was continued through another object"):
            refused()
    assert len(llm.sent) == 2
    earlier.close()
    later.close()
    with Conversation(llm, keep=tmp_path / "c.db") as again:
        assert texts_of(again) == ["Name a river.", "Po.", "Another.", "Rhine."]


FORKING = """
    import os, sys
    from sabir_session import Conversation, ConversationBusy
    chat = Conversation("echo:m", keep=sys.argv[1], name="trip")
    if not (child := os.fork()):
        try:
            chat.ask_sync("Hi")
        except ConversationBusy:
            del chat
            os._exit(7)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    os.execv(sys.executable, [sys.executable, "-c", sys.argv[2], sys.argv[1]]) if os.fork() == 0 else os.wait()
    chat.ask_sync("Hi")
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no process forks here")
def test_a_forked_process_neither_has_the_conversation_nor_gives_it_up(address: str) -> None:
    """The parent can ask after the child was refused, has collected its copy, and has tried to open the name."""
    command = [sys.executable, "-c", textwrap.dedent(FORKING), address, OPENING]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert re.search("another process.* has the conversation 'trip'", ended.stderr)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no process forks here")
def test_a_forked_process_claims_nothing_through_its_parents_connection(database: str) -> None:
    """It connects again, because the server would take its statements for the parent's."""
    with PostgresStore(database) as store, Conversation("echo:m", keep=store, name="trip") as chat:
        if not (child := os.fork()):
            with suppress(BaseException):
                try:
                    Conversation("echo:m", keep=store, name="trip")
                except ConversationBusy:
                    os._exit(7)
            os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        assert chat.ask_sync("Hi").text


def test_a_name_in_postgres_has_one_holder(database: str) -> None:
    store = PostgresStore(database)
    with Conversation(ScriptedAdapter("Po.", "Rhine."), keep=store, name="trip") as chat:
        chat.ask_sync("Name a river.")
        with pytest.raises(ConversationBusy, match=r"another process, or another store .* has"):
            Conversation("echo:m", keep=database, name="trip")
        Conversation("echo:m", keep=database, name="other").close()
    other = Conversation("echo:m", keep=database, name="trip")
    with pytest.raises(ConversationBusy):
        Conversation("echo:m", keep=store, name="trip")
    other.close()
    chat = Conversation(ScriptedAdapter("Elbe."), keep=store, name="trip")
    with psycopg.connect(database, autocommit=True) as killer:
        killer.execute("SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND granted")
    with pytest.raises((RecordingFailed, StoreError)):
        chat.ask_sync("Another.")
    assert chat.ask_sync("Another.").text == "Elbe."
    chat.close()
    store.close()


def test_a_conversation_in_memory_is_collected_however_deep(monkeypatch: pytest.MonkeyPatch) -> None:
    """It has nothing to give up, so that no call of ours fails where Python's own depth is used up."""
    failures: list[sys.UnraisableHookArgs] = []
    monkeypatch.setattr(sys, "unraisablehook", failures.append)
    gc.collect()
    gc.freeze()  # objects of other tests are not collected below, so that their failures do not count here
    try:
        _collect_circles_at_every_depth()
    finally:
        gc.unfreeze()
    assert [each for each in failures if each.exc_type is not ResourceWarning] == []  # a socket of another test


def _collect_circles_at_every_depth() -> None:
    """Make a conversation that only the collector can free, 100 times, and collect it ever deeper in the stack."""

    def collect(left: int) -> None:
        if left:
            collect(left - 1)
        else:
            gc.collect()

    limit = sys.getrecursionlimit()
    for depth in range(limit - 100, limit):
        circle: list[object] = [Conversation(ScriptedAdapter())]
        circle.append(circle)
        del circle
        with suppress(RecursionError):
            collect(depth)
    gc.collect()


def test_a_forgotten_conversation_on_postgres_is_free_at_the_next_claim(database: str) -> None:
    """Collecting it runs no statement: it may happen in the middle of another one."""
    with PostgresStore(database) as store, PostgresStore(database) as elsewhere:
        Conversation("echo:m", keep=store, name="trip")
        gc.collect()
        with pytest.raises(ConversationBusy):
            Conversation("echo:m", keep=elsewhere, name="trip")
        Conversation("echo:m", keep=store, name="other").close()
        Conversation("echo:m", keep=elsewhere, name="trip").close()


def test_a_name_that_is_opened_and_forgotten_is_free(tmp_path: Path) -> None:
    """Threads that open and close one name disturb each other no more than one after the other."""

    def use() -> None:
        for _ in range(30):
            Conversation("echo:m", keep=tmp_path / "c.db").close()

    with ThreadPoolExecutor(3) as threads:
        [done.result() for done in [threads.submit(use) for _ in range(3)]]
    Conversation("echo:m", keep=tmp_path / "c.db", name="trip")
    gc.collect()
    assert open_elsewhere(tmp_path / "c.db") == ""


def test_forks_share_a_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for keep in (":memory:", "c.db"):
        chat = Conversation(ScriptedAdapter("Po.", "Elbe."), keep=keep)
        chat.ask_sync("Name a river.")
        (tmp_path / "sub").mkdir(exist_ok=True)
        monkeypatch.chdir(tmp_path / "sub")
        other = chat.fork("other")
        chat.close()
        assert (len(other.messages), other.ask_sync("Another.").text) == (2, "Elbe.")
        other.close()
        monkeypatch.chdir(tmp_path)
    assert not list((tmp_path / "sub").iterdir())


def test_what_others_recorded_behind_the_last_turn_is_not_taken_back(tmp_path: Path) -> None:
    """A journal may hold several evaluations; the conversation is one of them, and stays it."""
    with SQLiteStore(tmp_path / "c.db") as store:
        session = Session(journal=store.journal("a"))
        evaluate_sync(ScriptedAdapter("Po."), "Name a river.", session=session)
        with Conversation(ScriptedAdapter("Rhine."), keep=store, name="a") as chat:
            assert texts_of(chat) == ["Name a river.", "Po."]
            session = Session(journal=store.journal("a"))
            evaluate_sync(ScriptedAdapter("Blue."), "Name a colour.", session=session)
            with pytest.raises((StoreError, ConversationBusy)):
                chat.drop_last()
        again = Session(journal=store.journal("a"))
        enable_inner_message_recording(again)
        assert len(get_inner_messages(again)) == 6


@pytest.mark.parametrize("clocks", [(0, 1, 2), (2, 1, 0), (0, 2, 1)])
def test_a_conversation_continues_the_evaluation_that_recorded_last(
    open_store: Opener, clocks: tuple[int, ...]
) -> None:
    """By the order of the records: clocks go backwards, and an evaluation may be resumed after a later one began."""
    with open_store() as store:
        session = recording(store.journal("a"))
        moments = [minutes(number) for number in clocks]
        record_all(session, [system("one", content="One.", created_at=moments[0])])
        record_all(session, [system("two", content="Two.", created_at=moments[1])])
        with Conversation("echo:m", keep=store, name="a") as chat:
            assert texts_of(chat) == ["Two."]
        record_all(session, [asked(1, content="First.", evaluation="one", turn=1, created_at=moments[2])])
        with Conversation("echo:m", keep=store, name="a") as chat:
            assert texts_of(chat) == ["One.", "First."]


def test_a_store_and_its_url_keep_it_too(tmp_path: Path) -> None:
    with SQLiteStore(tmp_path / "c.db") as store:
        with Conversation(ScriptedAdapter("Po."), keep=store, name="a") as chat:
            chat.ask_sync("Name a river.")
        assert store.names() == ("a",)
    with Conversation("echo:m", keep=f"sqlite:///{tmp_path}/c.db", name="a") as chat:
        assert texts_of(chat) == ["Name a river.", "Po."]
