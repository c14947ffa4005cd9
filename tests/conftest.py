"""Rules for every test: the number of examples of a law, no unnoticed skip, and interrupts that arrive.

With CI=true a skipped test fails unless ALLOWED_SKIPS names its reason: a suite that skips what it cannot run
looks exactly like one that passes.

A shell without job control starts background jobs with SIGINT ignored, and processes inherit that. The tests restore
Python's own handler, because some of them interrupt a child process and wait for its end.
"""

import os
import re
import signal
from collections.abc import Generator

import pytest
from hypothesis import HealthCheck, settings

IN_CI = os.environ.get("CI") == "true"

ALLOWED_SKIPS = {
    r"SABIR_BROWSER": "a browser is no Python package; `nox -s browser` runs these tests with an installed Chromium",
    r"SABIR_RECORDING_CACHE": "the proxy that speaks Gemini's wire is 700 MB; its answers are replayed from cassettes",
    r"SABIR_VENDOR_CASSETTES": "the vendors' own exchanges are no part of the project; clones may lack them",
}
"""Pattern that a skip's reason holds → why such a test may stay out."""

EXAMPLES = int(os.environ.get("SABIR_EXAMPLES", "200" if IN_CI else "100"))
"""The number of examples of each property test. Set SABIR_EXAMPLES to 1000 or more after a change of a law."""

# In CI the examples are always the same, so that a failure can be repeated. Elsewhere they vary.
settings.register_profile(
    "ci",
    max_examples=EXAMPLES,
    deadline=None,
    derandomize=True,
    database=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("dev", max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("ci" if IN_CI else "dev")

if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def is_allowed(reason: str) -> bool:
    """Return whether a test may be skipped in CI for this reason."""
    return any(re.search(pattern, reason) for pattern in ALLOWED_SKIPS)


def refuse_skip(report: pytest.TestReport | pytest.CollectReport) -> None:
    """Turn a skip without an allowed reason into a failure. An expected failure (xfail) does not count as a skip."""
    if not (IN_CI and report.skipped) or hasattr(report, "wasxfail"):
        return
    place = report.longrepr if isinstance(report.longrepr, tuple) else (report.nodeid, 0, str(report.longrepr))
    if is_allowed(place[2]):
        return
    report.outcome = "failed"
    report.longrepr = (
        f"{place[0]}:{place[1]}: {place[2]!r} is no allowed reason for a skip in CI; see tests/conftest.py"
    )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Refuse skips of tests and of their fixtures."""
    report = yield
    refuse_skip(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Skips of whole modules."""
    report = yield
    refuse_skip(report)
    return report
