"""The pytest plugin: short reports of failed cases, a check for skipped cases, and a summary of capabilities.

--sabir-record           send the questions to the real services and record the answers
--sabir-seed N           derive all random examples from the number N, to repeat a failure
--sabir-grade            store the result of a complete run in the user's cache: it verifies the provider's package
--sabir-grade-file FILE  write the result of a complete run as the grade that the package declares
scripted                 a fixture that creates scripted adapters; a test must use all their answers

    def test_it_looks_up_the_weather(scripted):
        llm = scripted(calls(weather={"city": "Paris"}), "It rains.")
        assert umbrella(llm) == "It rains."
"""

import os
import sys
from collections.abc import Generator
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pytest

from sabir_testing.kit import GRADED_PROPERTY, SUITE_PROPERTY, WARNED_PROPERTY
from sabir_testing.kit.seeds import CI_SEED, SEED_OPTION, advice_to_repeat, choose_seed

if TYPE_CHECKING:  # tests that do not use sabir must not import it
    from typing import Unpack

    from sabir_testing.kit.suite import Suite
    from sabir_testing.scripted import Scriptable, ScriptedAdapter, ScriptedArguments

pytest_plugins = ("sabir_testing.network", "sabir_testing.loss_locks.fixture")
"""The plugins with the fixtures and markers for the tests of users."""
PAGE = "docs/reference/conformance.md"
"""The page that explains the rules of all test cases."""
_SCRIPTED_ADAPTERS = pytest.StashKey[list["ScriptedAdapter"]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the kit's command-line options."""
    group = parser.getgroup("sabir", "sabir: conformance of provider plugins")
    group.addoption(
        "--sabir-record",
        action="store_true",
        help="send each suite's questions to the real service, and record the answers as cassettes",
    )
    group.addoption(
        SEED_OPTION,
        type=int,
        metavar="N",
        help="derive all random examples from this number; by default a new one for each run, and a fixed one in CI",
    )
    group.addoption(
        "--sabir-grade",
        action="store_true",
        help="store the result of a complete run in your cache; `sabir providers` then shows the package as verified",
    )
    group.addoption(
        "--sabir-grade-file",
        metavar="FILE",
        help="write the result of a complete run as the grade that the package declares: src/PACKAGE/sabir-grade.json",
    )


def suite_of(item: pytest.Item) -> "type[Suite] | None":
    """Return the suite that a test belongs to; None for a test that is not a case of the kit."""
    base = sys.modules.get("sabir_testing.kit.suite")
    cls = getattr(item, "cls", None)
    if base is None or not (isinstance(cls, type) and issubclass(cls, base.Suite)):
        return None  # the kit was not imported, so there is no suite, and the kit need not be loaded
    return cls if getattr(item, "originalname", "") in base.case_names(cls) else None


def pytest_configure(config: pytest.Config) -> None:
    """Refuse to record in several processes, and to grade a part of the tests, and choose the seed. Processes of
    pytest-xdist receive the seed as an option.
    """
    if config.getoption("sabir_record", False) and getattr(config.option, "numprocesses", None):
        raise pytest.UsageError("--sabir-record cannot run in several processes; add -n0")
    if is_graded(config) and (partial := [flag for flag, name in _PARTIAL.items() if config.getoption(name, None)]):
        raise pytest.UsageError(f"--sabir-grade needs all cases of the kit; remove {partial[0]}")
    if config.option.sabir_seed is None:
        config.option.sabir_seed = CI_SEED if is_graded(config) else choose_seed()


_PARTIAL = {
    "-k": "keyword",
    "-m": "markexpr",
    "--deselect": "deselect",
    "--lf": "lf",
    "--sabir-record": "sabir_record",
}
"""Flag with which pytest runs a part of the tests → the name of its option. Recording tests other files."""


def is_graded(config: pytest.Config) -> bool:
    """Return whether the run is to create a grade."""
    return bool(config.getoption("sabir_grade", False) or config.getoption("sabir_grade_file", None))


def pytest_report_header(config: pytest.Config) -> str:
    """Return the line of pytest's header with the seed."""
    return f"sabir: {SEED_OPTION} {config.option.sabir_seed}"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the cases in `xfail` as expected to fail, with the reason. With `--sabir-record`, move the cases that record
    before the others, which use the recordings.

    Raises UsageError for a suite without an adapter and, unless the command line selects tests by name, for a key
    `case[row]` of `xfail` whose row does not exist.
    """
    rows: dict[tuple[type[Suite], str], set[str]] = {}
    for item in items:
        if (suite := suite_of(item)) is None:
            continue
        if getattr(suite, "adapter", None) is None:
            remedy = "write adapter = sabir.adapter('provider:model', api_key='test')"
            raise pytest.UsageError(f"{suite.__name__} does not set `adapter`; {remedy}")
        item.user_properties.append((SUITE_PROPERTY, f"{item.nodeid.partition('::')[0]}::{suite.__name__}"))
        if is_graded(item.config):
            cases = len(sys.modules["sabir_testing.kit.suite"].case_names(suite))
            item.user_properties.append((GRADED_PROPERTY, [suite.adapter.target.provider, cases, suite.examples]))
        bare = getattr(item, "originalname", item.name)
        rows.setdefault((suite, bare), set()).add(item.name)
        reason = suite.xfail.get(item.name) or suite.xfail.get(bare)
        if reason:
            item.add_marker(pytest.mark.xfail(reason=reason, strict=True))
    if config.getoption("sabir_record", False):
        _move_recording_first(items)
    for (suite, bare), names in rows.items():
        wrong = [case for case in suite.xfail if case.startswith(f"{bare}[") and case not in names]
        if wrong and not any("::" in argument for argument in items[0].config.args):
            rows_of_case = ", ".join(sorted(names))
            what = f"{suite.__name__}.xfail contains {wrong[0]!r}, a test case that does not exist"
            raise pytest.UsageError(f"{what}; use one of {rows_of_case}")


def _move_recording_first(items: list[pytest.Item]) -> None:
    """Move the cases of a question, each of which records the answer, to the beginning of the cases of their suite."""
    places: dict[type[Suite], list[int]] = {}
    for place, case in enumerate(items):
        if (suite := suite_of(case)) is not None:
            places.setdefault(suite, []).append(place)
    for own in places.values():
        ordered = sorted((items[place] for place in own), key=_has_no_question)
        for place, case in zip(own, ordered, strict=True):
            items[place] = case


def _has_no_question(case: pytest.Item) -> bool:
    return "question" not in getattr(getattr(case, "callspec", None), "params", ())


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[Any]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Replace the report of a failed case by the fault and the rule, without a traceback.

    A case fails if it is skipped by anything but the kit. A failed case that is new in this minor release of the kit,
    or newer than the provider's version of the plugin contract, passes with a warning.
    """
    report = yield
    suite = suite_of(item)
    if suite is None or (report.passed and not report.failed):
        return report
    from sabir_testing.kit.reports import advice_for_skip, advice_for_success, failure_text, how_to_opt_out
    from sabir_testing.kit.suite import is_new

    if report.skipped and not hasattr(report, "wasxfail"):
        by_marker = bool(call.excinfo and getattr(call.excinfo.value, "_use_item_location", False))
        if (advice := advice_for_skip(report, suite.__name__, item.name)) is not None or by_marker:
            report.outcome, report.longrepr = "failed", advice or how_to_opt_out(suite.__name__, item.name)
    elif report.failed and call.excinfo is None:
        report.longrepr = advice_for_success(suite.__name__, suite.xfail, item.name)
    elif report.failed and call.excinfo is not None:
        api_version = suite.adapter.provider.api_version
        if is_new(getattr(item, "function", None), version("sabir-testing"), api_version):
            report.user_properties.append((WARNED_PROPERTY, str(call.excinfo.value).partition("\n")[0]))
            report.outcome, report.longrepr = "passed", None
        else:
            text = f"{failure_text(call.excinfo.value)}\n\n{rule_of(item)}"
            seed = getattr(call.excinfo.value, "seed", None)
            report.longrepr = text if seed is None else f"{text}\n\n{advice_to_repeat(_argument_of(item), seed)}"
    return report


def _argument_of(case: pytest.Item) -> str:
    """Return the argument that selects a test in the folder in which pytest was started."""
    path = Path(os.path.relpath(case.path, case.config.invocation_params.dir)).as_posix()
    return f"{path}::{case.nodeid.partition('::')[2]}"


def rule_of(item: pytest.Item) -> str:
    """Return the rule of a case, and the page that explains it."""
    function = getattr(item, "function", None)
    docstring = " ".join((getattr(function, "__doc__", None) or "").split())
    name = getattr(item, "originalname", item.name)
    return f"the rule:\n  {docstring}\n\nsee {PAGE}#{name}"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print each suite's results, its expected failures, and the capabilities that were seen; nothing without a
    suite.
    """
    reports = [each for key, group in terminalreporter.stats.items() if key != "deselected" for each in group]
    if not any(SUITE_PROPERTY in dict(getattr(report, "user_properties", ())) for report in reports):
        return
    from sabir_testing.kit.reports import summary

    terminalreporter.section("sabir conformance")
    for line in summary(terminalreporter.stats):
        terminalreporter.write_line(line)
    if is_graded(terminalreporter.config):
        from sabir_testing.kit.grading import write_grades

        option = terminalreporter.config.option
        for line in write_grades(
            terminalreporter.stats,
            seed=int(option.sabir_seed),
            remember=option.sabir_grade,
            file=option.sabir_grade_file,
        ):
            terminalreporter.write_line(line)


class MakeScripted(Protocol):
    """The type of the pytest fixture `scripted`, for annotations of tests."""

    def __call__(self, *answers: "Scriptable", **how: "Unpack[ScriptedArguments]") -> "ScriptedAdapter":
        """Return a ScriptedAdapter with these arguments. The test fails unless the program requests exactly all the
        answers; the answer of `always` any number of times.
        """
        ...


@pytest.fixture
def scripted(request: pytest.FixtureRequest) -> MakeScripted:
    """Provide a function that creates a ScriptedAdapter. The test fails if the program requests fewer or more answers
    than the script has; the answer of `always` counts any number of times.
    """
    from sabir_testing.scripted import ScriptedAdapter

    adapters: list[ScriptedAdapter] = request.node.stash.setdefault(_SCRIPTED_ADAPTERS, [])

    def make(*answers: "Scriptable", **how: "Unpack[ScriptedArguments]") -> ScriptedAdapter:
        adapters.append(ScriptedAdapter(*answers, **how))
        return adapters[-1]

    return make


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    """Fail a test that passed if its scripted adapters have unused answers or received too many requests."""
    yield
    mismatches = []
    for adapter in item.stash.get(_SCRIPTED_ADAPTERS, ()):
        try:
            adapter.assert_finished()
        except AssertionError as mismatch:
            mismatches.append(str(mismatch))
    if mismatches:
        pytest.fail("\n".join(mismatches), pytrace=False)
