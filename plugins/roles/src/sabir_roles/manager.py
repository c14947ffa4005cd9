"""MessageManager: the messages of one conversation, which it sends through an adapter.

    manager.complete(llm, options=…) ─▶ Reply, whose messages are added
    manager.act(options) ─▶ runs the requested functions and adds the responses

The response format of the last instruction is sent as a setting, unless the call's own settings contain one. A manager
does not loop, record or resume; to do this, pass `manager.to_messages()` to sabir-session.
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
    """The messages of one conversation, which you can edit, send to a model, store and load. Thread-safe.

    `messages` are the first messages; None means none. `progression` lists their ids in the wanted order; None means
    the order of `messages`. `system` is the system message; it comes first, and replaces the first System of
    `messages`. Raises RoleError for invalid arguments.

    >>> import sabir, sabir_roles
    >>> manager = sabir_roles.MessageManager(system=sabir_roles.System.create("Be brief."))
    >>> instruction = manager.add_message(instruction="Hello!")
    >>> manager.complete_sync(sabir.adapter("echo:m")).text
    'Hello!'
    """

    def _add_response_format(self, how: CallArguments) -> CallArguments:
        """Return the arguments of a call, with the response format of the last instruction unless the call has one."""
        last = self.last_instruction
        own_settings = last.settings if last is not None else Settings()
        if not own_settings.model_fields_set:
            return how
        settings = how.get("settings")
        return {**how, "settings": own_settings if settings is None else settings.laid_over(own_settings)}

    def _record_reply(self, reply: Reply, losses: tuple[Loss, ...]) -> Reply:
        self.add_reply(reply)
        return reply.model_copy(update={"losses": (*losses, *reply.losses)}) if losses else reply

    async def complete(self, llm: Adapter, **how: Unpack[CallArguments]) -> Reply:
        """Send all messages to a model, add the messages of the reply, and return the reply.

        `llm` is an adapter, and `how` are the arguments of its `complete`. The losses of the reply begin with those of
        the manager (see `losses`), for which `strict` raises nothing. Raises the adapter's errors, RoleError for
        invalid content, and TemplateFailed if a template cannot be rendered; nothing is added then.
        """
        messages, losses = self.to_messages(), self.losses
        return self._record_reply(await llm.complete(messages, **self._add_response_format(how)), losses)

    def complete_sync(self, llm: Adapter, **how: Unpack[CallArguments]) -> Reply:
        """Sync version of `complete`. Blocks the thread."""
        messages, losses = self.to_messages(), self.losses
        return self._record_reply(llm.complete_sync(messages, **self._add_response_format(how)), losses)

    @asynccontextmanager
    async def stream(self, llm: Adapter, **how: Unpack[CallArguments]) -> AsyncIterator[ReplyStream]:
        """Send all messages to a model, and yield the reply as a stream: `async with manager.stream(llm) as stream`.

        At the end of the block, the stream is read to its end, and the messages of the reply are added. If the block or
        the stream raises, nothing is added. Unlike `complete`, the reply's losses do not contain the manager's
        `losses`.
        """
        async with llm.stream(self.to_messages(), **self._add_response_format(how)) as stream:
            yield stream
            self.add_reply(await stream.reply())

    @contextmanager
    def stream_sync(self, llm: Adapter, **how: Unpack[CallArguments]) -> Iterator[SyncReplyStream]:
        """Sync version of `stream`. Reading blocks the thread."""
        with llm.stream_sync(self.to_messages(), **self._add_response_format(how)) as stream:
            yield stream
            self.add_reply(stream.reply())

    async def act(self, options: Iterable[OptionLike]) -> list[ActionResponse]:
        """Run the options of all action requests without a response, add the responses, and return them in the order of
        the requests.

        If an option fails, or a request names an option that is not in `options`, the response's output is the error. A
        request whose response was not added to the manager is run again. Raises OptionInvalid for invalid `options` and
        for a called option that cannot run, and CallsTooDeep for endlessly nested calls. No response is added then, but
        options of earlier requests may have run.
        """
        return self._add_responses(await sabir.answer(self.to_messages(), options))

    def act_sync(self, options: Iterable[OptionLike]) -> list[ActionResponse]:
        """Sync version of `act`. Blocks the thread. Also raises OptionInvalid, before anything runs, if a called
        option is a coroutine function.
        """
        return self._add_responses(sabir.answer_sync(self.to_messages(), options))

    def _add_responses(self, results: Sequence[Message]) -> list[Any]:
        return self._extend(results, "llm")
