"""Lock files: there while a conversation is open, and never longer, whoever deletes or claims it at the same time."""

import multiprocessing
import os
import subprocess
import sys
import textwrap
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from sabir_session import Conversation, ConversationBusy, SQLiteStore
from sabir_session.stores.claims import claim_file

ATTEMPTS = 400
HOLDING = """
    import sys, time
    from sabir_session import Conversation
    chat = Conversation("echo:m", keep=sys.argv[1], name="trip")
    chat.ask_sync("Hi")
    print("open", flush=True)
    sys.stdin.read()
    chat.close()
"""


def lock_files(path: Path) -> list[Path]:
    return sorted(path.with_name(f"{path.name}.locks").glob("*"))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the store is."""
    return tmp_path / "chats.db"


def hold(path: Path) -> "subprocess.Popen[str]":
    """Another process that has the conversation open."""
    command = [sys.executable, "-c", textwrap.dedent(HOLDING), str(path)]
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    assert child.stdout.readline() == "open\n"
    return child


def test_a_lock_file_is_there_while_its_conversation_is_open(path: Path) -> None:
    chat = Conversation("echo:m", keep=path, name="trip")
    other = Conversation("echo:m", keep=path, name="trip")
    chat.close()
    assert len(lock_files(path)) == 1
    other.close()
    assert lock_files(path) == []


@pytest.mark.parametrize("ending", ["killed", "closed"])
def test_a_deleted_conversation_leaves_no_lock_file(path: Path, ending: str) -> None:
    """A process that has it open keeps its claim, so that no second one comes in."""
    child = hold(path)
    if ending == "killed":
        child.kill()
        child.wait()
    assert len(lock_files(path)) == 1
    with SQLiteStore(path) as store:
        store.delete("trip")
    if ending == "closed":
        with pytest.raises(ConversationBusy):
            Conversation("echo:m", keep=path, name="trip")
    child.communicate()
    assert lock_files(path) == []
    Conversation("echo:m", keep=path, name="trip").close()


def test_a_lock_file_that_somebody_deleted_is_claimed_again(path: Path) -> None:
    with Conversation("echo:m", keep=path, name="trip"):
        lock_files(path)[0].unlink()
        with Conversation("echo:m", keep=path, name="trip"):
            assert len(lock_files(path)) == 1
    assert lock_files(path) == []


def claim_often(path: Path, inside: Path, results: Any) -> None:
    """Claim and release; while the claim is held, nobody else may be inside."""
    claims = overlaps = 0
    for _ in range(ATTEMPTS):
        with suppress(ConversationBusy):
            claim = claim_file(path, "trip")
            try:
                descriptor = os.open(inside, os.O_CREAT | os.O_EXCL)
                os.close(descriptor)
                inside.unlink()
            except FileExistsError:
                overlaps += 1
            claims += 1
            claim.release()
    results.put((claims, overlaps))


def test_removing_lock_files_never_lets_two_processes_in(tmp_path: Path) -> None:
    """Four processes claim and release one name as fast as they can."""
    spawn = multiprocessing.get_context("spawn")
    results: Any = spawn.Queue()
    arguments = (tmp_path / "chats.db", tmp_path / "inside", results)
    children = [spawn.Process(target=claim_often, args=arguments) for _ in range(4)]
    for child in children:
        child.start()
    outcomes = [results.get(timeout=120) for _ in children]
    for child in children:
        child.join()

    assert sum(overlaps for _, overlaps in outcomes) == 0
    assert all(claims for claims, _ in outcomes)
    assert lock_files(tmp_path / "chats.db") == []
