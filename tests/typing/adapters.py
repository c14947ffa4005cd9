"""Checked by the type checker, never run: what an adapter takes, and what a wrapper of one must offer."""

from typing import Unpack, assert_type

import sabir
from sabir.authoring import CallArguments, Messages, WrappedAdapter
from sabir.contract.dialect import Rendering
from sabir.vocabulary.reply import Reply


class Cached(WrappedAdapter):
    """A wrapper overrides what it changes."""

    def __init__(self, inner: sabir.Adapter) -> None:
        super().__init__(inner)
        self._replies: dict[bytes, Reply] = {}

    async def send(self, rendering: Rendering) -> Reply:
        if rendering.body_bytes not in self._replies:
            self._replies[rendering.body_bytes] = await self.inner.send(rendering)
        return self._replies[rendering.body_bytes]

    async def complete(self, messages: Messages, **how: Unpack[CallArguments]) -> Reply:
        return await self.send(self.render(messages, **how))


async def calls() -> None:
    """What may be written, and what may not."""
    llm = sabir.adapter("echo:m")
    wrapped: sabir.Adapter = Cached(llm)
    assert_type(Cached(wrapped).speaks_as, str)
    Cached(llm).complet  # type: ignore[attr-defined]  # noqa: B018
    assert_type(await wrapped.complete("hi", settings=sabir.Settings(seed=1)), Reply)
    assert_type(llm.complete_sync([sabir.user("hi")], options=[print], strict={"dropped"}), Reply)
    async with llm.stream("hi") as stream:
        async for text in stream.text:
            assert_type(text, str)
        assert_type(await stream.reply(), Reply)
    with llm.stream_sync("hi") as stream_sync:
        for text in stream_sync.text:
            assert_type(text, str)
        assert_type(stream_sync.reply(), Reply)
    llm.complete_sync("hi", tools=[])  # type: ignore[call-arg]
    llm.complete_sync("hi", strict={"lost"})  # type: ignore[arg-type]
    sabir.adapter("echo:m", temperature=1)  # type: ignore[arg-type]
