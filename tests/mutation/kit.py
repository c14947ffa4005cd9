"""Run conformance suites on mutants of their packages: `python -m tests.mutation.kit --count 40 --seed 36`.

    package ──coverage──▶ the lines that its suite runs ──▶ their mutants ──hash──▶ seen half │ unseen half
    a copy of the package's source with one mutant, on PYTHONPATH ──▶ does the suite fail?

The packages are the project that `sabir new-plugin` writes, sabir-echo, and those in tests/third_party. All but echo
run in an environment of their own, with built wheels. Only the suite runs, not the package's other tests: they run for
a survivor, to print whether its author would notice it. Whoever adds cases to the kit looks at the seen half only, so
that `--unseen` measures the kit and not the memory of its authors. Prints one line for each mutant, then the survivors.
"""

import argparse
import hashlib
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from coverage import CoverageData

from tests import acme_path  # noqa: F401  # first: the modules below import sabir_acme
from tests.mutation.noticing import notice_of, variables_for
from tests.mutation.operators import Mutant, mutants_of
from tests.testing.seeds import RANDOM
from tests.third_party.stranger import CORE, ECHO, GUARD, KIT, Stranger, run
from tests.third_party.test_new_plugin import written
from tests.third_party.test_tape import DIALECT, FRAMES, SERVICE, STREAM, SUITE, change

ROOT = Path(__file__).resolve().parents[2]
THIRD_PARTY = ROOT / "tests" / "third_party"
SECONDS = 120
"""The processor time of a suite on one mutant. A mutant that needs more is noticed, too."""
LONGEST = 1200
"""The same in seconds of the clock, which a busy machine needs for it."""
QUIET = ("-q", "-x", "-p", "no:cacheprovider", "--tb=no")
RANDOM_CASES = " or ".join(sorted(RANDOM))
LIMITED = f"""
import resource, sys, pytest
resource.setrlimit(resource.RLIMIT_CPU, ({SECONDS}, {SECONDS}))
sys.exit(pytest.main(sys.argv[1:]))
"""


@dataclass(frozen=True)
class Package:
    """A package and the way to run its suite: the interpreter, the working folder, and pytest's arguments.

    `others` are pytest's arguments for the package's other tests; empty if there are none.
    """

    source: Path
    python: Path
    folder: Path
    tests: Sequence[str]
    others: Sequence[str] = ()

    def run(self, source: Path, *command: str) -> "subprocess.CompletedProcess[str]":
        """Run Python with the package from another source folder. Raises TimeoutExpired after LONGEST seconds."""
        return subprocess.run(
            [str(self.python), *command],
            cwd=self.folder, env={**variables_for(source, GUARD.parent), "CI": "true"},
            capture_output=True, text=True, timeout=LONGEST, check=False,
        )  # fmt: skip

    def lines(self, folder: Path) -> Mapping[Path, set[int]]:
        """Run the suite once, and return the lines that it runs of each file. Raises RuntimeError if a case fails."""
        data, scratch = folder / "coverage", folder / "measured"
        shutil.copytree(self.source, scratch, ignore=shutil.ignore_patterns("__pycache__"))
        command = (
            "-m",
            "coverage",
            "run",
            f"--rcfile={os.devnull}",
            f"--data-file={data}",
            f"--include={scratch}/*",
            "-m",
            "pytest",
            *QUIET,
            *self.tests,
        )
        if (done := self.run(scratch, *command)).returncode:
            raise RuntimeError(f"the suite fails without a mutant:\n{done.stdout[-3000:]}\n{done.stderr[-2000:]}")
        read = CoverageData(str(data))
        read.read()
        files = {Path(file): set(read.lines(file) or ()) for file in read.measured_files()}
        own = {file: lines for file, lines in files.items() if file.is_relative_to(scratch)}
        return {self.source / file.relative_to(scratch): lines for file, lines in own.items()}

    def mutants(self, folder: Path, *, is_unseen: bool) -> list[Mutant]:
        """Return the mutants of one half, on lines that the suite runs."""
        measured = self.lines(folder)
        mutants = [mutant for path in sorted(measured) for mutant in mutants_of(path) if mutant.line in measured[path]]
        return [mutant for mutant in mutants if is_in_unseen_half(mutant.describe(self.source)) is is_unseen]

    def notice(self, mutant: Mutant) -> tuple[str, str]:
        """Return the first line that says how the suite noticed a mutant, or "" if it passes; then the same of the
        package's other tests, which only run if the suite passes.
        """

        def noticed_by(tests: Sequence[str]) -> str:
            return notice_of(mutant, self.source, lambda copy: self.run(copy, "-c", LIMITED, *QUIET, *tests))

        *files, chosen = self.tests  # the random cases take most of the time, and most mutants are noticed by others
        by_suite = noticed_by([*files, f"{chosen} and not ({RANDOM_CASES})"])
        by_suite = by_suite or noticed_by([*files, f"{chosen} and ({RANDOM_CASES})"])
        return by_suite, noticed_by(self.others) if self.others and not by_suite else ""


