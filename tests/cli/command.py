"""The `sabir` command as a user runs it: the installed script, in a process of its own, or its function in this one."""

import contextlib
import io
import os
import subprocess
import sysconfig
from collections.abc import Mapping
from pathlib import Path
from unittest import mock

from sabir_cli.main import main

SCRIPT = Path(sysconfig.get_path("scripts")) / "sabir"
NO_FOLDER = str(Path(__file__).parent / "no-such-folder")
KEYS = ("_API_KEY", "_ADMIN_KEY", "_TOKEN")


def environment(changes: Mapping[str, str] | None = None) -> dict[str, str]:
    """This environment without keys, settings and what steers colours and widths, 80 columns wide.

    The home of conversations stays as it is: every test has one of its own.
    """
    steering = ("NO_COLOR", "FORCE_COLOR", "SABIR_")
    kept = {
        name: value
        for name, value in os.environ.items()
        if name == "SABIR_HOME" or not (name.endswith(KEYS) or name.startswith(steering))
    }
    return {**kept, "COLUMNS": "80", "PYTHONWARNINGS": "error", "XDG_CONFIG_HOME": NO_FOLDER, **(changes or {})}


def run(
    *arguments: str, given: bytes = b"", env: Mapping[str, str] | None = None, cwd: Path | None = None
) -> subprocess.CompletedProcess[bytes]:
    """Run it to its end; `given` is what is piped to it."""
    return subprocess.run(
        [SCRIPT, *arguments], input=given, capture_output=True, env=environment(env), cwd=cwd, check=False
    )


def run_here(
    *arguments: str, given: bytes = b"", env: Mapping[str, str] | None = None, cwd: Path | None = None
) -> subprocess.CompletedProcess[bytes]:
    """Call its function in this process, which takes a tenth of the time of `run`."""
    stdin, out, err = (io.TextIOWrapper(io.BytesIO(data), "utf-8", write_through=True) for data in (given, b"", b""))
    with (
        mock.patch.dict(os.environ, environment(env), clear=True),
        mock.patch("sys.stdin", stdin),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        contextlib.chdir(cwd or Path.cwd()),
    ):
        code = main(arguments)
    return subprocess.CompletedProcess(arguments, code, *(each.buffer.getvalue() for each in (out, err)))  # type: ignore[attr-defined]


def error_line(finished: subprocess.CompletedProcess[bytes]) -> str:
    """The one line that an error is; fails where standard error holds anything else, a traceback above all."""
    lines = finished.stderr.decode().splitlines()
    assert len(lines) == 1, lines
    assert lines[0].startswith("sabir: ")
    return lines[0].removeprefix("sabir: ")
