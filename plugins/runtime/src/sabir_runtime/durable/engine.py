"""DBOS, the engine of this process: stores the states of runs, and starts queued runs at workers.

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
from sabir_runtime.durable.row_guard import REFUSED, SERIALIZATION, guard_engine, refusal_error
from sabir_runtime.durable.stored_faults import OTHER, fault_name
from sabir_runtime.durable.stores import RunnerSettings, version_of

WORKFLOW = "sabir.run"
log = logging.getLogger("sabir.durable.engine")

Execute: TypeAlias = Callable[[str, RowRefused | None], Awaitable[None]]
"""A function that performs the run of a name. With a RowRefused, it pauses the run instead, and stores the reason."""
_execute: Execute | None = None


class ReadableJSON(Serializer):
    """Serializes DBOS's own data as JSON. `row_guard` ensures that no value in another serialization is loaded."""

    def serialize(self, data: Any) -> str:
        """Return JSON text. An exception is written as its stored name and its message."""
        return json.dumps(data, default=_encode_exception)

    def deserialize(self, serialized_data: str) -> Any:
        """Return the value of a JSON text. A stored exception is returned as DurableFault, only with its name and
        message. If a policy failed, callers read its failure from the ledger instead.

        Raises RowRefused for a text that is not JSON, and for a text with which `row_guard` replaced a value in another
        serialization.
        """
        try:
            value = json.loads(serialized_data)
        except (TypeError, ValueError, RecursionError):
            raise RowRefused("a value of the engine in the store is not JSON; check who else writes to it") from None
        if isinstance(value, dict) and set(value) == {"error", "message"}:
            return DurableFault(f"{value['error']}: {value['message']}")
        if isinstance(value, dict) and REFUSED in value:
            raise refusal_error(value[REFUSED])
        return value

    def name(self) -> str:
        """Return the serializer's name, which DBOS stores next to each value in the column `serialization`."""
        return SERIALIZATION


def _encode_exception(value: object) -> object:
    """Return the stored name and the message of an exception as JSON. Raises TypeError for any other value."""
    if isinstance(value, BaseException):
        name = fault_name(value)
        return {"error": name, "message": one_line(value) if name == OTHER else one_line(str(value))}
    raise TypeError(f"a {type(value).__name__} cannot be part of a run's state")


@DBOS.workflow(name=WORKFLOW)
async def run_workflow(sabir_refused: object = None) -> None:
    """Perform a run, whose name is the workflow's id.

    `sabir_refused` is not None if `row_guard` replaced the workflow's stored inputs, because they are in another
    serialization. The run is then paused instead.
    """
    assert _execute is not None and DBOS.workflow_id is not None
    await _execute(DBOS.workflow_id, None if sabir_refused is None else refusal_error(sabir_refused))


def make_client(engine: Engine) -> DBOSClient:
    """Return a client that changes the states of runs. This process needs no worker.

    The client raises, and does not try again, if the store cannot be reached.
    """
    _forward_logs()
    guard_engine(engine)
    return DBOSClient(
        system_database_engine=engine, serializer=ReadableJSON(), lazy=True, retry_connection_errors=False
    )


def migrate(url: str) -> None:
    """Create DBOS's own tables, or upgrade older tables."""
    _forward_logs()
    DBOS.migrate(url)


def launch(engine: Engine, settings: RunnerSettings, worker: str, queues: list[str], execute: Execute) -> None:
    """Start DBOS in this process. DBOS calls `execute` for each run that this worker performs.

    `worker` is the worker's id, and `queues` are the queues from which the worker takes runs. Raises RunnerInUse if
    other code has started DBOS.
    """
    global _execute  # noqa: PLW0603  # one DBOS in each process, and one function that it runs
    from dbos._dbos import _dbos_global_instance

    if _dbos_global_instance is not None:
        raise RunnerInUse("other code already started DBOS in this process; use DurableRunner in another process")
    _forward_logs()
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
    """Take runs from this queue, too. DBOS begins within a second."""
    from dbos._dbos import _get_dbos_instance

    listening = _get_dbos_instance()._listening_queues
    if listening is not None and queue not in listening:
        listening.append(queue)  # DBOS.listen_queues sets this list, but only before the launch


async def start(run: str) -> WorkflowHandleAsync[None]:
    """Start a run in this process, and return its handle. If the engine knows the run, return a handle of that run."""
    with SetWorkflowID(run):
        return await DBOS.start_workflow_async(run_workflow)


async def find(run: str) -> WorkflowHandleAsync[None]:
    """Return the engine's handle of a run. Its `get_result` waits for the end of the run."""
    return await DBOS.retrieve_workflow_async(run)


async def shut_down() -> None:
    """Stop DBOS if this module started it. Running runs stay unfinished, and another worker continues them."""
    global _execute  # noqa: PLW0603
    if _execute is None:
        return
    await asyncio.to_thread(DBOS.destroy)
    _execute = None
    # DBOS replaced the threads of asyncio.to_thread with its own threads, which have ended.
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor())


_REPORTED_TO_CALLERS = (
    "Exception encountered in asynchronous workflow",
    "Asyncio task cancelled for workflow",
    "was cancelled during execution",
)


class _Forward(logging.Handler):
    """Forwards DBOS's messages to this package's logger, which is silent without a handler."""

    def emit(self, record: logging.LogRecord) -> None:
        """Forward a message of DBOS to the logger `sabir.durable.engine`.

        Messages below WARNING get the level DEBUG, and so do the messages in `_REPORTED_TO_CALLERS`, because the caller
        of the run receives an error for them.
        """
        if record.levelno < logging.WARNING or any(map(record.getMessage().__contains__, _REPORTED_TO_CALLERS)):
            record.levelno, record.levelname = logging.DEBUG, "DEBUG"
        if log.isEnabledFor(record.levelno):
            log.handle(record)


def _forward_logs() -> None:
    engine_logger = logging.getLogger("dbos")
    if not any(isinstance(handler, _Forward) for handler in engine_logger.handlers):
        engine_logger.addHandler(_Forward())
        engine_logger.propagate = False
