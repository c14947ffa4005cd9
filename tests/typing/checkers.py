"""Type checkers as users run them: without pydantic's plugin, and without any setting of this workspace."""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

Strictness = Literal["basic", "standard", "strict"]


def mypy(folder: Path) -> list[str]:
    """What `mypy --strict` has to say of the programs of a folder."""
    return _complaints(["mypy", "--strict", "--config-file=", "--no-error-summary", "."], folder)


def pyright(folder: Path, strictness: Strictness) -> list[str]:
    """What pyright has to say of them; a comment that ignores nothing is an error, as it is for mypy."""
    settings = {"typeCheckingMode": strictness, "reportUnnecessaryTypeIgnoreComment": "error"}
    (folder / "pyrightconfig.json").write_text(json.dumps(settings), "utf-8")
    found = _complaints(["basedpyright", "--pythonpath", sys.executable], folder)
    return [line for line in found if line != "0 errors, 0 warnings, 0 notes"]


def _complaints(command: Sequence[str], folder: Path) -> list[str]:
    checked = subprocess.run([sys.executable, "-m", *command], cwd=folder, capture_output=True, text=True, check=False)
    assert not checked.stderr, checked.stderr
    return checked.stdout.splitlines()
