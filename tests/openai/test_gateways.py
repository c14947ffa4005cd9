"""Gateways: compatible endpoints as rows of data, each a provider of its own."""

import re
import tomllib
from importlib.metadata import entry_points
from pathlib import Path

import pytest
import sabir
from sabir.authoring import Row
from sabir.contract.provider import Access, Provider, WireRequest
from sabir.errors import CredentialsMissing
from sabir.vocabulary.models import find_model, read_models
from sabir.vocabulary.settings import WIRE_SETTINGS
from sabir_openai import plugin, provider
from sabir_openai.chat_dialect import QUIRKS
from sabir_testing.loopback import Server, head

GATEWAYS = Row.load_all_packaged("sabir_openai")
NAMES = sorted(GATEWAYS)
ROOT = Path(__file__).parents[2] / "plugins" / "openai"


@pytest.mark.parametrize("name", NAMES)
def test_a_row_is_a_provider_that_cites_its_vendor_and_knows_its_quirks(name: str) -> None:
    provider, row = getattr(plugin, name), GATEWAYS[name]

    assert isinstance(provider, Provider)
    assert (provider.name, provider.dialects) == (name, row.dialects)
    assert re.match(r"https://|http://localhost:", row.url) and not row.url.endswith("/")
    assert row.docs.startswith("https://")
    assert row.quirks <= QUIRKS.keys()
    assert row.key_variables or row.url.startswith("http://localhost")


def test_every_row_is_an_entry_point_and_the_other_way_round() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    points = project["entry-points"]["sabir.providers"]

    assert points == {name: f"sabir_openai.plugin:{name}" for name in ["azure", "openai", *NAMES]}
    assert {point.name for point in entry_points(group="sabir.providers")} >= {"openai"}


def test_a_name_without_a_row_is_no_provider() -> None:
    with pytest.raises(AttributeError, match="has no provider 'nowhere'"):
        plugin.nowhere  # noqa: B018 - the access itself is the test


@pytest.mark.parametrize("name", [name for name in NAMES if GATEWAYS[name].url.startswith("https://")])
def test_a_missing_key_names_the_gateways_variable(name: str) -> None:
    """OpenAI's own variable is not read for another's endpoint."""
    variable = GATEWAYS[name].key_variables[0]
    with pytest.raises(CredentialsMissing, match=rf"{name} has no key; set the variable {variable}"):
        getattr(plugin, name).connect(Access()).open_sync(WireRequest(path="/x", body=b"{}"))


def test_nothing_of_openais_environment_goes_to_a_gateway(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-openai")
    monkeypatch.setenv("OPENAI_ADMIN_KEY", "sk-admin")
    monkeypatch.setenv("OPENAI_ORG_ID", "org-1")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "proj-1")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "Authorization: Bearer sk-custom\nX-Secret: s")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("GROQ_API_KEY", "gsk-1")
    with Server([head(), b"{}"]) as server:
        connection = plugin.groq.connect(Access(base_url=server.url))
        connection.open_sync(WireRequest(path="/x", body=b"{}", headers={"X-Mine": "1"})).close()
        connection.close()

    headers = server.requests[0].headers
    assert headers["authorization"] == "Bearer gsk-1"
    assert headers["x-mine"] == "1"
    assert {"openai-organization", "openai-project", "x-secret"}.isdisjoint(headers)
    assert plugin.groq.endpoint(Access()) == "https://api.groq.com/openai/v1"


def test_openais_environment_goes_to_openai(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugin.openai, "hosts", ("127.0.0.1",))
    monkeypatch.setenv("OPENAI_ORG_ID", "org-1")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "proj-1")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "X-Mine: 1")
    with Server([head(), b"{}"]) as server:
        for key in ("k", {"api_key": "k", "organization": "org-given"}):
            connection = plugin.openai.connect(Access(api_key=key, base_url=server.url))
            connection.open_sync(WireRequest(path="/x", body=b"{}")).close()
            connection.close()

    names = ("authorization", "openai-organization", "openai-project")
    assert [tuple(asked.headers[name] for name in names) for asked in server.requests] == [
        ("Bearer k", "org-1", "proj-1"),
        ("Bearer k", "org-given", "proj-1"),
    ]


@pytest.mark.parametrize(("key", "sent"), [(None, None), ("mine", "Bearer mine")])
def test_a_server_without_keys_gets_none_unless_given(key: str | None, sent: str | None) -> None:
    with Server([head(), b"{}"]) as server:
        connection = plugin.ollama.connect(Access(api_key=key, base_url=server.url))
        connection.open_sync(WireRequest(path="/x", body=b"{}")).close()
        connection.close()

    assert server.requests[0].headers.get("authorization") == sent


def test_facts_of_a_dialect_are_those_that_its_adapter_has() -> None:
    """xAI's Chat takes `max_tokens`; its default dialect, Responses, has the neutral name."""
    quirks = {dialect: {quirk for info in sabir.models("xai", dialect) for quirk in info.quirks}
              for dialect in (None, "responses", "chat")}  # fmt: skip

    assert "max_tokens" in quirks["chat"]
    assert "max_tokens" not in quirks["responses"] | quirks[None]


def test_models_are_rows_that_core_can_read() -> None:
    models = plugin.openai.models()
    text = (ROOT / "src" / "sabir_openai" / "models.toml").read_text("utf-8")

    assert models == read_models(text)
    assert all(set(info.rejects) <= {*WIRE_SETTINGS, "dimensions"} for info in models)
    assert find_model(models, "gpt-5-mini").rejects == ("temperature", "top_p", "stop")
    assert find_model(models, "gpt-5.1").rejects == ()
    assert find_model(models, "gpt-5-chat-latest").reasoning is False
    assert find_model(models, "gpt-4o-audio-preview").modalities == ("audio",)
    assert find_model(models, "llama3").prefix == ""


def test_the_provider_module_names_no_gateway() -> None:
    source = Path(provider.__file__).read_text("utf-8").lower()

    assert [name for name in NAMES if name in source] == []
