"""Embed 10,000 texts at a server on this machine: sabir, a loop written by hand, and libraries that are installed.

    python -m benchmarks.embeddings [--texts 10000] [--rounds 5]

    this process ──requests of up to 2,048 texts──▶ server process: base64 vectors of 1,536 floats

Every contender returns the same vectors, which is checked. The contenders take turns, and each row shows the best and
the median time of all rounds, and the ratio of its median to the median of the loop. Libraries that are not installed
in this environment are left out.
"""

import argparse
import asyncio
import importlib.util
import json
import multiprocessing
import os
import statistics
import time
from array import array
from base64 import b64decode, b64encode
from collections.abc import Callable, Sequence
from functools import partial
from multiprocessing.connection import Connection
from typing import Any, TypeAlias

BATCH, DIMENSIONS = 2_048, 1_536
MODEL = "text-embedding-3-small"
Embed: TypeAlias = Callable[[Sequence[str]], Any]
"""Embeds texts, and returns a buffer of 32-bit floats, or lists of numbers."""
VECTOR = array("f", [((number * 37) % 101 - 50) / 64 for number in range(DIMENSIONS)])
FLOATS, TEXT = VECTOR.tolist(), b64encode(VECTOR.tobytes()).decode()


def answer(body: bytes) -> bytes:
    """Return a response for a request's texts: the same vector for each, in the requested encoding."""
    request = json.loads(body)
    vector = json.dumps(TEXT if request.get("encoding_format") == "base64" else FLOATS)
    entries = ",".join(
        f'{{"object":"embedding","index":{index},"embedding":{vector}}}' for index in range(len(request["input"]))
    )
    usage = f'{{"prompt_tokens":{len(request["input"])},"total_tokens":{len(request["input"])}}}'
    return f'{{"object":"list","data":[{entries}],"model":"{MODEL}","usage":{usage}}}'.encode()


async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer the requests of one connection."""
    while head := await reader.readuntil(b"\r\n\r\n"):
        length = next(int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
        body = answer(await reader.readexactly(length))
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n")
        writer.write(b"content-length: %d\r\n\r\n" % len(body) + body)
        await writer.drain()


async def serve(pipe: Connection) -> None:
    """Serve until the process is ended. Sends the port through the pipe."""

    async def quietly(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await handle(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(quietly, "127.0.0.1", limit=1 << 26)
    pipe.send(server.sockets[0].getsockname()[1])
    await server.serve_forever()


def run_server(pipe: Connection) -> None:
    """Run the server in a process of its own."""
    asyncio.run(serve(pipe))


def by_hand(url: str) -> Embed:
    """A loop over batches, with an HTTP client and base64, as one would write it for this server alone."""
    import httpx2

    client = httpx2.Client(base_url=url, headers={"Authorization": "Bearer k"})

    def embed(texts: Sequence[str]) -> bytes:
        chunks = list[bytes]()
        for start in range(0, len(texts), BATCH):
            body = {"model": MODEL, "input": texts[start : start + BATCH], "encoding_format": "base64"}
            response = client.post("/embeddings", json=body)
            response.raise_for_status()
            chunks += [b64decode(entry["embedding"]) for entry in response.json()["data"]]
        return b"".join(chunks)

    return embed


def with_sabir(url: str, at_once: int) -> Embed:
    """`embed_sync` of sabir-embeddings."""
    from sabir_embeddings import embedder

    model = embedder(f"openai:{MODEL}", api_key="k", base_url=url, at_once=at_once)
    return lambda texts: model.embed_sync(texts).buffer


def with_openai(url: str) -> Embed:
    """A loop over batches with the vendor's SDK."""
    from openai import OpenAI

    client = OpenAI(api_key="k", base_url=url, max_retries=0)

    def embed(texts: Sequence[str]) -> list[list[float]]:
        starts = range(0, len(texts), BATCH)
        responses = (client.embeddings.create(model=MODEL, input=list(texts[at : at + BATCH])) for at in starts)
        return [entry.embedding for response in responses for entry in response.data]

    return embed


def with_litellm(url: str) -> Embed:
    """A loop over batches with litellm."""
    import litellm

    def embed(texts: Sequence[str]) -> list[list[float]]:
        starts = range(0, len(texts), BATCH)
        how = {"model": f"openai/{MODEL}", "api_base": url, "api_key": "k"}
        responses = (litellm.embedding(input=list(texts[at : at + BATCH]), **how) for at in starts)
        return [entry["embedding"] for response in responses for entry in response.data]

    return embed


def with_pydantic_ai(url: str) -> Embed:
    """A loop over batches with pydantic-ai."""
    from pydantic_ai import Embedder
    from pydantic_ai.embeddings.openai import OpenAIEmbeddingModel
    from pydantic_ai.providers.openai import OpenAIProvider

    embedder = Embedder(OpenAIEmbeddingModel(MODEL, provider=OpenAIProvider(base_url=url, api_key="k")))

    def embed(texts: Sequence[str]) -> list[Sequence[float]]:
        starts = range(0, len(texts), BATCH)
        responses = (embedder.embed_documents_sync(list(texts[at : at + BATCH])) for at in starts)
        return [vector for response in responses for vector in response.embeddings]

    return embed


CONTENDERS: dict[str, tuple[str, Callable[[str], Embed]]] = {
    "a loop by hand": ("httpx2", by_hand),
    "sabir, one request at a time": ("sabir_embeddings", partial(with_sabir, at_once=1)),
    "sabir, four at a time": ("sabir_embeddings", partial(with_sabir, at_once=4)),
    "openai": ("openai", with_openai),
    "litellm": ("litellm", with_litellm),
    "pydantic-ai": ("pydantic_ai.embeddings", with_pydantic_ai),
}
"""Name → the module that it needs, and how to create it for a URL. The first is compared with the others."""


def is_installed(module: str) -> bool:
    """Return whether a module can be imported here."""
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def is_complete(vectors: Any, count: int) -> bool:
    """Return whether the vectors are those of the server, for every text."""
    if isinstance(vectors, bytes):
        return vectors == VECTOR.tobytes() * count
    return len(vectors) == count and all(array("f", vector) == VECTOR for vector in (vectors[0], vectors[-1]))


def measure(url: str, count: int, rounds: int) -> dict[str, list[float]]:
    """Return the seconds of each round, by contender. The first round is not counted."""
    texts = [f"Text number {number}: the quick brown fox jumps over the lazy dog." for number in range(count)]
    embeds = {name: create(url) for name, (module, create) in CONTENDERS.items() if is_installed(module)}
    seconds: dict[str, list[float]] = {name: [] for name in embeds}
    for number in range(rounds + 1):
        for name, embed in embeds.items():
            start = time.perf_counter()
            vectors = embed(texts)
            duration = time.perf_counter() - start
            assert is_complete(vectors, count), name
            seconds[name] += [duration] if number else []
    return seconds


def main() -> None:
    """Start the server, measure, and print a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--texts", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    receiver, sender = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.get_context("spawn").Process(target=run_server, args=(sender,), daemon=True)
    process.start()
    try:
        url = f"http://127.0.0.1:{receiver.recv()}"
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
            os.environ.pop(name, None)
        seconds = measure(url, arguments.texts, arguments.rounds)
    finally:
        process.kill()
    base = statistics.median(next(iter(seconds.values())))
    print(f"{arguments.texts:,} texts, {arguments.rounds} rounds\n{'':32}best    median  ratio")
    for name, times in seconds.items():
        median = statistics.median(times)
        print(f"{name:30}{min(times):6.3f} s{median:8.3f} s{median / base:6.2f}")


if __name__ == "__main__":
    main()
