"""The programs of this folder pass the type checkers that users run, as users run them."""

import shutil
from pathlib import Path

import pytest

from tests.typing.checkers import Strictness, mypy, pyright

PROGRAMS = sorted(
    path for path in Path(__file__).parent.glob("*.py") if not path.name.startswith(("test_", "checkers"))
)


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """A folder of its own, away from this workspace's settings."""
    for path in PROGRAMS:
        shutil.copy(path, tmp_path)
    return tmp_path


def test_mypy_accepts_them_without_a_plugin(programs: Path) -> None:
    """Strict; what they must not write is marked, and a mark too many is an error."""
    assert mypy(programs) == []


@pytest.mark.parametrize("strictness", ["basic", "strict"])
def test_pyright_accepts_them(programs: Path, strictness: Strictness) -> None:
    """The same marks count."""
    assert pyright(programs, strictness) == []
