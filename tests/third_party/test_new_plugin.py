"""What `sabir new-plugin` writes is built, installed where nothing else is, and passes the kit.

sabir new-plugin zenith                            its own tests, offline, against the recordings that came with it
sabir new-plugin nadir --compatible http://…/v1    recorded from the embedded server as its author would, then offline
"""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from sabir_local.models import find_weights
from sabir_local.server import LocalServer

from tests.third_party.stranger import CLI, CORE, ECHO, INSTALLER, KIT, OPENAI, SESSION, Stranger, run

COMMAND = str(Path(sys.executable).with_name("sabir"))
FEWEST_CASES = 250
"""So many cases the kit has, and more."""
OPTING_OUT = """

TestNadir.xfail |= {
    "test_a_recorded_answer_says_what_was_asked[parallel_calls]": "so small a model makes one call at a time",
    "test_a_recorded_answer_says_what_was_asked[image]": "the model reads no pictures",
    "test_a_streamed_answer_is_the_whole_answer[image]": "the model reads no pictures",
    "test_a_recorded_failure_is_its_error[missing_model]": "the server has one model, whatever it is called",
    "test_a_streamed_failure_is_its_error[missing_model]": "the server has one model, whatever it is called",
}
"""
"""What the embedded server cannot be asked for, as an author says it."""


def written(folder: Path, *arguments: str) -> Path:
    """The package that the command writes."""
    command = [COMMAND, "new-plugin", *arguments, "--into", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder / f"sabir-{arguments[0]}"


def counted(said: str, suite: str) -> tuple[int, str]:
    """How many cases a suite ran, and how they went."""
    found = re.search(rf"^{suite}: (\d+) cases, (.*)$", said, re.MULTILINE)
    assert found, said[-3000:]
    return int(found[1]), found[2]


def test_a_worked_provider_passes_as_it_is_written(tmp_path: Path) -> None:
    """Before its author changed a line, so that what fails later is what was changed."""
    package = written(tmp_path, "zenith")
    stranger = Stranger(tmp_path)
    stranger.install(CORE, KIT, ECHO, package)
    stranger.copy(package)

    cases, outcome = counted(stranger.ask("-m", "pytest", "-q", "-p", "offline"), "TestZenith")

    assert cases > FEWEST_CASES
    assert outcome == f"{cases} passed"


def test_the_lines_that_are_printed_can_be_typed(tmp_path: Path) -> None:
    """One after the other, in an environment that holds the command and the kit; the package needs no further one."""
    stranger = Stranger(tmp_path)
    stranger.install(CORE, KIT, SESSION, CLI)
    printed = run([stranger.python.with_name("sabir"), "new-plugin", "zenith"], tmp_path).splitlines()[1:]
    steps = [re.split("  +", line.strip())[0] for line in printed]
    typed = [step for step in steps if not step.endswith(".py")]
    said = run(
        ["bash", "-ec", "\n".join(typed)], tmp_path, {**INSTALLER, "PYTEST_ADDOPTS": "-k 'installed or recorded'"}
    )

    assert [step.partition(" ")[0] for step in typed] == ["cd", ".", "uv", "python", "python"]
    assert (
        re.findall(r"^=+ (\d+ passed), \d+ deselected, (1 xfailed) in", said, re.MULTILINE)
        == [("19 passed", "1 xfailed")] * 2
    )


def test_a_compatible_endpoint_passes_once_it_is_recorded(tmp_path: Path) -> None:
    """Of a real server on this machine; what it cannot be asked for stands under `xfail`."""
    server = LocalServer(find_weights(None))
    try:
        package = written(tmp_path, "nadir", "--compatible", f"{server.address}/v1")
        stranger = Stranger(tmp_path)
        stranger.install(CORE, KIT, ECHO, OPENAI, package)
        suite = stranger.copy(package) / "tests" / "test_nadir.py"
        said = suite.read_text("utf-8").replace("Nadir's own service", "llama.cpp, not a vendor's own service")
        suite.write_text(said + OPTING_OUT, "utf-8")
        asked = ("-m", "pytest", "-q", "-p", "offline", "-k", "recorded or streamed")
        counted(stranger.ask(*asked, "--sabir-record", NADIR_API_KEY=server.api_key), "TestNadir")
    finally:
        server.stop()

    cases, outcome = counted(stranger.ask("-m", "pytest", "-q", "-p", "offline"), "TestNadir")

    assert cases > FEWEST_CASES
    assert re.fullmatch(r"\d+ passed, \d+ expected to fail", outcome)


@pytest.fixture(autouse=True)
def no_bytecode(monkeypatch: pytest.MonkeyPatch) -> None:
    """Templates are read from where they lie; running leaves nothing there."""
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
