"""The operation google.embeddings: the kind by model, long texts as losses, requests that the SDK's types accept."""

import json
from typing import Any

import pytest
from google.genai import types
from sabir.authoring import EmbeddingCall, operation_client
from sabir.errors import SettingsInvalid
from sabir.vocabulary.settings import Settings
from sabir_embeddings import embedder
from sabir_google import http_options
from sabir_testing.loopback import Server, head


def rendered(model: str, call: EmbeddingCall, **vendor: Any) -> tuple[str, list[dict[str, Any]], list[str]]:
    settings = Settings(vendor={"google": vendor})
    rendering = operation_client(f"google:{model}", "embeddings", api_key="k", settings=settings).render(call)
    return rendering.path, json.loads(rendering.body_bytes)["requests"], [str(loss) for loss in rendering.losses]


@pytest.mark.parametrize(
    ("model", "fields"),
    [
        ("gemini-embedding-001", [("a", "RETRIEVAL_QUERY"), ("b", "RETRIEVAL_QUERY")]),
        ("gemini-embedding-2", [("task: search result | query: a", None), ("task: search result | query: b", None)]),
    ],
)
def test_the_kind_is_a_task_or_the_beginning_of_the_text(model: str, fields: list[Any]) -> None:
    path, requests, losses = rendered(model, EmbeddingCall(["a", "b"], "query", 128))

    assert path == f"/v1beta/models/{model}:batchEmbedContents"
    assert [(each["content"]["parts"][0]["text"], each.get("taskType")) for each in requests] == fields
    assert {each["outputDimensionality"] for each in requests} == {128}
    assert losses == []


def test_each_request_fits_the_sdks_types() -> None:
    _, requests, _ = rendered("gemini-embedding-001", EmbeddingCall(["a"], "document", 8), task_type="CLUSTERING")

    (request,) = requests
    types.Content.model_validate(request.pop("content"))
    assert request.pop("model") == "models/gemini-embedding-001"
    config = types.EmbedContentConfig.model_validate(request)
    assert (config.task_type, config.output_dimensionality) == ("CLUSTERING", 8)


def test_texts_beyond_the_models_limit_are_losses_at_their_position() -> None:
    call = EmbeddingCall(["short", "word " * 2000, "é" * 4200], first_index=10)
    _, _, losses = rendered("gemini-embedding-001", call)

    assert [loss.partition(":")[0] for loss in losses] == ["downgraded", "downgraded"]
    assert "texts[11]: it has about 2,500 tokens; the model reads only the first 2,048" in losses[0]
    assert "texts[12]" in losses[1]


def test_vertex_ai_is_refused_with_the_reason() -> None:
    from google import genai
    from google.auth.credentials import AnonymousCredentials

    client = genai.Client(
        vertexai=True, project="p", location="l", credentials=AnonymousCredentials(), http_options=http_options()
    )
    with pytest.raises(SettingsInvalid, match="API key only"):
        operation_client("google:gemini-embedding-001", "embeddings", client=client).render(EmbeddingCall(["a"]))


async def test_requests_reach_the_batch_method_with_the_key() -> None:
    """Over the SDK's HTTP client, sync and async. The path of the SDK's own method is replaced."""
    body = b'{"embeddings": [{"values": [0.5, 1]}], "usageMetadata": {"promptTokenCount": 2}}'
    with Server([head(), body]) as server:
        async with embedder("google:gemini-embedding-001", api_key="k", base_url=server.url) as model:
            both = [model.embed_sync("Hello"), await model.embed("Hello")]

    assert [vectors[0].tolist() for vectors in both] == [[0.5, 1.0]] * 2
    assert [(vectors.usage.input_tokens, vectors.origin.dialect) for vectors in both] == [(2, "google.embeddings")] * 2
    assert {request.path for request in server.requests} == {"/v1beta/models/gemini-embedding-001:batchEmbedContents"}
    assert {request.headers["x-goog-api-key"] for request in server.requests} == {"k"}
