"""Run the tests on mutants of the library: `python -m tests.mutation.suite --count 40 --seed 36`.

    coverage, by test ──▶ (file, line) ──▶ the test files that run the line ──▶ do they fail on the mutant?
    all mutants of the packages ──seed──▶ as many of each group

Prints one line for each mutant, then the number that no test noticed.
"""

import argparse
import os
import random
import subprocess
import sys
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from coverage import CoverageData

from tests.mutation.noticing import notice_of, variables_for
from tests.mutation.operators import Mutant, mutants_of

ROOT = Path(__file__).resolve().parents[2]
CACHE = ROOT / ".cache" / "mutation"
GROUPS: Mapping[str, tuple[str, ...]] = {
    "core": ("core",),
    "providers": ("plugins/openai", "plugins/anthropic", "plugins/google", "plugins/echo"),
    "session": ("plugins/session",),
}
TESTS = (
    "tests/core", "tests/authoring", "tests/laws", "tests/providers", "tests/openai", "tests/anthropic", "tests/google",
    "tests/echo", "tests/vendor", "tests/session",
)  # fmt: skip
SECONDS = 60.0
"""How long the test files of one mutant may take. A mutant that makes them slower is noticed, too."""


def measure_coverage() -> Path:
    """Run TESTS, and return the file that says which test runs which line."""
    CACHE.mkdir(parents=True, exist_ok=True)
    data = CACHE / "coverage"
    sources = [f"--cov={place}/src" for places in GROUPS.values() for place in places]
    command = [sys.executable, "-m", "pytest", "-q", "-n", "2", *TESTS, *sources, "--cov-context=test", "--cov-report="]
    subprocess.run(command, cwd=ROOT, env={**os.environ, "COVERAGE_FILE": str(data)}, check=False)
    return data


class TestFiles:
    """Which test files run a line."""

    def __init__(self, data: Path) -> None:
        self._data = CoverageData(str(data))
        self._data.read()

    def of(self, mutant: Mutant) -> list[str]:
        """Return the test files, those with the most tests on the mutant's line first.

        A line that runs when its module is imported belongs to no test, so the files named after the module are added.
        """
        contexts = self._data.contexts_by_lineno(str(mutant.path)).get(mutant.line, [])
        files = [context.partition("::")[0] for context in contexts if context]
        if "" in contexts:
            paths = (path for place in TESTS for path in (ROOT / place).rglob(f"test_{mutant.path.stem}.py"))
            files += [path.relative_to(ROOT).as_posix() for path in paths]
        return sorted(set(files), key=lambda file: (-files.count(file), file))


def choose(count: int, seed: int, test_files: TestFiles) -> list[tuple[Mutant, list[str]]]:
    """Return `count` mutants, as many of each group as possible alike, on lines that some test runs."""
    chooser = random.Random(seed)
    chosen: list[tuple[Mutant, list[str]]] = []
    for number, places in enumerate(GROUPS.values()):
        share = (count * (number + 1)) // len(GROUPS) - (count * number) // len(GROUPS)
        paths = sorted(path for place in places for path in (ROOT / place / "src").rglob("*.py"))
        candidates = [mutant for path in paths for mutant in mutants_of(path)]
        chooser.shuffle(candidates)
        covered = ((mutant, test_files.of(mutant)) for mutant in candidates)
        chosen += [each for each, _ in zip((pair for pair in covered if pair[1]), range(share), strict=False)]
    return chosen


def is_noticed(mutant: Mutant, tests: Iterable[str], *, seconds: float = SECONDS, root: Path = ROOT) -> str:
    """Return the first line that says how tests noticed a mutant; "" if they passed."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "--tb=no", *tests]

    def run(copy: Path) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            command, cwd=root, env=variables_for(copy), capture_output=True, text=True, timeout=seconds, check=False
        )

    return notice_of(mutant, next(parent for parent in mutant.path.parents if parent.name == "src"), run)


def main() -> int:
    """Run the command and return its exit code: 1 if a mutant was not noticed."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutation.suite")
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--seed", type=int, default=36)
    parser.add_argument("--coverage", type=Path, help="a coverage file of an earlier run")
    arguments = parser.parse_args()
    chosen = choose(arguments.count, arguments.seed, TestFiles(arguments.coverage or measure_coverage()))
    survivors = 0
    with ThreadPoolExecutor(max_workers=2) as pool:
        for (mutant, _), notice in zip(chosen, pool.map(lambda pair: is_noticed(*pair), chosen), strict=True):
            survivors += not notice
            print(f"{'noticed ' if notice else 'SURVIVED'} {mutant.describe(ROOT)}  {notice[:100]}", flush=True)
    print(f"{survivors} of {len(chosen)} mutants were not noticed (seed {arguments.seed})")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
