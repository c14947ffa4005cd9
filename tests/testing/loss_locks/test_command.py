"""`sabir diff`: what targets lose, and a lock file that fails when they lose more."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import sabir
from sabir.errors import HistoryInvalid, SettingsInvalid
from sabir_testing.loss_locks.command import diff

from tests.testing.loss_locks.scratch import TARGET, scratch

IMAGE = sabir.image(b"\x89PNG\r\n\x1a\n" + bytes(30), name="tower.png")
NO_IMAGES = "message 2, parts[1]: downgraded: acme.chat in user messages does not accept images"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A saved conversation with an image."""
    path = tmp_path / "prompts" / "tower.json"
    path.parent.mkdir()
    sabir.save(path, [sabir.system("Be brief."), sabir.user("What time is it there?", IMAGE)])
    return path


@pytest.fixture
def lock(tmp_path: Path) -> Path:
    return tmp_path / "losses.lock"


def test_a_new_version_of_a_plugin_that_rejects_images_fails_the_check(
    file: Path, lock: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with scratch():
        assert diff(file, to=[TARGET], lock=lock, update=True) == 0
        assert diff(file, lock=lock) == 0
        capsys.readouterr()
    with scratch(accepts_images=False):
        assert diff(file, lock=lock) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(f"new loss at {TARGET}: prompts/tower.json, {NO_IMAGES[:40]}")
    assert lines[1:] == [f"1 loss not in {lock}; change the conversation, or accept with --update"]

    with scratch(accepts_images=False):
        assert diff(file, lock=lock, update=True) == 0
        assert diff(file, lock=lock) == 0
    with scratch():
        capsys.readouterr()
        assert diff(file, lock=lock) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(f"no longer lost at {TARGET}: prompts/tower.json, {NO_IMAGES[:40]}")
    assert lines[-1] == f"1 line of {lock} out of date; run with --update"


def test_a_setting_and_a_changed_conversation_that_lose_more_fail(
    file: Path, lock: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = "anthropic:claude-sonnet-5"
    assert diff(file, to=[target], lock=lock, update=True) == 0
    capsys.readouterr()

    assert diff(file, lock=lock, setting=["seed=3"]) == 1
    assert "tower.json, settings.seed: dropped: " in capsys.readouterr().out

    sabir.save(file, [*sabir.load(file), sabir.user(sabir.audio(b"RIFF    WAVE", mime="audio/wav"))])
    assert diff(file, lock=lock) == 1
    assert "tower.json, message 3, parts[0]: downgraded: " in capsys.readouterr().out


def test_an_update_keeps_other_conversations_and_targets(file: Path, lock: Path) -> None:
    other = file.with_name("other.json")
    sabir.save(other, [sabir.user("Hello!")])

    diff(file, other, to=["echo:m"], lock=lock, update=True)
    diff(file, to=["openai:gpt-5"], lock=lock, update=True)

    histories = json.loads(lock.read_text())["histories"]
    assert {name: list(targets) for name, targets in histories.items()} == {
        "prompts/other.json": ["echo:m"], "prompts/tower.json": ["echo:m", "openai:gpt-5"],
    }  # fmt: skip


def test_a_missing_file_and_a_target_that_is_not_locked_name_the_remedy(file: Path, lock: Path) -> None:
    with pytest.raises(SettingsInvalid, match=r"there is no lock file .*; run with --update to create it"):
        diff(file, to=["echo:m"], lock=lock)
    diff(file, to=["echo:m"], lock=lock, update=True)

    with pytest.raises(SettingsInvalid, match=r"has no losses of prompts/tower.json at echo:n; run with --update"):
        diff(file, to=["echo:n"], lock=lock)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"to": ["ecko:m"]}, "provider 'ecko' is not installed.*did you mean 'echo'"),
        ({"to": ["echo"]}, "'echo' is not a model string"),
        ({}, "no target is named for .*; add --to provider:model"),
        ({"to": ["echo:m"], "update": True}, "--update needs the file to write"),
        ({"to": ["echo:m"], "setting": ["seed"]}, "--setting 'seed' has no value"),
        ({"to": ["echo:m"], "setting": ["sed=1"]}, "Settings has no `sed`"),
    ],
)
def test_wrong_arguments_are_refused(file: Path, arguments: dict[str, object], reason: str) -> None:
    with pytest.raises(sabir.SabirError, match=reason):
        diff(file, **arguments)  # type: ignore[arg-type]


def test_an_unreadable_conversation_is_named(tmp_path: Path) -> None:
    with pytest.raises(HistoryInvalid, match=r"nothing.json' cannot be read"):
        diff(tmp_path / "nothing.json", to=["echo:m"])


def test_the_output_of_an_import_brings_its_settings_and_options(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = sabir.Settings(seed=7)
    history = sabir.DecodedHistory(messages=(sabir.user("Hello!"),), settings=settings)
    file = tmp_path / "imported.json"
    file.write_text(history.model_dump_json(by_alias=True))

    assert diff(file, to=["anthropic:claude-sonnet-5"], json=True) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert "settings.seed" in [loss["path"] for loss in row["losses"]]


def test_the_command_needs_no_test_runner() -> None:
    program = (
        "import sys, sabir_testing.loss_locks.command; print([m for m in ('pytest', 'hypothesis') if m in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert ran.stdout.strip() == "[]"
