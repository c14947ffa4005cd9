"""A page's examples leave nothing behind: they run as at a prompt in the current folder, which ends with the page."""

import sys
from pathlib import Path

import pytest
import sabir
from sabir_echo.plugin import Echo

from tests.docs.running import at_a_prompt


class Parrot(Echo):
    """A provider of another name."""

    name = "parrot"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, which holds a module."""
    (tmp_path / "module_of_a_page.py").write_text("ANSWER = 42\n", "utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_what_a_page_wrote_can_be_imported(folder: Path) -> None:
    """As at a prompt that was started in that folder; afterwards neither path nor module is there."""
    with at_a_prompt():
        assert __import__("module_of_a_page").ANSWER == 42

    assert "module_of_a_page" not in sys.modules
    assert str(folder) not in sys.path


def test_what_a_page_registers_goes_with_it(folder: Path) -> None:
    """No other test meets a provider that is not installed."""
    with at_a_prompt():
        sabir.register("parrot", Parrot())

    assert "parrot" not in {status.name for status in sabir.providers()}


def test_what_was_registered_before_a_page_stays(folder: Path) -> None:
    """It is somebody else's."""
    sabir.register("parrot", Parrot())
    try:
        with at_a_prompt():
            pass

        assert "parrot" in {status.name for status in sabir.providers()}
    finally:
        sabir.unregister("parrot")
