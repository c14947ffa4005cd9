"""The command `sabir threads`: runs, shows and controls threads from a terminal.

sabir threads run "Shall I repot my fern?"     run a thread through six phases, and show it until its end
sabir threads                                  list all threads, the newest last
sabir threads show THREAD                      show the output of each phase
sabir threads watch THREAD                     show a live table until the thread's end
sabir threads pause|resume|terminate THREAD    resume also continues a thread whose process died

The output is read from the store each time, so it is correct even if another process runs the thread.
"""

import asyncio
import json as json_text
import logging
import os
import sys
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, TypeAlias

import sabir
from sabir.authoring import one_line, printable
from sabir.errors import SettingsInvalid
from sabir_session import SQLiteStore, Store

from sabir_actors.actor import THREADS
from sabir_actors.client import ThreadClient
from sabir_actors.shown import SHORT, age, cost_of_phase, cut, dollars, phase_of, summary_of, table_of, tokens_of, why
from sabir_actors.state import ThreadView
from sabir_actors.system import ActorSystem
from sabir_actors.threads import ThreadActor

THREADS_DB = "sqlite:///threads.db"
Action: TypeAlias = Literal["list", "run", "show", "watch", "pause", "resume", "terminate"]
MODEL_VARIABLE = "SABIR_MODEL"
EMBEDDED = "local:smollm2"
EVERY = 0.25
"""The number of seconds between two reads of a watched thread."""
WIDTH = 80


# A command line is one flat function: its parameters are what the user can write.
def threads(
    action: Action = "list",
    thread: str = "",
    /,
    *,
    model: str | None = None,
    store: str = THREADS_DB,
    reason: str = "user_request",
    json: bool = False,
) -> int:
    """Run threads (conversations in six phases), list them, and control them.

    Parameters
    ----------
    action
        What to do with the thread or threads.
    thread
        For run: the question or request. Otherwise the thread's id, or the beginning of the id.
    model
        For run: provider:model, by default $SABIR_MODEL or local:smollm2. For resume: use this model from now on.
    store
        The database of the threads: sqlite:///file.db or postgresql://user@host/database.
    reason
        For terminate: the reason to store with the thread.
    json
        Print JSON instead of text.
    """
    if action != "list" and not thread.strip():
        what = "a question or request" if action == "run" else "the id of a thread; `sabir threads` lists the ids"
        raise SettingsInvalid(f"`sabir threads {action}` needs {what}")
    with _opened(store, is_made=action == "run") as opened:
        order = _Order(opened, store, thread, model, reason, json)
        return _ACTIONS[action](order)


class _Order:
    """The arguments of the command line, and its store."""

    def __init__(self, store: Store, url: str, thread: str, model: str | None, reason: str, json: bool) -> None:
        self.store, self.url, self.thread, self.model = store, url, thread, model
        self.reason, self.json = reason, json

    def system(self, model: str | None = None) -> ActorSystem:
        """Return a system that uses the store and does not continue interrupted threads by itself.

        Raises the errors of `sabir.adapter` for a wrong model at once, before a thread could fail because of the model.
        """
        if model is not None:
            asyncio.run(sabir.adapter(model).aclose())
        return ActorSystem(model, store=self.store, recovers=False)

    def stored(self) -> ThreadActor:
        """Return the actor that reads threads from the store."""
        return ThreadActor(THREADS, self.system(), self.store)

    def views(self) -> list[ThreadView]:
        """Return all threads, in the order of their creation."""
        actor = self.stored()
        found = [actor.view(each) for each in actor.thread_ids()]
        return sorted((each for each in found if each.created_at), key=lambda each: str(each.created_at))

    def view(self) -> ThreadView:
        """Return the thread that the command names. Raises SettingsInvalid if none or several match."""
        actor = self.stored()
        found = [each for each in actor.thread_ids() if each.startswith(self.thread)]
        if len(found) == 1:
            return actor.view(found[0])
        which = f"{len(found)} threads have" if found else "no thread has"
        raise SettingsInvalid(
            f"{which} an id that begins with {self.thread!r}; `sabir threads{self.where()}` lists the ids"
        )

    def where(self) -> str:
        """Return the text " --store URL" for a suggested command; "" for the default store."""
        return "" if self.url == THREADS_DB else f" --store {self.url}"

    def remedy(self, thread_id: str) -> str:
        """Return the command, in backquotes, that continues a thread."""
        return f"`sabir threads resume {thread_id[:SHORT]}{self.where()}`"


