"""`sabir config` and the defaults of commands: a flag, the environment, the user's file, what is built in."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import sabir
from sabir_cli.config import NAMES, Defaults, gather
from sabir_cli.folders import variable_of
from sabir_cli.inputs import choose_model

from tests.cli.command import environment
from tests.cli.conftest import Command


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the user's file would be, which is not there."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    return tmp_path / "sabir" / "config.toml"


def write(file: Path, text: str) -> None:
    file.parent.mkdir(exist_ok=True)
    file.write_text(text, "utf-8")


def test_a_flag_goes_before_the_environment_that_before_the_file_and_that_before_what_is_built_in(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert choose_model(None).startswith("local:")
    write(file, 'model = "echo:file"')
    assert choose_model(None) == "echo:file"
    monkeypatch.setenv("SABIR_MODEL", "echo:variable")
    assert choose_model(None) == "echo:variable"
    assert choose_model("echo:flag") == "echo:flag"
    monkeypatch.setenv("SABIR_MODEL", "")
    assert choose_model(None) == "echo:file"


def test_every_setting_has_its_variable(file: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    given = {
        "model": "echo:any", "system": "Be brief.", "temperature": 0.5, "max_output_tokens": 64,
        "reasoning_effort": "low", "profile": "work", "markdown": False, "home": tmp_path,
    }  # fmt: skip
    for name, value in given.items():
        monkeypatch.setenv(variable_of(name), "off" if value is False else str(value))
    defaults = Defaults.load()

    assert set(given) == set(NAMES)
    assert defaults.model_dump() == given
    assert defaults.settings == sabir.Settings(temperature=0.5, max_output_tokens=64, reasoning_effort="low")
    assert not file.exists()


def test_all_settings_are_shown_with_their_values_and_sources(
    file: Path, monkeypatch: pytest.MonkeyPatch, command: Command
) -> None:
    """The file is named, whether it is there or not; its path may be long."""
    monkeypatch.setenv("COLUMNS", "400")
    assert f"{file}(doesnotexistyet)" in "".join(command("config")[0].split())
    write(file, 'model = "echo:any"\nmarkdown = "off"\n')
    monkeypatch.setenv("SABIR_SYSTEM", "Be brief.")
    lines = command("config")[0].splitlines()

    for row in ("model echo:any config.toml", "markdown off config.toml", "system Be brief. SABIR_SYSTEM"):
        assert row in [" ".join(line.split()) for line in lines]
    assert "temperature the provider's default" in [" ".join(line.split()) for line in lines]
    found = {row["name"]: row for row in json.loads(command("config", "--json")[0])["settings"]}
    assert list(found) == list(NAMES)
    assert (found["model"]["value"], found["model"]["source"]) == ("echo:any", str(file))


def test_a_setting_is_set_and_unset_and_the_rest_of_the_file_stays(
    file: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Comments are the user's own. A file that is a link to another stays one."""
    monkeypatch.delenv("SABIR_HOME")
    held = file.parent / "elsewhere.toml"
    write(held, '# mine\nmodel = "echo:any"  # for now\n')
    file.symlink_to(held)

    command("config", "set", "temperature", "0.5")
    command("config", "set", "markdown", "off")
    command("config", "set", "home", "~/talks")
    assert held.read_text("utf-8").startswith('# mine\nmodel = "echo:any"  # for now\n')
    assert Defaults.load() == Defaults(model="echo:any", temperature=0.5, markdown=False, home=Path.home() / "talks")

    command("config", "unset", "model")
    assert "model is not set" in command("config", "unset", "model")[1]
    assert held.read_text("utf-8") == '# mine\ntemperature = 0.5\nmarkdown = false\nhome = "~/talks"\n'
    assert file.is_symlink() and sorted(each.name for each in file.parent.iterdir()) == ["config.toml", held.name]


def test_setting_what_the_environment_sets_too_says_so(
    file: Path, monkeypatch: pytest.MonkeyPatch, command: Command
) -> None:
    """Else the user would wonder why nothing changed."""
    monkeypatch.setenv("SABIR_MODEL", "echo:any")

    assert command("config", "set", "model", "echo:other")[1].rstrip().endswith("; SABIR_MODEL overrides it")


