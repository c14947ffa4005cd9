"""MessageManager: the messages of one conversation, and its turns through an adapter.

    manager.complete(llm, options=…) ─▶ Reply, whose messages are added
    manager.act(options) ─▶ its requests answered by `sabir.answer`, the responses added

What the last instruction asks of the form of the answer goes along as settings, under what the call sets. Loops,
recording and resume are for whoever evaluates `manager.to_messages()`.
"""

from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Unpack

import sabir
from sabir import Adapter, Loss, Message, Reply, ReplyStream, Settings, SyncReplyStream
from sabir.authoring import CallArguments, OptionLike

from sabir_roles.actions import ActionResponse
from sabir_roles.collection import Collection


class MessageManager(Collection):
    """The messages of one conversation. The system message, where there is one, comes first."""

    def _how(self, given: CallArguments) -> CallArguments:
        """How the call is made: the form that the last instruction asks for, under what is set."""
        last = self.last_instruction
        asked = last.settings if last is not None else Settings()
        if not asked.model_fields_set:
            return given
        settings = given.get("settings")
        return {**given, "settings": asked if settings is None else settings.laid_over(asked)}

    def _added(self, reply: Reply, lost: tuple[Loss, ...]) -> Reply:
        self.add_reply(reply)
        return reply.model_copy(update={"losses": (*lost, *reply.losses)}) if lost else reply

    async def complete(self, llm: Adapter, **how: Unpack[CallArguments]) -> Reply:
        """One turn: the reply, whose messages are added; its losses begin with those of edited messages.

        Raises what the adapter raises; nothing is added then. `strict` refuses what the rendering would lose, not what
        an edit lost before it.
        """
        messages, lost = self.to_messages(), self.losses
        return self._added(await llm.complete(messages, **self._how(how)), lost)

    def complete_sync(self, llm: Adapter, **how: Unpack[CallArguments]) -> Reply:
        """As `complete`, waiting."""
        messages, lost = self.to_messages(), self.losses
        return self._added(llm.complete_sync(messages, **self._how(how)), lost)

    @asynccontextmanager
    async def stream(self, llm: Adapter, **how: Unpack[CallArguments]) -> AsyncIterator[ReplyStream]:
        """One turn as it comes: `async with manager.stream(llm) as stream`; the whole reply is added at the end.

        What is left of the stream when the block ends is read. A block that is left by an error adds nothing.
        """
        async with llm.stream(self.to_messages(), **self._how(how)) as stream:
            yield stream
            self.add_reply(await stream.reply())

    @contextmanager
    def stream_sync(self, llm: Adapter, **how: Unpack[CallArguments]) -> Iterator[SyncReplyStream]:
        """As `stream`, waiting."""
        with llm.stream_sync(self.to_messages(), **self._how(how)) as stream:
            yield stream
            self.add_reply(stream.reply())

    async def act(self, options: Iterable[OptionLike]) -> list[ActionResponse]:
        """Answer every unanswered request, in order, by its option; the responses, which are added.

        A request of what is not offered gets an error for its output. Raises OptionInvalid, before anything runs,
        for an option that cannot run.
        """
        return self._answered(await sabir.answer(self.to_messages(), options))

    def act_sync(self, options: Iterable[OptionLike]) -> list[ActionResponse]:
        """As `act`, waiting; asynchronous options cannot run so."""
        return self._answered(sabir.answer_sync(self.to_messages(), options))

    def _answered(self, results: Sequence[Message]) -> list[Any]:
        return self._extend(results, "llm")
