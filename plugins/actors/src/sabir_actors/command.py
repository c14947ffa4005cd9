"""`sabir threads`: threads of conversation, run, watched and steered from a terminal.

sabir threads run "Shall I repot my fern?"     a thread through six phases, watched to its end
sabir threads                                  all threads, the newest last
sabir threads show THREAD                      what each phase came to
sabir threads watch THREAD                     a live table, to the thread's end
sabir threads pause|resume|terminate THREAD    resume also goes on with one whose process died
"""

import asyncio
import json as json_text
import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import sabir
from sabir.errors import SettingsInvalid, one_line, printable
from sabir_session import SQLiteStore, Store

from sabir_actors.client import ThreadClient
from sabir_actors.errors import ActorError
from sabir_actors.state import ThreadView
from sabir_actors.system import THREADS, ActorSystem
from sabir_actors.threads import ThreadActor

if TYPE_CHECKING:
    from rich.table import Table

Action: TypeAlias = Literal["list", "run", "show", "watch", "pause", "resume", "terminate"]
MODEL_VARIABLE = "SABIR_MODEL"
EMBEDDED = "local:smollm2"
EVERY = 0.25
"""Seconds between two looks at a thread that is watched."""


# A command line is one flat function: its parameters are what the user can write.
def threads(
    action: Action = "list",
    thread: str = "",
    /,
    *,
    model: str | None = None,
    store: str = "sqlite:///threads.db",
    chain: str | None = None,
    reason: str = "user_request",
    json: bool = False,
) -> int:
    """Run threads through their phases, and see and steer them.

    Parameters
    ----------
    action
        What to do.
    thread
        For run: what is asked. Else the thread's id, or the beginning of it.
    model
        For run and resume: provider:model; else $SABIR_MODEL, else the embedded model.
    store
        Where threads are: sqlite:///file.db or postgresql://user@host/database.
    chain
        For run: the chain of phases.
    reason
        For terminate: why.
    json
        Write JSON.
    """
    if action != "list" and not thread:
        what = "a text to begin with" if action == "run" else "the id of a thread; `sabir threads` shows them"
        raise SettingsInvalid(f"`sabir threads {action}` needs {what}")
    with _opened(store) as opened:
        order = _Order(opened, thread, model or os.environ.get(MODEL_VARIABLE) or EMBEDDED, chain, reason, json)
        return _ACTIONS[action](order)


class _Order:
    """What the command line says, and the store that it is about."""

    def __init__(self, store: Store, thread: str, model: str, chain: str | None, reason: str, json: bool) -> None:
        self.store, self.thread, self.model = store, thread, model
        self.chain, self.reason, self.json = chain, reason, json

    def system(self) -> ActorSystem:
        """A system on the store; it runs nothing that is not asked for."""
        return ActorSystem(self.model, store=self.store, recovers=False)

    def views(self) -> list[ThreadView]:
        """All threads, in the order of their creation."""
        actor = ThreadActor(THREADS, self.system(), self.store)
        found = [actor.view(each) for each in actor.thread_ids()]
        return sorted((each for each in found if each.created_at), key=lambda each: str(each.created_at))

    def view(self) -> ThreadView:
        """The thread that is meant; SettingsInvalid where none is, or several are."""
        found = [each for each in self.views() if each.thread_id.startswith(self.thread)]
        if len(found) == 1:
            return found[0]
        which = "no thread's id begins" if not found else f"the ids of {len(found)} threads begin"
        raise SettingsInvalid(f"{which} with {self.thread!r}; `sabir threads` shows them")


@contextmanager
def _opened(url: str) -> Iterator[Store]:
    if url.startswith("sqlite:///"):
        opened: Store = SQLiteStore(Path(url.removeprefix("sqlite:///")))
    elif url.startswith(("postgresql://", "postgres://")):
        from sabir_session import PostgresStore

        opened = PostgresStore(url)
    else:
        raise SettingsInvalid(f"{url!r} is no store; give sqlite:///file.db or postgresql://user@host/database")
    with opened:
        yield opened


def _list(order: _Order) -> int:
    views = order.views()
    if order.json:
        _write(json_text.dumps([_summary(each) for each in views], indent=2))
    for view in () if order.json else views:
        done = f"{len(view.outputs)}/{len(view.phases)}"
        head = f"{view.thread_id[:8]}  {view.status:10}  {done:>4}  {_ago(view.updated_at):>4}  "
        _write(head + one_line(view.initial_input, 80 - len(head)))
    if not views and not order.json:
        _write("no threads")
    return 0


def _show(order: _Order) -> int:
    view = order.view()
    if order.json:
        outputs = {name: output.model_dump(mode="json") for name, output in view.outputs.items()}
        _write(json_text.dumps({**_summary(view), "outputs": outputs, "cause": view.cause}, indent=2))
        return 0
    _write(f"thread  {view.thread_id}\nstate   {view.status}\nasked   {one_line(view.initial_input, 72)}")
    if "error_message" in view.cause:
        _write(f"failed  {one_line(str(view.cause['error_message']), 300)}")
    for name, output in view.outputs.items():
        sure = "" if output.confidence is None else f", confidence {output.confidence:g}"
        _write(f"\n{name} ({view.seconds[name]:.1f} s{sure})\n{output.response}")
    return 0


def _run(order: _Order) -> int:
    async def run() -> int:
        async with order.system() as system:
            client = ThreadClient(system)
            thread_id = await client.create(os.environ.get("USER", "user"), order.thread, chain=order.chain)
            if not order.json:
                _write(f"thread {thread_id}; a process that dies goes on by `sabir threads resume {thread_id[:8]}`")
            await client.start(thread_id)
            return await _watched(order, system, client, thread_id)

    return asyncio.run(run())


