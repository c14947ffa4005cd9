"""Builds the two packages that `sabir new-plugin` writes: the wheel that is installed, and the tests that it passes.

zenith    a worked provider; its recordings come with it
nadir     a compatible endpoint; recorded from the embedded model server of sabir-local
"""

import os
import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path

from sabir_local.models import find_weights
from sabir_local.server import LocalServer

NADIR_URL = "https://api.nadir.example/v1"
UNABLE = """

TestNadir.xfail |= {
    "test_a_recorded_answer_says_what_was_asked[parallel_calls]": "so small a model makes one call at a time",
    "test_a_recorded_answer_says_what_was_asked[image]": "the model reads no pictures",
    "test_a_streamed_answer_is_the_whole_answer[image]": "the model reads no pictures",
    "test_a_recorded_failure_is_its_error[missing_model]": "the server has one model, whatever it is called",
    "test_a_streamed_failure_is_its_error[missing_model]": "the server has one model, whatever it is called",
}
"""
"""What the embedded server cannot do, as an author declares it."""


def write(folder: Path, work: Path) -> None:
    """Wheels and tests of both packages, into a folder."""
    _package(_written(work, "zenith"), folder)
    server = LocalServer(find_weights(None))
    try:
        package = _written(work, "nadir", "--compatible", NADIR_URL)
        suite = package / "tests" / "test_nadir.py"
        text = suite.read_text("utf-8").replace("Nadir's own service", "llama.cpp, not a vendor's own service")
        suite.write_text(text + UNABLE, "utf-8")
        _record(package, {"NADIR_API_KEY": server.api_key, "NADIR_BASE_URL": f"{server.address}/v1"})
    finally:
        server.stop()
    _package(package, folder)


def _written(work: Path, *arguments: str) -> Path:
    command = Path(sys.executable).with_name("sabir")
    subprocess.run([command, "new-plugin", *arguments, "--into", work], check=True, stdout=subprocess.DEVNULL)
    return work / f"sabir-{arguments[0]}"


def _record(package: Path, variables: Mapping[str, str]) -> None:
    """Record the cassettes; the package is imported from where it was written, with the metadata of its wheel."""
    site = package.parent / "site"
    _wheel(package, package.parent / "wheels")
    for wheel in (package.parent / "wheels").glob("*.whl"):
        shutil.unpack_archive(wheel, site, "zip")
    command = [sys.executable, "-m", "pytest", "-q", "-k", "recorded or streamed", "--sabir-record"]
    environment = {**os.environ, **variables, "PYTHONPATH": str(site), "PYTHONDONTWRITEBYTECODE": "1"}
    subprocess.run(command, cwd=package, env=environment, check=True)


def _wheel(package: Path, folder: Path) -> None:
    command = ["uv", "build", "--quiet", "--wheel", "--out-dir", folder, package]
    subprocess.run(command, check=True, env={**os.environ, "SOURCE_DATE_EPOCH": "1577836800"})


def _package(package: Path, folder: Path) -> None:
    """The wheel, and an archive of the tests with their settings for pytest."""
    _wheel(package, folder)
    (folder / ".gitignore").unlink(missing_ok=True)  # uv writes one
    with tarfile.open(folder / f"{package.name}-tests.tar.xz", "w:xz") as archive:
        for path in sorted([package / "pyproject.toml", *(package / "tests").rglob("*")]):
            if path.is_file() and not re.search(r"__pycache__|\.pytest_cache", str(path)):
                entry = tarfile.TarInfo(path.relative_to(package).as_posix())
                data = path.read_bytes()
                entry.size = len(data)
                archive.addfile(entry, BytesIO(data))
