"""OpenAI's models on Azure by string: the endpoint, the API's version, and keys or tokens, against a real server."""

import json
from collections.abc import Callable
from typing import Any

import openai
import pytest
import sabir
from sabir.contract.provider import Access, WireRequest
from sabir.errors import CredentialsMissing, SettingsInvalid
from sabir_openai import plugin
from sabir_openai.plugin import azure
from sabir_testing.loopback import Server, head

from tests.providers.ways import WAYS

CHAT = {
    "id": "c", "object": "chat.completion", "created": 1, "model": "gpt-5",
    "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "Hello."}}],
}  # fmt: skip
RESPONSE = {
    "id": "resp_1", "object": "response", "status": "completed", "model": "gpt-5", "output": [
        {"type": "message", "id": "m", "role": "assistant", "status": "completed",
         "content": [{"type": "output_text", "text": "Hello.", "annotations": []}]},
    ],
}  # fmt: skip
CHUNK = {**CHAT, "object": "chat.completion.chunk", "choices": [
    {"index": 0, "finish_reason": "stop", "delta": {"role": "assistant", "content": "Hello."}},
]}  # fmt: skip
COMPLETED = {"type": "response.completed", "sequence_number": 0, "response": RESPONSE}
EVENTS = {
    "azure:prod": f"event: response.completed\ndata: {json.dumps(COMPLETED)}\n\n",
    "azure.chat:prod": f"data: {json.dumps(CHUNK)}\n\ndata: [DONE]\n\n",
}
ANSWERS = {"azure:prod": RESPONSE, "azure.chat:prod": CHAT}
PATHS = {"azure:prod": "/responses", "azure.chat:prod": "/chat/completions"}
BELOW = {
    "": "/openai/v1{path}",
    "preview": "/openai/v1{path}?api-version=preview",
    "2024-10-21": "/openai{deployment}{path}?api-version=2024-10-21",
    "2025-04-01-preview": "/openai{deployment}{path}?api-version=2025-04-01-preview",
}
"""Version → path and query; the deployment stands in the path of dated chat alone."""
ONCE = sabir.Settings(retries=0)


@pytest.fixture(autouse=True)
def variables_of_openai(monkeypatch: pytest.MonkeyPatch) -> None:
    """OpenAI's own variables are set, and never sent to Azure."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-openai")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("OPENAI_ORG_ID", "org-1")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "X-Secret: s")


def answer(model: str, way: str) -> list[bytes]:
    if "streamed" in way:
        return [head(kind="text/event-stream"), EVENTS[model].encode()]
    return [head(), json.dumps(ANSWERS[model]).encode()]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("version", BELOW)
@pytest.mark.parametrize("model", PATHS)
def test_a_deployment_is_reached_by_its_name(
    model: str, version: str, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", "azure-key")
    monkeypatch.setenv("OPENAI_API_VERSION", version)
    with Server(answer(model, way)) as server:
        monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", server.url)
        with sabir.adapter(model) as llm:
            assert WAYS[way](llm, settings=ONCE) == "Hello."
            assert llm.target.endpoint == server.url + ("/openai" if version[:1].isdigit() else "/openai/v1")
        asked = server.requests[0]

    deployment = "/deployments/prod" if "chat" in model else ""
    assert asked.path == BELOW[version].format(path=PATHS[model], deployment=deployment)
    assert asked.headers["api-key"] == "azure-key"
    assert {"authorization", "openai-organization", "x-secret"}.isdisjoint(asked.headers)
    assert json.loads(asked.body)["model"] == "prod"


@pytest.mark.parametrize("path", ["/responses", "/chat/completions"])
def test_a_dated_request_is_the_one_of_the_sdks_azure_client(path: str) -> None:
    body = {"model": "my model", "messages": [], "input": "Hi"}
    key = {"api_key": "k", "api_version": "2024-10-21"}
    with Server([head(), b"{}"]) as server:
        with openai.AzureOpenAI(api_key="k", api_version="2024-10-21", azure_endpoint=server.url) as client:
            client.post(path, cast_to=object, body=body)
        connection = azure.connect(Access(api_key=key, base_url=server.url))
        connection.open_sync(WireRequest(path=path, body=json.dumps(body).encode())).close()
        connection.close()
        theirs, ours = server.requests

    free = {"content-length", "openai-organization", "x-secret", "authorization", "user-agent"}
    assert ours.path == theirs.path
    assert {name for name in ours.headers if name not in free} == {name for name in theirs.headers if name not in free}
    assert ours.headers["api-key"] == theirs.headers["api-key"]


KEYS: list[tuple[str, Any, dict[str, str], dict[str, str]]] = [
    ("a key", "given", {}, {"api-key": "given"}),
    ("a key by name", {"api_key": "given"}, {}, {"api-key": "given"}),
    ("a token", {"azure_ad_token": "given"}, {}, {"authorization": "Bearer given"}),
    ("a function of tokens", lambda: "token", {}, {"authorization": "Bearer token"}),
    ("a function of keys", lambda: {"api_key": "key"}, {}, {"api-key": "key"}),
    ("a variable's token", None, {"AZURE_OPENAI_AD_TOKEN": "found"}, {"authorization": "Bearer found"}),
    ("both variables, as in the SDK", None, {"AZURE_OPENAI_AD_TOKEN": "found", "AZURE_OPENAI_API_KEY": "key"},
     {"authorization": "Bearer found"}),
    ("a key before variables", "given", {"AZURE_OPENAI_AD_TOKEN": "found"}, {"api-key": "given"}),
]  # fmt: skip


@pytest.mark.parametrize("version", ["", "2024-10-21"])
@pytest.mark.parametrize(("key", "variables", "sent"), [row[1:] for row in KEYS], ids=[row[0] for row in KEYS])
def test_keys_and_tokens_have_headers_of_their_own(
    key: Any, variables: dict[str, str], sent: dict[str, str], version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """https://learn.microsoft.com/en-us/azure/foundry/openai/api-version-lifecycle"""
    for name, value in {**variables, "OPENAI_API_VERSION": version}.items():
        monkeypatch.setenv(name, value)
    with (
        Server(answer("azure:prod", "whole")) as server,
        sabir.adapter("azure:m", api_key=key, base_url=server.url) as llm,
    ):
        llm.complete_sync("Hi", settings=ONCE)

    headers = server.requests[0].headers
    assert {name: headers[name] for name in ("api-key", "authorization") if name in headers} == sent