KEY = "sk-proj-never7to8be9shown"


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["api_key", KEY], "'api_key' looks like a key: the settings file must not contain keys; set"),
        (["OPENAI-TOKEN", "x"], "'OPENAI-TOKEN' looks like a key"),
        (["system", f"Say {KEY}."], "the value of 'system' looks like a key"),
        (["model", "AIzaSyNever7to8be9shown"], "the value of 'model' looks like a key"),
        (["max_tokens", "5"], "unknown setting 'max_tokens'; did you mean 'max_output_tokens'?"),
        (["colour", "red"], "unknown setting 'colour'; choose from model, system"),
        (["model", "gpt-5"], "model: 'gpt-5' is not a model string; write provider:model"),
        (["temperature", "-1"], "temperature: Input should be greater than or equal to 0"),
        (["reasoning_effort", "hard"], "reasoning_effort: Input should be 'none', 'minimal'"),
        (["system", "caf\udcc3"], "the value of 'system' is not UTF-8 text; use a terminal with a UTF-8 locale"),
        (["home", "talks"], "home: 'talks' is a relative path; write an absolute path"),
        (["model"], "write `sabir config set NAME VALUE`"),
    ],
)
def test_what_no_file_may_hold_is_refused_with_the_remedy(
    file: Path, words: list[str], complaint: str, command: Command
) -> None:
    """In one line, which never shows what may be a key; and nothing is written."""
    line = command.error("config", "set", *words)

    assert complaint in line
    assert "never" not in line
    assert not file.exists()


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("model = ", "is not TOML: Invalid value (at end of document); correct it"),
        ("\xff", "is not TOML"),
        ("modle = 'echo:any'", "unknown setting 'modle'; did you mean 'model'?"),
        (f"api_key = '{KEY}'", "'api_key' looks like a key"),
        ("temperature = 'hot'", "temperature: Input should be a valid number"),
        ("[model]\nname = 'x'", "model: Input should be a valid string"),
    ],
)
def test_a_file_that_is_wrong_is_named_in_one_line(file: Path, text: str, complaint: str, command: Command) -> None:
    file.parent.mkdir()
    file.write_bytes(text.encode("latin-1"))

    for arguments in (["config"], ["chat", "Hello"], ["chat", "-m", "echo:any", "Hello"]):
        line = command.error(*arguments)
        assert complaint in line and repr(str(file)) in line
        assert "never" not in line


def test_what_the_file_must_not_hold_can_be_taken_out(file: Path, command: Command) -> None:
    """The remedy works while the file is wrong."""
    write(file, "modle = 'echo:any'\nmarkdown = false\n")
    command("config", "unset", "modle")

    assert file.read_text("utf-8") == "markdown = false\n"


def test_the_path_alone_is_told_to_programs(file: Path, command: Command) -> None:
    """`$EDITOR "$(sabir config path)"`, a wrong file's above all."""
    write(file, "model = ")

    assert command("config", "path") == (f"{file}\n", "")
    assert json.loads(command("config", "path", "--json")[0]) == {"path": str(file)}


def test_an_empty_file_and_none_are_alike(file: Path) -> None:
    nothing = gather({})
    write(file, "\ufeff")

    assert gather({}) == nothing
    assert {row.source for row in nothing} == {"default"}


def test_no_provider_is_loaded(file: Path) -> None:
    """What the defaults are is no provider's business, and the command starts fast."""
    code = "import sys; from sabir_cli.main import main; main(['config']); print(*sys.modules, file=sys.stderr)"
    ran = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True, text=True, check=True, env=environment({"XDG_CONFIG_HOME": str(file.parent.parent)}),
    )  # fmt: skip
    loaded = set(ran.stderr.split())

    assert "sabir_cli.config" in loaded
    assert not {"sabir_openai", "sabir_local", "sabir_echo", "sabir_anthropic", "tomlkit", "sabir_session"} & loaded
