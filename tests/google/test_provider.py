"""The provider carries bytes: through the real SDK, to a real server on a loopback port."""

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
import sabir
import sabir_google
from google import genai
from google.genai.types import HttpOptions
from google.oauth2.credentials import Credentials
from sabir.contract.provider import Access, WireRequest
from sabir.errors import SettingsInvalid
from sabir_google.plugin import google as provider
from sabir_testing.loopback import PATIENCE, Server, head, whole

PATH = "/v1beta/models/gemini-2.5-flash"
REQUEST = WireRequest(path=f"{PATH}:generateContent", body='{"contents" :[ "été" ]}'.encode())
ANSWER = json.dumps(
    {"candidates": [{"content": {"role": "model", "parts": [{"text": "Hi."}]}, "finishReason": "STOP"}]}
).encode()


def access(server: Server, key: str = "k-test") -> Access:
    return Access(api_key=key, base_url=server.url)


def test_the_sdk_adds_its_headers_and_never_sees_the_answer() -> None:
    with Server([head(), b'{"ok" : true}']) as server:
        connection = provider.connect(access(server))
        response = connection.open_sync(replace(REQUEST, timeout=0.9))
        body = b"".join(response.chunks())
        connection.close()
        (asked,) = server.requests

    assert asked.headers["x-goog-api-key"] == "k-test"
    assert asked.headers["content-length"] == str(len(REQUEST.body))
    assert asked.headers["user-agent"].startswith("google-genai-sdk/")
    assert asked.headers["x-server-timeout"] == "1"
    assert body == b'{"ok" : true}'


@pytest.mark.parametrize("model", ["x?y=1", "a&b", "x#y", "a:b", "maker/x", "tunedModels/a b"])
def test_a_models_name_never_leads_elsewhere(model: str) -> None:
    """What was rendered is where it is sent; the SDK would refuse some of these with a ValueError if they were bare."""
    with Server([head(), ANSWER]) as server, sabir.adapter(f"google:{model}", api_key="k", base_url=server.url) as llm:
        assert llm.complete_sync("Hello").text == "Hi."
        assert server.requests[0].path == llm.render("Hello").path


def test_aiohttp_is_never_used_even_where_it_is_installed(tmp_path: Any) -> None:
    """The SDK takes it by itself wherever it can be imported; a module of that name that does nothing stands for it."""
    (tmp_path / "aiohttp.py").write_text(
        "class ClientConnectorError(Exception): ...\nclass ClientOSError(Exception): ...\n"
        "class ServerDisconnectedError(Exception): ...\nclass ClientConnectorDNSError(Exception): ...\n"
        "class ClientResponse: ...\nclass ClientSession:\n"
        "    def __init__(self, *a, **k): raise SystemExit('aiohttp was used')\n"
        "class TCPConnector(ClientSession): ...\nclass ClientTimeout(ClientSession): ...\n"
    )
    code = (
        "import asyncio, sys, sabir\n"
        f"sys.path.insert(0, {str(tmp_path)!r})\n"
        "async def main():\n"
        "    async with sabir.adapter('google:gemini-2.5-flash', api_key='k', base_url=sys.argv[1]) as llm:\n"
        "        print((await llm.complete('Hello')).text)\n"
        "asyncio.run(main())\n"
        "from google.genai import _api_client\n"
        "print(_api_client.has_aiohttp)\n"
    )
    with Server([head(), ANSWER]) as server:
        done = subprocess.run([sys.executable, "-c", code, server.url], capture_output=True, text=True, check=False)

    assert (done.stdout.split(), done.returncode) == (["Hi.", "True"], 0), done.stderr


def test_variables_that_lead_elsewhere_decide_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The SDK would go to Vertex AI, to another version, or through another HTTP library."""
    monkeypatch.setenv("GOOGLE_GENAI_USE_VERTEXAI", "true")
    monkeypatch.setenv("GOOGLE_GENAI_USE_ENTERPRISE", "true")
    monkeypatch.setenv("GOOGLE_CLOUD_PROJECT", "p")
    monkeypatch.setenv("GOOGLE_GENAI_API_VERSION", "v1alpha")
    monkeypatch.setenv("GOOGLE_VERTEX_BASE_URL", "http://127.0.0.1:9")
    with Server([head(), b"{}"]) as server:
        connection = provider.connect(access(server))
        connection.open_sync(REQUEST).close()
        connection.close()

    assert provider.endpoint(Access()) == "https://generativelanguage.googleapis.com"
    assert (server.requests[0].path, server.requests[0].headers["x-goog-api-key"]) == (REQUEST.path, "k-test")


@pytest.fixture
def vertex() -> Iterator[tuple[Server, genai.Client]]:
    """The user's own client of Vertex AI, with credentials and a project, made to send through sabir."""
    with Server([head(), ANSWER]) as server:
        client = genai.Client(
            vertexai=True,
            project="my-project",
            location="europe-west4",
            credentials=Credentials(token="ya29.test"),
            http_options=sabir_google.http_options(base_url=server.url),
        )
        yield server, client


