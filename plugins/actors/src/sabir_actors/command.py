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
from sabir_actors.state import ThreadView
from sabir_actors.system import ActorSystem
from sabir_actors.thread_actor import ThreadActor
from sabir_actors.thread_display import (
    SHORT,
    age,
    cost_of_phase,
    cut,
    dollars,
    phase_of,
    reason_of,
    summary_of,
    table_of,
    tokens_of,
)

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
        For run: the question or request. Otherwise the thread's id, or the beginning of the id. Not used by list.
    model
        For run: provider:model, by default $SABIR_MODEL or local:smollm2. For resume: replaces the model of the run,
        but only for this command.
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
    with _open_store(store, may_create=action == "run") as database:
        arguments = _Arguments(database, store, thread, model, reason, json)
        return _ACTIONS[action](arguments)


class _Arguments:
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

    def thread_actor(self) -> ThreadActor:
        """Return the actor that reads threads from the store."""
        return ThreadActor(THREADS, self.system(), self.store)

    def views(self) -> list[ThreadView]:
        """Return all threads, in the order of their creation."""
        actor = self.thread_actor()
        views = [actor.view(each) for each in actor.thread_ids()]
        return sorted((each for each in views if each.created_at), key=lambda each: str(each.created_at))

    def view(self) -> ThreadView:
        """Return the thread that the command names. Raises SettingsInvalid if none or several match."""
        actor = self.thread_actor()
        matching_ids = [each for each in actor.thread_ids() if each.startswith(self.thread)]
        if len(matching_ids) == 1:
            return actor.view(matching_ids[0])
        which = f"{len(matching_ids)} threads have" if matching_ids else "no thread has"
        raise SettingsInvalid(
            f"{which} an id that begins with {self.thread!r}; `sabir threads{self.store_flag()}` lists the ids"
        )

    def store_flag(self) -> str:
        """Return the text " --store URL" for a suggested command; "" for the default store."""
        return "" if self.url == THREADS_DB else f" --store {self.url}"

    def resume_command(self, thread_id: str) -> str:
        """Return the command, in backquotes, that continues a thread."""
        return f"`sabir threads resume {thread_id[:SHORT]}{self.store_flag()}`"


@contextmanager
def _open_store(url: str, *, may_create: bool) -> Iterator[Store]:
    if url.startswith("sqlite:///"):
        path = Path(url.removeprefix("sqlite:///"))
        if not may_create and not path.exists():
            raise SettingsInvalid(f"{url} does not exist; `sabir threads run` creates it, or name another with --store")
        store: Store = SQLiteStore(path)
    elif url.startswith(("postgresql://", "postgres://")):
        from sabir_session import PostgresStore

        store = PostgresStore(url)
    else:
        raise SettingsInvalid(f"{url!r} is not a store; pass sqlite:///file.db or postgresql://user@host/database")
    with store:
        yield store


def _list_threads(arguments: _Arguments) -> int:
    views = arguments.views()
    if arguments.json:
        _print_json([summary_of(each) for each in views])
    for view in () if arguments.json else views:
        done = f"{len(view.outputs)}/{len(view.phases)}"
        head = f"{view.thread_id[:SHORT]}  {view.status:10}  {done:>4}  {age(view.updated_at):>4}  "
        _print_text(head + cut(view.initial_input, WIDTH - len(head)))
    if not views and not arguments.json:
        _print_text("no threads")
    return 0


def _show_thread(arguments: _Arguments) -> int:
    view = arguments.view()
    if arguments.json:
        _print_json({**summary_of(view), "phases": {name: phase_of(view, name) for name in view.outputs}})
        return 0
    _print_text(f"thread  {view.thread_id}\nstate   {view.status}\nasked   {one_line(view.initial_input, WIDTH - 8)}")
    if view.cause:
        _print_text(f"why     {one_line(reason_of(view), 300)}")
    for name, output in view.outputs.items():
        usage = view.usage.get(name) or {}
        cost = cost_of_phase(usage)
        details = [f"{view.seconds[name]:.1f} s", f"{tokens_of(usage, 'input')} in, {tokens_of(usage, 'output')} out"]
        details += [] if cost is None else [dollars(cost)]
        details += [] if output.confidence is None else [f"confidence {output.confidence:g}"]
        _print_text(f"\n{name} ({', '.join(details)})\n{output.response}")
    return 0


def _run_thread(arguments: _Arguments) -> int:
    model = arguments.model or os.environ.get(MODEL_VARIABLE) or EMBEDDED

    async def run(system: ActorSystem, client: ThreadClient) -> int:
        user, metadata = os.environ.get("USER", "user"), {"model": model}
        thread_id = await client.create(user, arguments.thread, metadata=metadata)
        if not arguments.json:
            _print_text(f"thread {thread_id}")
        await client.start(thread_id)
        return await _follow_own_thread(arguments, system, thread_id)

    return _run_in_system(arguments.system(model), run)


def _watch_thread(arguments: _Arguments) -> int:
    view = arguments.view()
    return asyncio.run(_follow_thread(arguments, view.thread_id, lambda now: not now.is_over))


