"""Completes many prompts with one adapter, some at a time.

complete_many(llm, prompts)        a list of outcomes, in the order of the prompts
each_completed(llm, prompts)       an iterator of outcomes, in the order in which they arrive

prompts ──next_outcomes──▶ running calls ──collect──▶ outcomes         _Run decides; the functions below only wait
"""

import asyncio
import logging
import os
from collections.abc import AsyncGenerator, Callable, Generator, Iterable, Iterator, Sized
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import aclosing, closing
from queue import Queue
from typing import Generic, TypeAlias, TypeVar, Unpack

from sabir import Adapter, Message, Reply, SabirError, SettingsInvalid
from sabir.authoring import CallArguments, Messages, show_arguments

from sabir_calls.arguments import repeatable
from sabir_calls.cache.keys import request_key
from sabir_calls.many.journal import ReplyJournal
from sabir_calls.many.outcomes import Outcome, Progress, is_failure

logger = logging.getLogger("sabir_calls")

ProgressFunction: TypeAlias = Callable[[Progress], object]
"""A function that is called after each change of the progress, in the thread or task that iterates."""
CallT = TypeVar("CallT", "asyncio.Task[Reply]", "Future[Reply]")
"""The type of a running call, of an event loop or of a thread."""


Prompts: TypeAlias = Iterable[Messages]
"""Conversations to send: each is a string, a message or a list of messages."""
OutcomeIterator: TypeAlias = AsyncGenerator[Outcome, None]
"""An async iterator of outcomes, which `contextlib.aclosing` closes."""
SyncOutcomeIterator: TypeAlias = Generator[Outcome, None, None]
"""An iterator of outcomes, which `contextlib.closing` closes."""


class ManyArguments(CallArguments, total=False):
    """The optional arguments of `complete_many`.

    at_once: the number of calls that may run at the same time; 8 by
        default.
    progress: a function that is called with a Progress after each
        change.
    resume: the path of a file for the replies. A later run with the same
        file reads these replies, and sends only the other prompts.
    """

    at_once: int
    progress: ProgressFunction | None
    resume: str | os.PathLike[str] | None


class _Run(Generic[CallT]):
    """One run over prompts: starts the calls, stores the replies, and counts them. Each call that ends is put into the
    queue `ended`.
    """

    def __init__(
        self, llm: Adapter, prompts: Prompts, arguments: ManyArguments, ended: "asyncio.Queue[CallT] | Queue[CallT]"
    ) -> None:
        self._ended: asyncio.Queue[CallT] | Queue[CallT] = ended
        self.at_once = arguments.pop("at_once", 8)
        """The number of calls that may run at the same time."""
        self._report = arguments.pop("progress", None)
        resume = arguments.pop("resume", None)
        if type(self.at_once) is not int or self.at_once < 1:
            raise SettingsInvalid(f"at_once is {self.at_once!r}; expected a whole number of at least 1")
        self._llm = llm
        self.how: CallArguments = repeatable((), arguments)[1]
        """The arguments of each call."""
        self._prompts = enumerate(prompts)
        self._journal = None if resume is None else ReplyJournal(resume)
        self._entry_keys: dict[int, tuple[str, int]] = {}
        self.running: dict[CallT, int] = {}
        """Each running call, and the index of its prompt."""
        self._progress = Progress(total=len(prompts) if isinstance(prompts, Sized) else None)

    def next_outcomes(self, start: Callable[[list[Message]], CallT]) -> Iterator[Outcome]:
        """Start calls with `start` until `at_once` are running. Yield the outcomes of replies of earlier runs."""
        while len(self.running) < self.at_once and (following := next(self._prompts, None)):
            index, prompt = following
            messages, _ = repeatable(prompt, {})
            known = self._stored_reply(index, messages)
            if known is not None:
                yield self._count_outcome(Outcome(index, known, is_resumed=True))
            else:
                call = start(messages)
                call.add_done_callback(self._ended.put_nowait)
                self.running[call] = index
                self._set_progress(self._progress.started())

    def collect(self, done: Iterable[CallT]) -> list[Outcome]:
        """Store and count the results of calls that are done, and return their outcomes.

        Raises an error that does not belong to one prompt alone, after the other results are stored.
        """
        outcomes, errors = list[Outcome](), list[BaseException]()
        for call in done:
            index = self.running.pop(call)
            error = call.exception()
            if error is None:
                if self._journal is not None:
                    self._journal.append(self._entry_keys.pop(index), call.result())
                outcomes.append(self._count_outcome(Outcome(index, call.result())))
            elif isinstance(error, SabirError) and is_failure(error):
                outcomes.append(self._count_outcome(Outcome(index, error=error)))
            else:
                errors.append(error)
        for error in errors:
            raise error
        return outcomes

    def end_early(self, reason: BaseException) -> None:
        """Store the replies that have arrived, after the exception `reason` ended the run.

        Add a note about the progress and possible charges to `reason`, unless the iterator was closed while no call was
        running.
        """
        self.collect([call for call in self.running if _has_reply(call)])
        unfinished = len(self.running)
        if unfinished or not isinstance(reason, GeneratorExit):
            note = f"ended early: {self._progress}; started calls without a reply, which may be charged: {unfinished}"
            reason.add_note(note)
            logger.warning("%s", note)

    def close(self) -> None:
        """Close the file of the replies."""
        if self._journal is not None:
            self._journal.close()

    def _stored_reply(self, index: int, messages: list[Message]) -> Reply | None:
        """Return the reply of an earlier run to this prompt, or None."""
        if self._journal is None:
            return None
        how = self.how.copy()
        how["strict"] = False  # the call itself raises an error for losses
        rendering = self._llm.render(messages, **how)
        entry_key = self._journal.claim(request_key(rendering, getattr(self._llm, "speaks_as", "llm")))
        self._entry_keys[index] = entry_key
        return self._journal.find(entry_key)

    def _count_outcome(self, outcome: Outcome) -> Outcome:
        self._set_progress(self._progress.finished(outcome))
        return outcome

    def _set_progress(self, progress: Progress) -> None:
        self._progress = progress
        if self._report is not None:
            self._report(progress)


