"""The provider carries bytes: through the real SDK, to a real server on a loopback port."""

import json
from typing import Any

import anthropic
import pytest
import sabir
from sabir.contract.provider import Access, WireRequest
from sabir_anthropic.plugin import anthropic as provider
from sabir_testing.loopback import Server, head

from tests.anthropic.answers import message
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


def streamed(wire: list[Any]) -> bytes:
    return "".join(f"event: {each['type']}\ndata: {json.dumps(each)}\n\n" for each in wire).encode()


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
    with Server([head(), ANSWER]) as server, make(server) as client:
        assert provider.quirks(Access(client=client)) == {"cloud"}
        reply = sabir.adapter("anthropic:claude-sonnet-4-5", client=client, settings=SHORT).complete_sync("Hi")
        asked = server.requests[0]

    body = json.loads(asked.body)
    assert (reply.text, asked.path, asked.headers["authorization"]) == ("Hello.", path, key)
    assert body["messages"] == [{"role": "user", "content": [{"type": "text", "text": "Hi"}]}]
    assert "model" not in body
    assert body["anthropic_version"]


async def test_an_async_client_of_a_cloud() -> None:
    with Server([head(), ANSWER]) as server:
        client = anthropic.AsyncAnthropicBedrock(api_key="aws", aws_region="eu-west-1", base_url=server.url)
        async with client:
            reply = await sabir.adapter("anthropic:claude-sonnet-4-5", client=client, settings=SHORT).complete("Hi")

    assert (reply.text, server.requests[0].path) == ("Hello.", "/model/claude-sonnet-4-5/invoke")


def test_bedrocks_frames_are_a_stream_like_any_other() -> None:
    kind = "application/vnd.amazon.eventstream"
    with Server([head(kind=kind), *map(framed, WIRE)]) as server, bedrock(server) as client:
        with sabir.adapter("anthropic:claude-sonnet-4-5", client=client).stream_sync("Hi") as stream:
            text = "".join(stream.text)

    assert (text, server.requests[0].path) == ("Hello.", "/model/claude-sonnet-4-5/invoke-with-response-stream")


async def test_bedrocks_frames_in_an_event_loop() -> None:
    kind = "application/vnd.amazon.eventstream"
    with Server([head(kind=kind), *map(framed, WIRE)]) as server:
        client = anthropic.AsyncAnthropicBedrock(api_key="aws", aws_region="eu-west-1", base_url=server.url)
        async with client, sabir.adapter("anthropic:claude-sonnet-4-5", client=client).stream("Hi") as stream:
            reply = await stream.reply()

    assert reply.text == "Hello."
