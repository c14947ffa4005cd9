"""The provider carries bytes: through the real SDK, to a real server on a loopback port."""

import json
import subprocess
import sys
from dataclasses import replace
from typing import Any

import openai
import pytest
import sabir
from sabir.contract.protocols import Access, Provider, WireRequest
from sabir.errors import (
    ResponseInvalid,
    SettingsInvalid,
)
from sabir_openai.plugin import openai as provider
from sabir_testing.loopback import Server, head, whole

REQUEST = WireRequest(path="/chat/completions", body=b'{"model":"m" ,"messages":[]}')


@pytest.fixture(autouse=True)
def bare_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No variable of the machine decides a test."""
    for name in ("OPENAI_API_KEY", "OPENAI_ADMIN_KEY", "OPENAI_BASE_URL", "OPENAI_ORG_ID", "OPENAI_CUSTOM_HEADERS"):
        monkeypatch.delenv(name, raising=False)


def access(server: Server, key: str = "sk-test") -> Access:
    return Access(api_key=key, base_url=f"{server.url}/v1")


def test_it_is_a_provider() -> None:
    """The contract that core checks."""
    assert isinstance(provider, Provider)
    assert provider.dialects == ("responses", "chat")
    assert provider.key_variables == ("OPENAI_API_KEY", "OPENAI_ADMIN_KEY")


async def test_the_sdks_own_clients_send_with_the_key_as_a_bearers() -> None:
    """The vendor knows its SDK's requests by their user agent."""
    with Server([head(), b"{}"]) as server:
        connection = provider.connect(access(server))
        connection.open_sync(REQUEST).close()
        await (await connection.open(REQUEST)).aclose()
        await connection.aclose()
    waiting, awaited = (asked.headers for asked in server.asked)

    assert waiting["authorization"] == awaited["authorization"] == "Bearer sk-test"
    assert waiting["user-agent"].startswith("OpenAI/Python")
    assert awaited["user-agent"].startswith("AsyncOpenAI/Python")


def test_the_endpoint_is_known_without_a_client(monkeypatch: pytest.MonkeyPatch) -> None:
    """base_url=, then OPENAI_BASE_URL, then OpenAI's own; without a slash at the end."""
    assert provider.endpoint(Access()) == "https://api.openai.com/v1"
    monkeypatch.setenv("OPENAI_BASE_URL", "https://proxy.example/v1/")
    assert provider.endpoint(Access()) == "https://proxy.example/v1"
    assert provider.endpoint(Access(base_url="http://other/v1/")) == "http://other/v1"
    client = openai.OpenAI(api_key="k", base_url="http://mine/v1")
    assert provider.endpoint(Access(client=client)) == "http://mine/v1"
    client.close()


def test_quirks_follow_the_endpoint() -> None:
    """OpenAI and Azure have none; what speaks its dialect elsewhere is treated with caution."""
    assert provider.quirks(Access()) == frozenset()
    assert provider.quirks(Access(base_url="https://me.openai.azure.com/openai/v1")) == frozenset()
    assert provider.quirks(Access(base_url="http://localhost:8000/v1")) == {"max_tokens", "system_role"}
    assert provider.quirks(Access(base_url="https://notopenai.com/v1")) == {"max_tokens", "system_role"}


def test_openais_environment_does_not_follow_a_base_url(monkeypatch: pytest.MonkeyPatch) -> None:
    """Organisation, project and further headers are OpenAI's alone; another's endpoint gets the key and no more."""
    monkeypatch.setenv("OPENAI_ORG_ID", "org-1")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "proj-1")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "Authorization: Bearer sk-custom\nX-Secret: s")
    with Server([head(), b"{}"]) as server:
        connection = provider.connect(access(server))
        connection.open_sync(REQUEST).close()
        connection.close()

    headers = server.asked[0].headers
    assert headers["authorization"] == "Bearer sk-test"
    assert {"openai-organization", "openai-project", "x-secret"}.isdisjoint(headers)