def _watch(order: _Order) -> int:
    async def watch() -> int:
        with _table(order) as show:
            while True:
                view = order.view()
                show(view)
                if view.is_over:
                    return _ended(order, view)
                await asyncio.sleep(EVERY)

    _ = order.view()
    return asyncio.run(watch())


def _resume(order: _Order) -> int:
    async def resume() -> int:
        view = order.view()
        async with order.system() as system:
            client = ThreadClient(system)
            if view.status == "processing":  # its process died: nobody paused it
                system.threads.go_on(view.thread_id)
            else:
                await client.resume(view.thread_id)
            return await _watched(order, system, client, view.thread_id)

    return asyncio.run(resume())


def _steer(order: _Order, step: Callable[[ThreadClient, str], Any]) -> int:
    async def steer() -> int:
        thread_id = order.view().thread_id
        async with order.system() as system:
            told = await step(ThreadClient(system), thread_id)
        if order.json:
            _write(told.model_dump_json(indent=2))
        else:
            _write(f"thread {thread_id} is {told.status}")
        return 0

    return asyncio.run(steer())


_ACTIONS: dict[Action, Callable[[_Order], int]] = {
    "list": _list,
    "run": _run,
    "show": _show,
    "watch": _watch,
    "resume": _resume,
    "pause": lambda order: _steer(order, lambda client, thread_id: client.pause(thread_id)),
    "terminate": lambda order: _steer(order, lambda client, thread_id: client.terminate(thread_id, order.reason)),
}


async def _watched(order: _Order, system: ActorSystem, client: ThreadClient, thread_id: str) -> int:
    """Show a thread that runs here until it stands; 1 where it failed."""
    with _table(order) as show:
        while True:
            status = await client.status(thread_id)
            show(system.threads.view(thread_id))
            if status.status not in ("created", "processing"):
                break
            await asyncio.sleep(EVERY)
    return _ended(order, system.threads.view(thread_id))


def _ended(order: _Order, view: ThreadView) -> int:
    last = next(reversed(view.outputs.values()), None)
    if order.json:
        _write(json_text.dumps(_summary(view), indent=2))
    elif view.status == "failed":
        raise ActorError(view.cause["error_code"], f"thread {view.thread_id} failed: {view.cause['error_message']}")
    elif last is not None:
        _write(f"\n{last.response}")
    return 1 if view.status == "failed" else 0


@contextmanager
def _table(order: _Order) -> Iterator[Callable[[ThreadView], None]]:
    """Shows where a thread is, again and again: a live table on a terminal, a line for each change elsewhere."""
    from rich.console import Console
    from rich.live import Live

    console = Console(stderr=order.json)
    if order.json or not console.is_terminal:
        last = [""]

        def tell(view: ThreadView) -> None:
            line = f"{view.status} {len(view.outputs)}/{len(view.phases)} {view.current_phase or ''}".rstrip()
            if line != last[0] and not order.json:
                _write(line)
            last[0] = line

        yield tell
        return
    with Live(console=console, refresh_per_second=8) as live, _silent():
        yield lambda view: live.update(_rows(view))


@contextmanager
def _silent() -> Iterator[None]:
    """Keep log lines out of a live table."""
    logger = logging.getLogger("sabir")
    before, logger.propagate = logger.propagate, False
    try:
        yield
    finally:
        logger.propagate = before


def _rows(view: ThreadView) -> "Table":
    from rich.table import Table

    table = Table(title=one_line(view.initial_input, 70), title_justify="left", width=80)
    table.add_column("phase")
    table.add_column("state")
    for name in ("time", "tokens", "cost", "sure"):
        table.add_column(name, justify="right")
    for phase in view.phases:
        output = view.outputs.get(phase)
        if output is None:
            state = view.status if phase == view.current_phase else ""
            table.add_row(phase, state, "", "", "", "")
            continue
        sure = "" if output.confidence is None else f"{output.confidence:g}"
        usage = view.usage.get(phase) or {}
        tokens = "+".join(str(usage.get(name) or "?") for name in ("input_tokens", "output_tokens"))
        table.add_row(phase, "done", f"{view.seconds[phase]:.1f} s", tokens, _cost(usage), sure)
    return table


def _cost(usage: dict[str, Any]) -> str:
    """What a phase cost, where sabir-prices is installed and knows; else "?"."""
    try:
        from sabir_prices import cost_of
    except ImportError:
        return "?"
    provider, _, model = str(usage.get("model", "")).partition(":")
    figures = {name: value for name, value in usage.items() if name in sabir.Usage.model_fields}
    found = cost_of(sabir.Usage(**figures), provider=provider, model=model) if model else None
    return "?" if found is None else f"{found.total:.4f}"


def _summary(view: ThreadView) -> dict[str, Any]:
    last = next(reversed(view.outputs.values()), None)
    return {
        "thread_id": view.thread_id,
        "status": view.status,
        "initial_input": view.initial_input,
        "phases_completed": list(view.outputs),
        "phases_remaining": list(view.remaining),
        "output": last.model_dump(mode="json") if last else None,
    }


def _ago(moment: datetime | None) -> str:
    seconds = 0 if moment is None else max(0, int((datetime.now(UTC) - moment).total_seconds()))
    units = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}
    return next(f"{seconds // length}{unit}" for unit, length in units.items() if seconds >= length or length == 1)


def _write(text: str) -> None:
    """Print; what a model wrote cannot steer the terminal."""
    print(printable(text))
