"""The command `sabir worker module:Context --url nats://…`: performs requests until SIGTERM or SIGINT.

no server yet ──▶ prints a warning on stderr, and tries again for `patience` seconds
SIGTERM ──▶ accepts no more requests ──▶ finishes the running requests ──▶ exits
        └ a second signal ──▶ cancels the running requests, which other workers then perform ──▶ exits

Secrets come from files and NATS_… variables, because other users of the machine can read a command line.
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
WARN_AFTER = 1.0
"""Print a warning after this many seconds without a server."""
STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)


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
    """Perform a context's policies for callers on a NATS server, until SIGTERM or SIGINT.

    Args:
        context: The context's class, or a function that creates the context, as module:Class. Modules in the current
            folder can be imported.
        url: The URL of the NATS server, or several URLs separated by commas. tls:// requires TLS.
        name: The name that callers use for the context. By default the name of the class.
        concurrency: The maximum number of requests that run at the same time.
        waiting: The maximum number of requests in the queue, in addition to the running requests.
        beat: Seconds between two reports to callers that their requests are still in work.
        drain: Seconds for running requests to finish after SIGTERM or SIGINT. Then they are cancelled.
        patience: Seconds without a server after which the worker exits with an error.
        longest: The maximum number of seconds for one request.
        inbox: The prefix of the subjects for replies to callers, if it is not _INBOX.
        creds: A .creds file with NATS credentials (or its path in the variable NATS_CREDS).
        nkey: A file with the seed of an nkey (or its path in the variable NATS_NKEY).
        user: A user's name (or NATS_USER). Give the password in --password-file or NATS_PASSWORD.
        password_file: A file with the user's password.
        token_file: A file with a token (or the token itself in NATS_TOKEN).
        ca: A file with CA certificates that verify the server's certificate (or its path in NATS_CA).
        cert: A file with the worker's own certificate (or its path in NATS_CERT).
        key: A file with the unencrypted private key of --cert (or its path in NATS_KEY).
    """
    flags = locals()  # the names of the flags are the names of the settings
    with needs_extra("distributed"):
        from sabir_runtime.distributed.connection import display_target
        from sabir_runtime.distributed.worker import Worker
    access = Access.model_validate({name: flags[name] for name in Access.model_fields})
    worker_flags = {name: flags[name] for name in WorkerSettings.model_fields.keys() & flags.keys()}
    settings = WorkerSettings.model_validate({**worker_flags, "access": access})
    new_worker = Worker(load_context(context), url, name=name, settings=settings)
    asyncio.run(_run_worker(new_worker, display_target(url), settings.patience))
    return 0


def load_context(path: str) -> Callable[[InMemoryRunner], BaseContext]:
    """Import and return the class or function that `module:Class` names. Raises RuntimeFault if there is none.

    Adds the current folder to `sys.path`. Errors of the module's own code are raised unchanged.
    """
    module, colon, attribute = path.partition(":")
    remedy = "write module:Class, for example desk:Desk for the class Desk of desk.py"
    if not (module and colon and attribute):
        raise RuntimeFault(f"{path!r} does not name a context; {remedy}")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        context: object = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise  # the module exists, but imports a module that does not
        raise RuntimeFault(f"{path!r}: no module is named {error.name!r}; {remedy}") from None
    for step in attribute.split("."):
        context = getattr(context, step, None)
    if not callable(context):
        raise RuntimeFault(f"{path!r}: module {module!r} has no context {attribute!r}; {remedy}")
    return context


async def _run_worker(worker: "Worker", url: str, patience: float) -> None:
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None

    def leave() -> None:
        if worker.is_listening:
            worker.stop()
        else:
            task.cancel()

    def warn() -> None:
        why = f": {worker.trouble}" if worker.trouble else ""
        _print_note(f"cannot reach {url}{why}; trying for {patience:g} s; start nats-server, or give another --url")
        warned.set()

    def announce() -> None:
        warning_timer.cancel()
        if warned.is_set():
            _print_note(f"connected to {url}")
        print(f"worker {worker.id} answers {worker.name}: {', '.join(worker.policies)} ({url})", flush=True)

    warned, warning_timer = asyncio.Event(), loop.call_later(WARN_AFTER, warn)
    with suppress(NotImplementedError):  # systems without such signals end the worker by a keyboard interrupt
        for each in STOP_SIGNALS:
            loop.add_signal_handler(each, leave)
    with suppress(asyncio.CancelledError):
        await worker.run(announce)


def _print_note(text: str) -> None:
    """Print a line on stderr."""
    print(f"sabir worker: {text}", file=sys.stderr, flush=True)
