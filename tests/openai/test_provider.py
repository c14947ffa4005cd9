"""The provider carries bytes: through the real SDK, to a real server on a loopback port."""

import asyncio
import gzip
import json
import subprocess
import sys
import threading
from collections.abc import Iterator

import httpx2
import openai
import pytest
from sabir.contracts import Access, Provider, WireRequest
from sabir.errors import (
    CallTimedOut,
    ConnectionFailed,
    CredentialsMissing,
    InvalidRequest,
    ResponseInvalid,
    SettingsInvalid,
)
from sabir_openai.plugin import openai as provider

from tests.openai.loopback import PATIENCE, Server, head

REQUEST = WireRequest(path="/chat/completions", body=b'{"model":"m" ,"messages":[]}')


@pytest.fixture(autouse=True)
def bare_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No variable of the machine decides a test."""
    for name in ("OPENAI_API_KEY", "OPENAI_ADMIN_KEY", "OPENAI_BASE_URL", "OPENAI_ORG_ID", "OPENAI_CUSTOM_HEADERS"):
        monkeypatch.delenv(name, raising=False)


def access(server: Server, key: str = "sk-test") -> Access:
    return Access(api_key=key, base_url=f"{server.url}/v1")


@pytest.fixture
def chunked() -> Iterator[tuple[Server, threading.Event]]:
    """A server that sends one event, waits for the test, and sends another."""
    release = threading.Event()
    with Server([head(kind="text/event-stream"), b"data: one\n\n", release, b"data: two\n\n"]) as server:
        yield server, release
        release.set()


def test_it_is_a_provider() -> None:
    """The contract that core checks."""
    assert isinstance(provider, Provider)
    assert provider.dialects == ("responses", "chat")
    assert provider.key_variables == ("OPENAI_API_KEY", "OPENAI_ADMIN_KEY")


def test_the_very_bytes_are_sent_to_the_path_below_the_endpoint() -> None:
    """What was rendered is what is sent, through the SDK's own client."""
    with Server([head(x_request_id="req_1"), b'{"ok":true}']) as server:
        connection = provider.connect(access(server))
        response = connection.open_sync(REQUEST)
        body = b"".join(response.chunks())
        response.close()
        connection.close()
        asked = server.asked[0]

    assert (asked.method, asked.path, asked.body) == ("POST", "/v1/chat/completions", REQUEST.body)
    assert asked.headers["authorization"] == "Bearer sk-test"
    assert asked.headers["content-type"] == "application/json"
    assert asked.headers["user-agent"].startswith("OpenAI/Python")
    assert (response.status, response.headers["x-request-id"], body) == (200, "req_1", b'{"ok":true}')


def test_headers_come_before_the_body_and_chunks_as_they_are_sent(chunked: tuple[Server, threading.Event]) -> None:
    """The first event is here while the server still holds the second back."""
    server, release = chunked
    connection = provider.connect(access(server))
    response = connection.open_sync(REQUEST)
    chunks = response.chunks()
    first = next(chunks)
    release.set()
    rest = b"".join(chunks)
    connection.close()

    assert (first, rest) == (b"data: one\n\n", b"data: two\n\n")


async def test_headers_come_before_the_body_in_an_event_loop(chunked: tuple[Server, threading.Event]) -> None:
    """The same of the async client."""
    server, release = chunked
    connection = provider.connect(access(server))
    response = await connection.open(REQUEST)
    chunks = response.chunks()
    first = await anext(chunks)
    release.set()
    rest = b"".join([chunk async for chunk in chunks])
    await connection.aclose()

    assert (first, rest) == (b"data: one\n\n", b"data: two\n\n")
    assert server.asked[0].headers["user-agent"].startswith("AsyncOpenAI/Python")


def test_closing_an_answer_early_hangs_up(chunked: tuple[Server, threading.Event]) -> None:
    """Leaving a stream costs no more tokens."""
    server, _ = chunked
    connection = provider.connect(access(server))
    response = connection.open_sync(REQUEST)
    next(response.chunks())
    response.close()
    response.close()

    assert server.closed.wait(PATIENCE)
    connection.close()


