"""Claude on Bedrock and Vertex AI by string: the SDK's own clients and credential chains, against real servers."""

import asyncio
import json
import re
import sys
from pathlib import Path
from typing import Any

import anthropic
import pytest
import sabir
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from sabir.contract.provider import Access
from sabir.errors import AuthenticationFailed, ConnectionFailed, CredentialsMissing, SettingsInvalid
from sabir.vocabulary.models import find_model
from sabir_anthropic.dialect import MESSAGES
from sabir_anthropic.plugin import anthropic as anthropic_provider
from sabir_anthropic.plugin import bedrock, vertex
from sabir_testing.loopback import PATIENCE, Server, head, unreachable, whole

from tests.anthropic.answers import ANSWER, SHORT, WIRE, framed, streamed
from tests.providers.ways import WAYS

FRAMES = [head(kind="application/vnd.amazon.eventstream"), *map(framed, WIRE)]
EVENTS = [head(kind="text/event-stream"), streamed(WIRE)]
ON_BEDROCK, ON_VERTEX = "eu.anthropic.claude-sonnet-4-5-20250929-v1:0", "claude-sonnet-4-5@20250929"
AWS = {"aws_region": "eu-west-1", "aws_access_key": "AKIDEXAMPLE", "aws_secret_key": "wJalrEXAMPLE"}
GOOGLE = {"region": "europe-west1", "project_id": "p"}


@pytest.fixture(autouse=True)
def bare_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No file or metadata service of the machine decides a test."""
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("NO_GCE_CHECK", "true")
    monkeypatch.setenv("CLOUDSDK_CONFIG", str(tmp_path))


def signature(asked: Any, url: str, key: str, secret: str) -> str:
    """The signature that AWS computes for a request as it arrived."""
    names = re.search("SignedHeaders=([^,]+)", asked.headers["authorization"])
    assert names
    headers = {name: asked.headers[name] for name in names[1].split(";")}
    request = AWSRequest("POST", url + asked.path, headers=headers, data=asked.body)
    request.context["timestamp"] = asked.headers["x-amz-date"]
    signer = SigV4Auth(Credentials(key, secret), "bedrock", "eu-west-1")
    return str(signer.signature(signer.string_to_sign(request, signer.canonical_request(request)), request))


every_way = pytest.mark.parametrize("way", WAYS)


@every_way
@pytest.mark.parametrize("source", ["given", "variables"])
def test_bedrock_gets_a_signed_request(way: str, source: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if source == "variables":
        monkeypatch.setenv("AWS_DEFAULT_REGION", AWS["aws_region"])
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", AWS["aws_access_key"])
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", AWS["aws_secret_key"])
    key = AWS if source == "given" else None
    with Server(FRAMES if "streamed" in way else [head(), ANSWER]) as server:
        with sabir.adapter(f"bedrock.messages:{ON_BEDROCK}", api_key=key, base_url=server.url, settings=SHORT) as llm:
            assert WAYS[way](llm) == "Hello."
        asked = server.requests[0]

    body = json.loads(asked.body)
    expected = signature(asked, server.url, AWS["aws_access_key"], AWS["aws_secret_key"])
    method = "invoke-with-response-stream" if "streamed" in way else "invoke"
    assert asked.path.replace("%3A", ":") == f"/model/{ON_BEDROCK}/{method}"
    assert asked.headers["authorization"].startswith("AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/")
    assert asked.headers["authorization"].endswith(f"Signature={expected}")
    assert body["messages"] == [{"role": "user", "content": [{"type": "text", "text": "Hi"}]}]
    assert body["anthropic_version"]
    assert {"model", "stream"}.isdisjoint(body)


@pytest.fixture
def service_account(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """Write default credentials whose token comes from the given URL."""

    def write(url: str) -> None:
        private = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        pem = private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
        account = {
            "type": "service_account", "project_id": "p", "private_key_id": "1", "private_key": pem,
            "client_email": "a@p.iam.gserviceaccount.com", "client_id": "1", "token_uri": f"{url}/token",
        }  # fmt: skip
        (tmp_path / "account.json").write_text(json.dumps(account))
        monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "account.json"))

    return write


@pytest.mark.parametrize("way", ["whole", "whole, async"])
def test_vertex_finds_googles_default_credentials(
    way: str, service_account: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLOUD_ML_REGION", "europe-west1")
    monkeypatch.setenv("GOOGLE_CLOUD_PROJECT", "p")
    token = json.dumps({"access_token": "ya29.found", "expires_in": 3600, "token_type": "Bearer"}).encode()
    with Server([head(), token]) as tokens, Server([head(), ANSWER]) as server:
        service_account(tokens.url)
        with sabir.adapter(f"vertex.messages:{ON_VERTEX}", base_url=server.url, settings=SHORT) as llm:
            assert WAYS[way](llm) == "Hello."

    assert tokens.requests[0].path == "/token"
    assert server.requests[0].headers["authorization"] == "Bearer ya29.found"


@pytest.mark.parametrize(("name", "key"), [("bedrock", "api_key"), ("vertex", "access_token")])
async def test_a_function_is_called_at_each_send(name: str, key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A token may be renewed: the HTTP client stays, the SDK's client is made again. It decides no endpoint."""
    for variable in ("AWS_REGION", "CLOUD_ML_REGION", "GOOGLE_CLOUD_PROJECT"):
        monkeypatch.setenv(variable, "r")
    answers = iter(["first", {key: "first"}, {key: "second"}, {"region": "r", "aws_region": "r"}])
    with Server([head(), ANSWER]) as server:
        llm = sabir.adapter(f"{name}.messages:m", api_key=lambda: next(answers), base_url=server.url, settings=SHORT)
        async with llm:
            for _ in range(3):
                await llm.complete("Hi")
            with pytest.raises(SettingsInvalid, match=f"api_key= of {name} (returned|has the names) "):
                await llm.complete("Hi")

    assert [asked.headers["authorization"] for asked in server.requests] == [
        "Bearer first", "Bearer first", "Bearer second"
    ]  # fmt: skip


