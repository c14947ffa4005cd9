"""Writes a folder of frozen data: what the checked-out version stores, and what can be read of it.

    python -m tests.frozen.write tests/frozen/NAME

    first/    written by commit 9aaee50, the first version whose data must stay readable

Run it only to add a new folder, with a version whose data is not frozen yet. A folder that exists is never written
again: its files are what users of that version have. Every run writes other ids and times, and the same states.

    scenes of tests.frozen.writing, each in a process ──▶ *.db ──vacuum──▶ sqlite/*.db.gz
                                                    └───▶ a Postgres of its own ──pg_dump──▶ postgres/*.sql.gz
"""

import asyncio
import gzip
import hashlib
import json
import multiprocessing
import signal
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sabir
from sabir_session import Snapshot

from tests.frozen import readable
from tests.frozen.writing import conversations, histories, plugins, runs, threads
from tests.servers.postgres import find_programs, new_database, postgres_server

SECONDS = 120
STORES = ("conversations", "threads", "runs", "queued-threads", "queued-runs")
_processes = multiprocessing.get_context("spawn")


def perform(scene: Callable[..., None], *arguments: Any) -> None:
    """Perform a scene in a process of its own, which it may kill."""
    process = _processes.Process(target=scene, args=arguments)
    process.start()
    process.join(SECONDS)
    if process.exitcode not in (0, -signal.SIGKILL):
        process.kill()
        raise SystemExit(f"{scene.__name__} ended with {process.exitcode}")


def write_stores(address: Callable[[str], str], url: Callable[[str], str]) -> None:
    """All scenes; `address` is where a session store of that name is, `url` where a durable one is."""
    for scene in (conversations.write_whole, *conversations.KILLED):
        perform(scene, address("conversations"))
    for scene in (runs.write_ended, runs.write_cut_off, runs.write_waiting):
        perform(scene, url("runs"))
    for thread_scene in threads.WRITERS:
        perform(thread_scene, address("threads"), None)
        perform(thread_scene, address("queued-threads"), url("queued-runs"))


def expect(folder: Path, address: Callable[[str], str], url: Callable[[str], str]) -> None:
    """Write what can be read of the stores."""
    with conversations.open_store(address("conversations")) as store:
        readable.write_json(folder / "conversations.json.gz", readable.of_store(store))
    for name in ("threads", "queued-threads"):
        with conversations.open_store(address(name)) as store:
            readable.write_json(folder / f"{name}.json.gz", asyncio.run(readable.of_threads(store)))
    for name in ("runs", "queued-runs"):
        readable.write_json(folder / f"{name}.json.gz", readable.of_runs(url(name)))


def pack(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(data, mtime=0))


def write_sqlite(folder: Path, work: Path) -> None:
    """The SQLite files, without pages that hold deleted data, and with nothing left in a write-ahead log."""

    def address(name: str) -> str:
        return str(work / f"{name}.db")

    def url(name: str) -> str:
        return f"sqlite:///{address(name)}"

    write_stores(address, url)
    for name in STORES:
        connection = sqlite3.connect(address(name))
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.execute("VACUUM")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.close()
        pack(folder / "sqlite" / f"{name}.db.gz", Path(address(name)).read_bytes())
    expect(folder / "expected" / "sqlite", address, url)


def write_postgres(folder: Path) -> None:
    """Dumps as statements that any client can execute."""
    with postgres_server() as server:
        databases = {name: new_database(server) for name in STORES}
        write_stores(databases.__getitem__, databases.__getitem__)
        for name, database in databases.items():
            pack(folder / "postgres" / f"{name}.sql.gz", "\n".join(_dump(database)).encode())
        expect(folder / "expected" / "postgres", databases.__getitem__, databases.__getitem__)


def _dump(database: str) -> Iterator[str]:
    """The lines of a dump, without comments, commands of psql, and settings that older servers lack."""
    options = ("--inserts", "--no-owner", "--no-privileges", "--no-comments")
    command = [find_programs() / "pg_dump", *options, database]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return (line for line in text.splitlines() if line and not line.startswith(("--", "\\", "SET ")))


def write_files(folder: Path, work: Path) -> None:
    """Histories, snapshots and plugins."""
    for name in ("histories", "snapshots", "plugins"):
        (folder / name).mkdir()
    histories.write(folder / "histories")
    for path in sorted((folder / "histories").iterdir()):
        readable.write_json(
            folder / "expected" / "histories" / f"{path.name}.json.gz", readable.of_history(sabir.load(path))
        )
    conversations.write_snapshots(folder / "snapshots")
    for path in sorted((folder / "snapshots").iterdir()):
        snapshot = Snapshot.from_json(path.read_text("utf-8"))
        readable.write_json(folder / "expected" / "snapshots" / f"{path.name}.gz", readable.of_snapshot(snapshot))
    plugins.write(folder / "plugins", work)


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """The folder, which may not exist yet."""
    try:
        path.mkdir(parents=True)
    except FileExistsError:
        raise SystemExit(f"{path} exists; frozen data is never written again: give a new folder") from None
    yield path


def main(arguments: Sequence[str]) -> None:
    """Write everything into the folder that is named."""
    with new_folder(Path(arguments[0])) as folder, tempfile.TemporaryDirectory() as work:
        write_files(folder, Path(work))
        write_sqlite(folder, Path(work))
        write_postgres(folder)
        paths = sorted(path for path in folder.rglob("*") if path.is_file())
        sums = {path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}
        (folder / "sums.json").write_text(json.dumps(sums, indent=0) + "\n", "utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