async def test_cancelling_a_call_hangs_up(chunked: tuple[Server, threading.Event]) -> None:
    """In asyncio a cancelled task closes its connection, though nobody called close."""
    server, _ = chunked
    connection = provider.connect(access(server))
    began = asyncio.Event()

    async def read() -> None:
        response = await connection.open(REQUEST)
        async for _ in response.chunks():
            began.set()

    task = asyncio.create_task(read())
    await began.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert await asyncio.to_thread(server.closed.wait, PATIENCE)
    await connection.aclose()


async def test_cancelling_before_the_headers_hangs_up() -> None:
    """A call that was not answered at all is given up as well."""
    release = threading.Event()
    with Server([release]) as server:
        connection = provider.connect(access(server))
        task = asyncio.create_task(connection.open(REQUEST))
        while not server.asked:
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

        assert await asyncio.to_thread(server.closed.wait, PATIENCE)
        await connection.aclose()
        release.set()


@pytest.mark.parametrize("status", [400, 401, 404, 409, 429, 500, 503])
def test_a_failure_is_a_status_with_its_body_and_is_sent_once(status: int) -> None:
    """Retries are core's: the SDK, which would repeat 409, 429 and 5xx, does not."""
    with Server([head(status, retry_after="0"), b'{"error":{"message":"no"}}']) as server:
        connection = provider.connect(access(server))
        response = connection.open_sync(REQUEST)
        body = b"".join(response.chunks())
        response.close()
        connection.close()

        assert (response.status, body, len(server.asked)) == (status, b'{"error":{"message":"no"}}', 1)


async def test_a_failure_is_a_status_with_its_body_in_an_event_loop() -> None:
    """The same of the async client."""
    with Server([head(500), b"<html>"]) as server:
        connection = provider.connect(access(server))
        response = await connection.open(REQUEST)
        body = b"".join([chunk async for chunk in response.chunks()])
        await connection.aclose()

    assert (response.status, body, len(server.asked)) == (500, b"<html>", 1)


def test_a_compressed_body_is_decompressed() -> None:
    """Chunks are the body's own bytes."""
    with Server([head(content_encoding="gzip"), gzip.compress(b'{"ok":true}')]) as server:
        connection = provider.connect(access(server))
        body = b"".join(connection.open_sync(REQUEST).chunks())
        connection.close()

    assert body == b'{"ok":true}'


def test_further_headers_and_a_timeout_go_with_the_request() -> None:
    """`extra_headers` verbatim; `timeout` in seconds, which ends a call that stalls."""
    release = threading.Event()
    with Server([release]) as server:
        connection = provider.connect(access(server))
        request = WireRequest(path="/x", body=b"{}", headers={"X-Trace": "7"}, timeout=0.2)
        with pytest.raises(openai.APITimeoutError) as raised:
            connection.open_sync(request)
        connection.close()
        release.set()

    assert server.asked[0].headers["x-trace"] == "7"
    assert isinstance(connection.translate(raised.value), CallTimedOut)


def test_what_breaks_off_in_the_middle_is_translated() -> None:
    """A connection that drops while the body is read raises httpx2's own errors."""
    with Server([head(content_length="100"), b'{"half":']) as server:
        connection = provider.connect(access(server))
        response = connection.open_sync(REQUEST)
        with pytest.raises(httpx2.RemoteProtocolError) as raised:
            list(response.chunks())
        response.close()
        connection.close()

    assert isinstance(connection.translate(raised.value), ConnectionFailed)


def test_an_endpoint_that_cannot_be_reached_is_a_failed_connection() -> None:
    """A refused connection may pass, so that it is retryable."""
    connection = provider.connect(Access(api_key="k", base_url="http://127.0.0.1:9"))
    with pytest.raises(openai.APIConnectionError) as raised:
        connection.open_sync(REQUEST)
    connection.close()

    assert type(connection.translate(raised.value)) is ConnectionFailed


@pytest.mark.parametrize("base_url", ["ftp://127.0.0.1", "localhost:8000/v1", "http://[::1", "http://"])
def test_an_endpoint_that_is_no_url_is_refused_at_once(base_url: str) -> None:
    """Before a client is made; the error names the setting."""
    with pytest.raises(SettingsInvalid, match=r"no http\(s\) URL; check base_url"):
        provider.connect(Access(api_key="k", base_url=base_url))


