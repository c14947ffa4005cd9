"""The operation openai.embeddings: requests by the facts of each endpoint, and vectors in every form."""

import json
from array import array
from base64 import b64encode
from typing import Any

import pytest
from openai.types import EmbeddingCreateParams
from pydantic import ConfigDict, TypeAdapter, with_config
from sabir.authoring import DecodeScope, EmbeddingCall, EmbeddingVectors, Row, operation_client
from sabir.errors import ResponseInvalid
from sabir.vocabulary.settings import Settings, Target
from sabir_openai.embeddings import EMBEDDINGS, INPUT_TYPES, embeddings_of

SCOPE = DecodeScope(Target(provider="openai", dialect="openai.embeddings", model="m"))
CALL = EmbeddingCall(["one", "two"], "query", 64)
WITH = sorted(name for name, row in Row.load_all_packaged("sabir_openai").items()
              if any("embeddings" in entry.dialects for entry in row.entries))  # fmt: skip


def rendered(model: str, call: EmbeddingCall = CALL, **vendor: Any) -> tuple[dict[str, Any], list[str]]:
    name = model.partition(":")[0]
    client = operation_client(model, "embeddings", api_key="k", settings=Settings(vendor={name: vendor}))
    rendering = client.render(call)
    return json.loads(rendering.body_bytes), [loss.path for loss in rendering.losses]


def vectors(entries: list[Any], provider: str = "openai", **more: Any) -> EmbeddingVectors:
    return embeddings_of(provider).decode(json.dumps({"data": entries, **more}).encode(), SCOPE).output


def base64(*numbers: float) -> str:
    return b64encode(array("f", numbers).tobytes()).decode()


@pytest.mark.parametrize(
    "model", ["openai:text-embedding-3-small", "azure:deployment", *(f"{name}:m" for name in WITH)]
)
def test_a_request_fits_the_sdks_type_and_loses_nothing_silently(model: str) -> None:
    body, losses = rendered(model)

    known = body.keys() - {"output_dimension", "input_type"}
    closed = with_config(ConfigDict(extra="forbid"))(EmbeddingCreateParams)
    TypeAdapter(closed).validate_python({name: body[name] for name in known})
    assert body["input"] == ["one", "two"]
    assert (64 in body.values()) != ("dimensions" in losses)
    assert ("query" in str(body.get("input_type"))) != ("kind" in losses)


@pytest.mark.parametrize(
    ("model", "fields", "losses"),
    [
        ("openai:text-embedding-3-small", {"encoding_format": "base64", "dimensions": 64}, ["kind"]),
        ("openai:text-embedding-ada-002", {"encoding_format": "base64"}, ["dimensions", "kind"]),
        ("mistral:codestral-embed", {"encoding_format": "base64", "output_dimension": 64}, ["kind"]),
        ("mistral:mistral-embed", {"encoding_format": "base64"}, ["dimensions", "kind"]),
        ("openrouter:m", {"encoding_format": "base64", "dimensions": 64, "input_type": "search_query"}, []),
        ("fireworks:m", {"dimensions": 64}, ["kind"]),
        ("together:m", {}, ["dimensions", "kind"]),
        ("lmstudio:m", {"dimensions": 64}, ["kind"]),
        ("perplexity:m", {"dimensions": 64}, ["kind"]),
    ],
)
def test_an_endpoints_facts_decide_the_fields(model: str, fields: dict[str, Any], losses: list[str]) -> None:
    body, lost = rendered(model)

    assert {name: body[name] for name in body.keys() - {"model", "input"}} == fields
    assert lost == losses


def test_rows_without_the_endpoint_have_no_operation() -> None:
    assert WITH == ["fireworks", "llamacpp", "lmstudio", "mistral", "ollama", "openrouter", "perplexity", "together",
                    "venice", "vercel", "vllm"]  # fmt: skip
    assert set(INPUT_TYPES) == {"query", "document"}


def test_the_vendor_setting_user_is_sent() -> None:
    assert rendered("openai:m", user="u1")[0]["user"] == "u1"


def test_vectors_are_sorted_by_their_index() -> None:
    mixed = [{"index": 1, "embedding": base64(3, 4)}, {"index": 0, "embedding": [1, 2]}]

    assert array("f", vectors(mixed).buffer).tolist() == [1, 2, 3, 4]
    assert vectors([{"embedding": [1]}, {"embedding": [2]}]).buffer == array("f", [1, 2]).tobytes()


@pytest.mark.parametrize("indexes", [(0, 0), (1, 2), (0, None)])
def test_indexes_with_gaps_are_an_invalid_response(indexes: tuple[int | None, int | None]) -> None:
    with pytest.raises(ValueError, match="indexes of the vectors"):
        vectors([{"index": index, "embedding": [1]} for index in indexes])


def test_perplexitys_signed_bytes_become_floats() -> None:
    text = b64encode(array("b", [-128, 0, 127]).tobytes()).decode()

    assert array("f", vectors([{"index": 0, "embedding": text}], "perplexity").buffer).tolist() == [-128, 0, 127]
    assert operation_client("perplexity:m", "embeddings").render(CALL).path == "/v1/embeddings"


def test_an_unreadable_vector_and_an_error_in_the_body_raise() -> None:
    with pytest.raises(ValueError, match="the same multiple of 4"):
        vectors([{"index": 0, "embedding": b64encode(b"123").decode()}])
    with pytest.raises(Exception, match="boom"):
        EMBEDDINGS.decode(b'{"error": {"message": "boom"}}', SCOPE)
    with pytest.raises(ResponseInvalid):
        EMBEDDINGS.decode(b"<html>", SCOPE)


def test_azures_dated_path_names_the_deployment(monkeypatch: pytest.MonkeyPatch) -> None:
    from sabir.contract.provider import WireRequest
    from sabir_openai.provider import deployment_path

    request = WireRequest(path="/embeddings", body=b'{"model": "small"}')
    assert deployment_path(request) == "/deployments/small/embeddings"
