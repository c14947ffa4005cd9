"""Performers do the I/O of evaluations: send requests, ask for approval, run options, record, report progress.

Performers decide nothing. In an event loop, the calls of one reply run at the same time, each in its own task. Without
an event loop, the calls run one after another in this thread. An error or a cancellation cancels running coroutines,
and sets `ToolContext.cancelled` for options in threads, which run on.
"""

import inspect
import logging
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from concurrent.futures import wait
from dataclasses import dataclass, field
from functools import cached_property, partial
from threading import Event as Signal
from typing import TYPE_CHECKING, Any, NamedTuple

import sabir
from sabir import Message, Rendering, Reply, SettingsInvalid, ToolContext
from sabir.authoring import (
    AgentWork,
    CallArguments,
    CallDepth,
    OptionCall,
    Signature,
    announce_work,
    call_function,
    run_in_thread,
)
from typing_extensions import TypeAliasType

from sabir_session.evaluation.approval import Approve, Decision, as_decision
from sabir_session.evaluation.budgets import Spending
from sabir_session.evaluation.evaluations import OpenCall
from sabir_session.evaluation.events import CallProgress, CallStarted, Event, EventConverter, Reader, Watch
from sabir_session.evaluation.outputs import OUTPUT_OPTION, Requests
from sabir_session.evaluation.prompt_caches import CacheWatch
from sabir_session.evaluation.prompts import BudgetExhausted
from sabir_session.records import InnerMessage
from sabir_session.state.session import Session

if TYPE_CHECKING:
    import asyncio


logger = logging.getLogger("sabir")

Recorder = TypeAliasType("Recorder", Callable[[Callable[[], None]], Awaitable[None]])
"""A coroutine function that is awaited for each write of one or more records to a session. Its argument is the function
that writes, which the coroutine function must call, for example in a thread."""
LEAVING = 1.0
"""How many seconds cancelled coroutines have to end after the time of the budget is over."""


class CallRun(NamedTuple):
    """A call that a person allowed, or that needs no approval. `message` has the arguments as the person left them."""

    open_call: OpenCall
    message: OptionCall


class EndedCall(NamedTuple):
    """A run and its result."""

    run: CallRun
    result: Message