@pytest.mark.parametrize("value", ["hidden\nb", "hidden schön"])
def test_a_header_that_is_no_http_is_an_invalid_request(value: str) -> None:
    """Sending it again would not help, so that it is not retryable; its value may be secret and is not shown."""
    with Server([head(), b"{}"]) as server:
        connection = provider.connect(access(server))
        with pytest.raises((openai.APIConnectionError, UnicodeEncodeError)) as raised:
            connection.open_sync(WireRequest(path="/x", body=b"{}", headers={"X-Bad": value}))
        connection.close()

    translated = connection.translate(raised.value)
    assert type(translated) is InvalidRequest
    assert "hidden" not in str(translated)
    assert server.asked == []


def test_a_body_that_cannot_be_decompressed_is_an_invalid_response() -> None:
    """Law 10: any bytes end in one of the library's own errors."""
    with Server([head(content_encoding="gzip"), b"no gzip"]) as server:
        connection = provider.connect(access(server))
        response = connection.open_sync(REQUEST)
        with pytest.raises(httpx2.DecodingError) as raised:
            list(response.chunks())
        connection.close()

    assert isinstance(connection.translate(raised.value), ResponseInvalid)


def test_the_key_is_read_at_the_first_send_in_the_sdks_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """api_key=, then OPENAI_API_KEY, then OPENAI_ADMIN_KEY; none of them before the first send."""
    with Server([head(), b"{}"]) as server:
        connection = provider.connect(Access(base_url=server.url))
        monkeypatch.setenv("OPENAI_ADMIN_KEY", "sk-admin")
        connection.open_sync(REQUEST).close()
        monkeypatch.setenv("OPENAI_API_KEY", "sk-user")
        later = provider.connect(Access(base_url=server.url))
        later.open_sync(REQUEST).close()
        given = provider.connect(Access(base_url=server.url, api_key=lambda: "sk-given"))
        given.open_sync(REQUEST).close()
        for each in (connection, later, given):
            each.close()

    keys = [asked.headers["authorization"] for asked in server.asked]
    assert keys == ["Bearer sk-admin", "Bearer sk-user", "Bearer sk-given"]


async def test_a_callable_key_is_asked_once() -> None:
    """A vault is asked at the connection's first send, not at every call, nor for the other kind of client again."""
    asked = []
    with Server([head(), b"{}"]) as server:
        connection = provider.connect(Access(base_url=server.url, api_key=lambda: asked.append(1) or "sk-vault"))
        connection.open_sync(REQUEST).close()
        connection.open_sync(REQUEST).close()
        await (await connection.open(REQUEST)).aclose()
        await connection.aclose()

    assert asked == [1]


def test_a_missing_key_names_the_variables_and_the_argument() -> None:
    """The error says how to mend it, and that nothing was sent."""
    with pytest.raises(CredentialsMissing, match="OPENAI_API_KEY or OPENAI_ADMIN_KEY, or pass api_key="):
        provider.connect(Access()).open_sync(REQUEST)


@pytest.mark.parametrize("key", ["sk-secret\n", "sk secret", "sk-sécret"])
def test_a_key_that_no_header_can_hold_is_refused_without_showing_it(key: str) -> None:
    """A line break from a file is the usual cause; the key is in no message and no repr."""
    access = Access(api_key=key)
    with pytest.raises(CredentialsMissing) as raised:
        provider.connect(access).open_sync(REQUEST)

    assert "cret" not in str(raised.value) + repr(access)


def test_the_endpoint_is_known_without_a_client(monkeypatch: pytest.MonkeyPatch) -> None:
    """base_url=, then OPENAI_BASE_URL, then OpenAI's own; without a slash at the end."""
    assert provider.endpoint(Access()) == "https://api.openai.com/v1"
    monkeypatch.setenv("OPENAI_BASE_URL", "https://proxy.example/v1/")
    assert provider.endpoint(Access()) == "https://proxy.example/v1"
    assert provider.endpoint(Access(base_url="http://other/v1/")) == "http://other/v1"
    client = openai.OpenAI(api_key="k", base_url="http://mine/v1")
    assert provider.endpoint(Access(client=client)) == "http://mine/v1"
    client.close()