@pytest.mark.parametrize("timeout", [None, 7.0])
async def test_every_request_has_the_headers_of_the_sdks_typed_call(timeout: float | None) -> None:
    """In their order, whichever client sends, and whether the SDK was asked anew or not; but for the length."""
    asks: Any = {"model": "m", "messages": []} | ({} if timeout is None else {"timeout": timeout})
    request = replace(REQUEST, timeout=timeout)
    with Server([whole(b"{}")], keeps_alive=True) as server:
        url, connection = f"{server.url}/v1", provider.connect(access(server))
        with openai.OpenAI(api_key="sk-test", base_url=url) as client:
            client.chat.completions.create(**asks)
        async with openai.AsyncOpenAI(api_key="sk-test", base_url=url) as later:
            await later.chat.completions.create(**asks)
        for _ in range(2):
            connection.open_sync(request).close()
            await (await connection.open(request)).aclose()
        await connection.aclose()

    waiting, awaited, *ours = [list({**asked.headers, "content-length": ""}.items()) for asked in server.asked]
    assert ours == [waiting, awaited] * 2
    assert {asked.path for asked in server.asked} == {"/v1/chat/completions"}


def test_the_users_client_sends_with_its_own_key_and_headers() -> None:
    """To its own endpoint, whose path stays."""
    with Server([head(), b"{}"]) as server:
        client = openai.OpenAI(api_key="sk-mine", base_url=f"{server.url}/my/v1", default_headers={"X-Mine": "1"})
        connection = provider.connect(Access(client=client))
        connection.open_sync(REQUEST).close()
        client.close()

    asked = server.asked[0]
    assert (asked.path, asked.headers["authorization"], asked.headers["x-mine"]) == (
        "/my/v1/chat/completions",
        "Bearer sk-mine",
        "1",
    )


async def test_the_users_client_follows_no_redirect() -> None:
    """Whatever it does by itself: the conversation is for its own endpoint. The error names the host."""
    with Server([head(), b"{}"]) as there, Server([head(307, location=f"{there.url}/v1")]) as here:
        with openai.OpenAI(api_key="k", base_url=here.url) as client, pytest.raises(ResponseInvalid) as waiting:
            sabir.adapter("openai:gpt-5", client=client).complete_sync("Hi")
        async with openai.AsyncOpenAI(api_key="k", base_url=here.url) as later:
            with pytest.raises(ResponseInvalid) as awaited:
                await sabir.adapter("openai:gpt-5", client=later).complete("Hi")

    assert (len(here.asked), there.asked) == (2, [])
    for raised in (waiting, awaited):
        assert (raised.value.status, raised.value.retryable) == (307, False)
        assert there.url.partition("://")[2] in str(raised.value)


async def test_a_client_of_the_other_kind_is_refused_by_name() -> None:
    """A sync client cannot be awaited; the error says which to pass."""
    client = openai.OpenAI(api_key="k")
    with pytest.raises(SettingsInvalid, match="await takes an AsyncOpenAI"):
        await provider.connect(Access(client=client)).open(REQUEST)
    client.close()
    later = openai.AsyncOpenAI(api_key="k")
    with pytest.raises(SettingsInvalid, match="take an OpenAI client"):
        provider.connect(Access(client=later)).open_sync(REQUEST)
    await later.close()


@pytest.mark.parametrize(
    ("deployment", "path", "expected"),
    [
        (None, "/chat/completions", "/openai/deployments/m/chat/completions?api-version=v9"),
        ("mine", "/chat/completions", "/openai/deployments/mine/chat/completions?api-version=v9"),
        (None, "/responses", "/openai/responses?api-version=v9"),
        ("mine", "/responses", "/openai/responses?api-version=v9"),
    ],
)
def test_an_azure_client_reaches_its_deployment(deployment: str | None, path: str, expected: str) -> None:
    """Where the client names no deployment, the model does, as the SDK's typed methods have it."""
    with Server([head(), b"{}"]) as server:
        client = openai.AzureOpenAI(
            api_key="azure", azure_endpoint=server.url, api_version="v9", azure_deployment=deployment
        )
        connection = provider.connect(Access(client=client))
        connection.open_sync(WireRequest(path=path, body=b'{"model":"m"}')).close()
        client.close()

    assert server.asked[0].path == expected
    assert server.asked[0].headers["api-key"] == "azure"


def test_no_sdk_is_imported_before_the_first_send() -> None:
    """Endpoint, quirks, models and both dialects come without it (law 6)."""
    code = """
import sys, json
from sabir.contract.protocols import Access
from sabir_openai.plugin import openai, groq
for provider in (openai, groq):
    provider.endpoint(Access()), provider.quirks(Access()), provider.models(), provider.connect(Access())
    [provider.dialect(name) for name in provider.dialects]
print(json.dumps(sorted({"openai", "httpx2", "anyio"} & set(sys.modules))))
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert json.loads(found.stdout) == []
