"""Whether tests notice a mutant.

    a package's source folder ──copy, one mutant──▶ run(copy) ──▶ the first line that says how it failed, or ""

PYTHONPATH puts the copy before the installed package. So the working tree is never changed, and several mutants can run
at the same time.
"""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from tests.mutation.operators import Mutant


def variables_for(*folders: Path) -> Mapping[str, str]:
    """Return the environment variables with which Python imports from these folders first, and writes no bytecode."""
    path = os.pathsep.join(map(str, folders))
    return {**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}


def notice_of(mutant: Mutant, source: Path, run: "Callable[[Path], subprocess.CompletedProcess[str]]") -> str:
    """Return the first line that says how tests noticed a mutant: the failed test, or the time. "" if they passed.

    `source` is the package's source folder. `run` runs the tests with a copy of it, and may raise TimeoutExpired.
    """
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "src"
        shutil.copytree(source, copy, ignore=shutil.ignore_patterns("__pycache__"))
        (copy / mutant.path.relative_to(source)).write_text(mutant.text(), "utf-8")
        try:
            done = run(copy)
        except subprocess.TimeoutExpired as expired:
            return f"no end within {expired.timeout:.0f} s"
    if done.returncode == 0:
        return ""
    if done.returncode < 0:
        return f"ended by signal {-done.returncode}"
    lines = (done.stdout + done.stderr).splitlines()
    return next((line for line in lines if line.startswith(("FAILED", "ERROR"))), lines[-1] if lines else "no output")
