"""The providers carry bytes: through the real SDKs, their own or the user's, to a server on a loopback port."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

import anthropic
import openai
import pytest
import sabir
import sabir_google
from google import genai
from sabir.contract.provider import Access, Provider, WireRequest
from sabir.errors import ResponseInvalid, SettingsInvalid
from sabir_testing.loopback import Server, head, whole

from tests.providers.wires import provider_of

ANSWER = b'{"candidates":[{"content":{"role":"model","parts":[{"text":"Hi."}]},"finishReason":"STOP"}]}'


@dataclass(frozen=True)
class Vendor:
    """A provider beside its SDK, whose typed call asks the same."""

    name: str
    dialects: tuple[str, ...]
    keys: tuple[str, ...]
    endpoint: str
    base: str
    """What stands behind a server's address."""
    path: str
    """Of a request, below the base."""
    body: bytes
    url_variable: str
    sdk: tuple[Any, Any]
    """Its waiting client and that of event loops; of Google, whose one client is both, none."""
    typed: Mapping[str, Any]

    @property
    def provider(self) -> Any:
        return provider_of(self.name)

    def request(self, **how: Any) -> WireRequest:
        return WireRequest(path=self.path, body=self.body, **how)

    def access(self, server: Server) -> Access:
        return Access(api_key="k-test", base_url=server.url + self.base)


ANTHROPIC = Vendor(
    name="anthropic",
    dialects=("messages",),
    keys=("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"),
    endpoint="https://api.anthropic.com",
    base="",
    path="/v1/messages",
    body=b'{"model":"m" ,"messages":[]}',
    url_variable="ANTHROPIC_BASE_URL",
    sdk=(anthropic.Anthropic, anthropic.AsyncAnthropic),
    typed={"model": "m", "messages": [], "max_tokens": 1},
)
GOOGLE = Vendor(
    name="google",
    dialects=("generate_content",),
    keys=("GOOGLE_API_KEY", "GEMINI_API_KEY"),
    endpoint="https://generativelanguage.googleapis.com",
    base="",
    path="/v1beta/models/gemini-2.5-flash:generateContent",
    body='{"contents" :[ "été" ]}'.encode(),
    url_variable="GOOGLE_GEMINI_BASE_URL",
    sdk=(None, None),
    typed={"model": "gemini-2.5-flash", "contents": "Hello"},
)
OPENAI = Vendor(
    name="openai",
    dialects=("responses", "chat"),
    keys=("OPENAI_API_KEY", "OPENAI_ADMIN_KEY"),
    endpoint="https://api.openai.com/v1",
    base="/v1",
    path="/chat/completions",
    body=b'{"model":"m" ,"messages":[]}',
    url_variable="OPENAI_BASE_URL",
    sdk=(openai.OpenAI, openai.AsyncOpenAI),
    typed={"model": "m", "messages": []},
)
VENDORS = (ANTHROPIC, GOOGLE, OPENAI)
every = pytest.mark.parametrize("vendor", VENDORS, ids=lambda vendor: vendor.name)
with_two_clients = pytest.mark.parametrize("vendor", [ANTHROPIC, OPENAI], ids=lambda vendor: vendor.name)


@every
def test_it_is_a_provider(vendor: Vendor) -> None:
    assert isinstance(vendor.provider, Provider)
    assert (vendor.provider.dialects, vendor.provider.credentials[0].variables) == (vendor.dialects, vendor.keys)
    assert vendor.provider.quirks(Access()) == frozenset()


@every
def test_the_endpoint_is_known_without_a_client(vendor: Vendor, monkeypatch: pytest.MonkeyPatch) -> None:
    assert vendor.provider.endpoint(Access()) == vendor.endpoint
    monkeypatch.setenv(vendor.url_variable, "https://proxy.example/x/")
    assert vendor.provider.endpoint(Access()) == "https://proxy.example/x"
    assert vendor.provider.endpoint(Access(base_url="https://me:secret@x.org:8/?key=secret")) == "https://x.org:8"
    for make in filter(None, vendor.sdk[:1]):
        with make(api_key="k", base_url="http://mine/v1") as client:
            assert vendor.provider.endpoint(Access(client=client)) == "http://mine/v1"


