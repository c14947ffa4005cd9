"""Checks a folder of built archives: each package has a wheel and a source archive, complete.

    python tests/isolation/wheels.py FOLDER

Prints one line for each package and exits 1 when a line names a fault.
"""

import re
import sys
import tarfile
import tomllib
import zipfile
from email.message import Message
from email.parser import BytesParser
from pathlib import Path

ROOT = Path(__file__).parents[2]


def faults(folder: Path, archives: Path) -> list[str]:
    """What is wrong with the archives of the package in that folder."""
    project = tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))["project"]
    module = project["name"].replace("-", "_")
    stem = f"{module}-{project['version']}"
    wheel, source = archives / f"{stem}-py3-none-any.whl", archives / f"{stem}.tar.gz"
    missing = [f"{path.name} was not built" for path in (wheel, source) if not path.is_file()]
    if missing:
        return missing
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        metadata = BytesParser().parsebytes(archive.read(f"{stem}.dist-info/METADATA"))
    needed = {
        f"{module}/__init__.py",
        f"{module}/py.typed",
        f"{stem}.dist-info/licenses/LICENSE",
        *(
            f"{module}/{path.relative_to(folder / 'src' / module).as_posix()}"
            for path in sources(folder / "src" / module)
        ),
    }
    foreign = {name for name in names if not name.startswith((f"{module}/", f"{stem}.dist-info/"))}
    return [
        *(f"the wheel lacks {name}" for name in sorted(needed - names)),
        *(f"the wheel holds {name}" for name in sorted(foreign)),
        *(f"the wheel holds {name}, which a tool left behind" for name in sorted(filter(is_leftover, names))),
        *source_faults(folder, source, stem),
        *metadata_faults(metadata, project),
    ]


def source_faults(folder: Path, archive: Path, stem: str) -> list[str]:
    """Name what a source archive lacks or holds beyond the sources, the metadata, the README and the licence."""
    with tarfile.open(archive) as file:
        names = {member.name.removeprefix(f"{stem}/") for member in file.getmembers() if member.isfile()}
    needed = {"PKG-INFO", "pyproject.toml", "README.md", "LICENSE"} | {
        f"src/{path.relative_to(folder / 'src').as_posix()}" for path in sources(folder / "src")
    }
    return [
        *(f"the source archive lacks {name}" for name in sorted(needed - names)),
        *(f"the source archive holds {name}" for name in sorted(names - needed - {".gitignore"})),
    ]


LEFTOVER = re.compile(r"__pycache__|\..*_cache|\.hypothesis|.*\.py[co]")


def is_leftover(name: str) -> bool:
    """Return whether a file of an archive is what the interpreter or another tool left in a folder."""
    return any(map(LEFTOVER.fullmatch, name.split("/")))


def sources(folder: Path) -> list[Path]:
    """Return the files that a wheel must contain: all but what the interpreter and other tools left behind."""
    return [path for path in folder.rglob("*") if path.is_file() and not is_leftover(path.as_posix())]


def metadata_faults(metadata: Message, project: dict[str, object]) -> list[str]:
    """Where a wheel's metadata differs from what its project says, or would not do for a stranger."""
    expected = {
        "Name": project["name"],
        "Version": project["version"],
        "Summary": project["description"],
        "License-Expression": "Apache-2.0",
        "Requires-Python": ">=3.11",
    }
    differing = [
        f"{key} is {metadata[key]!r}, not {value!r}" for key, value in expected.items() if metadata[key] != value
    ]
    requirements = metadata.get_all("Requires-Dist") or []
    bound = re.compile(r"[\w.-]+(\[[\w,.-]+\])?[<>=!,\d.]*>=\d")
    unbound = [f"{row!r} has no lower bound" for row in requirements if not bound.match(row)]
    direct = [f"{row!r} points at a place, not at a version" for row in requirements if "@" in row]
    silent = [] if str(metadata.get_payload()).strip() else ["the README is not in the metadata"]
    return [*differing, *unbound, *direct, *silent]


def main(archives: Path) -> int:
    """Check every package of the workspace; 1 when one has a fault."""
    folders = [ROOT / "core", *(path.parent for path in sorted(ROOT.glob("plugins/*/pyproject.toml")))]
    rows = {folder.name: faults(folder, archives) for folder in folders}
    for name, found in rows.items():
        print(f"{name}: {'; '.join(found) or 'wheel and source archive are complete'}")
    return 1 if any(rows.values()) else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
