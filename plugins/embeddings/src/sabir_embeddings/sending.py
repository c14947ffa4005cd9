"""Send the requests of one call, at most `at_once` at the same time, and return the results in their order.

renderings ──▶ at_once workers: tasks, or threads ──▶ results        the first error cancels the others
"""

import asyncio
from collections.abc import Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextvars import copy_context
from typing import TypeAlias

from sabir import Rendering
from sabir.authoring import EmbeddingCall, EmbeddingVectors, OperationClient, OperationResult

Client: TypeAlias = OperationClient[EmbeddingCall, EmbeddingVectors]
Response: TypeAlias = OperationResult[EmbeddingVectors]


async def send_all(client: Client, renderings: Sequence[Rendering], at_once: int) -> list[Response]:
    """Send the requests in tasks. Raises the first error, after the other requests were cancelled."""
    if len(renderings) == 1:
        return [await client.send(renderings[0])]
    results: dict[int, Response] = {}
    remaining = iter(enumerate(renderings))

    async def send_remaining() -> None:
        for index, rendering in remaining:
            results[index] = await client.send(rendering)

    tasks = [asyncio.create_task(send_remaining()) for _ in range(min(at_once, len(renderings)))]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    return [results[index] for index in range(len(renderings))]


def send_all_sync(client: Client, renderings: Sequence[Rendering], at_once: int) -> list[Response]:
    """Send the requests in threads. Raises the first error, after the running requests ended."""
    if len(renderings) == 1:
        return [client.send_sync(renderings[0])]
    with ThreadPoolExecutor(at_once, "sabir-embeddings") as pool:
        futures = [pool.submit(copy_context().run, client.send_sync, rendering) for rendering in renderings]
        try:
            done, _ = wait(futures, return_when=FIRST_EXCEPTION)
            for future in done:
                future.result()
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    return [future.result() for future in futures]