@dataclass
class StepPerformer(ABC):
    """The I/O of an evaluation: requests, session, budget, approval and watchers.

    `question` is the id of the question's first message, for the events. `prepared` is the rendering of the first
    request, or None if the request was not rendered before. `cache_watch` compares the requests for their use of a
    prompt cache, or is None.
    """

    requests: Requests
    session: Session | None
    spending: Spending
    approve: Approve | None = None
    watch: Watch | None = None
    reader: Reader | None = None
    question: str = ""
    prepared: Rendering | None = None
    cache_watch: CacheWatch | None = None
    recorder: Recorder | None = field(default=None, init=False)

    @cached_property
    def cancelled(self) -> Signal:
        """The signal that is set when running options must stop."""
        return Signal()

    def stop_options(self) -> None:
        """Set the signal `cancelled`, if an option has it."""
        if "cancelled" in vars(self):
            self.cancelled.set()

    @property
    def options_to_approve(self) -> frozenset[str] | None:
        """The options whose calls need approval; None without an `approve` function."""
        return None if self.approve is None else frozenset(option.name for option in self.requests.functions)

    async def record(self, *records: InnerMessage) -> None:
        """Append records to the session. Without a session, do nothing."""
        if self.session is not None:
            _append_records(self.session, records)

    def emit(self, event: Event) -> None:
        """Report an event to the watcher and the stream. A watcher's error is only logged."""
        if self.reader is not None:
            self.reader.emit(event)
        try:
            if self.watch is not None:
                self.watch(event)
        except Exception as error:
            logger.warning("watch failed at %s: %s: %s", type(event).__name__, type(error).__name__, error)

    async def emit_and_wait(self, event: Event) -> None:
        """Report an event, and wait until the stream's reader has read it."""
        self.emit(event)
        await self.wait_until_read()

    async def wait_until_read(self) -> None:
        """Wait until the stream's reader, if there is one, has read all events."""
        if self.reader is not None:
            await self.reader.wait_until_read()

    @property
    def must_stream(self) -> bool:
        """Whether there is a watcher or a stream, so that replies must be streamed."""
        return self.watch is not None or self.reader is not None

    @property
    def runs_options(self) -> bool:
        """Whether option calls are running, whose results may still have to be recorded."""
        return False

    def event_converter(self) -> EventConverter:
        """Return the converter for the events of one reply's stream."""
        return EventConverter(OUTPUT_OPTION if self.requests.sends_output_option else None, self.question)

    def pop_prepared(self) -> Rendering | None:
        """Return the rendering of the first request, and None in later calls."""
        prepared, self.prepared = self.prepared, None
        return prepared

    def prepare_request(self, messages: list[Message]) -> list[Message] | Rendering:
        """Return what to send for these messages: a rendering that the cache watch noted, or else the messages."""
        rendering = self.pop_prepared()
        if self.cache_watch is None or not self.requests.sends_renderings:
            return rendering or messages
        rendering = rendering or self.requests.adapter.render(messages, **self.requests.call_arguments)
        return self.cache_watch.add_request(rendering, messages, self.requests)

    def arguments_for(self, request: list[Message] | Rendering) -> CallArguments:
        """Return the arguments of a request; none for a rendering, which contains them."""
        return CallArguments() if isinstance(request, Rendering) else self.requests.call_arguments

    @abstractmethod
    async def complete(self, request: list[Message] | Rendering) -> Reply:
        """Send a request and return the reply."""

    @abstractmethod
    async def call_user(self, argument: str, function: Callable[[], Any]) -> Any:  # the function's own type
        """Call a function of the caller, and return its result. `argument` names the function in errors.

        In an event loop, a coroutine function is awaited. A sync performer raises SettingsInvalid for such a function.
        """

    async def decide(self, call: OptionCall) -> Decision:
        """Call the `approve` function with a call, and return its decision. Waits until the stream is read so far."""
        assert self.approve is not None
        await self.wait_until_read()
        return as_decision(await self.call_user("approve", partial(self.approve, call)))

    @abstractmethod
    def start(self, runs: Sequence[CallRun]) -> None:
        """Prepare calls to run. In an event loop, all start at once. A sync performer only queues them."""

    @abstractmethod
    async def next_result(self) -> EndedCall:
        """Wait until one of the calls from `start` ends, and return the call with its result.

        A sync performer runs the next call here. Raises BudgetExhausted when the time of the budget is over.
        """

    async def stop(self) -> list[EndedCall]:
        """Stop the running calls. Return the calls that ended before they could be stopped."""
        return []

    def time_over_error(self, runs: Iterable[CallRun]) -> BudgetExhausted:
        """Return the BudgetExhausted error for the end of the time, and log a warning for each call that still runs."""
        running = [run.message for run in runs]
        for message in running:
            name, call_id = message.call.option_name, message.call.invocation_id
            logger.warning(
                "the time is over, but the option %s still runs for the call %s; its result will be discarded",
                name,
                call_id,
            )
        return self.spending.time_over(running)

    def create_context(self, run: CallRun, emit: Callable[[Event], None]) -> ToolContext:
        """Report CallStarted, and return the context of a run. `emit` is called with the option's progress events."""

        def report(done: float, total: float | None, text: str) -> None:
            emit(CallProgress(run.open_call.message, done, total, text, question=self.question))

        self.emit(CallStarted(run.open_call.message, run.open_call.is_resume, question=self.question))
        return ToolContext(
            call_id=run.message.call.invocation_id,
            is_resume=run.open_call.is_resume,
            idempotency_key=run.open_call.key,
            cancelled=self.cancelled,
            _report=report,
        )


@dataclass
class SyncPerformer(StepPerformer):
    """Does the I/O of an evaluation without an event loop. Its coroutines suspend only until a stream's reader has read
    the events. Option calls run when `next_result` is called.
    """

    _queued: deque[CallRun] = field(default_factory=deque, init=False)

    async def complete(self, request: list[Message] | Rendering) -> Reply:
        """Send a request and return the reply, streamed if there is a watcher or a stream."""
        adapter, how = self.requests.adapter, self.arguments_for(request)
        if not self.must_stream:
            if isinstance(request, Rendering):
                return adapter.send_sync(request)
            return adapter.complete_sync(request, **how)
        with adapter.stream_sync(request, **how) as stream:
            for event in map(self.event_converter(), stream):
                if event is not None:
                    await self.emit_and_wait(event)
            return stream.reply()

    async def call_user(self, argument: str, function: Callable[[], Any]) -> Any:  # the function's own type
        """Call a function in this thread. Raises SettingsInvalid if the function returns a coroutine."""
        returned = function()
        if inspect.iscoroutine(returned):
            returned.close()
            raise SettingsInvalid(f"{argument} is a coroutine function; use the async method, or pass a sync function")
        return returned

    def start(self, runs: Sequence[CallRun]) -> None:
        """Store the calls. Each begins when `next_result` is called."""
        self._queued.extend(runs)

    async def next_result(self) -> EndedCall:
        """Run the next call in this thread, and return it with its result.

        With a time limit, the call runs in its own thread. When the time is over, raises BudgetExhausted and leaves the
        thread running.
        """
        left = self.spending.seconds_left()
        if left == 0:
            raise self.time_over_error(())
        run = self._queued.popleft()
        context = self.create_context(run, self.emit)
        await self.wait_until_read()
        if left is None:
            return self._run_call(run, context)
        future = run_in_thread(partial(self._run_call, run, context))
        wait([future], timeout=left)
        if future.done():
            return future.result()
        raise self.time_over_error([run])

    def _run_call(self, run: CallRun, context: ToolContext) -> EndedCall:
        name = run.message.call.option_name
        with (
            announce_work(AgentWork("option", name, option_call=run.message)) as work,
            context.entered(),
            CallDepth.one_deeper(name),
        ):
            (work.option_result,) = sabir.answer_sync([run.message], self.requests.options)
            return EndedCall(run, work.option_result)


