"""Checked by the type checker, never run: what an adapter takes, and what a wrapper of one must offer."""

from typing import Unpack, assert_type

import sabir
from sabir.calling.calls import CallArguments, Messages
from sabir.calling.stream import ReplyStream, SyncReplyStream
from sabir.contract.dialect import Rendering
from sabir.vocabulary.reply import Reply
from sabir.vocabulary.settings import Target


class Cached:
    """A wrapper passes on what it is given, whatever that is."""

    def __init__(self, inner: sabir.Adapter) -> None:
        self._inner = inner
        self._replies: dict[bytes, Reply] = {}

    @property
    def target(self) -> Target:
        return self._inner.target

    def render(self, messages: Messages, **how: Unpack[CallArguments]) -> Rendering:
        return self._inner.render(messages, **how)

    async def send(self, rendering: Rendering) -> Reply:
        if rendering.body_bytes not in self._replies:
            self._replies[rendering.body_bytes] = await self._inner.send(rendering)
        return self._replies[rendering.body_bytes]

    def send_sync(self, rendering: Rendering) -> Reply:
        return self._inner.send_sync(rendering)

    async def complete(self, messages: Messages, **how: Unpack[CallArguments]) -> Reply:
        return await self.send(self.render(messages, **how))

    def complete_sync(self, messages: Messages, **how: Unpack[CallArguments]) -> Reply:
        return self.send_sync(self.render(messages, **how))

    def stream(self, messages: Messages | Rendering, **how: Unpack[CallArguments]) -> ReplyStream:
        return self._inner.stream(messages, **how)

    def stream_sync(self, messages: Messages | Rendering, **how: Unpack[CallArguments]) -> SyncReplyStream:
        return self._inner.stream_sync(messages, **how)

    async def aclose(self) -> None:
        await self._inner.aclose()

    def close(self) -> None:
        self._inner.close()


async def calls() -> None:
    """What may be written, and what may not."""
    llm = sabir.adapter("echo:m")
    wrapped: sabir.Adapter = Cached(llm)
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