@contextmanager
def _opened(url: str, *, is_made: bool) -> Iterator[Store]:
    if url.startswith("sqlite:///"):
        path = Path(url.removeprefix("sqlite:///"))
        if not is_made and not path.exists():
            raise SettingsInvalid(f"{url} does not exist; `sabir threads run` creates it, or name another with --store")
        opened: Store = SQLiteStore(path)
    elif url.startswith(("postgresql://", "postgres://")):
        from sabir_session import PostgresStore

        opened = PostgresStore(url)
    else:
        raise SettingsInvalid(f"{url!r} is not a store; pass sqlite:///file.db or postgresql://user@host/database")
    with opened:
        yield opened


def _list(order: _Order) -> int:
    views = order.views()
    if order.json:
        _write_json([summary_of(each) for each in views])
    for view in () if order.json else views:
        done = f"{len(view.outputs)}/{len(view.phases)}"
        head = f"{view.thread_id[:SHORT]}  {view.status:10}  {done:>4}  {age(view.updated_at):>4}  "
        _write(head + cut(view.initial_input, WIDTH - len(head)))
    if not views and not order.json:
        _write("no threads")
    return 0


def _show(order: _Order) -> int:
    view = order.view()
    if order.json:
        _write_json({**summary_of(view), "phases": {name: phase_of(view, name) for name in view.outputs}})
        return 0
    _write(f"thread  {view.thread_id}\nstate   {view.status}\nasked   {one_line(view.initial_input, WIDTH - 8)}")
    if view.cause:
        _write(f"why     {one_line(why(view), 300)}")
    for name, output in view.outputs.items():
        usage = view.usage.get(name) or {}
        cost = cost_of_phase(usage)
        said = [f"{view.seconds[name]:.1f} s", f"{tokens_of(usage, 'input')} in, {tokens_of(usage, 'output')} out"]
        said += [] if cost is None else [dollars(cost)]
        said += [] if output.confidence is None else [f"confidence {output.confidence:g}"]
        _write(f"\n{name} ({', '.join(said)})\n{output.response}")
    return 0


def _run(order: _Order) -> int:
    model = order.model or os.environ.get(MODEL_VARIABLE) or EMBEDDED

    async def run(system: ActorSystem, client: ThreadClient) -> int:
        user, metadata = os.environ.get("USER", "user"), {"model": model}
        thread_id = await client.create(user, order.thread, metadata=metadata)
        if not order.json:
            _write(f"thread {thread_id}")
        await client.start(thread_id)
        return await _watched(order, system, thread_id)

    return _at_work(order.system(model), run)


def _watch(order: _Order) -> int:
    view = order.view()
    return asyncio.run(_followed(order, view.thread_id, lambda now: not now.is_over))


def _resume(order: _Order) -> int:
    view = order.view()
    system = order.system(order.model or view.metadata.get("model") or os.environ.get(MODEL_VARIABLE) or EMBEDDED)
    if view.chain not in system.chains:
        reason = f"thread {view.thread_id} uses the chain {view.chain!r}, which only the program that created it has"
        raise SettingsInvalid(f"{reason}; resume it with that program")
    if view.runs:
        reason = f"thread {view.thread_id} is run by the workers of a queue"
        raise SettingsInvalid(f"{reason}; resume it with a ThreadClient whose ActorSystem has this queue")

    async def resume(system: ActorSystem, client: ThreadClient) -> int:
        if view.status == "created":  # its process died before it started the thread
            await client.start(view.thread_id)
        elif view.status == "processing":  # its process died while it ran the thread
            await system.threads.go_on(view.thread_id)
        else:
            await client.resume(view.thread_id)
        return await _watched(order, system, view.thread_id)

    return _at_work(system, resume)