def test_a_bearer_token_of_bedrock_needs_no_boto3(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "boto3", None)
    monkeypatch.setenv("AWS_BEARER_TOKEN_BEDROCK", "aws")
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    with Server([head(), ANSWER]) as server:
        with sabir.adapter("bedrock.messages:m", base_url=server.url, settings=SHORT) as llm:
            llm.complete_sync("Hi")

    assert server.requests[0].headers["authorization"] == "Bearer aws"


# The SDK keeps the sessions of boto3 by region and keys, so each test without credentials has a region of its own.
FAULTS: list[tuple[str, Any, dict[str, str], type[Exception], str]] = [
    ("bedrock", None, {}, CredentialsMissing, "bedrock has no region; set the variable AWS_REGION, or pass"),
    (
        "bedrock",
        {"aws_region": "eu-central-1"},
        {},
        CredentialsMissing,
        "bedrock has no AWS credentials; configure AWS",
    ),
    (
        "bedrock",
        {"aws_region": "eu-south-2", "aws_profile": "gone"},
        {},
        CredentialsMissing,
        r"no usable AWS .* \(ProfileNotFound: .*gone",
    ),
    ("bedrock", AWS, {"AWS_BEARER_TOKEN_BEDROCK": "k"}, CredentialsMissing, "unset AWS_BEARER_TOKEN_BEDROCK, or"),
    ("bedrock", {"region": "x"}, {}, SettingsInvalid, "api_key= of bedrock has the names region; expected api_key"),
    ("vertex", None, {}, CredentialsMissing, "vertex has no region and no project_id; set the variable CLOUD_ML_REG"),
    ("vertex", {"region": "eu"}, {}, CredentialsMissing, "no project_id; set the variable ANTHROPIC_VERTEX_PROJECT"),
    ("vertex", GOOGLE, {}, CredentialsMissing, "vertex has no Google credentials; run gcloud auth application-default"),
]


