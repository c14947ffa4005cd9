"""`sabir providers`: state, package, dialects, keys, and what the dialects carry."""

import json
from pathlib import Path
from typing import Any

import pytest
import sabir
from sabir.contract.provider import Credential, Profile

from tests.cli.conftest import Command, Relay

SECRET = "sk-never-to-be-shown"


def documents(command: Command) -> dict[str, Any]:
    return {row["name"]: row for row in json.loads(command("providers", "--json")[0])}


def test_every_installed_provider_is_listed_within_80_columns(command: Command) -> None:
    """One line each."""
    lines = command("providers")[0].splitlines()

    for status in sabir.providers():
        (line,) = (line for line in lines if line.startswith(f"{status.name} "))
        assert status.state in line
    assert max(map(len, lines)) <= 80


@pytest.mark.usefixtures("relay")
def test_a_key_is_named_and_never_shown(monkeypatch: pytest.MonkeyPatch, command: Command) -> None:
    """Set or not is all that anyone needs to know."""
    monkeypatch.setenv("RELAY_API_KEY", SECRET)
    document = documents(command)
    out, _ = command("providers")

    assert "RELAY_API_KEY set" in out
    assert "no OPENAI_API_KEY" in out
    assert document["relay"]["key_variables"] == {"RELAY_API_KEY": "set"}
    assert document["openai"]["key_variables"]["OPENAI_API_KEY"] == "not set"
    assert SECRET not in out + json.dumps(document)


def test_credentials_tell_whence_they_come(
    relay: Relay, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, command: Command
) -> None:
    """Of each value the variable, or the file and its profile; of one that is missing, all that was looked at."""
    monkeypatch.setenv("HOME", str(tmp_path))
    profile = Profile(file="~/relay.toml", variable="RELAY_PROFILE")
    names = {"key_id": "RELAY_KEY_ID", "secret": "RELAY_SECRET"}
    monkeypatch.setattr(
        Relay,
        "credentials",
        [Credential(name=name, variables=(each,), profile=profile) for name, each in names.items()],
    )
    assert "no RELAY_KEY_ID" in command("providers")[0]
    (tmp_path / "relay.toml").write_text(f'[default]\nkey_id = "id"\nsecret = "{SECRET}"\n', "utf-8")

    lines, found = command("providers")[0].splitlines(), documents(command)["relay"]["credentials"]
    whence = "~/relay.toml [default]"
    assert any(line.startswith("relay ") and "~/relay.toml" in line for line in lines) and max(map(len, lines)) <= 80
    assert found == {name: {"found": whence, "looked": [each, whence]} for name, each in names.items()}


@pytest.mark.usefixtures("relay")
def test_an_empty_variable_holds_no_key(monkeypatch: pytest.MonkeyPatch, command: Command) -> None:
    """`export KEY=` is how many people unset one."""
    monkeypatch.setenv("RELAY_API_KEY", " ")

    assert documents(command)["relay"]["key_variables"] == {"RELAY_API_KEY": "not set"}


def test_capabilities_stand_in_the_document(command: Command) -> None:
    """By the provider's own name for a dialect, with the dialect's full name."""
    document = documents(command)

    assert document["openai"]["dialects"]["chat"]["name"] == "openai.chat"
    assert document["openai"]["dialects"]["chat"]["media"]["user"]["audio"] == ["data"]
    assert document["echo"]["dialects"] == {
        "plain": {"name": "echo.plain", "media": {}, "native": {}, "citations": False}
    }


def test_a_registered_provider_is_listed_as_such(relay: Relay, command: Command) -> None:
    """Its package is nobody's."""
    row = documents(command)["relay"]

    assert (row["state"], row["distribution"]) == ("registered", "")
