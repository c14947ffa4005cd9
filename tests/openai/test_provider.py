"""The provider carries bytes: through the real SDK, to a real server on a loopback port."""

import openai
import pytest
from sabir.contract.provider import Access, WireRequest
from sabir_openai.plugin import openai as provider
from sabir_testing.loopback import Server, head


@pytest.fixture(autouse=True)
def bare_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No variable of the machine decides a test."""
    for name in ("OPENAI_API_KEY", "OPENAI_ADMIN_KEY", "OPENAI_BASE_URL", "OPENAI_ORG_ID", "OPENAI_CUSTOM_HEADERS"):
        monkeypatch.delenv(name, raising=False)


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
    with Server([head(), b"{}"]) as server:
        client = openai.AzureOpenAI(
            api_key="azure", azure_endpoint=server.url, api_version="v9", azure_deployment=deployment
        )
        connection = provider.connect(Access(client=client))
        connection.open_sync(WireRequest(path=path, body=b'{"model":"m"}')).close()
        client.close()

    assert server.requests[0].path == expected
    assert server.requests[0].headers["api-key"] == "azure"
