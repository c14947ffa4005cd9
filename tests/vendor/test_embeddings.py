"""Recorded responses of embedding services: which of them the operations decode, completely and in order.

OpenAI and compatible hosts   openai.embeddings        Gemini API   google.embeddings
Cohere, Bedrock, Vertex AI, Ollama's own API           other formats, of which sabir has no operation
"""

import json
from array import array
from base64 import b64decode
from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest
from sabir.authoring import DecodeScope, EmbeddingCall, EmbeddingVectors, Operation
from sabir.errors import CallError
from sabir.vocabulary.settings import Target
from sabir_google.embeddings import EMBEDDINGS as GOOGLE
from sabir_openai.embeddings import embeddings_of

from tests.vendor.support import Exchange, exchanges

FILE = "more/embeddings"
HOSTS: Mapping[str, str] = {
    "api.openai.com": "openai", "api.doubleword.ai": "openai", "api.mistral.ai": "mistral", "api.venice.ai": "venice",
    "openrouter.ai": "openrouter", "127.0.0.1:11434": "ollama", "llama.cpp": "llamacpp", "api.voyageai.com": "openai",
    "api.perplexity.ai": "perplexity", "rubyllm.services.ai.azure.com": "azure",
    "test-resource.openai.azure.com": "azure",
}  # fmt: skip
"""Host of a compatible API → the provider that decodes its responses."""
NOT_OURS: Mapping[str, str] = {
    "api.cohere.com": "Cohere's own format",
    "bedrock-runtime.us-east-1.amazonaws.com": "Bedrock's formats, one for each maker",
    "aiplatform.googleapis.com": "Vertex AI's method predict",
    "localhost:11434": "Ollama's own API /api/embed",
}
SINGLE = ":embedContent"
"""A method of the Gemini API for one text, which this package never calls."""
COUNTS = {
    "api.openai.com": 61, "generativelanguage.googleapis.com": 25, "api.doubleword.ai": 10, "api.mistral.ai": 10,
    "openrouter.ai": 7, "llama.cpp": 5, "api.venice.ai": 4, "api.voyageai.com": 4, "127.0.0.1:11434": 4,
    "test-resource.openai.azure.com": 2, "rubyllm.services.ai.azure.com": 1, "api.perplexity.ai": 1,
}  # fmt: skip


def operation_for(exchange: Exchange) -> Operation[EmbeddingCall, EmbeddingVectors] | None:
    if exchange.host == "generativelanguage.googleapis.com" and not exchange.path.endswith(SINGLE):
        return GOOGLE
    return embeddings_of(HOSTS[exchange.host]) if exchange.host in HOSTS else None


OURS = [each for each in exchanges(FILE) if operation_for(each)]


def test_every_recording_is_decoded_or_of_a_format_without_an_operation() -> None:
    rest = [each for each in exchanges(FILE) if operation_for(each) is None]

    assert Counter(each.host for each in OURS) == COUNTS
    assert all(each.host in NOT_OURS or each.path.endswith(SINGLE) for each in rest)
    assert len(OURS) + len(rest) == 174


def expected(response: Any, host: str) -> list["array[float]"]:
    """The vectors, by a second reading of the response."""
    rows = response.get("embeddings") or sorted(response["data"], key=lambda each: each["index"])
    values = [each.get("values", each.get("embedding")) for each in rows]
    code = "b" if host == "api.perplexity.ai" else "f"
    return [array("f", array(code, b64decode(each)) if isinstance(each, str) else each) for each in values]


@pytest.mark.parametrize("exchange", OURS, ids=str)
def test_a_recording_is_decoded_completely(exchange: Exchange) -> None:
    operation = operation_for(exchange)
    assert operation is not None
    scope = DecodeScope(Target(provider="p", dialect=operation.name, model=exchange.model or "m"))
    if exchange.status >= 400:
        error = operation.decode_error(exchange.status, {}, exchange.body, "p")
        assert isinstance(error, CallError) and error.status == exchange.status
        return
    vectors, usage, model = operation.decode(exchange.body, scope)

    rows = expected(exchange.response, exchange.host)
    assert vectors.buffer == b"".join(row.tobytes() for row in rows)
    assert {len(row) for row in rows} == {vectors.dimensions}
    assert model == exchange.response.get("model")
    reported = exchange.response.get("usage") or exchange.response.get("usageMetadata") or {}
    figures = [reported.get(name) for name in ("prompt_tokens", "promptTokenCount", "total_tokens")]
    assert usage.input_tokens == next((each for each in figures if each is not None), None)
    assert usage.details == (reported or None)
    assert json.dumps(usage.output_tokens) == ("0" if reported else "null")
