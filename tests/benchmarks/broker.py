"""A server of NATS or Postgres for as long as a row needs it: in a process of its own, from a contender's packages.

This module run by itself is that process: it ends the server when its stdin closes, however that comes.
"""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

from tests.benchmarks import environments
from tests.benchmarks.environments import ROOT, Absent

NATS, POSTGRES = "nats", "postgres"
"""What the URLs of the servers begin with."""
REQUIRED_BY = {NATS: "bare_request", POSTGRES: "sabir_workers"}
"""Server → a contender that requires its programs."""


@contextmanager
def running(name: str, size: int = 0) -> Iterator[str]:
    """A server's URL, while it runs; Absent where none can be started."""
    command = [str(environments.python_of(REQUIRED_BY[name])), "-m", "tests.benchmarks.broker", name]
    process = subprocess.Popen(
        command, cwd=ROOT, env=environments.variables(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdin is not None and process.stdout is not None
    try:
        said = process.stdout.readline().strip()
        if not said.startswith(name):
            raise Absent(said or f"no {name}: its process ended")
        yield said
    finally:
        process.communicate()


def server(name: str) -> AbstractContextManager[str]:
    """A server, made of what is installed here; each is imported where it is."""
    if name == POSTGRES:
        from tests.servers.postgres import postgres_server

        return postgres_server()
    from tests.servers.nats import nats_server

    return nats_server()


def main(name: str) -> None:
    """Serve until stdin closes."""
    try:
        with server(name) as url:
            print(url, flush=True)
            sys.stdin.read()
    except Exception as reason:
        print(reason, flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
