"""Embedding any number of texts: the requests follow the limits, and no limit changes a vector or the order."""

import asyncio
import json
import threading
from array import array
from base64 import b64encode
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy
import pytest
import sabir
from hypothesis import given
from hypothesis import strategies as st
from sabir.authoring import (
    Access,
    EmbeddingCall,
    EmbeddingVectors,
    InProcessConnection,
    InProcessResponse,
    Operation,
    OperationClient,
    WireRequest,
)
from sabir.errors import InvalidRequest, RenderingRefused, ResponseInvalid, SettingsInvalid
from sabir_echo.embeddings import EMBEDDINGS, embed, serve
from sabir_embeddings import Embedder, Embeddings, embedder
from sabir_embeddings.splitting import count_bytes, split_texts

Serve = Callable[[WireRequest], InProcessResponse]
TEXTS = [f"text {number}" for number in range(10)]


class Hashing:
    """The provider echo with other limits, and with a service that a test may replace. Stores the received texts."""

    def __init__(self, limits: Mapping[str, int], service: Serve | None = None) -> None:
        self.name, self.request_ids, self.credentials = "echo", (), ()
        self.limits = limits
        self.received: list[list[str]] = []
        self._serve = service or (lambda request: serve(request.body))

    def connect(self, access: Access) -> InProcessConnection:
        def answer(request: WireRequest) -> InProcessResponse:
            self.received.append(json.loads(request.body)["input"])
            return self._serve(request)

        return InProcessConnection(answer)

    def endpoint(self, access: Access) -> str:
        return "echo:"

    def quirks(self, access: Access) -> frozenset[str]:
        return frozenset()

    def models(self) -> tuple[sabir.ModelInfo, ...]:
        return ()

    def embedder(self, at_once: int = 4, **how: Any) -> Embedder:
        operation: Operation[EmbeddingCall, EmbeddingVectors] = replace(EMBEDDINGS, limits=self.limits)
        return Embedder(OperationClient(self, operation, "m", Access(), **how), at_once=at_once)  # type: ignore[arg-type]


def run(is_async: bool, model: Embedder, texts: Any, **how: Any) -> Embeddings:
    return asyncio.run(model.embed(texts, **how)) if is_async else model.embed_sync(texts, **how)


both = pytest.mark.parametrize("is_async", [True, False], ids=["async", "sync"])
limits = st.fixed_dictionaries({}, optional={"texts": st.integers(1, 6), "bytes": st.integers(1, 40)})


@given(texts=st.lists(st.text(min_size=1, max_size=12), max_size=20), limits=limits)
def test_splitting_keeps_every_text_in_order_and_the_limits(texts: list[str], limits: dict[str, int]) -> None:
    parts = [texts[part] for part in split_texts(texts, limits)]

    assert [text for part in parts for text in part] == texts
    for part in parts:
        assert 1 <= len(part) <= limits.get("texts", len(part))
        assert len(part) == 1 or sum(map(count_bytes, part)) <= limits.get("bytes", 1 << 30)


@given(texts=st.lists(st.text(min_size=1, max_size=12), max_size=20), limits=limits, at_once=st.integers(1, 5),
       is_async=st.booleans())  # fmt: skip
def test_no_limit_changes_a_vector_or_the_order(
    texts: list[str], limits: dict[str, int], at_once: int, is_async: bool
) -> None:
    vectors = run(is_async, Hashing(limits).embedder(at_once), texts, dimensions=16)

    assert vectors.buffer == b"".join(embed(text, 16) for text in texts)
    assert vectors.shape == (len(texts), 16 if texts else 0)


def test_sync_requests_run_at_the_same_time_but_at_most_at_once() -> None:
    barrier, running, most = threading.Barrier(2, timeout=20), [0], [0]

    def meet(request: WireRequest) -> InProcessResponse:
        running[0] += 1
        most[0] = max(most[0], running[0])
        barrier.wait()
        running[0] -= 1
        return serve(request.body)

    vectors = Hashing({"texts": 1}, meet).embedder(at_once=2).embed_sync(TEXTS)

    assert vectors.buffer == b"".join(embed(text, 256) for text in TEXTS)
    assert most == [2]


