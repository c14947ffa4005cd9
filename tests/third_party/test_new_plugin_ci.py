"""The workflow that `sabir new-plugin` writes: its steps run in the new repository, with sabir as wheels."""

import os
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.architecture.project import ROOT
from tests.third_party.stranger import CORE, ECHO, INSTALLER, KIT, OPENAI, run
from tests.third_party.test_new_plugin import counted, written

COMPATIBLE = ("nadir", "--compatible", "https://api.nadir.example/v1")


def steps(package: Path) -> list[str]:
    """The commands of the workflow, in order."""
    text = (package / ".github" / "workflows" / "tests.yml").read_text("utf-8")
    (job,) = yaml.safe_load(text)["jobs"].values()
    return [step["run"] for step in job["steps"] if "run" in step]


def run_step(command: str, package: Path, wheels: Path) -> str:
    """What a step prints; uv finds sabir's packages in `wheels`, all others as usual."""
    clean = {name: value for name, value in INSTALLER.items() if not name.startswith("PYTEST")}
    path = f"{Path(shutil.which('uv') or '').parent}{os.pathsep}{os.environ['PATH']}"
    return run(["bash", "-ec", command], package, {**clean, "PATH": path, "UV_FIND_LINKS": str(wheels)})


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheels")
    for package in (CORE, KIT, ECHO, OPENAI):
        run(["uv", "build", "--quiet", "--wheel", "--out-dir", folder, package], ROOT)
    return folder


@pytest.mark.parametrize("arguments", [("zenith",), COMPATIBLE], ids=["worked", "compatible"])
def test_its_steps_lint_check_types_and_run_the_kit(arguments: tuple[str, ...]) -> None:
    """Both templates have the same workflow."""
    assert steps_of_template(arguments) == [
        "uv run ruff check",
        "uv run ruff format --check",
        "uv run mypy",
        "uv run pytest",
    ]


def steps_of_template(arguments: tuple[str, ...]) -> list[str]:
    folder: Any = ROOT / "plugins" / "cli" / "src" / "sabir_cli"
    return steps(folder / ("compatible_template" if "--compatible" in arguments else "template"))


def test_every_step_passes_in_the_new_repository_until_its_code_breaks(tmp_path: Path, wheels: Path) -> None:
    """As the author pushes it, before a line is changed."""
    package = written(tmp_path, "zenith")

    printed = {command: run_step(command, package, wheels) for command in steps(package)}

    cases, outcome = counted(printed["uv run pytest"], "TestZenith")
    assert outcome == f"{cases} passed"

    decoder = package / "src" / "sabir_zenith" / "stream.py"
    decoder.write_text(decoder.read_text("utf-8") + "\n\nChatDecoder.feed = lambda self, event: ()\n", "utf-8")
    with pytest.raises(AssertionError, match="1 failed"):
        run_step("uv run pytest -x -k streamed", package, wheels)