def test_a_users_client_of_vertex_carries_the_bytes_its_own_way(vertex: tuple[Server, genai.Client]) -> None:
    server, client = vertex
    connection = provider.connect(Access(client=client))
    for _ in range(2):
        connection.open_sync(REQUEST).close()
    connection.close()
    client.models.generate_content(model="gemini-2.5-flash", contents="The user's own call.")

    assert [asked.body for asked in server.requests[:2]] == [REQUEST.body] * 2
    assert server.requests[0].path == (
        "/v1beta1/projects/my-project/locations/europe-west4/publishers/google/models/gemini-2.5-flash:generateContent"
    )
    assert server.requests[0].headers["authorization"] == "Bearer ya29.test"
    assert "The user's own call." in server.requests[2].body.decode()
    assert len(server.requests) == 3


async def test_a_users_client_streams_in_an_event_loop(vertex: tuple[Server, genai.Client]) -> None:
    server, client = vertex
    connection = provider.connect(Access(client=client))
    response = await connection.open(WireRequest(path=f"{PATH}:streamGenerateContent?alt=sse", body=b"{}"))
    assert b"".join([chunk async for chunk in response.chunks()]) == ANSWER
    await connection.aclose()

    assert server.requests[0].path.endswith("/models/gemini-2.5-flash:streamGenerateContent?alt=sse")
    assert len(server.requests) == 1


def test_a_client_of_the_gemini_api_is_asked_for_the_same_version(monkeypatch: pytest.MonkeyPatch) -> None:
    """The SDK's own default reads no JSON schemas of parameters."""
    with Server([head(), ANSWER]) as server:
        client = genai.Client(api_key="k-mine", http_options=sabir_google.http_options(base_url=server.url))
        llm = sabir.adapter("google:gemini-2.5-flash", client=client)
        assert llm.complete_sync("Hello").text == "Hi."

    assert (server.requests[0].path, server.requests[0].headers["x-goog-api-key"]) == (REQUEST.path, "k-mine")


def test_a_users_client_in_many_threads_mixes_nothing_up(vertex: tuple[Server, genai.Client]) -> None:
    server, client = vertex
    connection = provider.connect(Access(client=client))

    def send(number: int) -> None:
        if number % 2:
            client.models.generate_content(model=f"m{number}", contents=f"own {number}")
        else:
            path = f"/v1beta/models/m{number}:generateContent"
            connection.open_sync(WireRequest(path, b"ready %d" % number)).close()

    threads = [threading.Thread(target=send, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)

    assert len(server.requests) == 8
    for asked in server.requests:
        number = asked.path.partition("/models/m")[2][0]
        assert (f"own {number}" if int(number) % 2 else f"ready {number}") in asked.body.decode()
        assert not any("sabir" in name for name in asked.headers)


async def test_a_client_that_does_not_send_through_sabir_is_refused_before_anything_is_sent() -> None:
    """The SDK lets nobody change the HTTP client of a client that is made; the error says how to make one."""
    with Server([head(), ANSWER]) as server:
        client = genai.Client(api_key="k-secret", http_options=HttpOptions(base_url=server.url))
        connection = provider.connect(Access(client=client))
        with pytest.raises(SettingsInvalid, match=r"sabir_google.http_options\(\)") as raised:
            connection.open_sync(REQUEST)
        with pytest.raises(SettingsInvalid, match=r"sabir_google.http_options\(\)"):
            await connection.open(REQUEST)
        await client.aio.aclose()
        client.close()

    assert server.requests == []
    assert "secret" not in str(raised.value)


def test_the_methods_of_one_model_do_not_mix() -> None:
    methods = ["generateContent", "streamGenerateContent?alt=sse", "countTokens"] * 2
    with Server([whole(b"{}")], keeps_alive=True) as server:
        connection = provider.connect(access(server))
        for method in methods:
            connection.open_sync(WireRequest(path=f"{PATH}:{method}", body=method.encode())).close()
        connection.close()

    assert [(asked.path, asked.body) for asked in server.requests] == [
        (f"{PATH}:{method}", method.encode()) for method in methods
    ]


def test_the_endpoint_of_a_client_is_what_it_is_a_client_of(vertex: tuple[Server, genai.Client]) -> None:
    """The SDK does not tell a client's address; Vertex AI and the Gemini API read none of each other's signatures."""
    _, client = vertex

    assert provider.endpoint(Access(client=client)) == "https://aiplatform.googleapis.com"
    assert provider.endpoint(Access(client=client, base_url="https://mine.example")) == "https://mine.example"
    mine = genai.Client(api_key="k", http_options=sabir_google.http_options())
    assert provider.endpoint(Access(client=mine)) == "https://generativelanguage.googleapis.com"
