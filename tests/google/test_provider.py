"""The provider carries bytes: through the real SDK, to a real server on a loopback port."""

import asyncio
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
from sabir.contract.protocols import Access, Provider, WireRequest
from sabir.errors import (
    RateLimited,
    ResponseInvalid,
    SettingsInvalid,
)
from sabir_google.plugin import google as provider
from sabir_testing.loopback import PATIENCE, Server, head, whole

PATH = "/v1beta/models/gemini-2.5-flash"
REQUEST = WireRequest(path=f"{PATH}:generateContent", body='{"contents" :[ "été" ]}'.encode())
ANSWER = json.dumps(
    {"candidates": [{"content": {"role": "model", "parts": [{"text": "Hi."}]}, "finishReason": "STOP"}]}
).encode()
VARIABLES = (
    "GOOGLE_API_KEY", "GEMINI_API_KEY", "GOOGLE_GEMINI_BASE_URL", "GOOGLE_VERTEX_BASE_URL", "GOOGLE_GENAI_USE_VERTEXAI",
    "GOOGLE_GENAI_USE_ENTERPRISE", "GOOGLE_GENAI_API_VERSION", "GOOGLE_CLOUD_PROJECT", "GOOGLE_CLOUD_LOCATION",
    "GOOGLE_GENAI_HTTP_CLIENT",
)  # fmt: skip


@pytest.fixture(autouse=True)
def bare_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No variable of the machine decides a test."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


def access(server: Server, key: str = "k-test") -> Access:
    return Access(api_key=key, base_url=server.url)


def test_it_is_a_provider() -> None:
    """The contract that core checks."""
    assert isinstance(provider, Provider)
    assert provider.dialects == ("generate_content",)
    assert provider.key_variables == ("GOOGLE_API_KEY", "GEMINI_API_KEY")
    assert provider.quirks(Access()) == frozenset()


def test_the_sdk_adds_its_headers_and_never_sees_the_answer() -> None:
    """The length is that of the ready bytes; the timeout is told in whole seconds, where the SDK counts thousandths."""
    with Server([head(), b'{"ok" : true}']) as server:
        connection = provider.connect(access(server))
        response = connection.open_sync(replace(REQUEST, timeout=0.9))
        body = b"".join(response.chunks())
        connection.close()
        (asked,) = server.asked

    assert asked.headers["x-goog-api-key"] == "k-test"
    assert asked.headers["content-length"] == str(len(REQUEST.body))
    assert asked.headers["user-agent"].startswith("google-genai-sdk/")
    assert asked.headers["x-server-timeout"] == "1"
    assert body == b'{"ok" : true}'


@pytest.mark.parametrize("method", ["streamGenerateContent?alt=sse", "countTokens"])
def test_every_method_is_reached_by_its_path(method: str) -> None:
    """Streams and counts go the way that whole replies go."""
    with Server([head(), b"{}"]) as server:
        connection = provider.connect(access(server))
        connection.open_sync(WireRequest(path=f"{PATH}:{method}", body=b"{}", streaming=True)).close()
        connection.close()

    assert server.asked[0].path == f"{PATH}:{method}"


def test_a_tuned_models_path_is_kept() -> None:
    """Its folder, and what is quoted in its name."""
    with Server([head(), b"{}"]) as server:
        connection = provider.connect(access(server))
        connection.open_sync(WireRequest(path="/v1beta/tunedModels/my%20own:generateContent", body=b"{}")).close()
        connection.close()

    assert server.asked[0].path == "/v1beta/tunedModels/my%20own:generateContent"


@pytest.mark.parametrize("model", ["x?y=1", "a&b", "x#y", "../x", "a:b", "maker/x", "tunedModels/a b"])
def test_a_models_name_never_leads_elsewhere(model: str) -> None:
    """What was rendered is where it is sent; the SDK would refuse some of these with a ValueError if they were bare."""
    with (
        Server([head(), ANSWER]) as server,
        sabir.adapter(f"google:{model}", api_key="k", base_url=server.url) as llm,
    ):
        assert llm.complete_sync("Hello").text == "Hi."
        assert server.asked[0].path == llm.render("Hello").path


def test_a_reply_that_wants_to_be_continued_is_not_by_the_sdk() -> None:
    """Its default makes several requests of one call; the reply says how it ended."""
    told = json.loads(ANSWER)
    told["candidates"][0] |= {"finishReason": "CONTINUATION", "continuationToken": "abc"}
    with (
        Server([head(), json.dumps(told).encode()]) as server,
        sabir.adapter("google:gemini-2.5-flash", api_key="k", base_url=server.url) as llm,
    ):
        reply = llm.complete_sync("Hello")

    assert (reply.finish_reason, len(server.asked)) == ("length", 1)


