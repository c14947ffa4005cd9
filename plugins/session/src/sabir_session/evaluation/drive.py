"""Drivers of evaluations: they perform a script's actions, waiting or in an event loop.

    drive_sync(script, SyncPerformer(io))         await drive(script, Performer(io))

Nothing is decided here. Awaited, the calls of one reply run at once, each in a task of its own; waiting, one after
another in this thread. No loop is started. An error or a cancellation stops what runs on its way out.
"""

import inspect
import logging
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import wait
from dataclasses import dataclass, field
from functools import partial
from threading import Event as Signal
from typing import TYPE_CHECKING

import sabir
from sabir import Adapter, Message, Option, Reply, SettingsInvalid, ToolContext
from sabir.authoring import CallArguments, OptionCall, called, deeper, is_asynchronous, start_thread

from sabir_session.evaluation.approval import Approve, Decision, as_decision
from sabir_session.evaluation.budgets import Spending
from sabir_session.evaluation.errors import BudgetExhausted
from sabir_session.evaluation.progress import CallProgress, CallStarted, Event, TextArrived, Watch, tell
from sabir_session.evaluation.script import (
    Action,
    Ask,
    Complete,
    Ended,
    Outcome,
    Record,
    Run,
    Script,
    Start,
    Take,
    Tell,
)
from sabir_session.records.inner_messages import InnerMessage
from sabir_session.state.session import Session

if TYPE_CHECKING:
    import asyncio


logger = logging.getLogger("sabir")

LEAVING = 1.0
"""Seconds for which a coroutine that is cancelled because the time is over may clean up."""


@dataclass(frozen=True)
class EvaluationIO:
    """What a performer works with: whom to ask, where to record, what may run, who approves and who watches."""

    adapter: Adapter
    session: Session | None
    options: tuple[Option, ...]
    how: CallArguments
    spending: Spending
    approve: Approve | None = None
    watch: Watch | None = None
    cancelled: Signal = field(default_factory=Signal)

    def note(self, action: Record | Tell) -> None:
        """Record, or tell."""
        if isinstance(action, Tell):
            tell(self.watch, action.event)
        elif self.session is not None:
            self.session.mutate(InnerMessage).append(action.record)

    def give_up(self, runs: Iterable[Run]) -> BudgetExhausted:
        """What says that the time is over; those that still run are named in the log too."""
        running = [run.message for run in runs]
        for message in running:
            name, call_id = message.call.option_name, message.call.invocation_id
            logger.warning("option %s still runs for the call %s, and nobody waits for it any more", name, call_id)
        return self.spending.time_over(running)

    def context(self, run: Run, heard: Callable[[Event], None]) -> ToolContext:
        """The context of a run; `heard` is told of its progress."""

        def report(done: float, total: float | None, text: str) -> None:
            heard(CallProgress(run.open.message, done, total, text))

        tell(self.watch, CallStarted(run.open.message, run.open.is_resume))
        return ToolContext(
            call_id=run.message.call.invocation_id,
            is_resume=run.open.is_resume,
            idempotency_key=run.open.key,
            cancelled=self.cancelled,
            _report=report,
        )


class SyncPerformer:
    """Performs actions by waiting for them; holds the calls that were started and not run yet."""

    def __init__(self, io: EvaluationIO) -> None:
        self._io = io
        self._waiting: deque[Run] = deque()

    def perform(self, action: Action) -> Outcome:
        """Do what an action says; the answer that its class documents."""
        match action:
            case Complete(messages):
                return self._complete(messages)
            case Ask(call):
                return self._ask(call)
            case Start(runs):
                self._waiting.extend(runs)
            case Take():
                return self._next(self._waiting.popleft())
            case Record() | Tell():
                self._io.note(action)
        return None

    def _complete(self, messages: list[Message]) -> Reply:
        io = self._io
        if io.watch is None:
            return io.adapter.complete_sync(messages, **io.how)
        with io.adapter.stream_sync(messages, **io.how) as stream:
            for text in stream.text:
                tell(io.watch, TextArrived(text))
            return stream.reply()

    def _ask(self, call: OptionCall) -> Decision:
        assert self._io.approve is not None
        decided = self._io.approve(call)
        if inspect.iscoroutine(decided):
            decided.close()
            raise SettingsInvalid("approve is asynchronous; use `await evaluate(…)`, or give a plain function")
        return as_decision(decided)

    def _next(self, run: Run) -> Ended:
        """Run it here; where the time is limited in a thread, to which it can be left."""
        left = self._io.spending.left()
        if left == 0:
            raise self._io.give_up(())
        context = self._io.context(run, lambda event: tell(self._io.watch, event))
        if left is None:
            return self._run(run, context)
        ending = start_thread(partial(self._run, run, context))
        wait([ending], timeout=left)
        if ending.done():
            return ending.result()
        raise self._io.give_up([run])

    def _run(self, run: Run, context: ToolContext) -> Ended:
        with context.entered(), deeper(run.message.call.option_name):
            (result,) = sabir.answer_sync([run.message], self._io.options)
        return Ended(run, result)

    def close(self) -> None:
        """Tell what still runs in other threads that nobody waits."""
        self._io.cancelled.set()


