"""MessageManager: the messages of one conversation, and its turns through an adapter.

    manager.complete(llm, options=…) ─▶ Reply, whose messages are added
    manager.act(options) ─▶ its requests answered by `sabir.answer`, the responses added

The form of the answer from the last instruction is sent as settings, which the call's own settings override. Loops,
recording and resume are left to code that evaluates `manager.to_messages()`.
"""

from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Unpack

import sabir
from sabir import Adapter, Loss, Message, Reply, ReplyStream, Settings, SyncReplyStream
from sabir.authoring import CallArguments, OptionLike, show_arguments

from sabir_roles.actions import ActionResponse
from sabir_roles.collection import Collection


@show_arguments
class MessageManager(Collection):
    """The messages of one conversation. The system message, if there is one, comes first."""

    def _how(self, given: CallArguments) -> CallArguments:
        """The call's arguments: the last instruction's form of the answer, overridden by the call's settings."""
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

        Raises the adapter's errors; nothing is added then. `strict` refuses losses of the rendering, not earlier losses
        of edits.
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

        The rest of the stream is read when the block ends. A block that ends with an error adds nothing.
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

        A request for an option that is not offered gets an error as its output. Raises OptionInvalid, before anything
        runs, for an option that cannot run.
        """
        return self._answered(await sabir.answer(self.to_messages(), options))

    def act_sync(self, options: Iterable[OptionLike]) -> list[ActionResponse]:
        """As `act`, waiting; asynchronous options cannot run so."""
        return self._answered(sabir.answer_sync(self.to_messages(), options))

    def _answered(self, results: Sequence[Message]) -> list[Any]:
        return self._extend(results, "llm")
