"""Random cases: one seed decides the examples, the verdict and the smallest failed example, but not whether a fault is
noticed.

    --sabir-seed N ──▶ the same failure, alone, after other tests and in other processes
    any seed ────────▶ the same verdict (tests/testing/seeds.py)
"""

import re
import sys
from pathlib import Path
from types import ModuleType

import pytest
import sabir
from hypothesis import strategies as st
from sabir.vocabulary.messages import Message
from sabir_testing.histories.random_histories import histories_of, speakers_for
from sabir_testing.kit.law_testing import for_all
from sabir_testing.kit.reports import ConformanceFailure
from sabir_testing.kit.seeds import CI_SEED, choose_seed
from sabir_testing.kit.suite import AdapterUnderTest, Suite

from tests.testing.seeds import row_of, subjects, verdicts

SEEDS = (11, 12, 13)
FEW = 10
SUITE = """
import sabir
from hypothesis import strategies as st
from sabir_testing.kit.law_testing import law
from sabir_testing.kit.suite import Suite
from sabir_testing.kit.reports import ConformanceFailure

class Cases(Suite):
    family = "laws"

    @law(lambda subject: st.integers(0, 10**9))
    def test_a_number_is_small(self, subject, number):
        'Numbers are small.'
        if number > 1000 and number % 7:
            raise ConformanceFailure(f"the number {number} is large")

    @law(lambda subject: st.integers(0, 10**9), first=lambda subject: [2000])
    def test_two_thousand_is_small(self, subject, number):
        'Even this number is small.'
        if number == 2000:
            raise ConformanceFailure("the number 2000 is large")

class TestEcho(Cases):
    adapter = sabir.adapter("echo:small")
"""
NUMBER = re.compile(r"the number (\d+) is large")


class Echo(Suite):
    """Any suite will do."""

    adapter = sabir.adapter("echo:small")


def failed_history(seed: int) -> list[str]:
    """Return the texts of the failed random history of a seed, which is not made shorter."""
    seen: list[list[str]] = []

    def check(history: list[Message]) -> None:
        seen.append([message.text for message in history])
        if len(seen) == 20:
            raise ConformanceFailure("the twentieth fails", history=history)

    subject = AdapterUnderTest(Echo(), seed=seed)
    with pytest.raises(ConformanceFailure) as caught:
        for_all(subject, histories_of(speakers_for(subject.target)), check)
    assert caught.value.seed == seed
    return [message.text for message in caught.value.history]


def test_a_seed_decides_the_examples() -> None:
    """The same seed gives the same history, and another seed another one."""
    assert failed_history(1) == failed_history(1) != failed_history(2)


def test_loaded_modules_do_not_change_the_examples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """hypothesis otherwise uses constants from the source of all modules of the project, in the order of imports."""

    def examples() -> list[int | str | float]:
        seen: list[int | str | float] = []
        subject = AdapterUnderTest(Echo(), seed=3)
        for_all(subject, st.integers() | st.text() | st.floats(allow_nan=False), seen.append)
        return seen

    before = examples()
    source = tmp_path / "kit_constants.py"
    source.write_text("NUMBERS = [" + ", ".join(str(10**9 + n) for n in range(500)) + "]\n", "utf-8")
    module = ModuleType("kit_constants")
    module.__file__ = str(source)
    monkeypatch.setitem(sys.modules, "kit_constants", module)

    assert examples() == before


def test_a_run_without_a_seed_gets_a_fixed_one_in_ci_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Elsewhere each run tries other examples."""
    monkeypatch.setenv("CI", "true")
    assert {choose_seed(), choose_seed()} == {CI_SEED}

    monkeypatch.delenv("CI")
    assert len({choose_seed() for _ in range(3)}) == 3


def test_a_failure_prints_the_command_that_repeats_it(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The header and the failure have the seed; the command gives the same number, also among other processes."""
    monkeypatch.delenv("CI", raising=False)
    (pytester.mkdir("suites") / "test_echo.py").write_text(SUITE, "utf-8")
    quiet = ("-p", "no:cacheprovider", "-p", "no:asyncio")
    first = pytester.runpytest_subprocess(*quiet, "-k", "a_number").stdout.str()
    seed = re.search(r"^sabir: --sabir-seed (\d+)$", first, re.MULTILINE)
    command = re.search(r"^  pytest (\S+) (--sabir-seed) (\d+)$", first, re.MULTILINE)
    assert seed
    assert command
    assert (command[1], command[3]) == ("suites/test_echo.py::TestEcho::test_a_number_is_small", seed[1])

    again = pytester.runpytest_subprocess(*quiet, "-n2", *command.groups()).stdout.str()
    assert f"--sabir-seed {seed[1]}" in again
    assert NUMBER.findall(again)[0] == NUMBER.findall(first)[0]


def test_a_directed_example_is_reported_without_a_seed(pytester: pytest.Pytester) -> None:
    """It is tried first in every run, so there is nothing to repeat."""
    pytester.makepyfile(SUITE)
    printed = pytester.runpytest_inprocess("-p", "no:cacheprovider", "-p", "no:asyncio", "-q", "-k", "thousand")

    printed.stdout.fnmatch_lines(["*the number 2000 is large*"])
    printed.stdout.no_fnmatch_line("*--sabir-seed*")


def test_a_directed_example_is_shortened() -> None:
    """The messages that a failure does not need are removed from its history."""
    subject = AdapterUnderTest(Echo())

    def check(history: list[Message]) -> None:
        texts = [message.text for message in history]
        if "three" in texts and "six" in texts:
            raise ConformanceFailure("three and six", history=history)

    words = ("one", "two", "three", "four", "five", "six", "seven")
    with pytest.raises(ConformanceFailure) as caught:
        for_all(subject, st.nothing(), check, [[sabir.user(word) for word in words]])

    assert [message.text for message in caught.value.history] == ["three", "six"]


@pytest.mark.parametrize("name", subjects())
def test_a_verdict_does_not_depend_on_the_seed(name: str) -> None:
    """Sound adapters pass and broken ones fail. `python -m tests.testing.seeds` tries more seeds and examples."""
    results = list(verdicts(subjects()[name], SEEDS, FEW))

    assert row_of(name, results) == f"{('.' if name.startswith('the suite') else 'F') * len(SEEDS)} {name}"