async def test_async_requests_overlap_and_keep_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Later requests are answered first."""
    model, running, most = Hashing({"texts": 1}).embedder(at_once=3), [0], [0]
    send = model._client.send

    async def slow(rendering: sabir.Rendering) -> Any:
        running[0] += 1
        most[0] = max(most[0], running[0])
        await asyncio.sleep(0.02 if b"text 0" in rendering.body_bytes else 0.001)
        running[0] -= 1
        return await send(rendering)

    monkeypatch.setattr(model._client, "send", slow)
    vectors = await model.embed(TEXTS)

    assert vectors.buffer == b"".join(embed(text, 256) for text in TEXTS)
    assert most == [3]


@both
def test_usage_is_summed_and_each_loss_occurs_once(is_async: bool) -> None:
    vectors = run(is_async, Hashing({"texts": 3}).embedder(), TEXTS, kind="query")

    assert (vectors.usage.input_tokens, vectors.usage.output_tokens) == (20, 0)
    assert [loss.path for loss in vectors.losses] == ["kind"]
    assert (vectors.reply.attempts, vectors.origin.dialect) == (4, "echo.embeddings")


@both
def test_strict_refuses_before_anything_is_sent(is_async: bool) -> None:
    provider = Hashing({"texts": 3})
    with pytest.raises(RenderingRefused, match="embeds queries and documents alike"):
        run(is_async, provider.embedder(strict=True), TEXTS, kind="query")
    with pytest.raises(RenderingRefused):
        run(is_async, provider.embedder(), TEXTS, kind="query", strict=["dropped"])

    assert provider.received == []


def test_render_shows_the_requests_without_sending() -> None:
    provider = Hashing({"texts": 4})
    renderings = provider.embedder().render(TEXTS, dimensions=8)

    assert [json.loads(each.body_bytes)["input"] for each in renderings] == [TEXTS[:4], TEXTS[4:8], TEXTS[8:]]
    assert provider.received == []


@both
def test_a_failed_request_raises_and_starts_no_other(is_async: bool) -> None:
    provider = Hashing({"texts": 1}, lambda request: InProcessResponse(400, [b'{"error": "no"}']))
    with pytest.raises(InvalidRequest):
        run(is_async, provider.embedder(at_once=2), TEXTS)

    assert len(provider.received) <= 4


@pytest.mark.parametrize("vectors", [[[1.0]], [[1.0], [1.0], [1.0]], [[1.0], [1.0, 2.0]], [], [[], []]])
def test_too_few_or_uneven_vectors_are_an_invalid_response(vectors: list[list[float]]) -> None:
    def answer(request: WireRequest) -> InProcessResponse:
        texts = [b64encode(array("f", vector).tobytes()).decode() for vector in vectors]
        return InProcessResponse(200, [json.dumps({"vectors": texts, "usage": {"input_tokens": 1}}).encode()])

    with pytest.raises(ResponseInvalid, match="vectors"):
        Hashing({}, answer).embedder().embed_sync(["one", "two"])


def test_vectors_of_another_length_than_requested_are_a_loss() -> None:
    def ignore_dimensions(request: WireRequest) -> InProcessResponse:
        return serve(json.dumps({**json.loads(request.body), "dimensions": 8}).encode())

    vectors = Hashing({"texts": 1}, ignore_dimensions).embedder().embed_sync(["one", "two"], dimensions=4)

    assert [str(loss) for loss in vectors.losses] == ["dropped: dimensions: echo:m returned vectors of 8 numbers"]


def test_numpy_reads_the_buffer_without_a_copy() -> None:
    vectors = embedder("echo:m").embed_sync(["red", "green", "blue"], dimensions=4)
    arrays = [numpy.asarray(vectors), numpy.asarray(vectors.view()), numpy.frombuffer(vectors.buffer, "f4")]

    assert {each.__array_interface__["data"][0] for each in arrays} == {arrays[2].__array_interface__["data"][0]}
    assert all(each.dtype == numpy.float32 for each in arrays)
    assert arrays[0].shape == arrays[1].shape == vectors.shape == (3, 4)
    assert [list(vector) for vector in vectors] == arrays[0].tolist()
    assert list(vectors[-1]) == list(vectors[2])
    with pytest.raises(IndexError):
        vectors[3]


def test_nearest_sorts_by_cosine_whatever_the_lengths() -> None:
    numbers = array("f", [0, 3, 5, 5, 9, 0, 0, 0])
    vectors = Embeddings(numbers.tobytes(), 2, embedder("echo:m").embed_sync("a").reply)

    assert [match.position for match in vectors.nearest([2.0, 0.0], 3)] == [2, 1, 0]
    assert vectors.nearest([0.0, 1.0], 1)[0].similarity == pytest.approx(1)
    with pytest.raises(ValueError, match="expected 2"):
        vectors.nearest([1.0])


@pytest.mark.parametrize(
    ("texts", "how", "match"),
    [
        (["a", ""], {}, r"texts\[1\] is ''"),
        (["a", 3], {}, r"texts\[1\] is 3"),
        ("a", {"kind": "title"}, "expected 'query' or 'document'"),
        ("a", {"dimensions": 0}, "dimensions is 0"),
        ("a", {"dimensions": True}, "dimensions is True"),
    ],
)
def test_wrong_arguments_are_refused(texts: Any, how: dict[str, Any], match: str) -> None:
    with pytest.raises(SettingsInvalid, match=match):
        embedder("echo:m").render(texts, **how)


def test_a_provider_without_embeddings_and_a_wrong_at_once_are_refused() -> None:
    with pytest.raises(SettingsInvalid, match="provider 'groq' has no operation 'embeddings'"):
        embedder("groq:m")
    with pytest.raises(SettingsInvalid, match="at_once is 0"):
        embedder("echo:m", at_once=0)


@both
def test_no_texts_send_nothing(is_async: bool) -> None:
    provider = Hashing({})
    vectors = run(is_async, provider.embedder(), [])

    assert (vectors.shape, list(vectors), vectors.reply.attempts, provider.received) == ((0, 0), [], 0, [])
    assert len(vectors.view()) == 0
