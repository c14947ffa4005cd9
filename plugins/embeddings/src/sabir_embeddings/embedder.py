"""Embeds any number of texts: splits them into requests, sends some at a time, and joins the vectors in order.

texts ──split_texts──▶ calls ──render──▶ renderings ──losses, strict──▶ sent, at most `at_once` ──join──▶ Embeddings

All requests are rendered before the first is sent, so that `strict` refuses before anything is paid.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, get_args

from sabir import ApiKey, Loss, Origin, Rendering, Reply, Settings, Target, Usage
from sabir.authoring import (
    AsyncClosing,
    EmbeddingCall,
    EmbeddingKind,
    EmbeddingVectors,
    OperationClient,
    OperationResult,
    Strict,
    SyncClosing,
    operation_client,
)
from sabir.errors import ResponseInvalid, SettingsInvalid

from sabir_embeddings.sending import send_all, send_all_sync
from sabir_embeddings.splitting import split_texts
from sabir_embeddings.vectors import Embeddings

OPERATION = "embeddings"
"""The name of the operation in `Provider.operations`."""


class Embedder(AsyncClosing, SyncClosing):
    """Embeds texts with one model. Created by `embedder`, or from an OperationClient for a test.

    Threads and event loops may share an embedder. The end of a `with` block calls `close`, the end of an `async with`
    block `aclose`.
    """

    def __init__(self, client: OperationClient[EmbeddingCall, EmbeddingVectors], *, at_once: int = 4) -> None:
        if type(at_once) is not int or at_once < 1:
            raise SettingsInvalid(f"at_once is {at_once!r}; expected a whole number of at least 1")
        self._client, self._at_once = client, at_once

    @property
    def target(self) -> Target:
        """The provider, operation, model and endpoint that requests are sent to."""
        return self._client.target

    def __repr__(self) -> str:
        """Return the model and the endpoint, without secrets."""
        return f"Embedder({str(self.target)!r}, endpoint={self.target.endpoint!r})"

    def render(
        self,
        texts: str | Iterable[str],
        *,
        kind: EmbeddingKind | None = None,
        dimensions: int | None = None,
        strict: Strict | None = None,
    ) -> tuple[Rendering, ...]:
        """Return the requests for the texts, with their losses. Needs no API key and no network, and sends nothing.

        `kind` says what the texts are, "query" or "document", because some models embed questions and the texts that
        may answer them differently. `dimensions` is the length of the vectors; None means the model's default. `strict`
        replaces the embedder's. Raises RenderingRefused for losses that `strict` forbids, and SettingsInvalid for wrong
        arguments, for example an empty text, which providers refuse.
        """
        return self._render(_check_texts(texts), kind, dimensions, strict)

    async def embed(
        self,
        texts: str | Iterable[str],
        *,
        kind: EmbeddingKind | None = None,
        dimensions: int | None = None,
        strict: Strict | None = None,
    ) -> Embeddings:
        """Return the vectors of texts, in their order. The arguments are those of `render`.

        The texts are split into requests by the provider's limits, which never changes a vector. Raises the errors of
        `render` before anything is sent, and CallError if a request fails. Then the other requests are cancelled.
        """
        checked = _check_texts(texts)
        renderings = self._render(checked, kind, dimensions, strict)
        results = await send_all(self._client, renderings, self._at_once)
        return self._join(checked, results, dimensions)

    def embed_sync(
        self,
        texts: str | Iterable[str],
        *,
        kind: EmbeddingKind | None = None,
        dimensions: int | None = None,
        strict: Strict | None = None,
    ) -> Embeddings:
        """Sync version of `embed`. Blocks the thread. Several requests run in threads of their own."""
        checked = _check_texts(texts)
        renderings = self._render(checked, kind, dimensions, strict)
        results = send_all_sync(self._client, renderings, self._at_once)
        return self._join(checked, results, dimensions)

    async def aclose(self) -> None:
        """Close the sync client and the async client of the running event loop, if this embedder created them."""
        await self._client.aclose()

    def close(self) -> None:
        """Close the client of the sync methods. After async calls, use `aclose`, which closes both."""
        self._client.close()

    def _render(
        self, texts: Sequence[str], kind: EmbeddingKind | None, dimensions: int | None, strict: Strict | None
    ) -> tuple[Rendering, ...]:
        _check_kind_and_dimensions(kind, dimensions)
        return tuple(
            self._client.render(EmbeddingCall(texts[part], kind, dimensions, part.start), strict=strict)
            for part in split_texts(texts, self._client.operation.limits)
        )

    def _join(
        self, texts: Sequence[str], results: Sequence[OperationResult[EmbeddingVectors]], dimensions: int | None
    ) -> Embeddings:
        """Return the vectors of all responses. Raises ResponseInvalid if a response has too few or too many vectors, or
        vectors of another length than the first response.
        """
        if not results:
            return Embeddings(b"", 0, _merge_replies(self.target, ()))
        length = results[0].output.dimensions
        parts = split_texts(texts, self._client.operation.limits)
        for part, (vectors, _) in zip(parts, results, strict=True):
            size = (part.stop - part.start) * length * 4
            if vectors.dimensions != length or len(vectors.buffer) != size or not size:
                number = len(vectors.buffer) // (4 * max(vectors.dimensions, 1))
                what = f"{number} vectors of {vectors.dimensions} numbers for {part.stop - part.start} texts"
                raise ResponseInvalid(
                    f"{self.target} returned {what}; expected one for each text, all of the same length",
                    provider=self.target.provider,
                )
        reply = _merge_replies(self.target, [each.reply for each in results])
        if dimensions not in (None, length) and all(loss.path != "dimensions" for loss in reply.losses):
            reason = f"{self.target} returned vectors of {length} numbers"
            loss = Loss(kind="dropped", path="dimensions", reason=reason)
            reply = reply.model_copy(update={"losses": (*reply.losses, loss)})
        return Embeddings(b"".join(each.output.buffer for each in results), length, reply)


def embedder(
    model: str,
    *,
    api_key: ApiKey | None = None,
    base_url: str | None = None,
    client: Any = None,  # the vendor SDK's client: its type is known to the provider's plugin alone
    settings: Settings | None = None,
    strict: Strict = False,
    at_once: int = 4,
) -> Embedder:
    """Return an embedder for `provider:model`, for example "openai:text-embedding-3-small". Sends nothing.

    `at_once` is the number of requests that may run at the same time. `strict` lists the kinds of loss that raise
    RenderingRefused before anything is sent. The other arguments are those of `sabir.adapter`. Raises SettingsInvalid
    for a wrong argument and for a provider without embeddings, and ProviderMissing, ProviderBroken or PluginConflict if
    the provider cannot be used.

    >>> from sabir_embeddings import embedder
    >>> vectors = embedder("echo:m").embed_sync(["Hello!", "Bye!"], dimensions=64)
    >>> vectors.shape, str(vectors.usage)
    ((2, 64), '2 in, 0 out')
    """
    access: Mapping[str, Any] = {"api_key": api_key, "base_url": base_url, "client": client}
    return Embedder(operation_client(model, OPERATION, settings=settings, strict=strict, **access), at_once=at_once)


def _check_texts(texts: str | Iterable[str]) -> Sequence[str]:
    checked: list[Any] = [texts] if isinstance(texts, str) else list(texts)
    for index, text in enumerate(checked):
        if not isinstance(text, str) or not text:
            raise SettingsInvalid(f"texts[{index}] is {text!r}; expected a text that is not empty; leave it out")
    return checked


def _check_kind_and_dimensions(kind: EmbeddingKind | None, dimensions: int | None) -> None:
    if kind is not None and kind not in get_args(EmbeddingKind):
        raise SettingsInvalid(f"kind is {kind!r}; expected {' or '.join(map(repr, get_args(EmbeddingKind)))}, or None")
    if dimensions is not None and (type(dimensions) is not int or dimensions < 1):
        raise SettingsInvalid(f"dimensions is {dimensions!r}; expected a whole number of at least 1, or None")


def _merge_replies(target: Target, replies: Sequence[Reply]) -> Reply:
    """Return the first reply with the usage, the attempts and the losses of all. Without replies, nothing was sent."""
    if len(replies) == 1:
        return replies[0]
    inputs = [reply.usage.input_tokens for reply in replies]
    outputs = [reply.usage.output_tokens for reply in replies]
    usage = Usage(input_tokens=_sum_known(inputs), output_tokens=_sum_known(outputs))
    if not replies:
        origin = Origin(**{name: getattr(target, name) for name in ("provider", "dialect", "endpoint", "model")})
        return Reply(messages=(), finish_reason="stop", usage=usage, origin=origin, attempts=0)
    losses = tuple(dict.fromkeys(loss for reply in replies for loss in reply.losses))
    attempts = sum(reply.attempts for reply in replies)
    return replies[0].model_copy(update={"usage": usage, "losses": losses, "attempts": attempts})


def _sum_known(numbers: Sequence[int | None]) -> int | None:
    known = [number for number in numbers if number is not None]
    return sum(known) if len(known) == len(numbers) else None
