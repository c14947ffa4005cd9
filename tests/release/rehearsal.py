"""A rehearsal of a release: everything but the upload.

    metadata ──▶ build ──▶ archives checked ──▶ installed on each Python, alone and together ──▶ order of publishing

Each step returns its faults, so that one run shows the faults of all steps. Nothing leaves this machine.
"""

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain, repeat
from pathlib import Path

from tests.architecture.project import ROOT
from tests.isolation import check, wheels
from tests.release.numbers import version_faults, workspace_version
from tests.release.packages import Package, closure, load_packages, publishing_order

CHECK = ROOT / "tests" / "isolation" / "check.py"
RELATIVE_LINK = re.compile(r"\]\((?!https?://|#|mailto:)([^)\s]+)\)")
PYTHON_CLASSIFIER = "Programming Language :: Python :: 3."

BY_A_PERSON = """\
Publishing needs a person: the account of the package index that owns the names above, or its trusted publisher.
Nothing in this repository can upload. Before the upload, that person
  1. sets the repository's address in all packages: nox -s release -- --repository https://HOST/OWNER/NAME
  2. replaces "unreleased" in CHANGELOG.md by the date, runs this rehearsal again, and tags the commit
  3. uploads the archives in the order above, and installs `sabir` from the index in a new environment"""


def metadata_faults(packages: Sequence[Package], version: str) -> Iterator[str]:
    """Name what is wrong before anything is built: versions, the changelog, and READMEs of packages."""
    yield from version_faults()
    if f"## [{version}]" not in (ROOT / "CHANGELOG.md").read_text("utf-8"):
        yield f"CHANGELOG.md has no section for {version}"
    for package in packages:
        if not (package.folder / "README.md").read_text("utf-8").startswith(f"# {package.name}\n"):
            yield f"the README of {package.name} does not begin with its name"


def to_be_set(packages: Sequence[Package]) -> Iterator[str]:
    """Name what only a person can set, because no public repository is known: addresses and links to pages."""
    without = [package.name for package in packages if not package.metadata.get("urls")]
    if without:
        yield f"project URLs are missing in {len(without)} of {len(packages)} packages"
    links = sum(len(RELATIVE_LINK.findall((each.folder / "README.md").read_text("utf-8"))) for each in packages)
    if links:
        yield f"{links} links in READMEs of packages are relative, and a package index cannot follow them"


def build(archives: Path) -> Iterator[str]:
    """Build the wheel and the source archive of every package into a folder."""
    done = run("uv", "build", "--quiet", "--all-packages", "--out-dir", str(archives), cwd=ROOT)
    if done.returncode:
        yield f"the build failed: {last_lines(done)}"


def archive_faults(packages: Sequence[Package], archives: Path) -> Iterator[str]:
    """Check what every archive contains, its metadata, and that an index can render its README."""
    for package in packages:
        for fault in wheels.faults(package.folder, archives):
            yield f"{package.name}: {fault}"
    files = sorted(map(str, [*archives.glob("*.whl"), *archives.glob("*.tar.gz")]))
    done = run(sys.executable, "-m", "twine", "check", "--strict", *files, cwd=ROOT)
    if done.returncode or done.stdout.count("PASSED") != len(files):
        yield f"twine refuses the metadata or cannot render a README: {last_lines(done)}"


def pythons(packages: Sequence[Package]) -> dict[str, str]:
    """Return the Python versions of the classifiers with their interpreters; "" where one is not installed."""
    rows = {row for package in packages for row in package.metadata["classifiers"] if row.startswith(PYTHON_CLASSIFIER)}
    versions = sorted((row.rpartition(" ")[2] for row in rows), key=lambda version: int(version.partition(".")[2]))
    found = {version: run("uv", "python", "find", "--no-project", version, cwd=ROOT) for version in versions}
    return {version: done.stdout.strip() if done.returncode == 0 else "" for version, done in found.items()}


