"""The installed dialects, each once, with its own provider speaking for it."""

from types import SimpleNamespace
from typing import Any

import pytest
import sabir
from sabir_cli.dialects import Speaker, capabilities, spoken_dialects

from tests.cli.conftest import Relay


@pytest.mark.usefixtures("relay")
def test_gateways_stand_behind_the_dialects_own_provider() -> None:
    """`echo.plain` is echo's, whoever else speaks it."""
    dialects, faults = spoken_dialects(sabir.providers())
    (plain,) = (each for each in dialects if each.dialect.name == "echo.plain")

    assert faults == []
    assert plain.speaker == Speaker("echo", "plain")
    assert plain.other_providers == ("relay",)


@pytest.mark.usefixtures("relay")
def test_a_dialect_whose_own_provider_is_not_there_is_spoken_for_by_a_gateway() -> None:
    """Installed is what counts."""
    dialects, _ = spoken_dialects(status for status in sabir.providers() if status.name == "relay")

    assert [(each.dialect.name, each.speaker.provider) for each in dialects] == [("echo.plain", "relay")]


def test_each_dialect_stands_there_once() -> None:
    """Ten gateways that speak one dialect are one row."""
    dialects, _ = spoken_dialects(sabir.providers())
    names = [each.dialect.name for each in dialects]

    assert {"echo.plain", "openai.chat", "openai.responses"} <= set(names)
    assert len(names) == len(set(names))
    assert [each.speaker.full_name for each in dialects] == names


@pytest.mark.parametrize(
    ("failing", "reason"),
    [
        (RuntimeError("no tables"), "RuntimeError: no tables"),
        (SystemExit(3), "SystemExit: 3"),
        (5, "AttributeError: 'int' object has no attribute 'name'"),
        (SimpleNamespace(name="a", tables=5), "AttributeError: 'int' object has no attribute 'media'"),
    ],
    ids=["raises", "leaves", "number", "tables"],
)
def test_a_dialect_that_fails_is_reported_and_stops_no_other(
    relay: Relay, monkeypatch: pytest.MonkeyPatch, failing: Any, reason: str
) -> None:
    """A plugin's fault is one line."""

    def dialect(short_name: str) -> Any:
        if isinstance(failing, BaseException):
            raise failing
        return failing

    monkeypatch.setattr(relay, "dialect", dialect)
    dialects, faults = spoken_dialects(sabir.providers())

    assert faults == [f"relay.plain failed: {reason}; update or remove it"]
    assert "echo.plain" in [each.dialect.name for each in dialects]


def test_a_provider_that_failed_is_reported_with_its_reason() -> None:
    """It has no dialects that could be shown, but it must not be forgotten."""
    status = sabir.ProviderStatus(name="acme", state="failed", error="its import failed")

    assert spoken_dialects([status]) == ([], ["acme failed: its import failed"])


def test_capabilities_are_read_from_the_tables() -> None:
    """What `sabir providers` says is what core decides by."""
    (chat,) = (each for each in spoken_dialects(sabir.providers())[0] if each.dialect.name == "openai.chat")
    tables = chat.dialect.tables
    carries = capabilities(tables)

    assert carries["media"]["user"]["image"] == ["url", "data"]
    assert {(side, kind) for side, kinds in carries["media"].items() for kind in kinds} == set(tables.media)
    assert carries["citations"] is (tables.roles.citations == "native")
