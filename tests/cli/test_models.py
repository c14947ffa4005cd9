"""`sabir models`: what the installed plugins know."""

import json

import pytest
import sabir

from tests.cli.conftest import Command, Relay


def test_the_models_of_one_provider_are_listed(command: Command) -> None:
    """Each row of its plugin's data, by name."""
    out, _ = command("models", "openai")

    assert {info.prefix for info in sabir.models("openai")} == {
        line.split()[0].partition(":")[2] for line in out.splitlines() if line.startswith("openai:")
    }
    assert max(map(len, out.splitlines())) <= 80


def test_json_holds_every_row_of_every_provider(command: Command) -> None:
    """Machine output says all that is known."""
    rows = json.loads(command("models", "--json")[0])

    assert {row["provider"] for row in rows} >= {"echo", "openai"}
    assert len([row for row in rows if row["provider"] == "openai"]) == len(sabir.models("openai"))


def test_an_authors_facts_are_shown_where_there_are_any(
    relay: Relay, monkeypatch: pytest.MonkeyPatch, command: Command
) -> None:
    """In a column of their own, which no other table has."""
    row = sabir.ModelInfo(prefix="large", facts={"released": "2026-05", "tiers": [1]})
    monkeypatch.setattr(relay, "models", lambda: (row,))

    lines = command("models", "relay")[0].splitlines()
    assert "facts" in lines[0] and max(map(len, lines)) <= 80
    assert 'released="2026-05"' in "".join(lines)
    assert json.loads(command("models", "relay", "--json")[0])[0]["facts"] == {"released": "2026-05", "tiers": [1]}
    assert "facts" not in command("models", "openai")[0].splitlines()[0]


def test_a_provider_without_known_models_is_named(
    relay: Relay, monkeypatch: pytest.MonkeyPatch, command: Command
) -> None:
    """An empty table would look like a failure."""
    monkeypatch.setattr(relay, "models", tuple)

    assert command("models", "relay")[1] == "nothing is known of the models of relay; any name is passed on\n"


def test_a_provider_that_fails_is_reported_and_the_others_are_listed(
    monkeypatch: pytest.MonkeyPatch, command: Command
) -> None:
    """One that cannot be loaded is not asked again; one whose models fail is a line too."""
    failed = sabir.ProviderStatus(name="gone", state="failed", error="'gone' cannot be loaded")
    listed = sabir.providers()
    monkeypatch.setattr(sabir, "providers", lambda: (failed, *listed))
    monkeypatch.setattr(sabir.provider("echo"), "models", lambda: 1 / 0, raising=False)

    out, err = command("models", code=3)
    assert err.splitlines()[:2] == [
        "sabir: 'gone' cannot be loaded",
        "sabir: provider 'echo' does not tell its models: ZeroDivisionError: division by zero; update or remove it",
    ]
    assert "openai:" in out


def test_an_unknown_provider_exits_3(command: Command) -> None:
    """With what is installed, and the nearest name."""
    assert "did you mean 'openai'?" in command.error("models", "opnai", code=3)