@pytest.mark.parametrize("way", ["whole", "whole, async"])
@pytest.mark.parametrize(("name", "key", "variables", "kind", "words"), FAULTS)
def test_missing_credentials_are_named_before_anything_is_sent(
    name: str, key: Any, variables: dict[str, str], kind: type[Exception], words: str, way: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    for variable, value in variables.items():
        monkeypatch.setenv(variable, value)
    with Server([]) as server:
        with pytest.raises(kind, match=words) as raised:
            with sabir.adapter(f"{name}.messages:m", api_key=key, base_url=server.url, settings=SHORT) as llm:
                WAYS[way](llm)
        assert server.requests == []

    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("name", "module", "key", "extra"),
    [("bedrock", "boto3", {**AWS, "aws_region": "eu-north-1"}, "bedrock"), ("vertex", "google.auth", GOOGLE, "vertex")],
)
def test_a_missing_library_is_named_with_its_extra(
    name: str, module: str, key: Any, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What signs requests, and what finds credentials, are extras of the SDK."""
    monkeypatch.setitem(sys.modules, module, None)
    with Server([]) as server, sabir.adapter(f"{name}.messages:m", api_key=key, base_url=server.url) as llm:
        with pytest.raises(CredentialsMissing, match=rf"pip install 'anthropic\[{extra}\]'"):
            llm.complete_sync("Hi", settings=SHORT)
        assert server.requests == []


def test_a_refused_or_unreachable_token_service_is_told_apart(
    service_account: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A token that Google refuses is no matter of the network."""
    refusal = json.dumps({"error": "invalid_grant", "error_description": "Account has been disabled."}).encode()
    with Server([head(400), refusal]) as tokens, sabir.adapter("vertex.messages:m", api_key=GOOGLE) as llm:
        service_account(tokens.url)
        with pytest.raises(AuthenticationFailed, match=r"vertex got no token from Google; .*Account has been disabled"):
            llm.complete_sync("Hi", settings=SHORT)
    with unreachable() as url, sabir.adapter("vertex.messages:m", api_key=GOOGLE) as llm:
        service_account(url)
        with pytest.raises(ConnectionFailed, match="Google's token service cannot be reached; check the network"):
            llm.complete_sync("Hi", settings=SHORT)


def test_a_users_client_of_a_cloud_tells_the_same_errors() -> None:
    for name in ("bedrock.messages", "anthropic"):
        with anthropic.AnthropicBedrock(aws_region="eu-south-1") as client:
            with pytest.raises(CredentialsMissing, match="has no AWS credentials"):
                sabir.adapter(f"{name}:m", client=client).complete_sync("Hi", settings=SHORT)


CLIENTS: dict[str, tuple[Any, Any, dict[str, str], str]] = {
    "bedrock": (
        anthropic.AnthropicBedrock, anthropic.AsyncAnthropicBedrock, {"api_key": "key", "aws_region": "eu-west-1"},
        "/model/m/invoke",
    ),
    "vertex": (
        anthropic.AnthropicVertex, anthropic.AsyncAnthropicVertex, {**GOOGLE, "access_token": "key"},
        "/projects/p/locations/europe-west1/publishers/anthropic/models/m:rawPredict",
    ),
}  # fmt: skip
"""Cloud → its clients, their key, and the path of a request."""


@every_way
@pytest.mark.parametrize("name", CLIENTS)
def test_a_cloud_is_reached_by_its_name_and_by_a_client_of_its_own_alone(name: str, way: str) -> None:
    """By the name of the other cloud a client is refused."""
    kind, later_kind, key, path = CLIENTS[name]
    (other,) = CLIENTS.keys() - {name}
    answer = (FRAMES if name == "bedrock" else EVENTS) if "streamed" in way else [head(), ANSWER]
    with Server(answer) as server:
        client = (later_kind if "async" in way else kind)(base_url=server.url, **key)
        assert anthropic_provider.quirks(Access(client=client)) == {"cloud"}
        by_name = sabir.adapter(f"{name}.messages:m", api_key=key, base_url=server.url)
        by_client = (sabir.adapter(f"{each}:m", client=client) for each in ("anthropic", f"{name}.messages"))
        for llm in (by_name, *by_client):
            assert WAYS[way](llm, settings=SHORT) == "Hello."
        by_name.close()
        with pytest.raises(SettingsInvalid, match=f"client= of {other} is of type {type(client).__name__}; "):
            WAYS[way](sabir.adapter(f"{other}.messages:m", client=client), settings=SHORT)
        asyncio.run(client.close()) if "async" in way else client.close()

    if "streamed" in way:
        path = path.replace("rawPredict", "streamRawPredict").replace("/invoke", "/invoke-with-response-stream")
    for asked in server.requests:
        body = json.loads(asked.body)
        assert (asked.path, asked.headers["authorization"]) == (path, "Bearer key")
        assert body["messages"] == [{"role": "user", "content": [{"type": "text", "text": "Hi"}]}]
        assert body["anthropic_version"] and "model" not in body
    assert len(server.requests) == 3


@pytest.mark.parametrize("region", ["eu-west-1", "europe-west1", "global", "us", "eu"])
def test_the_endpoint_is_the_one_to_which_the_sdk_sends(region: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with anthropic.AnthropicBedrock(api_key="k", aws_region=region) as client:
        assert bedrock.endpoint(Access(api_key={"aws_region": region})) == str(client.base_url).rstrip("/")
    monkeypatch.setenv("CLOUD_ML_REGION", region)
    with anthropic.AnthropicVertex(access_token="k", project_id="p") as client:
        assert vertex.endpoint(Access()) == str(client.base_url).rstrip("/")


def test_an_endpoint_is_known_without_a_region(monkeypatch: pytest.MonkeyPatch) -> None:
    assert bedrock.endpoint(Access()) == "https://bedrock-runtime.amazonaws.com"
    monkeypatch.setenv("ANTHROPIC_BEDROCK_BASE_URL", "https://proxy.example/bedrock/")
    assert bedrock.endpoint(Access(api_key=AWS)) == "https://proxy.example/bedrock"
    assert bedrock.endpoint(Access(base_url="https://mine.example")) == "https://mine.example"


@pytest.mark.parametrize(
    ("model", "prefix"),
    [
        (ON_BEDROCK, "claude-sonnet-4-5"),
        ("anthropic.claude-opus-4-1-20250805-v1:0", "claude-opus-4-1"),
        ("us.anthropic.claude-opus-4-6-v1", "claude-opus-4-6"),
        ("global.anthropic.claude-haiku-5-5", "claude-haiku-5-5"),
        (f"arn:aws:bedrock:eu-west-1:123456789012:inference-profile/{ON_BEDROCK}", "claude-sonnet-4-5"),
        (ON_VERTEX, "claude-sonnet-4-5"),
        ("claude-opus-5-5@default", "claude-opus-5-5"),
    ],
)
def test_a_clouds_model_name_finds_its_row(model: str, prefix: str) -> None:
    for provider in (bedrock, vertex):
        assert find_model(provider.models(), model, MESSAGES.family(model)).prefix == prefix


@pytest.mark.parametrize("name", ["bedrock", "vertex"])
def test_a_cloud_takes_media_as_bytes(name: str) -> None:
    picture = sabir.user("What is it?", sabir.image("https://example.org/a.png"))
    rendering: Any = sabir.adapter(f"{name}.messages:claude-sonnet-4-5").render([picture])

    assert {part["type"] for part in rendering.body["messages"][0]["content"]} == {"text"}
    assert [loss.kind for loss in rendering.losses if loss.path and "parts" in loss.path] == ["downgraded"]


def test_each_event_loop_has_a_client_of_its_own_that_is_closed_with_it() -> None:
    """The connections are kept within a loop, and none is left when it ends."""
    with Server([whole(ANSWER)], keeps_alive=True) as server:
        llm = sabir.adapter("bedrock.messages:m", api_key={"api_key": "k", "aws_region": "r"}, base_url=server.url)

        async def twice() -> None:
            await llm.complete("Hi", settings=SHORT)
            await llm.complete("Hi", settings=SHORT)

        for _ in range(2):
            asyncio.run(twice())
            assert server.closed.wait(PATIENCE)
            server.closed.clear()
        llm.complete_sync("Hi", settings=SHORT)
        assert not server.closed.is_set()
        llm.close()
        assert server.closed.wait(PATIENCE)

    assert len(server.requests) == 5