def _steer(order: _Order, step: Callable[[ThreadClient, str], Coroutine[Any, Any, object]]) -> int:
    thread_id = order.view().thread_id

    async def steer(_: ActorSystem, client: ThreadClient) -> int:
        await step(client, thread_id)
        return 0

    _at_work(order.system(), steer)
    view = order.stored().view(thread_id)
    if order.json:
        _write_json(summary_of(view))
    else:
        _write(f"thread {thread_id} is {view.status}")
    return 0


_ACTIONS: dict[Action, Callable[[_Order], int]] = {
    "list": _list,
    "run": _run,
    "show": _show,
    "watch": _watch,
    "resume": _resume,
    "pause": lambda order: _steer(order, lambda client, thread_id: client.pause(thread_id)),
    "terminate": lambda order: _steer(order, lambda client, thread_id: client.terminate(thread_id, order.reason)),
}


def _at_work(system: ActorSystem, work: Callable[[ActorSystem, ThreadClient], Coroutine[Any, Any, int]]) -> int:
    """Start the system, run `work` with the system and a client, stop the system, and return the exit code."""

    async def within() -> int:
        async with system:
            return await work(system, ThreadClient(system))

    return asyncio.run(within())


async def _watched(order: _Order, system: ActorSystem, thread_id: str) -> int:
    """Show a thread while it runs in this process. After an interruption, print how to continue the thread."""

    def is_going(view: ThreadView) -> bool:
        return view.status == "processing" or any(each.startswith(f"{thread_id}/") for each in system.actors())

    try:
        return await _followed(order, thread_id, is_going)
    except asyncio.CancelledError:
        _complain(f"interrupted; {order.remedy(thread_id)} continues the thread")
        raise


async def _followed(order: _Order, thread_id: str, is_going: Callable[[ThreadView], bool]) -> int:
    """Show a thread as long as `is_going` returns True, then its result. Return 1 if the thread failed, else 0."""
    with _table(order) as show:
        while True:
            view = await asyncio.to_thread(order.stored().view, thread_id)
            show(view)
            if not is_going(view):
                break
            await asyncio.sleep(EVERY)
    last = view.last_output
    if order.json:
        _write_json(summary_of(view))
    elif view.status == "failed":
        _complain(f"thread {thread_id} failed: {why(view)}")
    elif view.status == "paused":
        _write(f"paused; {order.remedy(thread_id)} continues the thread")
    elif view.status == "completed" and last is not None:
        _write(f"\n{last.response}")
    return 1 if view.status == "failed" else 0


@contextmanager
def _table(order: _Order) -> Iterator[Callable[[ThreadView], None]]:
    """Yield a function that shows a thread: in a live table on a terminal, otherwise one line for each change. With
    --json, the function prints nothing.
    """
    from rich.console import Console
    from rich.live import Live

    console = Console()
    if order.json or not console.is_terminal:
        last = [""]

        def tell(view: ThreadView) -> None:
            phase = "" if view.is_over else view.current_phase or ""
            line = f"{view.status} {len(view.outputs)}/{len(view.phases)} {phase}".rstrip()
            if line != last[0] and not order.json:
                _write(line)
            last[0] = line

        yield tell
        return
    with Live(console=console, refresh_per_second=8) as live, _silent():
        yield lambda view: live.update(table_of(view, min(WIDTH, console.width)))


@contextmanager
def _silent() -> Iterator[None]:
    """Suppress sabir's log lines in the `with` block, while a live table is shown."""
    logger, nothing = logging.getLogger("sabir"), logging.NullHandler()
    before, logger.propagate = logger.propagate, False
    logger.addHandler(nothing)
    try:
        yield
    finally:
        logger.propagate = before
        logger.removeHandler(nothing)


def _write(text: str) -> None:
    """Print a text, with control characters replaced."""
    print(printable(text), flush=True)


def _write_json(value: object) -> None:
    _write(json_text.dumps(value, indent=2))


def _complain(text: str) -> None:
    print(f"sabir: {printable(text)}", file=sys.stderr, flush=True)