@show_arguments
async def complete_many(llm: Adapter, prompts: Prompts, **arguments: Unpack[ManyArguments]) -> list[Outcome]:
    """Send each prompt as a conversation of its own, and return the outcomes in the order of the prompts.

    A prompt is a string, a message or a list of messages. If a call raises a CallError or RenderingRefused, its outcome
    has this `error`, and the other calls continue. Any other error, such as SettingsInvalid, ends the run and is
    raised. Raises JournalError if the `resume` file cannot be used.

    If the program is killed, run it again with the same prompts and `resume` file: replies that arrived are read from
    the file. If the run raises or is cancelled, a note on the exception and a log line say how many replies arrived.

    >>> import asyncio, sabir, sabir_calls
    >>> outcomes = asyncio.run(sabir_calls.complete_many(sabir.adapter("echo:m"), ["Hello!", "Bye!"]))
    >>> [outcome.text for outcome in outcomes]
    ['Hello!', 'Bye!']
    """
    async with aclosing(each_completed(llm, prompts, **arguments)) as outcomes:
        return sorted([each async for each in outcomes], key=_index)


@show_arguments
async def each_completed(llm: Adapter, prompts: Prompts, **arguments: Unpack[ManyArguments]) -> OutcomeIterator:
    """Yield the outcome of each prompt as soon as its call ends. Otherwise like `complete_many`.

    `prompts` is read as the calls need it, so it may be an endless iterator. The running calls are cancelled when the
    generator is closed, for example by `contextlib.aclosing`.
    """
    ended = asyncio.Queue[asyncio.Task[Reply]]()
    run = _Run(llm, prompts, arguments, ended)
    try:
        while True:
            for outcome in run.next_outcomes(lambda each: asyncio.create_task(_complete_prompt(llm, each, run.how))):
                yield outcome
            if not run.running:
                return
            for outcome in run.collect([await ended.get(), *_contents_of(ended)]):
                yield outcome
    except BaseException as error:
        await _cancel_tasks(run.running)
        run.end_early(error)
        raise
    finally:
        run.close()


@show_arguments
def complete_many_sync(llm: Adapter, prompts: Prompts, **arguments: Unpack[ManyArguments]) -> list[Outcome]:
    """Sync version of `complete_many`. Calls run in threads. An interrupt waits for the calls that are running."""
    with closing(each_completed_sync(llm, prompts, **arguments)) as outcomes:
        return sorted(outcomes, key=_index)


@show_arguments
def each_completed_sync(llm: Adapter, prompts: Prompts, **arguments: Unpack[ManyArguments]) -> SyncOutcomeIterator:
    """Sync version of `each_completed`. Calls run in threads. Closing the generator waits for running calls."""
    ended = Queue[Future[Reply]]()
    run = _Run(llm, prompts, arguments, ended)
    with closing(run), ThreadPoolExecutor(run.at_once, "sabir-calls") as pool:
        try:
            while True:
                yield from run.next_outcomes(lambda each: pool.submit(llm.complete_sync, each, **run.how))
                if not run.running:
                    return
                yield from run.collect([ended.get(), *_contents_of(ended)])
        except BaseException as error:
            pool.shutdown(cancel_futures=True)
            run.end_early(error)
            raise


def _contents_of(queue: "asyncio.Queue[CallT] | Queue[CallT]") -> Iterator[CallT]:
    """Remove and yield what is in a queue now. Nobody else may read the queue meanwhile."""
    while not queue.empty():
        yield queue.get_nowait()


async def _complete_prompt(llm: Adapter, messages: list[Message], how: CallArguments) -> Reply:
    return await llm.complete(messages, **how)


async def _cancel_tasks(tasks: Iterable[asyncio.Task[Reply]]) -> None:
    """Cancel tasks, and wait for their end."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _has_reply(call: asyncio.Task[Reply] | Future[Reply]) -> bool:
    return call.done() and not call.cancelled() and call.exception() is None


def _index(outcome: Outcome) -> int:
    return outcome.index
