"""The frozen files themselves: complete, small, and without traces of the machine that wrote them."""

import gzip
import hashlib
import io
import json
import re
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

from tests.frozen.conftest import FOLDERS
from tests.rules import check_each

MOST_BYTES = 600_000
"""The most that one folder may have."""
TRACES = re.compile(
    rb"(?<![\w.-])/(?:home|root|tmp|work|opt|usr|Users|var)/|localhost|(?<!\d)127\.0\.0\.1:\d|nobody@|root@"
)
"""An absolute path, a port of a server that ran, or a user."""
SUMS = "sums.json"


def contents(path: Path) -> Iterator[bytes]:
    """What a file holds, unpacked."""
    if path.suffix == ".whl":
        with zipfile.ZipFile(path) as archive:
            yield from (archive.read(name) for name in archive.namelist())
    elif path.suffix == ".xz":
        with tarfile.open(path) as packed:
            for member in packed.getmembers():
                assert (member.uid, member.uname) == (0, "")
                yield (packed.extractfile(member) or io.BytesIO()).read()
    else:
        data = path.read_bytes()
        yield gzip.decompress(data) if path.suffix == ".gz" else data


def files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file() and path.name != SUMS)


def test_no_file_names_the_machine_that_wrote_it() -> None:
    """Also inside of databases, archives and dumps."""

    def traces(path: Path) -> Iterator[str]:
        for data in contents(path):
            for match in TRACES.finditer(data):
                yield f"{path.name}: {data[max(0, match.start() - 40) : match.end() + 40]!r}"

    check_each([path for folder in FOLDERS for path in files(folder)], traces, "write the folder without it")


def test_no_frozen_file_is_ever_changed() -> None:
    """The sums are written once, beside the files."""

    def changes(folder: Path) -> Iterator[str]:
        written = json.loads((folder / SUMS).read_text("utf-8"))
        present = {path.relative_to(folder).as_posix(): sum_of(path) for path in files(folder)}
        yield from (f"{folder.name}/{name} changed" for name in written if written[name] != present.get(name))
        yield from (f"{folder.name}/{name} is new" for name in present.keys() - written.keys())

    check_each(FOLDERS, changes, "restore it; new data is written into a new folder")


def test_frozen_data_stays_small() -> None:
    sizes = {folder.name: sum(path.stat().st_size for path in files(folder)) for folder in FOLDERS}

    assert sizes and max(sizes.values()) <= MOST_BYTES


def sum_of(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
