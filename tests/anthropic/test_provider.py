"""The provider carries bytes: through the real SDK, to a real server on a loopback port."""

import json
import subprocess
import sys
from dataclasses import replace
from typing import Any

import anthropic
import pytest
import sabir
from sabir.contract.protocols import Access, Provider, WireRequest
from sabir.errors import (
    Overloaded,
    SettingsInvalid,
    StreamBroken,
)
from sabir_anthropic.plugin import anthropic as provider
from sabir_testing.loopback import Server, head, whole

from tests.anthropic.test_decode import message
from tests.anthropic.test_stream import START, STOP, begun, delta, done, ended, framed

REQUEST = WireRequest(path="/v1/messages", body=b'{"model":"m" ,"messages":[]}')
ANSWER = json.dumps(message({"type": "text", "text": "Hello."})).encode()
WIRE = [START, begun(0, {"type": "text", "text": ""}), delta(0, "text", text="Hello."), done(0), ended(), STOP]
SHORT = sabir.Settings(max_output_tokens=1024)
"""An answer that may come at once."""
VARIABLES = (
    "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL", "ANTHROPIC_CUSTOM_HEADERS", "ANTHROPIC_PROFILE",
    "AWS_BEARER_TOKEN_BEDROCK",
)  # fmt: skip


@pytest.fixture(autouse=True)
def bare_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No variable of the machine decides a test."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


def access(server: Server, key: str = "sk-ant-test") -> Access:
    return Access(api_key=key, base_url=server.url)


def streamed(wire: list[Any]) -> bytes:
    return "".join(f"event: {each['type']}\ndata: {json.dumps(each)}\n\n" for each in wire).encode()


def test_it_is_a_provider() -> None:
    """The contract that core checks; variables in the SDK's own order."""
    assert isinstance(provider, Provider)
    assert provider.dialects == ("messages",)
    assert provider.key_variables == ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN")


async def test_the_sdks_own_clients_send_with_the_key_and_its_version() -> None:
    """The vendor knows its SDK's requests by their user agent, and reads them by the version."""
    with Server([head(), b"{}"]) as server:
        connection = provider.connect(access(server))
        connection.open_sync(REQUEST).close()
        await (await connection.open(REQUEST)).aclose()
        await connection.aclose()
    waiting, awaited = (asked.headers for asked in server.asked)

    assert waiting["authorization"] == awaited["authorization"] == "Bearer sk-ant-test"
    assert waiting["anthropic-version"] == awaited["anthropic-version"] == "2026-10-21"
    assert waiting["user-agent"].startswith("Anthropic/Python")
    assert awaited["user-agent"].startswith("AsyncAnthropic/Python")


def test_the_endpoint_is_known_without_a_client(monkeypatch: pytest.MonkeyPatch) -> None:
    """base_url=, then ANTHROPIC_BASE_URL, then Anthropic's own; without a slash at the end, and without secrets."""
    assert provider.endpoint(Access()) == "https://api.anthropic.com"
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "https://proxy.example/x/")
    assert provider.endpoint(Access()) == "https://proxy.example/x"
    assert provider.endpoint(Access(base_url="https://me:secret@other.example:8/?key=secret")) == (
        "https://other.example:8"
    )
    with anthropic.Anthropic(api_key="k", base_url="http://mine") as client:
        assert provider.endpoint(Access(client=client)) == "http://mine"


def test_quirks_follow_the_endpoint() -> None:
    """The vendor has none; what speaks its dialect elsewhere is treated with caution."""
    assert provider.quirks(Access()) == frozenset()
    assert provider.quirks(Access(base_url="https://eu.api.anthropic.com")) == frozenset()
    assert provider.quirks(Access(base_url="http://localhost:8000")) == {"compatible"}
    assert provider.quirks(Access(base_url="https://notanthropic.com")) == {"compatible"}


