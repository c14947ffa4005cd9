"""tests/conftest.py refuses unexpected skips in CI, sets the number of examples, and lets interrupts arrive."""

import signal

import pytest

from tests.architecture.project import ROOT

SKIPPING = """
import pytest

def test_allowed():
    pytest.skip("SABIR_VENDOR_CASSETTES is not set")

def test_unexpected():
    pytest.skip("not today")

@pytest.mark.xfail(strict=True, reason="known")
def test_expected_failure():
    assert False
"""


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A project of its own under the same guard, without the plugins that happen to be installed."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.makeconftest((ROOT / "tests" / "conftest.py").read_text("utf-8"))
    return pytester


def test_a_skip_that_nobody_allowed_fails_in_ci(project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """An allowed skip and an expected failure stay what they are."""
    monkeypatch.setenv("CI", "true")
    project.makepyfile(SKIPPING)

    result = project.runpytest_subprocess()

    result.assert_outcomes(failed=1, skipped=1, xfailed=1)
    result.stdout.fnmatch_lines(["*not today*no allowed reason for a skip in CI*"])
    assert result.ret == pytest.ExitCode.TESTS_FAILED


def test_a_skipped_module_fails_in_ci(project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """A module that skips itself at import takes all of its tests with it."""
    monkeypatch.setenv("CI", "true")
    project.makepyfile("import pytest\npytest.importorskip('no_such_module')\ndef test_one(): assert True")

    result = project.runpytest_subprocess()

    result.assert_outcomes(errors=1)
    assert result.ret == pytest.ExitCode.INTERRUPTED


def test_outside_ci_a_skip_is_a_skip(project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """At a desk, what a machine lacks does not stand in the way."""
    monkeypatch.delenv("CI", raising=False)
    project.makepyfile(SKIPPING)

    result = project.runpytest_subprocess()

    result.assert_outcomes(skipped=2, xfailed=1)


@pytest.mark.parametrize(
    ("variables", "examples"),
    [({"CI": "true"}, 200), ({"CI": ""}, 100), ({"CI": "true", "SABIR_EXAMPLES": "1000"}, 1000)],
)
def test_the_environment_sets_the_number_of_examples(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], examples: int
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    project.makepyfile(
        f"from hypothesis import settings\ndef test_profile(): assert settings().max_examples == {examples}"
    )

    result = project.runpytest_subprocess()

    result.assert_outcomes(passed=1)


def test_a_child_process_can_be_interrupted(project: pytest.Pytester) -> None:
    """Also if the suite runs as a background job of a shell that lets its jobs ignore SIGINT."""
    project.makepyfile(
        """
        import signal, subprocess, sys

        def test_child():
            command = [sys.executable, "-c", "import time; print(flush=True); time.sleep(60)"]
            with subprocess.Popen(command, stdout=-1) as child:
                child.stdout.readline()
                child.send_signal(signal.SIGINT)
                assert child.wait(timeout=30) == -signal.SIGINT
        """
    )
    ignored = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        result = project.runpytest_subprocess()
    finally:
        signal.signal(signal.SIGINT, ignored)

    result.assert_outcomes(passed=1)
