"""`sabir worker module:Context --url nats://…`: a process that answers requests until it gets SIGTERM or SIGINT.

no server yet ──▶ says so on stderr, and keeps trying until its patience is over
SIGTERM ──▶ takes no more ──▶ finishes its work ──▶ leaves
        └ a second one ──▶ leaves at once, the rest goes to other workers

Secrets come from files and NATS_… variables: other users of the machine can read a command line.
"""

import asyncio
import importlib
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from sabir_runtime.contexts import BaseContext, InMemoryRunner
from sabir_runtime.distributed.access import Access
from sabir_runtime.distributed.settings import WorkerSettings
from sabir_runtime.distributed.subjects import INBOXES
from sabir_runtime.extras import needs_extra
from sabir_runtime.failures import RuntimeFault

if TYPE_CHECKING:
    from sabir_runtime.distributed.worker import Worker

DEFAULT_URL = "nats://127.0.0.1:4222"
SILENT_FOR = 1.0
"""Seconds without a server before it says so."""
STOPPING = (signal.SIGTERM, signal.SIGINT)


def worker(  # noqa: PLR0913  # each is a flag
    context: str,
    *,
    url: str = DEFAULT_URL,
    name: str | None = None,
    concurrency: int = 32,
    waiting: int = 256,
    beat: float = 1.0,
    drain: float = 30.0,
    patience: float = 60.0,
    longest: float = 86_400.0,
    inbox: str = INBOXES,
    creds: Path | None = None,
    nkey: Path | None = None,
    user: str | None = None,
    password_file: Path | None = None,
    token_file: Path | None = None,
    ca: Path | None = None,
    cert: Path | None = None,
    key: Path | None = None,
) -> int:
    """Answer requests for a context's policies.

    Args:
        context: The context's class as module:Class; modules of this folder are found too.
        url: The NATS server, or several with commas between them; tls:// asks for TLS.
        name: The name that callers use for the context; its class's unless given.
        concurrency: How many requests it works on at once.
        waiting: How many more stand in line.
        beat: Seconds between two words to callers that it is still at it.
        drain: How many seconds it finishes its work when it is told to stop.
        patience: How many seconds the server may be missing.
        longest: How many seconds it gives a request at most.
        inbox: What its callers' inboxes begin with, besides _INBOX.
        creds: A .creds file (NATS_CREDS).
        nkey: A file that holds the seed of an nkey (NATS_NKEY).
        user: A user's name (NATS_USER); the password is in --password-file, or NATS_PASSWORD.
        password_file: A file that holds the user's password.
        token_file: A file that holds a token; or NATS_TOKEN.
        ca: Certificates of the authorities that the server's is checked with (NATS_CA).
        cert: A certificate of one's own (NATS_CERT).
        key: Its key (NATS_KEY).
    """
    flags = locals()  # named as the settings are
    with needs_extra("distributed"):
        from sabir_runtime.distributed.connection import shown
        from sabir_runtime.distributed.worker import Worker
    access = Access.model_validate({name: flags[name] for name in Access.model_fields})
    given = {name: flags[name] for name in WorkerSettings.model_fields.keys() & flags.keys()}
    settings = WorkerSettings.model_validate({**given, "access": access})
    made = Worker(load_context(context), url, name=name, settings=settings)
    asyncio.run(_run(made, shown(url), settings.patience))
    return 0


def load_context(path: str) -> Callable[[InMemoryRunner], BaseContext]:
    """The class, or another maker of contexts, that a path `module:Class` names; raises RuntimeFault if none."""
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
            raise  # a missing module that it imports
        raise RuntimeFault(f"{path!r}: there is no module {error.name!r}; {remedy}") from None
    for step in attribute.split("."):
        found = getattr(found, step, None)
    if not callable(found):
        raise RuntimeFault(f"{path!r}: module {module!r} has no context {attribute!r}; {remedy}")
    return found


async def _run(made: "Worker", url: str, patience: float) -> None:
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
    with suppress(NotImplementedError):  # on a system without such signals, a keyboard interrupt ends it
        for each in STOPPING:
            loop.add_signal_handler(each, leave)
    with suppress(asyncio.CancelledError):
        await made.run(listen)


def _tell(said: str) -> None:
    """Print it on stderr, apart from the command's output."""
    print(f"sabir worker: {said}", file=sys.stderr, flush=True)
