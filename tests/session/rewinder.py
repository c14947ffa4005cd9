"""Another process that appends to a conversation and takes records back, and reads next to it.

    parent: store.journal("trip").read()          child: append · append · rewind · append …

`python -m tests.session.rewinder ADDRESS` writes until its standard input is closed.
"""

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from sabir_session import Store

from tests.session.support import opener

NAME = "trip"
SHORTEST, LONGEST = 3, 80
"""The journal's records are between these numbers; record n has the body "n"."""


def write(address: str, stop: threading.Event) -> None:
    """Extend the journal to its longest, and take back all but the first records, until `stop` is set."""
    with opener(address)() as store:
        extend(store, SHORTEST)
        print("ready", flush=True)
        while not stop.is_set():
            length = extend(store, 7)
            store.rewind(NAME, SHORTEST if length >= LONGEST - 7 else length - 2, length)


def extend(store: Store, count: int) -> int:
    """Append records to the journal, and return its length."""
    journal = store.journal(NAME)
    for _ in range(count):
        journal.append("k", str(len(journal)))
    return len(journal)


@contextmanager
def rewinding(address: str) -> Iterator[None]:
    """Run the other process for the duration of the `with` block."""
    command = [sys.executable, "-m", "tests.session.rewinder", address]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdin is not None
        assert child.stdout.readline() == "ready\n"
        yield
        assert child.poll() is None, "the writer has ended"
        child.stdin.close()
    assert child.returncode == 0


def read(store: Store) -> int:
    """Read the journal once as another program would, check it, and return its length."""
    bodies = [body for _, body in store.journal(NAME).read()]
    assert bodies == [str(number) for number in range(len(bodies))]
    assert SHORTEST <= len(bodies) <= LONGEST
    return len(bodies)


if __name__ == "__main__":
    ended = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()
    write(sys.argv[1], ended)
