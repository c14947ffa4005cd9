"""The four ways to ask a model, by their names: each returns the text of the reply."""

import asyncio
from collections.abc import Callable
from typing import Any

import sabir


async def _complete(llm: sabir.ModelAdapter, how: Any) -> str:
    async with llm:
        return (await llm.complete("Hi", **how)).text


async def _stream(llm: sabir.ModelAdapter, how: Any) -> str:
    async with llm, llm.stream("Hi", **how) as each:
        return (await each.reply()).text


WAYS: dict[str, Callable[..., str]] = {
    "whole": lambda llm, **how: llm.complete_sync("Hi", **how).text,
    "whole, async": lambda llm, **how: asyncio.run(_complete(llm, how)),
    "streamed": lambda llm, **how: llm.stream_sync("Hi", **how).reply().text,
    "streamed, async": lambda llm, **how: asyncio.run(_stream(llm, how)),
}
