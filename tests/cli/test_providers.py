"""`sabir providers` and `sabir models`: what is installed, what it carries, which dialects there are."""

import json
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import sabir
from rich.cells import cell_len
from sabir.authoring import Credential, Dialect, Profile
from sabir_cli.inputs import model_rows
from sabir_cli.providers import Speaker, capabilities, shared_names, spoken_dialects

from tests.cli.conftest import Command, Relay
from tests.cli.terminal import lines_of, on_terminal, posix

SECRET = "sk-never-to-be-shown"


def documents(command: Command) -> dict[str, Any]:
    return {row["name"]: row for row in json.loads(command("providers", "--json")[0])}


def test_every_installed_provider_is_listed_within_80_columns(command: Command) -> None:
    lines = command("providers")[0].splitlines()

    for status in sabir.providers():
        of_name = [line for line in lines if line.startswith(f"{status.name} ")]
        assert (
            len([line for line in of_name if f" {status.state} " in line and f" {status.distribution} " in line]) == 1
        )
    assert max(map(len, lines)) <= 80


class Native(Relay):
    """A package of its own for a service that sabir-openai knows as a gateway; as Ollama might have."""

    name, dialects = "ollama", ("native",)

    def dialect(self, short_name: str) -> Dialect:
        return replace(super().dialect("plain"), name=f"{self.name}.{short_name}")

    def models(self) -> tuple[sabir.ModelInfo, ...]:
        return (sabir.ModelInfo(prefix="qwen4"),)


class Added(Native):
    """A dialect that is added to a name which no other package provides."""

    name, dialects, adds_dialects = "zenith", ("messages",), True


@pytest.fixture
def shared() -> Iterator[None]:
    """Both, registered for one test."""
    for provider in (Native(), Added()):
        sabir.register(provider.name, provider)
    yield
    for name in ("ollama", "zenith"):
        sabir.unregister(name)


@pytest.mark.usefixtures("shared")
def test_packages_of_one_name_are_listed_with_the_strings_that_mean_them(command: Command) -> None:
    lines = command("providers")[0].splitlines()
    rows = [line.split()[:4] for line in lines]

    assert ["ollama", "installed", "sabir-openai", "chat"] in rows
    assert ["ollama", "registered", ".native", "no"] in rows
    assert ["zenith", "registered", ".messages", "no"] in rows
    notes = " ".join(line.strip() for line in lines if ":model" in line)
    assert "ollama:model means sabir-openai, ollama.native:model means sabir.register" in notes
    assert "zenith:model is refused, zenith.messages:model means sabir.register" in notes
    assert not any("failed" in line for line in lines)
    assert max(map(len, lines)) <= 80


@pytest.mark.usefixtures("shared")
def test_the_document_has_an_object_for_each_package_of_a_name(command: Command) -> None:
    rows = [row for row in json.loads(command("providers", "--json")[0]) if row["name"] == "ollama"]

    assert [(row["distribution"], row["means_bare_name"], row["shadowed"]) for row in rows] == [
        ("sabir-openai", True, []),
        ("", False, []),
    ]
    assert [{name: each["name"] for name, each in row["dialects"].items()} for row in rows] == [
        {"chat": "openai.chat", "responses": "openai.responses"},
        {"native": "ollama.native"},
    ]


@pytest.mark.usefixtures("shared")
def test_models_are_listed_under_the_name_that_means_their_provider(command: Command) -> None:
    """A string that is copied from the list works."""
    out = command("models")[0].split()
    rows = json.loads(command("models", "ollama.native", "--json")[0])

    assert {"ollama.native:qwen4", "zenith.messages:qwen4"} <= {*out}
    assert "ollama:qwen4" not in out
    assert [(row["provider"], row["dialect"], row["prefix"]) for row in rows] == [("ollama", "native", "qwen4")]
    assert "write zenith.messages:model" in command.error("models", "zenith", code=3)