def test_a_token_is_renewed_at_each_send() -> None:
    tokens = iter(["first", "second"])
    with Server(answer("azure:prod", "whole")) as server:
        with sabir.adapter("azure:m", api_key=lambda: next(tokens), base_url=server.url) as llm:
            for _ in range(2):
                llm.complete_sync("Hi", settings=ONCE)

    assert [asked.headers["authorization"] for asked in server.requests] == ["Bearer first", "Bearer second"]


@pytest.mark.parametrize("behind", ["", "/", "/openai", "/openai/", "/openai/v1", "/openai/v1/"])
@pytest.mark.parametrize(("version", "below"), [("", "/openai/v1"), ("2024-10-21", "/openai")])
def test_the_endpoint_may_be_given_as_the_portal_shows_it(behind: str, version: str, below: str) -> None:
    for base in ("https://me.openai.azure.com", "https://gateway.example/openai/team"):
        access = Access(api_key={"api_version": version} if version else "k", base_url=base + behind)
        assert azure.endpoint(access) == base + below


def fails(key: Any = "k", **how: Any) -> Callable[[], object]:
    return lambda: sabir.adapter("azure:m", api_key=key, **how).complete_sync("Hi", settings=ONCE)


HERE = {"base_url": "http://127.0.0.1:9"}


@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [
        (
            fails(),
            CredentialsMissing,
            "azure has no endpoint; set the variable AZURE_OPENAI_ENDPOINT, or pass base_url=",
        ),
        (
            fails(None, base_url="http://127.0.0.1:9"),
            CredentialsMissing,
            r"azure needs a token \(no azure_ad_token\) or a key \(no key\); set the variable AZURE_OPENAI_AD_TOKEN,",
        ),
        (
            fails(lambda: {"api_version": "v"}, base_url="http://127.0.0.1:9"),
            SettingsInvalid,
            "returned api_version, which is part of the URL; pass",
        ),
        (fails(base_url="me.openai.azure.com"), SettingsInvalid, r"not an http\(s\) URL; check base_url"),
    ],
)
def test_what_is_missing_is_named_before_anything_is_sent(
    call: Callable[[], object], kind: type[Exception], words: str
) -> None:
    with pytest.raises(kind, match=words) as raised:
        call()

    assert "\n" not in str(raised.value)


def test_rendering_needs_no_endpoint() -> None:
    rendering = sabir.adapter("azure:gpt-5").render("Hi", settings=sabir.Settings(temperature=0.5))

    assert [loss.path for loss in rendering.losses] == ["settings.temperature"]
    assert azure.quirks(Access()) == frozenset()


@pytest.mark.parametrize(
    ("deployment", "path", "expected"),
    [
        (None, "/chat/completions", "/openai/deployments/m/chat/completions?api-version=v9"),
        ("mine", "/chat/completions", "/openai/deployments/mine/chat/completions?api-version=v9"),
        (None, "/responses", "/openai/responses?api-version=v9"),
        ("mine", "/responses", "/openai/responses?api-version=v9"),
    ],
)
@pytest.mark.parametrize("name", ["azure", "openai"])
def test_a_users_client_reaches_its_deployment(name: str, deployment: str | None, path: str, expected: str) -> None:
    """Where the client names no deployment, the model does, as the SDK's typed methods have it."""
    how: Any = {"api_version": "v9", "azure_deployment": deployment}
    with Server([head(), b"{}"]) as server:
        with openai.AzureOpenAI(api_key="mine", azure_endpoint=server.url, **how) as client:
            access = Access(client=client)
            connection = getattr(plugin, name).connect(access)
            connection.open_sync(WireRequest(path=path, body=b'{"model":"m"}')).close()
            assert azure.endpoint(access) == str(client.base_url).rstrip("/")

    assert server.requests[0].headers["api-key"] == "mine"
    assert server.requests[0].path == expected
