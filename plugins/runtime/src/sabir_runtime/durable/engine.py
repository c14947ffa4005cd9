"""DBOS, the engine of this process: stores the runs, their workers and their states.

    DurableRunner ─▶ start_workflow / queue ─▶ sabir.run(workflow id = run) ─▶ execution ─▶ ledger

One workflow serves all runs, without DBOS steps: DBOS numbers steps in the order in which they start, which varies
for concurrent branches. Bound calls are in the ledger instead, by their paths.
"""

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeAlias

from dbos import DBOS, DBOSClient, DBOSConfig, Serializer, SetWorkflowID, WorkflowHandleAsync
from sabir.authoring import one_line
from sqlalchemy import Engine

from sabir_runtime.durable.errors import DurableFault, RowRefused, RunnerInUse
from sabir_runtime.durable.faults import OTHER, fault_name
from sabir_runtime.durable.row_guard import REFUSED, SERIALIZATION, guard_engine, refused
from sabir_runtime.durable.stores import Settings, version_of

WORKFLOW = "sabir.run"
log = logging.getLogger("sabir.durable.engine")

Execute: TypeAlias = Callable[[str, RowRefused | None], Awaitable[None]]
"""Performs the run of that name, or deals with a run whose row was refused."""
_execute: Execute | None = None


class ReadableJSON(Serializer):
    """Serializes DBOS's own data as JSON. `row_guard` ensures that rows in no other serialization are read."""

    def serialize(self, data: Any) -> str:
        """Return JSON text; an exception is written by its stored name and its message."""
        return json.dumps(data, default=_readable)

    def deserialize(self, serialized_data: str) -> Any:
        """Return the value; an exception becomes DurableFault, because the ledger has the policy's own failure.

        Raises RowRefused for a value that is not JSON, or that the guard of rows refused.
        """
        try:
            value = json.loads(serialized_data)
        except (TypeError, ValueError, RecursionError):
            raise RowRefused("a value of the engine in the store is not JSON; check who else writes to it") from None
        if isinstance(value, dict) and set(value) == {"error", "message"}:
            return DurableFault(f"{value['error']}: {value['message']}")
        if isinstance(value, dict) and REFUSED in value:
            raise refused(value[REFUSED])
        return value

    def name(self) -> str:
        """Return the serializer's name, which is stored with its data."""
        return SERIALIZATION


def _readable(value: object) -> object:
    """Return what is stored of a value that JSON does not know: an exception's stored name and its message."""
    if isinstance(value, BaseException):
        name = fault_name(value)
        return {"error": name, "message": one_line(value) if name == OTHER else one_line(str(value))}
    raise TypeError(f"a {type(value).__name__} cannot be part of a run's state")


@DBOS.workflow(name=WORKFLOW)
async def run_workflow(sabir_refused: object = None) -> None:
    """Perform any run; its name is the workflow's id. The guard of rows replaces refused inputs by `sabir_refused`."""
    assert _execute is not None and DBOS.workflow_id is not None
    await _execute(DBOS.workflow_id, None if sabir_refused is None else refused(sabir_refused))


def make_client(engine: Engine) -> DBOSClient:
    """Make a client that changes runs, also without a worker; it reports an unreachable store at once."""
    _be_quiet()
    guard_engine(engine)
    return DBOSClient(
        system_database_engine=engine, serializer=ReadableJSON(), lazy=True, retry_connection_errors=False
    )


def migrate(url: str) -> None:
    """Make DBOS's own tables, or bring older ones up."""
    _be_quiet()
    DBOS.migrate(url)


def launch(engine: Engine, settings: Settings, worker: str, queues: list[str], execute: Execute) -> None:
    """Start DBOS, on the event loop that runs execute; raises RunnerInUse if other code started it."""
    global _execute  # noqa: PLW0603  # one DBOS in each process, and one function that it runs
    from dbos._dbos import _dbos_global_instance

    if _dbos_global_instance is not None:
        raise RunnerInUse("other code already started DBOS in this process; use DurableRunner in another process")
    _be_quiet()
    guard_engine(engine)
    config: DBOSConfig = {
        "name": settings.application,
        "system_database_url": engine.url.set(drivername=engine.dialect.name).render_as_string(hide_password=False),
        "system_database_engine": engine,
        "application_version": version_of(settings.application, settings.version),
        "executor_id": worker,
        "serializer": ReadableJSON(),
        "log_level": "WARNING",
        "notification_listener_polling_interval_sec": settings.poll,
    }
    _execute = execute
    DBOS(config=config)
    DBOS.listen_queues(queues)
    DBOS.launch()


def listen(queue: str) -> None:
    """Take runs of this queue too; DBOS notices within a second."""
    from dbos._dbos import _get_dbos_instance

    listening = _get_dbos_instance()._listening_queues
    if listening is not None and queue not in listening:
        listening.append(queue)  # the list behind listen_queues, which DBOS takes only before its launch


async def start(run: str) -> WorkflowHandleAsync[None]:
    """Start a run here, or get a handle of the one with that name."""
    with SetWorkflowID(run):
        return await DBOS.start_workflow_async(run_workflow)


async def find(run: str) -> WorkflowHandleAsync[None]:
    """Get a handle of a run."""
    return await DBOS.retrieve_workflow_async(run)


async def shut_down() -> None:
    """Stop DBOS if this module started it. Running work stays unfinished, for another worker."""
    global _execute  # noqa: PLW0603
    if _execute is None:
        return
    await asyncio.to_thread(DBOS.destroy)
    _execute = None
    # DBOS replaced the threads of asyncio.to_thread with its own, which have ended with it.
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor())


_TOLD_ELSEWHERE = (
    "Exception encountered in asynchronous workflow",
    "Asyncio task cancelled for workflow",
    "was cancelled during execution",
)


class _Forward(logging.Handler):
    """Forwards DBOS's messages to this package's logger, which is silent without a handler."""

    def emit(self, record: logging.LogRecord) -> None:
        """Forward one, except those that the caller of a run or the closer of a runner learns otherwise.

        DBOS's messages at each start get the level of this package's own steps.
        """
        if record.levelno < logging.WARNING or any(map(record.getMessage().__contains__, _TOLD_ELSEWHERE)):
            record.levelno, record.levelname = logging.DEBUG, "DEBUG"
        if log.isEnabledFor(record.levelno):
            log.handle(record)


def _be_quiet() -> None:
    theirs = logging.getLogger("dbos")
    if not any(isinstance(handler, _Forward) for handler in theirs.handlers):
        theirs.addHandler(_Forward())
        theirs.propagate = False