@pytest.mark.parametrize("name", ["Authorization", "authorization", "X-Api-Key"])
def test_the_vendors_environment_does_not_follow_a_base_url(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Further headers are Anthropic's alone; another's endpoint gets the key and no more."""
    monkeypatch.setenv(
        "ANTHROPIC_CUSTOM_HEADERS", f"{name}: Bearer sk-custom\nX-Secret: s\nanthropic-workspace-id: w\nno"
    )
    with Server([head(), b"{}"]) as server:
        connection = provider.connect(access(server))
        connection.open_sync(REQUEST).close()
        connection.close()

    headers = server.asked[0].headers
    assert headers["authorization"] == "Bearer sk-ant-test"
    assert {"x-secret", "x-api-key", "anthropic-workspace-id"}.isdisjoint(headers)


@pytest.mark.parametrize("timeout", [None, 7.0])
async def test_every_request_has_the_headers_of_the_sdks_typed_call(timeout: float | None) -> None:
    """In their order, whichever client sends, and whether the SDK was asked anew or not.

    But for the length, and for the timeout where none is asked for, which the SDK reckons by the method that is called.
    """
    asks: Any = {"model": "m", "messages": [], "max_tokens": 1} | ({} if timeout is None else {"timeout": timeout})
    request, free = (
        replace(REQUEST, timeout=timeout),
        {"content-length", *(["x-stainless-timeout"][timeout is not None :])},
    )
    with Server([whole(b"{}")], keeps_alive=True) as server:
        connection = provider.connect(access(server))
        with anthropic.Anthropic(api_key="sk-ant-test", base_url=server.url) as client:
            client.messages.create(**asks)
        async with anthropic.AsyncAnthropic(api_key="sk-ant-test", base_url=server.url) as later:
            await later.messages.create(**asks)
        for _ in range(2):
            connection.open_sync(request).close()
            await (await connection.open(request)).aclose()
        await connection.aclose()

    waiting, awaited, *ours = [list({**asked.headers, **dict.fromkeys(free)}.items()) for asked in server.asked]
    assert ours == [waiting, awaited] * 2
    assert {asked.path for asked in server.asked} == {"/v1/messages"}


def test_the_users_client_sends_with_its_own_key_and_headers() -> None:
    """To its own endpoint, whose path stays."""
    with Server([head(), b"{}"]) as server:
        client = anthropic.Anthropic(api_key="sk-mine", base_url=f"{server.url}/my", default_headers={"X-Mine": "1"})
        connection = provider.connect(Access(client=client))
        connection.open_sync(REQUEST).close()
        client.close()

    asked = server.asked[0]
    assert (asked.path, asked.headers["authorization"], asked.headers["x-mine"]) == (
        "/my/v1/messages", "Bearer sk-mine", "1",
    )  # fmt: skip


def test_the_users_client_does_not_repeat_either() -> None:
    """Its own retries are off for the calls that go through it: there is one policy."""
    with Server([head(529, retry_after="0"), b"{}"]) as server:
        with anthropic.Anthropic(api_key="k", base_url=server.url, max_retries=3) as client:
            status = provider.connect(Access(client=client)).open_sync(REQUEST).status

        assert (status, len(server.asked)) == (529, 1)


async def test_the_users_client_follows_no_redirect() -> None:
    """Whatever it does by itself: the conversation is for its own endpoint."""
    with Server([head(), ANSWER]) as there, Server([head(308, location=f"{there.url}/v1")]) as here:
        with anthropic.Anthropic(api_key="k", base_url=here.url) as client:
            waiting = provider.connect(Access(client=client)).open_sync(REQUEST)
        async with anthropic.AsyncAnthropic(api_key="k", base_url=here.url) as later:
            awaited = await provider.connect(Access(client=later)).open(REQUEST)

    assert (waiting.status, awaited.status, len(here.asked), there.asked) == (308, 308, 2, [])


async def test_a_client_of_the_other_kind_is_refused_by_name() -> None:
    """A sync client cannot be awaited; the error says which to pass."""
    with anthropic.Anthropic(api_key="k") as client:
        with pytest.raises(SettingsInvalid, match="await takes an AsyncAnthropic"):
            await provider.connect(Access(client=client)).open(REQUEST)
    async with anthropic.AsyncAnthropic(api_key="k") as later:
        with pytest.raises(SettingsInvalid, match="a waiting call takes an Anthropic client"):
            provider.connect(Access(client=later)).open_sync(REQUEST)


def bedrock(server: Server, **given: Any) -> anthropic.AnthropicBedrock:
    return anthropic.AnthropicBedrock(api_key="aws", aws_region="eu-west-1", base_url=server.url, **given)


def vertex(server: Server) -> anthropic.AnthropicVertex:
    return anthropic.AnthropicVertex(
        region="europe-west1", project_id="p", access_token="google", base_url=f"{server.url}/v1"
    )


@pytest.mark.parametrize(
    ("make", "path", "key"),
    [
        (bedrock, "/model/claude-sonnet-4-5/invoke", "Bearer aws"),
        (
            vertex,
            "/v1/projects/p/locations/europe-west1/publishers/anthropic/models/claude-sonnet-4-5:rawPredict",
            "Bearer google",
        ),
    ],
)
def test_a_clouds_client_puts_the_model_into_the_path(make: Any, path: str, key: str) -> None:
    """And the version into the body; the messages are those that were rendered."""
    with Server([head(), ANSWER]) as server, make(server) as client:
        assert provider.quirks(Access(client=client)) == {"cloud"}
        reply = sabir.adapter("anthropic:claude-sonnet-4-5", client=client, settings=SHORT).complete_sync("Hi")
        asked = server.asked[0]

    body = json.loads(asked.body)
    assert (reply.text, asked.path, asked.headers["authorization"]) == ("Hello.", path, key)
    assert body["messages"] == [{"role": "user", "content": [{"type": "text", "text": "Hi"}]}]
    assert "model" not in body
    assert body["anthropic_version"]


async def test_an_async_client_of_a_cloud() -> None:
    """The same of the async one."""
    with Server([head(), ANSWER]) as server:
        client = anthropic.AsyncAnthropicBedrock(api_key="aws", aws_region="eu-west-1", base_url=server.url)
        async with client:
            reply = await sabir.adapter("anthropic:claude-sonnet-4-5", client=client, settings=SHORT).complete("Hi")

    assert (reply.text, server.asked[0].path) == ("Hello.", "/model/claude-sonnet-4-5/invoke")


def test_bedrocks_frames_are_a_stream_like_any_other() -> None:
    """AWS frames in place of server-sent events."""
    kind = "application/vnd.amazon.eventstream"
    with Server([head(kind=kind), *map(framed, WIRE)]) as server, bedrock(server) as client:
        with sabir.adapter("anthropic:claude-sonnet-4-5", client=client).stream_sync("Hi") as stream:
            text = "".join(stream.text)

    assert (text, server.asked[0].path) == ("Hello.", "/model/claude-sonnet-4-5/invoke-with-response-stream")


async def test_bedrocks_frames_in_an_event_loop() -> None:
    """The same of the async client."""
    kind = "application/vnd.amazon.eventstream"
    with Server([head(kind=kind), *map(framed, WIRE)]) as server:
        client = anthropic.AsyncAnthropicBedrock(api_key="aws", aws_region="eu-west-1", base_url=server.url)
        async with client, sabir.adapter("anthropic:claude-sonnet-4-5", client=client).stream("Hi") as stream:
            reply = await stream.reply()

    assert reply.text == "Hello."


def test_a_call_from_end_to_end() -> None:
    """Adapter, SDK, server and back; betas and version are headers."""
    vendor = {"anthropic": {"betas": ["b-1", "b-2"], "version": "2023-06-01"}}
    with Server([head(), ANSWER]) as server:
        llm = sabir.adapter("anthropic:claude-haiku-4-5", base_url=server.url, api_key="k", settings=SHORT)
        reply = llm.complete_sync("Hi", settings=sabir.Settings(vendor=vendor))
        llm.close()
        asked = server.asked[0]

    assert (reply.text, reply.finish_reason, reply.origin.endpoint) == ("Hello.", "stop", server.url)
    assert (asked.headers["anthropic-beta"], asked.headers["anthropic-version"]) == ("b-1,b-2", "2023-06-01")


def test_a_stream_from_end_to_end() -> None:
    """Events as they come, and the reply that they fold to."""
    with Server([head(kind="text/event-stream"), streamed(WIRE)]) as server:
        llm = sabir.adapter("anthropic:claude-opus-5-5", base_url=server.url, api_key="k")
        with llm.stream_sync("Hi") as stream:
            text = "".join(stream.text)
        llm.close()

    assert (text, json.loads(server.asked[0].body)["stream"]) == ("Hello.", True)


def test_a_stream_that_reports_an_error_is_broken_with_what_came() -> None:
    """Status 200, then an error event."""
    wire = [*WIRE[:3], {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}]
    with Server([head(kind="text/event-stream"), streamed(wire)]) as server:
        llm = sabir.adapter("anthropic:claude-opus-5-5", base_url=server.url, api_key="k")
        with pytest.raises(StreamBroken, match="Overloaded") as raised, llm.stream_sync("Hi") as stream:
            list(stream)
        llm.close()

    assert isinstance(raised.value.__cause__, Overloaded)
    assert raised.value.partial is not None
    assert raised.value.partial.text == "Hello."


def test_the_vendor_counts_the_tokens_of_what_it_takes() -> None:
    """Only the fields that the counting endpoint has."""
    with Server([head(), b'{"input_tokens": 12}']) as server:
        llm = sabir.adapter("anthropic:claude-haiku-4-5", base_url=server.url, api_key="k")
        count = llm.count_tokens_sync([sabir.system("Brief."), sabir.user("Hi")], settings=sabir.Settings(stop="x"))
        llm.close()
        asked = server.asked[0]

    assert (count.input_tokens, count.estimated, asked.path) == (12, False, "/v1/messages/count_tokens")
    assert json.loads(asked.body).keys() == {"model", "system", "messages"}


def test_no_sdk_is_imported_before_the_first_send() -> None:
    """Endpoint, quirks, models and the dialect come without it (law 6)."""
    code = """
import sys, json
from sabir.contract.protocols import Access
from sabir_anthropic.plugin import anthropic as provider
provider.endpoint(Access()), provider.quirks(Access()), provider.models(), provider.connect(Access())
[provider.dialect(name) for name in provider.dialects]
print(json.dumps(sorted({"anthropic", "httpx2", "anyio"} & set(sys.modules))))
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert json.loads(found.stdout) == []