@pytest.mark.parametrize(
    ("statuses", "notes"),
    [
        ([("a", {}, ("chat",)), ("b", {"means_bare_name": False}, ("chat", "native"))],
         ["x:model means a, x.native:model means b, chat of b is hidden"]),
        ([("a", {"means_bare_name": False}, ("talk",)), ("b", {"means_bare_name": False}, ("hum",))],
         ["x:model is refused, x.talk:model means a, x.hum:model means b"]),
        ([("a", {}, ("talk",))], []),
    ],
)  # fmt: skip
def test_a_note_says_which_package_a_string_means(
    statuses: list[tuple[str, dict[str, Any], tuple[str, ...]]], notes: list[str]
) -> None:
    """What is hidden and what is refused too; a name of one package needs no note."""
    shadowed = {"b": ("chat",)}
    found = [
        sabir.ProviderStatus(
            name="x", distribution=name, state="installed", dialects=dialects, **flags,
            shadowed=tuple(each for each in shadowed.get(name, ()) if each in dialects),
        )
        for name, flags, dialects in statuses
    ]  # fmt: skip

    assert list(shared_names(found)) == notes


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


def test_credentials_tell_their_source(
    relay: Relay, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, command: Command
) -> None:
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
    source = "~/relay.toml [default]"
    assert any(line.startswith("relay ") and "~/relay.toml" in line for line in lines) and max(map(len, lines)) <= 80
    assert found == {name: {"found": source, "looked": [each, source]} for name, each in names.items()}


def test_capabilities_stand_in_the_document(command: Command) -> None:
    document = documents(command)

    assert document["openai"]["dialects"]["chat"]["name"] == "openai.chat"
    assert document["openai"]["dialects"]["chat"]["media"]["user"]["audio"] == ["data"]
    assert document["echo"]["dialects"] == {
        "plain": {"name": "echo.plain", "media": {}, "native": {}, "citations": False}
    }


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


def test_the_models_of_one_provider_are_listed(command: Command) -> None:
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

    assert (
        command("models", "relay")[1] == "no facts are known about models of relay; any model name is sent unchanged\n"
    )


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
        "sabir: the models of provider 'echo' cannot be read: ZeroDivisionError: division by zero; update or remove it",
    ]
    assert "openai:" in out


def test_an_unknown_provider_exits_3(command: Command) -> None:
    assert "did you mean 'openai'?" in command.error("models", "opnai", code=3)


@cache
def shown(command: str, columns: int) -> list[str]:
    """The lines of a command on a terminal of that width."""
    code, seen = on_terminal(command, columns=columns)
    assert code == 0
    return lines_of(seen)


def words_of(lines: list[str]) -> set[str]:
    return {word for line in lines for word in line.split()}


@posix
@pytest.mark.parametrize("columns", [40, 80, 200])
@pytest.mark.parametrize("command", ["providers", "models"])
def test_every_name_is_whole_and_no_line_is_wider_than_the_terminal(command: str, columns: int) -> None:
    lines = shown(command, columns)
    names = {status.name for status in sabir.providers()}
    places = [name for status in sabir.providers() for name in status.names[:1]]
    models = {f"{name}:{info.prefix or '*'}" for name in places for info in model_rows(name)}
    models = {name for name in models if len(name) <= columns}  # a longer one is folded
    variables = {f"{name.upper()}_API_KEY" for name in ("anthropic", "openai", "openrouter")}

    assert max(map(cell_len, lines)) <= columns
    assert (models if command == "models" else names | variables) <= words_of(lines)


@posix
@pytest.mark.parametrize("command", ["providers", "models"])
def test_a_record_holds_what_the_table_holds(command: str) -> None:
    """Nothing is left out or broken within a word for want of room; only titles that say nothing more are gone."""
    titles = {"provider", "state", "package", "dialects", "key", "dialect", "model"}

    assert words_of(shown(command, 60)) - {"·", "key"} == words_of(shown(command, 200)) - {
        "·",
        *titles,
    }  # "key" is a title, and a word of azure's cell


@posix
@pytest.mark.parametrize("env", [{"NO_COLOR": "1"}, {"TERM": "dumb"}], ids=["NO_COLOR", "TERM=dumb"])
def test_no_colours_where_none_are_wanted(env: dict[str, str]) -> None:
    """https://no-color.org; a terminal that calls itself dumb is sent no escape at all."""
    seen = on_terminal("providers", env=env)[1]

    assert b"\x1b[3" not in seen
    assert b"\x1b" not in seen or "TERM" not in env
