"""`sabir worker module:Context --url nats://…`: a process that answers requests until it gets SIGTERM or SIGINT.

no server yet ──▶ says so on stderr, and tries on until its patience is over
SIGTERM ──▶ takes no more ──▶ finishes its work ──▶ leaves
        └ a second one ──▶ leaves at once, the rest goes to other workers
"""

import asyncio
import importlib
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress

from sabir_runtime import BaseContext, InMemoryRunner, RuntimeFault

from sabir_distributed.connection import shown
from sabir_distributed.settings import WorkerSettings
from sabir_distributed.worker import Worker

DEFAULT_URL = "nats://127.0.0.1:4222"
SILENT_FOR = 1.0
"""Seconds without a server before it says so."""
STOPPING = (signal.SIGTERM, signal.SIGINT)


def worker(
    context: str, *, url: str = DEFAULT_URL, name: str | None = None, concurrency: int = 32, drain: float = 30.0
) -> int:
    """Answer requests for a context's policies.

    Args:
        context: The context's class as module:Class; modules of this folder are found too.
        url: The NATS server, or several with commas between them.
        name: The name that callers use for the context; its class's unless given.
        concurrency: How many requests it works on at once.
        drain: How many seconds it finishes its work when it is told to stop.
    """
    settings = WorkerSettings(concurrency=concurrency, drain=drain)
    made = Worker(load_context(context), url, name=name, settings=settings)
    asyncio.run(_run(made, shown(url), settings.patience))
    return 0


def load_context(path: str) -> Callable[[InMemoryRunner], BaseContext]:
    """The class, or another maker of contexts, that a path `module:Class` names; RuntimeFault where there is none."""
    module, colon, attribute = path.partition(":")
    remedy = "write module:Class, for example desk:Desk for the class Desk of desk.py"
    if not (module and colon and attribute):
        raise RuntimeFault(f"{path!r} names no context; {remedy}")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        found: object = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise  # a module that it imports
        raise RuntimeFault(f"{path!r}: there is no module {error.name!r}; {remedy}") from None
    for step in attribute.split("."):
        found = getattr(found, step, None)
    if not callable(found):
        raise RuntimeFault(f"{path!r}: module {module!r} has no context {attribute!r}; {remedy}")
    return found


async def _run(made: Worker, url: str, patience: float) -> None:
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None

    def leave() -> None:
        if made.is_listening:
            made.stop()
        else:
            task.cancel()

    def complain() -> None:
        why = f": {made.trouble}" if made.trouble else ""
        _tell(f"cannot reach {url}{why}; trying for {patience:g} s; start nats-server there, or give another --url")
        complained.set()

    def listen() -> None:
        waiting.cancel()
        if complained.is_set():
            _tell(f"connected to {url}")
        print(f"worker {made.id} answers {made.name}: {', '.join(made.policies)} ({url})", flush=True)

    complained, waiting = asyncio.Event(), loop.call_later(SILENT_FOR, complain)
    with suppress(NotImplementedError):  # where the system has no such signals, a key's interrupt ends it
        for each in STOPPING:
            loop.add_signal_handler(each, leave)
    with suppress(asyncio.CancelledError):
        await made.run(listen)


def _tell(said: str) -> None:
    """Say it to whoever started the command, and not among its output."""
    print(f"sabir worker: {said}", file=sys.stderr, flush=True)