def installations(packages: Sequence[Package], archives: Path) -> dict[str, list[str]]:
    """Return what is installed: each package alone, those with extras, and all together; name → requirements."""
    wheel_of = {each.name: str(next(archives.glob(f"{each.module}-*.whl"))) for each in packages}
    by_folder = {each.folder.name: each for each in packages}
    rows = {}
    for label in check.EXPECTED:
        folder, bracket, extra = label.partition("[")
        if label == check.ALL:
            rows[label] = list(wheel_of.values())
            continue
        package = by_folder[folder]
        wanted = {each.name: wheel_of[each.name] for each in closure(package, packages)}
        rows[label] = list((wanted | {package.name: wanted[package.name] + bracket + extra}).values())
    return rows


def python_faults(rows: Mapping[str, Sequence[str]], interpreter: str) -> Iterator[str]:
    """Try every installation on one Python, as many at once as this machine has processors."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        yield from chain(*pool.map(installation_faults, rows, rows.values(), repeat(interpreter)))


def installation_faults(label: str, requirements: Sequence[str], interpreter: str) -> list[str]:
    """Install wheels into a new environment of that Python and run tests/isolation/check.py in it."""
    with tempfile.TemporaryDirectory() as folder:
        environment = Path(folder) / "environment"
        python = environment / ("Scripts" if os.name == "nt" else "bin") / "python"
        for command in (
            ["uv", "venv", "--quiet", "--no-project", "--python", interpreter, str(environment)],
            ["uv", "pip", "install", "--quiet", "--python", str(python), *requirements],
            ["uv", "pip", "check", "--quiet", "--python", str(python)],
            [str(python), "-I", "-W", "error", str(CHECK), label],
        ):
            done = run(*command, cwd=Path(folder))
            if done.returncode:
                return [f"{label}: {Path(command[0]).name} {' '.join(command[1:3])}: {last_lines(done)}"]
    return []


def run(*command: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run a program and capture its output. No Python is downloaded."""
    environment = {key: value for key, value in os.environ.items() if key not in ("VIRTUAL_ENV", "PYTHONPATH")}
    environment["UV_PYTHON_DOWNLOADS"] = "never"
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)


def last_lines(done: subprocess.CompletedProcess[str]) -> str:
    """Return the end of a program's output, for a fault of one line."""
    return " ".join((done.stdout + done.stderr).split())[-600:]


def rehearse(archives: Path) -> int:
    """Print every step of a release with its faults, and the order of publishing; return 1 if there is a fault."""
    packages, version = load_packages(), workspace_version()
    print(f"Rehearsal of sabir {version}: {len(packages)} packages. Nothing is uploaded.\n")
    faults = report("versions, ranges, changelog, READMEs", metadata_faults(packages, version))
    faults += report("wheels and source archives are built", build(archives))
    if faults == 0:
        faults += report("contents, metadata and rendered READMEs of all archives", archive_faults(packages, archives))
        faults += report_installations(packages, archives)
    print("\nTo be published, in this order:")
    for number, package in enumerate(publishing_order(packages), 1):
        sizes = [path.stat().st_size / 1000 for path in sorted(archives.glob(f"{package.module}-{version}*"))]
        print(f"{number:4}  {package.name} {version}  ({' + '.join(f'{size:,.0f} kB' for size in sizes)})")
    print("\nTo be set by a person:", *(f"  - {row}" for row in to_be_set(packages)), sep="\n")
    print(f"\n{BY_A_PERSON}")
    return 1 if faults else 0


def report(step: str, step_faults: Iterator[str]) -> int:
    """Print a step with its faults, and return how many there are."""
    rows = list(step_faults)
    print(f"{'FAILED' if rows else 'ok    '}  {step}", *(f"        {row}" for row in rows), sep="\n", flush=True)
    return len(rows)


def report_installations(packages: Sequence[Package], archives: Path) -> int:
    """Try all installations on each Python, name the Pythons that are absent, and return the number of faults."""
    rows, faults = installations(packages, archives), 0
    for python, interpreter in pythons(packages).items():
        if interpreter:
            step = f"Python {python}: {len(rows) - 1} installations of one package, and one of all"
            faults += report(step, python_faults(rows, interpreter))
        else:
            print(f"absent  Python {python} is not installed here, so nothing was installed on it")
    return faults
