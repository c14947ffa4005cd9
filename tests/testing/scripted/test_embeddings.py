"""The scripted embedding model: its vectors, its limits, what it lacks, and texts that the script does not have."""

import pytest
from sabir.errors import RateLimited, RenderingRefused
from sabir_embeddings import Embedder
from sabir_testing import ScriptedEmbeddings, ScriptMismatch


def test_requests_follow_the_limits_and_are_noted() -> None:
    model = ScriptedEmbeddings(lambda text: [len(text), 0], limits={"texts": 2})
    vectors = Embedder(model, at_once=1).embed_sync(["a", "bb", "ccc"], kind="query", dimensions=2)

    assert [vector.tolist() for vector in vectors] == [[1, 0], [2, 0], [3, 0]]
    assert [(call.texts, call.kind, call.dimensions) for call in model.sent] == [
        (("a", "bb"), "query", 2),
        (("ccc",), "query", 2),
    ]
    assert model.texts == ("a", "bb", "ccc")


async def test_what_the_model_lacks_is_a_loss() -> None:
    model = ScriptedEmbeddings({"a": [1]}, unsupported=["dimensions"])
    vectors = await Embedder(model).embed(["a"], dimensions=1)

    assert [loss.path for loss in vectors.losses] == ["dimensions"]
    with pytest.raises(RenderingRefused):
        Embedder(ScriptedEmbeddings({"a": [1]}, unsupported=["kind"], strict=True)).render(["a"], kind="query")


def test_a_text_without_a_vector_is_named() -> None:
    with pytest.raises(ScriptMismatch, match="the program embeds 'b', which has no vector; the script has 'a'"):
        Embedder(ScriptedEmbeddings({"a": [1]})).embed_sync(["b"])


def test_a_function_may_raise_the_error_of_a_call() -> None:
    def fail(text: str) -> list[float]:
        raise RateLimited("too many", provider="scripted")

    with pytest.raises(RateLimited):
        Embedder(ScriptedEmbeddings(fail)).embed_sync(["a"])
