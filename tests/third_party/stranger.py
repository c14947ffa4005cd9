"""Somebody outside this repository: an environment with built packages, and tests that run there, offline.

    packages ──uv build──▶ wheels ──uv pip install──▶ environment ◀── a copy of a package's tests

Nothing of this repository is on its path but the guard that keeps it off the network.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.architecture.project import ROOT

GUARD = Path(__file__).parent / "offline.py"
CORE = ROOT / "core"
CLI, ECHO, KIT, OPENAI, SESSION = (ROOT / "plugins" / name for name in ("cli", "echo", "testing", "openai", "session"))
SECONDS = 540
EXAMPLES = 25
OURS = ("VIRTUAL_ENV", "PYTHONPATH", "UV_PROJECT_ENVIRONMENT")
INSTALLER = {name: value for name, value in os.environ.items() if name not in OURS}
"""The variables for an installer. Those in OURS would make `uv run` install a package here, into the environment of
the tests.
"""


def run(command: Sequence[str | Path], folder: Path, variables: Mapping[str, str] = INSTALLER) -> str:
    """What a command writes; an assertion that shows it where it fails."""
    done = subprocess.run(
        [*map(str, command)],
        cwd=folder,
        env=dict(variables),
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, f"{' '.join(map(str, command))}\n{done.stdout[-20_000:]}\n{done.stderr[-5_000:]}"
    return done.stdout


class Stranger:
    """Made in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.python = folder / "environment" / "bin" / "python"
        found = shutil.which("uv")
        assert found, "this test builds and installs with uv, which is not on the path"
        self._uv = found

    def install(self, *packages: Path) -> None:
        """Build each package's wheel, and install them all with what they require."""
        for package in packages:
            run([self._uv, "build", "--quiet", "--wheel", "--out-dir", "wheels", package], self.folder)
        run([self._uv, "venv", "--quiet", "--python", sys.executable, "environment"], self.folder)
        wheels = sorted((self.folder / "wheels").glob("*.whl"))
        run([self._uv, "pip", "install", "--quiet", "--python", self.python, *wheels], self.folder)

    def copy(self, package: Path) -> Path:
        """A copy of a package's tests and of its settings for pytest, but not of what they test.

        Its suite tries few examples a law, for what is shown is that the kit runs there.
        """
        copied = self.folder / "copy"
        shutil.copytree(package / "tests", copied / "tests", ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(package / "pyproject.toml", copied)
        name = package.name.partition("-")[2]
        with (copied / "tests" / f"test_{name}.py").open("a", encoding="utf-8") as suite:
            suite.write(f"\n\nTest{name.capitalize()}.examples = {EXAMPLES}\n")
        return copied

    def ask(self, *arguments: str, **variables: str) -> str:
        """What Python says there, unable to reach anything beyond this machine."""
        guard = self.folder / "guard"
        guard.mkdir(exist_ok=True)
        shutil.copy(GUARD, guard)
        always = {"PATH": os.environ["PATH"], "PYTHONPATH": str(guard), "PYTHONSAFEPATH": "1"}
        return run([self.python, *arguments], self.folder / "copy", {**always, **variables})