def test_an_endpoint_shows_no_secret() -> None:
    """It is stored in every message's origin: a password or a key in the URL stays out of it."""
    assert (
        provider.endpoint(Access(base_url="https://me:secret@proxy.example:8/v1?key=secret"))
        == "https://proxy.example:8/v1"
    )


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


@pytest.mark.parametrize("setting", ["api_key", "base_url"])
def test_an_empty_setting_is_refused(setting: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is a mistake, as of a variable that is not set; nothing else takes its place in silence."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-user")
    with pytest.raises(SettingsInvalid, match=rf"^openai has an empty {setting}; give a text, or leave it out$"):
        provider.connect(Access(**{setting: ""}))


def test_a_vault_that_gives_no_key_is_not_replaced_by_a_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    """The key that was asked for is missing; another one is not sent instead."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-user")
    with pytest.raises(CredentialsMissing):
        provider.connect(Access(api_key=lambda: "")).open_sync(REQUEST)


@pytest.mark.parametrize(
    "base_url", ["ftp://me:hidden@host/v1", "me:hidden@host", "ftp://host/v1?key=hidden", "ftp://me:p?#/hidden@host"]
)
def test_a_refused_endpoint_shows_no_secret(base_url: str) -> None:
    """Neither a password nor a query is in the error."""
    with pytest.raises(SettingsInvalid) as raised:
        provider.connect(Access(api_key="k", base_url=base_url))

    assert "hidden" not in str(raised.value)


def test_the_users_client_is_used_and_left_open() -> None:
    """Its endpoint, key and headers; closing the connection does not close it."""
    with Server([head(), b"{}"]) as server:
        client = openai.OpenAI(api_key="sk-mine", base_url=f"{server.url}/my/v1", default_headers={"X-Mine": "1"})
        connection = provider.connect(Access(client=client))
        connection.open_sync(REQUEST).close()
        connection.close()
        still_open = not client.is_closed()
        client.close()

    asked = server.asked[0]
    assert (asked.path, asked.headers["authorization"], asked.headers["x-mine"]) == (
        "/my/v1/chat/completions",
        "Bearer sk-mine",
        "1",
    )
    assert still_open


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


def test_each_event_loop_has_a_client_of_its_own() -> None:
    """A pooled connection belongs to its loop: the next asyncio.run must not take it up."""
    loops = [asyncio.new_event_loop(), asyncio.new_event_loop()]
    with Server([head(content_length="2"), b"{}"], keeps_alive=True) as server:
        connection = provider.connect(access(server))

        async def call() -> bytes:
            response = await connection.open(REQUEST)
            return b"".join([chunk async for chunk in response.chunks()])

        bodies = [loop.run_until_complete(call()) for loop in (*loops, *loops)]
        for loop in loops:
            loop.run_until_complete(connection.aclose())
            loop.close()

    assert bodies == [b"{}"] * 4


def test_one_connection_serves_many_threads() -> None:
    """One client, made once, however many ask for it at once."""
    with Server([head(), b"{}"]) as server:
        connection = provider.connect(access(server))
        statuses: list[int] = []

        def call() -> None:
            response = connection.open_sync(REQUEST)
            statuses.append(response.status)
            response.close()

        threads = [threading.Thread(target=call) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE)
        connection.close()

    assert statuses == [200] * 8


def test_no_sdk_is_imported_before_the_first_send() -> None:
    """Endpoint, quirks, models and both dialects come without it (law 6)."""
    code = """
import sys, json
from sabir.contracts import Access
from sabir_openai.plugin import openai, groq
for provider in (openai, groq):
    provider.endpoint(Access()), provider.quirks(Access()), provider.models(), provider.connect(Access())
    [provider.dialect(name) for name in provider.dialects]
print(json.dumps(sorted({"openai", "httpx2", "anyio"} & set(sys.modules))))
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert json.loads(found.stdout) == []