class Performer:
    """Performs actions in an event loop; holds the tasks of the calls that were started."""

    def __init__(self, io: EvaluationIO) -> None:
        self._io = io
        self._running: dict[asyncio.Task[Ended], Run] = {}
        self._ended: list[Ended] = []

    async def perform(self, action: Action) -> Outcome:
        """Do what an action says; the answer that its class documents."""
        match action:
            case Complete(messages):
                return await self._complete(messages)
            case Ask(call):
                assert self._io.approve is not None
                return as_decision(await called(self._io.approve, call))
            case Start(runs):
                import asyncio

                self._running = {asyncio.ensure_future(self._run(run)): run for run in runs}
            case Take():
                return await self._next()
            case Record() | Tell():
                self._io.note(action)
        return None

    async def _complete(self, messages: list[Message]) -> Reply:
        io = self._io
        if io.watch is None:
            return await io.adapter.complete(messages, **io.how)
        async with io.adapter.stream(messages, **io.how) as stream:
            async for text in stream.text:
                tell(io.watch, TextArrived(text))
            return await stream.reply()

    async def _run(self, run: Run) -> Ended:
        with self._io.context(run, _here(self._io.watch)).entered(), deeper(run.message.call.option_name):
            (result,) = await sabir.answer([run.message], self._io.options)
        return Ended(run, result)

    async def _next(self) -> Ended:
        import asyncio

        while not (ended := [task for task in self._running if task.done()]):
            left = self._io.spending.left()
            if left == 0:
                raise self._io.give_up(await self._stop(LEAVING))
            await asyncio.wait(self._running, timeout=left, return_when=asyncio.FIRST_COMPLETED)
        del self._running[ended[0]]
        return ended[0].result()

    async def _stop(self, seconds: float | None) -> list[Run]:
        """Cancel what runs, tell threads that nobody waits, and wait so long for the tasks; what runs on all the same.

        Of those that ended all the same, the results are kept. Whoever cancels this wait leaves them to the next one:
        each is cancelled once, so that it can clean up, and forgotten when it was waited for.
        """
        import asyncio

        self._io.cancelled.set()
        running = self._running
        in_threads = [run for run in running.values() if not self._is_awaited(run)]
        for task in running:
            if not task.cancelling():
                task.cancel()
        done = (await asyncio.wait(running, timeout=seconds))[0] if running else set()
        self._running = {}
        results = await asyncio.gather(*done, return_exceptions=True)
        ended = [each for each in results if isinstance(each, Ended)]
        self._ended += ended
        on_time = [each.run for each in ended]
        return [run for task, run in running.items() if task not in done or (run in in_threads and run not in on_time)]

    def _is_awaited(self, run: Run) -> bool:
        """Whether a call is a coroutine's, which ends when it is cancelled; a thread does not."""
        functions = {option.name: option.function for option in self._io.options}
        function = functions.get(run.message.call.option_name)
        return function is None or is_asynchronous(function)

    def note(self, action: Action) -> None:
        """Record, or tell."""
        assert isinstance(action, Record | Tell)
        self._io.note(action)

    async def close(self) -> list[Ended]:
        """Stop what runs, and wait for the tasks; those that ended all the same."""
        await self._stop(None)
        return self._ended


def drive_sync(script: Script, performer: SyncPerformer) -> None:
    """Run a script to its end; raises what it raises, and what performing an action raises."""
    try:
        outcome: Outcome = None
        while (action := _step(script, outcome)) is not None:
            outcome = performer.perform(action)
    finally:
        script.close()
        performer.close()


async def drive(script: Script, performer: Performer) -> None:
    """As `drive_sync`, in an event loop. An option that ends although it is cancelled has its result recorded."""
    action: Action | None = None
    outcome: Outcome = None
    try:
        while (action := _step(script, outcome)) is not None:
            outcome = await performer.perform(action)
    finally:
        ended = await performer.close()
        if isinstance(action, Take):
            _keep(script, performer, ended)
        script.close()


def _keep(script: Script, performer: Performer, ended: list[Ended]) -> None:
    """Give what ended to a script that waits for it, and have each recorded and told; the script goes no further."""
    for number, each in enumerate(ended):
        if number:
            _step(script, None)  # on to where it waits for the next
        for outcome in (each, None):
            action = _step(script, outcome)
            assert action is not None
            performer.note(action)


def _step(script: Script, outcome: Outcome) -> Action | None:
    """The next action, or None at the end."""
    try:
        return script.send(outcome)
    except StopIteration:
        return None


def _here(watch: Watch | None) -> Callable[[Event], None]:
    """Tells whoever watches in this loop's thread, wherever an option says something."""
    import asyncio
    from threading import get_ident

    loop, home = asyncio.get_running_loop(), get_ident()

    def hear(event: Event) -> None:
        if get_ident() == home:
            tell(watch, event)
        elif not loop.is_closed():
            loop.call_soon_threadsafe(tell, watch, event)

    return hear
