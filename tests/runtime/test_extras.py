"""The extras of sabir-runtime: nothing of them is loaded unasked, and a missing one is named with its remedy."""

import subprocess
import sys

import pytest
from sabir_runtime import ExtraMissing, RuntimeFault

LIBRARIES = ("dbos", "nats", "psycopg", "sqlalchemy")
MISSING = f"import sys; sys.modules.update(dict.fromkeys({LIBRARIES}))\n"
"""Makes each import of a library fail as if it were not installed."""
RUNNERS = {"durable": "DurableRunner", "distributed": "DistributedRunner"}


def run(program: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)


def test_importing_the_runtime_and_its_commands_loads_no_library_of_an_extra() -> None:
    """`sabir --help` imports the commands of all packages."""
    modules = ["sabir_runtime", *(f"sabir_runtime.{extra}.command" for extra in RUNNERS)]
    process = run(f"import sys, {', '.join(modules)}; print([each for each in {LIBRARIES} if each in sys.modules])")

    assert (process.stdout, process.stderr) == ("[]\n", "")


@pytest.mark.parametrize(("extra", "runner"), RUNNERS.items())
def test_a_runner_without_its_extra_raises_an_import_error_with_the_remedy(extra: str, runner: str) -> None:
    process = run(f"{MISSING}from sabir_runtime.{extra} import {runner}")

    assert process.stderr.count("Traceback") == 1
    last = process.stderr.splitlines()[-1]
    assert last.startswith(f"sabir_runtime.extras.ExtraMissing: sabir_runtime.{extra} needs ")
    assert last.endswith(f'which is not installed; pip install "sabir-runtime[{extra}]"')


def test_a_missing_extra_is_an_error_of_the_runtime_and_of_imports() -> None:
    assert issubclass(ExtraMissing, RuntimeFault) and issubclass(ExtraMissing, ImportError)


COMMANDS = {"durable": ["runs", "list"], "distributed": ["worker", "desk:Desk"]}


@pytest.mark.parametrize(("extra", "arguments"), COMMANDS.items())
def test_a_command_without_its_extra_says_what_to_install(extra: str, arguments: list[str]) -> None:
    process = run(f"{MISSING}from sabir_cli.main import main; sys.exit(main({arguments}))")

    assert (process.returncode, process.stdout) == (2, "")
    assert process.stderr.replace("\n", " ").rstrip().endswith(f'pip install "sabir-runtime[{extra}]"')


def test_help_shows_the_commands_of_extras_that_are_missing() -> None:
    process = run(f"{MISSING}from sabir_cli.main import main; sys.exit(main(['--help']))")

    assert process.returncode == 0 and "Broken" not in process.stdout
    assert {"runs", "worker"} <= {line.strip("│ ").partition(" ")[0] for line in process.stdout.splitlines()}