@dataclass
class LoopPerformer(StepPerformer):
    """Performs in an event loop. Each started call has a task."""

    _running: "dict[asyncio.Task[EndedCall], CallRun]" = field(default_factory=dict, init=False)
    _ended_calls: list[EndedCall] = field(default_factory=list, init=False)

    async def record(self, *records: InnerMessage) -> None:
        """Append records to the session, with one call of the recorder if there is one."""
        if self.session is None or self.recorder is None:
            return await super().record(*records)
        await self.recorder(partial(_append_records, self.session, records))

    @property
    def runs_options(self) -> bool:
        """Whether option calls are running, whose results may still have to be recorded."""
        return bool(self._running)

    async def complete(self, request: list[Message] | Rendering) -> Reply:
        """Send a request and return the reply, streamed if there is a watcher or a stream."""
        adapter, how = self.requests.adapter, self.arguments_for(request)
        if not self.must_stream:
            if isinstance(request, Rendering):
                return await adapter.send(request)
            return await adapter.complete(request, **how)
        async with adapter.stream(request, **how) as stream:
            event_converter = self.event_converter()
            async for each in stream:
                if (event := event_converter(each)) is not None:
                    await self.emit_and_wait(event)
            return await stream.reply()

    async def call_user(self, argument: str, function: Callable[[], Any]) -> Any:  # the function's own type
        """Call a function. A coroutine function is awaited; any other function runs in a thread."""
        if Signature.is_asynchronous(function):
            return await function()
        return await call_function(lambda _: function(), None)

    def start(self, runs: Sequence[CallRun]) -> None:
        """Start a task for each call."""
        import asyncio

        self._running = {asyncio.ensure_future(self._run_call(run)): run for run in runs}

    async def _run_call(self, run: CallRun) -> EndedCall:
        context = self.create_context(run, _in_loop_thread(self.emit))
        name = run.message.call.option_name
        with (
            announce_work(AgentWork("option", name, option_call=run.message)) as work,
            context.entered(),
            CallDepth.one_deeper(name),
        ):
            (work.option_result,) = await sabir.answer([run.message], self.requests.options)
            return EndedCall(run, work.option_result)

    async def next_result(self) -> EndedCall:
        """Wait for the next call that ends. When the time is over, cancel all calls and raise BudgetExhausted."""
        import asyncio

        while not (ended := [task for task in self._running if task.done()]):
            left = self.spending.seconds_left()
            if left == 0:
                raise self.time_over_error(await self._cancel_runs(LEAVING))
            await asyncio.wait(self._running, timeout=left, return_when=asyncio.FIRST_COMPLETED)
        del self._running[ended[0]]
        return ended[0].result()

    async def stop(self) -> list[EndedCall]:
        """Cancel the running calls and wait for their tasks. Return the calls that have a result all the same."""
        await self._cancel_runs(None)
        return self._ended_calls

    async def _cancel_runs(self, seconds: float | None) -> list[CallRun]:
        """Cancel the running calls and wait for their tasks. Return the calls that still run.

        `seconds` limits the wait; None means no limit. Results of calls that ended are stored in `_ended_calls`. If the
        wait is cancelled, the next `_cancel_runs` waits for the remaining tasks; each task is cancelled only once.
        """
        import asyncio

        self.cancelled.set()
        running = self._running
        sync_options = {
            each.name
            for each in self.requests.functions
            if each.function and not Signature.is_asynchronous(each.function)
        }
        # Threads cannot be cancelled, so options in threads may still run.
        in_threads = [run for run in running.values() if run.message.call.option_name in sync_options]
        for task in running:
            if not task.cancelling():
                task.cancel()
        done = (await asyncio.wait(running, timeout=seconds))[0] if running else set()
        self._running = {}
        results = await asyncio.gather(*done, return_exceptions=True)
        ended = [each for each in results if isinstance(each, EndedCall)]
        self._ended_calls += ended
        on_time = [each.run for each in ended]
        return [run for task, run in running.items() if task not in done or (run in in_threads and run not in on_time)]


def _append_records(session: Session, records: Iterable[InnerMessage]) -> None:
    for record in records:
        session.mutate(InnerMessage).append(record)


def _in_loop_thread(emit: Callable[[Event], None]) -> Callable[[Event], None]:
    """Return a function that calls `emit` in this event loop's thread, from any thread."""
    import asyncio
    from threading import get_ident

    loop, home = asyncio.get_running_loop(), get_ident()

    def forward(event: Event) -> None:
        if get_ident() == home:
            emit(event)
        elif not loop.is_closed():
            loop.call_soon_threadsafe(emit, event)

    return forward
