"""A process that dies in the middle of appending: everything whose append returned is there afterwards."""

import subprocess
import sys

import pytest
from sabir_session import InnerMessage

from tests.session.journals import recording
from tests.session.support import Opener

CHILD = """
import sys
from sabir_session import InnerMessage, PostgresStore, SQLiteStore, Session, enable_inner_message_recording

address = sys.argv[1]
store = PostgresStore(address) if address.startswith("postgresql://") else SQLiteStore(address)
session = Session(journal=store.journal("monday"))
enable_inner_message_recording(session)
sequence = len(session.select_all(InnerMessage))
while True:
    session.mutate(InnerMessage).append(
        InnerMessage(role="user", content="word " * (sequence % 700), evaluation_id="e", sequence=sequence)
    )
    print(sequence, flush=True)
    sequence += 1
"""
KILLS = 6


@pytest.mark.parametrize("enough", [1, 40, 250])
def test_what_was_appended_survives_a_kill(address: str, open_store: Opener, enough: int) -> None:
    """UP-30, WI-03: killed again and again, each time in the midst of its loop, and carried on by the next process."""
    known = 0
    for _ in range(KILLS):
        returned = run_and_kill(address, known + enough)
        with open_store() as store:
            records = recording(store.journal("monday")).select_all(InnerMessage)
        assert [record.sequence for record in records] == list(range(len(records)))
        assert [record.content for record in records] == ["word " * (number % 700) for number in range(len(records))]
        assert len(records) - 1 in (returned, returned + 1)  # at most one was written and not yet told of
        known = len(records)


def run_and_kill(address: str, last: int) -> int:
    """Have a child append at least up to a number and kill it (SIGKILL); the last number that it told of."""
    with subprocess.Popen([sys.executable, "-c", CHILD, address], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        told = -1
        for line in child.stdout:
            told = int(line) if line.endswith("\n") else told
            if told >= last:
                child.kill()
        assert child.wait() == -9
    return told