def test_calls_in_many_threads_do_not_mix() -> None:
    """What a call carries belongs to its thread."""
    with Server([head(), b"{}"]) as server:
        connection = provider.connect(access(server))

        def send(number: int) -> None:
            connection.open_sync(
                WireRequest(path=f"/v1beta/models/m{number}:generateContent", body=b"%d" % number)
            ).close()

        threads = [threading.Thread(target=send, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE)
        connection.close()

    assert sorted((each.path[16:].split(":")[0], each.body.decode()) for each in server.asked) == [
        (str(number), str(number)) for number in range(8)
    ]


async def test_calls_in_many_tasks_do_not_mix() -> None:
    """What a call carries belongs to its task."""
    with Server([head(), b"{}"]) as server:
        connection = provider.connect(access(server))

        async def send(number: int) -> None:
            request = WireRequest(path=f"/v1beta/models/m{number}:generateContent", body=b"%d" % number)
            await (await connection.open(request)).aclose()

        await asyncio.gather(*(send(number) for number in range(8)))
        await connection.aclose()

    assert sorted((each.path[16:].split(":")[0], each.body.decode()) for each in server.asked) == [
        (str(number), str(number)) for number in range(8)
    ]


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


def test_the_endpoint_is_known_without_a_client(monkeypatch: pytest.MonkeyPatch) -> None:
    """base_url=, then GOOGLE_GEMINI_BASE_URL, then the Gemini API's own; no secret of the URL is shown."""
    assert provider.endpoint(Access()) == "https://generativelanguage.googleapis.com"
    monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", "https://proxy.example/")
    assert provider.endpoint(Access()) == "https://proxy.example"
    assert provider.endpoint(Access(base_url="https://me:secret@x.org/a?key=secret")) == "https://x.org/a"


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
    assert (server.asked[0].path, server.asked[0].headers["x-goog-api-key"]) == (REQUEST.path, "k-test")


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
    """Its URL, its project, its token; nothing but the one request is sent, and the client is not closed."""
    server, client = vertex
    connection = provider.connect(Access(client=client))
    for _ in range(2):
        connection.open_sync(REQUEST).close()
    connection.close()
    client.models.generate_content(model="gemini-2.5-flash", contents="The user's own call.")

    assert [asked.body for asked in server.asked[:2]] == [REQUEST.body] * 2
    assert server.asked[0].path == (
        "/v1beta1/projects/my-project/locations/europe-west4/publishers/google/models/gemini-2.5-flash:generateContent"
    )
    assert server.asked[0].headers["authorization"] == "Bearer ya29.test"
    assert "The user's own call." in server.asked[2].body.decode()
    assert len(server.asked) == 3


async def test_a_users_client_streams_in_an_event_loop(vertex: tuple[Server, genai.Client]) -> None:
    """The method is the request's."""
    server, client = vertex
    connection = provider.connect(Access(client=client))
    response = await connection.open(WireRequest(path=f"{PATH}:streamGenerateContent?alt=sse", body=b"{}"))
    assert b"".join([chunk async for chunk in response.chunks()]) == ANSWER
    await connection.aclose()

    assert server.asked[0].path.endswith("/models/gemini-2.5-flash:streamGenerateContent?alt=sse")
    assert len(server.asked) == 1


def test_a_client_of_the_gemini_api_is_asked_for_the_same_version(monkeypatch: pytest.MonkeyPatch) -> None:
    """The SDK's own default reads no JSON schemas of parameters."""
    with Server([head(), ANSWER]) as server:
        client = genai.Client(api_key="k-mine", http_options=sabir_google.http_options(base_url=server.url))
        llm = sabir.adapter("google:gemini-2.5-flash", client=client)
        assert llm.complete_sync("Hello").text == "Hi."

    assert (server.asked[0].path, server.asked[0].headers["x-goog-api-key"]) == (REQUEST.path, "k-mine")


def test_a_users_client_in_many_threads_mixes_nothing_up(vertex: tuple[Server, genai.Client]) -> None:
    """Neither sabir's calls with each other, nor with the user's own; what tells them apart is never sent."""
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

    assert len(server.asked) == 8
    for asked in server.asked:
        number = asked.path.partition("/models/m")[2][0]
        assert (f"own {number}" if int(number) % 2 else f"ready {number}") in asked.body.decode()
        assert not any("sabir" in name for name in asked.headers)


async def test_a_users_client_follows_no_redirect() -> None:
    """Though it was told to: the conversation is for its own endpoint."""
    with Server([head(), ANSWER]) as there, Server([head(307, location=f"{there.url}/v1")]) as here:
        options = sabir_google.http_options(base_url=here.url)
        options.httpx_client.follow_redirects = options.httpx_async_client.follow_redirects = True
        connection = provider.connect(Access(client=genai.Client(api_key="k", http_options=options)))
        waiting, awaited = connection.open_sync(REQUEST), await connection.open(REQUEST)
        waiting.close()
        await awaited.aclose()

    assert (waiting.status, awaited.status, len(here.asked), there.asked) == (307, 307, 2, [])


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

    assert server.asked == []
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize("timeout", [None, 7.0])
async def test_every_request_has_the_headers_of_the_sdks_typed_call(timeout: float | None) -> None:
    """In their order, whichever client sends, and whether the SDK was asked anew or not; but for the length."""
    options: Any = {"timeout": timeout and int(timeout * 1000), "api_version": "v1beta"}
    asks: Any = {"model": "gemini-2.5-flash", "contents": "Hello"}
    request = replace(REQUEST, timeout=timeout)
    with Server([whole(ANSWER)], keeps_alive=True) as server:
        options = sabir_google.http_options(base_url=server.url, **options)
        connection = provider.connect(access(server))
        client = genai.Client(api_key="k-test", http_options=options)
        client.models.generate_content(**asks)
        await client.aio.models.generate_content(**asks)
        for _ in range(2):
            connection.open_sync(request).close()
            await (await connection.open(request)).aclose()
        await connection.aclose()
        options.httpx_client.close()
        await options.httpx_async_client.aclose()

    waiting, awaited, *ours = [list({**asked.headers, "content-length": ""}.items()) for asked in server.asked]
    assert ours == [waiting, awaited] * 2
    assert {asked.path for asked in server.asked} == {REQUEST.path}


def test_the_methods_of_one_model_do_not_mix() -> None:
    """Each is asked for under its own name, and with its own bytes, again and again."""
    methods = ["generateContent", "streamGenerateContent?alt=sse", "countTokens"] * 2
    with Server([whole(b"{}")], keeps_alive=True) as server:
        connection = provider.connect(access(server))
        for method in methods:
            connection.open_sync(WireRequest(path=f"{PATH}:{method}", body=method.encode())).close()
        connection.close()

    assert [(asked.path, asked.body) for asked in server.asked] == [
        (f"{PATH}:{method}", method.encode()) for method in methods
    ]


def test_the_endpoint_of_a_client_is_what_it_is_a_client_of(vertex: tuple[Server, genai.Client]) -> None:
    """The SDK does not tell a client's address; Vertex AI and the Gemini API read none of each other's signatures."""
    _, client = vertex

    assert provider.endpoint(Access(client=client)) == "https://aiplatform.googleapis.com"
    assert provider.endpoint(Access(client=client, base_url="https://mine.example")) == "https://mine.example"
    mine = genai.Client(api_key="k", http_options=sabir_google.http_options())
    assert provider.endpoint(Access(client=mine)) == "https://generativelanguage.googleapis.com"


def test_a_call_and_its_errors_from_end_to_end() -> None:
    """The adapter, the dialect and the connection together; the key is in no error."""
    error = {"error": {"code": 429, "message": "slow", "status": "RESOURCE_EXHAUSTED"}}
    for script, expected in (
        ([head(429), json.dumps(error).encode()], RateLimited),
        ([head(kind="text/html"), b"<html>"], ResponseInvalid),
    ):
        with (
            Server(script) as server,
            sabir.adapter(
                "google:gemini-2.5-flash", api_key="k-secret", base_url=server.url, settings=sabir.Settings(retries=0)
            ) as llm,
        ):
            with pytest.raises(expected) as raised:
                llm.complete_sync("Hello")
            assert "k-secret" not in f"{raised.value!r}{llm!r}"


async def test_a_stream_from_end_to_end() -> None:
    """Text as it comes, and the whole reply in the end."""
    event = b"data: " + ANSWER + b"\r\n\r\n"
    with Server(
        [head(kind="text/event-stream"), event.replace(b'"finishReason": "STOP"', b'"index": 0'), event]
    ) as server:
        async with sabir.adapter("google:gemini-2.5-flash", api_key="k", base_url=server.url) as llm:
            async with llm.stream("Hello") as stream:
                assert [text async for text in stream.text] == ["Hi.", "Hi."]
                assert (await stream.reply()).text == "Hi.Hi."

    assert server.asked[0].path == f"{PATH}:streamGenerateContent?alt=sse"


def test_nothing_of_the_sdk_is_imported_before_the_first_send() -> None:
    """Discovery, rendering and decoding cost no import of half a second."""
    code = (
        "import sys, sabir\n"
        "llm = sabir.adapter('google:gemini-2.5-flash', api_key='k')\n"
        "llm.render('Hello')\n"
        f"sabir.dialect('google.generate_content').decode({ANSWER!r})\n"
        "print([name for name in ('google.genai', 'httpx2', 'google.auth') if name in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"