def _resume_thread(arguments: _Arguments) -> int:
    view = arguments.view()
    system = arguments.system(
        arguments.model or view.metadata.get("model") or os.environ.get(MODEL_VARIABLE) or EMBEDDED
    )
    if view.chain not in system.chains:
        reason = f"thread {view.thread_id} uses the chain {view.chain!r}, which only the program that created it has"
        raise SettingsInvalid(f"{reason}; resume the thread with that program")
    if view.runs:
        reason = f"thread {view.thread_id} is run by the workers of a queue"
        raise SettingsInvalid(f"{reason}; resume it with a ThreadClient whose ActorSystem has this queue")

    async def resume(system: ActorSystem, client: ThreadClient) -> int:
        if view.status == "created":  # its process died before it started the thread
            await client.start(view.thread_id)
        elif view.status == "processing":  # its process died while it ran the thread
            await system.threads.continue_thread(view.thread_id)
        else:
            await client.resume(view.thread_id)
        return await _follow_own_thread(arguments, system, view.thread_id)

    return _run_in_system(system, resume)


def _control_thread(arguments: _Arguments, step: Callable[[ThreadClient, str], Coroutine[Any, Any, object]]) -> int:
    thread_id = arguments.view().thread_id

    async def control(_: ActorSystem, client: ThreadClient) -> int:
        await step(client, thread_id)
        return 0

    _run_in_system(arguments.system(), control)
    view = arguments.thread_actor().view(thread_id)
    if arguments.json:
        _print_json(summary_of(view))
    else:
        _print_text(f"thread {thread_id} is {view.status}")
    return 0


_ACTIONS: dict[Action, Callable[[_Arguments], int]] = {
    "list": _list_threads,
    "run": _run_thread,
    "show": _show_thread,
    "watch": _watch_thread,
    "resume": _resume_thread,
    "pause": lambda arguments: _control_thread(arguments, lambda client, thread_id: client.pause(thread_id)),
    "terminate": lambda arguments: _control_thread(
        arguments, lambda client, thread_id: client.terminate(thread_id, arguments.reason)
    ),
}


def _run_in_system(system: ActorSystem, work: Callable[[ActorSystem, ThreadClient], Coroutine[Any, Any, int]]) -> int:
    """Start the system, run `work` with the system and a client, stop the system, and return the exit code."""

    async def within() -> int:
        async with system:
            return await work(system, ThreadClient(system))

    return asyncio.run(within())


async def _follow_own_thread(arguments: _Arguments, system: ActorSystem, thread_id: str) -> int:
    """Show a thread while it runs in this process. After an interruption, print how to continue the thread."""

    def is_going(view: ThreadView) -> bool:
        return view.status == "processing" or any(each.startswith(f"{thread_id}/") for each in system.actors())

    try:
        return await _follow_thread(arguments, thread_id, is_going)
    except asyncio.CancelledError:
        _print_error(f"interrupted; {arguments.resume_command(thread_id)} continues the thread")
        raise


async def _follow_thread(arguments: _Arguments, thread_id: str, is_going: Callable[[ThreadView], bool]) -> int:
    """Show a thread as long as `is_going` returns True, then its result. Return 1 if the thread failed, else 0."""
    with _open_display(arguments) as show:
        while True:
            view = await asyncio.to_thread(arguments.thread_actor().view, thread_id)
            show(view)
            if not is_going(view):
                break
            await asyncio.sleep(EVERY)
    last = view.last_output
    if arguments.json:
        _print_json(summary_of(view))
    elif view.status == "failed":
        _print_error(f"thread {thread_id} failed: {reason_of(view)}")
    elif view.status == "paused":
        _print_text(f"paused; {arguments.resume_command(thread_id)} continues the thread")
    elif view.status == "completed" and last is not None:
        _print_text(f"\n{last.response}")
    return 1 if view.status == "failed" else 0


@contextmanager
def _open_display(arguments: _Arguments) -> Iterator[Callable[[ThreadView], None]]:
    """Yield a function that shows a thread: in a live table on a terminal, otherwise one line for each change. With
    --json, the function prints nothing.
    """
    from rich.console import Console
    from rich.live import Live

    console = Console()
    if arguments.json or not console.is_terminal:
        last = [""]

        def tell(view: ThreadView) -> None:
            phase = "" if view.is_over else view.current_phase or ""
            line = f"{view.status} {len(view.outputs)}/{len(view.phases)} {phase}".rstrip()
            if line != last[0] and not arguments.json:
                _print_text(line)
            last[0] = line

        yield tell
        return
    with Live(console=console, refresh_per_second=8) as live, _suppress_logs():
        yield lambda view: live.update(table_of(view, min(WIDTH, console.width)))


@contextmanager
def _suppress_logs() -> Iterator[None]:
    """Suppress sabir's log lines in the `with` block, while a live table is shown."""
    logger, nothing = logging.getLogger("sabir"), logging.NullHandler()
    before, logger.propagate = logger.propagate, False
    logger.addHandler(nothing)
    try:
        yield
    finally:
        logger.propagate = before
        logger.removeHandler(nothing)


def _print_text(text: str) -> None:
    """Print a text, with control characters replaced."""
    print(printable(text), flush=True)


def _print_json(value: object) -> None:
    _print_text(json_text.dumps(value, indent=2))


def _print_error(text: str) -> None:
    print(f"sabir: {printable(text)}", file=sys.stderr, flush=True)