def is_in_unseen_half(description: str) -> bool:
    """Return the half of a mutant, which depends on its description only."""
    return bool(hashlib.sha256(description.encode()).digest()[0] % 2)


def echo(folder: Path) -> Package:
    """Return sabir-echo, whose suite is one of tests/conformance."""
    suite = ("tests/conformance/test_conformance.py", "-k", "TestEcho")
    return Package(ECHO / "src", Path(sys.executable), ROOT, suite)


def template(folder: Path) -> Package:
    """Return the project that `sabir new-plugin` writes."""
    return stranger(folder, written(folder, "acme"))


def tape(folder: Path) -> Package:
    """Return the project with binary frames, after its first recording."""
    project = written(folder, "tape")
    source = project / "src" / "sabir_tape"
    (source / "frames.py").write_text(FRAMES.read_text("utf-8"), "utf-8")
    change(source / "dialect.py", DIALECT)
    change(source / "stream.py", STREAM)
    change(project / "tests" / "service.py", SERVICE)
    suite = project / "tests" / "test_tape.py"
    suite.write_text(suite.read_text("utf-8") + SUITE, "utf-8")
    for path in suite.parent.glob("cassettes/*.yaml"):
        path.unlink()
    package = stranger(folder, project)
    package.run(package.source, "-m", "pytest", "-q", "--sabir-record", "-k", "recorded or streamed", *package.tests)
    return package


def stranger(folder: Path, project: Path) -> Package:
    """Return a project whose suite runs in an environment of its own."""
    environment = Stranger(folder)
    environment.install(CORE, KIT, ECHO, project)
    run([str(shutil.which("uv")), "pip", "install", "--quiet", "--python", environment.python, "coverage"], folder)
    copy = environment.copy(project)
    suite = f"tests/test_{project.name.removeprefix('sabir-')}.py"
    others = [path.relative_to(copy).as_posix() for path in sorted(copy.glob("tests/test_*.py"))]
    others.remove(suite)
    return Package(project / "src", environment.python, copy, (suite, "-k", "test"), others)


PACKAGES: Mapping[str, Callable[[Path], Package]] = {
    "template": template,
    "echo": echo,
    "tape": tape,
    **{
        project.name.removeprefix("sabir-"): lambda folder, project=project: stranger(folder, project)  # type: ignore[misc]
        for project in sorted(THIRD_PARTY.glob("sabir-*"))
    },
}
"""Name → the function that prepares the package in a folder."""


def without_line(description: str) -> str:
    """Return a description without its line, which changes with the code above it."""
    return re.sub(r":\d+ ", " ", description, count=1)


def survivors_of(
    name: str, count: int, seed: int, *, is_unseen: bool, workers: int, earlier: str = ""
) -> Iterator[str]:
    """Run the suite of a package on `count` mutants, print a line for each, and yield the survivors. `earlier` is the
    output of earlier runs, whose mutants are not tried again.
    """
    tried = "\n".join(map(without_line, earlier.splitlines()))
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(max_workers=workers) as pool:
        package = PACKAGES[name](Path(folder))
        mutants = package.mutants(Path(folder), is_unseen=is_unseen)
        mutants = [each for each in mutants if without_line(each.describe(package.source)) not in tried]
        random.Random(seed).shuffle(mutants)
        chosen = mutants[:count]
        print(f"{name}: {len(chosen)} of {len(mutants)} mutants", flush=True)
        for mutant, (by_suite, by_others) in zip(chosen, pool.map(package.notice, chosen), strict=True):
            line = mutant.describe(package.source)
            further = f"the package's other tests: {by_others}" if by_others else ""
            print(f"{'noticed ' if by_suite else 'SURVIVED'} {line}  {by_suite[:100] or further}", flush=True)
            if not by_suite:
                yield f"{name}: {line}  {further}".rstrip()


def main() -> int:
    """Run the command and return its exit code: 1 if a mutant survived."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutation.kit")
    parser.add_argument("--count", type=int, default=40, help="the number of mutants, divided among the packages")
    parser.add_argument("--seed", type=int, default=36, help="chooses the mutants")
    parser.add_argument("--unseen", action="store_true", help="take mutants of the half that nobody looks at")
    parser.add_argument("--earlier", type=Path, action="append", default=[], help="a file with an earlier run's output")
    parser.add_argument("--package", choices=PACKAGES, action="append", help="run only this package; may be repeated")
    parser.add_argument("--workers", type=int, default=1, help="the number of suites that run at the same time")
    arguments = parser.parse_args()
    os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])  # uv, and `sabir`
    names = arguments.package or list(PACKAGES)
    survivors = []
    for number, name in enumerate(names):
        share = (arguments.count * (number + 1)) // len(names) - (arguments.count * number) // len(names)
        earlier = "\n".join(path.read_text("utf-8") for path in arguments.earlier)
        how = {"is_unseen": arguments.unseen, "workers": arguments.workers, "earlier": earlier}
        survivors += survivors_of(name, share, arguments.seed, **how)
    print(f"{len(survivors)} of {arguments.count} mutants survived (seed {arguments.seed}):", *survivors, sep="\n  ")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
