"""Drivers of evaluations: they perform a script's actions, waiting or in an event loop.

    drive_sync(script, SyncPerformer(desk))         await drive(script, Performer(desk))

Nothing is decided here. Awaited, the calls of one reply run at once, each in a task of its own; waiting, one after
another in this thread. No loop is started. An error or a cancellation stops what runs on its way out.
"""

import inspect
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Event as Signal
from typing import TYPE_CHECKING

import sabir
from sabir import Adapter, Message, Option, Reply, SettingsInvalid
from sabir.calls import CallArguments
from sabir.messages import OptionCall
from sabir_session import InnerMessage, Session

from sabir_runtime.approval import Approve, Decision, as_decision
from sabir_runtime.depth import checked, deeper
from sabir_runtime.progress import CallProgress, CallStarted, Event, TextArrived, Watch, tell
from sabir_runtime.script import Action, Ask, Complete, Ended, Outcome, Record, Run, Script, Start, Take, Tell
from sabir_runtime.threads import called
from sabir_runtime.tool_context import ToolContext

if TYPE_CHECKING:
    import asyncio


@dataclass(frozen=True)
class Desk:
    """What a performer works with: whom to ask, where to record, what may run, who approves and who watches."""

    adapter: Adapter
    session: Session | None
    options: tuple[Option, ...]
    how: CallArguments
    approve: Approve | None = None
    watch: Watch | None = None
    cancelled: Signal = field(default_factory=Signal)

    def note(self, action: Record | Tell) -> None:
        """Record, or tell."""
        if isinstance(action, Tell):
            tell(self.watch, action.event)
        elif self.session is not None:
            self.session.mutate(InnerMessage).append(action.record)

    def context(self, run: Run, heard: Callable[[Event], None]) -> ToolContext:
        """The context of a run; `heard` is told of its progress."""
        assert run.message.call is not None

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

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
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
                return self._run(self._waiting.popleft())
            case Record() | Tell():
                self._desk.note(action)
        return None

    def _complete(self, messages: list[Message]) -> Reply:
        desk = self._desk
        if desk.watch is None:
            return desk.adapter.complete_sync(messages, **desk.how)
        with desk.adapter.stream_sync(messages, **desk.how) as stream:
            for text in stream.text:
                tell(desk.watch, TextArrived(text))
            return stream.reply()

    def _ask(self, call: OptionCall) -> Decision:
        assert self._desk.approve is not None
        decided = self._desk.approve(call)
        if inspect.iscoroutine(decided):
            decided.close()
            raise SettingsInvalid("approve is asynchronous; use `await evaluate(…)`, or give a plain function")
        return as_decision(decided)

    def _run(self, run: Run) -> Ended:
        desk = self._desk
        with desk.context(run, lambda event: tell(desk.watch, event)).entered(), deeper(_name_of(run)):
            (result,) = sabir.answer_sync([run.message], desk.options)
        return Ended(run, checked(result))

    def close(self) -> None:
        """Tell what still runs in other threads that nobody waits."""
        self._desk.cancelled.set()


class Performer:
    """Performs actions in an event loop; holds the tasks of the calls that were started."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._running: list[asyncio.Task[Ended]] = []

    async def perform(self, action: Action) -> Outcome:
        """Do what an action says; the answer that its class documents."""
        match action:
            case Complete(messages):
                return await self._complete(messages)
            case Ask(call):
                assert self._desk.approve is not None
                return as_decision(await called(self._desk.approve, call))
            case Start(runs):
                import asyncio

                self._running = [asyncio.ensure_future(self._run(run)) for run in runs]
            case Take():
                return await self._next()
            case Record() | Tell():
                self._desk.note(action)
        return None

    async def _complete(self, messages: list[Message]) -> Reply:
        desk = self._desk
        if desk.watch is None:
            return await desk.adapter.complete(messages, **desk.how)
        async with desk.adapter.stream(messages, **desk.how) as stream:
            async for text in stream.text:
                tell(desk.watch, TextArrived(text))
            return await stream.reply()

    async def _run(self, run: Run) -> Ended:
        with self._desk.context(run, _here(self._desk.watch)).entered(), deeper(_name_of(run)):
            (result,) = await sabir.answer([run.message], self._desk.options)
        return Ended(run, checked(result))

    async def _next(self) -> Ended:
        import asyncio

        while not (ended := [task for task in self._running if task.done()]):
            await asyncio.wait(self._running, return_when=asyncio.FIRST_COMPLETED)
        self._running.remove(ended[0])
        return ended[0].result()

    def note(self, action: Action) -> None:
        """Record, or tell."""
        assert isinstance(action, Record | Tell)
        self._desk.note(action)

    async def close(self) -> list[Ended]:
        """Cancel what runs, tell threads that nobody waits, and wait for the tasks; those that ended all the same."""
        import asyncio

        self._desk.cancelled.set()
        for task in self._running:
            task.cancel()
        ended = await asyncio.gather(*self._running, return_exceptions=True)
        self._running = []
        return [each for each in ended if isinstance(each, Ended)]


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


def _name_of(run: Run) -> str:
    return run.message.call.option_name if run.message.call else ""


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
