"""A NATS server for as long as a row needs it: in a process of its own, with the binary that a contender requires.

This module run by itself is that process: it ends the server when its stdin closes, however that comes.
"""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from tests.benchmarks import environments
from tests.benchmarks.environments import ROOT, Absent
from tests.servers.nats import NatsUnavailable, nats_server

REQUIRED_BY = "bare_request"


@contextmanager
def running(size: int = 0) -> Iterator[str]:
    """A server's URL, while it runs; Absent where none can be started."""
    command = [str(environments.python_of(REQUIRED_BY)), "-m", "tests.benchmarks.broker"]
    process = subprocess.Popen(
        command, cwd=ROOT, env=environments.variables(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdin is not None and process.stdout is not None
    try:
        said = process.stdout.readline().strip()
        if not said.startswith("nats://"):
            raise Absent(said or "no NATS: its process ended")
        yield said
    finally:
        process.communicate()


def main() -> None:
    """Serve until stdin closes."""
    try:
        with nats_server() as url:
            print(url, flush=True)
            sys.stdin.read()
    except NatsUnavailable as reason:
        print(reason, flush=True)


if __name__ == "__main__":
    main()