QUIRKS = [
    ("anthropic", "https://eu.api.anthropic.com", set()),
    ("anthropic", "http://localhost:8000", {"compatible"}),
    ("anthropic", "https://notanthropic.com", {"compatible"}),
    ("openai", "https://me.openai.azure.com/openai/v1", set()),
    ("openai", "http://localhost:8000/v1", {"max_tokens", "system_role"}),
    ("openai", "https://notopenai.com/v1", {"max_tokens", "system_role"}),
]


@pytest.mark.parametrize(("name", "url", "quirks"), QUIRKS)
def test_quirks_follow_the_endpoint(name: str, url: str, quirks: set[str]) -> None:
    assert provider_of(name).quirks(Access(base_url=url)) == quirks


@pytest.mark.parametrize("header", ["Authorization", "authorization", "X-Api-Key"])
@with_two_clients
def test_the_vendors_environment_does_not_follow_a_base_url(
    vendor: Vendor, header: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_ORG_ID", "org-1")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "proj-1")
    custom = f"{header}: Bearer sk-custom\nX-Secret: s\nanthropic-workspace-id: w\nno"
    monkeypatch.setenv(f"{vendor.name.upper()}_CUSTOM_HEADERS", custom)
    with Server([head(), b"{}"]) as server:
        connection = vendor.provider.connect(vendor.access(server))
        connection.open_sync(vendor.request()).close()
        connection.close()

    headers = server.requests[0].headers
    assert headers["authorization"] == "Bearer k-test"
    foreign = {"x-secret", "x-api-key", "anthropic-workspace-id", "openai-organization", "openai-project"}
    assert foreign.isdisjoint(headers)


@asynccontextmanager
async def clients(vendor: Vendor, url: str, **how: Any) -> AsyncIterator[tuple[Any, Any]]:
    """The SDK's own clients, waiting and of the event loop, closed at the end."""
    if vendor is GOOGLE:
        options = sabir_google.http_options(base_url=url, **how)
        client = genai.Client(api_key="k-test", http_options=options)
        with options.httpx_client:
            async with options.httpx_async_client:
                yield client, client
        return
    kind, later_kind = vendor.sdk
    with kind(api_key="k-test", base_url=url + vendor.base) as waiting:
        async with later_kind(api_key="k-test", base_url=url + vendor.base) as later:
            yield waiting, later


async def ask(vendor: Vendor, client: Any, later: Any, **timeout: Any) -> None:
    asks = {**vendor.typed, **timeout}
    if vendor is GOOGLE:
        client.models.generate_content(**vendor.typed)
        await later.aio.models.generate_content(**vendor.typed)
    elif vendor is ANTHROPIC:
        client.messages.create(**asks)
        await later.messages.create(**asks)
    else:
        client.chat.completions.create(**asks)
        await later.chat.completions.create(**asks)


@pytest.mark.parametrize("timeout", [None, 7.0])
@every
async def test_every_request_has_the_headers_of_the_sdks_typed_call(vendor: Vendor, timeout: float | None) -> None:
    asked_for: Any = {} if timeout is None else {"timeout": timeout}
    how = {"api_version": "v1beta", "timeout": timeout and int(timeout * 1000)} if vendor is GOOGLE else {}
    free = {"content-length"} | ({"x-stainless-timeout"} if vendor is ANTHROPIC and timeout is None else set())
    request = replace(vendor.request(), timeout=timeout)
    with Server([whole(ANSWER)], keeps_alive=True) as server:
        connection = vendor.provider.connect(vendor.access(server))
        async with clients(vendor, server.url, **how) as (client, later):
            await ask(vendor, client, later, **asked_for)
            for _ in range(2):
                connection.open_sync(request).close()
                await (await connection.open(request)).aclose()
        await connection.aclose()

    waiting, awaited, *ours = [list({**asked.headers, **dict.fromkeys(free)}.items()) for asked in server.requests]
    assert ours == [waiting, awaited] * 2
    assert {asked.path for asked in server.requests} == {vendor.base + vendor.path}
    assert [asked.body for asked in server.requests[2:]] == [vendor.body] * 4


@with_two_clients
def test_the_users_client_sends_with_its_own_key_and_headers_and_once(vendor: Vendor) -> None:
    with Server([head(529, retry_after="0"), b"{}"]) as server:
        how: Any = {"base_url": f"{server.url}/my{vendor.base}", "default_headers": {"X-Mine": "1"}, "max_retries": 3}
        with vendor.sdk[0](api_key="sk-mine", **how) as client:
            answer = vendor.provider.connect(Access(client=client)).open_sync(vendor.request())

    (asked,) = server.requests
    sent = (answer.status, asked.path, asked.headers["authorization"], asked.headers["x-mine"])
    assert sent == (529, f"/my{vendor.base}{vendor.path}", "Bearer sk-mine", "1")


@every
async def test_the_users_client_follows_no_redirect(vendor: Vendor) -> None:
    with Server([head(), ANSWER]) as there, Server([head(307, location=f"{there.url}/v1")]) as here:
        async with clients(vendor, here.url) as (client, later):
            if vendor is GOOGLE:
                options = client._api_client._http_options
                options.httpx_client.follow_redirects = options.httpx_async_client.follow_redirects = True
            waiting = vendor.provider.connect(Access(client=client)).open_sync(vendor.request())
            awaited = await vendor.provider.connect(Access(client=later)).open(vendor.request())
            waiting.close()
            await awaited.aclose()

    assert (waiting.status, awaited.status, len(here.requests), there.requests) == (307, 307, 2, [])


def test_the_error_of_a_redirect_names_the_host() -> None:
    with Server([head(307, location="https://elsewhere.example/v1")]) as server:
        with openai.OpenAI(api_key="k", base_url=server.url) as client:
            with pytest.raises(ResponseInvalid, match=r"elsewhere\.example") as raised:
                sabir.adapter("openai:gpt-5", client=client).complete_sync("Hi")

    assert (raised.value.status, raised.value.retryable, len(server.requests)) == (307, False, 1)


@with_two_clients
async def test_a_client_of_the_other_kind_is_refused_by_name(vendor: Vendor) -> None:
    """A sync client cannot be awaited; the error says which to pass."""
    kind, later_kind = vendor.sdk
    with kind(api_key="k") as client, pytest.raises(SettingsInvalid, match=f"async calls an {later_kind.__name__}"):
        await vendor.provider.connect(Access(client=client)).open(vendor.request())
    async with later_kind(api_key="k") as later:
        with pytest.raises(SettingsInvalid, match=f"sync calls need an {kind.__name__} client"):
            vendor.provider.connect(Access(client=later)).open_sync(vendor.request())
    (other,) = (each for each in (ANTHROPIC, OPENAI) if each is not vendor)
    with (
        other.sdk[0](api_key="k") as client,
        pytest.raises(SettingsInvalid, match=f"sync calls need an {kind.__name__} client"),
    ):
        vendor.provider.connect(Access(client=client)).open_sync(vendor.request())


def test_the_version_of_anthropics_wire_is_a_header() -> None:
    vendor = {"anthropic": {"betas": ["b-1", "b-2"], "version": "2023-06-01"}}
    answer = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": [], "usage": {}}
    with Server([whole(json.dumps({**answer, "stop_reason": "end_turn"}).encode())], keeps_alive=True) as server:
        with sabir.adapter("anthropic:claude-haiku-4-5", base_url=server.url, api_key="k") as llm:
            for settings in (sabir.Settings(max_output_tokens=9), sabir.Settings(max_output_tokens=9, vendor=vendor)):
                assert llm.complete_sync("Hi", settings=settings).finish_reason == "stop"

    headers = [asked.headers for asked in server.requests]
    assert [each["anthropic-version"] for each in headers] == ["2026-10-21", "2023-06-01"]
    assert [each.get("anthropic-beta") for each in headers] == [None, "b-1,b-2"]
